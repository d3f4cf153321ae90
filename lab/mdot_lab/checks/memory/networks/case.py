"""A network in the table, and losses by kind of task."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch import nn

from mdot_lab.checks.memory.step import Step


@dataclasses.dataclass(frozen=True)
class Case:
    """`make(batch)` builds the step of a batch on the default device. The job is traced at both batches and predicted at the
    greater."""

    name: str
    make: Callable[[int], Step]
    batch: int
    traced_batch: int
    optimizer: str = "adamw"


class _WithLoss(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model


class LabelLoss(_WithLoss):
    """The model computes its loss from labels."""

    def forward(self, **inputs: Any) -> torch.Tensor:
        return self.model(**inputs).loss


class ClassLoss(_WithLoss):
    """Cross-entropy over logits, per sample, per pixel or per frame. Low-resolution logits are interpolated."""

    def forward(self, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        logits = self.model(images)
        if isinstance(logits, dict):
            logits = logits["out"] if "out" in logits else logits["logits"]
        elif not isinstance(logits, torch.Tensor):
            logits = logits.logits
        if targets.dim() == 3 and logits.shape[2:] != targets.shape[1:]:
            logits = F.interpolate(logits, size=targets.shape[1:], mode="bilinear", align_corners=False)
        return F.cross_entropy(logits, targets)


class SquareLoss(_WithLoss):
    """The mean square of the first output, for encoders without a head."""

    def forward(self, *inputs: Any, **named: Any) -> torch.Tensor:
        output = self.model(*inputs, **named)
        if not isinstance(output, torch.Tensor):
            output = output["last_hidden_state"] if "last_hidden_state" in output else list(output.values())[0]
        return output.square().mean()


class PyramidLoss(_WithLoss):
    """Sum of mean squares over all outputs, for backbones with several resolutions."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return sum(level.square().mean() for level in self.model(images).values())


class NoiseLoss(_WithLoss):
    """Mean square error between a diffusion model's output and the noise."""

    def forward(self, noise: torch.Tensor, *inputs: Any, **named: Any) -> torch.Tensor:
        return F.mse_loss(self.model(*inputs, **named).sample, noise)


def images(batch: int, size: int, channels: int = 3) -> torch.Tensor:
    return torch.randn(batch, channels, size, size)


def integers(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.int64)


def classifier(build: Callable[[], nn.Module], size: int = 224) -> Callable[[int], Step]:
    return lambda batch: Step(ClassLoss(build()), (images(batch, size), integers(batch)), {})
