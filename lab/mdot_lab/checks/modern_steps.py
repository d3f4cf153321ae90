"""Compares `mdot.predict` with published steps of language models from 2023 to 2026, in bf16 and FP8, by framework.

    python3 -m mdot_lab.checks.modern_steps --steps small_tables.csv mbridge_cards.csv --points llm_points.csv
        [--nanogpt modded_nanogpt.csv] [--published FOLDER …] --graphs FOLDER [--model PREDICTOR.mdot] [--unknown]

Networks are built on the meta device into FOLDER once, a few seconds each; a comparison then takes a second. `--unknown`
leaves the framework open. `--published` adds the steps beside the peaks of `mdot_lab.checks.memory`: torchtitan, SimuMax,
Megatron's tests and Hugging Face's Trainer. With the oracle width, equal for all steps, 90 % of a regime's would be inside.

Settings that a source leaves open: torchtitan's H100 have a power limit of 500 W; Megatron and NeMo use Adam's fused kernel,
ZeRO stage 1, and sequence parallelism beside tensor parallelism; nanochat's steps are one pass. torchtitan's programs
checkpoint their blocks themselves, which only a trace with memory records.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, NamedTuple, Sequence

import numpy as np

import mdot
from mdot_lab.checks.memory import published, run_published

NODE = 8


class Shape(NamedTuple):
    blocks: int
    width: int
    heads: int
    key_heads: int
    hidden: int
    words: int
    length: int
    is_gated: bool = True       # SwiGLU; otherwise a squared ReLU
    is_gpt: bool = False        # LayerNorm with biases, GELU, learned positions


SHAPES = {
    "llama3_8b": Shape(32, 4096, 32, 8, 14336, 128256, 8192), "llama3_70b": Shape(80, 8192, 64, 8, 28672, 128256, 8192),
    "llama2_7b": Shape(32, 4096, 32, 32, 11008, 32000, 4096), "llama2_13b": Shape(40, 5120, 40, 40, 13824, 32000, 4096),
    "llama2_70b": Shape(80, 8192, 64, 8, 28672, 32000, 4096), "qwen3_8b": Shape(36, 4096, 32, 8, 12288, 151936, 4096),
    "gpt3_5b": Shape(24, 4096, 32, 32, 16384, 51200, 2048, False, True),
    "gpt3_20b": Shape(44, 6144, 48, 48, 24576, 51200, 2048, False, True),
    "nemotron_8b": Shape(32, 4096, 32, 32, 16384, 256000, 4096, False),
    "nanochat_d26": Shape(26, 1664, 13, 13, 6656, 65536, 2048, False),
    "internlm_7b": Shape(32, 4096, 32, 32, 11008, 103168, 2048),
    "modded_nanogpt": Shape(12, 768, 6, 6, 3072, 50304, 1024, False),
}


@dataclass(frozen=True)
class Step:
    publisher: str
    regime: str
    network: Any
    """A name in SHAPES, or the network of a published peak."""
    gpu: str
    step_ms: float
    options: dict[str, Any]


def build(shape: Shape) -> mdot.Job:
    import torch
    from torch import nn
    from torch.nn import functional

    bias, norm = shape.is_gpt, nn.LayerNorm if shape.is_gpt else nn.RMSNorm
    size = shape.width // shape.heads

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList(norm(shape.width) for _ in range(2))
            key = shape.key_heads * size
            self.query, self.key, self.value, self.out = (
                nn.Linear(shape.width, columns, bias=bias) for columns in (shape.width, key, key, shape.width))
            self.up, self.down = nn.Linear(shape.width, shape.hidden, bias=bias), nn.Linear(shape.hidden, shape.width, bias=bias)
            self.gate = nn.Linear(shape.width, shape.hidden, bias=bias) if shape.is_gated else None

        def forward(self, x, cosine, sine):
            y, rows = self.norms[0](x), x.shape[:2]
            q, k, v = (layer(y).view(*rows, -1, size).transpose(1, 2) for layer in (self.query, self.key, self.value))
            if not shape.is_gpt:
                q, k = (z * cosine + torch.cat([-z[..., size // 2:], z[..., :size // 2]], -1) * sine for z in (q, k))
            found = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=shape.key_heads != shape.heads)
            x = x + self.out(found.transpose(1, 2).flatten(2))
            y = self.norms[1](x)
            up = self.up(y)
            if self.gate is not None:
                up = functional.silu(self.gate(y)) * up
            else:
                up = functional.gelu(up, approximate="tanh") if shape.is_gpt else functional.relu(up).square()
            return x + self.down(up)

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.blocks = nn.Embedding(shape.words, shape.width), nn.ModuleList(Block() for _ in range(shape.blocks))
            self.norm, self.head = norm(shape.width), nn.Linear(shape.width, shape.words, bias=False)
            self.register_buffer("cosine", torch.zeros(shape.length, size))
            self.register_buffer("sine", torch.zeros(shape.length, size))

        def forward(self, tokens, targets):
            x = self.words(tokens)
            for block in self.blocks:
                x = block(x, self.cosine, self.sine)
            return functional.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())

    with torch.device("meta"):
        model, tokens = Decoder(), torch.zeros(2, shape.length, dtype=torch.long)
    return mdot.Job.from_torch(model, (tokens, tokens))


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as lines:
        yield from csv.DictReader(line for line in lines if not line.startswith("#"))


def _on(gpus: int) -> dict[str, int]:
    return {"gpus": gpus, "nodes": max(1, gpus // NODE)}


MEGATRON = {"framework": "megatron", "optimizer": "adam-fused", "zero": 1}
NEMO = {"GPT3-5B": "gpt3_5b", "GPT3-20B": "gpt3_20b", "LLAMA2-7B": "llama2_7b", "LLAMA2-13B": "llama2_13b",
        "LLAMA2-70B": "llama2_70b", "Nemotron-8B": "nemotron_8b", "LLAMA3-8B": "llama3_8b", "LLAMA3-70B": "llama3_70b"}
NANOCHAT = {"bf16": "amp-bf16", "fp8 rowwise": "fp8-rowwise", "fp8 tensorwise": "fp8"}


def _megatron(row: dict[str, str], publisher: str) -> Step | None:
    """Rows with a model of NEMO: tensor, pipeline and context parallelism are stated as tp=4,pp=8,cp=1,vp=5."""
    network = NEMO.get(row["model"].removesuffix(" SFT"))
    degrees = {key: int(number) for key, number in re.findall(r"(\w+)=(\d+)", row["parallel"])}
    if network is None:
        return None
    tensor, stages, context = (degrees.get(key, 1) for key in ("tp", "pp", "cp"))
    gpus, of_step, batch = int(row["gpus"]), int(row["global_batch"]), int(row["micro_batch"])
    workers = gpus // (tensor * stages * context)
    passes = of_step // (workers * batch)
    options = MEGATRON | _on(gpus) | {"precision": "fp8", "data_parallel": workers, "tensor_parallel": tensor,
                                     "context_parallel": context, "sequence_parallel": int(tensor > 1)}
    if stages > 1:
        options |= {"pipeline_parallel": stages, "micro_batches": passes, "virtual_stages": degrees.get("vp", 1),
                    "batch": batch * passes}
    else:
        options |= {"accumulate": passes, "batch": batch}
    return Step(publisher, "FP8", network, "H100-SXM-80GB", float(row["step_ms"]), options)


def _table(path: Path) -> Iterator[Step]:
    for row in _rows(path):
        source = row["source"].split("@")[0]
        if source in ("NVIDIA/NeMo-Framework-Launcher", "NVIDIA/Megatron-LM") and (step := _megatron(row, source)):
            yield step
        elif source == "karpathy/nanochat":
            batch = int(row["micro_batch"])
            yield Step(source, "bf16" if row["precision"] == "bf16" else "FP8", "nanochat_d26", "H100-SXM-80GB",
                       1e3 * NODE * batch * 2048 / float(row["throughput"]),
                       _on(NODE) | {"batch": batch, "precision": NANOCHAT[row["precision"]], "compiled": True,
                                    "optimizer": "adamw-fused", "framework": "pytorch"})
        elif row["model"] == "Qwen/Qwen3-8B" and row["gpus"] == "16":
            yield Step("NVIDIA-NeMo/Megatron-Bridge", "bf16", "qwen3_8b", "H100-SXM-80GB", float(row["step_ms"]),
                       MEGATRON | _on(16) | {"batch": 1, "accumulate": 64, "precision": "mixed-bf16"})
        elif source == "InternLM/xtuner" and row["model"] == "Llama 3 8B" and row["gpus"] in ("4", "8") \
                and row["seq_or_size"] == "8192":
            yield Step(source, "bf16 on A100", "llama3_8b", "A100-SXM-80GB", 1e3 * 8192 / float(row["throughput"]),
                       _on(int(row["gpus"])) | {"batch": 1, "zero": 3, "precision": "mixed-bf16", "checkpoint": "blocks",
                                                "optimizer": "adamw", "framework": "pytorch"})


def _points(path: Path) -> Iterator[Step]:
    for row in _rows(path):
        if not (row["gpus"] and row["micro_batch"] and row["sequence"] and row["unit"] == "tokens/s/gpu"):
            continue
        gpus, batch, length = int(row["gpus"]), int(row["micro_batch"]), int(row["sequence"])
        ms = 1e3 * batch * length / float(row["throughput"])
        if "InternEvo" in row["source"] and length == 2048:
            tensor = int(row["parallel"].removeprefix("tp=").split(",")[0])
            passes = int((re.match(r"\d+", row["notes"]) or ["1"])[0])
            yield Step("InternLM/InternEvo", "bf16 on A100" if gpus <= NODE else "bf16 on 16 to 1,024 A100", "internlm_7b",
                       "A100-SXM-80GB", ms * passes / tensor,
                       _on(gpus) | {"data_parallel": gpus // tensor, "tensor_parallel": tensor,
                                    "sequence_parallel": int(tensor > 1), "batch": batch,
                                    "accumulate": passes, "zero": 1, "precision": "mixed-bf16",
                                    "checkpoint": "blocks" if row["checkpointing"] == "full" else "nothing",
                                    "optimizer": "adamw-fused", "framework": "pytorch", "torch": "1.13", "attention": "flash"})


NANOGPT_RECORDS = ("2024-10-17_DistributedMuon", "2024-10-18_PyTorch25", "2024-11-03_UntieEmbed")


def _nanogpt(path: Path) -> Iterator[Step]:
    for row in _rows(path):
        if row["record"] in NANOGPT_RECORDS:
            batch, of_gpu = int(row["device_batch"]), int(row["batch"].split("*")[1])
            yield Step("KellerJordan/modded-nanogpt", "bf16", "modded_nanogpt", "H100-SXM-80GB", float(row["step_ms_median"]),
                       _on(NODE) | {"batch": batch, "accumulate": of_gpu // batch, "precision": "amp-bf16", "compiled": True,
                                    "optimizer": "muon", "framework": "pytorch"})


def _regime(point: Any) -> str:
    precision = "FP8" if point.options["precision"] == "fp8" else "bf16"
    if point.source == "Megatron":
        size = "experts" if point.model.experts else "small" if point.model.hidden < 1024 else "large"
        return f"Megatron's tests, {size}, {point.gpu[:4]}"
    if point.source == "Trainer":
        way = "LoRA" if point.model.lora_rank else "full"
        way = "QLoRA" if "frozen_weights" in point.options else way
        return f"Trainer on A100, {way}, {point.options['framework']}"
    return f"{precision} on B200" if point.gpu == "B200" else precision


def _published(folders: Sequence[Path]) -> Iterator[Step]:
    for point in published.read(*folders):
        if point.step_ms == 0 or point.model is None or point.is_out_of_memory:
            continue
        options, lacking = run_published.expressible({**point.options, **point.optional})
        if point.source == "torchtitan":
            options |= {"power_limit": 500, "framework": "pytorch"}
        if point.source == "SimuMax":
            options |= {"framework": "megatron", "loss": "whole"}   # its fused cross-entropy reads all logits, and no weights
        if "frozen_weights" in options and options["precision"] == "fp32":
            options["precision"] = "amp-bf16"   # the products' operands are converted to bf16, bitsandbytes' compute type
        if not lacking:
            yield Step(point.source, _regime(point), point.model, point.gpu, point.step_ms, options)


def read(steps: Sequence[Path], points: Sequence[Path], nanogpt: Sequence[Path], folders: Sequence[Path]) -> list[Step]:
    """The steps of small tables, of llm_points.csv, of modded_nanogpt.csv, and beside the peaks in `folders`."""
    readers = ((_table, steps), (_points, points), (_nanogpt, nanogpt))
    found = [step for reader, paths in readers for path in paths for step in reader(path)]
    return found + (list(_published(folders)) if folders else [])


def with_jobs(steps: Sequence[Step], folder: Path) -> Iterator[tuple[Step, mdot.Job]]:
    """Steps whose network mdot reads. The others are reported on standard error."""
    jobs: dict[Any, mdot.Job | None] = {}
    for step in steps:
        if step.network not in jobs:
            try:
                jobs[step.network] = job(step.network, folder)
            except mdot.Error as error:
                print(f"skipped: {step.publisher}, {step.network}: {error}", file=sys.stderr)
                jobs[step.network] = None
        found = jobs[step.network]
        if found is not None:
            yield step, found


def job(network: Any, folder: Path) -> mdot.Job:
    if not isinstance(network, str):
        return run_published.Jobs(folder).get(network)
    path = folder / f"{network}.{SHAPES[network].length}.job"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        build(SHAPES[network]).save(path)
    return mdot.Job.load(path)


def _line(title: str, logs: np.ndarray, inside: np.ndarray, width: np.ndarray) -> str:
    error = 100 * np.abs(np.exp(logs) - 1)
    low, high = np.quantile(-logs, [0.05, 0.95], method="closest_observation")
    return (f"| {title} | {len(logs)} | {error.mean():.1f} | {np.median(error):.1f} | {100 * np.expm1(logs.mean()):+.1f} | "
            f"{100 * inside.mean():.0f} | {np.median(width):.2f} | {np.exp(high - low):.2f} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=Path, nargs="*", default=[], help="tables of steps-2026")
    parser.add_argument("--points", type=Path, nargs="*", default=[], help="llm_points.csv")
    parser.add_argument("--nanogpt", type=Path, nargs="*", default=[], help="modded_nanogpt.csv")
    parser.add_argument("--published", type=Path, nargs="*", default=[], help="folders of all tables")
    parser.add_argument("--graphs", type=Path, required=True, help="folder of .job files; missing ones are made")
    parser.add_argument("--model", type=Path, help="artefact of a predictor (default: the shipped one)")
    parser.add_argument("--unknown", action="store_true", help="leave the framework open")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    predictor = mdot.Predictor(options.model) if options.model else mdot.Predictor()
    every = list(with_jobs(read(options.steps, options.points, options.nanogpt, options.published), options.graphs))
    steps, logs, inside, width = [step for step, _ in every], [], [], []
    for step, network in every:
        given = {key: value for key, value in step.options.items() if not (options.unknown and key == "framework")}
        answer = predictor.predict(network, step.gpu, **given)
        logs.append(np.log(answer.step_ms / step.step_ms))
        inside.append(answer.lower_ms <= step.step_ms <= answer.upper_ms)
        width.append(answer.upper_ms / answer.lower_ms)
    print("| steps | number | mean error, % | median | bias | inside, % | width | oracle width |")
    print("| --- " * 8 + "|")
    for key in ("regime", "publisher"):
        for name in sorted({getattr(step, key) for step in steps}):
            at = [i for i, step in enumerate(steps) if getattr(step, key) == name]
            print(_line(name, *(np.array(x)[at] for x in (logs, inside, width))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
