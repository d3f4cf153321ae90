"""All baselines on equal folds with several seeds, networks trained to convergence.

    python3 -m mdot_lab.baselines trials --data data.npz --out FOLDER --table FILE.csv [--seeds 3] [--minutes 80]

Each baseline learns from the same labels and answers the same ones: the first random fold, all families in FAMILY_GROUPS groups,
newer software, and the newest left-out GPU model. Of each fold's training labels, the networks of an inner fold are held out. A
network's learning rate halves when their error has not decreased for PATIENCE epochs, and training stops after HALVINGS; the
answer is that of the epoch with the least inner error. Trees and linear models have settings that `tune` chose on inner folds, and
learn from all training labels. A seed chooses the inner fold, the initial weights and the trees' samples. Every run is a file in
FOLDER and then a row of FILE.csv, so that a second call resumes from either, and no run begins after `--minutes`. Delete a row to
repeat its run.
"""

from __future__ import annotations

import copy
import csv
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from mdot_lab.baselines import jobs, network_fitting, registry, training_folds
from mdot_lab.baselines.network_fitting import Form
from mdot_lab.baselines.registry import Baseline
from mdot_lab.predictor import splits
from mdot_lab.predictor.dataset import Dataset
from mdot_lab.predictor.metrics import Errors, errors

INNER_PART, MOST_EPOCHS, PATIENCE, HALVINGS, WARM_UP = 0.1, 100, 4, 3, 2
FAMILY_GROUPS = 3
ANSWERS = 20
"""Steps whose answers are timed one by one."""
FIELDS = ("baseline", "split", "fold", "seed", "labels", "mean", "median", "mae_ms", "rmse_ms", "epochs", "fit_s", "answer_us")


def chosen_folds(data: Dataset) -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    """Split, fold, labels to train on, labels to answer."""
    for split in training_folds.SPLITS:
        every = list(training_folds.folds(data, split))
        if split == splits.FAMILIES:
            groups: list[list] = [[] for _ in range(FAMILY_GROUPS)]
            for fold in sorted(every, key=lambda fold: -len(fold[2])):
                min(groups, key=lambda group: sum(len(test) for _, _, test in group)).append(fold)
            for number, group in enumerate(groups, 1):
                test = np.concatenate([test for _, _, test in group])
                out = np.isin(data.label_network, data.label_network[test])
                train = np.setdiff1d(np.flatnonzero(training_folds.usable(data) & ~out), test)
                yield split, f"group {number}", train, test
        else:
            yield split, *(every[-1] if split == splits.GPUS else every[0])


def _epoch(form: Form, model: nn.Module, parts: list, chosen: list, optimizer: torch.optim.Optimizer,
           random: np.random.Generator) -> None:
    model.train()
    for i in random.permutation(len(parts)):
        weight = network_fitting.tensor(chosen[i].weight)
        off = (model(parts[i]) - network_fitting.tensor(chosen[i].log_ms)).abs()
        optimizer.zero_grad(set_to_none=True)
        ((off * weight).sum() / weight.sum()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def converged(form: Form, data: Dataset, train: np.ndarray, seed: int, start: nn.Module | None = None) -> tuple[nn.Module, int]:
    """The network with the least error on an inner fold, and the epochs that it was trained for. It starts at random, or with the
    weights and scales of `start`."""
    random = np.random.default_rng(seed)
    networks = random.permutation(np.unique(data.label_network[train]))
    is_inner = np.isin(data.label_network[train], networks[:max(1, int(INNER_PART * len(networks)))])
    torch.manual_seed(seed)
    steps = jobs.merged_steps(data, train[~is_inner])
    model = form.make_model(steps) if start is None else copy.deepcopy(start)
    chosen = [steps.take(rows) for rows in jobs.parts(steps, form.schedule.networks, random)]
    parts = [form.make_part(some) for some in chosen]
    optimizer = torch.optim.AdamW(model.parameters(), lr=form.schedule.rate / 3, weight_decay=form.schedule.decay)
    least, best, since, halved, epochs = np.inf, copy.deepcopy(model.state_dict()), 0, 0, 0
    while epochs < MOST_EPOCHS and halved < HALVINGS:
        if epochs == WARM_UP:
            optimizer.param_groups[0]["lr"] = form.schedule.rate
        _epoch(form, model, parts, chosen, optimizer, random)
        epochs += 1
        model.eval()
        answers = network_fitting.predict_labels(model, form, data, train[is_inner])
        error = float(np.abs(np.log(answers / data.step_ms[train[is_inner]])).mean())
        since = 0 if error < least else since + 1
        if error < least:
            least, best = error, copy.deepcopy(model.state_dict())
        if since == PATIENCE:
            model.load_state_dict(best)
            optimizer.param_groups[0]["lr"] /= 2
            since, halved = 0, halved + 1
    model.load_state_dict(best)
    model.eval()
    return model, epochs


def trial(baseline: Baseline, data: Dataset, train: np.ndarray, test: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Answers, and the processor time of fitting and of one answer. Trees and linear models answer together with fitting, so their
    time of one answer is that of their whole prediction for the labels, divided by them."""
    settings = baseline.settings(seed)
    begin = time.process_time()
    if not hasattr(baseline.module, "form"):
        predicted = baseline.module.predict(data, train, test, settings)
        return {"predicted_ms": predicted, "epochs": 0, "fit_s": time.process_time() - begin, "answer_us": np.nan}
    form = baseline.module.form(data, train, settings)
    model, epochs = converged(form, data, train, seed)
    fitted = time.process_time()
    predicted = network_fitting.predict_labels(model, form, data, test)
    behind = time.process_time()
    for label in test[:ANSWERS]:
        network_fitting.predict_labels(model, form, data, np.array([label]))
    return {"predicted_ms": predicted, "epochs": epochs, "fit_s": fitted - begin,
            "answer_us": 1e6 * (time.process_time() - behind) / min(ANSWERS, len(test))}


def _key(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in FIELDS[:4])


def known(path: Path) -> dict[tuple[str, ...], dict[str, str]]:
    """Rows of an earlier table, by baseline, split, fold and seed."""
    if not path.exists():
        return {}
    with open(path, newline="", encoding="utf-8") as file:
        return {_key(row): row for row in csv.DictReader(file)}


def run(data_path: Path, folder: Path, table_path: Path, names: list[str] | None, only_splits: list[str] | None, seeds: int,
        minutes: float) -> None:
    torch.set_num_threads(1)
    done = known(table_path)
    data = Dataset.load_file(data_path)
    folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * minutes
    every = registry.by_name(names)
    for seed in range(seeds):
        for split, fold, train, test in chosen_folds(data):
            for baseline in (each for each in every if split in each.splits):
                path = folder / f"{baseline.name}.{split}.{fold}.{seed}.npz".replace(" ", "_")
                if (baseline.name, split, fold, str(seed)) in done or path.exists():
                    continue
                if time.monotonic() > end or (only_splits and split not in only_splits):
                    continue
                if seed > 0 and baseline.settings(0) == baseline.settings(1):
                    continue    # a method without chance
                found = trial(baseline, data, train, test, seed)
                np.savez(path, baseline=baseline.name, split=split, fold=fold, seed=seed, label=test, measured_ms=data.step_ms[test],
                         **found)
                e = errors(found["predicted_ms"], data.step_ms[test])
                print(f"{baseline.name:18} {split:9} {fold:14} seed {seed} {e.mape:5.1f} / {e.median:4.1f}  {found['epochs']} epochs "
                      f"{found['fit_s']:4.0f} s", file=sys.stderr, flush=True)


def _row(name: str, split: str, e: Errors, epochs: str) -> dict[str, str]:
    """A row without folds and times."""
    return dict(zip(FIELDS, (name, split, "all", "0", str(e.count), f"{e.mape:.2f}", f"{e.median:.2f}", f"{e.mae_ms:.2f}",
                             f"{e.rmse_ms:.1f}", epochs, "nan", "nan")))


def profiles(data: Dataset) -> list[dict[str, str]]:
    """n x the mean measured step, as Chronus, Hydra and AlloX take it: for each label the mean of other runs with the same software,
    or with the version before."""
    usable = np.flatnonzero(training_folds.usable(data))
    steps: dict[tuple, list[int]] = {}
    for i in usable:
        steps.setdefault((data.label_network[i], data.batch[i], data.is_nhwc[i], data.software[i]), []).append(i)
    found: dict[str, list[tuple[float, float]]] = {"repeat": [], splits.SOFTWARE: []}
    for (*job, software), labels in steps.items():
        found["repeat"] += [(np.mean([data.step_ms[j] for j in labels if j != i]), data.step_ms[i]) for i in labels if len(labels) > 1]
        earlier = steps.get((*job, "pt111"), []) if software == "pt112" else []
        found[splits.SOFTWARE] += [(np.mean(data.step_ms[earlier]), data.step_ms[i]) for i in labels if earlier]
    rows = []
    for split, pairs in found.items():
        predicted, measured = map(np.array, zip(*pairs))
        e = errors(predicted, measured)
        rows.append(_row("profile", split, e, "0"))
    return rows


def _ours(folder: Path, trials: list[dict[str, str]], data: Dataset) -> list[dict[str, str]]:
    """The shipped form's errors on the same labels. Its families were left out five at a time, and its random folds were drawn
    otherwise: each network's answer is of the fold that lacked it."""
    tested = {split: set(data.network_name[data.label_network[test]]) for split, _, _, test in chosen_folds(data)}
    rows = []
    for split in training_folds.SPLITS:
        folds = {row["fold"] for row in trials if row["split"] == split}
        with open(folder / f"{split}.csv", newline="", encoding="utf-8") as file:
            chosen = [row for row in csv.DictReader(file) if (row["fold"] in folds if split == splits.GPUS else
                                                              split != splits.RANDOM or row["network"] in tested[split])]
        predicted, measured = (np.array([float(row[name]) for row in chosen]) for name in ("mdot", "step_ms"))
        e = errors(predicted, measured)
        rows.append(_row("mdot", split, e, "nan"))
    return rows


def table(folder: Path, earlier: dict[tuple[str, ...], dict[str, str]]) -> list[dict[str, str]]:
    """A row for each run, for notes/results/trials.csv: those of the earlier table, and the folder's."""
    names = [baseline.name for baseline in registry.BASELINES]
    rows = [row for row in earlier.values() if row["baseline"] in names]
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as run:
            e = errors(run["predicted_ms"], run["measured_ms"])
            rows.append(dict(zip(FIELDS, (str(run["baseline"]), str(run["split"]), str(run["fold"]), str(run["seed"]), str(e.count),
                                          f"{e.mape:.2f}", f"{e.median:.2f}", f"{e.mae_ms:.2f}", f"{e.rmse_ms:.1f}", str(run["epochs"]),
                                          f"{float(run['fit_s']):.1f}", f"{float(run['answer_us']):.0f}"))))
    return sorted({_key(row): row for row in rows}.values(), key=_key)


def write(data_path: Path, folder: Path, ours: Path, path: Path) -> None:
    runs, data = table(folder, known(path)), Dataset.load_file(data_path)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(profiles(data) + runs + _ours(ours, runs, data))
