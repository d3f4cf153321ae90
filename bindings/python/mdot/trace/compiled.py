"""The memory of a training step that torch.compile compiled, from the timeline of the same step in eager mode.

Three properties of Inductor decide it. Neighbouring pointwise operators and reductions run in one kernel, so that the
tensors between them do not exist. AOTAutograd's partitioner (min_cut_rematerialization_partition) saves each forward
tensor that a matmul of the backward pass reads, and for all other readers the cheapest tensors from which fused kernels
compute the rest again. A kernel writes its result in place of an operand of the same size, if the operand has no later
reader.

Operators outside of compiled modules run as in eager mode."""

from __future__ import annotations

import bisect
import collections
import copy
import dataclasses
import functools
import heapq
from typing import Any, Iterable, Sequence

import torch

from mdot.trace.moments import Interval, Region, recomputations, regions_by_time
from mdot.trace.timeline import NEVER, Allocation, Call, Kind, Timeline

_SMALLER = 4
"""A result that is smaller than its operands by more than this factor is a reduction, which is never repeated."""
_DISTANCE, _MOST_DISTANT, _UNMATERIALISED = 1.1, 100, 2.0
"""The partitioner's weights: a byte costs 10 % more for each operator up to the first backward operator, and twice as much
where the tensor would not exist otherwise."""

_REDUCTIONS = {"sum", "mean", "amax", "amin", "var", "var_mean", "std", "linalg_vector_norm", "logsumexp"}
_NORMS = {"native_layer_norm", "native_group_norm", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm",
          "_native_batch_norm_legit", "_native_batch_norm_legit_functional", "_batch_norm_with_update", "_fused_rms_norm"}  # fmt: skip
_RANDOM = {"native_dropout", "bernoulli", "rand_like", "rand", "randn_like"}
_FUSIBLE = _REDUCTIONS | _NORMS | _RANDOM | {
    "_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data", "nll_loss_forward", "nll_loss2d_forward",
    "_to_copy", "copy", "clone", "where", "index", "gather", "slice", "select", "constant_pad_nd", "zeros", "zeros_like", "ones",
    "ones_like", "full", "full_like", "arange", "empty_like", "new_empty", "new_zeros", "new_full", "new_empty_strided", "empty",
    "masked_fill", "mse_loss", "binary_cross_entropy_with_logits", "smooth_l1_loss", "huber_loss", "nll_loss", "nll_loss2d",
    "repeat", "stack", "tril", "triu", "flip", "roll", "upsample_nearest2d", "pixel_shuffle", "pixel_unshuffle", "glu", "unfold",
    "log_sigmoid_forward", "cudnn_batch_norm", "_prelu_kernel", "zero", "fill",
    "hardswish", "hardsigmoid", "hardtanh", "leaky_relu", "elu", "mish", "softplus", "rrelu_with_noise"}  # fmt: skip
"""Besides the pointwise operators, which PyTorch marks. Their backward operators are fused as well."""
_JOINED = {"cat"}
"""Writes its operands' kernels into one result, and is never fused with its readers."""
_MASKING = {"threshold_backward"}
"""Reads whether each element of its operand is positive: fused kernels save this mask, with a byte per element."""
_COPIES = {"_to_copy"}
"""Made once from the same operand."""
_POOLS = {"max_pool2d_with_indices"}
"""Saves an offset of one byte for each result, in place of an index of eight bytes."""


@functools.cache
def _is_fusible(func: Any) -> bool:
    name = func._schema.name.split("::")[-1]
    base = name.removesuffix("_").removesuffix("_backward")
    return torch.Tag.pointwise in func.tags or base in _FUSIBLE or (base != name and _is_pointwise(base))


@functools.cache
def _is_pointwise(name: str) -> bool:
    packet = getattr(torch.ops.aten, name, None)
    return packet is not None and any(torch.Tag.pointwise in getattr(packet, one).tags for one in packet.overloads())


def _name(call: Call | None) -> str:
    return str(call.func._schema.name.split("::")[-1]) if call is not None else ""


class Step:
    """The step's tensors as a graph: who makes each one, and who reads it. An operator that writes in place makes another
    tensor in the same memory. A forward operator's mask is a tensor that exists only if it is saved."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.tensors = [dataclasses.replace(a) for a in timeline.allocations]
        count = len(self.tensors)
        self.makers: list[Call | None] = [None] * count
        self.operands: list[list[int]] = [[] for _ in range(count)]
        self.readers: list[list[tuple[Call, list[int]]]] = [[] for _ in range(count)]
        self.is_first = [True] * count
        current = {id(allocation): i for i, allocation in enumerate(timeline.allocations)}
        copies: dict[Any, int] = {}
        for call in timeline.calls:
            read = [current[id(a)] for a in call.read if id(a) in current]
            made: list[int] = []
            if _name(call).removesuffix("_backward") in _POOLS:
                read = [j for j in read if not self.is_forward(j) or not self.is_first[j]]
            if _name(call) in _COPIES and call.region > 0 and len(read) == len(call.made) == 1:
                run = call.checkpoint and (call.checkpoint, call.time < timeline.backward_start)
                same = copies.setdefault((call.func, read[0], call.made[0].bytes, run), current[id(call.made[0])])
                if same != current[id(call.made[0])]:
                    self._join(same, current[id(call.made[0])])
                    current[id(call.made[0])] = same
                    continue
            for j in set(read):
                self.readers[j].append((call, made))
            for place, allocation in enumerate(call.made):
                i = current.get(id(allocation))
                if i is not None and allocation.start < call.time:
                    self.tensors[i].end = call.time - 1
                    i = current[id(allocation)] = self._add(dataclasses.replace(allocation, start=call.time))
                if i is not None:
                    self._make(i, call, read, place == 0)
                    made.append(i)
        for i in range(len(self.tensors)):
            if _name(self.makers[i]) in _POOLS and not self.is_first[i]:
                self.tensors[i].bytes = self.tensors[i].elements
            self._add_mask(i)
        self.order = sorted(range(len(self.tensors)), key=lambda i: self.tensors[i].start)
        self._drop_unread()
        self.rebuilt = self._find_rebuilt()
        self.dropped = self._find_fused()

    def _drop_unread(self) -> None:
        """A second run ends where nobody reads the results."""
        for i in reversed(self.order):
            call = self.makers[i]
            if call is not None and call.checkpoint and call.region and not self.is_forward(i) and not self.readers[i]:
                for j in self.operands[i]:
                    for _, made in (one for one in self.readers[j] if one[0] is call and i in one[1]):
                        made.remove(i)
                    self.readers[j] = [one for one in self.readers[j] if one[0] is not call or one[1]]
                self.tensors[i].bytes, self.operands[i] = 0, []

    def _add_mask(self, i: int) -> None:
        maker, a = self.makers[i], self.tensors[i]
        late = [one for one in self.readers[i] if one[0].time >= self.timeline.backward_start]
        if maker is None or maker.region == 0 or not late or any(_name(call) not in _MASKING for call, _ in late):
            return
        call = Call(late[0][0].func, a.start, maker.region, [], [])
        mask = self._add(dataclasses.replace(a, bytes=a.elements))
        self._make(mask, call, [i], True)
        self.readers[mask] = late
        self.readers[i] = [one for one in self.readers[i] if one not in late] + [(call, [mask])]

    def _join(self, first: int, second: int) -> None:
        """The second tensor is the first one."""
        a, b = self.tensors[first], self.tensors[second]
        a.end, a.first_backward_use = max(a.end, b.end), min(a.first_backward_use, b.first_backward_use)
        b.bytes = 0

    def _add(self, tensor: Allocation) -> int:
        self.tensors.append(tensor)
        self.makers.append(None)
        self.operands.append([])
        self.readers.append([])
        self.is_first.append(True)
        return len(self.tensors) - 1

    def _make(self, i: int, call: Call, read: Sequence[int], is_first: bool) -> None:
        self.makers[i], self.operands[i], self.is_first[i] = call, [j for j in read if j != i], is_first

    def is_forward(self, i: int) -> bool:
        return self.tensors[i].start < self.timeline.backward_start

    def is_output_fusible(self, i: int) -> bool:
        maker = self.makers[i]
        return maker is not None and maker.region > 0 and _is_fusible(maker.func)

    def region(self, i: int) -> int:
        maker = self.makers[i]
        return maker.region if maker is not None else 0

    def fuses(self, i: int, reader: Call) -> bool:
        """Whether the reader runs in the kernel that makes the allocation."""
        maker = self.makers[i]
        if maker is None or maker.region == 0 or maker.region != reader.region:
            return False
        return _is_fusible(maker.func) and (_is_fusible(reader.func) or _name(reader) in _JOINED)

    def first_barrier(self, i: int, is_forward: bool) -> tuple[int, int]:
        """The time of the first direct or indirect reader that runs in another kernel than its operand; and that of the last
        direct reader, which limits the search."""
        begun = self.timeline.backward_start
        direct = [(call, made) for call, made in self.readers[i] if (call.time < begun) == is_forward]
        last = max((call.time for call, _ in direct), default=-1)
        waiting = [(call.time, k, call, made, True) for k, (call, made) in enumerate(direct)]
        heapq.heapify(waiting)
        seen, number = {call.time for call, _ in direct}, len(direct)
        while waiting:
            time, _, _, made, joined = heapq.heappop(waiting)
            if not joined:
                return time, last
            for k in made:
                for call, further in self.readers[k]:
                    if call.time <= last and call.time not in seen:
                        seen.add(call.time)
                        number += 1
                        heapq.heappush(waiting, (call.time, number, call, further, self.fuses(k, call)))
        return last, last

    def _find_rebuilt(self) -> set[int]:
        """Results of checkpointed regions that no other such region reads: the partitioner saves none of them, and computes them
        again with their regions when the backward pass first reads them."""
        found = set()
        begun = self.timeline.backward_start
        for i, maker in enumerate(self.makers):
            if maker is None or maker.checkpoint == 0 or maker.region == 0 or maker.time >= begun:
                continue
            outside = [call.checkpoint for call, _ in self.readers[i] if call.time < begun and call.checkpoint != maker.checkpoint]
            if outside and not any(outside) and not _is_held(self.timeline, self.tensors[i]):
                found.add(i)
        return found

    def _find_fused(self) -> list[bool]:
        """Allocations that exist inside of kernels alone: all readers are in the maker's kernel."""
        dropped = []
        begun = self.timeline.backward_start
        for i, a in enumerate(self.tensors):
            forward = self.is_forward(i)
            readers = [call for call, _ in self.readers[i] if (call.time < begun) == forward]
            is_held = a.kind == Kind.GRADIENT or _is_held(self.timeline, a)
            alone = self.is_output_fusible(i) and not is_held and bool(readers)
            alone = alone and all(self.fuses(i, call) for call in readers)
            if alone:
                barrier, last = self.first_barrier(i, forward)
                alone = last <= barrier
            dropped.append(alone)
        return dropped


# ---- The partition ---------------------------------------------------------------------------------------------------


def saved(step: Step) -> tuple[set[int], dict[int, set[int]]]:
    """The forward tensors that the backward pass reads from memory, and for each other one that it needs, the saved ones from
    which its kernels compute it again."""
    timeline, tensors = step.timeline, step.tensors
    forward = [i for i in step.order if step.is_forward(i)]
    uses: dict[int, list[Call]] = {}
    for i in forward:
        late = [call for call, _ in step.readers[i] if call.time >= timeline.backward_start]
        if late and timeline.is_saved(tensors[i]):
            uses[i] = late
    banned = _banned(step, forward, uses)
    kept = {i for i in uses if i in banned}
    wanted = [i for i in uses if i not in banned]
    distance = _distances(step, forward, uses)
    network = _Flow()
    reached, waiting = set(wanted), collections.deque(wanted)
    while waiting:
        i = waiting.popleft()
        network.add((i, 0), (i, 1), 0.0 if i in step.rebuilt else _weight(step, i, distance[i]))
        if i in uses and i not in banned:
            network.add((i, 1), _SINK, NEVER)
        if i in banned or i in step.rebuilt or step.makers[i] is None or _is_held(timeline, tensors[i]):
            network.add(_SOURCE, (i, 0), NEVER)
            continue
        for j in step.operands[i]:
            if j in kept or not step.is_forward(j):
                continue
            network.add((j, 1), (i, 0), NEVER)
            if step.region(j) != step.region(i):
                network.add(_SOURCE, (j, 0), NEVER)
            if j not in reached:
                reached.add(j)
                waiting.append(j)
    kept |= network.cut(reached)
    return kept - step.rebuilt, _origins(step, wanted, kept)


def _weight(step: Step, i: int, distance: int) -> float:
    readers = [call for call, _ in step.readers[i] if call.time < step.timeline.backward_start]
    exists = not step.is_output_fusible(i) or any(not step.fuses(i, call) for call in readers)
    exists = exists or _is_held(step.timeline, step.tensors[i])
    return step.tensors[i].bytes * _DISTANCE ** min(distance, _MOST_DISTANT) * (1.0 if exists else _UNMATERIALISED)


def _is_held(timeline: Timeline, a: Allocation) -> bool:
    """Whether the caller or autograd keeps it, although no backward operator reads it."""
    return a.end == NEVER or (timeline.is_saved(a) and a.first_backward_use == NEVER)


def _banned(step: Step, forward: Sequence[int], uses: dict[int, list[Call]]) -> set[int]:
    """Allocations that are never computed again."""
    banned = set()
    for i in forward:
        maker = step.makers[i]
        if maker is None or not step.is_output_fusible(i) or _name(maker) in _RANDOM or _name(maker) in _JOINED:
            banned.add(i)
            continue
        operands = sum(a.bytes for a in maker.read if a is not step.tensors[i])
        if step.tensors[i].bytes * _SMALLER < operands or (not step.is_first[i] and _name(maker) in _NORMS):
            banned.add(i)
        elif any(not step.fuses(i, call) for call in uses.get(i, ())):
            banned.add(i)
    for i in forward:
        readers = [(call, made) for call, made in step.readers[i] if call.time < step.timeline.backward_start]
        if len(readers) < 2:
            continue
        barrier, _ = step.first_barrier(i, True)
        for call, made in readers:
            if call.time > barrier and step.fuses(i, call):
                banned.update(made)
    return banned


def _distances(step: Step, forward: Sequence[int], uses: dict[int, list[Call]]) -> dict[int, int]:
    found: dict[int, int] = {}
    for i in reversed(forward):
        behind = [found.get(k, _MOST_DISTANT) for call, made in step.readers[i] for k in made if step.is_forward(k)]
        found[i] = 1 if i in uses else min(behind, default=_MOST_DISTANT) + 1
    return found


def _origins(step: Step, wanted: Iterable[int], kept: set[int]) -> dict[int, set[int]]:
    found = {}
    for i in wanted:
        if i in kept:
            continue
        origins, seen, left = set(), {i}, [i]
        while left:
            for j in step.operands[left.pop()]:
                if j in kept or step.makers[j] is None:
                    origins.add(j)
                elif j not in seen:
                    seen.add(j)
                    left.append(j)
        found[i] = origins
    return found


_SOURCE, _SINK = (-1, 0), (-2, 0)


class _Flow:
    """A flow network, and its minimum cut nearest to the sink."""

    def __init__(self) -> None:
        self.left: dict[Any, dict[Any, float]] = collections.defaultdict(dict)

    def add(self, first: Any, second: Any, capacity: float) -> None:
        self.left[first][second] = self.left[first].get(second, 0.0) + capacity
        self.left[second].setdefault(first, 0.0)

    def cut(self, nodes: Iterable[int]) -> set[int]:
        while (path := self._path()) is not None:
            flow = min(self.left[a][b] for a, b in path)
            for a, b in path:
                self.left[a][b] -= flow
                self.left[b][a] += flow
        behind, waiting = {_SINK}, [_SINK]
        while waiting:
            b = waiting.pop()
            for a in self.left[b]:
                if self.left[a][b] > 0 and a not in behind:
                    behind.add(a)
                    waiting.append(a)
        return {i for i in nodes if (i, 1) in behind and (i, 0) not in behind}

    def _path(self) -> list[tuple[Any, Any]] | None:
        before: dict[Any, Any] = {_SOURCE: None}
        waiting = collections.deque([_SOURCE])
        while waiting:
            a = waiting.popleft()
            for b, capacity in self.left[a].items():
                if capacity > 0 and b not in before:
                    before[b] = a
                    if b == _SINK:
                        path = []
                        while before[b] is not None:
                            path.append((before[b], b))
                            b = before[b]
                        return path
                    waiting.append(b)
        return None


# ---- Intervals -------------------------------------------------------------------------------------------------------


def with_checkpoints(timeline: Timeline, regions: Sequence[Region]) -> Timeline:
    """The timeline of the same step with a checkpoint around each region. Operators run again where the backward pass
    first reads one of its tensors, and the backward pass reads the new results instead."""
    begin = recomputations(timeline, regions)
    allocations = timeline.allocations
    starts, shifts, base = [-1], [0], {}
    for time, r in sorted((time, r) for r, time in enumerate(begin) if time < NEVER):
        base[r] = time + shifts[-1]
        starts.append(time)
        shifts.append(shifts[-1] + regions[r].last - regions[r].first + 1)
    at = [r if r in base else -1 for r in regions_by_time(regions, timeline.backward_start)]

    def moved(time: int) -> int:
        return time + shifts[bisect.bisect_right(starts, time) - 1] if time < NEVER else NEVER

    region_of = {id(a): at[a.start] for a in allocations if a.start < timeline.backward_start and at[a.start] >= 0}
    results = {id(allocations[i]) for r in base for i in regions[r].results}
    first = {
        id(a): dataclasses.replace(a, start=moved(a.start), end=moved(a.end), first_backward_use=moved(a.first_backward_use))
        for a in allocations
    }
    second: dict[int, Allocation] = {}
    for a in allocations:
        if (region := region_of.get(id(a), -1)) >= 0:
            own, offset = first[id(a)], base[region] - regions[region].first
            last = regions[region].last + offset
            end = own.end if last < own.end < NEVER else min(a.end + offset, last)
            second[id(a)] = dataclasses.replace(own, start=a.start + offset, end=end, first_backward_use=NEVER)
            if a.end < NEVER:
                own.end, own.first_backward_use = min(a.end, a.last_forward_use), NEVER

    def read(a: Allocation, time: int) -> Allocation:
        """The first run's tensor, or the second run's. Tensors that the timeline leaves out stay as they are."""
        if id(a) not in first:
            return a
        region = region_of.get(id(a), -1)
        if region >= 0 and time >= base[region] + (regions[region].last - regions[region].first if id(a) in results else 0):
            return second[id(a)]
        own = first[id(a)]
        if time >= timeline.backward_start > own.start:
            own.end, own.first_backward_use = max(own.end, time), min(own.first_backward_use, time)
        return own

    calls = []
    for call in timeline.calls:
        time = moved(call.time)
        calls.append(dataclasses.replace(call, time=time, read=[read(a, time) for a in call.read], made=[read(a, time) for a in call.made]))
        region = at[call.time] if call.time < timeline.backward_start else -1
        if region >= 0:
            calls[-1].checkpoint = region + 1
            time = base[region] + call.time - regions[region].first
            sides = [[second[id(a)] if region_of.get(id(a)) == region else read(a, time) for a in side] for side in (call.read, call.made)]
            calls.append(dataclasses.replace(calls[-1], time=time, read=sides[0], made=sides[1]))
    made = copy.copy(timeline)
    made.allocations = [*first.values(), *second.values()]
    made.calls = sorted(calls, key=lambda call: call.time)
    made.clock = moved(timeline.clock - 1) + 1
    return made


def as_compiled(timeline: Timeline) -> list[Interval]:
    """The intervals of the step with its compiled modules compiled."""
    return [interval for _, interval in with_tensors(Step(timeline))]


def with_tensors(step: Step) -> list[tuple[int, Interval]]:
    """The intervals, each with its tensor in the step."""
    timeline = step.timeline
    kept, origins = saved(step)
    absent = [is_fused and i not in kept for i, is_fused in enumerate(step.dropped)]
    released = [a.end for a in step.tensors]  # when the backward pass has read it, or what is computed from it
    for i, sources in origins.items():
        for j in sources:
            released[j] = max(released[j], step.tensors[i].end)
    ends = [0] * len(step.tensors)
    for i in reversed(step.order):
        a, forward = step.tensors[i], step.is_forward(i)
        as_written = step.region(i) == 0 or _is_held(timeline, a)
        ends[i] = released[i] if as_written or i in kept else a.start
        for call, made in step.readers[i]:
            if (call.time < timeline.backward_start) == forward:
                ends[i] = max(ends[i], call.time, *(ends[k] for k in made if absent[k]))
    for i in step.rebuilt:
        absent[i] = step.dropped[i]
    written = _written_over(step, ends, absent)
    intervals = []
    for i, a in enumerate(step.tensors):
        if a.bytes > 0 and not absent[i]:
            end = min(ends[i] - (i in written), timeline.clock - 1)
            intervals.append((i, Interval(a.start, max(end, a.start), a.bytes, a.kind)))
    return _rebuild(step, intervals, origins, released, absent)


def _rebuild(
    step: Step, intervals: list[tuple[int, Interval]], origins: dict[int, set[int]], released: Sequence[int], absent: Sequence[bool]
) -> list[tuple[int, Interval]]:
    """Where a checkpointed region runs again for its result, its tensors exist from then on."""
    first: dict[int, int] = {}
    for i in step.rebuilt:
        late = [call.time for k in (i, *(k for k, found in origins.items() if i in found)) for call, _ in step.readers[k]]
        begin = min((time for time in late if time >= step.timeline.backward_start), default=NEVER)
        maker = step.makers[i]
        if begin == NEVER or maker is None:
            continue
        first[maker.checkpoint] = min(first.get(maker.checkpoint, NEVER), begin)
        if not absent[i]:
            a = step.tensors[i]
            intervals.append((i, Interval(begin, min(max(released[i], begin), step.timeline.clock - 1), a.bytes, a.kind)))
    moved = []
    for i, interval in intervals:
        call = step.makers[i]
        begin = first.get(call.checkpoint, NEVER) if call is not None and call.time >= step.timeline.backward_start else NEVER
        moved.append((i, dataclasses.replace(interval, start=min(interval.start, begin))))
    return moved


def _written_over(step: Step, ends: Sequence[int], absent: Sequence[bool]) -> set[int]:
    """Allocations over which the last reader's kernel writes a result of the same size."""
    written: set[int] = set()
    for i, a in enumerate(step.tensors):
        if not step.is_output_fusible(i) or absent[i]:
            continue
        left, seen = list(step.operands[i]), set()
        while left:
            j = left.pop()
            if j in seen:
                continue
            seen.add(j)
            b = step.tensors[j]
            if absent[j]:
                left += step.operands[j]
            elif j not in written and ends[j] == a.start and b.bytes == a.bytes and b.start < a.start and step.makers[j] is not None:
                written.add(j)
                break
    return written
