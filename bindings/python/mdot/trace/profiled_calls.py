"""The forward pass in a profiler's trace, as calls of operators.

Two formats have the sizes of all arguments: torch.profiler's (export_chrome_trace with record_shapes=True) and Chakra's
host traces (ExecutionTraceObserver), which also number the tensors.
"""

from __future__ import annotations

import ast
import bisect
import dataclasses
import os
from pathlib import Path
from typing import Any, Iterable, Iterator, Sequence

import torch

from mdot.library.errors import MalformedError
from mdot.recording.trace_file import GPU_WORK, load, span_of

_TYPES = {
    "float": torch.float32, "double": torch.float64, "c10::half": torch.float16, "c10::bfloat16": torch.bfloat16,
    "long int": torch.int64, "long": torch.int64, "int": torch.int32, "short": torch.int16, "signed char": torch.int8,
    "unsigned char": torch.uint8, "bool": torch.bool, "c10::complex<float>": torch.complex64,
    "c10::complex<double>": torch.complex128, "c10::float8_e4m3fn": torch.float8_e4m3fn, "c10::float8_e5m2": torch.float8_e5m2,
}  # fmt: skip
_BACKWARD = "autograd::engine::evaluate_function"
_ACCUMULATE = "torch::autograd::AccumulateGrad"
_APART = ("Optimizer.", "enumerate(DataLoader)")
"""Regions of a step outside of the forward pass."""


@dataclasses.dataclass(frozen=True)
class TensorArgument:
    shape: tuple[int, ...]
    dtype: torch.dtype
    strides: tuple[int, ...] | None = None
    number: Any = None
    """The tensor's number in a Chakra trace; None if the format has none."""


@dataclasses.dataclass
class Called:
    name: str
    """With the namespace, for example aten::conv2d."""
    arguments: list[Any]
    """TensorArguments, lists of them, and texts of other values; None: the default."""
    begin: float
    end: float
    identifier: Any = None
    children: list[Called] = dataclasses.field(default_factory=list)
    has_gradient: bool = True
    results: list[Any] = dataclasses.field(default_factory=list)
    """Numbers of the resulting tensors in a Chakra trace."""
    sequence: int | None = None
    """The number that a call shares with its backward pass, or with that of the next call if it has none."""
    trains: bool = True
    """Whether the backward pass has a function of the call."""


@dataclasses.dataclass
class ForwardPass:
    calls: list[Called]
    """The outermost ones, in order."""
    trained: list[TensorArgument]
    """The gradients that the backward pass accumulated: one for each trained parameter."""
    has_backward: bool
    kernels_ms: dict[int, float]
    """GPU time of a step on one GPU by index in `calls`, forward and backward; -1: of other work."""
    notes: list[str] = dataclasses.field(default_factory=list)
    """On kernels and steps that do not count."""


def read_forward_pass(path: str | os.PathLike[str]) -> ForwardPass:
    """Raises NotFoundError for a missing file, and MalformedError for a trace without sizes and for other files."""
    trace = load(Path(path))
    if isinstance(trace, dict) and isinstance(trace.get("nodes"), list):
        return _of_chakra(path, trace["nodes"])
    events = trace.get("traceEvents") if isinstance(trace, dict) else trace
    if not isinstance(events, list):
        raise MalformedError(f"{path}: the file is no trace: it has neither traceEvents nor nodes")
    return _of_kineto(path, [event for event in events if isinstance(event, dict) and event.get("ph") == "X"])


def _refuse_without_sizes(path: Any, calls: Iterable[Called]) -> None:
    if not any(isinstance(argument, TensorArgument) for call in calls for argument in call.arguments):
        raise MalformedError(f"{path}: the trace has no sizes of tensors; record it with torch.profiler.profile(record_shapes=True)")


def _find_trained(calls: Sequence[Called], backward: Iterable[Called]) -> None:
    """A call has the numbers from its own to the next call's."""
    numbers = sorted({call.sequence for root in backward for call in _walk(root) if call.sequence is not None})
    until = numbers[-1] + 1 if numbers else 0
    for call in reversed(calls):
        if call.sequence is not None and numbers:
            call.trains = bisect.bisect_left(numbers, call.sequence) < bisect.bisect_left(numbers, until)
            until = call.sequence


# ---- torch.profiler --------------------------------------------------------------------------------------------------


def _of_kineto(path: Any, events: list[dict[str, Any]]) -> ForwardPass:
    marked = ((span_of(event), event) for event in events if event.get("cat") in ("cpu_op", "user_annotation"))
    spans = sorted(((*span, event) for span, event in marked if span is not None), key=lambda e: (e[0], -e[1]))
    steps = [(begin, end) for begin, end, event in spans if str(event.get("name")).startswith("ProfilerStep#")]
    first, last = steps[-1] if steps else (float("-inf"), float("inf"))
    roots, apart = _nest(span for span in spans if first <= span[0] < last)
    backward = [call for call in roots if call.name.startswith(_BACKWARD)]
    start = min((call.begin for call in backward), default=last)
    calls = [call for call in roots if call.begin < start and "::" in call.name and not _is_inside(call, apart)]
    _refuse_without_sizes(path, calls)
    while calls and calls[-1].name == "aten::ones_like" and backward:
        calls.pop()  # the gradient of the loss
    again = [call.begin for call in roots if call.begin > start and call not in backward and call.sequence is not None and not _is_inside(call, apart)]
    stop = min(again, default=last)  # another micro-batch, or without marks another step
    trained = [one for call in backward if call.begin < stop for one in _gradients(call)]
    _find_trained(calls, backward)
    if not steps:
        last, backward = stop, [call for call in backward if call.begin < stop]
    found = ForwardPass(calls, trained, bool(backward), *_kernels(events, calls, backward, first, last))
    if found.kernels_ms and not steps:
        part = "the first forward and backward pass, and the work up to the next," if backward else "the whole trace"
        found.notes.append(f"the trace marks no step, so that {part} counts as one; call profiler.step() after each step")
    return found


def _nest(spans: Iterable[tuple[float, float, dict[str, Any]]]) -> tuple[list[Called], list[tuple[float, float]]]:
    """The outermost calls with those in them, and the regions to leave out."""
    roots: list[Called] = []
    apart: list[tuple[float, float]] = []
    open_calls: dict[Any, list[Called]] = {}
    for begin, end, event in spans:
        name, about = str(event.get("name")), event.get("args") or {}
        if event["cat"] == "user_annotation":
            apart += [(begin, end)] if name.startswith(_APART) else []
            continue
        stack = open_calls.setdefault(event.get("tid"), [])
        while stack and stack[-1].end <= begin:
            stack.pop()
        made = Called(name, _arguments(about), begin, end, about.get("External id"), sequence=about.get("Sequence number"))
        made.has_gradient = made.sequence is not None
        (stack[-1].children if stack else roots).append(made)
        stack.append(made)
    return roots, apart


def _is_inside(call: Called, regions: Iterable[tuple[float, float]]) -> bool:
    return any(begin <= call.begin < end for begin, end in regions)


def _arguments(about: dict[str, Any]) -> list[Any]:
    types, dims = about.get("Input type") or [], about.get("Input Dims") or []
    values, strides = about.get("Concrete Inputs") or [], about.get("Input Strides") or []
    made: list[Any] = []
    for i, kind in enumerate(types):
        shape = dims[i] if i < len(dims) else []
        stride = strides[i] if i < len(strides) else None
        if kind in ("TensorList", "GenericList") and shape and isinstance(shape[0], list):
            made.append([TensorArgument(tuple(one), torch.float32) for one in shape])
        elif kind.lower() in _TYPES:
            made.append(TensorArgument(tuple(shape), _TYPES[kind.lower()], tuple(stride) if stride else None))
        else:
            made.append((values[i] if i < len(values) else "") or None)
    return made


def _walk(call: Called) -> Iterator[Called]:
    yield call
    for child in call.children:
        yield from _walk(child)


def _gradients(backward: Called) -> Iterator[TensorArgument]:
    for call in _walk(backward):
        if call.name == _ACCUMULATE and call.arguments and isinstance(call.arguments[0], TensorArgument):
            yield call.arguments[0]


def _kernels(
    events: list[dict[str, Any]], calls: list[Called], backward: list[Called], first: float, last: float
) -> tuple[dict[int, float], list[str]]:
    """GPU times of a call, and of the backward functions with its sequence number, on the GPU with the most work. Work
    belongs to the step in which the host launched it. With notes on work that does not count."""
    owner = {call.identifier: i for i, root in enumerate(calls) for call in _walk(root) if call.identifier is not None}
    numbers = {call.sequence: i for i, root in enumerate(calls) for call in _walk(root) if call.sequence is not None}
    for root in backward:
        index = next((numbers[call.sequence] for call in _walk(root) if call.sequence in numbers), -1)
        owner.update((call.identifier, index) for call in _walk(root) if call.identifier is not None)
    begins: dict[Any, float] = {}
    launches: dict[Any, tuple[Any, float]] = {}
    for event in events:
        about, span = event.get("args") or {}, span_of(event)
        if span is not None and event.get("cat") == "cpu_op":
            begins[about.get("External id")] = span[0]
        elif span is not None and "correlation" in about and str(event.get("cat", "")).lower() not in GPU_WORK:
            launches[about["correlation"]] = about.get("External id"), span[0]
    by_device: dict[Any, dict[int, float]] = {}
    collectives_ms = 0.0
    for event in events:
        span = span_of(event) if str(event.get("cat", "")).lower() in GPU_WORK else None
        if span is None:
            continue
        begin, end = span
        about = event.get("args") or {}
        identifier, launched = launches.get(about.get("correlation"), (None, begin))
        identifier = about.get("External id", identifier)
        index, ms = owner.get(identifier, -1), (end - begin) / 1e3
        if identifier not in owner and not first <= begins.get(identifier, launched) < last:
            continue
        if str(event.get("name")).startswith("nccl"):
            collectives_ms += ms
            continue
        times = by_device.setdefault(about.get("device", event.get("pid")), {})
        times[index] = times.get(index, 0.0) + ms
    if not by_device:
        return {}, []
    device = max(by_device, key=lambda one: sum(by_device[one].values()))
    notes = [f"kernels of {len(by_device)} GPUs; those of GPU {device} count"] if len(by_device) > 1 else []
    notes += [f"NCCL's kernels ({collectives_ms:.3f} ms) are left out, because they wait for other GPUs"] if collectives_ms > 0 else []
    if set(by_device[device]) == {-1}:
        notes.append("no kernel names the call that launched it, as in CUDA graphs, so that all measured time is other work")
    return by_device[device], notes


# ---- Chakra ----------------------------------------------------------------------------------------------------------


def _of_chakra(path: Any, nodes: list[dict[str, Any]]) -> ForwardPass:
    made: dict[Any, Called] = {}
    roots: list[Called] = []
    apart: set[Any] = set()
    for node in sorted((node for node in nodes if isinstance(node, dict)), key=lambda node: node.get("id", 0)):
        parent, name = node.get("ctrl_deps"), str(node.get("name"))
        about = {one.get("name"): one.get("value") for one in node.get("attrs") or []}
        if name.startswith(_APART) or parent in apart:
            apart.add(node.get("id"))
            continue
        if "::" not in name:  # a thread, or an annotation
            continue
        number = about.get("seq_id") or None
        call = made[node.get("id")] = Called(name, _tensors(node.get("inputs") or {}), node["id"], node["id"], node["id"], sequence=number)
        made_here = (one if isinstance(one, list) else [one] for one in _tensors(node.get("outputs") or {}))
        call.results = [one.number for some in made_here for one in some if isinstance(one, TensorArgument)]
        (made[parent].children if parent in made else roots).append(call)
    _refuse_without_sizes(path, roots)
    starts = [i for i, call in enumerate(roots) if call.name.startswith(_BACKWARD)]
    start = starts[0] if starts else len(roots)
    calls = [call for call in roots[:start] if call.name.startswith(("aten::", "torch")) or "::" in call.name]
    while calls and calls[-1].name == "aten::ones_like" and starts:
        calls.pop()
    trained = [one for call in roots[start:] for one in _gradients(call)]
    return ForwardPass(calls, trained, bool(starts), {})


def _tensors(part: dict[str, Any]) -> list[Any]:
    made: list[Any] = []
    values, shapes, types = part.get("values") or [], part.get("shapes") or [], part.get("types") or []
    for value, shape, kind in zip(values, shapes, types):
        if kind.startswith("Tensor(") and isinstance(value, list):
            dtype = _TYPES.get(kind[7:-1].lower(), torch.float32)
            made.append(TensorArgument(tuple(shape), dtype, None, tuple(value[:3])))
        elif kind.startswith("GenericList[Tensor"):
            kinds = [one[7:-1].lower() for one in kind[12:-1].split(",")]
            made.append([TensorArgument(tuple(s), _TYPES.get(k, torch.float32), None, tuple(v[:3])) for v, s, k in zip(value, shape, kinds)])
        else:
            made.append(None if value in ("", "<None>") or kind == "None" else str(value))
    return made


def value_of(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return {"inf": float("inf"), "-inf": float("-inf"), "true": True, "false": False}.get(text, text)
