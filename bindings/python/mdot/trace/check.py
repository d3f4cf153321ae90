"""The law of a trace: the job does the work that the program dispatched, and its peak memory is the recorded one.
`compare` and `compare_memory` find the modules that break it."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Callable, Mapping, Sequence

from mdot.program import WorkCheck
from mdot.trace.timeline import Kind

if TYPE_CHECKING:
    from mdot.job import Job
    from mdot.program import RecordedMemory
    from mdot.trace.timeline import Timeline
    from mdot.trace.work import Totals
    from mdot.trace.traced_program import Program

TOLERANCE = 0.02
"""Relative difference up to which two amounts of work are equal."""
MOST_TEXT = 512
_PRODUCTS = frozenset({
    "MatMul", "Linear", "Einsum", "Conv", "ConvTranspose", "Attention", "MultiHeadAttention", "LSTM", "GRU", "RNN", "MatMulInteger",
})  # fmt: skip


def compare(dispatched: Totals, job: Job, batch: float) -> tuple[WorkCheck, str | None]:
    """The check, with FLOPs by module as dispatched in both passes, and a warning if they, or those that run again, differ
    from the job's."""
    own = job.program.check if job.program is not None else WorkCheck()
    job_flops = own.job_flops
    totals = sum(dispatched[0].values()), sum(dispatched[1].values())
    largest = max(*totals, *job_flops, 1.0)
    names, texts = "", []
    for phase, name in enumerate(("forward", "backward")):
        difference = job_flops[phase] - totals[phase]
        if abs(difference) <= TOLERANCE * max(totals[phase], 1e-3 * largest) or (phase == 1 and totals[1] == 0):
            continue
        texts.append(f"{name} {job_flops[phase]:.3g} FLOPs instead of {totals[phase]:.3g}")
        names = names or ", ".join(_modules(dispatched[phase], _by_module(job, phase, batch)))
    repeated = _repeated(dispatched, job, batch)
    amount, wanted = sum(repeated.values()), sum(dispatched[2].values())
    if abs(amount - wanted) > TOLERANCE * max(totals[0], 1e-3 * largest):
        texts.append(f"recomputed {amount:.3g} FLOPs instead of {wanted:.3g}")
        names = names or ", ".join(_modules(dispatched[2], repeated))
    check = dataclasses.replace(own, dispatched_flops=totals, modules=names[:MOST_TEXT])
    if not texts:
        return check, None
    where = f" (largest differences in {names})" if names else ""
    return check, f"work-differs: the job has {' and '.join(texts)}, which the program dispatched at batch {batch}{where}"


def _recomputations(flags: int) -> int:
    """How often the backward pass runs an operator again: bits RECOMPUTED, ONCE_MORE and TWICE_MORE of mdot_job.h."""
    recomputed, once_more, twice_more = (flags >> bit & 1 for bit in (0, 5, 6))
    return recomputed + once_more + 2 * twice_more


def _repeated(dispatched: Totals, job: Job, batch: float) -> dict[str, float]:
    """The dispatched FLOPs of each module, times the job's repetitions of its products."""
    found: dict[str, list[float]] = {}
    for op in job:
        if op.type in _PRODUCTS or not op.known:
            flops = op.per_sample["forward"].flops * batch + op.per_step["forward"].flops
            sums = found.setdefault(op.module or "", [0.0, 0.0])
            sums[0] += flops
            sums[1] += flops * _recomputations(op.flags)
    return {path: dispatched[0].get(path, 0.0) * again / flops for path, (flops, again) in found.items() if again > 0}


def differs_backward(dispatched: Totals, job: Job) -> bool:
    """Whether the job has other FLOPs in the backward pass."""
    own = job.program.check.job_flops[1] if job.program is not None else 0.0
    forward, backward = (sum(phase.values()) for phase in dispatched[:2])
    return abs(own - backward) > TOLERANCE * max(backward, 1e-3 * forward)


def _by_module(job: Job, phase: int, batch: float) -> dict[str, float]:
    found: dict[str, float] = {}
    names = ("forward",) if phase == 0 else ("data_gradient", "weight_gradient")
    for op in job:
        if op.type in _PRODUCTS or not op.known:
            flops = sum(op.per_sample[name].flops * batch + op.per_step[name].flops for name in names)
            found[op.module or ""] = found.get(op.module or "", 0.0) + flops
    return found


def _modules(dispatched: Mapping[str, float], job: Mapping[str, float]) -> list[str]:
    """The innermost modules that hold most of the difference, at most three."""
    differences: dict[str, float] = {}
    for sign, side in ((1, dispatched), (-1, job)):
        for path, flops in side.items():
            parts = path.split(".") if path else []
            for end in range(len(parts) + 1):
                key = ".".join(parts[:end])
                differences[key] = differences.get(key, 0.0) + sign * flops
    total = max((abs(d) for d in differences.values()), default=0.0)
    large = sorted((p for p, d in differences.items() if p and abs(d) > total / 8), key=lambda p: -abs(differences[p]))
    inner = [p for p in large if not any(q.startswith(p + ".") and abs(differences[q]) > abs(differences[p]) / 2 for q in large)]
    return inner[:3]


# ---- Other batches ---------------------------------------------------------------------------------------------------

EXACT = 1e-3
"""Relative difference up to which a job is right at another batch."""
_NUMBERS = {"flops": "FLOPs", "bytes_read": "bytes read", "bytes_written": "bytes written"}


def _amount(job: Job, number: str, batch: float) -> float:
    terms = ((1.0, "per_step"), (batch, "per_sample"), (batch * batch, "per_square"))
    return sum(
        power * float(getattr(load, number)) for op in job for power, term in terms for load in getattr(op, term).values()
    )


def best_terms(
    job: Job, at_multiples: Callable[[], Job], direct: Sequence[tuple[Job, int]], batch: int
) -> tuple[Job, str | None]:
    """The job, or the one for multiples of its batch if that is nearer to the program at other batches; and a warning if
    neither is right. `direct` are jobs of the program at other batches, the last one at a multiple."""
    there, far = direct[-1]
    if len(there) != len(job) and len(direct[0][0]) != len(job):
        return job, None  # the reader says so
    if len(there) != len(job):
        return job, (
            f"batch-differs: it runs {len(job)} operators at batch {batch} and {len(there)} at batch {far}; "
            "trace it at the batch that you ask about"
        )
    wanted = {(at, number): _amount(one, number, at) for one, at in direct for number in _NUMBERS}

    def errors(one: Job) -> dict[tuple[int, str], float]:
        return {
            (at, number): _amount(one, number, at) / value - 1 if value > 0 else 0.0 for (at, number), value in wanted.items()
        }

    def worst(found: dict[tuple[int, str], float]) -> tuple[int, str]:
        return max(found, key=lambda key: abs(found[key]))

    def is_right(found: dict[tuple[int, str], float]) -> bool:
        return all(abs(error) <= EXACT for (at, _), error in found.items() if at == far)

    found = errors(job)
    if not is_right(found):
        other = at_multiples()
        others = errors(other)
        if is_right(others):
            job, found = other, others
    at, number = worst(found)
    if abs(found[at, number]) <= EXACT:
        return job, None
    return job, (
        f"batch-differs: its work is no polynomial of the batch: at batch {at}, the job has {abs(found[at, number]):.1%} "
        f"{'more' if found[at, number] > 0 else 'fewer'} {_NUMBERS[number]} than the program; "
        + (f"multiples of {batch} are right" if is_right(found) else "trace it at the batch that you ask about")
    )


# ---- Memory ----------------------------------------------------------------------------------------------------------


def compare_memory(
    traced: Program, recorded: Sequence[RecordedMemory], batch: int, check: WorkCheck
) -> tuple[WorkCheck, str | None]:
    """The check with both peaks of the program's own step at the batch, and a warning if they differ. The recorded peak
    is a sum that was kept while the step ran; the predicted one follows from the job's moments, as in peak_memory.c."""
    if traced.at_batch is None:
        return check, None
    weights = traced.trained_bytes + traced.frozen_bytes + traced.buffer_bytes
    timeline = traced.at_batch.timeline
    gradients = sum(a.bytes for a in timeline.allocations if a.kind == Kind.GRADIENT)
    moments = next(one.moments for one in recorded if one.precision == traced.key and one.recompute == "nothing")
    predicted = weights + max(
        batch * (m.per_sample + batch * m.per_square) + m.per_step + m.weight_copies + m.gradients * gradients
        for m in moments
    )
    check = dataclasses.replace(check, recorded_peak=weights + timeline.peak, predicted_peak=predicted)
    if abs(predicted - check.recorded_peak) <= TOLERANCE * check.recorded_peak:
        return check, None
    names = ", ".join(_modules(_at_peak(timeline, batch), _at_peak(traced.runs[traced.key].timeline, batch)))
    check = dataclasses.replace(check, modules=", ".join(filter(None, (check.modules, names)))[:MOST_TEXT])
    return check, (
        f"memory-differs: the job predicts a peak of {predicted / 2**20:.4g} MiB instead of {check.recorded_peak / 2**20:.4g}, "
        f"which the program's step recorded at batch {batch}" + (f" (largest differences in {names})" if names else "")
    )


def _at_peak(timeline: Timeline, batch: int) -> dict[str, float]:
    """Bytes by module when their sum is largest, in a step that is scaled to the batch."""
    sizes = timeline.sizes_at(batch)
    change = [0.0] * (timeline.clock + 2)
    for size, a in zip(sizes, timeline.allocations):
        change[a.start] += size
        change[min(a.end, timeline.clock) + 1] -= size
    sums = list(itertools.accumulate(change))
    peak = sums.index(max(sums))
    found: dict[str, float] = {}
    for size, a in zip(sizes, timeline.allocations):
        if a.start <= peak <= a.end:
            found[a.path] = found.get(a.path, 0.0) + size
    return found
