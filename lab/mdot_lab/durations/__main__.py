"""Fits trees that correct a history's durations, judges them, and writes ONNX for `mdot compile` and --estimate trees:FILE.

    python3 -m mdot_lab.durations PHILLY=philly_all.csv ITP=itp_all.csv … --durations mdot-durations [--out durations.onnx]

Each trace is judged on its last six tenths: after fitting on its first four tenths, and after fitting on the others.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path

import numpy as np
import onnx

from mdot_lab.durations import export, jobs, trees

TRAINED = 0.4
MOST_ROWS = 60000
HEADER = "| trace | estimate | median error | mean error | pinball | 90 % interval | fit, s |\n| --- | --- | --- | --- | --- | --- | --- |"


def row(trace: str, name: str, log_s: np.ndarray, answer: np.ndarray, seconds: float) -> str:
    error = log_s[:, None] - answer
    pinball = np.mean(np.maximum(np.array(trees.PROBABILITIES) * error, (np.array(trees.PROBABILITIES) - 1) * error))
    inside = np.mean((answer[:, 0] <= log_s) & (log_s <= answer[:, 2]))
    middle = np.abs(error[:, 1])
    return f"| {trace} | {name} | {np.median(middle):.3f} | {middle.mean():.3f} | {pinball:.3f} | {inside:.0%} | {seconds:.0f} |"


def judge(name: str, traces: dict[str, jobs.Jobs]) -> list[str]:
    trace = traces[name]
    count = len(trace.log_s)
    first = np.flatnonzero(trace.completed & (np.arange(count) < TRAINED * count))
    last = np.flatnonzero(trace.completed & (np.arange(count) >= TRAINED * count))
    log_s, inputs = trace.log_s[last], trace.inputs[last]
    rows = [row(name, "history", log_s, inputs[:, trees.ENDS], 0)]
    begin = time.monotonic()
    rows.append(row(name, "after MLaaS: CART on metadata", log_s, trees.cart(trace.metadata[first], trace.log_s[first], trace.metadata[last]),
                    time.monotonic() - begin))
    others = [other for other in traces if other != name]
    own = (trace.inputs[first], trace.log_s[first])
    left_out = tuple(np.concatenate([getattr(traces[o], part)[traces[o].completed] for o in others]) for part in ("inputs", "log_s"))
    for label, (x, y) in (("after Helios: trees, fitted on its first jobs", own), ("after Helios: trees, fitted on the other traces", left_out)):
        begin = time.monotonic()
        rows.append(row(name, label, log_s, trees.predict(fit(x, y), inputs), time.monotonic() - begin))
    return rows


def fit(inputs: np.ndarray, log_s: np.ndarray) -> trees.Boosters:
    kept = np.random.default_rng(0).permutation(len(log_s))[:MOST_ROWS]
    return trees.fit(inputs[kept], log_s[kept])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("traces", nargs="+", metavar="NAME=TRACE")
    parser.add_argument("--durations", type=Path, required=True, help="the program mdot-durations")
    parser.add_argument("--table", type=Path, help="FILE.csv for the errors")
    parser.add_argument("--out", type=Path, help="ONNX file of trees that are fitted on all traces")
    options = parser.parse_args()
    pairs = (text.partition("=")[::2] for text in options.traces)
    traces = {name: jobs.read(options.durations, Path(path)) for name, path in pairs}
    if len(traces) > 1:
        print(HEADER)
        found = []
        for name in traces:
            found += judge(name, traces)
            print("\n".join(found[-4:]), flush=True)
        if options.table is not None:
            lines = [line.strip("| ").split(" | ") for line in (HEADER.splitlines()[0], *found)]
            with open(options.table, "w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows(lines)
    if options.out is not None:
        all_of = [np.concatenate([getattr(t, part)[t.completed] for t in traces.values()]) for part in ("inputs", "log_s")]
        onnx.save(export.to_onnx(fit(*all_of)), options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
