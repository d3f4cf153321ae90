"""Driple's transfer: weights that were trained in one setting adapt to another with fewer labels and less time.

    python3 -m mdot_lab.baselines.driple_transfer --data data.npz [--table FILE.csv]

The source is training on the RTX 3090. The targets are inference on an RTX 4090, and training of torchvision's networks on an A100.
A third of a target's networks is left out and judged; of the others, some networks' labels are used. Both ways have the same labels,
inner fold, loop and stopping rule (trials.py): `anew` starts at random, `transferred` with the source's weights and scales. The
source never saw a judged network's target label; its own labels of networks with equal operators are left out.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path

import numpy as np
import torch

from mdot_lab.baselines import driple, network_fitting, training_folds, trials
from mdot_lab.predictor import splits
from mdot_lab.predictor.dataset import INFERENCE, Dataset
from mdot_lab.predictor.labels import BACKWARD
from mdot_lab.predictor.metrics import errors

SIZES = (10, 40, 160)
"""Networks with labels in the target."""
PARTS, SEED = 3, 0
FIELDS = ("target", "networks", "labels", "seed", "way", "mean", "median", "epochs", "fit_s")


def targets(data: Dataset) -> dict[str, np.ndarray]:
    is_image = ~splits.is_language(data) & ~splits.is_published(data)
    return {"inference, RTX-4090": np.flatnonzero((data.gpu == "RTX-4090") & (data.mode == INFERENCE) & is_image),
            "training, A100": np.flatnonzero((data.gpu == "A100-SXM-40GB") & (data.kind == BACKWARD) & is_image)}


def run(data: Dataset, seeds: int) -> list[dict[str, str]]:
    equal, rows = splits._same_operators(data), []
    of_target = targets(data)
    judged: dict[str, np.ndarray] = {}
    for name, labels in of_target.items():
        groups = np.unique(equal[data.label_network[labels]])
        out = np.random.default_rng(SEED).permutation(groups)[:len(groups) // PARTS]
        judged[name] = np.isin(equal[data.label_network[labels]], out)
    left_out = np.unique(np.concatenate([equal[data.label_network[labels[judged[name]]]] for name, labels in of_target.items()]))
    source = np.flatnonzero(training_folds.usable(data) & ~np.isin(equal[data.label_network], left_out))
    begin = time.process_time()
    start, epochs = trials.converged(driple.form(data, source), data, source, SEED)
    print(f"source: {len(source)} labels, {epochs} epochs, {time.process_time() - begin:.0f} s", file=sys.stderr, flush=True)
    for name, labels in of_target.items():
        test, rest = labels[judged[name]], labels[~judged[name]]
        networks = np.unique(data.label_network[rest])
        for size in SIZES:
            if size > len(networks) and size > 2 * SIZES[0]:
                continue
            for seed in range(seeds):
                some = np.random.default_rng(seed).permutation(networks)[:size]
                train = rest[np.isin(data.label_network[rest], some)]
                for way, first in (("anew", None), ("transferred", start)):
                    begin = time.process_time()
                    form = driple.form(data, source if first is not None else train)
                    model, epochs = trials.converged(form, data, train, seed, first)
                    seconds = time.process_time() - begin
                    e = errors(network_fitting.predict_labels(model, form, data, test), data.step_ms[test])
                    rows.append(dict(zip(FIELDS, (name, str(len(some)), str(len(train)), str(seed), way, f"{e.mape:.1f}", f"{e.median:.1f}",
                                                  str(epochs), f"{seconds:.1f}"))))
                    print(*rows[-1].values(), file=sys.stderr, flush=True)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--table", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = run(Dataset.load_file(options.data), options.seeds)
    with open(options.table, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
