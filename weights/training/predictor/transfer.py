"""How far the predictor carries to GPUs and precisions that it was not trained on: torchvision's networks, measured by others.

The measurements (ryujaehun/pytorch-gpu-benchmark, MIT) are forward and backward at batch 12 without an optimizer step, in fp32
or all of it in fp16: other than what is predicted in both. They are looked at, not trained on.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import torch

from predictor.dataset import Dataset
from predictor.export import job
from predictor.exported import Exported
from predictor.metrics import errors

BATCH = 12
IMAGE_SIZE = 224

GPUS = {"GeForce GTX 1080 Ti": "GTX-1080-Ti", "TITAN Xp": "TITAN-Xp", "TITAN V": "TITAN-V", "GeForce RTX 2080 Ti": "RTX-2080-Ti",
        "TITAN RTX": "TITAN-RTX", "A100-SXM4-40GB": "A100-SXM-40GB"}
"""Name in the files → name in runtime/job/gpus.def."""

TF32_GPUS = ("A100-SXM4-40GB",)
"""Convolutions in "float" are TF32 by PyTorch's default where the card has it."""

NETWORKS = {
    **{name: name for name in ("densenet161", "densenet169", "densenet201", "resnet18", "resnext101_32x8d", "vgg11", "vgg11_bn",
                               "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn", "wide_resnet50_2",
                               "wide_resnet101_2")},
    **{name: f"tv_{name}" for name in ("densenet121", "resnet34", "resnet50", "resnet101", "resnet152", "resnext50_32x4d")},
    "mobilenet_v2": "mobilenetv2_100", "mnasnet1_0": "mnasnet_b1",
}
"""torchvision's name → timm's."""


def measured(path: Path) -> dict[str, float]:
    """Median milliseconds by network: a column each, a row an iteration."""
    with open(path, newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return {name: float(np.median([float(row[name]) for row in rows])) for name in rows[0] if name in NETWORKS}


def _flags(gpu: str, precision: str) -> dict[str, float]:
    if precision == "half":
        return {}
    return {"is_amp": 0.0, "is_tf32" if gpu in TF32_GPUS else "is_fp32": 1.0}


def single_gpu_file(folder: Path, gpu: str, precision: str) -> Path | None:
    """Older runs name neither the number of GPUs nor fp32 the same."""
    older = {"float": "single"}.get(precision, precision)
    patterns = (f"{gpu}_1_gpus__{precision}_model_train*_benchmark.csv", f"{gpu}_{older}_model_train*_benchmark.csv")
    return next((path for pattern in patterns for path in sorted(folder.rglob(pattern))), None)


def table(model: Exported, data: Dataset, folder: Path) -> str:
    number = {(str(name), int(size)): i for i, (name, size) in enumerate(zip(data.network_name, data.network_size))}
    lines = ["| GPU | arithmetic | networks | MAPE | median | predicted / measured | measured inside the interval |",
             "| --- " * 7 + "|"]
    for gpu, precision in ((g, p) for g in GPUS for p in ("float", "half")):
        path = single_gpu_file(folder, gpu, precision)
        if path is None:
            continue
        predicted, actual = [], []
        for name, step_ms in measured(path).items():
            network = number.get((NETWORKS[name], IMAGE_SIZE))
            if network is not None:
                with torch.no_grad():
                    predicted.append(model(*job(data, network, BATCH, GPUS[gpu], **_flags(gpu, precision)))[0].numpy())
                actual.append(step_ms)
        if not actual:
            continue
        low, middle, high = np.array(predicted).T
        actual = np.array(actual)
        e = errors(middle, actual)
        inside = 100 * np.mean((low <= actual) & (actual <= high))
        lines.append(f"| {GPUS[gpu]} | {precision} | {e.count} | {e.mape:.0f} | {e.median:.0f} | "
                     f"{np.median(middle / actual):.2f} | {inside:.0f} % |")
    return "\n".join(lines)
