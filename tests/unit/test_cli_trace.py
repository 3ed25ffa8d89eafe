"""`wanlab trace`, in-process: what is written and printed, and that no file is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lab import traces
from tests.said import Said, wanlab_of

OURS = Path(__file__).resolve().parents[2] / "traces"


Trace = Callable[..., Said]


@pytest.fixture
def trace(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trace:
    """Return the command, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    return wanlab_of(capsys, "trace")


def shown(said: Said) -> dict[str, str]:
    """Return the rows of the table that `show` prints."""
    lines = [line.strip().split("  ", 1) for line in said.out.splitlines() if "  " in line.strip()]
    return {line[0]: line[1].strip() for line in lines}


class TestMake:
    def test_a_csv(self, trace: Trace) -> None:
        said = trace("make", "t.csv", "--rate", "20mbit + 10mbit*(t >= 2)", "--duration", "4s")
        assert said == Said(0, "t.csv: CSV, 2 lines, mean rate 25 Mbit/s\n", "")
        assert Path("t.csv").read_text() == "time_s,rate_bps\n0,20000000\n2,30000000\n"

    def test_deliveries(self, trace: Trace) -> None:
        said = trace("make", "t.up", "--rate", "12.112mbit*(t % 20ms < 10ms)", "--duration", "40ms")
        assert said == Said(0, "t.up: mahimahi packet deliveries, 21 lines, mean rate 6.359 Mbit/s\n", "")
        due_ms = [*range(1, 11), *range(21, 31), 40]
        assert Path("t.up").read_text() == "".join(f"{ms}\n" for ms in due_ms)

    def test_the_format_may_be_said(self, trace: Trace) -> None:
        words = ("--rate", "12.112mbit", "--duration", "3ms")
        assert trace("make", "t", *words).status == 0
        assert Path("t").read_text() == "1\n2\n3\n"
        assert trace("make", "t", *words, "--format", "csv", "--force").status == 0
        assert Path("t").read_text() == "time_s,rate_bps\n0,12112000\n"

    def test_replaces_a_file_only_with_force(self, trace: Trace) -> None:
        words = ("make", "t.csv", "--duration", "1s", "--rate")
        assert trace(*words, "1mbit").status == 0
        said = trace(*words, "2mbit")
        assert (said.status, said.out) == (2, "")
        assert said.err == "wanlab: t.csv: is there already; name another file, or --force to replace it\n"
        assert "1000000" in Path("t.csv").read_text()
        assert trace(*words, "2mbit", "--force").status == 0
        assert "2000000" in Path("t.csv").read_text()

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (
                ("t", "--rate", "open(t)", "--duration", "1s"),
                "--rate 'open(t)': 'open(t)' is no part of a formula; write it of t, pi, numbers with or"
                " without a unit, + - * / % **, comparisons and sin, cos, exp, abs, min, max,"
                " such as 20mbit + 10mbit*sin(2*pi*t/10)",
            ),
            (
                ("t", "--rate", "1kbit - 1mbit*t", "--duration", "1s"),
                "--rate '1kbit - 1mbit*t' is -4000 bit/s at 5ms; a rate lies between 1kbit and 400gbit,"
                " or is 0 for an outage: keep it there, such as by max(1kbit, min(..., 400gbit))",
            ),
            (
                ("t", "--rate", "1mbit", "--duration", "10"),
                "'10' has no unit; a time needs one (s, ms, us, ns, min), such as 200ms or 1.5s",
            ),
            (
                ("t", "--rate", "1mbit", "--duration", "0"),
                "--duration '0': is not between 1ms and 1000000s; write it such as 60s",
            ),
            (
                ("t", "--rate", "1mbit", "--duration", "1s", "--step", "1.5ms"),
                "step '1.5ms': a step is a whole number of milliseconds between 1ms and 10s, such as 10ms",
            ),
            (
                ("t", "--rate", "10gbit", "--duration", "60s"),
                "t: would have over 10000000 lines; take a shorter duration, a longer step or a lower rate",
            ),
            (
                ("t", "--rate", "10mbit", "--duration", "12d"),
                "'12d': 'd' is not a unit of a time (s, ms, us, ns, min); write it such as 200ms or 1.5s",
            ),
            (
                ("t.csv", "--rate", "10mbit*(t < 1)", "--duration", "2s"),
                "t.csv: the last rate is 0, an outage without an end;"
                " take a duration that ends when the link is back",
            ),
            (
                ("t.csv", "--rate", "1mbit", "--duration", "1s", "--format", "mahimahi"),
                "t.csv: would be read as CSV by its name; name it otherwise, such as link.up",
            ),
            (("/dev/null", "--rate", "1mbit", "--duration", "1s"), "/dev/null: is no regular file; name one"),
        ],
    )
    def test_refuses(self, trace: Trace, words: tuple[str, ...], message: str) -> None:
        assert trace("make", *words) == Said(2, "", f"wanlab: {message}\n")
        assert list(Path().iterdir()) == []


class TestShow:
    def test_a_csv(self, trace: Trace) -> None:
        said = trace("show", str(OURS / "handover.csv"))
        assert said.status == 0
        assert shown(said) == {
            "what": "value",
            "format": "CSV",
            "lines": "64",
            "digest": traces.digest(OURS / "handover.csv"),
            "period": "none; the last rate holds",
            "looked at": "59s",
            "mean rate": "131.4 Mbit/s",
            "least rate": "0 bit/s",
            "largest rate": "210.7 Mbit/s",
            "longest outage": "253ms",
            "steps of a run": "64",
        }
        spark = said.out.splitlines()[-1]
        assert len(spark) == 60
        assert set(spark) <= set("·▁▂▃▄▅▆▇█")
        assert "█" in spark

    def test_deliveries_as_json(self, trace: Trace) -> None:
        Path("t").write_text("10\n30\n30\n40\n")
        said = trace("show", "t", "--format", "json", "--duration", "100ms")
        rate_bps = 1514 * 8 / 0.01
        assert json.loads(said.out) == {
            "file": "t",
            "format": "mahimahi",
            "lines": 4,
            "digest": traces.digest(Path("t")),
            "period_s": 0.04,
            "over_s": 0.1,
            "mean_bps": pytest.approx(0.9 * rate_bps),
            "min_bps": 0,
            "max_bps": pytest.approx(2 * rate_bps),
            "longest_outage_s": 0.02,
            "steps": 1,
        }

    def test_a_part_of_it(self, trace: Trace) -> None:
        Path("t.csv").write_text("0,0\n1,10mbit\n2,20mbit\n")
        rows = shown(trace("show", "t.csv", "--duration", "1500ms"))
        assert (rows["mean rate"], rows["largest rate"]) == ("3.333 Mbit/s", "10 Mbit/s")
        assert trace("show", "t.csv", "--duration", "1500ms").out.endswith(f"\n{'·' * 40}{'█' * 20}\n")
        assert trace("show", "t.csv", "--duration", "500ms").out.endswith(f"\n{'·' * 60}\n")
        assert json.loads(trace("show", "t.csv", "--format", "json").out)["steps"] == 3

    def test_a_constant(self, trace: Trace) -> None:
        Path("t.csv").write_text("0,10mbit\n")
        assert shown(trace("show", "t.csv"))["mean rate"] == "10 Mbit/s"
        Path("t").write_text("1\n")
        assert shown(trace("show", "t", "--step", "1ms"))["mean rate"] == "12.11 Mbit/s"

    def test_more_steps_than_a_run_takes(self, trace: Trace) -> None:
        Path("t").write_text("1\n2\n2\n")
        words = ("show", "t", "--step", "1ms", "--duration", "200s")
        assert shown(trace(*words))["steps of a run"] == "over 100000, too many"
        assert json.loads(trace(*words, "--format", "json").out)["steps"] is None

    def test_refuses(self, trace: Trace) -> None:
        Path("t.csv").write_text("0,10mbit\n5s,fast\n")
        assert trace("show", "t.csv") == Said(
            2,
            "",
            "wanlab: t.csv, line 2: 'fast' is not a rate; write a number and a unit,"
            " such as 100mbit or 12.5MB/s\n",
        )
        assert trace("show", "none").status == 2


class TestConvert:
    def test_deliveries_to_csv(self, trace: Trace) -> None:
        Path("t").write_text("10\n10\n20\n40\n")
        said = trace("convert", "t", "t.csv")
        assert said == Said(
            0,
            "t.csv: CSV, 4 lines, mean rate 1.211 Mbit/s\n"
            "Lost: where in its step of 10ms each packet was due\n"
            "Lost: the repetition; after 40ms the last rate holds\n",
            "",
        )
        assert Path("t.csv").read_text() == "time_s,rate_bps\n0,2422400\n0.01,1211200\n0.02,0\n0.03,1211200\n"
        assert trace("convert", "t", "long.csv", "--duration", "80ms", "--step", "20ms").status == 0
        assert Path("long.csv").read_text() == (
            "time_s,rate_bps\n0,1816800\n0.02,605600\n0.04,1816800\n0.06,605600\n"
        )

    def test_csv_to_deliveries(self, trace: Trace) -> None:
        Path("t.csv").write_text("time_ms,rate_mbps\n0,12.112\n3,0\n5,24.224\n")
        said = trace("convert", "t.csv", "t", "--duration", "7ms")
        assert said.out.splitlines()[1:] == [
            "Lost: parts of a packet and of a millisecond",
            "Lost: what comes later; after 7ms the trace begins anew",
        ]
        assert Path("t").read_text() == "1\n2\n3\n6\n6\n7\n7\n"

    def test_csv_to_a_coarser_one(self, trace: Trace) -> None:
        Path("t.csv").write_text("0,1mbit\n0.05,3mbit\n0.1,4mbit\n")
        said = trace("convert", "t.csv", "c.csv", "--duration", "200ms", "--step", "100ms")
        assert said.out.splitlines()[1:] == ["Lost: what changed within 100ms"]
        assert Path("c.csv").read_text() == "time_s,rate_bps\n0,2000000\n0.1,4000000\n"

    def test_csv_to_the_lab_s_own_spelling(self, trace: Trace) -> None:
        Path("t.csv").write_text("# ours\n2,1mbit\n3,0\n4,1mbit\n")
        assert trace("convert", "t.csv", "c.csv").out.splitlines()[1:] == []
        assert Path("c.csv").read_text() == "time_s,rate_bps\n0,1000000\n3,0\n4,1000000\n"

    def test_a_file_may_replace_itself(self, trace: Trace) -> None:
        Path("t.csv").write_text("0,1mbit\n")
        assert trace("convert", "t.csv", "t.csv", "--force").status == 0
        assert Path("t.csv").read_text() == "time_s,rate_bps\n0,1000000\n"

    def test_there_and_back(self, trace: Trace) -> None:
        assert trace("convert", str(OURS / "fading.csv"), "t.up", "--duration", "60s").status == 0
        assert trace("convert", "t.up", "t.csv", "--step", "100ms").status == 0
        ours, back = traces.load(OURS / "fading.csv"), traces.load(Path("t.csv"))
        for until_s in (0.1, 1, 10, 60):
            packets = (ours.mean_bps(until_s) - back.mean_bps(until_s)) * until_s / (8 * 1504)
            assert abs(packets) < 2

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("none", "t"), "none: there is no such file; name a trace, such as traces/fading.csv"),
            (
                ("t.csv", "t"),
                "t.csv: has no end of its own; say how much of it to take, such as --duration 60s",
            ),
            (
                ("t.csv", "c.csv", "--step", "1s"),
                "t.csv: has no end of its own; say how much of it to take, such as --duration 60s",
            ),
            (("t.csv", "t.csv"), "t.csv: is there already; name another file, or --force to replace it"),
            (
                ("t.csv", "c.csv", "--duration", "1s"),
                "c.csv: the last rate is 0, an outage without an end;"
                " take a duration that ends when the link is back",
            ),
        ],
    )
    def test_refuses(self, trace: Trace, words: tuple[str, ...], message: str) -> None:
        Path("t.csv").write_text("0,1mbit\n0.5,0\n2,1mbit\n")
        assert trace("convert", *words) == Said(2, "", f"wanlab: {message}\n")
        assert [path.name for path in Path().iterdir()] == ["t.csv"]
