"""Real hosts over the user's own OpenSSH: who they are, what they have, and a way to ask them for something.

Not here: what is measured on them. What runs there is `lab.agent.serve`.
"""
