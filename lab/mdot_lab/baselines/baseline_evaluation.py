"""Runs baselines on the predictor's folds and reports errors. Predictions have the file format of `mdot_lab.predictor
evaluate`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import torch

from mdot_lab.baselines import training_folds, registry
from mdot_lab.baselines.registry import Baseline
from mdot_lab.predictor.dataset import Dataset
from mdot_lab.predictor.evaluation import Fold, fold_file, read_folds
from mdot_lab.predictor.metrics import Errors, errors


def run(data_path: Path, folder: Path, names: list[str] | None, only_splits: list[str] | None,
        only_folds: list[str] | None) -> None:
    """Skips folds whose files exist. Remove the folder to start from the beginning."""
    torch.set_num_threads(1)
    data = Dataset.load_file(data_path)
    folder.mkdir(parents=True, exist_ok=True)
    for split in only_splits or training_folds.SPLITS:
        for baseline in (each for each in registry.by_name(names) if split in each.splits):
            for fold, train, test in training_folds.folds(data, split):
                path = fold_file(folder, baseline.name, split, fold)
                if path.exists() or (only_folds and fold not in only_folds):
                    continue
                begin = time.monotonic()
                predicted = baseline.predict(data, train, test, baseline.module.SETTINGS)
                np.savez(path, fold=fold, label=test, predicted_ms=predicted, measured_ms=data.step_ms[test],
                         is_nhwc=data.is_nhwc[test])
                e = errors(predicted, data.step_ms[test])
                print(f"{baseline.name:20} {split:9} {fold:20} {e.mape:5.1f} / {e.median:4.1f}  "
                      f"{time.monotonic() - begin:5.0f} s", file=sys.stderr, flush=True)


HEAD = "| folds | labels | MAPE | median | P90 | within 10 % | MAE, ms | RMSE, ms | MAPE, NHWC | median, NHWC |"


def _row(found: dict[str, Fold]) -> str:
    predicted, measured, is_nhwc = (np.concatenate([getattr(fold, field) for fold in found.values()])
                                    for field in ("predicted_ms", "measured_ms", "is_nhwc"))
    e: Errors = errors(predicted, measured)
    nhwc = errors(predicted[is_nhwc], measured[is_nhwc]) if is_nhwc.any() else None
    last = f"{nhwc.mape:.1f} | {nhwc.median:.1f}" if nhwc else "– | –"
    return (f"{len(found)} | {e.count} | {e.mape:.1f} | {e.median:.1f} | {e.p90:.1f} | {e.within_10:.0f} | {e.mae_ms:.1f} | "
            f"{e.rmse_ms:.1f} | {last}")


def report(folder: Path, ours: Path | None, form: str) -> str:
    """A table for each split: the baselines in `folder`, and the predictor's form in `ours` if it has the same folds."""
    lines = []
    for split in training_folds.SPLITS:
        rows = [(baseline.title, read_folds(folder, baseline.name, split)) for baseline in registry.BASELINES]
        rows = [(title, found) for title, found in rows if found]
        predictor = read_folds(ours, form, split) if ours else {}
        if predictor:
            rows.append((f"the predictor ({form})", predictor))
        lines += [f"**{split}**", "", f"| baseline {HEAD}", "| --- " * 11 + "|"]
        lines += [f"| {title} | {_row(found)} |" for title, found in rows] + [""]
    return "\n".join(lines)


def tune(data_path: Path, names: list[str] | None) -> str:
    """Evaluates each baseline's TRIED settings on folds within the first fold's training labels. The least MAPE sum is
    best."""
    torch.set_num_threads(1)
    data = Dataset.load_file(data_path)
    _, train, _ = next(iter(training_folds.folds(data, training_folds.SPLITS[0])))
    inner = list(training_folds.inner(data, train))
    lines = [f"| baseline | settings | {' | '.join(name for name, _, _ in inner)} |", "| --- " * (2 + len(inner)) + "|"]
    for baseline in registry.by_name(names):
        lines += [_tried(baseline, data, settings, inner) for settings in baseline.module.TRIED]
    return "\n".join(lines)


def _tried(baseline: Baseline, data: Dataset, settings: object, inner: list[tuple[str, np.ndarray, np.ndarray]]) -> str:
    cells = []
    for _, train, test in inner:
        e = errors(baseline.predict(data, train, test, settings), data.step_ms[test])
        cells.append(f"{e.mape:.1f} / {e.median:.1f}")
    line = f"| {baseline.name} | {settings} | {' | '.join(cells)} |"
    print(line, file=sys.stderr, flush=True)
    return line
