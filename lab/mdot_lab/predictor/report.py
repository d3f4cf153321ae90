"""The tables for notes/accuracy.md, from evaluate's predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Iterable

import numpy as np

from mdot_lab.predictor import gpu_ranking, splits
from mdot_lab.predictor.dataset import Dataset
from mdot_lab.predictor.evaluation import Fold, inner, read_bounds, read_folds
from mdot_lab.predictor.ablations import FORMS, SHIPPED_FORM
from mdot_lab.predictor.metrics import Errors, errors

HEAD = "| MAPE | median | P90 | within 10 % | MAE, ms | RMSE, ms |"
TITLES = {splits.RANDOM: "Random folds, equal networks together", splits.FAMILIES: "One family left out",
          splits.GPUS: "One GPU model and its twins left out", splits.SOFTWARE: "Newer software left out",
          splits.LANGUAGE_MODELS: "Language models left out, a fifth at a time",
          splits.LANGUAGE_GPUS: "One GPU model and its twins left out, language models",
          splits.SOURCES: "One publisher left out", splits.INFERENCE_FAMILIES: "One family left out, inference",
          splits.INFERENCE_GPUS: "One GPU model and its twins left out, inference",
          splits.COLLECTED: "Networks left out, a third at a time, of our own records of an H200"}


def _row(e: Errors) -> str:
    return f"| {e.mape:.1f} | {e.median:.1f} | {e.p90:.1f} | {e.within_10:.0f} | {e.mae_ms:.1f} | {e.rmse_ms:.1f} |"


def _rows(fold: Fold) -> np.ndarray:
    """Columns: predicted, measured, NHWC."""
    return np.column_stack([fold.predicted_ms, fold.measured_ms, fold.is_nhwc])


def _load(folder: Path, form: str, split: str) -> dict[str, np.ndarray]:
    return {name: _rows(fold) for name, fold in read_folds(folder, form, split).items()}


def _of(rows: np.ndarray) -> Errors:
    return errors(rows[:, 0], rows[:, 1])


def _together(parts: Iterable[np.ndarray]) -> np.ndarray:
    return np.concatenate(list(parts))


def _forms(folder: Path, split: str) -> list[str]:
    """A table of forms. A form with missing folds is listed together with the shipped form on the same folds."""
    lines = [f"**{TITLES[split]}**", "", f"| form | folds {HEAD} macro MAPE |", "| --- " * 9 + "|"]
    whole, notes = _load(folder, SHIPPED_FORM, split), []
    for form in FORMS:
        parts = _load(folder, form.name, split)
        if not parts:
            continue
        if parts.keys() < whole.keys():
            there, e = _of(_together(whole[fold] for fold in parts)), _of(_together(parts.values()))
            notes.append(f"{form.title}: {e.mape:.1f} / {e.median:.1f} on {', '.join(sorted(parts))}, where the shipped form "
                         f"has {there.mape:.1f} / {there.median:.1f}.")
            continue
        macro = np.mean([_of(rows).mape for rows in parts.values()])
        lines.append(f"| {form.title} | {len(parts)} {_row(_of(_together(parts.values())))} {macro:.1f} |")
    return [*lines, "", *notes, ""] if notes else [*lines, ""]


def _parts(folder: Path, split: str, title: str) -> list[str]:
    lines = [f"| {title} | labels {HEAD}", "| --- " * 8 + "|"]
    for name, rows in sorted(_load(folder, SHIPPED_FORM, split).items(), key=lambda part: _of(part[1]).mape):
        lines.append(f"| {name} | {len(rows)} {_row(_of(rows))}")
    return [*lines, ""]


def _layouts(folder: Path) -> list[str]:
    lines = [f"| split, layout {HEAD}", "| --- " * 7 + "|"]
    for split in (splits.RANDOM, splits.FAMILIES, splits.SOFTWARE):
        parts = _load(folder, SHIPPED_FORM, split)
        if parts:
            rows = _together(parts.values())
            for is_nhwc, layout in ((0, "NCHW"), (1, "NHWC")):
                lines.append(f"| {TITLES[split]}, {layout} {_row(_of(rows[rows[:, 2] == is_nhwc]))}")
    return [*lines, ""]


def bias(predicted: np.ndarray, measured: np.ndarray) -> float:
    """Mean deviation, %: the geometric mean of predicted over measured. Negative if predictions are too short."""
    return float(100 * np.expm1(np.log(predicted / measured).mean()))


def _inside(bounds: dict[int, tuple[float, float]], label: np.ndarray, measured: np.ndarray) -> str:
    """Percentage of labels inside the interval; empty without a fitted interval."""
    if any(int(each) not in bounds for each in label):
        return ""
    lower, upper = np.array([bounds[int(each)] for each in label]).T
    return f"{100 * ((lower <= measured) & (measured <= upper)).mean():.0f}"


def _sources(folder: Path, data: Dataset) -> list[str]:
    """The shipped form by publisher of the labels, in every split."""
    lines = ["**By publisher**", "", "| split | publisher | labels | bias | MAPE | median | inside |", "| --- " * 7 + "|"]
    of_label = splits.sources(data)
    for split in splits.SPLITS:
        folds, bounds = read_folds(folder, SHIPPED_FORM, split).values(), read_bounds(folder, split)
        if not folds:
            continue
        label, predicted, measured = (np.concatenate([getattr(fold, field) for fold in folds])
                                      for field in ("label", "predicted_ms", "measured_ms"))
        for name in np.unique(of_label[label]):
            at = of_label[label] == name
            e = errors(predicted[at], measured[at])
            lines.append(f"| {split} | {name} | {e.count} | {bias(predicted[at], measured[at]):+.1f} | {e.mape:.1f} | "
                         f"{e.median:.1f} | {_inside(bounds, label[at], measured[at])} |")
    return [*lines, ""]


def _operators(folder: Path, data: Dataset) -> list[str]:
    """Single operators with one architecture held out: a row for each operator type and precision."""
    lines = ["| left out | operator, precision | GPU models | labels | median | mean | P90 | predicted / measured |",
             "| --- " * 8 + "|"]
    for name, fold in read_folds(folder, SHIPPED_FORM, splits.ARCHITECTURES).items():
        type_of = np.array([str(run).rsplit(" ", 1)[1] for run in data.run[fold.label]])
        is_half = np.isin(data.precision[fold.label], ("bf16", "fp16"))
        kind = np.char.add(type_of, np.where(is_half, ", half precision", ", fp32"))
        for each in np.unique(kind):
            rows = kind == each
            e = errors(fold.predicted_ms[rows], fold.measured_ms[rows])
            ratio = np.median(fold.predicted_ms[rows] / fold.measured_ms[rows])
            gpu_models = len(np.unique(data.gpu[fold.label[rows]]))
            lines.append(f"| {name} | {each} | {gpu_models} | {e.count} | {e.median:.1f} | {e.mape:.1f} | {e.p90:.1f} | "
                         f"{ratio:.2f} |")
    return [*lines, ""]


def tables(folder: Path, data: Dataset) -> str:
    lines = [line for split in splits.SPLITS for line in _forms(folder, split)]
    return "\n".join([*lines, *_parts(folder, splits.FAMILIES, "family"), *_parts(folder, splits.GPUS, "GPU models"),
                      *gpu_ranking.lines(read_folds(folder, SHIPPED_FORM, splits.GPUS), data),
                      *_parts(folder, splits.LANGUAGE_GPUS, "GPU models, language models"),
                      *_parts(folder, splits.INFERENCE_FAMILIES, "family, inference"),
                      *_parts(folder, splits.INFERENCE_GPUS, "GPU models, inference"),
                      *_layouts(folder), *_sources(folder, data), *_operators(folder, data)])


def choices(folder: Path) -> str:
    """The forms on the inner folds of every split, from `evaluate --inner`. Choices are made from this table alone."""
    lines = ["| split | form | inner folds | labels | bias | MAPE | median |", "| --- " * 7 + "|"]
    for split in splits.SPLITS:
        for form in FORMS:
            folds = read_folds(folder, form.name, inner(split)).values()
            if folds:
                predicted, measured = (np.concatenate([getattr(fold, field) for fold in folds])
                                       for field in ("predicted_ms", "measured_ms"))
                e = errors(predicted, measured)
                lines.append(f"| {split} | {form.title} | {len(folds)} | {e.count} | {bias(predicted, measured):+.1f} | "
                             f"{e.mape:.1f} | {e.median:.1f} |")
    return "\n".join(lines)
