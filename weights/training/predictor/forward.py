"""How the predictor splits a step: its forward part against measured inference, which it was not trained on.

timm's table of inference benchmarks has the networks, card and software of the labels, at other batches. In evaluation a
BatchNormalization keeps no statistics: it reads its map once instead of twice.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from predictor import batches, tables, training
from predictor.dataset import Dataset
from predictor.exported import Exported
from predictor.families import family

DEVICE, PRECISION, SOFTWARE = "rtx3090", "amp", batches.NEWEST_SOFTWARE
NORM_IN_EVALUATION = 2 / 3
FORWARD, NORM_FORWARD = tables.PHASES.index("forward"), len(tables.PHASES)


def read_inference(path: Path, data: Dataset) -> Dataset:
    """The networks of `data` with inference as labels."""
    number = {(str(name), int(size)): i for i, (name, size) in enumerate(zip(data.network_name, data.network_size))}
    with open(path, newline="", encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if (row["device"], row["precision"], row["torch"]) ==
                (DEVICE, PRECISION, SOFTWARE) and (row["model"], int(row["img_size"])) in number]
    return replace(
        data, label_network=np.array([number[row["model"], int(row["img_size"])] for row in rows]),
        batch=np.array([float(row["batch_size"]) for row in rows]), is_nhwc=np.array([row["layout"] == "nhwc" for row in rows]),
        software=np.array([row["torch"] for row in rows]), run=np.array([row["run"] for row in rows]),
        step_ms=np.array([float(row["step_time_ms"]) for row in rows]))


def forward_ms(model: Exported, data: Dataset) -> np.ndarray:
    """Of each label."""
    result = []
    for part in np.array_split(np.arange(len(data.step_ms)), max(1, len(data.step_ms) // 400)):
        batch, logs = batches.make(data, part), []
        for member in model.members:
            with torch.no_grad():
                parts_ms, _ = training.parts_ms(member, batch)
            forward = parts_ms[:, FORWARD] + NORM_IN_EVALUATION * parts_ms[:, NORM_FORWARD]
            logs.append(torch.log(training.sums(batch, forward[:, None])))
        result.append(torch.exp(torch.stack(logs).mean(dim=0))[:, 0].numpy())
    return np.concatenate(result)


def table(model: Exported, data: Dataset, inference: Path) -> str:
    measured = read_inference(inference, data)
    ratios: dict[tuple[str, bool], list[float]] = defaultdict(list)
    for network, is_nhwc, ratio in zip(measured.label_network, measured.is_nhwc, forward_ms(model, measured) / measured.step_ms):
        ratios[family(str(measured.network_name[network])), bool(is_nhwc)].append(ratio)
    lines = ["| family | networks | NCHW: median | P10 | P90 | NHWC: median | P10 | P90 |", "| --- " * 8 + "|"]
    for name in sorted({name for name, _ in ratios}):
        cells = [f"{np.quantile(ratios[name, layout], q):.2f}" for layout in (False, True) for q in (0.5, 0.1, 0.9)]
        lines.append(f"| {name} | {len(ratios[name, False])} | {' | '.join(cells)} |")
    return "\n".join(lines)
