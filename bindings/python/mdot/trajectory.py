"""Duration of a training whose batch changes, from the predicted steps of its phases."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from mdot.library.errors import InvalidArgumentError
from mdot.prediction import Prediction
from mdot.predictor import JobLike, sweep


@dataclasses.dataclass(frozen=True)
class Phase:
    """Epochs with one batch."""

    prediction: Prediction
    epochs: float
    steps: int
    """Whole steps; the last one of an epoch may be smaller, and counts as a whole one."""
    hours: float


@dataclasses.dataclass(frozen=True)
class Trajectory:
    """A training with changing batches."""

    phases: tuple[Phase, ...]
    hours: float
    lower_hours: float
    upper_hours: float
    """Bounds of the 90 % interval: those of the phases added up, because their errors are of one job and agree."""
    steps: int
    fits: bool
    """The largest batch fits, too."""


def trajectory(job: JobLike, gpu: Any, phases: Sequence[tuple[int, float]], samples: int, **options: Any) -> Trajectory:
    """Predicts a training's duration from its (batch, epochs) in order, over a data set of so many samples:

        mdot.trajectory("resnet50", "A100", [(32, 30), (64, 30), (256, 30)], samples=50_000, precision="amp")

    A batch is that of one pass and GPU, as in `mdot.predict`, whose options follow. Schedules that let batches grow with
    the gradients' noise or similarity (Accordion, SimiGrad, Pollux) give such phases, as does a schedule by epochs. A
    phase may have a part of an epoch.
    """
    if not phases or samples < 1 or not all(batch >= 1 and 0 < epochs < math.inf for batch, epochs in phases):
        raise InvalidArgumentError("a trajectory takes samples of 1 or more, and pairs of a batch and epochs above 0")
    batches = sorted({batch for batch, _ in phases})
    found = {answer.configuration.batch: answer for answer in sweep(job, [gpu], batches, **options)}
    done = []
    for batch, epochs in phases:
        answer = found[batch]
        whole, part = divmod(epochs, 1)
        each = answer.configuration.samples
        steps = int(whole) * math.ceil(samples / each) + math.ceil(round(part * samples / each, 9))
        done.append(Phase(answer, epochs, steps, answer.hours(steps=steps)))
    lower = sum(phase.hours * phase.prediction.lower_ms / phase.prediction.step_ms for phase in done)
    upper = sum(phase.hours * phase.prediction.upper_ms / phase.prediction.step_ms for phase in done)
    return Trajectory(tuple(done), sum(phase.hours for phase in done), lower, upper, sum(phase.steps for phase in done),
                      all(phase.prediction.fits for phase in done))  # fmt: skip
