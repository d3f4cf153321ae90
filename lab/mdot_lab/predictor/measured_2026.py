"""Steps that were published from 2019 to 2025 and collected in 2026, as labels.

Each label is one forward and backward pass over one micro-batch on one GPU, with the optimizer's update if the step has one
micro-batch and the optimizer is stated. Steps that depend on more than one GPU are read only if communication is small
or overlapped (FSDP, DDP and ZeRO-1 on one node with NVLink). Tensor, pipeline and context parallelism are left to
mdot_lab/checks, because the runtime estimates them. 

The files begin with lines of `#` and have a header, except for Gavel's, which is JSON. The names determine the reader
(`READERS`). Columns that are read, and rows that are left out with the reason:

- superbench_a100.csv (SuperBench): model, batch, precision, step_ms. The two other nodes repeat the first one's numbers.
- llm_points.csv (torchtitan, InternEvo): source, gpu, gpus, micro_batch, precision, sequence, parallel, checkpointing, compile,
  throughput in tokens/s/gpu. Left out: FP8, because the predictor has no input for it; more than one node; torchtune, whose
  2,579 tokens/s for Llama 3.1 8B on an A6000 would be 107 % of the bf16 peak with recomputation; Primus, because of
  pipelines; JAX-Toolbox, because of XLA.
- modded_nanogpt.csv: record, torch, batch, device_batch, sequence, step_ms_median. Left out: records before Muon was
  distributed, because the optimizer takes a large part of them; records after 2024-11-03, because of other networks.
- simumax_b200.csv (SimuMax): case, micro_batches, measured_ms. All but one pair of cases have TP or CP.
- simulation_throughputs.json (Gavel): steps per second of jobs that run alone. Left out: ResNet-50, because the host feeds it;
  Transformer, recommendation, CycleGAN and A3C, whose sizes are unknown; ResNet-18 on K80, where batch 64 is faster than 16.
- pollux_step_times.csv (Pollux): application, table, placement, batch_per_gpu, step_ms. Left out: several GPUs; ImageNet and
  YOLOv3, whose times fall with the batch in places, because of the loader; BERT, whose length is unknown.

For ResNet-18, small batches are left out too, because the loader bounds them.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Callable, Iterator

from mdot_lab.predictor.labels import (ADAMW, BACKWARD, CIFAR_RESNET18, SELECTIVE, SGD, TORCHVISION, Label, Network)
from mdot_lab.predictor.language import LANGUAGE, WORDS

SUPERBENCH, TORCHTITAN, INTERNEVO, NANOGPT, SIMUMAX, GAVEL, POLLUX = (
    "superbench", "torchtitan", "internevo", "modded-nanogpt", "simumax", "gavel", "pollux")
SOURCES = (SUPERBENCH, TORCHTITAN, INTERNEVO, NANOGPT, SIMUMAX, GAVEL, POLLUX)
"""`run` in these labels."""

Row = dict[str, str]


def _rows(path: Path) -> Iterator[Row]:
    with open(path, newline="", encoding="utf-8") as lines:
        yield from csv.DictReader(line for line in lines if not line.startswith("#"))


def _label(network: Network, batch: int, source: str, step_ms: float, gpu: str, precision: str, software: str,
           is_fused: bool = False, is_compiled: bool = False, recomputes: float = 0.0, optimizer: str = "") -> Label:
    return Label(network, batch, "nchw", software, source, step_ms, 0.0, gpu, precision, BACKWARD, is_compiled, is_fused,
                 recomputes, optimizer)


SUPERBENCH_LENGTH = 224
"""Tokens for BERT and GPT-2, from the configuration file, which is older than the results. With the program's default
of 512, BERT large in TF32 would run at 105 of 156 TFLOP/s although attention is decomposed; with 224 it runs at 44."""
SUPERBENCH_LANGUAGE = {"bert-base": "bert_base_classifier", "bert-large": "bert_large_classifier",
                       "gpt2-large": "gpt2_large_classifier"}
SUPERBENCH_PRECISIONS = {"float32": "tf32", "float16": "fp16"}
"""fp32 in PyTorch 1.8, in which matmuls and convolutions are TF32 by default; half precision throughout, except for
BatchNormalization. The program converts images on the host before it starts the clock, and copies them after that."""


def _superbench(path: Path) -> Iterator[Label]:
    seen = set()
    for row in _rows(path):
        key = row["model"], row["batch"], row["precision"]
        if key in seen:
            continue
        seen.add(key)
        name = SUPERBENCH_LANGUAGE.get(row["model"])
        network = Network(LANGUAGE + name, SUPERBENCH_LENGTH) if name else Network(TORCHVISION + row["model"], 224)
        yield _label(network, int(row["batch"]), SUPERBENCH, float(row["step_ms"]), "A100-SXM-40GB",
                     SUPERBENCH_PRECISIONS[row["precision"]], "pt108", optimizer=ADAMW if name else SGD)


NODE = 8
"""GPUs per node. FSDP and ZeRO-1 hide communication inside it (published.py, llm-foundry)."""


def _pass_ms(row: Row) -> float:
    """Time of one micro-batch."""
    return 1e3 * float(row["micro_batch"]) * float(row["sequence"]) / float(row["throughput"])


def _torchtitan(row: Row) -> Label | None:
    """FSDP2 with bf16 parameters in compute, and selective recomputation. The GPUs are H100 with 500 W and 2.4 TB/s,
    absent from mdot's table: the benchmark's offset absorbs the difference from H100-SXM-80GB. The sharded AdamW
    update takes .5 % of the step."""
    if row["precision"] != "bf16" or row["checkpointing"] != "selective":
        return None
    return _label(Network(LANGUAGE + "llama3_8b", int(row["sequence"])), int(row["micro_batch"]), TORCHTITAN, _pass_ms(row),
                  "H100-SXM-80GB", "bf16", "pt260", is_fused=True, is_compiled=row["compile"] == "compile", recomputes=SELECTIVE)


def _internevo(row: Row) -> Label | None:
    """ZeRO-1 with overlapped collectives, flash attention, PyTorch 1.13. A step has one or four micro-batches; the sharded
    update takes .4 to 2 % of it. "packed" joins samples to one sequence whose attention stays within each of them."""
    if "tp=1" not in row["parallel"]:
        return None
    return _label(Network(LANGUAGE + "internlm_7b", int(row["sequence"])), int(row["micro_batch"]), INTERNEVO, _pass_ms(row),
                  row["gpu"], row["precision"], "pt113", is_fused=True, recomputes=float(row["checkpointing"] == "full"))


LLM_READERS = {"pytorch/torchtitan": _torchtitan, "InternLM/InternEvo": _internevo}


def _llm_points(path: Path) -> Iterator[Label]:
    for row in _rows(path):
        read = LLM_READERS.get(row["source"].split("@")[0])
        label = read(row) if read and int(row["gpus"]) <= NODE else None
        if label is not None:
            yield label


NANOGPT_RECORDS = ("2024-10-17_DistributedMuon", "2024-10-18_PyTorch25", "2024-11-03_UntieEmbed")


def _nanogpt(path: Path) -> Iterator[Label]:
    """DDP on one node, autocast to bf16, compiled. The update by Muon, which has additional matmuls, and the data
    loader are inside the step and left open."""
    for row in _rows(path):
        if row["record"] in NANOGPT_RECORDS:
            major, minor = row["torch"].split(".")[:2]
            samples = int(row["batch"].split("*")[1])       # "8*64": of all GPUs
            yield _label(Network(LANGUAGE + "nanogpt", int(row["sequence"])), int(row["device_batch"]), NANOGPT,
                         float(row["step_ms_median"]) * int(row["device_batch"]) / samples, "H100-SXM-80GB", "amp_bf16",
                         f"pt{major}{minor}0", is_fused=True, is_compiled=True)


SIMUMAX_CASE = "llama3_70b_l12_tp1_pp2_dp4_mbc{}_cef"


def _simumax(path: Path) -> Iterator[Label]:
    """Twelve layers in two pipeline stages without tensor parallelism. A further micro-batch takes the time of the slower
    stage, which has six layers and the logits. The difference of two counts of micro-batches excludes the optimizer, the
    gradients' all-reduce and the bubble. Recomputation: none, because the stated memory leaves no less than 1 GiB a layer."""
    measured = {row["case"]: (int(row["micro_batches"]), float(row["measured_ms"])) for row in _rows(path)}
    few, many = (measured.get(SIMUMAX_CASE.format(count)) for count in (4, 32))
    if few and many:
        yield _label(Network(LANGUAGE + "llama3_70b_6_layers", 4096), 1, SIMUMAX, (many[1] - few[1]) / (many[0] - few[0]),
                     "B200-SXM-180GB", "bf16", "pt280", is_fused=True)


GAVEL_GPUS = {"k80": "K80", "p100": "P100-PCIe-16GB", "v100": "V100-SXM-16GB"}
GAVEL_STEPS = 35
"""Words per sample in the language model."""
LEAST_CIFAR_BATCH = 64
WITHOUT_CIFAR = ("k80",)


def gavel_steps(path: Path, job: str) -> Iterator[tuple[str, int, float]]:
    """GPU in Gavel's words, batch and milliseconds of a job alone, for example "LM" or "ResNet-18"."""
    throughputs = json.loads(path.read_text(encoding="utf-8"))
    for gpu in GAVEL_GPUS:
        for name, steps in throughputs[gpu].items():
            found = re.fullmatch(rf"\('{job} \(batch size (\d+)\)', 1\)", name)
            if found:
                yield gpu, int(found[1]), 1e3 / steps["null"]


def _gavel(path: Path) -> Iterator[Label]:
    """PyTorch 1.4, fp32. The steps include a data loader. The language model's slices each sample out of the GPU's memory."""
    for gpu, batch, step_ms in gavel_steps(path, "LM"):
        yield _label(Network(LANGUAGE + WORDS, GAVEL_STEPS), batch, GAVEL, step_ms, GAVEL_GPUS[gpu], "fp32", "pt14", optimizer=SGD)
    for gpu, batch, step_ms in gavel_steps(path, "ResNet-18"):
        if batch >= LEAST_CIFAR_BATCH and gpu not in WITHOUT_CIFAR:
            yield _label(Network(CIFAR_RESNET18, 32), batch, GAVEL, step_ms, GAVEL_GPUS[gpu], "fp32", "pt14", optimizer=SGD)


def _pollux(path: Path) -> Iterator[Label]:
    """ResNet-18 on CIFAR-10 with PyTorch 1.5, fp32, one T4."""
    for row in _rows(path):
        if (row["application"], row["table"], row["placement"]) == ("cifar10", "placements", "1"):
            if int(row["batch_per_gpu"]) >= LEAST_CIFAR_BATCH:
                yield _label(Network(CIFAR_RESNET18, 32), int(row["batch_per_gpu"]), POLLUX, float(row["step_ms"]), "T4", "fp32",
                             "pt15", optimizer=SGD)


READERS: dict[str, Callable[[Path], Iterator[Label]]] = {
    "superbench_a100.csv": _superbench, "llm_points.csv": _llm_points, "modded_nanogpt.csv": _nanogpt,
    "simumax_b200.csv": _simumax, "simulation_throughputs.json": _gavel, "pollux_step_times.csv": _pollux}
"""The reader for each file, by name."""
