"""A stored run as one page and as pictures: reads a run folder, starts nothing, imports no engine."""
