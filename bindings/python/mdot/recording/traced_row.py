"""Appends a trace's step (trace_file.py) to a table of measured steps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mdot.gpus import gpu as find_gpu
from mdot.job import Job
from mdot.library.errors import InvalidArgumentError
from mdot.predictor import configure
from mdot.recording.row import Recorded, append, path_in_table
from mdot.recording.trace_file import read_trace
from mdot.version import VERSION


def record_trace(
    trace: str | os.PathLike[str],
    job: Job | str | os.PathLike[str],
    table: str | os.PathLike[str] = "measured.csv",
    *,
    batch: int | None = None,
    gpu: str | None = None,
    **options: Any,
) -> Recorded:
    """Appends the step in a torch.profiler trace (.json or .json.gz) as a row to a table for `mdot calibrate`.

    `batch` defaults to the job's, `gpu` to the trace's, and the number of GPUs to the training's processes.
    `options` are those of mdot.Configuration, because a trace lacks precision, layout and optimizer. Profiling slows
    the host, so that host-bound steps are too long; use a trace of a training that keeps the GPU busy.

    Raises InvalidArgumentError for an unknown GPU, NotFoundError for a missing file and for missing steps, and
    MalformedError for other kinds of files.
    """
    steps = read_trace(trace)
    name = gpu or steps.gpu
    if name is None:
        raise InvalidArgumentError(f"{trace}: the trace has no work on a GPU; name the GPU with gpu= (--gpu) if it has one")
    find_gpu(name)
    if steps.world_size > 1:
        options.setdefault("gpus", steps.world_size)
    notes = {"mdot": VERSION, "source": "torch.profiler", "trace": Path(trace).name, "steps": str(steps.step_count)}
    notes.update(busy_ms=f"{steps.busy_ms:.4g}", kernels=str(steps.kernel_count))
    if steps.world_size > 1:
        notes["rank"] = str(steps.rank)
    if steps.allocated_bytes is not None:
        notes["allocated_bytes"] = str(steps.allocated_bytes)
    if steps.reserved_bytes is not None:
        notes["reserved_bytes"] = str(steps.reserved_bytes)
    configuration = configure(job if isinstance(job, Job) else Job.read(job), name, batch, options)
    recorded = Recorded(configuration, steps.step_ms, allocated_bytes=steps.allocated_bytes,
                        reserved_bytes=steps.reserved_bytes, notes=notes)  # fmt: skip
    path = Path(os.path.abspath(table))
    append(path, job if isinstance(job, Job) else path_in_table(job, path), recorded)
    return recorded
