"""The run folder: a manifest, and for each point one folder of Parquet tables.

    RUN/manifest.json
    RUN/points/<point>/point.parquet     one row; also of a point that failed
    RUN/points/<point>/flows.parquet
    RUN/points/<point>/samples.parquet
    RUN/points/<point>/queues.parquet
    RUN/points/<point>/limits.parquet
    RUN/points/<point>/delays.parquet    where something was timed: a probe, UDP, requests
    RUN/points/<point>/machine.parquet   where the clock was real: what the CPUs and timers did
    RUN/points/<point>/outcome.json      what the agent reported: commands, sysctls, iperf3's JSON
    RUN/points/<point>/captures/<interface>.pcap.gz    where packets were asked for

A point's folder appears by one rename, whole or not at all. Reading needs no
root and no engine.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lab import schema
from lab.errors import LabError, PreconditionError, StoreError

Row = dict[str, Any]

_ARROW = {
    "text": pa.string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "shares": pa.map_(pa.string(), pa.float64()),
}
FILES = {
    "points": "point.parquet",
    "flows": "flows.parquet",
    "samples": "samples.parquet",
    "queues": "queues.parquet",
    "limits": "limits.parquet",
    "delays": "delays.parquet",
    "machine": "machine.parquet",
}
CAPTURES = "captures"
MANIFEST = "manifest.json"
REPORT = "report.html"


def _table(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    columns = schema.TABLES[name]
    fields = [
        pa.field(c.name, _ARROW[c.kind], metadata={"unit": c.unit, "meaning": c.meaning}) for c in columns
    ]
    arrays = [pa.array([row.get(c.name) for row in rows], type=_ARROW[c.kind]) for c in columns]
    metadata = {"wanlab_schema": str(schema.VERSION)}
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata=metadata))


class RunFolder:
    """One run on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def points_path(self) -> Path:
        """Where the points are."""
        return self.path / "points"

    def manifest(self) -> dict[str, Any]:
        """Return the manifest. Raises StoreError where there is none or it cannot be read."""
        file = self.path / MANIFEST
        try:
            manifest = _json(file, "run again with --fresh")
        except (FileNotFoundError, NotADirectoryError) as missing:
            raise StoreError(
                f"{self.path}: not a run (it has no {MANIFEST}); name a folder that `wanlab run` wrote"
            ) from missing
        version = manifest.get("schema_version")
        if version != schema.VERSION:
            raise StoreError(
                f"{self.path}: written with schema version {version}, and this is version {schema.VERSION};"
                " read it with the wanlab that wrote it"
            )
        return manifest

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest, all of it or none."""
        text = json.dumps(manifest, indent=2, sort_keys=True) + "\n"
        self._write(MANIFEST, text.encode())

    def _write(self, name: str, data: bytes) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            aside = self.path / f".{name}.{os.getpid()}"
            aside.write_bytes(data)
            aside.replace(self.path / name)
        except OSError as refused:
            raise _refusal(
                refused,
                f"{self.path}: cannot be written ({refused.strerror}); choose another --out or make room",
            ) from refused

    def put_point(
        self,
        point: str,
        tables: Mapping[str, Sequence[Row]],
        outcome: Mapping[str, Any] | None,
        captures: Sequence[Path] = (),
    ) -> None:
        """Store one point in the place of what was there; captures: files that are moved to it.

        Raises StoreError or, on a full disk, PreconditionError; then nothing has changed.
        """
        aside = self.path / f".point-{point}.{os.getpid()}"
        try:
            self.points_path.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir()
            for name, rows in tables.items():
                pq.write_table(_table(name, rows), aside / FILES[name], compression="zstd")
            if outcome is not None:
                (aside / "outcome.json").write_text(json.dumps(outcome, sort_keys=True))
            for file in captures:
                (aside / CAPTURES).mkdir(exist_ok=True)
                shutil.move(file, aside / CAPTURES / file.name)
            final = self.points_path / point
            old = self.path / f".old-{point}.{os.getpid()}"
            if final.exists():
                final.replace(old)
            try:
                aside.replace(final)
            except OSError:
                if old.exists():
                    old.replace(final)
                raise
            shutil.rmtree(old, ignore_errors=True)
        except OSError as refused:
            shutil.rmtree(aside, ignore_errors=True)
            raise _refusal(
                refused, f"{self.path}: point {point} cannot be stored ({refused}); make room and run again"
            ) from refused

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for one writer; the lock goes with its holder, however that ends.

        Raises StoreError where another run is writing.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as refused:
            raise _refusal(
                refused, f"{self.path}: cannot be a run folder ({refused.strerror}); choose another --out"
            ) from refused
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError as held:
            raise StoreError(
                f"{self.path}: another run is writing here; wait for its end or choose another --out"
            ) from held
        finally:
            os.close(handle)

    def clear(self) -> None:
        """Remove the run that is here, and its report; what else is in the folder is not ours."""
        shutil.rmtree(self.points_path, ignore_errors=True)
        for name in (REPORT, MANIFEST):
            (self.path / name).unlink(missing_ok=True)

    def sweep_leftovers(self) -> None:
        """Remove what an interrupted writer left aside."""
        for leftover in (*self.path.glob(".point-*"), *self.path.glob(".old-*")):
            shutil.rmtree(leftover, ignore_errors=True)
        for leftover in self.path.glob(f".{MANIFEST}.*"):
            leftover.unlink(missing_ok=True)

    def statuses(self) -> dict[str, str]:
        """Return {point: status} of what is stored and can be read."""
        found = {}
        for file in sorted(self.points_path.glob(f"*/{FILES['points']}")):
            try:
                row = _rows(file)[0]
            except (StoreError, IndexError):
                continue  # a damaged point counts as missing: it runs again
            found[row["point"]] = row["status"]
        return found

    def rows(
        self, table: str, points: Sequence[str] | None = None, columns: Sequence[str] | None = None
    ) -> list[Row]:
        """Return the rows of a table, of all points or of these, in their order, with all columns or these.

        Raises StoreError naming the file that cannot be read.
        """
        if points is None:
            files = sorted(self.points_path.glob(f"*/{FILES[table]}"))
        else:
            files = [self.points_path / point / FILES[table] for point in points]
        return [row for file in files if file.exists() for row in _rows(file, columns)]

    def captures(self, point: str) -> dict[str, Path]:
        """Return {interface: file} of a point's captures."""
        files = sorted((self.points_path / point / CAPTURES).glob("*.pcap.gz"))
        return {file.name.removesuffix(".pcap.gz"): file for file in files}

    def outcome(self, point: str) -> dict[str, Any] | None:
        """Return what the agent reported of a point, None for one that failed."""
        file = self.points_path / point / "outcome.json"
        if not file.exists():
            return None
        return _json(file, "delete this point's folder and run again to get it back")


def _json(file: Path, mend: str) -> dict[str, Any]:
    """Return what a JSON file holds. Raises StoreError for one that cannot be read, OSError for none."""
    try:
        held = json.loads(file.read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise
    except (OSError, ValueError) as broken:
        raise StoreError(f"{file}: cannot be read as JSON ({broken}); {mend}") from broken
    if not isinstance(held, dict):
        raise StoreError(f"{file}: holds a JSON {type(held).__name__} and not an object; {mend}")
    return held


def _refusal(refused: OSError, sentence: str) -> LabError:
    """Return the error for a refused write: a full disk is what the machine lacks, the rest is bad input."""
    full = refused.errno in (errno.ENOSPC, errno.EDQUOT) or f"errno {errno.ENOSPC}]" in str(refused)
    return PreconditionError(sentence) if full else StoreError(sentence)


def _rows(file: Path, columns: Sequence[str] | None = None) -> list[Row]:
    try:
        chosen = None if columns is None else list(columns)
        rows: list[Row] = pq.read_table(file, columns=chosen).to_pylist(maps_as_pydicts="strict")
    except (OSError, pa.ArrowException) as broken:
        raise StoreError(
            f"{file}: cannot be read as Parquet ({str(broken).splitlines()[0]});"
            " delete this point's folder and run again to get it back"
        ) from broken
    return rows
