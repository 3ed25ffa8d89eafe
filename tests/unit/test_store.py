"""The run folder: what is put in comes out, whole or not at all, and anybody's reader opens it."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lab import schema, store
from lab.errors import PreconditionError, StoreError
from lab.store import RunFolder

ARROW = {
    "text": pa.string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "shares": pa.map_(pa.string(), pa.float64()),
}


def full_row(columns: tuple[schema.Column, ...], **values: Any) -> dict[str, Any]:
    """Return a row with a value in every column."""
    usual = {"text": "x", "int": 2**40, "float": 0.1, "bool": True, "shares": {"link": 0.75, "loss": 0.25}}
    return {column.name: usual[column.kind] for column in columns} | values


def tables(point: str, status: str = "done") -> dict[str, list[dict[str, Any]]]:
    """Return one row of points, two of flows and samples, one of queues, limits, delays and machine."""
    return {
        "points": [full_row(schema.POINT_COLUMNS, point=point, status=status)],
        "flows": [full_row(schema.FLOW_COLUMNS, point=point, flow=number) for number in range(2)],
        "samples": [full_row(schema.SAMPLE_COLUMNS, point=point, flow=0, t_s=t_s) for t_s in (0.0, 0.05)],
        "queues": [full_row(schema.QUEUE_COLUMNS, point=point)],
        "limits": [full_row(schema.LIMIT_COLUMNS, point=point)],
        "delays": [full_row(schema.DELAY_COLUMNS, point=point)],
        "machine": [full_row(schema.MACHINE_COLUMNS, point=point)],
    }


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


def everything(path: Path) -> dict[str, bytes]:
    files = [file for file in sorted(path.rglob("*")) if file.is_file()]
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


class TestPoints:
    def test_come_back_as_put(self, folder: RunFolder) -> None:
        put, outcome = tables("aa"), {"workload": {"flows": []}, "start_ns": 5}
        folder.put_point("aa", put, outcome)
        assert {name: folder.rows(name) for name in put} == put
        assert folder.outcome("aa") == outcome

    def test_missing_values_are_null(self, folder: RunFolder) -> None:
        folder.put_point("aa", {"points": [{"point": "aa", "status": "failed", "reason": "no ☃"}]}, None)
        (row,) = folder.rows("points")
        assert set(row) == {column.name for column in schema.POINT_COLUMNS}
        assert {name for name, value in row.items() if value is not None} == {"point", "status", "reason"}
        assert row["reason"] == "no ☃"
        assert folder.outcome("aa") is None
        assert folder.rows("samples") == []

    def test_are_read_in_the_order_asked_for(self, folder: RunFolder) -> None:
        for point in ("bb", "aa", "cc"):
            folder.put_point(point, tables(point), {})
        assert [row["point"] for row in folder.rows("points")] == ["aa", "bb", "cc"]
        assert [row["point"] for row in folder.rows("points", ["cc", "zz", "aa"])] == ["cc", "aa"]
        assert len(folder.rows("samples", ["bb"])) == 2

    def test_put_again_replaces_all_of_it(self, folder: RunFolder) -> None:
        folder.put_point("aa", tables("aa"), {"first": 1})
        folder.put_point("aa", {"points": [{"point": "aa", "status": "failed"}]}, None)
        assert list(everything(folder.path)) == ["points/aa/point.parquet"]
        assert folder.statuses() == {"aa": "failed"}

    def test_statuses(self, folder: RunFolder) -> None:
        assert folder.statuses() == {}
        folder.put_point("aa", tables("aa"), {})
        folder.put_point("bb", {"points": tables("bb", "failed")["points"]}, None)
        assert folder.statuses() == {"aa": "done", "bb": "failed"}


class TestSchema:
    @pytest.mark.parametrize("table", list(schema.TABLES))
    def test_types_units_and_meanings_are_in_the_file(self, folder: RunFolder, table: str) -> None:
        folder.put_point("aa", tables("aa"), {})
        written = pq.read_schema(folder.points_path / "aa" / store.FILES[table])
        assert written.names == [column.name for column in schema.TABLES[table]]
        for column in schema.TABLES[table]:
            field = written.field(column.name)
            assert field.type == ARROW[column.kind]
            assert field.metadata[b"unit"].decode() == column.unit
            assert field.metadata[b"meaning"].decode() == column.meaning
        assert written.metadata[b"wanlab_schema"] == str(schema.VERSION).encode()

    @pytest.mark.parametrize("table", list(schema.TABLES))
    def test_columns_are_distinct_and_say_what_they_are(self, table: str) -> None:
        columns = schema.TABLES[table]
        assert len({column.name for column in columns}) == len(columns)
        for column in columns:
            assert column.meaning
            for ending, unit in (("_bps", "bit/s"), ("_s", "s"), ("_bytes", "bytes"), ("_hz", "Hz")):
                if column.name.endswith(ending) and not column.name.startswith("tcpi_"):
                    assert column.unit == unit, column

    def test_of_an_empty_table_is_the_same(self, folder: RunFolder) -> None:
        folder.put_point("aa", {**tables("aa"), "queues": []}, {})
        folder.put_point("bb", tables("bb"), {})
        one, other = (pq.read_schema(folder.points_path / name / "queues.parquet") for name in ("aa", "bb"))
        assert one.equals(other, check_metadata=True)


class TestDamage:
    def test_truncated_table_is_told_by_name_with_the_mend(self, folder: RunFolder) -> None:
        folder.put_point("aa", tables("aa"), {})
        file = folder.points_path / "aa" / "samples.parquet"
        os.truncate(file, file.stat().st_size // 2)
        with pytest.raises(StoreError) as refused:
            folder.rows("samples")
        message = str(refused.value)
        assert message.startswith(f"{file}: cannot be read as Parquet (")
        assert message.endswith("; delete this point's folder and run again to get it back")
        assert "\n" not in message

    @pytest.mark.parametrize("data", [b"", b"PAR1", b"not parquet at all"])
    def test_damaged_point_counts_as_missing(self, folder: RunFolder, data: bytes) -> None:
        folder.put_point("aa", tables("aa"), {})
        folder.put_point("bb", tables("bb"), {})
        (folder.points_path / "aa" / "point.parquet").write_bytes(data)
        assert folder.statuses() == {"bb": "done"}
        with pytest.raises(StoreError, match=r"aa/point\.parquet: cannot be read as Parquet"):
            folder.rows("points")

    def test_point_without_a_row_counts_as_missing(self, folder: RunFolder) -> None:
        folder.put_point("aa", {"points": []}, None)
        assert folder.statuses() == {}

    @pytest.mark.parametrize("text", ["{", "[]", "7", "\udcff"])
    def test_damaged_outcome(self, folder: RunFolder, text: str) -> None:
        folder.put_point("aa", tables("aa"), {})
        (folder.points_path / "aa" / "outcome.json").write_text(text, errors="surrogateescape")
        with pytest.raises(StoreError, match=r"outcome\.json: .*; delete this point's folder and run again"):
            folder.outcome("aa")


class TestWriting:
    """A full disk is the machine's lack (exit 3), any other refusal a wrong folder (exit 2)."""

    FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def test_unwritable_folder(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("in the way")
        folder = RunFolder(tmp_path / "file" / "run")
        with pytest.raises(StoreError) as refused:
            folder.write_manifest({})
        assert str(refused.value) == (
            f"{folder.path}: cannot be written (Not a directory); choose another --out or make room"
        )
        with pytest.raises(StoreError, match=r"point aa cannot be stored \(.*Not a directory.*\); make room"):
            folder.put_point("aa", tables("aa"), {})

    def test_full_disk_leaves_what_was_there(
        self, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder.put_point("aa", tables("aa"), {"old": True})
        before = everything(folder.path)
        real, calls = pq.write_table, []

        def fills_up(*args: Any, **kwargs: Any) -> None:
            calls.append(args)
            if len(calls) == 3:
                raise self.FULL
            real(*args, **kwargs)

        monkeypatch.setattr(store.pq, "write_table", fills_up)
        with pytest.raises(PreconditionError) as refused:  # the machine lacks something
            folder.put_point("aa", tables("aa"), {"new": True})
        message = str(refused.value)
        assert message.startswith(f"{folder.path}: point aa cannot be stored (")
        assert message.endswith("No space left on device); make room and run again")
        assert len(calls) == 3
        assert everything(folder.path) == before
        assert not list(folder.path.glob(".point-*"))

    def test_file_that_cannot_grow(self, folder: RunFolder) -> None:
        """A real refusal of the kernel, through pyarrow: it must come as one of ours, and leave nothing."""
        folder.put_point("aa", tables("aa"), {"old": True})
        before = everything(folder.path)
        usual = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, usual[1]))
        try:
            with pytest.raises(
                StoreError, match=r"point aa cannot be stored \(.*File too large.*\); make room"
            ):
                folder.put_point("aa", tables("aa"), {"new": True})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, usual)
        assert everything(folder.path) == before

    def test_failed_rename_puts_the_old_point_back(
        self, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder.put_point("aa", tables("aa"), {"old": True})
        before = everything(folder.path)
        real = Path.replace

        def refuses(self: Path, target: Path) -> Path:
            if self.name.startswith(".point-"):
                raise TestWriting.FULL
            return real(self, target)

        monkeypatch.setattr(Path, "replace", refuses)
        with pytest.raises(PreconditionError):
            folder.put_point("aa", tables("aa"), {"new": True})
        assert everything(folder.path) == before

    def test_point_never_appears_half_written(
        self, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen = []
        real = pq.write_table

        def looks(*args: Any, **kwargs: Any) -> None:
            seen.append(folder.statuses())
            real(*args, **kwargs)

        monkeypatch.setattr(store.pq, "write_table", looks)
        folder.put_point("aa", tables("aa"), {})
        assert seen == [{}] * len(schema.TABLES)
        assert folder.statuses() == {"aa": "done"}

    def test_crash_leaves_nothing_that_counts(
        self, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def crashes(*_args: Any, **_kwargs: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(store.pq, "write_table", crashes)
        with pytest.raises(KeyboardInterrupt):
            folder.put_point("aa", tables("aa"), {})
        assert folder.statuses() == {}
        folder.sweep_leftovers()
        assert everything(folder.path) == {}

    def test_leftovers_are_swept_and_nothing_else(self, folder: RunFolder) -> None:
        folder.put_point("aa", tables("aa"), {})
        folder.write_manifest({"schema_version": schema.VERSION})
        kept = everything(folder.path)
        for name in (".point-bb.4711", ".old-aa.4711"):
            (folder.path / name).mkdir()
            (folder.path / name / "samples.parquet").write_bytes(b"half")
        (folder.path / ".manifest.json.4711").write_text("{")
        (folder.path / "notes.txt").write_text("the user's own")
        folder.sweep_leftovers()
        assert everything(folder.path) == {**kept, "notes.txt": b"the user's own"}

    def test_nothing_to_sweep(self, folder: RunFolder) -> None:
        folder.sweep_leftovers()


class TestManifest:
    def test_comes_back_as_written(self, folder: RunFolder) -> None:
        manifest = {"schema_version": schema.VERSION, "scenario": "☃", "points": [], "ended": None}
        folder.write_manifest(manifest)
        assert folder.manifest() == manifest
        assert (folder.path / "manifest.json").read_text().endswith("}\n")

    def test_replaces_the_old_one_in_one_step(
        self, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder.write_manifest({"schema_version": schema.VERSION, "old": True})

        def refuses(*_: Any) -> Path:
            raise TestWriting.FULL

        monkeypatch.setattr(Path, "replace", refuses)
        with pytest.raises(PreconditionError, match="No space left on device"):
            folder.write_manifest({"schema_version": schema.VERSION})
        assert folder.manifest()["old"] is True

    def test_of_another_schema_version(self, folder: RunFolder) -> None:
        folder.write_manifest({"schema_version": 99})
        with pytest.raises(StoreError) as refused:
            folder.manifest()
        assert str(refused.value) == (
            f"{folder.path}: written with schema version 99, and this is version {schema.VERSION};"
            " read it with the wanlab that wrote it"
        )

    @pytest.mark.parametrize("make", ["nothing", "folder", "file"])
    def test_of_what_is_no_run(self, tmp_path: Path, make: str) -> None:
        path = tmp_path / "thing"
        if make == "folder":
            path.mkdir()
        elif make == "file":
            path.write_text("not a folder")
        with pytest.raises(StoreError) as refused:
            RunFolder(path).manifest()
        assert str(refused.value) == (
            f"{path}: not a run (it has no manifest.json); name a folder that `wanlab run` wrote"
        )

    @pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff\xfe{}"])
    def test_that_is_damaged(self, folder: RunFolder, data: bytes) -> None:
        folder.write_manifest({"schema_version": schema.VERSION})
        (folder.path / "manifest.json").write_bytes(data)
        with pytest.raises(StoreError, match=r"manifest\.json: .*; run again with --fresh"):
            folder.manifest()

    def test_name_that_is_too_long(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="File name too long"):
            RunFolder(tmp_path / ("x" * 300)).manifest()


class TestOtherReaders:
    """The one-line readings that the documentation gives."""

    @pytest.fixture
    def run(self, folder: RunFolder) -> Path:
        for point in ("aa", "bb"):
            folder.put_point(point, tables(point), {})
        folder.write_manifest({"schema_version": schema.VERSION})
        return folder.path

    def test_duckdb(self, run: Path) -> None:
        for table, file in store.FILES.items():
            found = duckdb.sql(f"select * from '{run}/points/*/{file}'")
            assert found.columns == [column.name for column in schema.TABLES[table]]
        query = f"select point, count(*) from '{run}/points/*/samples.parquet' group by point order by point"
        assert duckdb.sql(query).fetchall() == [("aa", 2), ("bb", 2)]

    def test_polars(self, run: Path) -> None:
        frame = polars.read_parquet(f"{run}/points/*/samples.parquet")
        assert frame.shape == (4, len(schema.SAMPLE_COLUMNS))
        assert frame["point"].to_list() == ["aa", "aa", "bb", "bb"]
        assert frame.schema["tcpi_rtt"] == polars.Int64

    def test_pandas(self, run: Path) -> None:
        files = sorted(run.glob("points/*/samples.parquet"))
        frame = pd.concat(map(pd.read_parquet, files))
        assert list(frame["t_s"]) == [0.0, 0.05, 0.0, 0.05]
        assert list(frame.columns) == [column.name for column in schema.SAMPLE_COLUMNS]

    def test_a_point_s_folder_is_enough(self, run: Path, tmp_path: Path) -> None:
        alone = tmp_path / "alone"
        shutil.copytree(run / "points" / "aa", alone)
        assert len(pd.read_parquet(alone / "samples.parquet")) == 2
        assert json.loads((alone / "outcome.json").read_text()) == {}


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with folder.locked(), pytest.raises(StoreError, match="another run is writing here"), folder.locked():
        pass
    with folder.locked():
        assert list(folder.path.iterdir()) == []
