"""Records a training loop with Hugging Face's Accelerate:

    from mdot.recording import accelerate as mdot_accelerate

    with mdot_accelerate.record(accelerator, job, batch=loader, model=model, optimizer=optimizer) as recorder:
        for inputs, targets in loader:
            with accelerator.accumulate(model):
                …
                recorder.step()

This module does not import accelerate. The given Accelerator has everything it needs.
"""

from __future__ import annotations

import os
from typing import Any

from mdot.job import Job
from mdot.recording.recorder import Recorder

PRECISIONS = {"fp16": "amp-fp16", "bf16": "amp-bf16", "fp8": "fp8"}
"""Accelerate's words for mixed precision."""


class AccelerateRecorder(Recorder):
    """A Recorder whose steps end when the Accelerator synchronises gradients."""

    def __init__(self, accelerator: Any, job: Job | str | os.PathLike[str], table: str | os.PathLike[str] = "measured.csv",
                 **arguments: Any) -> None:  # fmt: skip
        super().__init__(job, table, **arguments)
        self._arguments["accelerator"] = accelerator
        self._accelerator = accelerator
        plugin = getattr(accelerator.state, "deepspeed_plugin", None)
        has_fsdp = getattr(accelerator.state, "fsdp_plugin", None) is not None
        precision = PRECISIONS.get(str(accelerator.mixed_precision))
        if precision is not None and (plugin is not None or has_fsdp):
            precision = precision.replace("amp-", "mixed-")
        zero = int(plugin.zero_stage) if plugin is not None else 3 if has_fsdp else None
        processes = int(accelerator.num_processes)
        self.see(
            precision=precision,
            grad_scaler=True if precision in ("amp-fp16", "mixed-fp16") and plugin is None else None,
            accumulate=int(accelerator.gradient_accumulation_steps),
            gpus=processes if processes > 1 else None,
            zero=zero,
        )

    def step(self, samples: int | None = None) -> None:
        """Ends a pass. Call it once for each batch, behind the block of `accelerator.accumulate` if there is one."""
        self._add_pass(samples, is_complete=bool(self._accelerator.sync_gradients))


def record(accelerator: Any, job: Job | str | os.PathLike[str], table: str | os.PathLike[str] = "measured.csv",
           **arguments: Any) -> AccelerateRecorder:  # fmt: skip
    """Records a loop with this Accelerator. The other arguments are those of `mdot.record`; precision, accumulation and
    the number of processes default to the Accelerator's."""
    return AccelerateRecorder(accelerator, job, table, **arguments)
