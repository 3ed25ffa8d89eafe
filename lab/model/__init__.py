"""Theory: pure functions from settings to what they should give. No input, no output, no clock."""
