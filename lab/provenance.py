"""What differs between runs before a single number does: versions, kernels, engine, settings, knobs.

Manifests of older versions lack some of it; what one does not say is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from lab.knobs import PATH_KNOBS

Manifest = Mapping[str, Any]

_MOST_VALUES = 6
_KERNEL = {  # field of a kernel's record: what it is called
    "release": "kernel release",
    "hz": "kernel HZ",
    "config_hash": "kernel config",
    "recipe_hash": "kernel recipe",
    "source_hash": "kernel source",
    "compiler": "kernel compiler",
}


class Difference(NamedTuple):
    """One thing that is not the same in all runs, and what it is in each, in their order."""

    what: str
    values: tuple[str, ...]


def differences(
    manifests: Sequence[Manifest], knobs: Sequence[Sequence[Mapping[str, str]]]
) -> list[Difference]:
    """Return all that differs. knobs: of each run, those of its points that are looked at."""
    told: list[tuple[str, Callable[[Manifest], str]]] = [
        ("scenario", lambda m: _text(m.get("scenario"))),
        ("scenario's text", lambda m: short(m.get("scenario_hash"))),
        ("preset", lambda m: _text(m.get("preset"))),
        ("settings", lambda m: " ".join(f"{k}={','.join(v)}" for k, v in (m.get("settings") or {}).items())),
        ("engine", lambda m: _text(m.get("engine"))),
        ("seeds", lambda m: _several([_text(seed) for seed in m.get("seeds") or ()])),
        ("wanlab", lambda m: _text(m.get("wanlab_version"))),
        ("kernel", lambda m: _several(list(m.get("kernels") or ()))),
        *((word, partial(_of_kernels, field=field)) for field, word in _KERNEL.items()),
        ("python", lambda m: _text((m.get("host") or {}).get("python"))),
        ("machine", lambda m: _text((m.get("host") or {}).get("machine"))),
    ]
    packages = dict.fromkeys(name for m in manifests for name in _packages(m))
    told += [(name, partial(_package, name=name)) for name in packages]
    found = [Difference(what, tuple(of(manifest) for manifest in manifests)) for what, of in told]
    for name, knob in PATH_KNOBS.items():
        if name != "kernel":  # above, with all that is known of it
            texts = [dict.fromkeys(one.get(name, knob.default) for one in points) for points in knobs]
            order = list(dict.fromkeys(text for its in texts for text in its))
            found.append(Difference(name, tuple(_several(sorted(its, key=order.index)) for its in texts)))
    return [one for one in found if len(set(one.values)) > 1]


def short(digest: object) -> str:
    """Return the first twelve digits of a hash, which tell it from others."""
    kind, colon, digits = _text(digest).rpartition(":")
    return f"{kind}{colon}{digits[:12]}"


def _packages(manifest: Manifest) -> Mapping[str, str]:
    found: Mapping[str, str] = (manifest.get("host") or {}).get("packages") or {}
    return found


def _package(manifest: Manifest, name: str) -> str:
    return _text(_packages(manifest).get(name))


def _of_kernels(manifest: Manifest, field: str) -> str:
    """Return a field of the kernels of a run: one text where they agree, else each with its name."""
    kernels = manifest.get("kernels") or {}
    texts = {
        name: short(record.get(field)) if field.endswith("_hash") else _text(record.get(field))
        for name, record in kernels.items()
    }
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return _several([f"{name}: {text}" for name, text in texts.items()])


def _several(texts: Sequence[str]) -> str:
    more = len(texts) - _MOST_VALUES
    return ", ".join(texts[:_MOST_VALUES]) + (f" and {more} more" if more > 0 else "")


def _text(value: object) -> str:
    return "" if value is None else str(value)
