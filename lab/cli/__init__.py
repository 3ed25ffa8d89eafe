"""The command `wanlab`: parse, call, exit code. Nothing here measures or decides."""

from lab.cli.main import main

__all__ = ["main"]
