"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from lab.errors import StoreError


def write(final: Path, text: str, mend: str) -> None:
    """Write a file, all of it or none. Raises StoreError, which ends with `mend`."""
    aside = final.parent / f".{final.name}.{os.getpid()}"
    try:
        aside.write_text(text, encoding="utf-8")
        aside.replace(final)
    except OSError as refused:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise StoreError(f"{final}: cannot be written ({refused.strerror}); {mend}") from refused
