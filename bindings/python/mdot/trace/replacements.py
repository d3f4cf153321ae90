"""Replaces parts of PyTorch that need a device, a compiler or gradients during a trace."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections import OrderedDict
from typing import Any, Iterator
from unittest import mock

import torch
import torch.autograd.forward_ad
import torch.autograd.functional
import torch.func
from torch import nn
from torch._functorch import eager_transforms
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd.graph import save_on_cpu
from torch.nn import functional
from torch.utils.hooks import RemovableHandle

from mdot.trace import recurrences
from mdot.trace.known_calls import outside


@contextlib.contextmanager
def active(notes: list[str], has_backward: bool = False) -> Iterator[None]:
    """Replaces them, and adds notes for the user. A run without backward pass refuses modules that compute gradients,
    and ignores gradient hooks."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(nn.SyncBatchNorm, "forward", _batch_norm))
        stack.enter_context(mock.patch.object(torch, "ctc_loss", _ctc_loss))
        stack.enter_context(mock.patch.object(FakeTensor, "get_nested_int", _nested_int, create=True))
        for target, name, value in [(save_on_cpu, "__init__", _save_on_host)] if has_backward else _gradients():
            stack.enter_context(mock.patch.object(target, name, value))
        if hasattr(torch.compiler, "set_stance"):  # PyTorch 2.6: compiled functions run as they were written
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        for target, name, value in [*_flex_attention(notes), *_unpacked_sequences(), *recurrences.replacements(), *_control_flow(), *_nested()]:
            stack.enter_context(mock.patch.object(target, name, value))
        yield


def _unpacked_sequences() -> Iterator[tuple[Any, str, Any]]:
    """transformers reads the positions to find out whether sequences are packed. Fake tensors hide them, so that it
    would build a mask for each pair of positions of each sample. A run on fake tensors takes sequences as unpacked."""
    masks = sys.modules.get("transformers.masking_utils")
    original = getattr(masks, "find_packed_sequence_indices", None)
    if original is not None:
        yield masks, "find_packed_sequence_indices", lambda ids: None if isinstance(ids, FakeTensor) else original(ids)


def _ctc_loss(scores: Any, targets: Any, lengths: Any, sizes: Any, *rest: Any) -> Any:
    """Lengths are tensors, because PyTorch writes numbers into memory that tensors without data lack."""
    lengths, sizes = (one if isinstance(one, torch.Tensor) else torch.tensor(one) for one in (lengths, sizes))
    return _CTC_LOSS(scores, targets, lengths, sizes, *rest)


_CTC_LOSS = torch.ctc_loss


def _nested_int(self: FakeTensor, *, coeff: Any = 1) -> Any:
    """The length of a nested tensor without data: a symbol for its offsets, as they have with data."""
    if self.nested_int_memo is None:
        self.nested_int_memo = torch._C._get_nested_int(next(_NESTED), 1)
    return self.nested_int_memo * coeff


_NESTED = itertools.count(1 << 32)
"""Numbers of symbols, beyond those of tensors with data."""


def _control_flow() -> Iterator[tuple[Any, str, Any]]:
    """Python's own control flow, because PyTorch compiles these functions."""

    def cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
        return true_fn(*operands) if pred else false_fn(*operands)

    def while_loop(cond_fn: Any, body_fn: Any, carried_inputs: Any) -> Any:
        while cond_fn(*carried_inputs):
            carried_inputs = body_fn(*carried_inputs)
        return tuple(carried_inputs)

    yield torch, "cond", cond
    if hasattr(torch, "while_loop"):  # PyTorch 2.9
        yield torch, "while_loop", while_loop
    if (module := sys.modules.get("torch._higher_order_ops")) is not None:
        yield module, "cond", cond
        yield module, "while_loop", while_loop


def _nested() -> Iterator[tuple[Any, str, Any]]:
    """Nested tensors have the jagged layout, because tensors without data have no other. Attention over them has CUDA's kernels."""

    def jagged(original: Any) -> Any:
        def make(tensors: Any, *args: Any, layout: Any = None, **kwargs: Any) -> Any:
            return original(tensors, *args, layout=torch.jagged, **kwargs)

        return make

    for name in ("nested_tensor", "as_nested_tensor"):
        yield torch.nested, name, jagged(getattr(torch.nested, name))
    try:
        from torch.nested._internal import sdpa
    except ImportError:
        return
    kinds = torch.nn.attention.SDPBackend

    def select(query: Any, key: Any, value: Any, mask: Any, *_: Any) -> Any:
        is_half = query.dtype in (torch.float16, torch.bfloat16)
        return kinds.MATH if mask is not None else kinds.FLASH_ATTENTION if is_half else kinds.EFFICIENT_ATTENTION

    yield sdpa, "_select_sdp_backend", select


def _batch_norm(self: nn.SyncBatchNorm, x: torch.Tensor) -> torch.Tensor:
    """SyncBatchNorm refuses tensors on the CPU. On one GPU, its operators are BatchNorm's."""
    statistics = self.running_mean, self.running_var
    return functional.batch_norm(x, *statistics, self.weight, self.bias, True, self.momentum or 0.0, self.eps)


def _save_on_host(self: save_on_cpu, *_: Any, **__: Any) -> None:
    """On a GPU, saved tensors leave its memory and come back as copies. The trace's tensors are on the CPU already."""

    def offload(tensor: torch.Tensor) -> Any:
        return (tuple(tensor.shape), tensor.stride()), tensor.dtype

    def restore(packed: Any) -> torch.Tensor:
        return torch.empty_strided(*packed[0], dtype=packed[1])

    super(save_on_cpu, self).__init__(offload, restore)


# ---- Gradients inside of the forward pass ------------------------------------------------------------------------------


class ComputesGradients(Exception):
    """The module computes gradients in its forward function, by calling the function in the text."""


_ENGINES = (
    (torch.autograd, "_engine_run_backward", "torch.autograd.grad or backward"),
    (torch.autograd.functional, "_autograd_grad", "torch.autograd.functional"),
    (torch.autograd.forward_ad, "enter_dual_level", "torch.autograd.forward_ad"),
    (eager_transforms, "grad_increment_nesting", "torch.func"),
    (eager_transforms, "jvp_increment_nesting", "torch.func"),
)
"""Where PyTorch starts to compute gradients, and the functions that lead there."""


def _refuse(caller: str) -> Any:
    def call(*_: Any, **__: Any) -> None:
        raise ComputesGradients(caller)

    return call


_ORIGINALS = [(target, name, getattr(target, name)) for target, name, _ in _ENGINES if hasattr(target, name)] + [
    (torch.Tensor, name, getattr(torch.Tensor, name)) for name in ("register_hook", "retain_grad")
]


@contextlib.contextmanager
def with_gradients() -> Iterator[None]:
    """Lets a module compute gradients, although these replacements refuse them. A call of `backward` stays refused, because
    it is the training step's own backward pass, which a job adds."""
    with contextlib.ExitStack() as stack:
        for target, name, value in [*_ORIGINALS, (torch.autograd, "backward", _refuse("backward"))]:
            stack.enter_context(mock.patch.object(target, name, value))
        yield


def _gradients() -> list[tuple[Any, str, Any]]:
    made: list[tuple[Any, str, Any]] = [
        (target, name, _refuse(caller)) for target, name, caller in _ENGINES if hasattr(target, name)
    ]
    made.append((torch.Tensor, "register_hook", lambda *_: RemovableHandle(OrderedDict())))
    made.append((torch.Tensor, "retain_grad", lambda *_: None))
    return made


# ---- flex_attention --------------------------------------------------------------------------------------------------


def _flex_attention(notes: list[str]) -> list[tuple[Any, str, Any]]:
    """flex_attention compiles its score and mask functions. The trace records fused attention with the same shapes."""
    try:
        from torch.nn.attention import flex_attention as module
    except ImportError:  # PyTorch 2.4
        return []
    if not hasattr(module, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG") or not hasattr(module, "flex_attention_hop"):
        return []

    def note(text: str) -> None:
        if not any(text[:32] in earlier for earlier in notes):
            notes.append(text)

    def attend(query: Any, key: Any, value: Any, score_mod: Any, block_mask: Any, scale: Any, *_: Any) -> Any:
        share = _skipped_share(block_mask)
        if share != 0:
            part = "a part" if share is None else f"{share:.0%}"
            note(f"flex_attention counts as attention over all blocks; its block mask skips {part} of them")
        if score_mod is not getattr(module, "_identity", None):
            note("flex_attention counts without its function of scores (score_mod), and without parameters that it alone reads")
        is_grouped = query.shape[1] != key.shape[1]
        out = functional.scaled_dot_product_attention(query, key, value, scale=scale, enable_gqa=is_grouped)
        statistics = torch.zeros(query.shape[:-1])
        return out, statistics, statistics

    made = [(module, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True), (module, "flex_attention_hop", attend)]
    if hasattr(module, "_validate_device"):  # refuses a backward pass on the CPU
        made.append((module, "_validate_device", lambda *_: None))
    return made


def _skipped_share(block_mask: tuple[Any, ...]) -> float | None:
    """The fraction of blocks that the mask skips. None: the mask's numbers are unknown to the trace."""
    first = next(i for i, item in enumerate(block_mask) if isinstance(item, torch.Tensor))
    counts, indices, full_counts = block_mask[first : first + 3]
    if counts.numel() * indices.shape[-1] == 1:  # one block for all: every pair attends
        return 0.0
    if isinstance(counts, FakeTensor):
        return None
    with outside():
        computed = int(counts.sum()) + (int(full_counts.sum()) if full_counts is not None else 0)
    return 1 - computed / float(counts.numel() * indices.shape[-1])
