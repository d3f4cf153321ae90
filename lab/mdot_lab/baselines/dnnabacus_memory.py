"""DNNAbacus' second target: peak memory, by the structural matrix and a searched model.

    python3 -m mdot_lab.baselines.dnnabacus_memory --mdot $(command -v mdot) --graphs graphs --results ../weights/results \\
        --records ../weights/data/h200.jsonl.gz [--seeds 3] [--table FILE.csv]

Labels are the peaks of our own steps on an H200, and those of image networks in memory_networks.csv, which are PyTorch's. Inputs are
those of dnnabacus.py: the matrix of successive types, sums of FLOPs, bytes and parameters at the batch, the batch, and in addition
the precision, optimizer and layout. Five folds leave out networks; the model is searched anew in each. The table gives mdot's error
on the rows of memory_networks.csv, where both answer.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mdot_lab.baselines import model_search
from mdot_lab.collect import records
from mdot_lab.predictor import tables
from mdot_lab.predictor.sequences import Sequence, read_sequence

FOLDS = 5
WORDS = ("fp32", "tf32", "amp", "bf16", "fp16", "sgd", "adam", "adamw", "nhwc")
FIELDS = ("seed", "labels", "networks", "mean", "median", "common_labels", "common_mean", "mdot_common_mean", "models", "fit_s", "answer_us")


@dataclass(frozen=True)
class Label:
    network: str
    batch: int
    words: frozenset[str]
    peak_bytes: int
    mdot_bytes: int     # 0 without an answer


def labels(results: Path, own: Path, graphs: Path) -> list[tuple[Path, Label]]:
    found = []
    for record in records.read(own):
        if record["status"] == "ok" and not record["repeat"]:
            name = record["architecture"].replace("/", ".")
            words = {record["precision"], record["optimizer"], *(["nhwc"] if record["channels_last"] else [])}
            found.append((graphs / f"collected.{name}.{record['size']}.job",
                          Label(name.partition(".")[2], record["batch"], frozenset(words), record["memory"]["peak_allocated_bytes"], 0)))
    with open(results / "memory_networks.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            name = row["network"].partition("/")[2]
            paths = [graphs / f"{prefix}{name}.{size}.job" for size in (224, 256, 299, 300) for prefix in ("", "torchvision.")]
            path = next((path for path in paths if path.exists()), None)
            if path is not None:
                words = {row["precision"], row["optimizer"].partition("-")[0]}
                found.append((path, Label(name, int(row["batch"]), frozenset(words), int(row["reference_bytes"]), int(row["predicted_bytes"]))))
    return [(path, label) for path, label in found if path.exists()]


def inputs(sequence: Sequence, label: Label, pairs: np.ndarray) -> np.ndarray:
    load, half = sequence.load.sum(0), tables.PHASE_LOAD_COUNT
    at_batch = load[:half] * label.batch + load[half:2 * half]
    return np.concatenate([[np.log(label.batch), len(sequence), np.log1p(load[-1])], np.log1p(at_batch),
                           [word in label.words for word in WORDS], pairs])


def structure(sequence: Sequence) -> np.ndarray:
    types = len(tables.operator_types())
    return np.bincount(sequence.type[sequence.edge[:, 0]] * types + sequence.type[sequence.edge[:, 1]], minlength=types * types)


def judge(x: np.ndarray, chosen: list[Label], seed: int) -> list[str]:
    peak, own = (np.array([getattr(label, name) for label in chosen], dtype=float) for name in ("peak_bytes", "mdot_bytes"))
    networks, index = np.unique([label.network for label in chosen], return_inverse=True)
    fold = np.random.default_rng(seed).permutation(np.arange(len(networks)) % FOLDS)[index]
    predicted, models, begin, answering = np.empty(len(peak)), [], time.process_time(), 0.0
    for number in range(FOLDS):
        out = fold == number
        name, model = model_search.search(x[~out], np.log(peak[~out]), index[~out], seed)
        middle = time.process_time()
        predicted[out] = np.exp(model.predict(x[out]))
        answering += time.process_time() - middle
        models.append(name)
    off, common = 100 * np.abs(predicted / peak - 1), own > 0
    values = [off.mean(), np.median(off)]
    return [str(seed), str(len(peak)), str(len(networks)), *(f"{value:.1f}" for value in values), str(common.sum()),
            f"{off[common].mean():.1f}", f"{100 * np.abs(own / peak - 1)[common].mean():.2f}", "+".join(models),
            f"{(time.process_time() - begin - answering) / FOLDS:.1f}", f"{1e6 * answering / len(peak):.0f}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("mdot", "graphs", "results", "records"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    chosen = labels(options.results, options.records, options.graphs)
    sequences = {path: read_sequence(options.mdot, path) for path in sorted({path for path, _ in chosen})}
    matrix = {path: structure(sequence) for path, sequence in sequences.items()}
    seen = np.sum(list(matrix.values()), 0) > 0
    x = np.array([inputs(sequences[path], label, matrix[path][seen]) for path, label in chosen])
    rows = [FIELDS, *(judge(x, [label for _, label in chosen], seed) for seed in range(options.seeds))]
    file = open(options.table, "w", newline="", encoding="utf-8") if options.table else sys.stdout
    csv.writer(file, lineterminator="\n").writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
