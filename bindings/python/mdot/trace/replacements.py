"""Replaces parts of PyTorch that need a device, a compiler or gradients while a module is traced."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator
from unittest import mock

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn import functional

from mdot.library.errors import UnsupportedError
from mdot.trace.known import outside


@contextlib.contextmanager
def active(notes: list[str], refuses_gradients: bool = True) -> Iterator[None]:
    """Replaces them, and adds notes for the user. A run without backward pass refuses modules that compute gradients."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(nn.SyncBatchNorm, "forward", _batch_norm))
        if refuses_gradients:
            stack.enter_context(mock.patch.object(torch.autograd, "_engine_run_backward", _refuse_gradients))
        if hasattr(torch.compiler, "set_stance"):  # PyTorch 2.6: compiled functions run as they were written
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        for target, name, value in _flex_attention(notes):
            stack.enter_context(mock.patch.object(target, name, value))
        yield


def _batch_norm(self: nn.SyncBatchNorm, x: torch.Tensor) -> torch.Tensor:
    """SyncBatchNorm refuses tensors on the CPU. Its operators on one GPU are those of BatchNorm."""
    statistics = self.running_mean, self.running_var
    return functional.batch_norm(x, *statistics, self.weight, self.bias, True, self.momentum or 0.0, self.eps)


def _refuse_gradients(*_: Any, **__: Any) -> None:
    raise UnsupportedError(
        "the module computes gradients in its forward function (torch.autograd.grad or backward), which a job cannot express; "
        "pass a module that returns the value before the gradient, for example an energy instead of its forces"
    )


# ---- flex_attention --------------------------------------------------------------------------------------------------


def _flex_attention(notes: list[str]) -> list[tuple[Any, str, Any]]:
    """flex_attention compiles its functions of scores and masks. The trace records fused attention of the same shapes."""
    try:
        from torch.nn.attention import flex_attention as module
    except ImportError:  # PyTorch 2.4
        return []
    if not hasattr(module, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG") or not hasattr(module, "flex_attention_hop"):
        return []

    def attend(query: Any, key: Any, value: Any, score_mod: Any, block_mask: Any, scale: Any, *_: Any) -> Any:
        share = _skipped_share(block_mask)
        if share != 0 and not any("flex_attention" in note for note in notes):
            part = "a part" if share is None else f"{share:.0%}"
            notes.append(f"flex_attention counts as attention over all blocks; its block mask skips {part} of them")
        is_grouped = query.shape[1] != key.shape[1]
        out = functional.scaled_dot_product_attention(query, key, value, scale=scale, enable_gqa=is_grouped)
        statistics = torch.zeros(query.shape[:-1])
        return out, statistics, statistics

    made = [(module, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True), (module, "flex_attention_hop", attend)]
    if hasattr(module, "_validate_device"):  # refuses a backward pass on the CPU
        made.append((module, "_validate_device", lambda *_: None))
    return made


def _skipped_share(block_mask: tuple[Any, ...]) -> float | None:
    """The fraction of blocks that the mask skips. None: the trace does not know the mask's numbers."""
    first = next(i for i, item in enumerate(block_mask) if isinstance(item, torch.Tensor))
    counts, indices, full_counts = block_mask[first : first + 3]
    if counts.numel() * indices.shape[-1] == 1:  # one block for all: every pair attends
        return 0.0
    if isinstance(counts, FakeTensor):
        return None
    with outside():
        computed = int(counts.sum()) + (int(full_counts.sum()) if full_counts is not None else 0)
    return 1 - computed / float(counts.numel() * indices.shape[-1])
