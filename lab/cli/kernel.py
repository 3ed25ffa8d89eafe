"""`wanlab kernel build` and `wanlab kernel list`."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from lab.cli import output
from lab.cli.run import whole_number
from lab.kernels import DEFAULT_HZ, HZ_CHOICES, KernelRecord, build_kernel, list_kernels


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's words."""
    words = parser.add_subparsers(dest="word", metavar="WORD", required=True)
    build = words.add_parser("build", help="build a kernel into the cache, or find it there")
    build.add_argument("name", metavar="NAME", help="6.12, 6.1, or a name of your own with --source")
    build.add_argument("--source", type=Path, metavar="TREE|TARBALL", help="kernel source; never written to")
    build.add_argument(
        "--hz",
        default=str(DEFAULT_HZ),
        metavar="N",
        help=f"timer frequency: {', '.join(map(str, HZ_CHOICES))}",
    )
    build.add_argument("--jobs", metavar="N", help="compilers at once (default: one a CPU)")
    output.add_format(build)
    listing = words.add_parser("list", help="list the kernels in the cache")
    output.add_format(listing)


def _as_dict(record: KernelRecord) -> dict[str, object]:
    return {
        "address": record.address,
        "name": record.name,
        "release": record.release,
        "hz": record.hz,
        "recipe_hash": record.recipe_hash,
        "config_hash": record.config_hash,
        "source": record.source,
        "source_hash": record.source_hash,
        "compiler": record.compiler,
        "built_at": record.built_at,
        "options_left_out": list(record.options_left_out),
        "path": str(record.path),
        "stale": record.stale,
    }


def run(arguments: argparse.Namespace) -> int:
    """Build or list; return 0."""
    if arguments.word == "list":
        records = list_kernels()
        if arguments.format == "json":
            output.print_json([_as_dict(record) for record in records])
        elif not records:
            print("no kernels yet; build the default one: wanlab kernel build 6.12")
        else:
            output.print_table(
                [
                    {
                        "kernel": record.address,
                        "release": record.release,
                        "HZ": str(record.hz),
                        "recipe": record.recipe_hash[:12],
                        "built": record.built_at,
                        "state": "built by an older recipe: build it again" if record.stale else "ready",
                    }
                    for record in records
                ]
            )
        return 0
    hz = whole_number(arguments.hz, "--hz", 1)
    jobs = whole_number(arguments.jobs, "--jobs", 1) if arguments.jobs else None
    console = output.console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task(f"kernel {arguments.name}", total=1.0)
        record = build_kernel(
            arguments.name,
            source=arguments.source,
            hz=hz,
            jobs=jobs,
            progress=lambda phase, share: bar.update(
                task, description=f"kernel {arguments.name}: {phase}", completed=share
            ),
        )
    if arguments.format == "json":
        output.print_json(_as_dict(record))
    else:
        print(
            f"kernel {record.address}: Linux {record.release}, {record.hz} Hz,"
            f" recipe {record.recipe_hash[:12]}, ready"
        )
    return 0
