#!/usr/bin/env python3
"""Holds what `mdot.predict` says of language models on one GPU and on hundreds to published steps: vTrain's, llm-foundry's, NVIDIA's.

    python language_models.py training_points.csv --graphs FOLDER [--model PREDICTOR.mdot] [--by gpus]

Graphs that FOLDER lacks are made. Needs PyTorch and transformers for that, and the package mdot. Taken where the points leave it open:
fp16 throughout as bf16, Adam, groups of tensor parallelism within a node, 25 GB/s a GPU between nodes.

NVIDIA's are of BERT-large in TensorFlow 1, its optimizer after so many passes that it counts nothing, or lengths of 384 where a point
names none (SQuAD).

The shipped predictor is trained on those of llm-foundry's points that one node computes, and on those of vTrain's without tensor
parallelism and pipelines: `outside` are all others.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mdot
import numpy as np
from predictor import language, published
from predictor.labels import Network

NODE, NETWORK_GBPS = 8, 25.0


@dataclass(frozen=True)
class Point:
    source: str
    network: Network
    card: str
    options: dict
    step_ms: float
    is_trained: bool

    @property
    def gpus(self) -> int:
        return self.options["gpus"]


def _several(gpus: int) -> dict:
    return {"gpus": gpus, "nodes": max(1, gpus // NODE), "network": NETWORK_GBPS}


def _vtrain(row: dict[str, str]) -> Point:
    note = published.vtrain_settings(row)
    tensor, stages, workers = (int(note[name]) for name in ("tp", "pp", "dp"))
    batch = int(float(row["batch_per_gpu"]))
    passes = int(note["global_batch"]) // (workers * batch)
    way = {"batch": batch * passes, "micro_batches": passes} if stages > 1 else {"batch": batch, "accumulate": passes}
    options = {**way, **_several(tensor * stages * workers), "data_parallel": workers, "tensor_parallel": tensor,
               "pipeline_parallel": stages, "precision": "bf16", "attention": "eager", "checkpoint": "blocks", "optimizer": "adam", "torch": "1.11"}
    return Point("vTrain", published.network(row), "A100-SXM-80GB", options, note["iteration_ms"], tensor == 1 and stages == 1)


def _foundry(row: dict[str, str]) -> Point:
    passes, precision, recomputes, step_ms = published.foundry_settings(row)
    gpus = int(float(row["gpus"]))
    options = {"batch": int(float(row["batch_per_gpu"])), "accumulate": passes, **_several(gpus), "zero": 3, "precision": precision,
               "attention": "flash", "checkpoint": "blocks" if recomputes else None, "optimizer": "adamw", "torch": "2.0"}
    return Point("llm-foundry", published.network(row), published.FOUNDRY_CARDS[row["gpu"]], options, step_ms, gpus <= NODE)


SQUAD_LENGTH, PASSES = 384, 64


def _nvidia(row: dict[str, str]) -> Point | None:
    if row["model"] != "BERT" or row["framework"] != "TensorFlow" or not row["gpus"] or not row["batch_per_gpu"]:
        return None
    gpus, batch, notes = int(float(row["gpus"])), int(float(row["batch_per_gpu"])), row["notes"]
    is_pretraining = bool(row["seq_or_resolution"])
    length = int(float(row["seq_or_resolution"])) if is_pretraining else SQUAD_LENGTH
    card = {"A100-40": "A100-SXM-40GB", "A100-80": "A100-SXM-80GB"}.get(row["gpu_canonical"])
    card = card or ("V100-SXM-16GB" if "16GB" in notes.split(";")[-1] else "V100-SXM-32GB")
    passes = PASSES if is_pretraining else 1
    options = {"batch": batch, "gpus": gpus, "accumulate": passes, "precision": row["precision"], "attention": "eager",
               "optimizer": "adam", "torch": "1.11"}
    step_ms = 1e3 * batch * passes * gpus / float(row["throughput"])
    return Point("NVIDIA BERT", Network(language.LANGUAGE + "bert_large", length), card, options, step_ms, False)


READERS = {"VIA-Research/vTrain": _vtrain, "mosaicml/llm-foundry": _foundry, "NVIDIA/DeepLearningExamples": _nvidia}


def _job(network: Network, folder: Path) -> mdot.Job:
    path = folder / network.graph_file
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        language.build(network.name.removeprefix(language.LANGUAGE), network.image_size).save(path)
    return mdot.Job.load(path)


def _line(title: str, points: list[Point], answers: np.ndarray, inside: np.ndarray) -> str:
    ratio = answers / np.array([point.step_ms for point in points])
    error = 100 * np.abs(ratio - 1)
    return (f"| {title} | {len(points)} | {error.mean():.1f} | {np.median(error):.1f} | {np.percentile(error, 90):.1f} | "
            f"{np.median(ratio):.2f} | {100 * inside.mean():.0f} |")


GROUPS = {"way": lambda point: ", ".join(f"{name} {point.options.get(name, 1)}" for name in ("tensor_parallel", "pipeline_parallel")),
          "batch": lambda point: f"{point.options['batch'] // point.options.get('micro_batches', 1)} samples a pass", "gpus": lambda point: f"{point.gpus:4} GPUs", "model": lambda point: point.network.name,
          "precision": lambda point: point.options["precision"], "length": lambda point: f"length {point.network.image_size:5}", "card": lambda point: point.card}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("points", type=Path, help="training_points.csv")
    parser.add_argument("--graphs", type=Path, required=True)
    parser.add_argument("--model", type=Path, help="another predictor than the shipped one")
    parser.add_argument("--by", choices=GROUPS, help="a row each")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    predictor = mdot.Predictor(options.model) if options.model else mdot.Predictor()
    points = list(published.points(options.points, READERS))
    jobs = {network: _job(network, options.graphs) for network in {point.network for point in points}}
    found = [predictor.predict(jobs[point.network], point.card, **point.options) for point in points]
    answers = np.array([answer.step_ms for answer in found])
    inside = np.array([answer.lower_ms <= point.step_ms <= answer.upper_ms for answer, point in zip(found, points)])
    print("| published by | steps | mean | median | P90 | predicted / measured | inside the interval |\n" + "| --- " * 7 + "|")
    for source in sorted({point.source for point in points}):
        for is_trained in (True, False):
            title = f"{source}, {'trained on' if is_trained else 'outside'}"
            groups = {title: [i for i, p in enumerate(points) if p.source == source and p.is_trained == is_trained]}
            if options.by:
                for i in groups[title]:
                    groups.setdefault(f"{title}, {GROUPS[options.by](points[i])}", []).append(i)
            for name, rows in sorted(groups.items()):
                if rows:
                    print(_line(name, [points[i] for i in rows], answers[rows], inside[rows]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
