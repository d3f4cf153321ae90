"""Peak memory as mdot predicts it for the module that the reference runs."""

from __future__ import annotations

import warnings
from typing import Callable

from mdot_lab.checks.memory.step import Step

PRECISIONS = {"fp32": "fp32", "bf16": "bf16", "amp": "amp-bf16"}
GPU = "A100-SXM-80GB"
"""Allocated memory is the same on every card that has bf16."""


def _optimizer(name: str) -> str:
    """mdot's name: with the implementation, for example adamw-fused, if this mdot distinguishes them."""
    from mdot.option_words import WORDS
    from mdot.options import CHOICES

    if name in CHOICES["optimizer"] or name in WORDS["optimizer"]:
        return name
    return name.split("-")[0]


def peak(make: Callable[[int], Step], traced_batch: int, batch: int, precision: str, optimizer: str) -> int:
    """The bytes allocated at `batch` by a job that is traced at `traced_batch`. Momentum SGD is mdot's `sgd`."""
    import mdot
    from mdot_lab.checks.memory import building

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step = building.on_meta(lambda: make(traced_batch), precision)
        job = mdot.Job.from_torch(step.module, step.arguments, step.keywords, batch=traced_batch)
        answer = mdot.predict(job, GPU, batch, precision=PRECISIONS[precision], optimizer=_optimizer(optimizer))
    return int(answer.peak_memory_bytes)
