"""Intercepts a module's operators, and adds them to a graph.

The Recorder is a TorchDispatchMode: PyTorch calls it instead of each ATen operator. In inference mode it receives
composite operators whole (`linear`, `layer_norm`). PyTorch's own kernels or decompositions decompose the operators
beyond operators/, until a translation exists or an indivisible operator is left.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator

import torch
from torch._decomp import decomposition_table
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree
from torch.nested._internal import nested_tensor as nested
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary

from mdot.trace import graph as g
from mdot.trace import recurrences
from mdot.trace.autocast import HALVES
from mdot.trace.budget import Budget
from mdot.trace.gpu_kernels import CELLS, LIKE_OPERAND, like_operand, with_elements
from mdot.trace.gradient_mode import GradientMode
from mdot.trace.known_calls import DataDependent, KnownContents, outside, tensors_of
from mdot.trace.operators import TRANSLATIONS
from mdot.trace.operators.call import DTYPES, Call, shape_of
from mdot.trace.operators.prices import has_price, is_view, price
from mdot.trace.selections import Selection, note
from mdot.trace.work import Work, formula_of

MOST_DATA = 64
"""Most elements in a constant with written values. Small ones suffice for a reader's shape computations."""


_VIEWS = {
    "view", "_unsafe_view", "reshape", "flatten", "unflatten", "view_as", "transpose", "permute", "t", "unsqueeze",
    "squeeze", "expand", "expand_as", "select", "slice", "narrow", "split", "split_with_sizes", "chunk", "unbind", "detach",
    "alias", "contiguous", "movedim", "swapaxes", "tensor_split", "diagonal", "as_strided", "unfold", "numpy_T", "mT",
}  # fmt: skip


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, graph: g.Graph, fake: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.graph = graph
        self.fake = fake
        self.budget = Budget()
        self.work = Work(1)
        self._values: Any = WeakIdKeyDictionary()
        self._known = KnownContents()
        self._parents: Any = WeakIdKeyDictionary()
        """The base tensor of each view."""
        self.selections: list[Selection] = []
        """Of a run with values."""
        self.gradient_mode = GradientMode()
        self._taking_apart = 0
        """Kernels that the trace records as several operators."""
        self._results: list[g.Value] = []
        """Results of dispatched calls other than views."""

    # ---- Tensors -----------------------------------------------------------------------------------------------------

    def bind(self, tensor: torch.Tensor, value: g.Value) -> None:
        self._values[tensor] = value

    def know(self, tensor: torch.Tensor, content: torch.Tensor) -> None:
        if self.fake:
            self._known.add(tensor, content)

    def value(self, tensor: torch.Tensor) -> g.Value:
        """The tensor's value in the graph. A tensor from outside of the recorded operators becomes a constant."""
        found: g.Value | None = self._values.get(tensor)
        if found is None:
            if self.fake and not isinstance(tensor, FakeTensor):
                self.know(tensor, tensor)
            found = self._constant(tensor)
            self.bind(tensor, found)
        elif found.kind == "parameter" and tensor.is_complex():  # two numbers for each element
            found = self.graph.view(found, tuple(tensor.shape), DTYPES[tensor.dtype])
            self.bind(tensor, found)
        return found

    def _read(self, tensor: torch.Tensor) -> g.Value:
        """The tensor's value, as an operator with a gradient reads it."""
        value = self.value(tensor)
        if tensor.requires_grad and value.kind == "data" and not isinstance(tensor, torch.nn.Parameter):  # no result has one in inference mode
            return self.graph.start_gradient(value)
        return value if value.has_gradient else self.graph.stop_gradient(value)

    def _constant(self, tensor: torch.Tensor) -> g.Value:
        content = self._known.get(tensor) if self.fake else tensor
        dtype = DTYPES[tensor.dtype]
        data = None
        writable = not tensor.is_complex() and dtype in g.PACKED and tensor.layout == torch.strided
        small = tensor.numel() <= (1 if tensor.is_floating_point() else MOST_DATA)
        if content is not None and writable and small and content.device.type == "cpu" and not content._is_zerotensor():
            with outside():
                data = g.pack(content.reshape(-1).tolist(), dtype)
        return self.graph.constant(shape_of(tensor), dtype, data)

    # ---- Operators ---------------------------------------------------------------------------------------------------

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if nested.NestedTensor in types:  # its own operators follow
            return NotImplemented
        kwargs = kwargs or {}
        if func.namespace == "prim":
            return func(*args, **kwargs)
        name = func._schema.name.split("::")[-1]
        translate = TRANSLATIONS.get(name) or (TRANSLATIONS.get(name[:-1]) if name.endswith("_") else None)
        if translate is None:
            taken_apart = self._take_apart(func, args, kwargs)
            if taken_apart is not NotImplemented:
                return taken_apart
        if name in _OF_ONE_TYPE:
            _check_types(args)
        if name in recurrences.MODES:
            args = self._of_one_type(args)
        if self.fake and name in recurrences.MODES:
            out = recurrences.run(name, args, self._numbers)
        elif self.fake:
            run = self._known.run if name not in LIKE_OPERAND else like_operand
            out = with_elements(args, run(func, args, kwargs))
        else:
            out = self.budget.run(func, args, kwargs)
            note(self.selections, func, args, out)
            if func._schema.name == "aten::rand" and out.numel() == 1:
                out.fill_(1)  # so that stochastic depth keeps every layer
        self.work.path = self.graph.scope
        flops = self.work.add(func, args, kwargs, out, is_backward=False)
        count = len(self.graph.nodes)
        self._record(func, name, translate, args, kwargs, out)
        if flops and (products := self.graph.products_from(count)):
            self.graph.products.append(g.Product(self.graph.scope, flops, products))
        names = [node.name for node in self.graph.nodes[count:]]
        self.graph.offloaded += names if names and _offloads() else []
        self.graph.repeated += names if self.gradient_mode.checkpoints and self.gradient_mode.is_enabled else []
        return out

    def _of_one_type(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of a recurrence: beside half precision, autocast converts all operands for cuDNN."""
        half = next((one.dtype for one in tensors_of(args) if one.dtype in HALVES), None)
        if half is None or all(one.dtype != torch.float32 for one in tensors_of(args)):
            return args
        self.graph.needs_autocast = True
        with self:
            return pytree.tree_map(lambda one: one.to(half) if getattr(one, "dtype", None) == torch.float32 else one, args)  # type: ignore[no-any-return]

    def _numbers(self, tensor: torch.Tensor) -> list[int]:
        content = self._known.get(tensor)
        if content is None:
            raise DataDependent[0](torch.ops.aten._local_scalar_dense.default)
        with outside():
            return content.tolist()

    def _take_apart(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        cell = CELLS.get(func._schema.name.split("::")[-1])
        if cell is not None and self.fake:
            with self, self._one_kernel():
                return cell(*args, **kwargs)
        if func.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd):
            with self:
                return func.decompose(*args, **kwargs)
        if func in decomposition_table and not func._schema.is_mutable and not has_price(func):
            with self, self._one_kernel():
                return decomposition_table[func](*args, **kwargs)
        return NotImplemented

    @contextlib.contextmanager
    def _one_kernel(self) -> Iterator[None]:
        self._taking_apart += 1
        try:
            yield
        finally:
            self._taking_apart -= 1

    def finish(self) -> None:
        """Lists the results that no output needs, after the run."""
        needed, results = set(self.graph.outputs), set(self._results)
        for node in reversed(self.graph.nodes):
            own = [value for value in node.outputs if value is not None]
            if needed.isdisjoint(own):
                unread = next((value for value in own if value in results), None)
                if unread is None:
                    continue
                self.graph.unread.append(unread)
            needed.update(value for value in node.inputs if value is not None)

    # ---- Recording ---------------------------------------------------------------------------------------------------

    def _record(
        self,
        func: Any,
        name: str,
        translate: Callable[[Call], Any] | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Any,
    ) -> None:
        outputs = tensors_of(out)
        if not outputs:
            return
        has_gradient = self.gradient_mode.is_enabled
        call = Call(self.graph, self._read if has_gradient else self.value, func, args, kwargs, outputs)
        if not call.operands:  # a factory function
            for tensor in outputs:
                self.bind(tensor, self._constant(tensor))
                self._values[tensor].noise = name in _RANDOM
            return
        is_complex = formula_of(func) is not None and any(tensor.is_complex() for tensor in call.tensors)
        is_sparse = any(tensor.layout == torch.sparse_coo for tensor in (*call.tensors, *outputs))
        made = translate(call) if translate is not None and not is_complex and not is_sparse else None
        if made is None:
            made = price(call, func, args, kwargs, out)
        if made is None:
            made = call.as_it_is(func.namespace, name)
        values = [made] if isinstance(made, g.Value) else list(made)
        for value in values if not has_gradient else ():
            if value.kind == "data" and value not in call.operands:
                value.has_gradient = False
        for tensor, value in zip(outputs, values):
            if value.shape != shape_of(tensor):
                value = self.graph.reshape(value, shape_of(tensor))
            self._place(func, name, call, tensor, value)
        if not self._taking_apart and name not in _VIEWS and not is_view(func):
            self._results += values[:1]
        self._keep_constants(outputs)

    def _place(self, func: Any, name: str, call: Call, tensor: torch.Tensor, value: g.Value) -> None:
        changed = func._schema.is_mutable
        self.bind(tensor, value)
        if changed:
            self._write_back(tensor, value)
        elif (name in _VIEWS or is_view(func)) and call.tensors:
            self._parents[tensor] = call.tensors[0]

    def _keep_constants(self, outputs: list[torch.Tensor]) -> None:
        """Stores the values of results from constants alone."""
        for tensor in outputs:
            value = self._values[tensor]
            if value.kind == "constant" and value.data is None and not value.noise:
                self.bind(tensor, self._constant(tensor))

    def _write_back(self, tensor: torch.Tensor, value: g.Value) -> None:
        """Records that a write into a view changes the view's base tensor."""
        parent = self._parents.get(tensor)
        if parent is None or parent is tensor:
            return
        old = self.value(parent)
        if old.count == value.count:
            new = self.graph.reshape(value, old.shape)
        elif len(old.shape) == len(value.shape):
            indices = self.graph.constant(value.shape, g.INT64)
            new = self.graph.op("ScatterElements", [old, indices, value], old.shape, old.dtype)
        else:
            shape = (value.count,)
            indices = self.graph.constant((value.count, len(old.shape)), g.INT64)
            new = self.graph.op("ScatterND", [old, indices, self.graph.reshape(value, shape)], old.shape, old.dtype)
        self.bind(parent, new)
        self._write_back(parent, new)


_OF_ONE_TYPE = {"linear", "addmm", "mm", "bmm", "baddbmm", "mv", "addmv", "dot"}
"""Products whose operands have one type in PyTorch. Kernels for tensors without data take any."""


def _check_types(args: tuple[Any, ...]) -> None:
    """Raises as PyTorch does. Operands in half precision may be mixed with fp32, because Trainer's autocast converts them."""
    types = {one.dtype for one in args if isinstance(one, torch.Tensor) and not one.is_sparse}
    if len(types) > 1 and not types <= {torch.float32, *HALVES}:
        found = " and ".join(sorted(str(one).removeprefix("torch.") for one in types))
        raise RuntimeError(f"the operands of a product have the types {found}, and PyTorch multiplies equal types only")


def _offloads() -> bool:
    """Whether hooks on saved tensors move them to the host, for example torch.autograd.graph.save_on_cpu."""
    top: Any = torch._C._autograd._top_saved_tensors_default_hooks(True)
    name = getattr(top[0], "__qualname__", "").lower() if top is not None else ""
    return "save_on_cpu" in name or "offload" in name


_RANDOM = {"rand", "randn", "rand_like", "randn_like", "bernoulli", "bernoulli_", "uniform_", "normal_", "randint", "randperm"}
