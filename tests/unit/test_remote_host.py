"""A host as the controller sees it, with the real agent or a wrong one at the other end of two pipes."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.agent.serve import GREETING
from lab.errors import EngineError, LabError, PreconditionError
from lab.remote import bundle, host, inventory, ssh
from lab.remote.host import Host, Hosts, parallel

TWO = """
[hosts.sender]
address = "lab1"
role = "sender"
interface = "eth1"
test_address = "192.0.2.1"
[hosts.receiver]
address = "lab2"
role = "receiver"
interface = "eth1"
test_address = "192.0.2.2"
[ssh]
lease = "1s"
"""
LAB = inventory.parse(TWO)

Far = Callable[..., None]


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> Far:
    """Return a way to say what is at the other end: the agent with words said before it, or a script."""

    def set_far(script: str = "", before: str = "") -> None:
        text = script or f"import sys; sys.stdout.write({before!r}); sys.stdout.flush()\n{ssh.BOOTSTRAP}"
        monkeypatch.setattr(ssh, "argv", lambda *_: [sys.executable, "-I", "-S", "-c", text])

    return set_far


WRONG = """
import json, os, sys, time
source, sink = sys.stdin.buffer, sys.stdout.buffer
data = source.read(int.from_bytes(source.read(4), "big"))
sink.write({greeting!r}); sink.flush()
def read():
    return json.loads(source.read(int.from_bytes(source.read(4), "big")))
def send(answer, more=b""):
    text = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    sink.write(len(text).to_bytes(4, "big") + text + more); sink.flush()
import hashlib
asked = read()
send({{"id": asked["id"], "ok": True, "result": {{"version": hashlib.sha256(data).hexdigest()}}}})
while True:
    asked = read()
    if asked["op"] == "clock":
        send({{"id": asked["id"], "ok": True, "result": time.monotonic_ns() + {ahead_ns}}})
    elif asked["op"] == "bye":
        send({{"id": asked["id"], "ok": True, "result": []}})
    elif asked["op"] == "test":
        {then}
"""


def wrong(then: str, ahead_ns: int = 0) -> str:
    return WRONG.format(greeting=GREETING, then=then, ahead_ns=ahead_ns)


def opened(tmp_path: Path) -> Host:
    return Host.open(LAB.sender, LAB, tmp_path)


def test_asking_the_agent(far: Far, tmp_path: Path) -> None:
    far()
    one = opened(tmp_path)
    try:
        assert one.greeting["version"] == bundle.make().version
        assert one.call("facts", 10, interfaces=["lo"])["interfaces"]["lo"]["up"]
        with pytest.raises(
            EngineError, match=r"host sender \(lab1\): LookupError: there is no operation 'x'"
        ):
            one.call("x", 10)
        assert abs(one.clock_offset_ns) <= one.clock_error_ns < 100_000_000
    finally:
        assert one.close() == []
    assert one.close() == []
    assert threading.active_count() == 1


def test_words_before_the_agent_s_are_skipped(far: Far, tmp_path: Path) -> None:
    far(before="Welcome!\nYou have mail.\n\0wanlab")
    assert opened(tmp_path).close() == []


def test_a_shell_that_does_not_stop_talking(far: Far, tmp_path: Path) -> None:
    far("import sys\nwhile True: sys.stdout.write('x' * 1000)")
    with pytest.raises(PreconditionError, match="does not stop talking"):
        opened(tmp_path)


def test_an_end_before_the_first_word(far: Far, tmp_path: Path) -> None:
    far("import sys; sys.stderr.write('sh: 1: python3: not found'); sys.exit(127)")
    with pytest.raises(PreconditionError, match=r"host sender \(lab1\): there is no python3"):
        opened(tmp_path)


def test_no_word_at_all(far: Far, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "OPEN_LIMIT_S", 0.3)
    far("import time; time.sleep(60)")
    with pytest.raises(PreconditionError, match=r"host sender \(lab1\): it does not answer"):
        opened(tmp_path)


def test_another_agent_than_was_pushed(far: Far, tmp_path: Path) -> None:
    far(wrong("pass").replace("sha256", "sha1"))
    with pytest.raises(EngineError, match="what arrived there is not what was pushed"):
        opened(tmp_path)


def test_a_clock_that_is_ahead(far: Far, tmp_path: Path) -> None:
    far(wrong("pass", ahead_ns=5_000_000_000))
    one = opened(tmp_path)
    assert abs(one.clock_offset_ns - 5_000_000_000) <= one.clock_error_ns
    one.close()


ANSWERS = [
    ('send(b"[]")', "is no answer"),
    ('send(b"null")', "is no answer"),
    ('send(b"not JSON")', "what it says does not read"),
    ('send({"id": "1", "ok": True, "result": 1})', "is no answer"),
    ('send({"id": asked["id"], "ok": True})', "is no answer"),
    ('send({"id": asked["id"], "ok": False})', "is no answer"),
    ('send({"id": asked["id"], "ok": True, "result": 1, "blob": -1})', "is no answer"),
    ('send({"id": asked["id"], "ok": True, "result": 1, "blob": 1 << 40})', "is no answer"),
    ('sink.write(b"\\xff\\xff\\xff\\xff"); sink.flush()', "an answer of 4294967295 bytes"),
    (
        'send({"id": asked["id"], "ok": True, "result": 1, "blob": 9}, b"x"); sys.exit(3)',
        "ended with status 3",
    ),
    ("sys.exit(0)", "the agent there ended with status 0 and no word"),
    ("os.kill(os.getpid(), 9)", "the agent there ended with status -9 and no word"),
    ('sys.stderr.write("Timeout, server lab1 not responding.\\n"); sys.exit(255)', "has stopped to"),
    (
        'send({"id": asked["id"], "ok": False, "error": "bad \\x1b[2J\\nword", "kind": "X"})',
        r"bad \?\[2J\nword",
    ),
    ('send({"id": 12345, "ok": True, "result": 1})', "no answer to 'test' within 0.4 s"),
    ("pass", "no answer to 'test' within 0.4 s"),
]


@pytest.mark.parametrize(("then", "said"), ANSWERS)
def test_answers_that_are_none(far: Far, tmp_path: Path, then: str, said: str) -> None:
    far(wrong(then))
    one = opened(tmp_path)
    with pytest.raises(EngineError, match=r"host sender \(lab1\): .*" + said) as refused:
        one.call("test", 0.4)
    assert str(refused.value).replace("\n", "").isprintable()
    one.close()


@pytest.mark.parametrize("kind", ["Held", "Leftover"])
def test_a_host_that_is_not_free_is_a_precondition(far: Far, tmp_path: Path, kind: str) -> None:
    far(wrong(f'send({{"id": asked["id"], "ok": False, "error": "not now", "kind": "{kind}"}})'))
    one = opened(tmp_path)
    with pytest.raises(PreconditionError, match="not now"):
        one.call("test", 10)
    one.close()


def test_bytes_behind_an_answer(far: Far, tmp_path: Path) -> None:
    far(wrong('send({"id": asked["id"], "ok": True, "result": {"size": 3}, "blob": 3}, b"a\\0b")'))
    one = opened(tmp_path)
    assert one.call_with_bytes("test", 10) == ({"size": 3}, b"a\0b")
    one.close()


def test_one_that_hangs_is_given_up_after_two_leases(far: Far, tmp_path: Path) -> None:
    far(wrong("time.sleep(60)"))
    one = opened(tmp_path)
    start = time.monotonic()
    with pytest.raises(EngineError, match="no sign of life for 2 s, while 'test' was under way"):
        one.call("test", 60)
    assert time.monotonic() - start < 5
    (left,) = one.close()
    assert "its watchdog puts everything back within 1 s" in left
    assert time.monotonic() - start < 8


def test_leases_are_renewed_and_show_that_it_lives(far: Far, tmp_path: Path) -> None:
    far(
        wrong(
            "end = time.monotonic() + 3\n        leases = 0\n"
            "        while time.monotonic() < end:\n"
            '            other = read(); leases += other["op"] == "lease"\n'
            '            send({"id": other["id"], "ok": True, "result": None})\n'
            '        send({"id": asked["id"], "ok": True, "result": leases})'
        )
    )
    one = opened(tmp_path)
    assert one.call("test", 20) >= 7  # three a second
    one.close()


def test_hosts_are_opened_at_once_and_parted_from(far: Far) -> None:
    far()
    with Hosts(LAB) as hosts:
        assert list(hosts) == ["sender", "receiver"]
        assert hosts.each(lambda one: one.call("facts", 10)["uid"]).keys() == {"sender", "receiver"}
    assert hosts.left == []
    assert threading.active_count() == 1


def test_of_hosts_that_fail_all_are_named(far: Far) -> None:
    far("import sys; sys.exit('ssh: connect to host x port 22: Connection refused')")
    with pytest.raises(PreconditionError) as refused, Hosts(LAB):
        pytest.fail("connected")
    assert [line.split(":")[0] for line in str(refused.value).splitlines()] == [
        "host sender (lab1)",
        "host receiver (lab2)",
    ]


def test_parallel_returns_by_name_and_joins_faults() -> None:
    assert parallel({"a": lambda: 1, "b": lambda: 2}) == {"a": 1, "b": 2}

    def fail(error: BaseException) -> Callable[[], Any]:
        def task() -> Any:
            raise error

        return task

    with pytest.raises(EngineError, match="one\nother"):
        parallel({"a": fail(EngineError("one")), "b": lambda: 2, "c": fail(EngineError("other"))})
    with pytest.raises(PreconditionError):
        parallel({"a": fail(PreconditionError("one")), "c": fail(EngineError("other"))})
    with pytest.raises(ZeroDivisionError):
        parallel({"a": fail(EngineError("one")), "c": fail(ZeroDivisionError())})
    only = EngineError("one")
    with pytest.raises(LabError) as raised:
        parallel({"a": fail(only)})
    assert raised.value is only


def test_requests_are_json(far: Far, tmp_path: Path) -> None:
    far(wrong('send({"id": asked["id"], "ok": True, "result": asked["args"]})'))
    one = opened(tmp_path)
    sent = {"steps": [{"name": "ä\n\0\"'; reboot", "value": 1.5}], "op": "x", "timeout_s": 1}
    assert one.call("test", 10, **sent) == json.loads(json.dumps(sent))
    one.close()
