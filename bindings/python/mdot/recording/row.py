"""Recorded steps as table rows for `mdot calibrate`, through mdot_record.h."""

from __future__ import annotations

import ctypes
import dataclasses
import hashlib
import os
from collections import deque
from pathlib import Path
from typing import Mapping

from mdot.configuration import Configuration, fill
from mdot.job import Job
from mdot.library import structs as c
from mdot.library.errors import InvalidArgumentError
from mdot.library.libraries import call, encode_path, encode_text, runtime

MOST_STEPS = 4096
"""Steps that count, the last ones, as in mdot_recorded."""


@dataclasses.dataclass(frozen=True)
class Recorded:
    """A measured training step, as a table row."""

    configuration: Configuration
    """The configuration as far as it was given or seen. `gpu` is empty if the training ran on the CPU."""
    step_ms: float
    """Median over windows of the mean step time, in milliseconds. A step ends with an optimizer update."""
    spread: float = 0.0
    """Distance between the quartiles of the windows, divided by `step_ms`."""
    windows: int = 0
    """Complete windows that were measured."""
    allocated_bytes: int | None = None
    """Peak tensor memory, the column `gib`. None if PyTorch uses no GPU."""
    reserved_bytes: int | None = None
    """Peak GPU memory in PyTorch's allocator, or None likewise."""
    notes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The column `note`: software versions, numbers of steps, memory in bytes."""

    @property
    def note(self) -> str:
        """The notes as the text of a table's column `note`: "key=value; key=value"."""
        return "; ".join(f"{key}={value}" for key, value in self.notes.items())


class StepTimes:
    """Collects step times, which libmdot summarises (mdot_recorder)."""

    def __init__(self, warmup_steps: int, window_steps: int) -> None:
        for name, value, most in (("warmup_steps", warmup_steps, 1 << 16), ("window_steps", window_steps, 1024)):
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
                raise InvalidArgumentError(f"{name} must be a whole number from 1 to {most}, not {value!r}")
        self._options = c.new(c.mdot_recorder_options, warmup_steps=warmup_steps, window_steps=window_steps)
        self._ms: deque[float] = deque(maxlen=MOST_STEPS + warmup_steps)

    def add(self, step_ms: float, steps: int = 1) -> None:
        if steps == 1:
            self._ms.append(step_ms)
        else:
            self._ms.extend([step_ms] * steps)

    def summary(self) -> c.mdot_recorded:
        """Raises OutOfRangeError if fewer than three windows are complete."""
        handle = ctypes.c_void_p()
        recorded = c.new(c.mdot_recorded)
        call(runtime().mdot_recorder_create, ctypes.byref(self._options), ctypes.byref(handle))
        try:
            for ms in self._ms:
                runtime().mdot_recorder_step(handle, ms)
            call(runtime().mdot_recorder_finish, handle, ctypes.byref(recorded))
        finally:
            runtime().mdot_recorder_destroy(handle)
        return recorded


def append(table: Path, job: str | Job, recorded: Recorded) -> None:
    """Appends a row to the table. Other processes may append at the same time. A Job is saved beside the table first; a
    path is absolute, or relative to the table's folder.

    Raises InvalidArgumentError for an unknown GPU and for a missing column in the table, and InputOutputError or
    NotFoundError if writing fails.
    """
    keep: list[object] = []
    configuration = c.mdot_configuration()
    fill(configuration, recorded.configuration, keep)
    name = save_beside(table, job) if isinstance(job, Job) else job
    row = c.new(c.mdot_measured_row, job=encode_text(name), configuration=ctypes.pointer(configuration),
                step_ms=recorded.step_ms, memory_bytes=recorded.allocated_bytes or 0, note=encode_text(recorded.note))  # fmt: skip
    call(runtime().mdot_measured_append, encode_path(table), ctypes.byref(row))


def path_in_table(job: str | os.PathLike[str], table: Path) -> str:
    """A job's relative path becomes relative to the table's folder."""
    path = os.fspath(job)
    return path if os.path.isabs(path) else os.path.relpath(path, table.parent)


def save_beside(table: Path, job: Job) -> str:
    """Saves a job in the table's folder, under a name from its content, so that equal jobs share a file. Returns the
    name. The file appears in one step, complete."""
    temporary = table.parent / f".{table.stem}-{os.getpid()}.job"
    try:
        job.save(temporary)
        digest = hashlib.sha256(temporary.read_bytes()).hexdigest()[:12]
        name = f"{table.stem}-{digest}.job"
        os.replace(temporary, table.parent / name)
    finally:
        temporary.unlink(missing_ok=True)
    return name
