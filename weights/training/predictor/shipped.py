"""The predictor that ships: some members trained on all labels, and an interval from predictions of left-out networks."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Sequence

import numpy as np
import torch
from torch import Tensor

from predictor import batches, splits, training
from predictor.dataset import Dataset
from predictor.evaluation import read_folds
from predictor.exported import Exported
from predictor.forms import SHIPPED_FORM, SHIPPED_MEMBERS
from predictor.interval import Interval, interval_features
from predictor.model import Options, Predictor
from predictor.range import TrainingRange

def held_out(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, log(measured / predicted) by models that did not see the network, and weights: both splits count the same."""
    label, residual, weight = [], [], []
    for split in (splits.RANDOM, splits.FAMILIES):
        folds = read_folds(folder, SHIPPED_FORM, split).values()
        if not folds:
            raise FileNotFoundError(f"{folder}: no predictions of '{SHIPPED_FORM}' on split '{split}'; run evaluate first")
        count = sum(len(fold.label) for fold in folds)
        for fold in folds:
            label.append(fold.label)
            residual.append(np.log(fold.measured_ms / fold.predicted_ms))
            weight.append(np.full(len(fold.label), 1 / count))
    return np.concatenate(label), np.concatenate(residual), np.concatenate(weight)


def interval_inputs(members: Sequence[Predictor], data: Dataset, labels: np.ndarray) -> Tensor:
    """[labels, FEATURES]"""
    result = []
    for part in np.array_split(labels, max(1, len(labels) // 400)):
        batch = batches.make(data, part)
        with torch.no_grad():
            shares = [training.shares(member, batch) for member in members]
        result.append(interval_features(batch.work, torch.stack(shares).mean(dim=0), batch.configurations.is_nhwc,
                                        lambda each, batch=batch: training.sums(batch, each)))
    return torch.cat(result)


def train(data_path: Path, out: Path) -> None:
    """The members and the range that they were trained in; the interval is calibrate's."""
    torch.set_num_threads(1)
    data = Dataset.load_file(data_path)
    labels = np.arange(len(data.step_ms))
    members = [training.fit(data, labels, options, schedule) for options, schedule in SHIPPED_MEMBERS.values()]
    trained_on = TrainingRange()
    trained_on.fit(data, labels, members[0].row_of_type.unique())
    save(Exported(members, Interval(), trained_on), out)


def calibrate(model_path: Path, data_path: Path, held_out_folder: Path, out: Path) -> float:
    """Fits the interval. Returns how many left-out labels, in %, lie in an interval fitted to the other half of the networks."""
    data, model = Dataset.load_file(data_path), load(model_path)
    label, residual, weight = held_out(held_out_folder)
    x, r = interval_inputs(list(model.members), data, label), torch.tensor(residual, dtype=torch.float32)
    w = torch.tensor(weight / weight.mean(), dtype=torch.float32)
    is_even = torch.tensor(data.label_network[label] % 2 == 0)
    inside = torch.zeros(len(r))
    for half in (is_even, ~is_even):
        trial = Interval()
        trial.fit(x[half], r[half], w[half])
        low, high = trial.half_widths(x[~half]).detach().unbind(dim=1)
        inside[~half] = ((r[~half] >= -low) & (r[~half] <= high)).float()
    model.interval.fit(x, r, w)
    save(model, out)
    return float(100 * (inside * w).sum() / w.sum())


def save(model: Exported, out: Path) -> None:
    torch.save({"options": [asdict(member.options) for member in model.members], "state": model.state_dict()}, out)


def load(path: Path) -> Exported:
    saved = torch.load(path, weights_only=True)
    model = Exported([Predictor(Options(**options)) for options in saved["options"]], Interval(), TrainingRange())
    model.load_state_dict(saved["state"])
    return model.eval()
