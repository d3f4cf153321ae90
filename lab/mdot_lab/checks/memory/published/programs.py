"""Changes by frameworks that mdot then records: tensors kept by matmuls, and checkpoints."""

from __future__ import annotations

import collections
import functools
from typing import Any

import torch
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


def save_every_second_product(blocks: nn.ModuleList) -> None:
    """Checkpoints each block. Attention and every second matmul, from the first on, save results."""
    for block in blocks:
        block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False, context_fn=_contexts)
