"""Changes by frameworks that mdot then records: tensors kept by matmuls, and checkpoints."""

from __future__ import annotations

import collections
import functools
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

ATEN = torch.ops.aten
SAVED = {ATEN.mm.default, ATEN._scaled_dot_product_efficient_attention.default,
         ATEN._scaled_dot_product_flash_attention.default, ATEN._scaled_dot_product_cudnn_attention.default}


def _keep_operand(module: nn.Module, operands: tuple[Any, ...], result: torch.Tensor) -> None:
    if result.grad_fn is not None:
        result.grad_fn.metadata["operand"] = operands[0]


def keep_operands(network: nn.Module) -> None:
    """Makes products with frozen weights keep the operand up to the end of the backward pass."""
    for module in network.modules():
        if isinstance(module, nn.Linear) and not module.weight.requires_grad:
            module.register_forward_hook(_keep_operand)


def _contexts() -> Any:
    counts: collections.Counter[bool] = collections.Counter()

    def policy(context: Any, operator: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        is_product = operator == ATEN.mm.default
        counts[context.is_recompute] += is_product
        is_skipped = is_product and counts[context.is_recompute] % 2 == 0
        return CheckpointPolicy.MUST_SAVE if operator in SAVED and not is_skipped else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def _half_attention(module: nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Any, **keywords: Any) -> Any:
    halves = [tensor.bfloat16() for tensor in (query, key, value)]
    made = F.scaled_dot_product_attention(*halves, dropout_p=keywords.get("dropout") or 0.0, is_causal=True, enable_gqa=True)
    return made.to(query.dtype).transpose(1, 2).contiguous(), None


def attend_in_half(network: nn.Module) -> None:
    """FlashAttention 2 in a network that computes in fp32: transformers converts the operands."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register("half", _half_attention)
    AttentionMaskInterface.register("half", lambda *_, **__: None)
    network.config._attn_implementation = "half"


def save_every_second_product(blocks: nn.ModuleList) -> None:
    """Checkpoints each block. Attention and every second matmul, from the first on, save results."""
    for block in blocks:
        block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False, context_fn=_contexts)


def prepare(network: nn.Module) -> None:
    """Converts the tensors besides the blocks' products to fp32, as peft's prepare_model_for_kbit_training. The output head stays
    a product in half precision under autocast."""
    products = {id(module.weight) for name, module in network.named_modules()
                if isinstance(module, nn.Linear) and not name.endswith("lm_head")}
    for parameter in network.parameters():
        if id(parameter) not in products:
            parameter.data = parameter.data.float()


def widen_adapters(network: nn.Module) -> None:
    for name, parameter in network.named_parameters():
        if ".lora_" in name:
            parameter.data = parameter.data.float()


class _InPlace(torch.autograd.Function):
    @staticmethod
    def forward(context, logits, labels, is_own=False):
        copy = logits if is_own else logits.float()
        picked = copy.gather(1, labels[:, None])
        largest = copy.amax(1, keepdim=True)
        total = copy.sub_(largest).exp_().sum(1, keepdim=True)
        context.save_for_backward(copy.div_(total), labels)
        context.dtype = logits.dtype
        return (total.log() + largest - picked).mean()

    @staticmethod
    def backward(context, gradient):
        copy, labels = context.saved_tensors
        copy.scatter_add_(1, labels[:, None], torch.full_like(labels[:, None], -1, dtype=copy.dtype))
        return copy.mul_(gradient / len(labels)).to(context.dtype), None, None


class _KeepUntilGradient(torch.autograd.Function):
    """Returns a tensor, and keeps another one until the first one's gradient exists."""

    @staticmethod
    def forward(context, tensor, kept):
        context.save_for_backward(kept)
        return tensor.view_as(tensor)

    @staticmethod
    def backward(context, gradient):
        context.saved_tensors
        return gradient, None


def _next_tokens(labels: torch.Tensor) -> torch.Tensor:
    return F.pad(labels, (0, 1))[..., 1:].flatten()


def _in_place(logits: torch.Tensor, labels: torch.Tensor, **_: Any) -> torch.Tensor:
    """In one fp32 copy of the logits, as fused kernels do."""
    return _InPlace.apply(logits.flatten(0, 1), _next_tokens(labels))


def _shifted(logits: torch.Tensor, labels: torch.Tensor, is_fused: bool = False, **_: Any) -> torch.Tensor:
    """GPTBigCode's before transformers 4.46: in the type of the logits, or of autocast, on a copy without the last position. The
    model's output keeps the logits during the loss's backward pass, but not during that of the blocks, as published peaks show.
    Accelerate converts it to fp32 after autocast. A fused kernel writes the gradient over the copy."""
    has_autocast = torch.is_autocast_enabled("cpu")
    logits = _KeepUntilGradient.apply(logits, logits.detach().float() if has_autocast else logits.detach())
    copy, words = logits[..., :-1, :].contiguous().flatten(0, 1), labels[..., 1:].flatten()
    if is_fused:
        return _InPlace.apply(copy.float() if has_autocast else copy, words, True)
    return F.cross_entropy(copy, words)


LOSSES = {"in place": _in_place, "shifted": _shifted, "shifted, in place": functools.partial(_shifted, is_fused=True)}


class Autocast(nn.Module):
    """Accelerate's wrapper of the forward pass."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, *arguments: Any, **keywords: Any) -> torch.Tensor:
        with torch.autocast("cuda", torch.bfloat16):
            return self.network(*arguments, **keywords)
