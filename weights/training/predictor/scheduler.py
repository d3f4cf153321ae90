"""Tables for examples/scheduler, which simulates what predictions are worth to a cluster.

`folds` writes what every form said of labels that it was not trained on, as `mdot-figure4 --predictions` reads it: network,
step_ms, a column a form. The two others write measured steps that the shipped predictor did not see, as `mdot-predictions` reads
them, which asks libmdot for each: note (the network), job, gpu, batch, precision, layout, optimizer, gpus, ms.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Iterable, Sequence

import numpy as np

from predictor.dataset import Dataset
from predictor.evaluation import read_folds
from predictor.forms import FORMS, SHIPPED_FORM
from predictor.labels import Network, read_labels

MEASURED = ("note", "job", "gpu", "batch", "precision", "layout", "optimizer", "gpus", "ms")


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


def folds(results: Path, data: Dataset, split: str) -> tuple[list[str], list[list]]:
    """Header and rows of every label that all of the split's folds of the shipped form left out once; forms that lack one of
    these folds are left out. Raises ValueError where the shipped form has none."""
    whole = read_folds(results, SHIPPED_FORM, split)
    if not whole:
        raise ValueError(f"{results} has no folds of {SHIPPED_FORM}, {split}")
    columns = {}
    for form in FORMS:
        there = read_folds(results, form.name, split)
        if whole.keys() <= there.keys():
            columns[_column(form.name)] = np.concatenate([there[fold].predicted_ms for fold in whole])
    names = ["mdot", *sorted(columns.keys() - {"mdot"})]
    labels = np.concatenate([fold.label for fold in whole.values()])
    measured = np.concatenate([fold.measured_ms for fold in whole.values()])
    if not np.array_equal(measured, data.step_ms[labels]):
        raise ValueError(f"{results} was made of another data set")
    network = data.network_name[data.label_network[labels]]
    rows = [[network[i], f"{measured[i]:.6g}", *(f"{columns[name][i]:.6g}" for name in names)] for i in range(len(labels))]
    return ["network", "step_ms", *names], rows


def _job(graphs: Path, network: Network, table: Path) -> str | None:
    """The graph's path from the table, where it is there."""
    path = graphs / network.graph_file
    return os.path.relpath(path.resolve(), table.resolve().parent) if path.exists() else None


def newer(labels: Path, seen: Path, graphs: Path, table: Path) -> list[list]:
    """Steps on an RTX 3090 (AMP, SGD) of networks that no label of `seen` has, whose graphs are there."""
    known = {label.network.name for label in read_labels(seen)}
    rows = []
    for label in read_labels(labels):
        job = None if label.network.name in known else _job(graphs, label.network, table)
        if job is not None:
            rows.append([label.network.name, job, "RTX-3090", label.batch, "amp", label.layout, "sgd", 1,
                         f"{label.step_ms:.6g}"])
    return rows


def other_gpus(folder: Path, graphs: Path, table: Path) -> list[list]:
    """torchvision's networks on GPUs that no label has (transfer.py); half throughout stands as AMP."""
    from predictor import transfer

    rows = []
    for gpu, precision in ((g, p) for g in transfer.GPUS for p in ("float", "half")):
        path = transfer.single_gpu_file(folder, gpu, precision)
        if path is None:
            continue
        arithmetic = "amp" if precision == "half" else "tf32" if gpu in transfer.TF32_GPUS else "fp32"
        for name, step_ms in transfer.measured(path).items():
            job = _job(graphs, Network(transfer.NETWORKS[name], transfer.IMAGE_SIZE), table)
            if job is not None:
                rows.append([name, job, transfer.GPUS[gpu], transfer.BATCH, arithmetic, "nchw", "sgd", 1, f"{step_ms:.6g}"])
    return rows
