"""Reduces a memory timeline to the few moments with a possible peak, for any batch and configuration.

A moment is the allocated memory at one time: bytes per sample, bytes per step, bytes in weight copies, and the
fraction of the gradients. A configuration weighs the five, for example gradients by type and by ZeRO. Only moments
that are the largest for some weights matter.

Recomputation beyond the program's own follows from the timeline as well: `by_block` and `selectively` move the
tensors' intervals, as torch.utils.checkpoint would.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
from typing import Iterable, Sequence

from mdot.program import PeakMoment
from mdot.trace.timeline import NEVER, Kind, Timeline

assert len(Kind) == 6, "_is_at_most compares six kinds"

MOST_MOMENTS = 16
_BATCHES = (0.25, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 8192.0)
"""Batches for the search, as weights of the bytes per sample."""


@dataclasses.dataclass(frozen=True)
class Interval:
    start: int
    end: int
    bytes: float
    kind: Kind


@dataclasses.dataclass
class Region:
    """A network block: the times of its forward pass, and the allocations that it returns to the caller."""

    first: int
    last: int
    results: set[int]
    """Indices of allocations."""


# ---- Intervals -------------------------------------------------------------------------------------------------------


def as_run(timeline: Timeline) -> list[Interval]:
    return [Interval(a.start, min(a.end, timeline.clock - 1), a.bytes, a.kind) for a in timeline.allocations]


def by_block(timeline: Timeline, regions: Sequence[Region]) -> list[Interval]:
    """A block's saved tensors are released at its end, and recomputed when the backward pass reaches the block. Its
    results, and tensors from before it that it reads, stay until the next block, or itself, is recomputed from them."""
    intervals: list[Interval] = []
    region_of = regions_by_time(regions, timeline.backward_start)
    begin, extra = _recomputations(timeline, regions, region_of)
    firsts = [region.first for region in regions]
    for index, a in enumerate(timeline.allocations):
        end = min(a.end, timeline.clock - 1)
        region = region_of[a.start] if a.start < timeline.backward_start else -1
        if region >= 0 and index in regions[region].results and region + 1 < len(regions):
            if begin[region + 1] < NEVER:
                end = max(end, begin[region + 1])
            intervals.append(Interval(a.start, end, a.bytes, a.kind))
        elif region < 0 or not timeline.is_saved(a) or a.end == NEVER or index in regions[region].results:
            reader = bisect.bisect(firsts, a.start)
            if region < 0 and reader < len(firsts) and firsts[reader] <= a.last_forward_use and begin[reader] < NEVER:
                end = max(end, begin[reader])
            intervals.append(Interval(a.start, end, a.bytes, a.kind))
            continue
        intervals.append(Interval(a.start, max(regions[region].last, a.start), a.bytes, a.kind))
        intervals.append(Interval(min(begin[region], end), end, a.bytes, a.kind))
    for region, size in enumerate(extra):
        if begin[region] < NEVER and size > 0:
            intervals.append(Interval(begin[region], begin[region], size, Kind.SAMPLES))
    return intervals


def recomputations(timeline: Timeline, regions: Sequence[Region]) -> list[int]:
    """For each block, the backward pass's arrival time; NEVER if it needs none of the block's tensors."""
    return _recomputations(timeline, regions, regions_by_time(regions, timeline.backward_start))[0]


def regions_by_time(regions: Sequence[Region], count: int) -> list[int]:
    found = [-1] * count
    for i, region in enumerate(regions):
        for time in range(region.first, min(region.last + 1, count)):
            found[time] = i
    return found


def _recomputations(
    timeline: Timeline, regions: Sequence[Region], region_of: Sequence[int]
) -> tuple[list[int], list[float]]:
    """For each block, the backward pass's arrival time, and the forward pass's temporary bytes per sample beyond saved
    tensors. The following block keeps a block's results, so that its backward pass reads them without a recomputation."""
    begin = [NEVER] * len(regions)
    changes: list[dict[int, float]] = [{} for _ in regions]
    for index, a in enumerate(timeline.allocations):
        region = region_of[a.start] if a.start < timeline.backward_start else -1
        if region < 0:
            continue
        if timeline.is_saved(a) and index not in regions[region].results:
            begin[region] = min(begin[region], a.first_backward_use)
        if a.kind == Kind.SAMPLES:
            change = changes[region]
            change[a.start] = change.get(a.start, 0.0) + a.bytes
            if not timeline.is_saved(a):
                change[a.end + 1] = change.get(a.end + 1, 0.0) - a.bytes
    extra = []
    for region, change in enumerate(changes):
        sums = list(itertools.accumulate(size for time, size in sorted(change.items()) if time <= regions[region].last))
        extra.append(max(sums) - sums[-1] if sums else 0.0)
    return begin, extra


def selectively(timeline: Timeline) -> list[Interval]:
    """Results of matmuls, convolutions and attention are saved. Everything else is recomputed shortly before the backward
    pass reads it."""
    intervals = []
    backward = timeline.clock - timeline.backward_start
    for a in timeline.allocations:
        end = min(a.end, timeline.clock - 1)
        if a.start >= timeline.backward_start or a.end == NEVER or a.kind not in (Kind.SAMPLES, Kind.LOGITS, Kind.SQUARES):
            intervals.append(Interval(a.start, end, a.bytes, a.kind))
        elif a.is_matmul:
            mirrored = timeline.backward_start + int(backward * (1 - a.start / max(timeline.backward_start, 1)))
            intervals.append(Interval(a.start, max(end, min(mirrored, timeline.clock - 1)), a.bytes, a.kind))
        elif not timeline.is_saved(a):
            intervals.append(Interval(a.start, end, a.bytes, a.kind))
        else:
            intervals.append(Interval(a.start, a.last_forward_use, a.bytes, a.kind))
            if a.first_backward_use <= end:
                intervals.append(Interval(a.first_backward_use, end, a.bytes, a.kind))
    return intervals


# ---- Moments ---------------------------------------------------------------------------------------------------------


def moments(
    intervals: Iterable[Interval], length: int, samples: int, chosen: Sequence[int] = ()
) -> dict[int, PeakMoment]:
    """The moments that can be the peak by their times, at most MOST_MOMENTS; or those at chosen times."""
    change = [[0.0] * (length + 1) for _ in Kind]
    total_gradients = 0.0
    for interval in intervals:
        size = interval.bytes
        if interval.kind in (Kind.SAMPLES, Kind.LOGITS):
            size /= samples
        elif interval.kind == Kind.SQUARES:
            size /= samples * samples
        elif interval.kind == Kind.GRADIENT:
            total_gradients += size
        change[interval.kind][interval.start] += size
        change[interval.kind][interval.end + 1] -= size
    columns = [list(itertools.accumulate(row[:length])) for row in change]
    times = [(*row, float(time)) for time, row in enumerate(zip(*columns))] or [(0.0,) * (len(Kind) + 1)]
    found = {int(times[time][-1]): times[time] for time in chosen}
    times = _without_smaller(times) if not chosen else []
    for batch, copies, gradients, logits in itertools.product(_BATCHES, (1.0, 0.0), (1.0, 0.5, 0.0), (1.0, 0.0)) if times else ():
        best = max(
            times,
            key=lambda t: batch * (t[0] + logits * t[4] + batch * t[5]) + t[1] + copies * t[2] + gradients * t[3],
        )
        found.setdefault(int(best[-1]), best)
    return {time: _moment(row, total_gradients) for time, row in list(found.items())[:MOST_MOMENTS]}


def _moment(row: tuple[float, ...], total_gradients: float) -> PeakMoment:
    per_sample, per_step, copies, gradients, logits, squares = (max(size, 0.0) for size in row[: len(Kind)])
    fraction = min(gradients / total_gradients, 1.0) if total_gradients > 0 else 0.0
    return PeakMoment(per_sample + logits, per_step, copies, fraction, logits, squares)


def _without_smaller(times: Sequence[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """Leaves out most moments that are at most as large as a neighbour in every kind."""
    kept: list[tuple[float, ...]] = []
    for time in times:
        while kept and _is_at_most(kept[-1], time):
            kept.pop()
        if not kept or not _is_at_most(time, kept[-1]):
            kept.append(time)
    return kept


def _is_at_most(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    """Whether each kind is at most as large in `a`. Without a loop, because a step has tens of thousands of moments."""
    return a[0] <= b[0] and a[1] <= b[1] and a[2] <= b[2] and a[3] <= b[3] and a[4] <= b[4] and a[5] <= b[5]
