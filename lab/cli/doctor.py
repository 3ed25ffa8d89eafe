"""`wanlab doctor`: what this machine has and lacks for each engine."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from lab.cli import output
from lab.doctor import diagnose


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's words."""
    output.add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; return 0 when the virtual engine can run, else 3."""
    findings = diagnose()
    if arguments.format == "json":
        output.print_json([asdict(finding) for finding in findings])
    else:
        output.print_table(
            [
                {
                    "engine": finding.engine,
                    "what": finding.name,
                    "": "ok" if finding.ok else "LACKS",
                    "found": finding.found,
                    "mend": "" if finding.ok else finding.mend,
                }
                for finding in findings
            ]
        )
    lacking = [finding for finding in findings if not finding.ok and finding.engine in ("all", "virtual")]
    return 3 if lacking else 0
