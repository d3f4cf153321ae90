"""A network from a profiler's trace (profiled_calls.py): a module that calls the same operators.

A trace of torch.profiler has no names of tensors, so that sizes and types connect the calls: an argument is the latest
result of its size that no call has read, or else the latest one; without a result, it is a trained parameter of the
backward pass, or else an input. Work does not depend on the choice among equal sizes, but memory can. A Chakra trace
numbers the tensors.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any, Callable, Iterator, Sequence

import torch
from torch import nn
from torch.utils import _pytree as pytree

from mdot.library.errors import InvalidArgumentError, MalformedError, UnsupportedError
from mdot.trace.models import Network
from mdot.trace.profiled_calls import Called, ForwardPass, TensorArgument, read_forward_pass, value_of

_TYPE_NUMBERS = [
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64, None,
    torch.complex64, torch.complex128, torch.bool, None, None, None, torch.bfloat16,
]  # fmt: skip
"""By the number of c10::ScalarType."""
_WEIGHTS = {"weight", "bias", "mat2"}
"""Names of arguments that are parameters, whatever results have the same size."""
_STATISTICS = {"running_mean", "running_var"}
_SIZES = {"size", "shape", "new_shape"}
_SILENT = {"aten::item", "aten::_local_scalar_dense", "aten::is_nonzero", "aten::lift_fresh", "aten::detach_", "aten::set_"}
"""Calls without an effect on a job."""


class Call(nn.Module):
    """One call. Constants are in `template`; `places` says where the tensors belong."""

    def __init__(self, operator: Any, template: list[Any], kwargs: dict[str, Any], has_gradient: bool, batch: int) -> None:
        super().__init__()
        self.operator, self.template, self.named, self.has_gradient, self.batch = operator, template, kwargs, has_gradient, batch

    def forward(self, tensors: dict[int, torch.Tensor], batch: int) -> list[torch.Tensor]:
        args = pytree.tree_map(lambda leaf: tensors[leaf.index] if isinstance(leaf, Place) else leaf, self.template)
        if batch != self.batch:
            args = _resized(self.operator, args, self.batch, batch)
        named = dict(self.named)
        if "device" in named and tensors:
            named["device"] = next(iter(tensors.values())).device
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.has_gradient):
            out = self.operator(*args, **named)
        return [leaf for leaf in pytree.tree_leaves(out) if isinstance(leaf, torch.Tensor)]


@dataclasses.dataclass(frozen=True)
class Place:
    index: int
    """Of a tensor in Replay."""


def _resized(operator: Any, args: list[Any], old: int, new: int) -> list[Any]:
    """The arguments with sizes for another batch: one size that is a multiple of the old batch changes."""
    made = list(args)
    for i, (declared, value) in enumerate(zip(operator._schema.arguments, args)):
        if declared.name == "end" and value == old and operator._schema.name == "aten::arange":
            made[i] = new
        if declared.name not in _SIZES or not isinstance(value, list):
            continue
        has_source = isinstance(args[0], torch.Tensor) and not operator._schema.name.startswith("aten::expand")
        count = 1
        for size in value:
            count *= size
        if has_source and (-1 in value or count == args[0].numel()):
            continue
        options = [[*value[:place], size // old * new, *value[place + 1 :]] for place, size in enumerate(value) if size > 0 and size % old == 0]
        if options:  # the first that keeps most of the source's leading sizes
            made[i] = max(options, key=lambda one: _equal_sizes(one, args[0].shape) if has_source else 0)
    return made


def _equal_sizes(one: Sequence[int], other: Sequence[int]) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))


class Replay(nn.Module):
    """Calls the operators of a trace. The first arguments are its inputs."""

    def __init__(self, batch: int) -> None:
        super().__init__()
        self.batch = batch
        self.leading = batch
        """Extent of the first input's first dimension."""
        self.inputs: list[int] = []
        self.owned: dict[int, str] = {}
        """Paths of parameters and buffers by the tensor's number."""
        self.plan: list[tuple[str, list[int]]] = []
        """Calls, and the numbers of the results."""

    def forward(self, *given: torch.Tensor) -> Any:
        tensors: dict[int, torch.Tensor] = dict(zip(self.inputs, given))
        for index, path in self.owned.items():
            tensors[index] = _leaf(self, path)
        batch = given[0].shape[0] * self.batch // self.leading if given else self.batch
        loss = None
        for name, results in self.plan:
            made = self._modules[name](tensors, batch)  # type: ignore[misc]
            tensors.update(zip(results, made))
            loss = next((one for one in made if one.is_floating_point()), loss)
        return loss


def _leaf(model: nn.Module, path: str) -> torch.Tensor:
    owner, _, name = path.rpartition(".")
    return getattr(model.get_submodule(owner), name)  # type: ignore[no-any-return]


# ---- Binding ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(eq=False)
class _Known:
    index: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    kind: str
    reads: int = 0
    strides: tuple[int, ...] | None = None
    source: _Known | None = None
    """The input of the linear layer whose result this is."""


class _Missing(Exception):
    """An operator that this PyTorch lacks, or that rejects the arguments."""


class _Binder:
    def __init__(self, found: ForwardPass, batch: int) -> None:
        self.model = Replay(batch)
        self.batch = batch
        self.left = list(found.trained)
        self.has_backward = found.has_backward
        self.known: list[_Known] = []
        self.by_number: dict[Any, _Known] = {}
        self.meta: dict[int, torch.Tensor] = {}
        self.lost: dict[str, int] = {}
        self.is_linear, self.trains = False, True
        self.latest: list[int] = []
        """Results of the last call."""
        self.origins: list[int] = []
        """By call of the model, the index in the trace."""

    def add(self, call: Called, origin: int) -> None:
        """Adds a call, or if it is impossible, the calls in it."""
        if call.name in _SILENT:
            return
        casts = any(child.name == call.name for child in call.children)  # under autocast, the inner call has other types
        if not casts:
            try:
                self._bind(call, origin)
                return
            except _Missing:
                pass
        for child in call.children:
            child.trains = call.trains
            self.add(child, origin)
        if not call.children:
            self.lost[call.name] = self.lost.get(call.name, 0) + 1

    def _bind(self, call: Called, origin: int) -> None:
        state = (list(self.left), [(one, one.reads) for one in self.known], dict(self.by_number), list(self.model.inputs), dict(self.model.owned))
        try:
            operator, template, kwargs = self._arguments(call)
            name = f"{call.name.partition('::')[2].strip('_')}_{len(self.model.plan)}"
            made = Call(operator, template, kwargs, call.has_gradient, self.batch)
            with torch.no_grad():
                results = made(self.meta, self.batch)
        except (_Missing, RuntimeError, TypeError, IndexError, ValueError, NotImplementedError) as fault:
            self.left, self.by_number, self.model.inputs, self.model.owned = state[0], state[2], state[3], state[4]
            self.known = [one for one, _ in state[1]]
            for one, reads in state[1]:
                one.reads = reads
            raise _Missing(str(fault)) from None
        self.model.add_module(name, made)
        self.latest = [self._result(one, call, i) for i, one in enumerate(results)]
        if self.is_linear and isinstance(template[0], Place):
            self.known[-1].source = next(one for one in self.known if one.index == template[0].index)
        self.model.plan.append((name, self.latest))
        self.origins.append(origin)

    def _result(self, tensor: torch.Tensor, call: Called, position: int) -> int:
        same = next((one for one in self.known if self.meta.get(one.index) is tensor), None)
        if same is None:
            same = self._new(tuple(tensor.shape), tensor.dtype, "result", tensor)
        else:  # written in place
            self.known.remove(same)
            self.known.append(same)
        same.reads = 0
        same.strides = tuple(tensor.stride())
        if position < len(call.results):
            self.by_number[call.results[position]] = same
        return same.index

    def _new(self, shape: tuple[int, ...], dtype: torch.dtype, kind: str, tensor: torch.Tensor | None = None) -> _Known:
        made = _Known(len(self.meta), shape, dtype, kind)
        self.meta[made.index] = torch.empty(shape, dtype=dtype, device="meta") if tensor is None else tensor
        self.known.append(made)
        return made

    def _arguments(self, call: Called) -> tuple[Any, list[Any], dict[str, Any]]:
        space, _, name = call.name.partition("::")
        packet = getattr(getattr(torch.ops, space, None), name, None)
        if packet is None:
            raise _Missing(call.name)
        for overload in packet.overloads():
            operator = getattr(packet, overload)
            declared = operator._schema.arguments
            if any(one.is_out for one in declared) or not _fits(declared, call.arguments):
                continue
            used: set[_Known] = set()
            self.is_linear, self.trains = call.name == "aten::linear", call.trains
            args, kwargs = [], {}
            for one, given in zip(declared, call.arguments):
                value = self._value(one, given, used)
                if one.kwarg_only:
                    kwargs.update({one.name: value} if value is not None and one.name not in ("device", "layout", "pin_memory") else {})
                else:
                    args.append(value)
            while args and args[-1] is None:
                args.pop()
            if any(isinstance(leaf, Place) for leaf in pytree.tree_leaves(kwargs)):
                raise _Missing(call.name)
            if not any(isinstance(leaf, Place) for leaf in pytree.tree_leaves(args)) and "device" in {one.name for one in declared}:
                kwargs["device"] = "meta"
            return operator, args, kwargs
        raise _Missing(call.name)

    def _value(self, declared: Any, given: Any, used: set[_Known]) -> Any:
        if isinstance(given, TensorArgument):
            return self._tensor(given, declared.name, used)
        if isinstance(given, list):
            return [self._tensor(one, declared.name, used) for one in given]
        if given is None:
            return declared.default_value if declared.has_default_value() else None
        kind, value = str(declared.real_type), value_of(given)
        if "ScalarType" in kind:
            return _TYPE_NUMBERS[value] if isinstance(value, int) and 0 <= value < len(_TYPE_NUMBERS) else None
        if "Device" in kind or "Layout" in kind or "MemoryFormat" in kind:
            return None
        if "float" in kind and isinstance(value, (int, bool)):
            return float(value)
        return value

    def _tensor(self, given: TensorArgument, name: str, used: set[_Known]) -> Any:
        found = self.by_number.get(given.number) if given.number is not None else None
        if found is None or found.shape != given.shape or found.dtype != given.dtype:
            found = self._search(given, name, used)
        if found is None:
            return 1.0 if given.dtype.is_floating_point else 1  # a number as a tensor
        if given.number is not None:
            self.by_number[given.number] = found
        found.reads += 1
        used.add(found)
        return Place(found.index)

    def _search(self, given: TensorArgument, name: str, used: set[_Known]) -> _Known | None:
        same = [one for one in self.known if one.shape == given.shape and one.dtype == given.dtype]
        results = [one for one in same if one.kind == "result"]
        if given.number is not None:
            results = []
        if name in _STATISTICS:
            return self._owned(given, "buffer", False)
        if name in _WEIGHTS and not (name == "mat2" and results):
            return self._parameter(given, same) or next(reversed(results), None) or self._owned(given, *(("frozen", False) if self.has_backward else ("parameter", True)))
        inputs = [one for one in same if one.kind == "input" and one not in used]
        is_rows = bool(given.shape) and given.shape[0] % self.batch == 0
        if given.number is None and name == "indices" and is_rows and not inputs:
            return self._input(given)  # words, beside results such as positions
        fresh = [one for one in results if one not in used]
        last = [one for one in fresh if one.reads == 0 and one.index in self.latest]  # its strides depend on the kernel
        strided = [one for one in fresh if given.strides is None or one.strides == given.strides]
        unread = [[one for one in some if one.reads == 0] for some in (strided, fresh)]
        words = (inputs or [self._input(given)] if is_rows and not (last or strided) else []) if _is_integer(given) else []
        expected = [self._input(given)] if name == "target" and is_rows and not fresh and given.number is None else []
        for choice in (last, unread[0], strided, words, unread[1], fresh, expected, results):
            if choice:
                found = choice[-1]
                beside = found.source if self.is_linear and found.reads > 0 else None  # as those of queries and keys
                return beside if beside is not None and beside.shape == found.shape else found
        parameter = self._parameter(given, same)
        if parameter is not None or not given.shape:
            return parameter
        unused = (one for one in reversed(same) if one.kind != "result" and one not in used)
        return next(unused, None) or self._input(given)

    def _parameter(self, given: TensorArgument, same: Sequence[_Known]) -> _Known | None:
        if not self.trains:
            return None
        left = next((i for i, one in enumerate(self.left) if one.shape == given.shape and one.dtype == given.dtype), None)
        if left is not None:
            del self.left[left]
            return self._owned(given, "parameter", True)
        shared = [one for one in same if one.kind == "parameter"]
        if given.number is None and shared:
            return min(shared, key=lambda one: one.reads)
        return None

    def _owned(self, given: TensorArgument, kind: str, trains: bool) -> _Known:
        made = self._new(given.shape, given.dtype, kind)
        name = f"{kind}_{made.index}"
        if kind == "buffer":
            self.model.register_buffer(name, self.meta[made.index])
        else:
            self.model.register_parameter(name, nn.Parameter(self.meta[made.index], requires_grad=trains))
        self.model.owned[made.index] = name
        return made

    def _input(self, given: TensorArgument) -> _Known:
        if given.shape[0] != self.batch and given.shape[0] % self.batch != 0:
            return self._owned(given, "buffer", False)
        made = self._new(given.shape, given.dtype, "input")
        self.model.inputs.append(made.index)
        return made


def _is_integer(given: TensorArgument) -> bool:
    return not (given.dtype.is_floating_point or given.dtype.is_complex or given.dtype == torch.bool)


def _fits(declared: Sequence[Any], given: Sequence[Any]) -> bool:
    if len(declared) != len(given):
        return False
    for one, value in zip(declared, given):
        kind = str(one.type)
        takes_tensor = kind in ("Tensor", "Optional[Tensor]")
        if isinstance(value, TensorArgument) and not takes_tensor:
            return False
        if isinstance(value, list) and "List" not in kind:
            return False
        if isinstance(value, str) and ("Tensor" in kind or ("List" in kind) != value.startswith("[")) and "str" not in kind:
            return False
        if isinstance(value, str) and kind in ("int", "Optional[int]") and not isinstance(value_of(value), int):
            return False
    return True


# ---- The network -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Profiled:
    network: Network
    batch: int
    notes: list[str]
    calls: dict[str, str]
    """The operators of the trace by module of the job, for example aten::conv2d for conv2d_0."""
    kernels_ms: dict[str, float]
    """Measured GPU time of the same modules, forward and backward; "": of other work. Empty without a GPU."""
    has_backward: bool = True


def network_of(path: str | os.PathLike[str], batch: int | None = None) -> Profiled:
    """The network of a trace, its batch, and notes on facts that the trace lacks. `batch` is by default the first
    dimension of the first tensor that a call reads."""
    found = read_forward_pass(path)
    weights = {one.shape for one in found.trained}
    read = (one for call in found.calls for one in call.arguments["embedding" in call.name :])  # without an embedding's table
    arguments = (one for one in read if isinstance(one, TensorArgument) and one.shape)
    activations = [one for one in arguments if one.shape not in weights]
    leading = next((one for one in activations if len(one.shape) > 1 and one.shape[0] > 1), next(iter(activations), None))
    if leading is None:
        raise MalformedError(f"{path}: the trace has no forward pass of a network")
    samples = batch or leading.shape[0]
    if leading.shape[0] % samples != 0:
        raise InvalidArgumentError(f"{path}: the batch is {samples}, but the first tensor has {leading.shape[0]} rows")
    binder = _Binder(found, samples)
    for origin, call in enumerate(found.calls):
        binder.add(call, origin)
    model = binder.model
    if not model.inputs:
        raise UnsupportedError(f"{path}: no call of the trace reads an input with the batch {samples}; state the batch (--batch)")
    model.leading = binder.meta[model.inputs[0]].shape[0]
    notes = list(found.notes)
    if batch is None:
        notes.append(f"the batch is {samples}, the first dimension of the first tensor, because a trace does not name it (--batch)")
    if not found.has_backward:
        notes.append("the trace has no backward pass, so that all weights are taken for trained ones")
    elif binder.left:
        notes.append(f"{len(binder.left)} trained parameters belong to no call of the forward pass")
    if not any(one.number is not None for call in found.calls for one in call.arguments if isinstance(one, TensorArgument)):
        notes.append("memory is an estimate, because the trace connects calls by sizes alone")
    lost = ", ".join(f"{count} {name}" for name, count in sorted(binder.lost.items()) if not name.startswith("aten::empty"))
    notes += [f"left out, because this PyTorch cannot call them: {lost}"] if lost else []
    calls, times = {}, {}
    for (name, _), origin in zip(model.plan, binder.origins):
        calls[name] = found.calls[origin].name
        times[origin] = name  # the last module of a call has the call's time
    kernels = {times.get(origin, ""): 0.0 for origin in found.kernels_ms}
    for origin, ms in found.kernels_ms.items():
        kernels[times.get(origin, "")] += ms
    inputs = tuple(torch.empty(binder.meta[i].shape, dtype=binder.meta[i].dtype, device="meta") for i in model.inputs)
    return Profiled(Network(Path(path).name, model, inputs, {}), samples, notes, calls, kernels, found.has_backward)


def compare(profiled: Profiled, job: Any, explanation: Any) -> str:
    """A table of predicted and measured GPU times by operator of the trace. `job` is that of the network."""
    rows: dict[str, list[float]] = {}
    for operator, share in zip(job, explanation.operators):
        row = rows.setdefault(profiled.calls.get(operator.module or "", "other work"), [0.0, 0.0])
        row[0] += share.ms - share.optimizer_ms
    rows.setdefault("other work", [0.0, 0.0])[0] += explanation.optimizer_ms
    for module, ms in profiled.kernels_ms.items():
        rows.setdefault(profiled.calls.get(module, "other work"), [0.0, 0.0])[1] += ms
    total = [sum(row[i] for row in rows.values()) for i in (0, 1)]
    lines = [f"{'operator':<40}{'predicted ms':>14}{'measured ms':>14}{'ratio':>8}"]
    for name, (predicted, measured) in [*sorted(rows.items(), key=lambda row: -max(row[1])), ("sum", total)]:
        if max(predicted, measured) > 0:
            ratio = f"{predicted / measured:8.2f}" if measured > 0 else f"{'':>8}"
            lines.append(f"{name:<40}{predicted:>14.3f}{measured:>14.3f}{ratio}")
    return "\n".join(lines)
