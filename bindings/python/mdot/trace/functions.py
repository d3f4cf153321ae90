"""Observes calls of autograd functions (torch.autograd.Function), whose backward passes are the program's own.

A function's gradients do not follow from the operators in its forward pass: it may multiply again, let a gradient through
a comparison (surrogates of spikes) or return none. The trace sees the forward pass, and a training step the backward pass.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, Callable, Iterator, Sequence
from unittest import mock

import torch
from torch.autograd import Function
from torch.utils import _pytree as pytree

from mdot.trace.graph import FLOATS, Graph, Node, Value

if TYPE_CHECKING:
    from mdot.trace.call_recorder import Recorder
    from mdot.trace.work import Work

Wrap = Callable[[str, Callable[..., Any]], Callable[..., Any]]


@contextlib.contextmanager
def _wrapped(**wraps: Wrap) -> Iterator[None]:
    """Wraps these methods of all functions outside of PyTorch and mdot, because programs hold `apply` itself. PyTorch's checkpoint has
    nodes for all its operators."""
    with contextlib.ExitStack() as stack:
        left: list[Any] = [Function]
        while left:
            kind = left.pop()
            left += kind.__subclasses__()
            for name, wrap in wraps.items():
                method = vars(kind).get(name)
                if isinstance(method, staticmethod) and not kind.__module__.startswith(("torch.", "mdot.")):
                    stack.enter_context(mock.patch.object(kind, name, staticmethod(wrap(kind.__name__, method.__func__))))
        yield


# ---- The recorded run ------------------------------------------------------------------------------------------------


def recorded(recorder: Recorder) -> contextlib.AbstractContextManager[None]:
    """Gradients flow from a function's results to all its inputs."""

    def wrap(kind: str, forward: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(forward)
        def run(*args: Any, **kwargs: Any) -> Any:
            graph, first, products = recorder.graph, len(recorder.graph.nodes), len(recorder.graph.products)
            given = [recorder.value(leaf) for leaf in pytree.tree_leaves(args) if _is_float(leaf)]
            out = forward(*args, **kwargs)
            made = [leaf for leaf in pytree.tree_leaves(out) if _is_float(leaf)]
            operands = [one for one in given if one.kind == "data" or (one.kind == "parameter" and one.name not in graph.frozen)]
            node = None
            if made and operands and recorder.gradient_mode.is_enabled:
                value = recorder.value(made[0])
                lost = _lost(graph.nodes[first:], value, operands)
                if value.kind == "data" and (lost or len(graph.products) == products):
                    recorder.bind(made[0], graph.op("View", [value, *lost], value.shape, value.dtype, domain="mdot"))
                    node = graph.nodes[-1]
            graph.functions.append((kind, node))
            return out

        return run

    return _wrapped(forward=wrap)


def _is_float(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.is_floating_point()


def _lost(nodes: Sequence[Node], result: Value, operands: Sequence[Value]) -> list[Value]:
    """The operands to which no gradient flows through the nodes."""
    reached = {result} if result.has_gradient else set()
    for node in reversed(nodes):
        if node.op != "StopGradient" and any(v in reached and v.dtype in FLOATS for v in node.outputs if v is not None):
            reached |= {v for v in node.inputs if v is not None and v.has_gradient}
    return [value for value in dict.fromkeys(operands) if value not in reached]


# ---- The training step -----------------------------------------------------------------------------------------------


def counted(work: Work) -> contextlib.AbstractContextManager[None]:
    """Attributes the calls in a function's backward pass to its node."""

    def forward(kind: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def run(*args: Any, **kwargs: Any) -> Any:
            if torch._C._current_autograd_node() is not None:  # again, in the backward pass
                return original(*args, **kwargs)
            with work.inside(kind):
                return original(*args, **kwargs)

        return run

    def backward(_: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def run(context: Any, *gradients: Any) -> Any:
            with work.running(context._sequence_nr()):
                return original(context, *gradients)

        return run

    return _wrapped(forward=forward, backward=backward)
