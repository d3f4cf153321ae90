"""One training step of a model under a configuration, and one forward pass for inference: the timed code, written as a user
would write it."""

from __future__ import annotations

import contextlib
from typing import Any, Callable

import torch

from mdot_lab.collect.architecture import Architecture
from mdot_lab.collect.measured_configuration import Configuration
from mdot_lab.collect.tasks import TASKS

_AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}

LEARNING_RATE = 1e-5
"""Small, so that weights stay finite over some hundred steps on random targets."""


def set_precision(precision: str) -> None:
    """Sets float32 matmuls to full precision for fp32 and to TF32 for tf32. Operators that autocast leaves in float32 stay in
    full precision."""
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = precision == "tf32"


def precision_context(precision: str, device: str):
    """Autocast for the half precisions."""
    if precision not in _AUTOCAST:
        return contextlib.nullcontext()
    return torch.autocast(torch.device(device).type, dtype=_AUTOCAST[precision])


def make_optimizer(model: torch.nn.Module, name: str, implementation: str) -> torch.optim.Optimizer:
    how = {"fused": implementation == "fused", "foreach": implementation == "foreach"}
    parameters = [p for p in model.parameters() if p.requires_grad]
    if name.startswith("sgd"):
        return torch.optim.SGD(parameters, lr=LEARNING_RATE, momentum=0.9 if name == "sgd_momentum" else 0.0, **how)
    return {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[name](parameters, lr=LEARNING_RATE, **how)


class TrainingStep:
    """Forward with loss, backward, optimizer. Inputs, targets and optimizer state are on the device from the start."""

    def __init__(self, model: torch.nn.Module, row: Architecture, configuration: Configuration, device: str):
        set_precision(configuration.precision)
        self._layout = torch.channels_last if configuration.channels_last else torch.contiguous_format
        self._model = model.to(memory_format=self._layout)
        self._task, self._device, self._precision = TASKS[row.task], device, configuration.precision
        inputs = self._task.inputs(configuration.batch, configuration.size, row.arguments, device)
        self.inputs = tuple(x.contiguous(memory_format=self._layout) if x.dim() == 4 else x for x in inputs)
        self._optimizer = make_optimizer(model, configuration.optimizer, configuration.implementation)
        self._targets: torch.Tensor | None = None
        self._loss: torch.Tensor | None = None

    def run(self, mark: Callable[[], Any]) -> list[Any]:
        """Runs one step. Marks the time before it, after the loss, after the gradients and after the update."""
        marks = [mark()]
        self._optimizer.zero_grad(set_to_none=True)
        with precision_context(self._precision, self._device):
            outputs = self._model(*self.inputs)
            # set in the first warm-up step, because their shape follows from the outputs
            if self._targets is None:
                self._targets = self._task.targets(outputs.detach())
            self._loss = self._task.loss(outputs, self._targets)
        marks.append(mark())
        del outputs
        self._loss.backward()
        marks.append(mark())
        self._optimizer.step()
        marks.append(mark())
        return marks

    def loss_is_finite(self) -> bool:
        return bool(torch.isfinite(self._loss.detach()).item())


class InferencePass:
    """A forward pass of the model in evaluation mode, without gradients, on the inputs of a training step."""

    def __init__(self, model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], precision: str, device: str):
        set_precision(precision)
        self._model, self._inputs, self._precision, self._device = model, inputs, precision, device

    def run(self, mark: Callable[[], Any]) -> list[Any]:
        """Runs one pass. Marks the time before and after it."""
        marks = [mark()]
        with torch.inference_mode(), precision_context(self._precision, self._device):
            self._model(*self._inputs)
        marks.append(mark())
        return marks
