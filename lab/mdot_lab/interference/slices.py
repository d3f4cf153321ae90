"""Slowdowns on MIG slices, judged on miso_mig.csv: python3 -m mdot_lab.interference.slices miso_mig.csv [--table FILE.csv]

A slowdown is a step on a slice over that on the whole A100. All batches of a network are left out together.

- proportional: the slice's part of the multiprocessors, 7 / slices;
- median by slice: that of the other networks, with the batch ignored;
- by batch: a line in the logarithm of the batch and of the step on the whole GPU, for each slice, fitted on the other networks;
- one measured slice: step = a + b / slices through the whole GPU and one measured slice of the job itself; the others are judged.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

WHOLE = 7
FIELDS = ("law", "slowdowns", "mean", "median", "by_slice")


def read(path: Path) -> dict[tuple[str, int], dict[int, float]]:
    """Median milliseconds by slices, for each network and batch that the whole GPU has."""
    jobs: dict[tuple[str, int], dict[int, float]] = {}
    with open(path, newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(line for line in lines if not line.startswith("#")):
            jobs.setdefault((row["model"], int(row["batch"])), {})[int(row["slices_of_7"])] = float(row["step_ms_median"])
    return {job: steps for job, steps in jobs.items() if WHOLE in steps}


def judge(jobs: dict[tuple[str, int], dict[int, float]]) -> list[tuple[str, ...]]:
    rows = [(network, batch, slices, ms / steps[WHOLE], steps) for (network, batch), steps in jobs.items()
            for slices, ms in steps.items() if slices != WHOLE]
    found: dict[str, list[tuple[int, float]]] = {name: [] for name in ("proportional", "median by slice", "by batch", "one measured slice")}
    for network, batch, slices, truth, steps in rows:
        others = [row for row in rows if row[0] != network and row[2] == slices]
        logs = np.log([row[3] for row in others])
        inputs = np.array([[1, np.log(row[1]), np.log(row[4][WHOLE])] for row in others])
        line = np.linalg.lstsq(inputs, logs, rcond=None)[0] @ [1, np.log(batch), np.log(steps[WHOLE])]
        answers = {"proportional": WHOLE / slices, "median by slice": np.exp(np.median(logs)), "by batch": max(np.exp(line), 1)}
        known = min((other for other in steps if other not in (slices, WHOLE)), key=lambda other: abs(other - 2), default=None)
        if known is not None:
            growth = (steps[known] / steps[WHOLE] - 1) / (1 / known - 1 / WHOLE)
            answers["one measured slice"] = max(1 + growth * (1 / slices - 1 / WHOLE), 1)
        for name, answer in answers.items():
            found[name].append((slices, 100 * abs(answer / truth - 1)))
    table = []
    for name, errors in found.items():
        every = np.array([error for _, error in errors])
        parts = {of: np.mean([error for slices, error in errors if slices == of]) for of in sorted({slices for slices, _ in errors})}
        table.append((name, str(len(every)), f"{every.mean():.1f}", f"{np.median(every):.1f}",
                      ", ".join(f"{of}/7: {error:.1f}" for of, error in parts.items())))
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("steps", type=Path, help="miso_mig.csv")
    parser.add_argument("--table", type=Path, help="file for the table of errors")
    options = parser.parse_args()
    file = open(options.table, "w", newline="", encoding="utf-8") if options.table else sys.stdout
    csv.writer(file, lineterminator="\n").writerows([FIELDS, *judge(read(options.steps))])
    return 0


if __name__ == "__main__":
    sys.exit(main())
