"""Compares `mdot.predict` with published training steps of language models and image networks on one GPU and on several.

    python3 -m mdot_lab.checks.published_steps training_points.csv --graphs FOLDER [--model PREDICTOR.mdot]
        [--of vTrain NVIDIA …] [--by gpus]

`points/` documents the assumptions about each publisher's settings. Graphs that FOLDER lacks are made, which requires
PyTorch, transformers, timm and torchvision. Otherwise the package mdot is enough. The shipped predictor is trained on
llm-foundry's points of a single node, and on vTrain's points without tensor and pipeline parallelism. All other points are
`outside`. A result that a publisher states twice counts once.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import mdot
import numpy as np
from mdot_lab.checks.points import Point, decoders, distinct, nvidia, profet, submissions
from mdot_lab.predictor import graphs, published
from mdot_lab.predictor.labels import Network

READERS = {**decoders.READERS, **nvidia.READERS, **submissions.READERS, **profet.READERS}


def _job(network: Network, folder: Path) -> mdot.Job:
    path = folder / network.graph_file
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        graphs.build(network).save(path)
    return mdot.Job.load(path)


def _line(title: str, points: list[Point], answers: np.ndarray, inside: np.ndarray) -> str:
    ratio = answers / np.array([point.step_ms for point in points])
    error = 100 * np.abs(ratio - 1)
    return (f"| {title} | {len(points)} | {error.mean():.1f} | {np.median(error):.1f} | {np.percentile(error, 90):.1f} | "
            f"{np.median(ratio):.2f} | {100 * inside.mean():.0f} |")


GROUPS = {
    "way": lambda point: ", ".join(f"{name} {point.options.get(name, 1)}" for name in ("tensor_parallel", "pipeline_parallel")),
    "batch": lambda point: f"{point.options['batch'] // point.options.get('micro_batches', 1)} samples a pass",
    "gpus": lambda point: f"{point.gpus:4} GPUs",
    "model": lambda point: point.network.name,
    "precision": lambda point: point.options["precision"],
    "length": lambda point: f"length {point.network.image_size:5}",
    "gpu": lambda point: point.gpu_model,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("points", type=Path, help="table of published points")
    parser.add_argument("--graphs", type=Path, required=True, help="folder of .job files; missing ones are made")
    parser.add_argument("--model", type=Path, help="artefact of a predictor (default: the shipped one)")
    parser.add_argument("--of", nargs="*", default=[""], help="prefixes of the sources to compare (default: all)")
    parser.add_argument("--by", choices=GROUPS, help="property that defines additional rows")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    predictor = mdot.Predictor(options.model) if options.model else mdot.Predictor()
    points = [point for point in distinct(published.points(options.points, READERS))
              if point.source.startswith(tuple(options.of))]
    jobs = {network: _job(network, options.graphs) for network in {point.network for point in points}}
    found = [predictor.predict(jobs[point.network], point.gpu_model, **point.options) for point in points]
    answers = np.array([answer.step_ms for answer in found])
    inside = np.array([answer.lower_ms <= point.step_ms <= answer.upper_ms for answer, point in zip(found, points)])
    print("| published by | steps | mean | median | P90 | predicted / measured | inside the interval, % |")
    print("| --- " * 7 + "|")
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
