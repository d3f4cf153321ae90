"""The forms that the evaluation compares: from constants to the shipped predictor, a step each, and the baselines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

import numpy as np

from predictor import training
from predictor.baselines import Trees
from predictor.dataset import Dataset
from predictor.model import Options
from predictor.training import Schedule

Fitted = Callable[[Dataset, np.ndarray, np.ndarray], np.ndarray]
"""Data, labels to train on, labels to predict → milliseconds."""


@dataclass(frozen=True)
class Form:
    """Trained by `predict`, or the mean of other forms' logarithms."""

    name: str
    title: str
    predict: Fitted | None = None
    mean_of: tuple[str, ...] = ()


FUSION, PERCEPTRON = Options(), Options(use_fusion=False)
SCHEDULE = Schedule()
LONG_SCHEDULE = Schedule(epochs=180)
"""Closer to networks like those of training. With a family left out the mean of both is better than either."""
ROOFLINE_SCHEDULE = Schedule(epochs=30)

SHIPPED_FORM = "shipped"
SHIPPED_MEMBERS = {"fusion": (FUSION, SCHEDULE), "long fusion": (FUSION, LONG_SCHEDULE)}


def _network(options: Options, schedule: Schedule = SCHEDULE) -> Fitted:
    def predict(data: Dataset, train: np.ndarray, test: np.ndarray) -> np.ndarray:
        return training.predict_labels(training.fit(data, train, options, schedule), data, test)

    return predict


def _trees() -> Fitted:
    tuned = Trees()
    return lambda data, train, test: tuned.predict(data, train, test, None)


def _trees_over_roofline() -> Fitted:
    tuned, roofline = Trees(), _network(Options(use_correction=False), ROOFLINE_SCHEDULE)

    def predict(data: Dataset, train: np.ndarray, test: np.ndarray) -> np.ndarray:
        return tuned.predict(data, train, test, roofline(data, train, np.arange(len(data.step_ms))))

    return predict


FORMS = (
    Form("roofline", "roofline sum, fitted constants",
         _network(Options(use_correction=False, use_padding=False), ROOFLINE_SCHEDULE)),
    Form("padded", "+ FLOPs padded to tiles", _network(Options(use_correction=False), ROOFLINE_SCHEDULE)),
    Form("perceptron", "+ correction by a perceptron", _network(PERCEPTRON)),
    Form("fusion", "+ three-token fusion", _network(*SHIPPED_MEMBERS["fusion"])),
    Form("long fusion", "… trained three times as long", _network(*SHIPPED_MEMBERS["long fusion"])),
    Form(SHIPPED_FORM, "mean of both: shipped", mean_of=tuple(SHIPPED_MEMBERS)),
    Form("position", "fusion + position", _network(Options(use_position=True))),
    Form("encoder", "fusion + position + encoder over the sequence", _network(Options(use_position=True, use_encoder=True))),
    Form("trees", "boosted trees, counts and totals", _trees()),
    Form("trees over roofline", "boosted trees on log(t / roofline)", _trees_over_roofline()),
)
