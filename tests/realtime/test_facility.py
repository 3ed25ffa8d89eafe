"""The facility of these tests itself: any command as root in a kernel of the lab's own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lab.kernels import find_kernel
from tests.realtime.inside import INSIDE_OUT, ROOT, inside

pytestmark = pytest.mark.virtual  # it needs a kernel of the lab, and no root


@pytest.fixture(scope="module")
def kernel() -> Path:
    return find_kernel("6.12").path


def test_status_and_both_outputs_come_back(kernel, tmp_path):
    done = inside(kernel, ["sh", "-c", "id -u; echo wrong >&2; exit 7"], tmp_path)
    assert (done.status, done.text) == (7, "0\nwrong\n")


def test_files_in_out_are_there_afterwards_and_nowhere_else(kernel, tmp_path):
    words = f"echo $NAME > {INSIDE_OUT}/here; touch /tmp/there /run/there; touch {ROOT}/written-by-a-guest"
    done = inside(kernel, ["sh", "-c", words], tmp_path, env={"NAME": "value"})
    assert (tmp_path / "here").read_text() == "value\n"
    assert "Read-only file system" in done.text
    assert not Path("/tmp/there").exists()
    assert not (ROOT / "written-by-a-guest").exists()


def test_the_realtime_engine_lacks_nothing_inside(kernel, tmp_path):
    done = inside(kernel, [sys.executable, "-m", "lab", "doctor", "--format", "json"], tmp_path)
    assert '"realtime"' in done.text
    lacking = [part for part in done.text.split("{") if '"realtime"' in part and '"ok": false' in part]
    assert lacking == []


def test_numbers_can_be_stored_inside(kernel, tmp_path):
    words = (
        "import numpy, pyarrow, pyarrow.parquet;"
        f" pyarrow.parquet.write_table(pyarrow.table({{'a': numpy.arange(3)}}), '{INSIDE_OUT}/t.parquet')"
    )
    assert inside(kernel, [sys.executable, "-c", words], tmp_path).status == 0
    assert (tmp_path / "t.parquet").read_bytes()[:4] == b"PAR1"


def test_what_takes_too_long_is_ended_and_shows_what_it_said(kernel, tmp_path):
    with pytest.raises(AssertionError, match=r"no end after 3 s; it wrote:\nwaiting"):
        inside(kernel, ["sh", "-c", "echo waiting; sleep 1000"], tmp_path, timeout_s=3)


def test_a_kernel_that_panics_shows_its_last_words(kernel, tmp_path):
    words = "x = []\nwhile True: x.append(b'1' * 2**23)"  # out of memory is the end of a lab's kernel
    with pytest.raises(AssertionError, match=r"(?s)the kernel ended first.*panic"):
        inside(kernel, ["/usr/bin/python3", "-c", words], tmp_path, memory_bytes=2**28)
