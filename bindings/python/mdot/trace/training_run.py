"""Runs a module's training step on fake tensors, and records the memory timeline.

The forward pass and the backward pass run below autograd, so that the program's types, regions without gradient,
checkpointing, attention kernels and losses count. The run ends before the optimizer's update.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from typing import Any, Iterator, Mapping, Sequence
from unittest import mock

import torch
from torch import nn, overrides
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.nn.modules import module as hooks
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from mdot.trace import functions, modules
from mdot.trace.autocast import like_cuda
from mdot.trace.fixed_batch import FixedBatch
from mdot.trace.gpu_kernels import GpuKernels
from mdot.trace.known_calls import DataDependent, KnownContents, outside
from mdot.trace.losses import own_loss
from mdot.trace.meta_kernels import MetaKernels
from mdot.trace.module_state import left_alone, plain, replace_tensors, stand_in
from mdot.trace.selections import Recalled, Selection
from mdot.trace.timeline import NEVER, Timeline, TooLong, storages

SAMPLES = 23
"""The run's batch: a prime, so that it divides a tensor's size only if the tensor grows with the batch."""


@dataclasses.dataclass
class ModuleCall:
    """One module call in the forward pass: times, and the allocations in the results."""

    path: str
    first: int
    last: int
    results: set[int]
    """Ids of allocations."""


@dataclasses.dataclass
class TrainingRun:
    timeline: Timeline
    calls: list[ModuleCall]
    recomputed: list[str]
    """Modules whose forward pass ran again in the backward pass, without the modules inside them."""
    again: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """By module, how often each of its calls ran again."""
    sizes: FixedBatch | None = None
    """Replaced the batch that the module holds as a number."""
    selections: list[Selection] | None = None
    """Of a run with values, if the module selects by data."""

    def repeats(self, path: str, share: float) -> int:
        """How often the backward pass runs the module's operators again, of which products with a share of all FLOPs do. 0: no
        product. Only products can be kept."""
        count = self.timeline.work.repeats(path, share) if share > 0 else None
        return count if count is not None else max(round(self.again.get(path, 0)), 1)


def run(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    batch: int,
    *,
    like: TrainingRun | None = None,
    samples: int | None = None,
    sizes: FixedBatch | None = None,
    selections: list[Selection] | None = None,
    **options: Any,
) -> TrainingRun:
    """Runs a step, with `samples` samples or a number that mdot chooses. The options are `dtype`, for the module's
    floating-point parameters, buffers and inputs, `autocast`, which runs the forward pass in bf16 autocast, and
    `counts_work`. `sizes` tells how the operators' trace replaced a batch that the module holds as a number, and `selections` what it selected by data. `like` is an earlier run; the new one begins with its batch, sizes and known contents, because other attempts failed. Raises the
    module's exception if the module fails on fake tensors."""
    fixed = samples is not None
    if samples is None:
        samples = like.timeline.samples if like is not None else SAMPLES
    needs_contents = like is not None and like.timeline.known is not None
    if like is not None:
        selections = like.selections
    elif selections is not None:
        samples = batch  # the selections are exact there

    def attempt(count: int, sizes: FixedBatch | None = None) -> TrainingRun:
        nonlocal needs_contents
        if selections is not None:
            made = _run(count, Recalled(selections), model, args, kwargs, batch, sizes=sizes, **options)
            made.selections = selections
            return made
        if not needs_contents:
            try:
                return _run(count, None, model, args, kwargs, batch, sizes=sizes, **options)
            except DataDependent:  # it may depend on values other than the parameters
                needs_contents = True
        if sizes is None and like is None and not fixed and count != batch and _differ((args, kwargs), batch):
            count = batch * max(2, -(-SAMPLES // batch))  # as many of each length
        return _run(count, KnownContents(), model, args, kwargs, batch, sizes=sizes, **options)

    if batch < 2 or samples == batch:
        return attempt(samples)
    sizes = like.sizes if like is not None else sizes
    ways = [None, FixedBatch(batch, samples), FixedBatch(batch, samples, everywhere=True)]
    if sizes is not None:
        ways = ways[2 if sizes.everywhere else 1 :]
    failed: Exception | None = None
    for way in ways:
        try:
            return attempt(samples, way)
        except TooLong:
            raise
        except DataDependent:
            if selections is None:
                raise
        except Exception as reason:  # for example a shape with the batch as a number
            failed = failed or reason
    if fixed and failed is not None:
        raise failed
    return attempt(batch)  # it distinguishes less


def _differ(inputs: Any, batch: int) -> bool:
    """Whether samples have different integers, for example lengths, from which sizes may follow."""
    for leaf in pytree.tree_leaves(inputs):
        if isinstance(leaf, torch.Tensor) and not isinstance(leaf, FakeTensor) and not leaf.is_floating_point() and leaf.device.type == "cpu":
            if leaf.ndim > 0 and len(leaf) == batch and not bool((leaf == leaf[:1]).all()):
                return True
    return False


def _run(
    samples: int,
    known: KnownContents | None,
    model: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    batch: int,
    *,
    dtype: torch.dtype | None = None,
    autocast: bool = False,
    counts_work: bool = True,
    sizes: FixedBatch | None = None,
) -> TrainingRun:
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    timeline = Timeline(samples, known, MetaKernels(mode), counts_work)
    with torch.random.fork_rng(devices=[]), left_alone(model), like_cuda(), contextlib.ExitStack() as stack:
        stack.enter_context(mode)
        modules.train(model)
        parameters = _show_parameters(model, mode, dtype, timeline)
        inputs, named = _make_inputs((list(args), dict(kwargs)), batch, timeline, mode, dtype)
        timeline.add_inputs(leaf for leaf in pytree.tree_leaves((inputs, named)) if isinstance(leaf, torch.Tensor))
        calls, recomputed, again = stack.enter_context(_calls(model, timeline))
        changes: list[TorchFunctionMode] = [GpuKernels(), *([sizes] if sizes is not None else [])]
        stack.enter_context(changes[0])
        if counts_work:
            stack.enter_context(functions.counted(timeline.work))
        stack.enter_context(timeline.reentrant_checkpoints())
        stack.enter_context(timeline)
        for change in changes[1:]:
            stack.enter_context(change)
        stack.enter_context(_in_backward(changes))
        with torch.enable_grad():
            with torch.autocast("cpu", dtype=torch.bfloat16) if autocast else contextlib.nullcontext():
                scalar: Any = loss_of(model(*inputs, **named))
            timeline.begin_backward()
            if scalar is not None:
                scalar.backward()
        timeline.finish(parameters)
    timeline.close()
    times = Counter(call.path for call in calls)
    return TrainingRun(timeline, calls, list(recomputed), {path: n / max(times[path], 1) for path, n in again.items()}, sizes)


@contextlib.contextmanager
def _in_backward(changes: Sequence[TorchFunctionMode]) -> Iterator[None]:
    """Functions are changed in the backward pass, too, because it may run the forward function of checkpointed regions
    again. PyTorch takes the modes off the stack, one for each of its own functions above the engine."""
    engine = torch.autograd._engine_run_backward  # type: ignore[attr-defined]

    def run(*args: Any, **kwargs: Any) -> Any:
        active = overrides._get_current_function_mode_stack()  # type: ignore[no-untyped-call]
        with contextlib.ExitStack() as stack:
            for change in changes:
                if not any(change is one for one in active):
                    stack.enter_context(change)
            return engine(*args, **kwargs)

    with mock.patch.object(torch.autograd, "_engine_run_backward", run):
        yield


def loss_of(out: Any) -> torch.Tensor | None:
    """The scalar at the start of the gradients: the module's loss, or else the sum of the results. Results from which a
    scalar among them was computed, for example logits beside a loss, are left out."""
    own = own_loss(out)
    if own is not None and own.requires_grad:
        return own if own.ndim == 0 else own.sum()
    leaves = [t for t in pytree.tree_leaves(plain(out)) if isinstance(t, torch.Tensor) and t.requires_grad]
    scalars = [t for t in leaves if t.ndim == 0]
    behind = _nodes_behind(scalars)
    total: torch.Tensor | None = None
    for leaf in [*scalars, *[t for t in leaves if t.ndim > 0 and t.grad_fn not in behind]]:
        term = leaf if leaf.ndim == 0 else leaf.sum()
        term = term.real if term.is_complex() else term
        total = term if total is None else total + term
    return total


def _nodes_behind(tensors: Sequence[torch.Tensor]) -> set[Any]:
    """The autograd nodes from which the tensors were computed."""
    found: set[Any] = set()
    left: list[Any] = [tensor.grad_fn for tensor in tensors]
    while left:
        node = left.pop()
        if node is not None and node not in found:
            found.add(node)
            left += [following for following, _ in node.next_functions]
    return found


# ---- The module's tensors --------------------------------------------------------------------------------------------


def _show_parameters(
    model: nn.Module, mode: FakeTensorMode, dtype: torch.dtype | None, timeline: Timeline
) -> list[nn.Parameter]:
    """Replaces parameters and buffers by fake tensors, and returns the parameters."""
    parameters: list[nn.Parameter] = []

    def show(tensor: torch.Tensor, _: str, is_parameter: bool) -> torch.Tensor:
        wanted = dtype if dtype is not None and tensor.is_floating_point() else tensor.dtype
        made: torch.Tensor = stand_in(tensor, mode, dtype=wanted)
        if timeline.known is not None and not is_parameter and tensor.device.type == "cpu":
            timeline.known.add(made, tensor.to(wanted))
        if is_parameter:
            made = nn.Parameter(made, requires_grad=tensor.requires_grad)
            for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
                made.register_hook(_tried(hook))  # type: ignore[no-untyped-call]
            parameters.append(made)
        timeline.ignore([made])
        return made

    replace_tensors(model, show)
    return parameters


def _tried(hook: Any) -> Any:
    """A parameter's gradient hook, which has no effect if it reads values, for example to log a norm."""

    def run(gradient: torch.Tensor) -> Any:
        try:
            return hook(gradient)
        except Exception:  # a hook can raise any exception
            return None

    return run


def _make_inputs(inputs: Any, batch: int, timeline: Timeline, mode: FakeTensorMode, dtype: torch.dtype | None) -> Any:
    """Fake inputs, with the timeline's number of samples instead of `batch`."""

    def make(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        wanted = dtype if dtype is not None and leaf.is_floating_point() else leaf.dtype
        axis = next((i for i in (0, 1) if i < leaf.ndim and leaf.shape[i] == batch), None)
        shape = [timeline.samples if i == axis else n for i, n in enumerate(leaf.shape)]
        made: torch.Tensor = stand_in(leaf, mode, dtype=wanted, shape=shape).requires_grad_(leaf.requires_grad)
        if timeline.known is not None and leaf.device.type == "cpu" and not isinstance(leaf, FakeTensor):
            with outside():
                content = leaf.to(wanted)
                if axis is not None:
                    content = content.index_select(axis, torch.arange(timeline.samples) % batch)
                timeline.known.add(made, content)
        return made

    return pytree.tree_map(make, inputs)


# ---- Calls of modules ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _calls(model: nn.Module, timeline: Timeline) -> Iterator[tuple[list[ModuleCall], dict[str, None], Counter[str]]]:
    path: dict[nn.Module, str] = {}
    for name, module in model.named_modules():
        path.setdefault(module, name)
    calls: list[ModuleCall] = []
    recomputed: dict[str, None] = {}
    again: Counter[str] = Counter()
    stack: list[ModuleCall] = []

    compiled = {id(module): number for number, module in enumerate(modules.compiled(model), 1)}

    def enter(module: nn.Module, _: Any) -> None:
        if id(module) in compiled:
            timeline.enter_region(compiled[id(module)])
        stack.append(ModuleCall(path.get(module, ""), timeline.clock, timeline.clock, set()))
        timeline.work.enter(stack[-1].path)

    def leave(module: nn.Module, _: Any, out: Any) -> None:
        if not stack:
            return
        call = stack.pop()
        if id(module) in compiled:
            timeline.enter_region(0)
        timeline.work.enter(stack[-1].path if stack else "")
        if timeline.backward_start != NEVER:
            again[call.path] += 1
            if not stack and call.path:
                recomputed.setdefault(call.path)
            return
        call.last = max(timeline.clock - 1, call.first)
        for leaf in pytree.tree_leaves(plain(out)):
            if isinstance(leaf, torch.Tensor):
                call.results.update(id(timeline.allocation(storage)) for storage in storages(leaf))
        calls.append(call)

    before = hooks.register_module_forward_pre_hook(enter)
    behind = hooks.register_module_forward_hook(leave, always_call=True)
    try:
        yield calls, recomputed, again
    finally:
        before.remove()
        behind.remove()
