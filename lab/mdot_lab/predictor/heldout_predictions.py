"""Tables with every form's predictions for labels left out of its training. Columns: the network and the other fields
that identify the label and the fold, step_ms, and one column for each form. `mdot-figure4 --predictions` reads them
and simulates the predictions' value for a cluster. With the data set, the folds can be restored from a table without
training.
"""

from __future__ import annotations

import csv
import os
from collections import defaultdict
from pathlib import Path
from typing import Iterable, Sequence

import numpy as np

from mdot_lab.predictor.dataset import Dataset
from mdot_lab.predictor.evaluation import Fold, fold_file, forms_in, read_folds
from mdot_lab.predictor.ablations import SHIPPED_FORM

LABEL = ("network", "gpu", "precision", "batch", "layout", "torch", "fold")


def _label(data: Dataset, label: int) -> list[str]:
    """The columns of LABEL except the fold."""
    return [str(data.network_name[data.label_network[label]]), str(data.gpu[label]), str(data.precision[label]),
            f"{data.batch[label]:g}", "nhwc" if data.is_nhwc[label] else "nchw", str(data.software[label])]


def _digits(ms: float) -> str:
    return f"{ms:.6g}"


def write(path: Path, header: Sequence[str], rows: Iterable[Sequence]) -> int:
    """Writes a complete file in one step. Returns the row count."""
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


def _in_order(fold: Fold, of: np.ndarray, where: str) -> np.ndarray:
    """Predictions in this fold for the labels `of`, in the same order. Raises ValueError if the fold lacks one."""
    order = np.argsort(fold.label, kind="stable")
    at = order[np.searchsorted(fold.label, of, sorter=order).clip(max=len(order) - 1)]
    if not np.array_equal(fold.label[at], of):
        raise ValueError(f"{where} has other labels than {SHIPPED_FORM}; evaluate both with one data set and split")
    return fold.predicted_ms[at]


def export_cv(folders: Sequence[Path], data: Dataset, split: str) -> tuple[list[str], list[list]]:
    """Header and rows for every label left out by the shipped form's folds in the first folder. Forms without one of
    these folds are skipped. Other folders may have a fold's labels in another order. Raises ValueError if the
    shipped form has no folds, or if another form's fold lacks a label."""
    whole = read_folds(folders[0], SHIPPED_FORM, split)
    if not whole:
        raise ValueError(f"{folders[0]} has no folds of {SHIPPED_FORM}, {split}")
    columns = {}
    for folder in folders:
        for form in forms_in(folder, split):
            there = read_folds(folder, form, split)
            if whole.keys() <= there.keys():
                columns[_column(form)] = np.concatenate([
                    _in_order(there[fold], whole[fold].label, f"{folder}: {form}, fold {fold}") for fold in whole])
    names = ["mdot", *sorted(columns.keys() - {"mdot"})]
    labels = np.concatenate([fold.label for fold in whole.values()])
    measured = np.concatenate([fold.measured_ms for fold in whole.values()])
    if not np.array_equal(measured, data.step_ms[labels]):
        raise ValueError(f"{folders[0]} was made of another data set")
    fold_of = np.concatenate([np.full(len(fold.label), name) for name, fold in whole.items()])
    rows = [[*_label(data, label), fold_of[i], _digits(measured[i]), *(_digits(columns[name][i]) for name in names)]
            for i, label in enumerate(labels)]
    return [*LABEL, "step_ms", *names], rows


def import_cv(table: Path, data: Dataset, split: str, folder: Path) -> int:
    """Converts a table to the folds from `evaluate`, one file for each form and fold. Returns the label count. Raises
    ValueError if the data set lacks a label."""
    known = defaultdict(list)
    for label in reversed(range(len(data.step_ms))):
        known[(*_label(data, label), _digits(data.step_ms[label]))].append(label)
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
