"""Errors of predicted operators as a Markdown table, with a line for each GPU, source and kind."""

from __future__ import annotations

import numpy as np

from mdot_lab.operator_benchmarks.measurements import Measured

HEADER = ("| left out | GPU model | source | kind | measurements | median | mean | P90 | predicted / measured |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- | --- |")


def _line(cells: list[str], predicted: np.ndarray, measured: np.ndarray) -> str:
    error = 100 * np.abs(predicted / measured - 1)
    numbers = [str(len(error)), f"{np.median(error):.1f}", f"{error.mean():.1f}", f"{np.percentile(error, 90):.1f}",
               f"{np.median(predicted / measured):.2f}"]
    return "| " + " | ".join([*cells, *numbers]) + " |"


def lines(title: str, predicted: np.ndarray, measured: Measured) -> list[str]:
    """`title`: the part that was left out. The last line gives every group equal weight."""
    groups = measured.group
    of_group = {name: np.flatnonzero(groups == name) for name in np.unique(groups)}
    result = [_line([title, *name.split(" | ")], predicted[rows], measured.microseconds[rows])
              for name, rows in of_group.items()]
    medians = [np.median(100 * np.abs(predicted[rows] / measured.microseconds[rows] - 1)) for rows in of_group.values()]
    return [*result, f"| **{title}** | all | | | {len(groups)} | **{np.mean(medians):.1f}** (mean of the medians) | | | |"]
