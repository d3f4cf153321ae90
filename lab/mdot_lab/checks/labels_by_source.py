"""Compares `mdot.predict` with the recipe's published labels, by publisher: bias, errors, and how many lie in the interval.

    python3 -m mdot_lab.checks.labels_by_source --graphs graphs --published superbench_a100.csv llm_points.csv …
        [--torchvision pytorch-gpu-benchmark] [--model PREDICTOR.mdot] [--by gpu]

Each prediction has the label's precision, software, attention kernels, recomputation and optimizer. Half precision throughout
is asked as bf16, or as mixed-fp16 on GPU models that emulate bf16. A label that leaves the optimizer open is predicted with plain SGD. A board that differs from the label's GPU
model is asked by separate spec values (BOARDS). Labels of inference are skipped. Needs the package mdot and the graphs of
`predictor graphs`.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any, Callable

import mdot
import numpy as np

from mdot_lab.predictor import published, splits, tables
from mdot_lab.predictor.conditions import version
from mdot_lab.predictor.decode_inputs import FIRST_WITH_BF16
from mdot_lab.predictor.labels import INFER, SELECTIVE, Label, read_torchvision
from mdot_lab.predictor.measured_2026 import TORCHTITAN
from mdot_lab.predictor.metrics import errors
from mdot_lab.predictor.report import bias

PRECISIONS = {"amp": "amp-fp16", "amp_bf16": "amp-bf16", "fp16": "bf16"}
CHECKPOINTS = {0.0: "nothing", SELECTIVE: "selective", 1.0: "blocks"}


def settings(label: Label) -> dict[str, Any]:
    """The label's configuration in mdot's words."""
    major, minor = divmod(int(version(label.software)), 100)
    emulates = label.precision == "fp16" and tables.gpu(label.gpu)["compute_capability"] < FIRST_WITH_BF16
    precision = "mixed-fp16" if emulates else PRECISIONS.get(label.precision, label.precision)
    return {"batch": label.batch, "layout": label.layout, "precision": precision,
            "torch": f"{major}.{minor}", "attention": "flash" if label.is_fused else "eager", "compiled": label.is_compiled,
            "checkpoint": CHECKPOINTS[label.recomputes], "optimizer": label.optimizer or "sgd-plain"}


BOARDS = {TORCHTITAN: {"name": "H100 of 500 W with HBM2e", "watts": 500.0, "memory_gbps": 2400.0, "memory_gib": 96.0}}
"""Spec values in which a publisher's boards differ from the labels' GPU model. The recipe lacks them, and leaves the
difference to the benchmark's offset."""


def board(label: Label) -> Any:
    """The GPU to ask for: a model name or a description."""
    specs = BOARDS.get(label.run)
    return mdot.gpu(label.gpu).replace(**specs) if specs else label.gpu


GROUPS: dict[str, Callable[[Label], str]] = {
    "gpu": lambda label: label.gpu, "precision": lambda label: label.precision, "network": lambda label: label.network.name,
    "compiled": lambda label: "compiled" if label.is_compiled else "eager",
}


def _publisher(label: Label) -> str:
    return label.run if label.run in published.PUBLISHED else splits.TORCHVISION_BENCHMARK


def table(labels: list[Label], predicted: np.ndarray, inside: np.ndarray, by: Callable[[Label], str] | None) -> list[str]:
    lines = ["| publisher | labels | bias | MAPE | median | worst | inside, % |", "| --- " * 7 + "|"]
    groups: dict[str, list[int]] = {}
    for i, label in enumerate(labels):
        groups.setdefault(_publisher(label), []).append(i)
        if by is not None:
            groups.setdefault(f"{_publisher(label)}, {by(label)}", []).append(i)
    for name, rows in sorted(groups.items()):
        measured = np.array([labels[i].step_ms for i in rows])
        e = errors(predicted[rows], measured)
        worst = 100 * np.abs(predicted[rows] / measured - 1).max()
        lines.append(f"| {name} | {e.count} | {bias(predicted[rows], measured):+.1f} | {e.mape:.1f} | {e.median:.1f} | "
                     f"{worst:.0f} | {100 * inside[rows].mean():.0f} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=Path, required=True, help="folder of .job files")
    parser.add_argument("--published", type=Path, default=[], nargs="*", help="files that published.py reads")
    parser.add_argument("--torchvision", type=Path, default=[], nargs="*", help="folders of pytorch-gpu-benchmark's results")
    parser.add_argument("--model", type=Path, help="artefact of a predictor (default: the shipped one)")
    parser.add_argument("--by", choices=GROUPS, help="property that defines additional rows")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    known = [label for path in options.published for label in published.read(path)]
    known += [label for folder in options.torchvision for label in read_torchvision(folder)]
    labels = [label for label in known if label.kind != INFER and (options.graphs / label.network.graph_file).exists()]
    predictor = mdot.Predictor(options.model) if options.model else mdot.Predictor()
    jobs = {network: mdot.Job.load(options.graphs / network.graph_file) for network in {label.network for label in labels}}
    found = [predictor.predict(jobs[label.network], board(label), **settings(label)) for label in labels]
    predicted = np.array([answer.step_ms for answer in found])
    inside = np.array([answer.lower_ms <= label.step_ms <= answer.upper_ms for answer, label in zip(found, labels)])
    print("\n".join(table(labels, predicted, inside, GROUPS.get(options.by))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
