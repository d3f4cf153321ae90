"""The store of measured steps and outcomes of jobs, in one file for many processes (mdot_store.h).

    import mdot_store

    store = mdot_store.Store("site.store")
    store.add(job, "A100", 64, 161.5, settings={"precision": "amp"}, software="torch 2.4.1")
    store.calibrate(predictor).save("site.cal")

The package needs mdot (`pip install mdot-predict`) of the same version.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
import tempfile
import time
import weakref
from ctypes import CFUNCTYPE, POINTER, c_bool, c_char_p, c_size_t, c_void_p
from pathlib import Path
from typing import Any, Callable, Mapping, TypeVar

from mdot.calibration import Calibration, Measurement
from mdot.job import Job
from mdot.library.errors import Error
from mdot.library.libraries import call, encode_path, encode_text, read_text
from mdot.library.structs.base import new
from mdot.measured_table import read_measured
from mdot.predictor import Predictor

from mdot_store import structs as c
from mdot_store.library import store

__all__ = ["Drift", "Group", "Host", "Import", "Outcome", "Row", "Store", "StoredJob"]

READ_ONLY = 1
EXPORT_PLAIN, EXPORT_GROUPS = 1, 2
OUTLIER_WEIGHT = 0.25
"""Rows with a smaller weight are outliers of their group."""

_DIGEST_BYTES = 33
_Record = TypeVar("_Record")


@dataclasses.dataclass(frozen=True)
class Row:
    """A measured step. `settings` are columns of a table of `mdot calibrate`. Times of day are seconds since 1970, 0 if they
    are unknown. `weight` is 0 until `refresh`."""

    id: int
    digest: str
    name: str
    gpu_name: str
    batch: int
    ms: float
    memory_gib: float
    settings: dict[str, str]
    software: str
    host: str
    predictor: str
    note: str
    measured_at: int
    weight: float


@dataclasses.dataclass(frozen=True)
class StoredJob:
    """A network of a store. `Store.job` returns it as a Job."""

    digest: str
    name: str
    operator_count: int
    parameters: float
    added_at: int
    row_count: int


@dataclasses.dataclass(frozen=True)
class Outcome:
    """An execution of a job. `outcome` is "completed", "failed", "cancelled", "timed-out" or "unfinished". `elapsed_s` is -1
    if it is unknown; `limit_s` is 0 if it is unknown and -1 if there is none."""

    cluster: str
    job_id: str
    submitted_at: int
    name: str
    user: str
    account: str
    partition: str
    state: str
    outcome: str
    gpu: str
    gpu_count: int
    node_count: int
    started_at: int
    ended_at: int
    elapsed_s: int
    limit_s: int
    exit_code: int


@dataclasses.dataclass(frozen=True)
class Group:
    """Rows that repeat one measurement, and their robust mean."""

    id: int
    digest: str
    job: str
    gpu_name: str
    settings: dict[str, str]
    software: str
    batch: int
    row_count: int
    outlier_count: int
    ms: float
    spread: float
    memory_gib: float
    first_at: int
    last_at: int


@dataclasses.dataclass(frozen=True)
class Drift:
    """Three tests for one GPU model and software version, with corrected p-values (mdot_store.h, mdot_store_drift)."""

    gpu_name: str
    software: str
    row_count: int
    group_count: int
    job_count: int
    ratio: float
    level_z: float
    level_p: float
    dated_row_count: int
    changed_at: int
    change_ratio: float
    change_statistic: float
    change_p: float
    previous_software: str
    pair_count: int
    software_ratio: float
    software_t: float
    software_p: float


@dataclasses.dataclass(frozen=True)
class Host:
    """A host's step times over those of other hosts with the same GPU model (mdot_store.h, mdot_store_host)."""

    host: str
    gpu_name: str
    row_count: int
    group_count: int
    ratio: float
    p: float


@dataclasses.dataclass(frozen=True)
class Import:
    """Counts of an import. `malformed` lists the numbers and reasons of lines that were left out."""

    added_count: int
    updated_count: int
    known_count: int
    step_count: int
    malformed: list[tuple[int, str]]


def _settings(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.split("\n") if line)


def _record(kind: type[_Record], struct: Any) -> _Record:
    """A dataclass from the fields of a struct with the same names."""
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        value = getattr(struct, field.name)
        if isinstance(value, bytes):
            value = read_text(value)
        if field.name == "outcome":
            value = read_text(store().mdot_outcome_name(value))
        fields[field.name] = _settings(value) if field.name == "settings" else value
    return kind(**fields)


class Store:
    """An open store. Any number of processes may read and write one file at once; an object belongs to one thread."""

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        """Opens a store, and creates it unless `read_only` is true."""
        self._handle = ctypes.c_void_p()
        options = new(c.mdot_store_options, flags=READ_ONLY if read_only else 0)
        call(store().mdot_store_open, encode_path(path), ctypes.byref(options), ctypes.byref(self._handle))
        self._finalizer = weakref.finalize(self, store().mdot_store_close, ctypes.c_void_p(self._handle.value))

    def close(self) -> None:
        """Closes the file. Later calls of the store fail."""
        self._finalizer()
        self._handle = ctypes.c_void_p()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """The number of rows."""
        info = new(c.mdot_store_info)
        call(store().mdot_store_get_info, self._handle, ctypes.byref(info))
        return int(info.row_count)

    # ---- Writing -----------------------------------------------------------------------------------------------------

    def add_job(self, job: Job, name: str = "") -> str:
        """Adds a network and returns its digest, which ignores the batch."""
        digest = ctypes.create_string_buffer(_DIGEST_BYTES)
        call(store().mdot_store_add_job, self._handle, job._handle, encode_text(name), digest)
        return read_text(digest.value)

    def add(
        self,
        job: Job | str,
        gpu: str,
        batch: int,
        ms: float,
        *,
        settings: Mapping[str, object] | None = None,
        software: str = "",
        host: str = "",
        predictor: str = "",
        note: str = "",
        name: str = "",
        memory_gib: float = 0.0,
        measured_at: int | None = None,
    ) -> None:
        """Adds a measured step; it is on the disk when the call returns. `job` may be the digest of a job in the store.
        `settings` are columns of a table of `mdot calibrate`, for example {"precision": "amp", "parallel": "dp=4"}. The
        default date is now."""
        digest = job if isinstance(job, str) else self.add_job(job, name)
        lines = "\n".join(f"{key}={value}" for key, value in (settings or {}).items())
        row = new(
            c.mdot_store_row,
            digest=encode_text(digest),
            job=encode_text(name),
            gpu=encode_text(gpu),
            batch=batch,
            ms=ms,
            memory_gib=memory_gib,
            settings=encode_text(lines),
            software=encode_text(software),
            host=encode_text(host),
            predictor=encode_text(predictor),
            note=encode_text(note),
            measured_at=int(time.time()) if measured_at is None else measured_at,
        )
        call(store().mdot_store_add_rows, self._handle, ctypes.byref(row), 1, None)

    def import_table(self, path: str | os.PathLike[str]) -> Import:
        """Imports a table of measured steps (CSV, as for `mdot calibrate`) with its jobs. A known row is left out."""
        steps = read_measured(Path(path))
        jobs = (c_void_p * max(len(steps), 1))(*[step.job._handle for step in steps])
        text = Path(path).read_bytes()
        counts = new(c.mdot_store_import)
        call(
            store().mdot_store_import_csv,
            self._handle,
            text,
            len(text),
            os.fsencode(path),
            jobs,
            len(steps),
            ctypes.byref(counts),
        )
        return Import(counts.added_count, 0, counts.known_count, 0, [])

    def import_sacct(self, text: str, cluster: str = "") -> Import:
        """Imports the output of `sacct -P`. Malformed lines are left out and listed."""
        malformed: list[tuple[int, str]] = []
        report = CFUNCTYPE(None, c_void_p, c_size_t, c_char_p)(
            lambda _, line, reason: malformed.append((line, read_text(reason)))
        )
        options = new(
            c.mdot_store_accounting,
            name=b"sacct",
            cluster=encode_text(cluster),
            malformed=ctypes.cast(report, c_void_p).value,
        )
        counts = new(c.mdot_store_import)
        data = encode_text(text)
        call(store().mdot_store_import_sacct, self._handle, data, len(data), ctypes.byref(options), ctypes.byref(counts))
        return Import(counts.added_count, counts.updated_count, counts.known_count, counts.step_count, malformed)

    def refresh(self) -> int:
        """Updates groups and weights from new rows. Returns the number of rows that were read."""
        report = new(c.mdot_store_refresh_report)
        call(store().mdot_store_refresh, self._handle, ctypes.byref(report))
        return int(report.read_row_count)

    # ---- Reading -----------------------------------------------------------------------------------------------------

    def _collect(self, function: Any, arguments: tuple[Any, ...], struct: Any, kind: type[_Record]) -> list[_Record]:
        """Visits records and copies them. An exception within the callback is raised after the visit."""
        found: list[_Record] = []
        failures: list[BaseException] = []

        def visit(_: Any, at: Any) -> bool:
            try:
                found.append(_record(kind, at.contents))
            except BaseException as fault:
                failures.append(fault)
                return False
            return True

        visitor = CFUNCTYPE(c_bool, c_void_p, POINTER(struct))(visit)
        call(function, self._handle, *arguments, ctypes.cast(visitor, c_void_p), None)
        if failures:
            raise failures[0]
        return found

    def rows(self, *, gpu: str | None = None, software: str | None = None, outliers: bool = False) -> list[Row]:
        """The rows, optionally those of a GPU model, of a software, or that differ from repetitions (after `refresh`)."""
        chosen = new(
            c.mdot_store_filter,
            gpu=encode_text(gpu) if gpu is not None else None,
            software=encode_text(software) if software is not None else None,
            below_weight=OUTLIER_WEIGHT if outliers else 0.0,
        )
        return self._collect(store().mdot_store_visit_rows, (ctypes.byref(chosen),), c.mdot_store_row, Row)

    def jobs(self) -> list[StoredJob]:
        """The networks of the store, each once."""
        return self._collect(store().mdot_store_visit_jobs, (), c.mdot_store_job, StoredJob)

    def job(self, digest: str) -> Job:
        """The network with this digest. Raises NotFoundError if the store lacks it."""
        data, size = c_void_p(), c_size_t()
        call(store().mdot_store_get_job, self._handle, encode_text(digest), ctypes.byref(data), ctypes.byref(size))
        return Job.from_bytes(self._take(data, size))

    def outcomes(self) -> list[Outcome]:
        """Executions of jobs on a cluster."""
        return self._collect(store().mdot_store_visit_outcomes, (), c.mdot_store_outcome, Outcome)

    def groups(self) -> list[Group]:
        """Repeated measurements, as of the last `refresh`."""
        return self._collect(store().mdot_store_visit_groups, (None, None), c.mdot_store_group, Group)

    @staticmethod
    def _take(data: c_void_p, size: c_size_t) -> bytes:
        try:
            return ctypes.string_at(data, size.value)
        finally:
            store().mdot_store_free(data)

    def export_table(self, *, job_folder: str | None = None, plain: bool = False, flags: int = 0) -> str:
        """The rows as a table (CSV). `job_folder` is the folder of jobs that `write_jobs` made, as the table names it."""
        options = new(
            c.mdot_store_export,
            flags=flags | (EXPORT_PLAIN if plain else 0),
            job_folder=encode_text(job_folder) if job_folder is not None else None,
        )
        data, size = c_void_p(), c_size_t()
        call(store().mdot_store_export_csv, self._handle, ctypes.byref(options), ctypes.byref(data), ctypes.byref(size))
        return self._take(data, size).decode()

    def write_jobs(self, folder: str | os.PathLike[str]) -> None:
        """Writes each network to the folder as DIGEST.job."""
        for job in self.jobs():
            self.job(job.digest).save(Path(folder) / f"{job.digest}.job")

    # ---- Calibration and drift ---------------------------------------------------------------------------------------

    def _with_groups(self, use: Callable[[list[Group], list[Measurement]], _Record]) -> _Record:
        """Refreshes, and calls `use` with each group and its robust mean. If another process changes the groups meanwhile, they
        are read again."""
        for _ in range(5):
            self.refresh()
            with tempfile.TemporaryDirectory() as folder:
                self.write_jobs(folder)
                table = Path(folder) / "groups.csv"
                groups = self.groups()
                table.write_text(self.export_table(job_folder=".", flags=EXPORT_GROUPS))
                if [group.id for group in groups] == [group.id for group in self.groups()]:
                    return use(groups, read_measured(table))
        raise Error("other processes change the groups of the store: try again")

    def calibrate(self, predictor: Predictor) -> Calibration:
        """Fits a calibration to the robust means of all groups."""
        return self._with_groups(lambda _, steps: Calibration.measured(predictor, steps))

    def drift(self, predictor: Predictor) -> list[Drift]:
        """Compares all measurements with the answers of a predictor, including its calibration."""

        def compare(groups: list[Group], steps: list[Measurement]) -> list[Drift]:
            answers = predictor.predict_many([(step.job, step.configuration) for step in steps])
            found = (c.mdot_store_prediction * max(len(answers), 1))()
            for entry, group, answer in zip(found, groups, answers):
                if isinstance(answer, Error):
                    raise answer
                entry.struct_size = ctypes.sizeof(c.mdot_store_prediction)
                entry.group = group.id
                entry.ms, entry.lower_ms, entry.upper_ms = answer.step_ms, answer.lower_ms, answer.upper_ms
            # Always new: another predictor may have the same name.
            call(store().mdot_store_set_predictions, self._handle, b"python", found, len(groups))
            return self._collect(store().mdot_store_find_drift, (b"python",), c.mdot_store_drift, Drift)

        return self._with_groups(compare)

    def hosts(self) -> list[Host]:
        """Compares hosts with each other, by the rows that name one."""
        self.refresh()
        return self._collect(store().mdot_store_find_hosts, (), c.mdot_store_host, Host)

    # ---- The file ----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Reads everything. Raises CorruptError with the first fault and its remedy."""
        call(store().mdot_store_check, self._handle)

    @staticmethod
    def recover(path: str | os.PathLike[str], new_path: str | os.PathLike[str]) -> tuple[int, int, int]:
        """Copies all records that can be read from a damaged store to a new one. Returns the numbers of rows, jobs and
        outcomes."""
        report = new(c.mdot_store_recovery)
        call(store().mdot_store_recover, encode_path(path), encode_path(new_path), ctypes.byref(report))
        return int(report.row_count), int(report.job_count), int(report.outcome_count)

    @staticmethod
    def migrate(path: str | os.PathLike[str]) -> int:
        """Brings a store of an older mdot to the tables of this one. Returns the version before."""
        before = ctypes.c_uint32()
        call(store().mdot_store_migrate, encode_path(path), ctypes.byref(before))
        return int(before.value)
