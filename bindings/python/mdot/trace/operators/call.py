"""One ATen operator call for the translations: arguments by name, tensors as graph values."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import torch

from mdot.trace.graph import BOOL, FLOATS, INT64, Graph, Value

DTYPES = {
    torch.float32: 1,
    torch.uint8: 2,
    torch.int8: 3,
    torch.int16: 5,
    torch.int32: 6,
    torch.int64: 7,
    torch.bool: 9,
    torch.float16: 10,
    torch.float64: 11,
    torch.bfloat16: 16,
    torch.complex64: 11,  # ONNX names these types but has no operators for them; only their sizes count
    torch.complex128: 11,
    torch.float8_e4m3fn: 2,
    torch.float8_e5m2: 2,
    torch.uint16: 4,
    torch.uint32: 12,
    torch.uint64: 13,
}


def shape_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """The shape of a tensor's value. A sparse one's has a row for each element: its number, and two for each index of 64 bits."""
    if tensor.layout != torch.sparse_coo:
        return tuple(tensor.shape)
    return (tensor._nnz(), tensor._values().shape[1:].numel() + 2 * tensor.sparse_dim())


class Call:
    def __init__(
        self,
        graph: Graph,
        value_of: Callable[[torch.Tensor], Value],
        func: Any,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        outputs: Sequence[torch.Tensor],
    ) -> None:
        self.graph = graph
        self.outputs = outputs
        self.tensors: list[torch.Tensor] = []
        self.operands: list[Value] = []
        """All tensors among the arguments, in order."""
        self._value_of = value_of
        self._arguments: dict[str, Any] = {}
        for i, argument in enumerate(func._schema.arguments):
            if i < len(args):
                value = args[i]
            elif argument.name in kwargs:
                value = kwargs[argument.name]
            else:
                value = argument.default_value if argument.has_default_value() else None
            self._arguments[argument.name] = self._convert(value)

    def _convert(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            self.tensors.append(value)
            self.operands.append(self._value_of(value))
            return self.operands[-1]
        if isinstance(value, (list, tuple)):
            return [self._convert(item) for item in value]
        return value

    def __getitem__(self, name: str) -> Any:
        return self._arguments[name]

    def get(self, *names: str) -> Any:
        """The argument with one of the names, or None."""
        for name in names:
            if name in self._arguments:
                return self._arguments[name]
        return None

    @property
    def x(self) -> Value:
        """The first tensor."""
        return self.operands[0]

    @property
    def shape(self) -> tuple[int, ...]:
        return shape_of(self.outputs[0])

    @property
    def dtype(self) -> int:
        return DTYPES[self.outputs[0].dtype]

    def result(self, op: str, inputs: Sequence[Value | None], **attributes: Any) -> Value:
        """Adds a node whose result is the call's result."""
        return self.graph.op(op, inputs, self.shape, self.dtype, **attributes)

    def operand(self, value: Any, dtype: int) -> Value:
        """Converts a tensor or a number to a value of this type."""
        if not isinstance(value, Value):
            return self.graph.scalar(value, dtype)
        return self.graph.cast(value, dtype)

    def common_dtype(self, *operands: Any) -> int:
        """The compared operands' common type, because the result's type does not determine it there."""
        dtypes = [value.dtype for value in operands if isinstance(value, Value) and value.shape]
        dtypes = dtypes or [value.dtype for value in operands if isinstance(value, Value)]
        floats = [dtype for dtype in dtypes if dtype in FLOATS]
        if not floats and any(isinstance(value, float) for value in operands):
            return 1
        return (floats or [dtype for dtype in dtypes if dtype != BOOL] or [INT64])[0]

    def places(self) -> list[Value]:
        """Places of the elements other than 0: a prefix sum over the elements gives each place."""
        outputs = [(tuple(tensor.shape), INT64) for tensor in self.outputs]
        return self.graph.node("nonzero", [self.x], outputs, domain="mdot.call", flops=float(self.x.count), type="CumSum")

    def as_it_is(self, namespace: str, name: str) -> list[Value]:
        """Adds an operator of unknown type, with tensor sizes only."""
        outputs = [(shape_of(tensor), DTYPES[tensor.dtype]) for tensor in self.outputs]
        return self.graph.node(name, self.operands, outputs, domain=namespace)


def axis_of(axis: int, rank: int) -> int:
    return axis % rank if rank else 0
