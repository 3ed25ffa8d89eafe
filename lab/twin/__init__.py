"""The emulated twin of a path that was measured: from a finished run to a scenario that emulates it.

`estimates` has one function for each quantity of a path, `path` takes them from
the records of a run and says in words what they rest on, `script` writes the
scenario. Nothing here reads a file, see `lab.cli.twin`.
"""
