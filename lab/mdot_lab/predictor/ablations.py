"""The forms that the evaluation compares, one step each from constants to the shipped predictor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Callable

import numpy as np

from mdot_lab.predictor import training
from mdot_lab.predictor.dataset import Dataset
from mdot_lab.predictor.model import Options
from mdot_lab.predictor.training import Schedule

Fitted = Callable[[Dataset, np.ndarray, np.ndarray, "int | None", int], np.ndarray]
"""(data, labels to train on, labels to predict, epochs or None for the schedule's, seed) → milliseconds."""


@dataclass(frozen=True)
class Form:
    name: str
    title: str
    predict: Fitted


FUSION, SCHEDULE = Options(), Schedule()
ROOFLINE_SCHEDULE = Schedule(epochs=20)

SHIPPED_FORM = "fusion"
SHIPPED_MEMBERS = ((FUSION, SCHEDULE),)
"""Models whose mean logarithm is the prediction. One ships, because each further model costs the same time again in each
prediction."""


def shortened(schedule: Schedule, epochs: int | None) -> Schedule:
    """The schedule with so many epochs, and with draws in proportion, so that each draw serves for about as many epochs."""
    if epochs is None:
        return schedule
    return replace(schedule, epochs=epochs, draws=max(1, round(schedule.draws * epochs / schedule.epochs)))


def _network(options: Options, schedule: Schedule = SCHEDULE) -> Fitted:
    def predict(data: Dataset, train: np.ndarray, test: np.ndarray, epochs: int | None, seed: int) -> np.ndarray:
        seeded = replace(shortened(schedule, epochs), seed=seed)
        return training.predict_labels(training.fit(data, train, options, seeded), data, test)

    return predict


FORMS = (
    Form("roofline", "roofline sum, fitted constants",
         _network(Options(use_correction=False, use_padding=False), ROOFLINE_SCHEDULE)),
    Form("padded", "+ FLOPs padded to tiles", _network(Options(use_correction=False), ROOFLINE_SCHEDULE)),
    Form("steps alone", "+ three-token fusion, trained on whole steps alone", _network(FUSION, Schedule(inferences=0))),
    Form("perceptron", "a perceptron in place of the fusion, also trained on inference", _network(Options(use_fusion=False))),
    Form(SHIPPED_FORM, "three-token fusion, also trained on inference: shipped", _network(FUSION, SCHEDULE)),
    Form("position", "fusion + position", _network(Options(use_position=True))),
    Form("encoder", "fusion + position + encoder over the sequence", _network(Options(use_position=True, use_encoder=True))),
)
