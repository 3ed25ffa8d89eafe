"""What is pushed to other hosts: what is needed, the same bytes every time, fit for Python 3.8, alone."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lab.agent.serve import GREETING, operations
from lab.errors import EngineError
from lab.remote import bundle, ssh

REPOSITORY = Path(__file__).resolve().parents[2]
FILES = [str(bundle._file(name).relative_to(REPOSITORY)) for name in bundle.modules()]


def test_the_bytes_are_the_same_every_time_and_their_digest_is_the_version() -> None:
    first = bundle.make()
    bundle.make.cache_clear()
    again = bundle.make()
    assert first == again
    assert hashlib.sha256(first.data).hexdigest() == first.version
    assert len(first.data) < 400_000  # over a slow connection it takes seconds


def test_it_has_the_modules_and_no_others() -> None:
    with zipfile.ZipFile(io.BytesIO(bundle.make().data)) as archive:
        assert archive.namelist() == FILES
        for info in archive.infolist():
            assert info.date_time == (1980, 1, 1, 0, 0, 0)
            assert archive.read(info) == (REPOSITORY / info.filename).read_bytes()
    names = set(bundle.modules())
    assert names >= {"lab", "lab.agent.serve", "lab.agent.watchdog", "lab.agent.load", "lab.clock"}
    assert not {
        name
        for name in names
        if name.split(".")[1:2] and name.split(".")[1] in ("remote", "engines", "cli", "model")
    }
    assert "lab.agent.network" not in names  # Mininet's, which other hosts do not have


def test_what_other_hosts_do_not_have_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "_FIRST", "lab.agent.network")
    with pytest.raises(EngineError, match=r"lab\.agent\.network imports mininet"):
        bundle.modules()


@pytest.mark.parametrize("file", FILES)
def test_every_file_is_python_3_8(file: str) -> None:
    text = (REPOSITORY / file).read_text()
    ast.parse(text, file, feature_version=(3, 8))
    vermin = Path(sys.executable).with_name("vermin")
    done = subprocess.run(
        [
            str(vermin),
            "-t=3.8-",
            "--no-tips",
            "--eval-annotations=no",
            "--violations",
            str(REPOSITORY / file),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@contextmanager
def agent() -> Iterator[subprocess.Popen[bytes]]:
    """Start the far side as sshd does, but for ssh; it has nothing of this environment."""
    pushed = bundle.make().data
    process = subprocess.Popen(
        ["/usr/bin/python3", "-I", "-S", "-c", ssh.BOOTSTRAP],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
        env={},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(len(pushed).to_bytes(4, "big") + pushed)
        process.stdin.flush()
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()


def ask(process: subprocess.Popen[bytes], op: str, number: int = 1, **args: Any) -> dict[str, Any]:
    assert process.stdin is not None
    text = json.dumps({"id": number, "op": op, "args": args}).encode()
    process.stdin.write(len(text).to_bytes(4, "big") + text)
    process.stdin.flush()
    return answer(process)


def answer(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    size = int.from_bytes(process.stdout.read(4), "big")
    told: dict[str, Any] = json.loads(process.stdout.read(size))
    return told


def test_it_runs_alone_and_answers() -> None:
    with agent() as process:
        assert process.stdout is not None
        assert process.stdout.read(len(GREETING)) == GREETING
        told = ask(process, "hello", lease_s=10.0)
        assert told["result"]["version"] == bundle.make().version
        assert ask(process, "clock", 2)["result"] > 0
        assert ask(process, "lease", 3) == {"id": 3, "ok": True, "result": None}
        told = ask(process, "facts", 4, interfaces=["lo"])
        assert told["result"]["interfaces"]["lo"]["up"] is True
        told = ask(process, "reboot", 5)
        assert (told["ok"], told["error"]) == (False, "LookupError: there is no operation 'reboot'")
        told = ask(process, "facts", 6, wrong="word")
        assert told["kind"] == "TypeError"
        files = list(Path(f"/proc/{process.pid}/fd").iterdir())
        assert not [file for file in files if str(file.readlink()).startswith(str(REPOSITORY))]
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(5) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_no_two_operations_have_the_same_name() -> None:
    assert operations().keys() >= {"hello", "facts", "apply", "restore", "fetch", "clean", "bye"}


def test_its_tools_cannot_write_into_the_answers() -> None:
    with agent() as process:
        assert process.stdout is not None
        process.stdout.read(len(GREETING))
        ask(process, "hello", lease_s=10.0)
        assert Path(f"/proc/{process.pid}/fd/0").readlink() == Path("/dev/null")
        ends = {name: Path(f"/proc/{process.pid}/fd/{name}").readlink() for name in ("1", "2")}
        assert ends["1"] == ends["2"]


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",  # 4 GiB to come
        b"\0\0\0\x04null",
        b"\0\0\0\x02no",
        b"\0\0\0\x63{",
        b"\0\0",
        (2).to_bytes(4, "big") + b"{}",
        (9).to_bytes(4, "big") + b'{"id": 1}',
    ],
)
def test_requests_that_are_none_end_it(data: bytes) -> None:
    with agent() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.read(len(GREETING))
        process.stdin.write(data)
        process.stdin.close()
        assert process.wait(10) == 0
        assert process.stderr is not None
        assert b"wanlab: the connection broke" in process.stderr.read()


def test_a_silent_controller_ends_it() -> None:
    with agent() as process:
        assert process.stdout is not None
        process.stdout.read(len(GREETING))
        ask(process, "hello", lease_s=0.2)
        assert process.wait(5) == 0
