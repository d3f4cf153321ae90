"""Steps that others measured: one row for each network, GPU, configuration and software version."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

import numpy as np

from mdot_lab.predictor.conditions import version


@dataclass(frozen=True, order=True)
class Network:
    """A network at an input size, which one `.job` file describes. torchvision's networks have a prefix."""

    name: str
    image_size: int

    @property
    def graph_file(self) -> str:
        return f"{self.name}.{self.image_size}.job"


TRAIN, INFER, BACKWARD = "train", "infer", "backward"
"""The benchmark kind: timm's whole steps; the forward pass in evaluation; forward and backward from any other
publisher, with an optimizer if the label names one."""

SGD, ADAMW = "sgd", "adamw"
"""Label optimizers. The empty text: the time excludes the optimizer, or leaves its share open."""
SELECTIVE = 0.5
"""`recomputes` under selective recomputation: half of the matmuls and the operators between them run again."""

ALONE = ("forward alone", "data gradient alone", "weight gradient alone")
"""Phases of a single operator, timed on the GPU: labels with a one-operator network."""
OPERATOR = "operator."
"""Name prefix for such a network and the run that timed it."""


@dataclass(frozen=True)
class Label:
    network: Network
    batch: int
    layout: str
    software: str       # PyTorch's version, for example "pt112"
    run: str            # run of the benchmark; two runs are equal in all other fields
    step_ms: float
    parameters_m: float     # of the measured network, in millions; 0 if unknown
    gpu: str                # a name of runtime/job/gpus.def
    precision: str          # "fp32", "tf32", "amp", "amp_bf16", "bf16", "fp16"
    kind: str
    is_compiled: bool       # by torch.compile
    is_fused: bool          # fused attention
    recomputes: float = 0.0     # repeated part of the forward pass, 0 to 1
    optimizer: str = ""         # of the timed step


FUSED_SINCE = 200
"""PyTorch 2.0 introduced scaled_dot_product_attention, and timm adopted it."""

TIMM_GPUS = {"rtx3090": "RTX-3090", "rtx4090": "RTX-4090", "4090": "RTX-4090", "5090": "RTX-5090",
              "pro6000maxq": "RTX-PRO-6000-Max-Q"}
COMPILED = "-dynamo"


def _timm_rows(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a table, whose first lines may be comments."""
    with open(path, newline="", encoding="utf-8") as lines:
        yield from csv.DictReader(line for line in lines if not line.startswith("#"))


def _timm_networks(path: Path) -> set[Network]:
    return {Network(row["model"], int(row["img_size"])) for row in _timm_rows(path)
            if row["device"].removesuffix(COMPILED) in TIMM_GPUS}


def read_timm(path: Path, kind: str) -> Iterator[Label]:
    """Reads timm's tables of training or inference benchmarks. CPUs, and rows without a batch, are skipped."""
    for row in _timm_rows(path):
        gpu_name = TIMM_GPUS.get(row["device"].removesuffix(COMPILED))
        if gpu_name is not None and row["batch_size"]:
            yield Label(Network(row["model"], int(row["img_size"])), int(float(row["batch_size"])), row["layout"],
                        row["torch"], row["run"], float(row["step_time_ms"]), float(row["param_count_M"] or 0), gpu_name,
                        row["precision"], kind, row["device"].endswith(COMPILED), version(row["torch"]) >= FUSED_SINCE,
                        optimizer=SGD if kind == TRAIN else "")


CIFAR_RESNET18 = "cifar.resnet18"
"""The network of other_networks.cifar_resnet18, at 32 x 32."""

TORCHVISION = "torchvision."
TORCHVISION_BATCH, TORCHVISION_SIZE = 12, 224
TORCHVISION_GPUS = {
    "GeForce GTX 1080 Ti": "GTX-1080-Ti", "TITAN Xp": "TITAN-Xp", "TITAN V": "TITAN-V", "GeForce RTX 2080 Ti": "RTX-2080-Ti",
    "TITAN RTX": "TITAN-RTX", "A100-SXM4-40GB": "A100-SXM-40GB"}
TF32_GPUS = ("A100-SXM4-40GB",)
"""GPUs that support TF32. On them, convolutions in "float" are TF32 by PyTorch's default."""


def _medians(path: Path) -> dict[str, float]:
    """Median milliseconds by network. The file has a column for each network and a row for each iteration."""
    with open(path, newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return {name: float(np.median([float(row[name]) for row in rows])) for name in rows[0] if name}


def _single_gpu_file(folder: Path, gpu: str, precision: str) -> Path | None:
    """Finds a single-GPU run's file. Older runs omit the GPU count and use another name for fp32."""
    older = {"float": "single"}.get(precision, precision)
    patterns = (f"{gpu}_1_gpus__{precision}_model_train*_benchmark.csv", f"{gpu}_{older}_model_train*_benchmark.csv")
    return next((path for pattern in patterns for path in sorted(folder.rglob(pattern))), None)


def read_torchvision(folder: Path) -> Iterator[Label]:
    """Reads ryujaehun/pytorch-gpu-benchmark: torchvision's networks at batch 12, forward and backward, fp32 or fp16
    throughout. The multi-GPU runs are skipped, because they use DataParallel, in which one process launches all
    kernels."""
    for gpu, gpu_name in TORCHVISION_GPUS.items():
        for precision in ("float", "half"):
            path = _single_gpu_file(folder, gpu, precision)
            if path is None:
                continue
            matmul_precision = "fp16" if precision == "half" else "tf32" if gpu in TF32_GPUS else "fp32"
            for name, step_ms in _medians(path).items():
                yield Label(Network(TORCHVISION + name, TORCHVISION_SIZE), TORCHVISION_BATCH, "nchw", "pt17", "multigpu",
                            step_ms, 0.0, gpu_name, matmul_precision, BACKWARD, False, is_fused=False)


def networks(paths: list[Path]) -> list[Network]:
    """Networks in timm's tables, or in a folder with torchvision's tables."""
    found: set[Network] = set()
    for path in paths:
        found |= {label.network for label in read_torchvision(path)} if path.is_dir() else _timm_networks(path)
    return sorted(found)
