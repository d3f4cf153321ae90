"""Tables of what every form said of labels that it was not trained on: the network and what else makes the label and its fold,
step_ms, a column a form. `mdot-figure4 --predictions` reads them, which simulates what predictions are worth to a cluster; and who has
the data set has the folds again, without training them.
"""

from __future__ import annotations

import csv
import os
from collections import defaultdict
from pathlib import Path
from typing import Iterable, Sequence

import numpy as np

from predictor.dataset import Dataset
from predictor.evaluation import fold_file, forms_in, read_folds
from predictor.ablations import SHIPPED_FORM

LABEL = ("network", "gpu", "precision", "batch", "layout", "torch", "fold")


def _label(data: Dataset, label: int) -> list[str]:
    """LABEL's columns but for the fold."""
    return [str(data.network_name[data.label_network[label]]), str(data.gpu[label]), str(data.precision[label]), f"{data.batch[label]:g}",
            "nhwc" if data.is_nhwc[label] else "nchw", str(data.software[label])]


def _digits(ms: float) -> str:
    return f"{ms:.6g}"


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
    rows = [[*_label(data, label), fold_of[i], _digits(measured[i]), *(_digits(columns[name][i]) for name in names)]
            for i, label in enumerate(labels)]
    return [*LABEL, "step_ms", *names], rows


def unfold(table: Path, data: Dataset, split: str, folder: Path) -> int:
    """A table's folds as `evaluate` keeps them, a file a form and fold; returns how many labels. Raises ValueError where the data set
    lacks one."""
    known = defaultdict(list)
    for label in reversed(range(len(data.step_ms))):
        known[*_label(data, label), _digits(data.step_ms[label])].append(label)
    folds = defaultdict(lambda: defaultdict(list))
    with open(table, newline="", encoding="utf-8") as lines:
        reader = csv.DictReader(lines)
        forms = list(reader.fieldnames or ())[len(LABEL) + 1:]
        for row in reader:
            key = tuple(row[name] for name in (*LABEL[:-1], "step_ms"))
            if not known[key]:
                raise ValueError(f"{table}: line {reader.line_num}: the data set has no such label")
            fold = folds[row["fold"]]
            fold["label"].append(known[key].pop())
            for form in forms:
                fold[form].append(float(row[form]))
    folder.mkdir(parents=True, exist_ok=True)
    for name, fold in folds.items():
        label = np.array(fold["label"])
        for form in forms:
            np.savez(fold_file(folder, SHIPPED_FORM if form == "mdot" else form, split, name), fold=name, label=label,
                     predicted_ms=np.array(fold[form]), measured_ms=data.step_ms[label], is_nhwc=data.is_nhwc[label])
    return sum(len(fold["label"]) for fold in folds.values())
