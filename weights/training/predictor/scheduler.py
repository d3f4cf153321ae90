"""Tables for examples/scheduler, which simulates what predictions are worth to a cluster.

What every form said of labels that it was not trained on, as `mdot-figure4 --predictions` reads it: the network and what else makes
the label and its fold, step_ms, a column a form.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Iterable, Sequence

import numpy as np

from predictor.dataset import Dataset
from predictor.evaluation import forms_in, read_folds
from predictor.forms import SHIPPED_FORM

LABEL = ("network", "gpu", "precision", "batch", "layout", "torch", "fold")


def write(path: Path, header: Sequence[str], rows: Iterable[Sequence]) -> int:
    """The file appears whole or not at all. Returns the number of rows."""
    part, count = path.with_name(path.name + ".part"), 0
    with open(part, "w", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(header)
        for row in rows:
            writer.writerow(row)
            count += 1
    os.replace(part, path)
    return count


def _column(form: str) -> str:
    return "mdot" if form == SHIPPED_FORM else form.replace(" ", "_").replace(",", "")


def folds(folders: Sequence[Path], data: Dataset, split: str) -> tuple[list[str], list[list]]:
    """Header and rows of every label that all of the split's folds of the shipped form, in the first of the folders, left out once;
    forms that lack one of these folds are left out. Raises ValueError where the shipped form has none."""
    whole = read_folds(folders[0], SHIPPED_FORM, split)
    if not whole:
        raise ValueError(f"{folders[0]} has no folds of {SHIPPED_FORM}, {split}")
    columns = {}
    for folder in folders:
        for form in forms_in(folder, split):
            there = read_folds(folder, form, split)
            if whole.keys() <= there.keys():
                columns[_column(form)] = np.concatenate([there[fold].predicted_ms for fold in whole])
    names = ["mdot", *sorted(columns.keys() - {"mdot"})]
    labels = np.concatenate([fold.label for fold in whole.values()])
    measured = np.concatenate([fold.measured_ms for fold in whole.values()])
    if not np.array_equal(measured, data.step_ms[labels]):
        raise ValueError(f"{folders[0]} was made of another data set")
    fold_of = np.concatenate([np.full(len(fold.label), name) for name, fold in whole.items()])
    network, layout = data.network_name[data.label_network[labels]], np.where(data.is_nhwc[labels], "nhwc", "nchw")
    rows = [[network[i], data.gpu[label], data.precision[label], f"{data.batch[label]:g}", layout[i], data.software[label], fold_of[i],
             f"{measured[i]:.6g}", *(f"{columns[name][i]:.6g}" for name in names)] for i, label in enumerate(labels)]
    return [*LABEL, "step_ms", *names], rows
