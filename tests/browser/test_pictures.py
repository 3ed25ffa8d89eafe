"""Figures as pictures, drawn by a real chromium."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from lab.report import page, pictures
from tests import made_up_run as made_up

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("browser")]


def size(picture: Path) -> tuple[int, int]:
    """Return the width and height of a PNG file."""
    head = picture.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:24])
    return width, height


def test_every_figure_is_a_picture(tmp_path: Path) -> None:
    of = [made_up.point(rmem=rmem) for rmem in ("25MiB", "50MiB")]
    folder = made_up.store(tmp_path / "run", [(one, made_up.done(one)) for one in of])
    written = page.write_pictures(folder, tmp_path / "deep" / "pictures")
    assert [path.name for path in written] == [
        "01-goodput-against-rmem.png",
        *(f"point-{one.id}.png" for one in of),
    ]
    for path in written:
        width, height = size(path)
        assert width == pictures.WIDTH_PX * pictures.SCALE
        assert height > 800
        assert path.stat().st_size > 20_000  # an empty picture is smaller


def test_run_without_a_done_point_has_none(tmp_path: Path) -> None:
    one = made_up.point()
    folder = made_up.store(tmp_path / "run", [(one, made_up.failed(one, "dead"))])
    assert page.write_pictures(folder, tmp_path / "pictures") == []
