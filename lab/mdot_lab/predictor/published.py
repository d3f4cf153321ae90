"""Published steps on many GPUs, as labels: language models from NeuSight, Sailor, llm-foundry and vTrain, and the sources of
measured_2026.py.

Each step is reduced to one forward and backward pass over one micro-batch on one GPU, because the runtime rather than the
predictor estimates the cost of several GPUs. Therefore only points are read whose communication is overlapped or small.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Callable, Iterator, TypeVar

from mdot_lab.predictor import collected, measured_2026
from mdot_lab.predictor.labels import BACKWARD, INFER, Label, Network
from mdot_lab.predictor.language import LANGUAGE, MEGATRON_VOCABULARY

NEUSIGHT, SAILOR, FOUNDRY, VTRAIN = "neusight", "sailor", "llm-foundry", "vtrain"
PUBLISHED = (NEUSIGHT, SAILOR, FOUNDRY, VTRAIN, *measured_2026.SOURCES, collected.RUN)
"""`run` in these labels."""

NEUSIGHT_GPUS = {
    "NVIDIA_A100-PCIE-40GB": "A100-PCIe-40GB", "NVIDIA_A100_80GB_PCIe": "A100-PCIe-80GB",
    "NVIDIA_H100_80GB_HBM3": "H100-SXM-80GB",
    "NVIDIA_L4": "L4", "Tesla_P100-PCIE-16GB": "P100-PCIe-16GB", "Tesla_T4": "T4", "Tesla_V100-PCIE-32GB": "V100-PCIe-32GB"}
"""Excludes AMD's GPUs, and a P4 that takes 2.3 times as long for twice the batch."""


def read_neusight(folder: Path) -> Iterator[Label]:
    """sitar-lab/NeuSight, data/label: fp32 throughout, attention decomposed. Points with torch.compile, several GPUs or
    experts are skipped."""
    for label, gpu_name in NEUSIGHT_GPUS.items():
        for path in sorted((folder / label).glob("*.json")):
            found = re.fullmatch(r"(?!switch)(\w+)-(train|inf)-(\d+)-(\d+)", path.stem)
            if found:
                name, kind, length, batch = found.groups()
                step_ms = float(json.loads(path.read_text(encoding="utf-8"))["e2e_latency"])
                yield Label(Network(LANGUAGE + name, int(length)), int(batch), "nchw", "pt210", NEUSIGHT, step_ms, 0.0,
                            gpu_name, "fp32", INFER if kind == "inf" else BACKWARD, False, is_fused=False)


def network(row: dict[str, str]) -> Network:
    """The network that a point names, at the point's length."""
    return Network(LANGUAGE + row["model"], int(float(row["seq_or_resolution"])))


SAILOR_GPUS = {"A100-40": "A100-SXM-40GB", "A100-80": "A100-SXM-80GB", "GH-96": "GH200-96GB", "V100-16": "V100-SXM-16GB",
                "RTX-3090": "RTX-3090", "Titan-RTX": "TITAN-RTX"}
"""Excludes the repository's RTX 2080, because the stated memory belongs to another GPU."""
SAILOR_MODELS = {"OPT-350": "opt_350m", "GPT-Neo-2.7": "gpt_neo_27"}
"""Excludes Llama 3 8B on GH200, because 21 TFLOP/s match no precision that the source names. The other models reach 130
with TF32."""
WITHOUT_TF32 = ("V100-16", "Titan-RTX")


def _sailor(row: dict[str, str]) -> Label | None:
    """Sums over measured layers; equal ones were measured once. Weights are fp32. Matmuls are TF32 on GPUs with
    support: an A100 reaches 31 TFLOP/s. The optimizer was timed separately."""
    if row["gpu"] not in SAILOR_GPUS or row["model"] not in SAILOR_MODELS or float(row["gpus"]) != 1:
        return None
    step_ms = float(re.search(r"fwd\+bwd_ms=([\d.]+)", row["notes"])[1])
    return Label(Network(LANGUAGE + SAILOR_MODELS[row["model"]], int(float(row["seq_or_resolution"]))),
                 int(float(row["batch_per_gpu"])), "nchw", "pt210", SAILOR, step_ms, 0.0, SAILOR_GPUS[row["gpu"]],
                 "fp32" if row["gpu"] in WITHOUT_TF32 else "tf32", BACKWARD, False, is_fused=False)


def foundry_settings(row: dict[str, str]) -> tuple[int, str, bool, float]:
    """Micro-steps per step, precision, activation recomputation and the step's ms, for an llm-foundry point."""
    accumulation, batch, precision, _, _, recomputes, *_ = row["notes"].split("; ")
    step_ms = 1e3 * float(batch.split("=")[1]) * float(row["seq_or_resolution"]) / float(row["throughput"])
    return int(accumulation.split("=")[1]), precision, recomputes == "True", step_ms


FOUNDRY_GPUS = {"a100_80gb": "A100-SXM-80GB", "a100_40gb": "A100-SXM-40GB"}
NODE = 8


def _foundry(row: dict[str, str]) -> Label | None:
    """FSDP within a node. NVLink hides communication, because gathering a layer's weights takes a hundredth of the
    matmul time."""
    if float(row["gpus"]) > NODE:
        return None
    passes, precision, recomputes, step_ms = foundry_settings(row)
    return Label(network(row), int(float(row["batch_per_gpu"])), "nchw", "pt201", FOUNDRY, step_ms / passes, 0.0,
                 FOUNDRY_GPUS[row["gpu"]], precision, BACKWARD, False, is_fused=True, recomputes=float(recomputes))


NVLINK_GBPS = 230.0
"""GB/s in one direction, reached by a ring of A100s within a node."""
HALF_BYTES = 2


def vtrain_settings(row: dict[str, str]) -> dict[str, float]:
    """For a point of vTrain: iteration_ms, global_batch, and the degrees tp, dp and pp."""
    return {name: float(value) for name, value in re.findall(r"(\w+)=([\d.]+)", row["notes"])}


def _vtrain(row: dict[str, str]) -> Label | None:
    """Megatron on A100: fp16 throughout, attention decomposed, full activation recomputation. Reads points with data
    parallelism only. The gradients' all-reduce follows the last micro-batch, and its time is subtracted."""
    note = vtrain_settings(row)
    if note["tp"] != 1 or note["pp"] != 1:
        return None
    width, layers = map(int, re.match(r"GPT-h(\d+)-L(\d+)", row["model"]).groups())
    gpus, batch = note["dp"], float(row["batch_per_gpu"])
    parameters = 12 * layers * width**2 + MEGATRON_VOCABULARY * width
    reduced_ms = 2 * (gpus - 1) / gpus * HALF_BYTES * parameters / (NVLINK_GBPS * 1e6)
    step_ms = (note["iteration_ms"] - reduced_ms) * gpus * batch / note["global_batch"]
    return Label(network(row), int(batch), "nchw", "pt111", VTRAIN, step_ms, 0.0, "A100-SXM-80GB", "fp16", BACKWARD, False,
                 is_fused=False, recomputes=1.0)


READERS = {"eth-easl/sailor": _sailor, "mosaicml/llm-foundry": _foundry, "VIA-Research/vTrain": _vtrain}


Read = TypeVar("Read")


def points(path: Path, readers: dict[str, Callable[[dict[str, str]], Read | None]]) -> Iterator[Read]:
    """Reads a table of published steps (source, model, gpu, gpus, batch_per_gpu, seq_or_resolution, throughput, notes).
    The reader for a row's source converts it. Rows from other sources, and rows for which the reader returns None,
    are skipped."""
    with open(path, newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            reader = next((read for source, read in readers.items() if row["source"].startswith(source)), None)
            found = reader(row) if reader else None
            if found is not None:
                yield found


def read(path: Path) -> Iterator[Label]:
    """Reads NeuSight's folder, a file in measured_2026.READERS (by name), or a table of points."""
    if path.is_dir():
        return read_neusight(path)
    known = measured_2026.READERS.get(path.name)
    return known(path) if known else points(path, READERS)
