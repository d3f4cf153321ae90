"""Measures rows for the table of networks, in one or several processes."""

from __future__ import annotations

import concurrent.futures
import itertools
import multiprocessing
import re
import sys
import time
from pathlib import Path
from typing import Iterator, Sequence

from mdot_lab.checks.memory import fake_cuda, predicted, reference, table

Task = tuple[str, str, table.Row | None, bool]
"""Network, precision, a row whose reference is used again, and whether the job is also traced at the predicted batch."""


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}"


def measure(task: Task) -> table.Row:
    """The row for a task. A failure in PyTorch or mdot becomes the row's note."""
    fake_cuda.install()
    import torch

    from mdot_lab.checks.memory.networks import CASES

    name, precision, known, has_same_batch = task
    case = CASES[name]
    torch.manual_seed(0)
    start = time.monotonic()
    row = table.Row(name, precision, case.optimizer, case.batch, case.traced_batch)
    notes = []
    if known is not None and known.reference_bytes and (known.optimizer, known.batch) == (case.optimizer, case.batch):
        row.reference_bytes, row.attention = known.reference_bytes, known.attention
    else:
        try:
            found = reference.peak(lambda: case.make(case.batch), precision, case.optimizer)
            row.reference_bytes, row.attention = found.peak_bytes, found.attention
        except Exception as error:  # Networks fail in many ways, and each failure is a row of the table.
            notes.append(f"PyTorch: {_reason(error)}")
    traces = [("predicted_bytes", case.traced_batch), ("same_batch_bytes", case.batch)]
    for field, traced_batch in traces[:1 + has_same_batch]:
        try:
            setattr(row, field, predicted.peak(case.make, traced_batch, case.batch, precision, case.optimizer))
        except Exception as error:
            notes.append(f"mdot at batch {traced_batch}: {_reason(error)}")
    row.seconds, row.note = round(time.monotonic() - start, 1), "; ".join(notes)
    return row


def _rows(tasks: Sequence[Task], jobs: int) -> Iterator[table.Row]:
    if jobs == 1:
        yield from map(measure, tasks)
        return
    # fake_cuda.install must precede torch in each process, therefore a fork of this one would be wrong.
    with concurrent.futures.ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        yield from (future.result() for future in concurrent.futures.as_completed(pool.submit(measure, task) for task in tasks))


def order(names: Sequence[str], precisions: Sequence[str]) -> list[table.Key]:
    """All pairs, so that a run that is stopped early has covered all libraries and precisions. Libraries take turns, and the
    first pass over the networks gives each a single precision, the next precision for each network of a library."""
    libraries: dict[str, list[str]] = {}
    for name in names:
        libraries.setdefault(name.split("/")[0], []).append(name)
    turns = [(index, name) for index, group in enumerate(itertools.zip_longest(*libraries.values())) for name in group
             if name is not None]
    return [(name, precisions[(index + shift) % len(precisions)]) for shift in range(len(precisions)) for index, name in turns]


def run(out: Path, only: str, precisions: Sequence[str], jobs: int, references: Path | None,
        has_same_batch: bool) -> list[table.Row]:
    """Appends rows that `out` lacks, and returns the whole selection."""
    fake_cuda.install()
    from mdot_lab.checks.memory.networks import CASES

    names = [name for name in CASES if re.search(only, name)]
    known = table.read(references) if references is not None else {}
    done = table.read(out)
    tasks = [(*key, known.get(key), has_same_batch) for key in order(names, precisions) if key not in done]
    for count, row in enumerate(_rows(tasks, jobs), 1):
        table.append(out, row)
        done[row.key] = row
        ratio = f"{row.ratio:.3f}" if row.ratio is not None else row.note
        print(f"{count}/{len(tasks)} {row.network}, {row.precision}: {ratio}", file=sys.stderr, flush=True)
    return [done[name, precision] for name in names for precision in precisions]
