"""Evaluates every form on every fold of the splits, and saves the predictions in one file for each form, split and
fold.

Folds with the same training labels, for example a family's steps and inference, share one training.
"""

from __future__ import annotations

import functools
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Iterator, Sequence

import numpy as np
import torch

from mdot_lab.predictor import splits
from mdot_lab.predictor.dataset import Dataset
from mdot_lab.predictor.ablations import FORMS, Form
from mdot_lab.predictor.metrics import errors


def fold_file(folder: Path, form: str, split: str, fold: str) -> Path:
    return folder / f"{form}.{split}.{fold}.npz".replace(" ", "_")


@dataclass(frozen=True)
class Fold:
    """Predictions for labels that a fold left out."""

    label: np.ndarray
    predicted_ms: np.ndarray
    measured_ms: np.ndarray
    is_nhwc: np.ndarray


def forms_in(folder: Path, split: str) -> list[str]:
    """Forms, and baselines in the same file format, with a fold of the split in the folder."""
    return sorted({path.name.split(".")[0].replace("_", " ") for path in folder.glob(fold_file(folder, "*", split, "*").name)})


def read_folds(folder: Path, form: str, split: str) -> dict[str, Fold]:
    """The folds that exist, by name."""
    result = {}
    for path in sorted(folder.glob(fold_file(folder, form, split, "*").name)):
        with np.load(path) as part:
            result[str(part["fold"])] = Fold(*(part[field] for field in Fold.__dataclass_fields__))
    return result


def inner(split: str) -> str:
    """The name for saved predictions on a split's inner folds."""
    return f"{split} inner"


def inner_name(outer: str, fold: str) -> str:
    return f"{fold} of {outer}"


INTERVALS = "intervals.npz"
"""Bounds written by final_model.fit_interval: split, fold, label, lower_ms, upper_ms."""


def write_bounds(folder: Path, split: np.ndarray, fold: np.ndarray, label: np.ndarray, lower_ms: np.ndarray,
                 upper_ms: np.ndarray) -> None:
    """Saves bounds for held-out labels, from an interval fitted without them."""
    np.savez(folder / INTERVALS, split=split, fold=fold, label=label, lower_ms=lower_ms, upper_ms=upper_ms)


def read_bounds(folder: Path, split: str) -> dict[int, tuple[float, float]]:
    """Bounds by label; empty without the file."""
    path = folder / INTERVALS
    if not path.exists():
        return {}
    with np.load(path) as saved:
        rows = np.flatnonzero(saved["split"] == split)
        lower_ms, upper_ms = saved["lower_ms"][rows], saved["upper_ms"][rows]
        return dict(zip(saved["label"][rows].tolist(), zip(lower_ms.tolist(), upper_ms.tolist())))


@dataclass(frozen=True)
class _Task:
    split: str
    fold: str
    train: np.ndarray
    test: np.ndarray


def _tasks(data: Dataset, only_splits: Sequence[str] | None, only_folds: Sequence[str] | None, inner_count: int
           ) -> Iterator[_Task]:
    for split in only_splits or splits.SPLITS:
        for fold, train, test in splits.folds(data, split):
            if only_folds and fold not in only_folds:
                continue
            if not inner_count:
                yield _Task(split, fold, train, test)
                continue
            for name, inner_train, inner_test in splits.inner_folds(data, split, fold, inner_count):
                yield _Task(inner(split), inner_name(fold, name), inner_train, inner_test)


def _together(tasks: Iterator[_Task]) -> list[list[_Task]]:
    """Groups tasks with equal training labels, in order."""
    groups: dict[bytes, list[_Task]] = {}
    for task in tasks:
        groups.setdefault(task.train.tobytes(), []).append(task)
    return list(groups.values())


def _joined(groups: list[list[_Task]], count: int) -> list[list[_Task]]:
    """Joins about `count` groups in a split into one; its training leaves out all their labels. The largest come first,
    each to the smallest sum so far, so all trainings leave out about as many labels."""
    by_split: dict[str, list[list[_Task]]] = {}
    for group in groups:
        by_split.setdefault(group[0].split, []).append(group)
    result = []
    for of_split in by_split.values():
        sums: list[list[_Task]] = [[] for _ in range(-(-len(of_split) // count))]
        for group in sorted(of_split, key=lambda group: -len(group[0].test)):
            min(sums, key=lambda tasks: sum(len(task.test) for task in tasks if task.split == group[0].split)).extend(group)
        for tasks in sums:
            train = functools.reduce(np.intersect1d, (task.train for task in tasks))
            result.append([replace(task, train=train) for task in tasks])
    return result


def run(data_path: Path, folder: Path, forms: Sequence[str] | None, only_splits: Sequence[str] | None,
        only_folds: Sequence[str] | None, inner_count: int = 0, joined: int = 1, epochs: int | None = None, seed: int = 0) -> None:
    """Skips folds with existing files. Remove the folder to start from the beginning. With `inner_count`, evaluates
    each selected fold's inner folds instead. `joined` folds of a split are left out of one training together, which
    takes less time and makes each fold harder. `epochs` replaces each form's own epoch count."""
    torch.set_num_threads(1)
    data = Dataset.load_file(data_path)
    folder.mkdir(parents=True, exist_ok=True)
    groups = _joined(_together(_tasks(data, only_splits, only_folds, inner_count)), joined)
    for form in FORMS:
        if forms and form.name not in forms:
            continue
        for group in groups:
            missing = [task for task in group if not fold_file(folder, form.name, task.split, task.fold).exists()]
            if missing:
                _evaluate(data, folder, form, missing, epochs, seed)


def _evaluate(data: Dataset, folder: Path, form: Form, tasks: list[_Task], epochs: int | None, seed: int) -> None:
    begin = time.monotonic()
    predicted = form.predict(data, tasks[0].train, np.concatenate([task.test for task in tasks]), epochs, seed)
    seconds = time.monotonic() - begin
    for task, part in zip(tasks, np.split(predicted, np.cumsum([len(task.test) for task in tasks])[:-1])):
        measured = data.step_ms[task.test]
        np.savez(fold_file(folder, form.name, task.split, task.fold), fold=task.fold, label=task.test, predicted_ms=part,
                 measured_ms=measured, is_nhwc=data.is_nhwc[task.test])
        e = errors(part, measured)
        print(f"{form.name:20} {task.split:9} {task.fold:20} {e.mape:5.1f} / {e.median:4.1f}  {seconds:5.0f} s", file=sys.stderr,
              flush=True)
