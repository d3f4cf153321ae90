"""Facts about a module as a program: types, frozen parameters, checkpointing, attention kernels, and memory."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any, Mapping, Sequence

import torch
from torch import nn

from mdot.options import CHOICES
from mdot.program import Program as JobProgram
from mdot.program import RecordedMemory, WorkCheck
from mdot.trace.autocast import HALVES
from mdot.trace.batch import other_than
from mdot.trace.compiled import as_compiled, with_checkpoints
from mdot.trace.fixed_batch import FixedBatch
from mdot.trace.graph import Graph
from mdot.trace.known_calls import DataDependent
from mdot.trace.moments import Interval, Region, as_run, by_block, moments, selectively
from mdot.trace.selections import Selection
from mdot.trace.timeline import Allocation, Kind, Timeline, storages
from mdot.trace.training_run import SAMPLES, ModuleCall, TrainingRun, run


OTHER_TYPES: dict[str, dict[str, Any]] = {"amp-fp16": {"autocast": True, "counts_work": False}, "bf16": {"dtype": torch.bfloat16, "counts_work": False}}
"""Options of a training run for the types that a program in fp32 may be given."""


VARIABLE = (Kind.SAMPLES, Kind.STEP, Kind.LOGITS)
"""Kinds that another batch can change."""

PAIRS = 0.25
"""Share of the deviation from proportion to the batch that squares of the batch leave at most, if sizes are of pairs.
Triangles leave nothing, and pairs of parts of a batch, which have whole samples, up to a fifth. Parts alone leave half."""


@dataclasses.dataclass
class Program:
    precision: str
    """pytorch (fp32 parameters), amp-bf16 or amp-fp16 (autocast inside the module), bf16 (parameters of 16 bits)."""
    trained_bytes: int
    frozen_bytes: int
    buffer_bytes: int
    runs: dict[str, TrainingRun]
    """By precision: fp32, amp-fp16 (autocast to either type), bf16."""
    notes: list[str]
    framework: int = 0
    """The number of the choice, from the modules' packages."""
    selects: bool = False
    """Whether a step on tensors without data failed because the module selects by data."""
    at_batch: TrainingRun | None = None
    """The program's own step at the batch of the examples."""
    times: dict[tuple[str, str], list[int]] = dataclasses.field(default_factory=dict)
    """Times of the recorded moments, by precision and recomputation."""

    @property
    def key(self) -> str:
        """The precision of the program's own run."""
        return {"bf16": "bf16", "pytorch": "fp32"}.get(self.precision, "amp-fp16")

    @property
    def recomputed(self) -> list[str]:
        """Modules whose forward pass runs again in the backward pass."""
        return next(iter(self.runs.values())).recomputed if self.runs else []


def record(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    batch: int,
    sizes: FixedBatch | None = None,
    selections: list[Selection] | None = None,
) -> Program:
    """Runs training steps of the module on fake tensors, in the program's types and in a configuration's possible
    types. `sizes` and `selections` are those of `run`. The module's state is restored afterwards."""
    trained, frozen, halves = _weights(model)
    buffers = {id(b): sum(storage.nbytes() for storage in storages(b)) if b.is_sparse else b.nbytes for b in model.buffers()}
    is_half = 2 * halves > trained + frozen
    program = Program("bf16" if is_half else "pytorch", trained, frozen, sum(buffers.values()), {}, [], _framework_of(model))
    first = _attempt(model, args, kwargs, batch, sizes=sizes, selections=selections)
    second = _attempt(model, args, kwargs, batch, sizes=sizes, selections=selections, autocast=True) if is_half else first
    if isinstance(first, TrainingRun) and not is_half and first.timeline.autocast_dtype is not None:
        program.precision = "amp-fp16" if first.timeline.autocast_dtype == torch.float16 else "amp-bf16"
    key = program.key
    if is_half and isinstance(second, TrainingRun):  # a module that mixes types, for example for QLoRA, needs autocast
        program.runs["amp-fp16"] = second
        first = second if isinstance(first, Exception) else first
    if isinstance(first, Exception):
        program.selects = isinstance(first, DataDependent)
        program.notes.append(
            "its memory is estimated from the operators, because a training step on tensors without data failed: "
            f"{type(first).__name__}: {next(iter(str(first).splitlines()), '')[:200]}"
        )
        return program
    program.runs[key] = first
    if key == "fp32":
        for other, options in OTHER_TYPES.items():
            made = _attempt(model, args, kwargs, batch, like=first, **options)
            if isinstance(made, TrainingRun):  # otherwise, this precision follows from the analytic model's ratio
                program.runs[other] = made
    return program


def _attempt(*args: Any, **options: Any) -> TrainingRun | Exception:
    """A run, or the exception, because a module can raise any."""
    try:
        return run(*args, **options)
    except Exception as reason:
        return reason


def find_kinds(program: Program, model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], batch: int) -> None:
    """Finds how each allocation grows with the batch, from a second step, at the batch of the examples. If that one has
    other allocations, because the program takes another way, it becomes the record. The other precisions keep the kinds
    that follow from divisibility if no kind changes."""
    own, moved = program.key, False
    for precision, one in sorted(program.runs.items(), key=lambda item: item[0] != own):
        if precision == own:
            options = {"autocast": True} if one is program.runs.get("amp-fp16") and precision == "bf16" else {}
        else:
            options = OTHER_TYPES[precision]
        step = functools.partial(_attempt, model, args, kwargs, batch, like=one, **options)
        second = one if one.timeline.samples == batch else step(samples=batch)
        if isinstance(second, TrainingRun):
            program.at_batch = second if precision == own else program.at_batch
            if moved or (precision == own and len(second.timeline.allocations) != len(one.timeline.allocations)):
                moved, one = True, second
                program.runs[precision] = one
        if second is one and not moved and one.timeline.samples != SAMPLES and one.selections is None:
            return  # other batches failed
        if second is one or isinstance(second, Exception):
            second = step(samples=other_than(one.timeline.samples))
        is_same = True
        if isinstance(second, TrainingRun):
            first, twin = one.timeline, second.timeline
            sizes = zip(first.allocations, twin.allocations)
            pairs = any(_may_be_pairs(a, b, first.samples, twin.samples) for a, b in sizes)
            third = step(samples=other_than(2 * max(first.samples, twin.samples))) if pairs else None
            is_same = not _compare(first, twin, third.timeline if isinstance(third, TrainingRun) else None)
        if is_same and not moved:
            return


def _may_be_pairs(a: Allocation, b: Allocation, batch: int, other: int) -> bool:
    """Whether the size grows faster than the batch, and not with its square alone. Sizes in proportion to a part of the
    batch can seem so, too, because parts have whole samples."""
    if a.kind not in VARIABLE or b.bytes * batch * batch == a.bytes * other * other:
        return False
    return (b.bytes * batch - a.bytes * other) * (other - batch) > 0


def _of_squares(sizes: Sequence[tuple[int, int]]) -> int:
    """Bytes at the first of three batches that grow with its square, where the first and another one tell the size at the
    third much better with squares than in proportion to the batch. Otherwise 0."""
    (batch, own), *others = sizes
    for (other, size), (third, wanted) in itertools.permutations(others[::-1], 2):
        squares = (own * other - size * batch) * batch / (other * (batch - other))
        ratio = third / batch
        if abs((squares * ratio + own - squares) * ratio - wanted) < PAIRS * abs(own * ratio - wanted):
            return round(squares)
    return 0


def _compare(one: Timeline, twin: Timeline, third: Timeline | None) -> bool:
    """Sets the kinds of allocations from those of a step at another batch. A third step tells sizes of pairs, for example
    of a triangle, which have squares of the batch and a part in proportion to it. Returns whether any kind changed."""
    if len(twin.allocations) != len(one.allocations) or twin.samples == one.samples:
        return False
    changed = False
    batch, other, count = one.samples, twin.samples, len(twin.allocations)
    for index, (a, b) in enumerate(list(zip(one.allocations, twin.allocations))):
        if a.kind not in VARIABLE or a.bytes == 0:
            continue
        kind: Kind = Kind.SAMPLES if a.kind == Kind.STEP else a.kind
        constant = a.bytes - (a.bytes - b.bytes) * batch // (batch - other)
        if a.bytes == b.bytes:
            kind = Kind.STEP
        elif b.bytes * batch * batch == a.bytes * other * other:
            kind = Kind.SQUARES
        elif _may_be_pairs(a, b, batch, other):
            sizes = [(batch, a.bytes), (other, b.bytes)]
            if third is not None and len(third.allocations) == count:
                sizes.append((third.samples, third.allocations[index].bytes))
            squares = _of_squares(sizes)
            if squares != 0:
                kind = Kind.SQUARES
                one.allocations.append(dataclasses.replace(a, bytes=a.bytes - squares))
                a.bytes = squares
        elif 0 < constant < a.bytes:  # for example a queue of earlier samples behind those of the batch
            one.allocations.append(dataclasses.replace(a, bytes=constant, kind=Kind.STEP))
            a.bytes -= constant
            changed = True
        changed = changed or kind != a.kind
        a.kind = kind
    return changed


def _weights(model: nn.Module) -> tuple[int, int, int]:
    """Bytes in trained parameters, in frozen ones, and in half precision among both."""
    trained = frozen = halves = 0
    for parameter in model.parameters():
        size = parameter.numel() * parameter.element_size()
        if parameter.requires_grad:
            trained += size
        else:
            frozen += size
        if parameter.dtype in HALVES:
            halves += size
    return trained, frozen, halves


def records(
    program: Program, blocks: Sequence[str], times: Mapping[tuple[str, str], Sequence[int]] = {}
) -> tuple[RecordedMemory, ...]:
    """The memory for every precision and choice of recomputation. `blocks` are the recomputable modules. `times` are the
    moments of a record, by precision and recomputation."""
    made = []
    for precision, one in program.runs.items():
        timeline = one.timeline

        def add(recompute: str, intervals: list[Interval], compiled: bool = False, length: int = timeline.clock) -> None:
            key = precision, f"compiled {recompute}" if compiled else recompute
            found = moments(intervals, length, timeline.samples, times.get(key, ()))
            program.times[key] = list(found)
            made.append(RecordedMemory(precision, recompute, tuple(found.values()), compiled))

        add("nothing", as_run(timeline))
        add("selective", as_compiled(timeline), True)
        if one.recomputed:  # the program chose
            continue
        regions = _regions(one, blocks)
        if regions:
            add("blocks", by_block(timeline, regions))
            repeated = with_checkpoints(timeline, regions)
            add("blocks", as_compiled(repeated), True, repeated.clock)
        add("selective", selectively(timeline))
    return tuple(made)


def common_times(programs: Sequence[Program]) -> dict[tuple[str, str], list[int]]:
    """The moments of the same program at several lengths, for each record: a moment of one length grows with the length
    only if the others have it as well. Empty if the steps have other operators."""
    if len({(key, run.timeline.clock) for one in programs for key, run in one.runs.items()}) > len(programs[0].runs):
        return {}
    found: dict[tuple[str, str], list[int]] = {}
    for key in programs[0].times:
        ranked = itertools.zip_longest(*(one.times.get(key, []) for one in programs))
        found[key] = list(dict.fromkeys(time for row in ranked for time in row if time is not None))
    return found


def _regions(one: TrainingRun, blocks: Sequence[str]) -> list[Region]:
    """The calls of the blocks in the forward pass. Empty if the forward pass leaves out a block."""
    wanted = set(blocks)
    calls = [call for call in one.calls if call.path in wanted]
    if not wanted or {call.path for call in calls} != wanted:
        return []
    index = {id(allocation): i for i, allocation in enumerate(one.timeline.allocations)}
    return [_region(call, index) for call in sorted(calls, key=lambda call: call.first)]


def _region(call: ModuleCall, index: Mapping[int, int]) -> Region:
    return Region(call.first, call.last, {index[i] for i in call.results if i in index})


def common_modules(modules: Sequence[tuple[int, str | None]]) -> list[str]:
    """Each block's module, from the block number and the module of every operator: the longest common path among its
    operators."""
    shared: dict[int, list[str]] = {}
    for block, module in modules:
        if block == 0 or not module:
            continue
        parts = module.split(".")
        if block not in shared:
            shared[block] = parts
            continue
        both = shared[block]
        same = next((i for i, (a, b) in enumerate(zip(both, parts)) if a != b), min(len(both), len(parts)))
        shared[block] = both[:same]
    return [".".join(parts) for _, parts in sorted(shared.items())] if all(shared.values()) else []


FRAMEWORKS = {"megatron": "megatron", "transformer_engine": "transformer-engine", "liger_kernel": "liger"}
"""Packages whose modules tell the framework, the most telling first, and its name as a choice."""


def _framework_of(model: nn.Module) -> int:
    """The number of the choice; 0 if the modules come from none of FRAMEWORKS."""
    packages = {type(module).__module__.partition(".")[0] for module in model.modules()}
    return next((CHOICES["framework"].index(name) for package, name in FRAMEWORKS.items() if package in packages), 0)


def describe(traced: Program, graph: Graph, blocks: Sequence[str], check: WorkCheck) -> JobProgram:
    """The job's record of its program. `blocks` are those of `records`."""
    attention = "flash" if graph.fused_attentions > 0 else "program"
    sizes = traced.trained_bytes, traced.frozen_bytes, traced.buffer_bytes
    recorded = records(traced, blocks)
    return JobProgram(traced.precision, attention, *sizes, graph.has_loss, recorded, traced.framework, check=check)
