"""Runs a module once and records its operators. `trace` calls one function for each stage."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from typing import Any, Callable, Iterator, Mapping, Sequence

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.nn.modules import module as hooks
from torch.utils import _pytree as pytree

from mdot.library.errors import InvalidArgumentError, UnsupportedError
from mdot.trace import batch as batches
from mdot.trace import failures, losses, modules, replacements
from mdot.trace.graph import Graph
from mdot.trace.operators.call import DTYPES
from mdot.trace.recorder import DataDependent, Recorder

MOST_REAL_BYTES = 8 << 30
"""Maximum size of the parameters that are filled with random values. This happens for modules on the meta device whose
operators depend on data."""


@dataclasses.dataclass
class Traced:
    graph: Graph
    batch: int
    frozen: list[str]
    """Modules with parameters of their own, none of which requires a gradient."""
    unused: list[str]
    """Parameters that the run never read."""
    notes: list[str]

    def read_elements(self) -> int:
        """The number of elements of the parameters that the run read."""
        return sum(value.count for value in self.graph.parameters if value.name not in self.unused)

    def make_constant(self, modules: Sequence[str]) -> None:
        """Turns the parameters of these modules into constants."""
        kept = []
        for value in self.graph.parameters:
            if value.name.rpartition(".")[0] in modules:
                value.kind = "constant"
            else:
                kept.append(value)
        self.graph.parameters = kept


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
    """Records the operators of a module and its loss on these inputs in training mode. The module's state is restored
    afterwards.

    The run uses tensors without data. If the module's control flow depends on computed values, it is repeated with real
    values on the CPU.
    """
    model = modules.prepare(given)
    name = name or type(model).__name__
    dimensions = batches.leading_dimensions(args, kwargs) if batch is None else ()
    model, args = losses.attach(model, args, loss, targets)
    notes: list[str] = []
    with failures.explained(model, name), replacements.active(notes):
        try:
            with batches.watch(model) as seen:
                graph, recorder = _run(model, args, kwargs, name, fake=True)
        except DataDependent as reason:
            _check_runs(model, reason)
            notes.append(
                "the operators depend on computed values: mdot recorded those of one run on the CPU with the module's "
                "current weights"
            )
            graph, recorder = _run(_with_data(model), args, kwargs, name, fake=False)
            if recorder.budget.replaced > 0:
                notes[-1] += "; to save time, the results of large matrix products and convolutions were random numbers"
    if batch is None:
        batch, found = batches.choose(dimensions, seen)
        notes += found
    without_loss = losses.missing(graph, batch)
    if without_loss is not None:
        notes.append(without_loss)
    read = {value for node in graph.nodes for value in node.inputs if value is not None}
    return Traced(
        graph,
        batch,
        _frozen_modules(model),
        [value.name for value in graph.parameters if value not in read],
        notes,
    )


# ---- One run ---------------------------------------------------------------------------------------------------------


def _run(
    model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], name: str, fake: bool
) -> tuple[Graph, Recorder]:
    graph = Graph(name)
    recorder = Recorder(graph, fake)
    mode = FakeTensorMode(allow_non_fake_inputs=True) if fake else contextlib.nullcontext()
    with torch.random.fork_rng(devices=[]), torch.inference_mode(), _left_alone(model), mode, contextlib.ExitStack() as stack:
        modules.train(model)
        _show_parameters(model, recorder, fake)
        inputs, named = _inputs((list(args), dict(kwargs)), recorder, fake)
        stack.enter_context(_scopes(model, graph))
        with recorder:
            out = model(*inputs, **named)
        for leaf in pytree.tree_leaves(_plain(out)):
            if isinstance(leaf, torch.Tensor):
                value = recorder.value(leaf)
                if value.kind == "data" and value not in graph.outputs:
                    graph.outputs.append(value)
    if not graph.outputs:
        raise InvalidArgumentError(f"{graph.name} returned no tensor that depends on its inputs")
    return graph, recorder


def _plain(out: Any) -> Any:
    """The fields of dataclasses, which transformers and diffusers return."""
    if dataclasses.is_dataclass(out) and not isinstance(out, type):
        return [getattr(out, field.name, None) for field in dataclasses.fields(out)]
    return list(out.values()) if isinstance(out, Mapping) else out


@contextlib.contextmanager
def _left_alone(model: nn.Module) -> Iterator[None]:
    """Restores the attributes, parameters and buffers of all modules afterwards, because some modules keep computed values."""
    members = ("_parameters", "_buffers", "_modules")
    before = [
        (module, dict(vars(module)), [dict(getattr(module, name)) for name in members]) for module in model.modules()
    ]
    try:
        yield
    finally:
        for module, attributes, dictionaries in before:
            vars(module).clear()
            vars(module).update(attributes)
            for name, content in zip(members, dictionaries):
                getattr(module, name).clear()
                getattr(module, name).update(content)


def _empty(tensor: torch.Tensor, mode: FakeTensorMode) -> FakeTensor:
    """A tensor without data on the CPU, for a tensor on any device."""
    with torch.utils._python_dispatch._disable_current_modes():
        shape = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
        return FakeTensor(mode, shape, torch.device("cpu"))


def _show_parameters(model: nn.Module, recorder: Recorder, fake: bool) -> None:
    """Registers parameters and buffers with the recorder. In fake mode, tensors without data replace both. Otherwise, copies
    replace the buffers, because training changes them."""
    mode = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) if fake else None
    shown: dict[int, torch.Tensor] = {}

    def show(tensor: torch.Tensor, name: str, is_parameter: bool) -> torch.Tensor:
        stand_in = tensor if is_parameter else tensor.clone() if mode is None else tensor
        if mode is not None:
            stand_in = _empty(tensor, mode)
        if mode is not None and is_parameter:
            stand_in = nn.Parameter(stand_in, requires_grad=tensor.requires_grad)
        shape, dtype = tuple(tensor.shape), DTYPES[tensor.dtype]
        if is_parameter:
            value = recorder.graph.parameter(name, shape, dtype)
        else:
            value = recorder.graph.constant(shape, dtype, name=name)
            if tensor.device.type == "cpu":
                recorder.know(stand_in, tensor)
        recorder.bind(tensor, value)
        recorder.bind(stand_in, value)
        return stand_in

    for path, module in model.named_modules():
        for members, is_parameter in ((module._parameters, True), (module._buffers, False)):
            for name, tensor in members.items():
                if tensor is None:
                    continue
                if id(tensor) not in shown:
                    shown[id(tensor)] = show(tensor, f"{path}.{name}" if path else name, is_parameter)
                members[name] = shown[id(tensor)]
        if isinstance(module, nn.RNNBase):  # keeps a separate list of its parameters
            names: Any = module._flat_weights_names
            module._flat_weights = [getattr(module, name, None) for name in names]


def _inputs(inputs: tuple[list[Any], dict[str, Any]], recorder: Recorder, fake: bool) -> tuple[list[Any], dict[str, Any]]:
    mode = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) if fake else None

    def show(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        stand_in: torch.Tensor = leaf
        if mode is not None:
            stand_in = _empty(leaf, mode)
            if leaf.device.type == "cpu" and not isinstance(leaf, FakeTensor):
                recorder.know(stand_in, leaf)
        shape = tuple(leaf.shape)
        recorder.bind(stand_in, recorder.graph.input(f"input_{len(recorder.graph.inputs)}", shape, DTYPES[leaf.dtype]))
        return stand_in

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


def _check_runs(model: nn.Module, reason: Exception) -> None:
    size = sum(p.numel() * p.element_size() for p in model.parameters())
    if any(p.device.type == "meta" for p in model.parameters()) and size > MOST_REAL_BYTES:
        detail = str(reason).splitlines()[0] if str(reason) else type(reason).__name__
        raise UnsupportedError(
            f"{type(model).__name__}: the operators depend on computed values ({detail}), but its "
            f"{size / 1e9:.1f} GB of weights are on the meta device: pass a module with weights on the CPU"
        ) from reason


def _with_data(model: nn.Module) -> nn.Module:
    """The module itself, or a copy with random weights if it is on the meta device."""
    if not any(p.device.type == "meta" for p in model.parameters()):
        return model
    made = copy.deepcopy(model)
    filled: dict[int, torch.Tensor] = {}  # by the tensor on the meta device, so that tied parameters stay tied
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for module in made.modules():
            for members in _members(module):
                for name, tensor in members.items():
                    if tensor is not None and tensor.device.type != "cpu":
                        if id(tensor) not in filled:
                            filled[id(tensor)] = _random_like(tensor)
                        members[name] = filled[id(tensor)]
    return made


def _members(module: nn.Module) -> tuple[dict[str, Any], dict[str, Any]]:
    """The dictionaries of the module's own parameters and buffers."""
    return module._parameters, module._buffers


def _random_like(tensor: torch.Tensor) -> torch.Tensor:
    content = torch.zeros(tensor.shape, dtype=tensor.dtype)
    if tensor.is_floating_point():
        content.normal_(0.0, 0.02)
    return nn.Parameter(content, requires_grad=tensor.requires_grad) if isinstance(tensor, nn.Parameter) else content


def _frozen_modules(model: nn.Module) -> list[str]:
    if all(p.requires_grad for p in model.parameters()):
        return []
    own = {name: list(module.parameters(recurse=False)) for name, module in model.named_modules()}
    return [name for name, params in own.items() if params and not any(p.requires_grad for p in params)]
