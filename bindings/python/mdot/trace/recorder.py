"""Intercepts every operator that a module calls, and adds it to a graph.

The Recorder is a TorchDispatchMode: PyTorch calls it instead of each ATen operator. In inference mode it receives composite
operators whole (`linear`, `layer_norm`). PyTorch's own kernels or decompositions decompose the operators that operators/ does
not translate, until a translation exists or an indivisible operator is left.

Values that do not depend on the module's parameters (masks, positions, targets) are also computed for real, if they are
small, so that a module may base decisions on them.
"""

from __future__ import annotations

import contextlib
import operator
from typing import Any, Callable, Iterator

import torch
from torch._decomp import decomposition_table
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary

from mdot.trace import graph as g
from mdot.trace.budget import Budget
from mdot.trace.operators import TRANSLATIONS
from mdot.trace.operators.call import DTYPES, Call

MOST_KNOWN = 1 << 22
"""Maximum number of elements of a tensor that is computed for real beside the run."""
MOST_DATA = 64
"""Maximum number of elements of a constant whose values are written. Small ones suffice for a reader's shape computations."""

DataDependent = (DataDependentOutputException, DynamicOutputShapeException)

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
        self._values: Any = WeakIdKeyDictionary()
        self._known: Any = WeakIdKeyDictionary()
        """The content of fake tensors, where it is known."""
        self._parents: Any = WeakIdKeyDictionary()
        """The base tensor of each view."""

    # ---- Tensors -----------------------------------------------------------------------------------------------------

    def bind(self, tensor: torch.Tensor, value: g.Value) -> None:
        self._values[tensor] = value

    def know(self, tensor: torch.Tensor, content: torch.Tensor) -> None:
        if self.fake and content.numel() <= MOST_KNOWN:
            self._known[tensor] = content

    def value(self, tensor: torch.Tensor) -> g.Value:
        """The tensor's value in the graph. A tensor that no recorded operator produced becomes a constant."""
        found: g.Value | None = self._values.get(tensor)
        if found is None:
            if self.fake and not isinstance(tensor, FakeTensor):
                self.know(tensor, tensor)
            found = self._constant(tensor)
            self.bind(tensor, found)
        return found

    def _constant(self, tensor: torch.Tensor) -> g.Value:
        content = self._known.get(tensor) if self.fake else tensor
        dtype = DTYPES[tensor.dtype]
        data = None
        writable = tensor.dtype in (torch.int32, torch.int64, torch.bool, torch.float32) and tensor.layout == torch.strided
        small = tensor.numel() <= (1 if tensor.is_floating_point() else MOST_DATA)
        if content is not None and writable and small and content.device.type == "cpu":
            with _outside():
                data = g.pack(content.reshape(-1).tolist(), dtype)
        return self.graph.constant(tuple(tensor.shape), dtype, data)

    # ---- Operators ---------------------------------------------------------------------------------------------------

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func.namespace == "prim":
            return func(*args, **kwargs)
        name = func._schema.name.split("::")[-1]
        translate = TRANSLATIONS.get(name) or (TRANSLATIONS.get(name[:-1]) if name.endswith("_") else None)
        if translate is None:
            taken_apart = self._take_apart(func, args, kwargs)
            if taken_apart is not NotImplemented:
                return taken_apart
        out = self._run(func, args, kwargs)
        self._record(func, name, translate, args, kwargs, out)
        return out

    def _take_apart(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if func.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd):
            with self:
                return func.decompose(*args, **kwargs)
        if func in decomposition_table and not func._schema.is_mutable:
            with self:
                return decomposition_table[func](*args, **kwargs)
        return NotImplemented

    # ---- Running -----------------------------------------------------------------------------------------------------

    def _run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not self.fake:
            out = self.budget.run(func, args, kwargs)
            return out.fill_(1) if func._schema.name == "aten::rand" and out.numel() == 1 else out  # as below
        known = self._compute(func, args, kwargs)
        if func._schema.name == "aten::rand" and known is not None and known.numel() == 1:
            with _outside():
                known = torch.ones_like(known)  # so that stochastic depth keeps every layer
        if known is not None and _depends_on_data(func):
            return self._pretend(known)
        out = func(*args, **kwargs)
        if known is not None:
            fakes, contents = pytree.tree_leaves(out), pytree.tree_leaves(known)
            for fake, content in zip(fakes, contents):
                if isinstance(fake, torch.Tensor) and isinstance(content, torch.Tensor):
                    self.know(fake, content)
        elif func._schema.is_mutable:
            for tensor in _tensors(out):
                self._known.pop(tensor, None)
        return out

    def _compute(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result on known contents; None if the content of an operand is unknown."""
        for tensor in _tensors((args, kwargs)):
            if tensor not in self._known and (isinstance(tensor, FakeTensor) or tensor.numel() > MOST_KNOWN):
                return None

        def content(leaf: Any) -> Any:
            if isinstance(leaf, torch.Tensor):
                known = self._known.get(leaf, leaf)
                return known.clone() if func._schema.is_mutable else known
            return torch.device("cpu") if isinstance(leaf, torch.device) else leaf

        if not _is_small(func, args):
            return None
        with _outside():
            try:
                return func(*pytree.tree_map(content, args), **pytree.tree_map(content, kwargs))
            except Exception:  # if the computation fails, the result is unknown
                return None

    def _pretend(self, known: Any) -> Any:
        """Wraps a result whose shape depends on data in fake tensors of that shape."""

        def make(leaf: Any) -> Any:
            if not isinstance(leaf, torch.Tensor):
                return leaf
            fake = torch.empty(leaf.shape, dtype=leaf.dtype)  # created in the fake mode below this one
            self.know(fake, leaf)
            return fake

        return pytree.tree_map(make, known)

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
        outputs = _tensors(out)
        if not outputs:
            return
        call = Call(self.graph, self.value, func, args, kwargs, outputs)
        if not call.operands:  # a factory function
            for tensor in outputs:
                self.bind(tensor, self._constant(tensor))
                self._values[tensor].noise = name in _RANDOM
            return
        made = translate(call) if translate is not None else None
        if made is None:
            made = call.as_it_is(func.namespace, name)
        values = [made] if isinstance(made, g.Value) else list(made)
        for tensor, value in zip(outputs, values):
            if value.shape != tuple(tensor.shape):
                value = self.graph.reshape(value, tuple(tensor.shape))
            self._place(func, name, call, tensor, value)
        self._keep_constants(outputs)

    def _place(self, func: Any, name: str, call: Call, tensor: torch.Tensor, value: g.Value) -> None:
        changed = func._schema.is_mutable
        self.bind(tensor, value)
        if changed:
            self._write_back(tensor, value)
        elif name in _VIEWS and call.tensors:
            self._parents[tensor] = call.tensors[0]

    def _keep_constants(self, outputs: list[torch.Tensor]) -> None:
        """Stores the values of results that were computed from constants alone."""
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


_RANDOM = {"rand", "randn", "rand_like", "randn_like", "bernoulli", "bernoulli_", "uniform_", "normal_", "randint", "randperm"}
_DATA_DEPENDENT = {
    "_local_scalar_dense", "item", "nonzero", "nonzero_numpy", "masked_select", "unique", "_unique2", "unique_dim",
    "unique_consecutive", "is_nonzero", "equal", "bincount", "repeat_interleave", "argwhere", "index", "where",
    "combinations", "nms", "allclose",
}  # fmt: skip


def _depends_on_data(func: Any) -> bool:
    """Whether the shapes, or the Python numbers, of the results depend on the content of tensors."""
    name = func._schema.name.split("::")[-1]
    tags = getattr(func, "tags", ())
    return (
        torch.Tag.data_dependent_output in tags or torch.Tag.dynamic_output_shape in tags or name in _DATA_DEPENDENT
    )


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _is_small(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether a factory's result is small. Its size is the first argument."""
    if not args or not isinstance(args[0], (list, tuple)):
        return True
    sizes = [n for n in args[0] if isinstance(n, int)]
    count = 1
    for n in sizes:
        count = operator.mul(count, n)
    return count <= MOST_KNOWN


@contextlib.contextmanager
def _outside() -> Iterator[None]:
    """Disables all dispatch modes, so that operators compute real values."""
    from torch.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes():
        yield
