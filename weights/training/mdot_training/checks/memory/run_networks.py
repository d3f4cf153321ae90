"""Measures the rows of the table of networks, in this process or in several."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import re
import sys
import time
from pathlib import Path
from typing import Iterator, Sequence

from mdot_training.checks.memory import fake_cuda, predicted, reference, table

Task = tuple[str, str, table.Row | None]
"""Network, precision, and a row whose reference is used again."""


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}"


def measure(task: Task) -> table.Row:
    """The row of a task. A failure of PyTorch or of mdot becomes the row's note."""
    fake_cuda.install()
    import torch

    from mdot_training.checks.memory.networks import CASES

    name, precision, known = task
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
    for field, traced_batch in (("predicted_bytes", case.traced_batch), ("same_batch_bytes", case.batch)):
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


def run(out: Path, only: str, precisions: Sequence[str], jobs: int, references: Path | None) -> list[table.Row]:
    """Appends the rows that `out` lacks, and returns all of the selection."""
    fake_cuda.install()
    from mdot_training.checks.memory.networks import CASES

    names = [name for name in CASES if re.search(only, name)]
    known = table.read(references) if references is not None else {}
    done = table.read(out)
    tasks = [(name, precision, known.get((name, precision))) for name in names for precision in precisions
             if (name, precision) not in done]
    for count, row in enumerate(_rows(tasks, jobs), 1):
        table.append(out, row)
        done[row.key] = row
        ratio = f"{row.ratio:.3f}" if row.ratio is not None else row.note
        print(f"{count}/{len(tasks)} {row.network}, {row.precision}: {ratio}", file=sys.stderr, flush=True)
    return [done[name, precision] for name in names for precision in precisions]
