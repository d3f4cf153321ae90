"""Modules that compute gradients in their forward pass: gradient penalties, forces, inner steps of meta-learning, Jacobians.

The operators' trace runs without autograd. So such a module runs beforehand with autograd, and a tape keeps the calls that
PyTorch dispatched, those of the inner backward passes too. The trace then repeats the calls.
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any, Sequence

import torch
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

from mdot.trace import replacements
from mdot.trace.known_calls import outside, tensors_of
from mdot.trace.module_state import left_alone, plain, replace_tensors, stand_in
from mdot.trace.modules import Shell

if TYPE_CHECKING:
    from mdot.trace.call_recorder import Recorder

_DETACH = torch.ops.aten.detach.default


@dataclasses.dataclass
class _Call:
    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    out: Any
    scope: str
    """The running module."""


class _Tape(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Keeps all calls and their tensors, so that each tensor has an id of its own."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: list[_Call] = []
        self._recorder = recorder

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if func.namespace != "prim":
            self.calls.append(_Call(func, args, kwargs or {}, out, self._recorder.graph.scope))
        return out


class Unrolled(Shell):
    """Runs a module, and in the operators' trace the calls that the module dispatches with autograd."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        modes = _get_current_dispatch_mode_stack()
        recorder: Any = next((mode for mode in modes if hasattr(mode, "gradient_mode")), None)
        if recorder is None:  # a training step
            return self.model(*args, **kwargs)
        return _repeat(self.model, args, kwargs, recorder)


def _repeat(model: nn.Module, args: Sequence[Any], kwargs: Any, recorder: Recorder) -> Any:
    tape = _Tape(recorder)
    twins: list[tuple[torch.Tensor, torch.Tensor]] = []
    mode = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE)

    def twin(tensor: torch.Tensor, _: str = "", is_parameter: bool = False) -> torch.Tensor:
        """A tensor with gradients in the place of one of the trace."""
        with outside():
            own: torch.Tensor = stand_in(tensor, mode) if mode is not None else tensor.clone()
        own = nn.Parameter(own, requires_grad=tensor.requires_grad) if is_parameter else own.requires_grad_(tensor.requires_grad)
        twins.append((own, tensor))
        return own

    with torch.inference_mode(False), torch.enable_grad(), left_alone(model), replacements.with_gradients():
        inputs, named = pytree.tree_map(lambda leaf: twin(leaf) if isinstance(leaf, torch.Tensor) else leaf, (args, kwargs))
        replace_tensors(model, twin)
        with outside(), mode or contextlib.nullcontext(), tape:
            out = plain(model(*inputs, **named))
    for own, tensor in twins:
        if own.requires_grad and not tensor.requires_grad:  # the module asks for gradients of its inputs
            recorder.bind(tensor, recorder.graph.start_gradient(recorder.value(tensor)))
    return _Copies(recorder, tape.calls, twins).of(out)


class _Copies:
    """The tensors of the repeated calls."""

    def __init__(self, recorder: Recorder, calls: Sequence[_Call], twins: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> None:
        self._recorder = recorder
        self._made = {id(own): tensor for own, tensor in twins}
        self._sources: dict[int, torch.Tensor] = {}
        """What each detached tensor was before."""
        graph, gradient_mode = recorder.graph, recorder.gradient_mode
        before = graph.scope, gradient_mode.is_enabled
        with torch._C.DisableTorchFunction():
            for call in calls:
                graph.scope = call.scope
                self._repeat(call)
        graph.scope, gradient_mode.is_enabled = before

    def of(self, tree: Any) -> Any:
        return pytree.tree_map(lambda leaf: self._made.get(id(leaf), leaf) if isinstance(leaf, torch.Tensor) else leaf, tree)

    def _repeat(self, call: _Call) -> None:
        results = tensors_of(call.out)
        detached = call.func is _DETACH
        if detached:
            source = self._sources.setdefault(id(results[0]), self._sources.get(id(call.args[0]), call.args[0]))
            if results[0].grad_fn is not None and results[0].grad_fn is source.grad_fn:  # autograd reads a result that it saved
                self._made[id(results[0])] = self.of(source)
                return
        self._recorder.gradient_mode.is_enabled = not detached and any(one.requires_grad for one in results)
        repeated = tensors_of(call.func(*self.of(call.args), **self.of(call.kwargs)))
        for old, new in zip(results, repeated):
            self._made[id(old)] = new
            if detached and old.requires_grad:
                self._recorder.bind(new, self._recorder.graph.start_gradient(self._recorder.value(new)))
