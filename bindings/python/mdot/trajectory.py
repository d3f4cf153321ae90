"""Duration of a training whose batch changes, from the predicted steps of its phases."""

from __future__ import annotations

import ctypes
import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

from mdot.configuration import fill
from mdot.library import structs as c
from mdot.library.errors import InvalidArgumentError
from mdot.library.libraries import call, runtime
from mdot.planning import Training, TrainingCost, cost_of_struct
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
    cost: TrainingCost
    """All phases' time and cost."""


def trajectory(
    job: JobLike, gpu: Any, phases: Iterable[tuple[int, float]], samples: float | Training, price: float = 0, **options: Any
) -> Trajectory:
    """Predicts a training's duration from its (batch, epochs) in order, over a data set of so many samples:

        mdot.trajectory("resnet50", "A100", [(32, 30), (64, 30), (256, 30)], samples=50_000, precision="amp")

    A batch is that of one pass and GPU, as in `mdot.predict`, whose options follow. Schedules that let batches grow with
    the gradients' noise or similarity (Accordion, SimiGrad, Pollux) give such phases, as does a schedule by epochs. A
    phase may have a part of an epoch. A `Training` in place of samples adds evaluations, checkpoints and failures.
    """
    if "batch" in options:
        raise InvalidArgumentError("a trajectory takes its batches from the phases; leave the option batch out")
    training = samples if isinstance(samples, Training) else Training(samples)
    try:
        parts = [(batch, float(epochs)) for batch, epochs in phases]
        right = training.samples >= 1 and all(batch >= 1 and 0 < epochs < math.inf for batch, epochs in parts)
    except (TypeError, ValueError, OverflowError):
        right = False
    if not right or not parts:
        raise InvalidArgumentError("a trajectory takes samples of 1 or more, and pairs of a batch and epochs above 0")
    batches = sorted({batch for batch, _ in parts})
    answers = sweep(job, [gpu], batches, **options)
    if len(answers) != len(batches):
        raise InvalidArgumentError("a trajectory takes one GPU model, and one value of each option")
    found = {answer.configuration.batch: answer for answer in answers}
    keep: list[Any] = []
    layouts = {batch: _layout(answer, keep) for batch, answer in found.items()}
    run = c.new(c.mdot_training_run, price=price, **dataclasses.asdict(training))
    plain = c.new(c.mdot_training_run, samples=training.samples)
    done = []
    for batch, epochs in parts:
        alone = _cost(plain, [(layouts[batch], epochs)])
        done.append(Phase(found[batch], epochs, int(alone.steps), alone.hours))
    cost = _cost(run, [(layouts[batch], epochs) for batch, epochs in parts])
    return Trajectory(tuple(done), cost.hours, cost.lower_hours, cost.upper_hours, int(cost.steps),
                      all(phase.prediction.fits for phase in done), cost)  # fmt: skip


def _layout(answer: Prediction, keep: list[Any]) -> c.mdot_plan_layout:
    layout = c.new(c.mdot_plan_layout, samples=answer.configuration.samples)
    fill(layout.configuration, answer.configuration, keep)
    layout.configuration.gpu_count = answer.configuration.gpu_total
    for name in ("step_ms", "lower_ms", "upper_ms", "average_watts", "parameters"):
        setattr(layout.prediction, name, getattr(answer, name) or 0)
    return layout


def _cost(run: c.mdot_training_run, phases: Sequence[tuple[c.mdot_plan_layout, float]]) -> TrainingCost:
    array = (c.mdot_training_phase * len(phases))(
        *(c.mdot_training_phase(ctypes.pointer(layout), epochs) for layout, epochs in phases)
    )
    total = c.new(c.mdot_training_cost)
    call(runtime().mdot_training_cost_of_phases, ctypes.byref(run), array, len(phases), ctypes.byref(total))
    return cost_of_struct(total)
