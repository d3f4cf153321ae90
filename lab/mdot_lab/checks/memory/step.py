"""A training step of a network, and its conversion to a device and a precision."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable


@dataclasses.dataclass(frozen=True)
class Step:
    """A module in training mode whose forward returns the loss, and its arguments."""

    module: Any
    arguments: tuple
    keywords: dict[str, Any]


def replace_tensors(module, change: Callable) -> None:
    """Changes parameters and buffers in place. Tied parameters remain tied."""
    import torch

    made: dict[int, Any] = {}
    for part in module.modules():
        for name, old in part._parameters.items():
            if old is not None and id(old) not in made:
                made[id(old)] = torch.nn.Parameter(change(old.detach()), requires_grad=old.requires_grad)
            part._parameters[name] = None if old is None else made[id(old)]
        for name, old in part._buffers.items():
            part._buffers[name] = None if old is None else made.setdefault(id(old), change(old))


def convert(step: Step, precision: str, device: str) -> Step:
    """The step on the device. For bf16, parameters, buffers and inputs become bfloat16."""
    import torch
    from torch.utils import _pytree

    def change(value):
        if not isinstance(value, torch.Tensor):
            return value
        return value.to(device, torch.bfloat16 if precision == "bf16" and value.is_floating_point() else value.dtype)

    replace_tensors(step.module, change)
    return Step(step.module, _pytree.tree_map(change, step.arguments), _pytree.tree_map(change, step.keywords))
