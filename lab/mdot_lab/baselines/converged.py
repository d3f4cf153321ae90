"""MDOT as published, trained to convergence. `baseline_evaluation` trains it for 20 epochs, which is too few.

    python3 -m mdot_lab.baselines.converged --data data.npz --out FOLDER [--splits …] [--seeds 3] [--minutes 80]

Of each fold's training labels, the networks of an inner fold are held out. The rate halves when their error has not
decreased for PATIENCE epochs, and training stops after HALVINGS. The answer is that of the epoch with the least inner error. A
seed chooses the inner fold and the initial weights. Every run is a file in FOLDER, so that a second call resumes, and no run
begins after `--minutes`. The last output is the table.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

from mdot_lab.baselines import jobs, mdot_as_published, network_fitting, training_folds
from mdot_lab.predictor.dataset import Dataset
from mdot_lab.predictor.metrics import errors

INNER_PART, MOST_EPOCHS, PATIENCE, HALVINGS = 0.1, 240, 8, 4
SHORT_EPOCHS = 20
"""Those of `baseline_evaluation`."""


class Trial:
    """The model on one fold with one seed."""

    def __init__(self, data: Dataset, train: np.ndarray, seed: int) -> None:
        self.settings, self.data = mdot_as_published.SETTINGS, data
        self.random = np.random.default_rng(seed)
        networks = self.random.permutation(np.unique(data.label_network[train]))
        is_inner = np.isin(data.label_network[train], networks[:max(1, int(INNER_PART * len(networks)))])
        self.reader = mdot_as_published.Reader(data, self.settings.capacity)
        torch.manual_seed(seed)
        steps = jobs.merged_steps(data, train[~is_inner])
        types = jobs.known_types(data, data.label_network[train])
        self.model = mdot_as_published.Published(self.settings, types, mdot_as_published._scales(self.reader, steps))
        self.chosen = [steps.take(rows) for rows in jobs.parts(steps, self.settings.schedule.networks, self.random)]
        self.parts = [self.reader.part(some) for some in self.chosen]
        self.inner = self._prepared(train[is_inner])
        self.epochs = 0

    def _prepared(self, labels: np.ndarray) -> list:
        wanted = jobs.steps(self.data, labels)
        return [(wanted.take(rows), self.reader.part(wanted.take(rows))) for rows in jobs.parts(wanted, 32, None)]

    @torch.no_grad()
    def _inner_error(self) -> float:
        self.model.eval()
        off = [(self.model(part) - network_fitting.tensor(some.log_ms)).abs().numpy() for some, part in self.inner]
        return float(np.concatenate(off).mean())

    def _epoch(self, optimizer: torch.optim.Optimizer) -> None:
        self.model.train()
        for i in self.random.permutation(len(self.parts)):
            some = self.chosen[i]
            off = (self.model(self.parts[i]) - network_fitting.tensor(some.log_ms)).abs()
            weight = network_fitting.tensor(some.weight)
            optimizer.zero_grad(set_to_none=True)
            ((off * weight).sum() / weight.sum()).backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            optimizer.step()

    def fit(self) -> None:
        schedule = self.settings.schedule
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=schedule.rate / 3, weight_decay=schedule.decay)
        least, best, since, halved = np.inf, None, 0, 0
        while self.epochs < MOST_EPOCHS and halved < HALVINGS:
            if self.epochs == 2:    # the first two epochs warm up
                optimizer.param_groups[0]["lr"] = schedule.rate
            self._epoch(optimizer)
            self.epochs += 1
            error = self._inner_error()
            since = 0 if error < least else since + 1
            if error < least:
                least, best = error, copy.deepcopy(self.model.state_dict())
            if since == PATIENCE:
                self.model.load_state_dict(best)
                optimizer.param_groups[0]["lr"] /= 2
                since, halved = 0, halved + 1
        self.model.load_state_dict(best)
        self.model.eval()

    def predict(self, test: np.ndarray) -> np.ndarray:
        return network_fitting.predict_labels(self.model, self.data, test, self.settings.schedule, self.reader.part)


def run(data: Dataset, folder: Path, splits: list[str], seeds: int, minutes: float) -> None:
    end = time.monotonic() + 60 * minutes
    for seed in range(seeds):
        for split in splits:
            for number, (fold, train, test) in enumerate(training_folds.folds(data, split)):
                path = folder / f"{split}.{number}.{seed}.npz"
                if path.exists() or time.monotonic() > end:
                    continue
                begin = time.process_time()
                trial = Trial(data, train, seed)
                trial.fit()
                predicted = trial.predict(test)
                np.savez(path, fold=fold, label=test, predicted_ms=predicted, measured_ms=data.step_ms[test])
                e = errors(predicted, data.step_ms[test])
                print(f"{split:9} {fold:20} seed {seed} {e.mape:5.1f} / {e.median:4.1f}  MAE {e.mae_ms:.1f} RMSE {e.rmse_ms:.1f}  "
                      f"{trial.epochs} epochs {time.process_time() - begin:4.0f} s", file=sys.stderr, flush=True)


def table(folder: Path, splits: list[str], seeds: int) -> str:
    """A row for each split and seed, over the folds that are there."""
    lines = ["| split | seed | folds | labels | MAPE, % | median | MAE, ms | RMSE, ms |", "| --- " * 8 + "|"]
    for split in splits:
        for seed in range(seeds):
            found = [np.load(path) for path in sorted(folder.glob(f"{split}.*.{seed}.npz"))]
            if found:
                e = errors(*(np.concatenate([each[key] for each in found]) for key in ("predicted_ms", "measured_ms")))
                lines.append(f"| {split} | {seed} | {len(found)} | {e.count} | {e.mape:.1f} | {e.median:.1f} | {e.mae_ms:.1f} | "
                             f"{e.rmse_ms:.1f} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="FILE.npz that mdot_lab.predictor dataset wrote")
    parser.add_argument("--out", type=Path, required=True, help="folder of runs")
    parser.add_argument("--splits", nargs="*", default=list(training_folds.SPLITS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=np.inf, help="no run begins later")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    run(Dataset.load_file(options.data), options.out, options.splits, options.seeds, options.minutes)
    print(table(options.out, options.splits, options.seeds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
