"""Runs a module once and records the operators. `trace` calls one function for each stage."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import threading
import warnings
from typing import Any, Callable, Iterator, Mapping, Sequence

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.nn.modules import module as hooks
from torch.utils import _pytree as pytree

from mdot.library.errors import InvalidArgumentError, UnsupportedError
from mdot.trace import batch as batches
from mdot.trace import experts, failures, functions, gradients, losses, modules, replacements
from mdot.trace.autocast import like_cuda
from mdot.trace.fixed_batch import FixedBatch
from mdot.trace.graph import FLOATS, Graph
from mdot.trace.inner_gradients import Unrolled
from mdot.trace.known_calls import DataDependent
from mdot.trace.module_state import left_alone, plain, replace_tensors, stand_in
from mdot.trace.operators.call import DTYPES, shape_of
from mdot.trace.selections import noted_lists
from mdot.trace.traced_program import Program, find_kinds, record
from mdot.trace.call_recorder import Recorder
from mdot.trace.work import Totals

MOST_REAL_BYTES = 8 << 30
"""Largest parameter size to fill with random values. This happens for modules on the meta device with data-dependent
operators."""

_lock = threading.RLock()


@dataclasses.dataclass
class Traced:
    graph: Graph
    batch: int
    unused: list[str]
    """Parameters that the run left unread."""
    notes: list[str]
    work: Totals
    """Dispatched FLOPs of products by module, at the batch: forward, backward (empty if it was not run)."""
    program: Program | None
    """Types, checkpointing and memory of a training step; None if the operators depend on computed values."""

    other: tuple[Graph, int] | None = None
    """The operators at another batch, and that batch."""

    far: tuple[Graph, int] | None = None
    """The operators at a much larger batch, and that batch; None if the sizes at `other` decide."""

    def read_elements(self) -> int:
        """Elements in the parameters read by the run. Integers are left out, because several packed weights may share
        one, as in QLoRA. Their bytes are part of the program."""
        read = (value for value in self.graph.parameters if value.dtype in FLOATS and value.name not in self.unused)
        return sum(value.count for value in read)


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """A trace replaces PyTorch functions in the whole process, and the module's tensors."""
    with _lock:
        yield


@_one_at_a_time()
def trace(
    given: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    loss: Callable[..., Any] | None = None,
    targets: Sequence[Any] = (),
    batch: int | None = None,
    name: str | None = None,
) -> Traced:
    """Records the operators in a module and loss on these inputs in training mode. The module's state is restored
    afterwards.

    The run uses fake tensors. If the module's control flow depends on computed values, it is repeated with real
    values on the CPU.
    """
    is_fake = True
    model = modules.prepare(given)
    name = name or modules.title(model)
    dimensions = batches.leading_dimensions(args, kwargs) if batch is None else ()
    given_args = args
    model, args = losses.attach(model, args, loss, targets)
    notes: list[str] = []
    with failures.explained(model, name, given_args, kwargs), replacements.active(notes):
        try:
            with batches.watch(model) as seen:
                try:
                    graph, recorder, model = _run_with_types(model, args, kwargs, name, notes)
                except replacements.ComputesGradients:
                    model = Unrolled(model)
                    graph, recorder, model = _run_with_types(model, args, kwargs, name, notes)
        except DataDependent as reason:
            _check_runs(model, reason)
            is_fake = False
            notes.append(
                "the operators depend on computed values: mdot recorded those of one run on the CPU with the module's "
                "current weights"
            )
            graph, recorder = _run(_with_data(model), args, kwargs, name, fake=False)
            if recorder.budget.replaced > 0:
                notes[-1] += "; to save time, the results of large matrix products and convolutions were random numbers"
            remedy = experts.remedy_for_loop(model)
            if remedy is not None:
                notes[-1] += f"; {remedy}"
    losses.check_gradient(loss, graph)
    graph.is_compiled = modules.is_compiled(given)
    if batch is None:
        batch, found = batches.choose(dimensions, seen)
        notes += found
    notes += [note for note in (losses.missing(graph, batch), experts.copies(graph, batch)) if note is not None]
    read = {value for node in graph.nodes for value in node.inputs if value is not None}
    unused = [value.name for value in graph.parameters if value not in read]
    other = _at_far_prime(model, args, kwargs, name, batch, graph) if is_fake else None
    sizes = far = None
    if is_fake and other is None:
        other, sizes = _at_other_batch(model, args, kwargs, name, batch, graph, notes)
        far = _at_far_batch(model, args, kwargs, name, batch, sizes, notes) if other is not None else None
    above = batches.above_square(graph, *(far or other), batch) if other is not None else None
    notes += [above] if above is not None else []
    with replacements.active([], has_backward=True), failures.quiet():
        selections = None if is_fake else recorder.selections
        program: Program | None = record(model, args, kwargs, batch, sizes, selections)
        if is_fake and program is not None and program.selects:
            program = _with_selections(model, args, kwargs, batch, name) or program
        if program is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                find_kinds(program, model, args, kwargs, batch)
    if program is not None and not is_fake and not program.runs:
        program = None
    if program is not None:
        notes += program.notes
        graph.recomputed = program.recomputed
        graph.note_types(program.precision)
        for run in list(program.runs.values())[:1]:
            graph.note_repeats(run.repeats)
    work, scale = recorder.work, 1
    if program is not None and program.runs:
        step = program.at_batch or next(iter(program.runs.values()))
        work, scale = step.timeline.work, batch
        gradients.price(graph, work, batch, [one[0] for one in (other, far) if one is not None])
    return Traced(graph, batch, unused, notes, work.at(scale), program, other, far)


def _with_selections(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], batch: int, name: str
) -> Program | None:
    """The program of a module whose loss selects by data, after a run with values; None if that fails."""
    try:
        _check_runs(model, None)
        with replacements.active([]):
            _, recorder = _run(_with_data(model), args, kwargs, name, fake=False)
        program = record(model, args, kwargs, batch, selections=recorder.selections)
    except Exception:  # a module can raise any exception
        return None
    return program if program.runs else None


def _at_far_prime(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], name: str, batch: int, first: Graph
) -> tuple[Graph, int] | None:
    """Records the operators at a large prime batch; None if their sizes leave open how work grows with the batch, or if
    the program holds the batch as a number."""
    far = batches.far_prime(batch)
    watched = FixedBatch(batch, far, observes=True) if batch > 1 else None
    try:
        made = _resized_run(model, args, kwargs, name, batch, far, watched)
    except Exception:  # a module can raise any exception
        return None
    if made is None or (watched is not None and watched.found) or batches.loses_samples(first, made, batch, far):
        return None
    return (made, far) if batches.is_regular(first, made, batch, far) else None


def _run_with_types(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], name: str, notes: list[str]
) -> tuple[Graph, Recorder, nn.Module]:
    """A run, and the module. If products mix fp32 and 16 bits, which PyTorch accepts in autocast alone, the module is the one
    inside of autocast."""
    types = {p.dtype for p in model.parameters() if p.dtype in (torch.float32, torch.float16, torch.bfloat16)}
    fault: Exception | None = None
    try:
        graph, recorder = _run(model, args, kwargs, name, fake=True)
        if not graph.mixes_types():
            return graph, recorder, model
    except DataDependent:
        raise
    except Exception as reason:  # a module can raise any
        if len(types) < 2:
            raise
        fault = reason
    wrapped = modules.InAutocast(model, torch.float16 if torch.float16 in types else torch.bfloat16)
    try:
        graph, recorder = _run(wrapped, args, kwargs, name, fake=True)
    except Exception as reason:
        raise fault or reason
    notes.append("products of the module mix fp32 and 16 bits, which needs autocast: it is traced inside of it")
    return graph, recorder, wrapped


def _at_other_batch(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    name: str,
    batch: int,
    first: Graph,
    notes: list[str],
) -> tuple[tuple[Graph, int] | None, FixedBatch | None]:
    """Records the operators at a prime batch, and how the batch that the program holds as a number was replaced. A run that
    succeeds but drops samples holds it, too."""
    other = batches.other_than(batch)
    watched = FixedBatch(batch, other, observes=True)
    reason: Exception | None = None
    plain: Graph | None = None
    try:
        plain = _resized_run(model, args, kwargs, name, batch, other, watched if batch > 1 else None)
        if plain is None:
            return None, None
    except Exception as fault:  # a module can raise any exception
        reason = fault
    drops = plain is not None and batches.loses_samples(first, plain, batch, other)
    if plain is not None and not drops and not watched.found:
        below = batches.below(batch)
        if below is not None and not batches.has_equal_steps(first, plain):  # it may pass a threshold, as cdist does at 25 rows
            with contextlib.suppress(Exception):  # a module can raise any
                made = _resized_run(model, args, kwargs, name, batch, below, None)
                if made is not None and batches.has_equal_steps(first, made):
                    return (made, below), None
        return (plain, other), None
    for everywhere in (False, True) if batch > 1 else ():
        sizes = FixedBatch(batch, other, everywhere)
        try:
            made = _resized_run(model, args, kwargs, name, batch, other, sizes)
        except Exception:
            if plain is not None and not drops:
                break  # the number is not the batch
            continue
        if made is None or batches.loses_samples(first, made, batch, other):
            continue
        if plain is not None and not drops:
            if batches.has_equal_shapes(plain, made):
                break
            if batches.has_equal_steps(first, plain) and not batches.has_equal_steps(first, made):
                called = ", ".join(watched.found)
                notes += [f"batch-fixed: it calls {called} with {batch}, which stays at other batches"] if batch > 2 else []
                break
        notes.append(f"its functions hold the batch of {batch} as a number; for other batches, mdot replaces this number")
        return (made, other), sizes
    if drops:
        notes.append(f"batch-fixed: at each batch, it works on {batch} samples; trace it at the batch that you ask about")
    if plain is not None:
        return (plain, other), None
    line = next(iter(str(reason).splitlines()), "")[:200]
    notes.append(f"all work counts per sample, because a run at batch {other} failed: {type(reason).__name__}: {line}")
    return None, None


def _at_far_batch(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    name: str,
    batch: int,
    sizes: FixedBatch | None,
    notes: list[str],
) -> tuple[Graph, int] | None:
    """Records the operators at a much larger batch, which shows whether the job is right there."""
    far = batches.far_from(batch)
    try:
        resized = FixedBatch(batch, far, sizes.everywhere) if sizes is not None else None
        made = _resized_run(model, args, kwargs, name, batch, far, resized)
    except DataDependent:  # the contents of large tensors are unknown
        return None
    except Exception as reason:  # for example a queue for fewer samples
        line = next(iter(str(reason).splitlines()), "")[:200]
        notes.append(f"batch-differs: a run at batch {far} failed: {type(reason).__name__}: {line}")
        return None
    return (made, far) if made is not None else None


def _resized_run(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    name: str,
    batch: int,
    other: int,
    sizes: FixedBatch | None,
) -> Graph | None:
    """Records the operators at another batch; None if no input has the batch as a dimension. If the run fails, multiples of
    the batch are no dimensions of samples, and it is tried with the batch alone."""
    inputs, alone = (batches.resized((list(args), dict(kwargs)), batch, other, exact=exact) for exact in (False, True))
    if inputs is None:
        return None

    def run(given: Any) -> Graph:
        with replacements.active([]), failures.quiet():
            return _run(model, given[0], given[1], name, fake=True, sizes=sizes)[0]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return run(inputs)
        except Exception:  # a module can raise any exception
            if alone is None or _shapes(alone) == _shapes(inputs):
                raise
        return run(alone)


def _shapes(tree: Any) -> list[torch.Size]:
    return [leaf.shape for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


# ---- One run ---------------------------------------------------------------------------------------------------------


def _run(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    name: str,
    fake: bool,
    sizes: FixedBatch | None = None,
) -> tuple[Graph, Recorder]:
    graph = Graph(name)
    recorder = Recorder(graph, fake)
    mode = FakeTensorMode(allow_non_fake_inputs=True) if fake else contextlib.nullcontext()
    with torch.random.fork_rng(devices=[]), torch.inference_mode(), left_alone(model), like_cuda(), mode, contextlib.ExitStack() as stack:
        modules.train(model)
        _show_parameters(model, recorder, fake)
        inputs, named = _inputs((list(args), dict(kwargs)), recorder, fake)
        stack.enter_context(_scopes(model, graph))
        if not fake:
            stack.enter_context(noted_lists(recorder.selections))
        with recorder.gradient_mode.observed(), functions.recorded(recorder), recorder, sizes or contextlib.nullcontext():
            out = model(*inputs, **named)
        _add_outputs(out, recorder)
        recorder.finish()
    if not graph.outputs:
        raise InvalidArgumentError(f"{graph.name} returned no tensor that depends on its inputs")
    return graph, recorder


def _add_outputs(out: Any, recorder: Recorder) -> None:
    """Lists the results. If the module returns a loss, gradients start there alone."""
    graph = recorder.graph
    loss = losses.own_loss(out)
    graph.has_loss = loss is not None and recorder.value(loss).kind == "data"
    for leaf in pytree.tree_leaves(plain(out)):
        if not isinstance(leaf, torch.Tensor):
            continue
        value = recorder.value(leaf)
        if not value.has_gradient or (graph.has_loss and leaf is not loss):
            value = graph.stop_gradient(value)
        if value.kind == "data" and value not in graph.outputs:
            graph.outputs.append(value)


def _show_parameters(model: nn.Module, recorder: Recorder, fake: bool) -> None:
    """Registers parameters and buffers with the recorder. In fake mode, fake tensors replace both. Otherwise, copies
    replace the buffers, because training changes them."""
    mode = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) if fake else None

    def show(tensor: torch.Tensor, name: str, is_parameter: bool) -> torch.Tensor:
        made = tensor
        if mode is not None:
            made = stand_in(tensor, mode)
            if is_parameter:
                made = nn.Parameter(made, requires_grad=tensor.requires_grad)
        elif not is_parameter:
            made = tensor.clone()
        shape, dtype = shape_of(tensor), DTYPES[tensor.dtype]
        if is_parameter:
            if tensor.is_complex():  # two numbers for each element, as in an optimizer
                shape, dtype = (*shape, 2), DTYPES[tensor.dtype.to_real()]
            value = recorder.graph.parameter(name, shape, dtype)
            if not tensor.requires_grad:
                recorder.graph.frozen.append(value.name)
        else:
            value = recorder.graph.constant(shape, dtype, name=name)
            if tensor.device.type == "cpu":
                recorder.know(made, tensor)
        recorder.bind(tensor, value)
        recorder.bind(made, value)
        return made

    replace_tensors(model, show)


def _inputs(inputs: tuple[list[Any], dict[str, Any]], recorder: Recorder, fake: bool) -> tuple[list[Any], dict[str, Any]]:
    mode = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) if fake else None

    def show(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        made: torch.Tensor = leaf
        if mode is not None:
            made = stand_in(leaf, mode)
            if leaf.device.type == "cpu" and not isinstance(leaf, FakeTensor):
                recorder.know(made, leaf)
        value = recorder.graph.input(f"input_{len(recorder.graph.inputs)}", shape_of(leaf), DTYPES[leaf.dtype])
        recorder.bind(made, recorder.graph.start_gradient(value) if leaf.requires_grad else value)
        return made

    shown: tuple[list[Any], dict[str, Any]] = pytree.tree_map(show, inputs)
    return shown


@contextlib.contextmanager
def _scopes(model: nn.Module, graph: Graph) -> Iterator[None]:
    """Keeps graph.scope at the path of the running module."""
    path: dict[nn.Module, str] = {}
    for name, module in model.named_modules():
        path.setdefault(module, name)
    stack: list[str] = []

    def enter(module: nn.Module, _: Any) -> None:
        stack.append(graph.scope)
        graph.scope = path.get(module, graph.scope)

    def leave(module: nn.Module, _: Any, __: Any) -> None:
        if stack:
            graph.scope = stack.pop()

    before = hooks.register_module_forward_pre_hook(enter)
    behind = hooks.register_module_forward_hook(leave, always_call=True)
    try:
        yield
    finally:
        before.remove()
        behind.remove()


# ---- Modules whose control flow depends on data ----------------------------------------------------------------------


def _check_runs(model: nn.Module, reason: Exception | None) -> None:
    size = sum(p.numel() * p.element_size() for p in model.parameters())
    if any(p.device.type == "meta" for p in model.parameters()) and size > MOST_REAL_BYTES:
        detail = str(reason).splitlines()[0] if str(reason or "") else type(reason).__name__
        remedy = experts.remedy_for_loop(model) or "pass a module with weights on the CPU"
        raise UnsupportedError(
            f"{type(model).__name__}: the operators depend on computed values ({detail}), but its "
            f"{size / 1e9:.1f} GB of weights are on the meta device: {remedy}"
        ) from reason


def _with_data(model: nn.Module) -> nn.Module:
    """The module itself, or a copy with random weights if it is on the meta device."""
    if not any(p.device.type == "meta" for p in model.parameters()):
        return model
    made = copy.deepcopy(model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        replace_tensors(made, lambda tensor, *_: tensor if tensor.device.type == "cpu" else _random_like(tensor))
    return made


def _random_like(tensor: torch.Tensor) -> torch.Tensor:
    content = torch.zeros(tensor.shape, dtype=tensor.dtype)
    if tensor.is_floating_point():
        content.normal_(0.0, 0.02)
    return nn.Parameter(content, requires_grad=tensor.requires_grad) if isinstance(tensor, nn.Parameter) else content
