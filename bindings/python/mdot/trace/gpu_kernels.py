"""Runs dropout and attention as a program on a GPU does, where the CPU or a fake tensor would take another way."""

from __future__ import annotations

import functools
import math
from typing import Any, Sequence

import torch
import torch.nn.functional as F
from torch.nested._internal.nested_tensor import NestedTensor
from torch.overrides import TorchFunctionMode

from mdot.trace import recurrences
from mdot.trace.autocast import HALVES

_MOST_FLASH_CHANNELS = 256
_REPLACED = ("dropout", "rms_norm", "scaled_dot_product_attention")


class GpuKernels(TorchFunctionMode):
    """Dropout keeps a mask with one byte per element. RMSNorm is one kernel, which keeps its operand. Attention runs PyTorch's
    kernel for compute capability 8.0. Cells of recurrences are two products and one kernel, and recurrences one kernel. The functions in torch.nn.functional are replaced too, because modes are off while the backward pass
    recomputes a checkpointed region."""

    _depth = 0

    def __enter__(self) -> Any:
        self._depth += 1
        if self._depth == 1:  # the backward pass enters again
            self._originals = {name: getattr(F, name) for name in _REPLACED}
            for name, func in self._originals.items():
                setattr(F, name, functools.partial(self._call, func))
        return super().__enter__()  # type: ignore[no-untyped-call]

    def __exit__(self, *reason: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            for name, func in self._originals.items():
                setattr(F, name, func)
        super().__exit__(*reason)  # type: ignore[no-untyped-call]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._call(func, *args, **(kwargs or {}))

    def _call(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        if func in (self._originals["dropout"], torch.dropout):
            return _dropout(func, *args, **kwargs)
        if func in (self._originals["rms_norm"], torch.rms_norm):
            return _normalise(func, *args, **kwargs)
        if func in (torch.lstm_cell, torch.gru_cell) and not kwargs:
            weights = args[2:4]  # the products cast these once
            return CELLS[func.__name__](*map(_in_autocast, args[:2]), *weights, *map(_in_autocast, args[4:]))
        if func in recurrences.FUNCTIONS and not kwargs:
            return recurrences.run(recurrences.FUNCTIONS[func], [_in_autocast(one) for one in args])
        attends = func is self._originals["scaled_dot_product_attention"] and not any(isinstance(one, NestedTensor) for one in args)
        return attend(*args, **kwargs) if attends else func(*args, **kwargs)


def _dropout(
    func: Any, input: Any, p: float = 0.5, training: bool = True, inplace: bool = False, train: bool = True
) -> Any:
    """`func` is torch.nn.functional.dropout, or torch.dropout, whose third argument is `train`. Dropout in place
    multiplies by a mask in the operand's type, on a GPU as well."""
    if not (training and train) or p == 0:
        return input
    return func(input, p, True, True) if inplace else torch.native_dropout(input, p, True)[0]


class _FusedNorm(torch.autograd.Function):
    """The tensors of CUDA's _fused_rms_norm."""

    @staticmethod
    def forward(context: Any, input: Any, weight: Any, axes: int) -> Any:
        scale = input.new_empty((*input.shape[: input.dim() - axes], *[1] * axes), dtype=torch.float32)
        context.save_for_backward(input, weight, scale)
        return torch.empty_like(input)

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        input, weight, _ = context.saved_tensors
        return torch.empty_like(input), None if weight is None else torch.empty_like(weight), None


def _normalise(func: Any, input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    """One kernel on CUDA from PyTorch 2.9 on, if the types agree. The CPU composes the same result."""
    if torch.is_autocast_enabled("cpu"):
        input, weight = (_narrowed(tensor, torch.float32) for tensor in (input, weight))
    has_kernel = hasattr(torch.ops.aten, "_fused_rms_norm_backward")
    if not has_kernel or (weight is not None and weight.dtype != input.dtype):
        return func(input, normalized_shape, weight, eps)
    return _FusedNorm.apply(input, weight, len(normalized_shape))


# ---- Recurrences and norms ---------------------------------------------------------------------------------------------


def _lstm_cell(input: Any, state: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> tuple[Any, Any]:
    hidden, cell = state
    made: tuple[Any, Any] = torch.ops.aten._thnn_fused_lstm_cell(F.linear(input, w_ih), F.linear(hidden, w_hh), cell, b_ih, b_hh)[:2]
    return made


def _gru_cell(input: Any, hidden: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    return torch.ops.aten._thnn_fused_gru_cell(F.linear(input, w_ih), F.linear(hidden, w_hh), hidden, b_ih, b_hh)[0]


CELLS = {"lstm_cell": _lstm_cell, "gru_cell": _gru_cell}
"""Cells of recurrences as on CUDA, by ATen's names. The CPU composes them from ten operators and keeps other tensors."""

def with_elements(args: Sequence[Any], out: Any) -> Any:
    """The sparse result of an operator. Without data, PyTorch's own one has no elements; it has as many as the largest
    operand, with as many dimensions in the values."""
    if not isinstance(out, torch.Tensor) or out.layout != torch.sparse_coo or out._nnz() > 0:
        return out
    given = [one for one in args if isinstance(one, torch.Tensor) and one.layout == torch.sparse_coo]
    if not given:
        return out
    like = max(given, key=lambda one: int(one._nnz()))
    count, dimensions = like._nnz(), out.sparse_dim()
    values = torch.empty((count, *out.shape[dimensions:]), dtype=out.dtype)
    indices = torch.empty((dimensions, count), dtype=torch.int64)
    return torch.sparse_coo_tensor(indices, values, out.shape, check_invariants=False, is_coalesced=out.is_coalesced())


LIKE_OPERAND = frozenset({"_sparse_softmax", "_sparse_log_softmax", "_sparse_softmax_backward_data", "_sparse_log_softmax_backward_data"})
"""Operators without a kernel for tensors without data. Their result is like the first operand."""


def like_operand(_: Any, args: Sequence[Any], __: Any) -> Any:
    return torch.zeros_like(args[0])


def as_on_cuda(name: str, args: Sequence[Any], out: Any) -> Any:
    """The results of an operator, with the sizes and types that CUDA's kernel gives those that the backward pass needs."""
    if name == "_cudnn_rnn":
        return recurrences.with_reserve(args, out)
    if name == "log_sigmoid_forward":
        return out[0], out[1].new_empty(0)
    if name in ("native_layer_norm", "native_batch_norm") and args[0].dtype in HALVES:
        return out[0], *(tensor.new_empty(tensor.shape, dtype=torch.float32) for tensor in out[1:])
    if name == "_embedding_bag":  # the bag of each index, and no places of maxima
        is_maximum = len(args) > 4 and args[4] == 2
        return out[0], out[1].new_empty(args[1].numel()), out[2], out[3] if is_maximum else out[3].new_empty(0)
    return out


CHANGED = frozenset({"_cudnn_rnn", "log_sigmoid_forward", "native_layer_norm", "native_batch_norm", "_embedding_bag"})
"""Operators that `as_on_cuda` changes."""


# ---- Attention -------------------------------------------------------------------------------------------------------


def attend(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """torch.nn.functional.scaled_dot_product_attention by the kernel of a GPU."""
    query, key, value, attn_mask = _in_autocast((query, key, value, attn_mask))
    kernel = choose(query, key, value, attn_mask, is_causal, enable_gqa)
    aten = torch.ops.aten
    if kernel == "flash":
        return _flash(query, key, value, dropout_p, is_causal, scale)
    if kernel == "efficient":
        bias = None if attn_mask is None else _bias(attn_mask, query, key)
        learns = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (query, key, value))
        return aten._scaled_dot_product_efficient_attention(
            query, key, value, bias, learns, dropout_p, is_causal, scale=scale
        )[0]
    return aten._scaled_dot_product_attention_math(
        query, key, value, _additive(attn_mask, query), dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
    )[0]


def choose(query: Any, key: Any, value: Any, mask: Any, is_causal: bool, is_grouped: bool) -> str:
    """"flash", "efficient" or "math", in the order of PyTorch's sdp_utils.cpp."""
    operands = (query, key, value)
    if any(tensor.dim() != 4 or tensor.stride(-1) != 1 or 0 in tensor.shape for tensor in operands):
        return "math"
    if mask is not None and is_causal:
        return "math"
    heads = {tensor.shape[1] for tensor in operands}
    channels = {tensor.shape[-1] for tensor in operands}
    shares_heads = len(heads) == 1 or (is_grouped and query.shape[1] % key.shape[1] == 0)
    is_square = not is_causal or query.shape[2] == key.shape[2]
    is_half = query.dtype in HALVES
    if is_half and mask is None and len(channels) == 1 and max(channels) <= _MOST_FLASH_CHANNELS and shares_heads and is_square:
        return "flash"
    is_aligned = all(size % (8 if is_half else 4) == 0 for size in channels)
    return "efficient" if (is_half or query.dtype == torch.float32) and len(heads) == 1 and is_aligned else "math"


def _narrowed(tensor: Any, dtype: torch.dtype) -> Any:
    return tensor.to(dtype) if isinstance(tensor, torch.Tensor) and tensor.is_floating_point() else tensor


def _in_autocast(value: Any) -> Any:
    """A tensor or a tuple of tensors in the type of autocast, if it is active."""
    if not torch.is_autocast_enabled("cpu"):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(_in_autocast(one) for one in value)
    return _narrowed(value, torch.get_autocast_dtype("cpu"))


def _additive(mask: Any, query: Any) -> Any:
    if mask is None or mask.dtype != torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=query.dtype).masked_fill_(mask.logical_not(), -math.inf)


def _bias(mask: Any, query: Any, key: Any) -> Any:
    """The additive mask for the memory-efficient kernel: rows are padded to a multiple of 16 elements."""
    mask = _additive(mask, query)
    length = mask.shape[-1]
    if length % 16:
        mask = F.pad(mask, (0, 16 - length % 16))[..., :length]
    while mask.dim() < 4:
        mask = mask.unsqueeze(0)
    return mask.expand(*query.shape[:3], key.shape[2])


def _flash(query: Any, key: Any, value: Any, dropout_p: float, is_causal: bool, scale: float | None) -> Any:
    """Channels are padded to a multiple of 8."""
    size = query.shape[-1]
    scale = 1 / math.sqrt(size) if scale is None else scale
    if size % 8:
        query, key, value = (F.pad(tensor, (0, 8 - size % 8)) for tensor in (query, key, value))
    out = torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, False, scale=scale)[0]
    return out[..., :size] if size % 8 else out
