"""Evaluates every form on every fold of the splits, and saves the predictions in one file for each form, split and fold."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Sequence

import numpy as np
import torch

from mdot_training.predictor import splits
from mdot_training.predictor.dataset import Dataset
from mdot_training.predictor.ablations import FORMS
from mdot_training.predictor.metrics import errors


def fold_file(folder: Path, form: str, split: str, fold: str) -> Path:
    return folder / f"{form}.{split}.{fold}.npz".replace(" ", "_")


@dataclass(frozen=True)
class Fold:
    """Predictions for the labels that a fold left out of training."""

    label: np.ndarray
    predicted_ms: np.ndarray
    measured_ms: np.ndarray
    is_nhwc: np.ndarray


def forms_in(folder: Path, split: str) -> list[str]:
    """Forms, and baselines in the same file format, that have a fold of the split in the folder."""
    return sorted({path.name.split(".")[0].replace("_", " ") for path in folder.glob(fold_file(folder, "*", split, "*").name)})


def read_folds(folder: Path, form: str, split: str) -> dict[str, Fold]:
    """The folds that exist, by name."""
    result = {}
    for path in sorted(folder.glob(fold_file(folder, form, split, "*").name)):
        with np.load(path) as part:
            result[str(part["fold"])] = Fold(*(part[field] for field in Fold.__dataclass_fields__))
    return result


def run(data_path: Path, folder: Path, forms: Sequence[str] | None, only_splits: Sequence[str] | None,
        only_folds: Sequence[str] | None) -> None:
    """Skips folds whose files exist. Remove the folder to start from the beginning."""
    torch.set_num_threads(1)
    data = Dataset.load_file(data_path)
    folder.mkdir(parents=True, exist_ok=True)
    for split in only_splits or splits.SPLITS:
        for form in FORMS:
            if forms and form.name not in forms:
                continue
            for fold, train, test in splits.folds(data, split):
                path = fold_file(folder, form.name, split, fold)
                if path.exists() or (only_folds and fold not in only_folds):
                    continue
                begin = time.monotonic()
                predicted = form.predict(data, train, test)
                np.savez(path, fold=fold, label=test, predicted_ms=predicted, measured_ms=data.step_ms[test],
                         is_nhwc=data.is_nhwc[test])
                e = errors(predicted, data.step_ms[test])
                print(f"{form.name:20} {split:9} {fold:20} {e.mape:5.1f} / {e.median:4.1f}  {time.monotonic() - begin:5.0f} s",
                      file=sys.stderr, flush=True)
