"""The code that runs on the other hosts, as one zip: the modules that `lab.agent.serve` imports, no more.

Equal sources give equal bytes; their SHA-256 is the version that both ends must
agree on. The far side keeps it in memory, so there is no file to remove.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import io
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.errors import EngineError

_ROOT = Path(__file__).resolve().parents[2]
_FIRST = "lab.agent.serve"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can hold


@dataclass(frozen=True)
class Bundle:
    """What is pushed. modules: the names, in the order of the zip; version: SHA-256 of the bytes, hex."""

    data: bytes
    modules: tuple[str, ...]
    version: str


@functools.cache
def make() -> Bundle:
    """Return the bundle of the sources as they are. Raises EngineError where one needs more than Python."""
    found = modules()
    out = io.BytesIO()
    with zipfile.ZipFile(
        out, "w", zipfile.ZIP_STORED
    ) as archive:  # compressors differ from release to release
        for name in found:
            info = zipfile.ZipInfo(str(_file(name).relative_to(_ROOT)), _EPOCH)
            info.create_system = 3
            info.external_attr = 0o600 << 16
            archive.writestr(info, _file(name).read_bytes())
    data = out.getvalue()
    return Bundle(data, tuple(found), hashlib.sha256(data).hexdigest())


def modules() -> list[str]:
    """Return the names of all modules that the far side may import, their packages too, sorted.

    Raises EngineError where one of them imports what is neither the lab's nor Python's.
    """
    found: set[str] = set()
    waiting = [_FIRST]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        if "." in name:
            waiting.append(name.rpartition(".")[0])
        for one in _imports(name):
            if one.partition(".")[0] == "lab":
                waiting.append(one)
            elif one.partition(".")[0] not in sys.stdlib_module_names:
                raise EngineError(f"{name} imports {one}, which other hosts need not have")
    return sorted(found)


def _imports(name: str) -> Iterator[str]:
    """Yield what a module imports, also inside of functions."""
    for node in ast.walk(ast.parse(_file(name).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if node.module.partition(".")[0] == "lab" and _exists(inner) else node.module


def _exists(name: str) -> bool:
    return _file(name).is_file()


def _file(name: str) -> Path:
    path = _ROOT.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
