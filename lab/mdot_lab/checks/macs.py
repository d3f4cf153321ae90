"""Compares the forward FLOPs of `mdot extract` with the multiply-adds that timm publishes.

timm counts with fvcore (flop_count.py, jit_handles.py there) in inference: one for each multiply-add of convolutions, linear
layers and matmuls without biases, two for each element of a BatchNormalization, five for each element of a
LayerNormalization or GroupNormalization. This script computes the same count from the operators. An operator's forward FLOPs
are two for each multiply-add, and the additional FLOPs (biases, a folded normalisation, the softmax of an attention) are
subtracted. fvcore counts global pooling if a model writes it as AdaptiveAvgPool2d. It is left out here, because the output
does not contain the original operator.

Prints a table: a summary, then every network whose difference exceeds 1 % and 0.005 G.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import csv
import json
import subprocess
import sys
from pathlib import Path

RELATIVE, ABSOLUTE_GMACS = 0.01, 0.005
VERSIONS = ("pt110", "pt113")
"""Later versions run attention as one operator, which fvcore does not count."""

BATCH_NORM_FLOPS = 5        # in an operator's training FLOPs: frontend/job/operator_costs.c
SOFTMAX_FLOPS = 5           # for each score: ir/ops/norm.c


def published(table: Path) -> dict[tuple[str, str], float]:
    """Multiply-adds in billions by model and image size."""
    with table.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["torch"] in VERSIONS and row["gmacs"]]
    return {(row["model"], row["img_size"]): float(row["gmacs"]) for row in rows}


def elements(operator: dict) -> float:
    """Elements of the resulting feature map: channels times positions."""
    setting = operator["configuration"]
    return setting.get("channels_out", 0) * setting.get("size_out", 0)


def multiply_adds(operator: dict) -> float:
    """The multiply-adds that fvcore counts for one operator and one sample."""
    kind, setting, forward = operator["type"], operator["configuration"], operator["forward"]
    flops = forward["flops"]
    if kind in ("Conv", "ConvTranspose"):
        normalised = elements(operator) if setting.get("normalised") else 0
        biased = elements(operator) if setting.get("bias") else 0
        return (flops - BATCH_NORM_FLOPS * normalised - biased) / 2 + 2 * normalised
    if kind == "Linear":
        return (flops - (elements(operator) if setting.get("bias") else 0)) / 2
    if kind in ("MatMul", "Einsum"):
        return flops / 2
    if kind == "Attention":
        scores = flops / (4 * setting["head_size"] + SOFTMAX_FLOPS)
        return 2 * scores * setting["head_size"]
    if kind == "BatchNormalization":
        return 2 * flops / BATCH_NORM_FLOPS
    if kind in ("LayerNormalization", "GroupNormalization"):
        return 5 * forward["bytes_written"] / 4
    return 0


def count(mdot: Path, graph: Path) -> float:
    """Multiply-adds in billions for one sample."""
    run = subprocess.run([mdot, "extract", "--json", "--quiet", "--batch", "1", graph], capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr.strip())
    return sum(map(multiply_adds, json.loads(run.stdout)["operators"])) / 1e9


def is_close(ours: float, theirs: float) -> bool:
    return abs(ours - theirs) <= max(RELATIVE * theirs, ABSOLUTE_GMACS)


def compare(mdot: Path, folder: Path, table: Path, workers: int) -> list[tuple[str, float, float]]:
    known = published(table)
    names = [(model, size) for model, size in sorted(known) if (folder / f"{model}.{size}.onnx").exists()]
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        ours = list(pool.map(lambda name: count(mdot, folder / f"{name[0]}.{name[1]}.onnx"), names))
    return [(f"{model} at {size}", mine, known[model, size]) for (model, size), mine in zip(names, ours)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mdot", type=Path, help="the command")
    parser.add_argument("graphs", type=Path, help="folder of MODEL.SIZE.onnx (python3 -m mdot_lab.predictor graphs)")
    parser.add_argument("table", type=Path, help="timm's benchmark of inference, with a column gmacs")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    results = compare(options.mdot, options.graphs, options.table, options.workers)
    off = [row for row in results if not is_close(row[1], row[2])]
    if not results:
        print("macs: no graph has a published count", file=sys.stderr)
        return 1
    percent = 100 * (len(results) - len(off)) / len(results)
    print(f"{len(results)} networks; {len(results) - len(off)} ({percent:.1f} %) within "
          f"{RELATIVE:.0%} or {ABSOLUTE_GMACS} GMAC.\n")
    print("| network | mdot, GMAC | timm, GMAC | difference, % |\n| --- | --- | --- | --- |")
    for name, ours, theirs in off:
        print(f"| {name} | {ours:.3f} | {theirs:.2f} | {100 * (ours / theirs - 1):+.1f} |")
    return 0 if percent >= 95 else 1


if __name__ == "__main__":
    sys.exit(main())
