"""What benchmarks share: points from knobs, run side by side into a run folder that is gone on with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab import manifest, scenario, sweep
from lab import run as run_module
from lab.cli.progress import Progress
from lab.engines import virtual
from lab.kernels import find_kernel
from lab.point import Terms
from lab.report import pictures
from lab.store import RunFolder

ROOT = Path(__file__).resolve().parent.parent
PATH = ROOT / "scenarios" / "path.py"


def make(knobs: Mapping[str, str], seed: int = 1) -> sweep.Point:
    """Return one point of the `path` scenario."""
    loaded = scenario.load(PATH).scenario
    settings = {name: [value] for name, value in knobs.items()}
    (point,) = sweep.points(loaded, settings, engine="virtual", seeds=[seed])
    return point


def run(points: Sequence[sweep.Point], out: Path, jobs: int | None = None) -> list[dict[str, Any]]:
    """Run what is missing of these points; return the rows of all, in their order."""
    loaded = scenario.load(PATH)
    kernels = {name: find_kernel(name) for name in dict.fromkeys(p.knobs["kernel"] for p in points)}
    folder = RunFolder(out)
    with folder.locked():
        folder.write_manifest(manifest.describe(loaded, loaded.scenario, None, {}, points, kernels))
        todo = run_module.missing(points, kernels, folder)
        with Progress(total=len(points), kept=len(points) - len(todo), quiet=False) as progress:
            run_module.run(
                todo,
                engine=virtual.make(),
                kernels=kernels,
                folder=folder,
                jobs=jobs or len(run_module.cpus()),
                terms=Terms(),
                notify=progress.notify,
            )
    return folder.rows("points", [point.id for point in points])


def fill(page: Path, name: str, made: str) -> None:
    """Put what a benchmark made between its two comments in a page; the rest of the page stays."""
    begin, end = f"<!-- written by benchmarks/{name}.py -->\n", f"<!-- end of benchmarks/{name}.py -->"
    text = page.read_text() if page.exists() else f"# {name}\n\n{begin}{end}\n"
    head, _, rest = text.partition(begin)
    page.write_text(head + begin + "\n" + made + "\n" + end + rest.partition(end)[2])


def draw(figure: Any, title: str, words: str, path: Path) -> None:
    """Write a figure as a PNG picture."""
    from types import SimpleNamespace  # noqa: PLC0415

    one = SimpleNamespace(slug=path.stem, title=title, restricted=words, figure=figure)
    pictures.write([one], [], path.parent, pictures.find_browser())  # type: ignore[list-item]
