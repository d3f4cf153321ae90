"""Fits the predictor of slowdowns and judges it.

    python3 -m mdot_lab.interference gavel_pairs.csv --out WEIGHTS [--jobs FOLDER] [--table RESULTS/interference.csv] [--rivals FILE.csv]
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import torch

from mdot_lab.interference import evaluation, export, pairs, process, rivals

QUANTILE = 0.9
SEEDS = 3
NAMES = {"pairs": "pairs of jobs", "networks": "a network", "cards": "a card"}
TOLERANCE = 2e-3
"""Relative; f32 against double precision."""


def _write(path: Path | None, rows: list[Sequence[str]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    if path is not None:
        path.write_text(text.getvalue(), encoding="utf-8")
    else:
        print(text.getvalue(), end="")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", type=Path, help="gavel_pairs.csv")
    parser.add_argument("--out", type=Path, required=True, help="folder for interference.onnx")
    parser.add_argument("--jobs", type=Path, default=Path("interference-jobs"), help="folder for the seven networks")
    parser.add_argument("--table", type=Path, help="file for the table of errors")
    parser.add_argument("--rivals", type=Path, help="file for the errors of published methods (rivals.py)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    measured = pairs.read(options.pairs, options.jobs)
    answers = {name: evaluation.predict_left_out(measured, split(measured)) for name, split in evaluation.SPLITS.items()}
    distances = [evaluation.deviations(measured, answers[name]) for name in ("networks", "cards")]
    factor = float(np.quantile(np.concatenate(distances), QUANTILE))
    rows = [evaluation.row("rule", "nothing: busy shares add", measured, evaluation.obvious_rule(measured), factor)]
    rows += [evaluation.row(name, NAMES[name], measured, answer, factor) for name, answer in answers.items()]
    print(f"{len(measured.gpus)} pairs; half the interval is {factor:.2f} deviations")
    _write(options.table, [evaluation.FIELDS, *rows])
    if options.rivals is not None:
        own = [[row[0], "0", "mdot", *row[2:]] for row in rows[1:]]
        _write(options.rivals, [rivals.FIELDS, *rivals.table(measured, evaluation.SPLITS, SEEDS, options.pairs), *own])
    fitted = process.fit(measured.loads, measured.slowdowns)
    model = export.to_onnx(fitted, factor)
    worst = export.difference(model, fitted, measured.loads)
    if worst > TOLERANCE:
        raise SystemExit(f"ONNX Runtime differs by {worst:.1e} from the fitted process")
    onnx.save(model, options.out / "interference.onnx")
    return 0


if __name__ == "__main__":
    sys.exit(main())
