"""Runs frequent operators on fake tensors without a dispatch by FakeTensorMode.

FakeTensorMode looks up each call in a cache, by the metadata of all operands. Views and matmuls have meta kernels in
C++, faster than the lookup. An elementwise operator on contiguous operands in one type has a contiguous result in
this type, without a kernel. FakeTensorMode has no special rules for either kind, therefore the results are the same.
"""

from __future__ import annotations

from typing import Any, Sequence

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, in_kernel_invocation_manager
from torch.utils._python_dispatch import _disable_current_modes

_CPU = torch.device("cpu")
_FLOATS = (torch.float32, torch.bfloat16, torch.float16)
_IN_CPP = (
    "_unsafe_view", "addmm", "alias", "bmm", "detach", "expand", "mm", "permute", "select", "slice", "squeeze", "t", "transpose",
    "unsqueeze", "view",
)  # fmt: skip
"""Views and matmuls."""
_OVERLOADS = ("default", "Tensor", "Scalar", "Tensor_Scalar", "Tensor_Tensor")
"""Those of elementwise operators without rounding modes."""
_ELEMENTWISE = (
    "add", "cos", "div", "exp", "gelu", "gelu_backward", "mul", "neg", "pow", "relu", "rsqrt", "sigmoid", "sigmoid_backward", "silu",
    "silu_backward", "sin", "sqrt", "sub", "tanh", "tanh_backward", "threshold_backward",
)  # fmt: skip


def _overloads(names: tuple[str, ...]) -> frozenset[Any]:
    """The overloads that return one tensor and only read the others."""
    found = []
    for name in names:
        packet = getattr(torch.ops.aten, name, None)
        for overload in packet.overloads() if packet is not None else ():
            if name in _ELEMENTWISE and overload not in _OVERLOADS:
                continue
            op = getattr(packet, overload)
            arguments, returned = op._schema.arguments, [str(result.type) for result in op._schema.returns]
            has_tensor = bool(arguments) and str(arguments[0].type) == "Tensor"
            if has_tensor and returned == ["Tensor"] and not op._schema.is_mutable and "Dimname" not in str(op._schema):
                found.append(op)
    return frozenset(found)


IN_CPP, ELEMENTWISE = _overloads(_IN_CPP), _overloads(_ELEMENTWISE)


class MetaKernels:
    """Runs operators below `mode`."""

    def __init__(self, mode: FakeTensorMode) -> None:
        self._mode = mode
        self.shortcuts = 0
        """Calls that bypassed the mode."""

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if func in IN_CPP and not kwargs and all(self._is_ours(value) for value in args):
            try:
                with in_kernel_invocation_manager(self._mode):
                    out = func(*args)
            except RuntimeError:  # the mode raises PyTorch's familiar message
                return func(*args)
        elif func in ELEMENTWISE and (like := self._shape_of_all(args, kwargs)) is not None:
            with _disable_current_modes():
                out = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device="meta")
        else:
            return func(*args, **kwargs)
        self.shortcuts += 1
        return FakeTensor(self._mode, out, _CPU)

    def _is_ours(self, value: Any) -> bool:
        """True for numbers, lists, and the mode's fake tensors on the CPU with unknown contents."""
        if not isinstance(value, FakeTensor):
            return not isinstance(value, torch.Tensor)
        is_plain = value.constant is None and value.layout == torch.strided
        return is_plain and value.fake_mode is self._mode and value.fake_device == _CPU

    def _shape_of_all(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor | None:
        """The largest operand, if all tensors are contiguous, in one floating-point type, and have its shape or its
        last dimensions. Numbers leave such a type as it is, unless they are complex."""
        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        if any(isinstance(value, (torch.Tensor, complex)) for value in (*kwargs.values(), *args[len(tensors) :])):
            return None
        largest = max(tensors, key=torch.Tensor.dim)
        dtype, shape, strides = largest.dtype, largest.shape, largest.stride()
        if dtype not in _FLOATS or strides != _row_major(shape):
            return None
        for value in tensors:
            skipped = len(shape) - value.dim()
            is_alike = value.dtype == dtype and value.shape == shape[skipped:] and value.stride() == strides[skipped:]
            if not is_alike or not self._is_ours(value):
                return None
        return largest


def _row_major(shape: Sequence[int]) -> tuple[int, ...]:
    strides, size = [], 1
    for extent in reversed(shape):
        strides.append(size)
        size *= max(extent, 1)
    return tuple(reversed(strides))
