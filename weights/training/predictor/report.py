"""The model card's tables, from evaluate's predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Iterable

import numpy as np

from predictor import splits
from predictor.evaluation import fold_files
from predictor.forms import FORMS, MORE_SEEDS
from predictor.metrics import Errors, errors

HEAD = "| MAPE | median | P90 | within 10 % | MAE, ms | RMSE, ms |"
TITLES = {splits.RANDOM: "random by network", splits.FAMILIES: "leave one family out"}


def _row(e: Errors) -> str:
    return f"| {e.mape:.1f} | {e.median:.1f} | {e.p90:.1f} | {e.within_10:.0f} | {e.mae_ms:.1f} | {e.rmse_ms:.1f} |"


def _load(folder: Path, form: str, split: str) -> dict[str, np.ndarray]:
    """By fold's name: rows of predicted, measured, NHWC."""
    result = {}
    for path in fold_files(folder, form, split):
        with np.load(path) as part:
            result[str(part["fold"])] = np.column_stack([part["predicted_ms"], part["measured_ms"], part["is_nhwc"]])
    return result


def _of(rows: np.ndarray) -> Errors:
    return errors(rows[:, 0], rows[:, 1])


def _members(folder: Path, split: str, form: str) -> dict[str, np.ndarray]:
    """The mean of the members' logarithms, where all of them were run."""
    members = [_load(folder, name, split) for name in (form, *(f"member {seed}" for seed in MORE_SEEDS))]
    result = {}
    for fold in set.intersection(*(set(parts) for parts in members)):
        rows = members[0][fold].copy()
        rows[:, 0] = np.exp(np.mean([np.log(parts[fold][:, 0]) for parts in members], axis=0))
        result[fold] = rows
    return result


def _together(parts: Iterable[np.ndarray]) -> np.ndarray:
    return np.concatenate(list(parts))


def _forms(folder: Path, split: str, shipped: str) -> list[str]:
    """A form that not all folds were run for stands with the shipped one on the same folds."""
    lines = [f"**{TITLES[split]}**", "", f"| form {HEAD} macro MAPE |", "| --- " * 8 + "|"]
    whole, notes = _load(folder, shipped, split), []
    forms = [(form.title, _load(folder, form.name, split)) for form in FORMS if form.title]
    for title, parts in [*forms, ("mean of three members, as shipped", _members(folder, split, shipped))]:
        if not parts:
            continue
        if parts.keys() < whole.keys():
            there, e = _of(_together(whole[fold] for fold in parts)), _of(_together(parts.values()))
            notes.append(f"{title}: {e.mape:.1f} / {e.median:.1f} on {', '.join(sorted(parts))}, where the shipped form "
                         f"has {there.mape:.1f} / {there.median:.1f}.")
            continue
        macro = np.mean([_of(rows).mape for rows in parts.values()])
        lines.append(f"| {title} {_row(_of(_together(parts.values())))} {macro:.1f} |")
    return [*lines, "", *notes, ""]


def _families(folder: Path, form: str) -> list[str]:
    parts = _load(folder, form, splits.FAMILIES)
    lines = [f"| family | labels {HEAD}", "| --- " * 8 + "|"]
    for name, rows in sorted(parts.items(), key=lambda part: _of(part[1]).mape):
        lines.append(f"| {name} | {len(rows)} {_row(_of(rows))}")
    return [*lines, ""]


def _layouts(folder: Path, form: str) -> list[str]:
    lines = [f"| split, layout {HEAD}", "| --- " * 7 + "|"]
    for split in splits.SPLITS:
        parts = _load(folder, form, split)
        if parts:
            rows = _together(parts.values())
            for is_nhwc, layout in ((0, "NCHW"), (1, "NHWC")):
                lines.append(f"| {TITLES[split]}, {layout} {_row(_of(rows[rows[:, 2] == is_nhwc]))}")
    return [*lines, ""]


def tables(folder: Path, form: str = "fusion") -> str:
    lines = [line for split in splits.SPLITS for line in _forms(folder, split, form)]
    return "\n".join([*lines, *_families(folder, form), *_layouts(folder, form)])
