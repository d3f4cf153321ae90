"""The kernel that scaled_dot_product_attention selects on an NVIDIA GPU of compute capability 8.0: flash, else efficient,
else math, as PyTorch's sdp_utils.cpp does. Fake tensors have no card that PyTorch could ask, and would always get math.

mdot/trace/gpu_kernels.py makes the same choice. The code is separate, because this one is the reference that tests it."""

from __future__ import annotations

import collections
import math

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

HALF = (torch.float16, torch.bfloat16)
MAX_FLASH_HEAD = 256


def choose(query, key, value, mask, is_causal: bool, is_grouped: bool) -> str:
    """Returns "flash", "efficient" or "math"."""
    if any(tensor.dim() != 4 for tensor in (query, key, value)) or 0 in (*query.shape, *key.shape):
        return "math"
    if any(tensor.stride(-1) != 1 for tensor in (query, key, value)) or (mask is not None and is_causal):
        return "math"
    heads = {tensor.shape[1] for tensor in (query, key, value)}
    has_equal_sizes = query.shape[-1] == key.shape[-1] == value.shape[-1]
    is_square_if_causal = not is_causal or query.shape[2] == key.shape[2]
    if (query.dtype in HALF and mask is None and has_equal_sizes and query.shape[-1] <= MAX_FLASH_HEAD
            and (len(heads) == 1 or (is_grouped and query.shape[1] % key.shape[1] == 0)) and is_square_if_causal):
        return "flash"
    alignment = 8 if query.dtype in HALF else 4
    is_aligned = query.shape[-1] % alignment == 0 and value.shape[-1] % alignment == 0
    if query.dtype in (*HALF, torch.float32) and len(heads) == 1 and is_aligned:
        return "efficient"
    return "math"


def _bias(mask: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """The additive mask for the memory-efficient kernel: rows are padded to a multiple of 16 elements."""
    if mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill_(mask.logical_not(), -math.inf)
    length = mask.shape[-1]
    if length % 16:
        mask = F.pad(mask, (0, 16 - length % 16))[..., :length]
    while mask.dim() < 4:
        mask = mask.unsqueeze(0)
    return mask.expand(*query.shape[:3], key.shape[2])


def _flash(query, key, value, dropout: float, is_causal: bool, scale):
    size = query.shape[-1]
    scale = 1 / math.sqrt(size) if scale is None else scale
    if size % 8:
        query, key, value = (F.pad(tensor, (0, 8 - size % 8)) for tensor in (query, key, value))
    out = torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, dropout, is_causal, False, scale=scale)[0]
    return out[..., :size] if size % 8 else out


ORIGINAL = F.scaled_dot_product_attention


class AttentionKernels(TorchFunctionMode):
    """Calls the selected kernel. `calls` counts them by name. The function of torch.nn.functional is replaced too, because modes
    are off while the backward pass recomputes a checkpointed region."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: collections.Counter[str] = collections.Counter()

    def __enter__(self):
        F.scaled_dot_product_attention = self._attend
        return super().__enter__()

    def __exit__(self, *reason) -> None:
        F.scaled_dot_product_attention = ORIGINAL
        super().__exit__(*reason)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is not ORIGINAL:
            return func(*args, **(kwargs or {}))
        return self._attend(*args, **(kwargs or {}))

    def _attend(self, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if torch.is_autocast_enabled("cuda"):
            narrow = torch.get_autocast_dtype("cuda")
            query, key, value = (tensor.to(narrow) if tensor.is_floating_point() else tensor for tensor in (query, key, value))
            if attn_mask is not None and attn_mask.is_floating_point():
                attn_mask = attn_mask.to(narrow)
        kernel = choose(query, key, value, attn_mask, is_causal, enable_gqa)
        self.calls[kernel] += 1
        needs_gradient = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (query, key, value))
        aten = torch.ops.aten
        if kernel == "flash":
            return _flash(query, key, value, dropout_p, is_causal, scale)
        if kernel == "efficient":
            bias = None if attn_mask is None else _bias(attn_mask, query, key)
            return aten._scaled_dot_product_efficient_attention(query, key, value, bias, needs_gradient, dropout_p, is_causal,
                                                                scale=scale)[0]
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(attn_mask.logical_not(), -math.inf)
        return aten._scaled_dot_product_attention_math(query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale,
                                                       enable_gqa=enable_gqa)[0]
