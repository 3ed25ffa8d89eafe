"""Advice: which socket buffers fill a path, found by real runs, written as sysctl files and checked again."""
