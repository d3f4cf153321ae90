"""A decoder's training step with fully sharded state (PyTorch FSDP, as ZeRO 3): llm-foundry's published throughputs.

    step  = accumulation · (layers · layer + logits) + optimizer + fixed
    layer = smooth maximum of  compute, forward and backward  and  two gathers of weights with one scatter of gradients

Attention is FlashAttention. Activations are recomputed if the point states it. Weights are sent in bf16, gradients in bf16
("PURE") or fp32 ("DEFAULT"). Under amp, the optimizer keeps fp32.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas
import torch
from torch import Tensor

from mdot_lab.operator_benchmarks.step_costs import Costs, Operators, longest, table

SHAPES = {"mpt-125m": (768, 12, 12), "mpt-350m": (1024, 24, 16), "mpt-760m": (1536, 24, 12), "mpt-1b": (2048, 24, 16),
          "mpt-3b": (2560, 32, 20), "mpt-7b": (4096, 32, 32), "mpt-13b": (5120, 40, 40), "mpt-30b": (7168, 48, 56),
          "mpt-70b": (8192, 80, 64)}
"""Hidden size, layers and heads, from llm-foundry's configurations."""
VOCABULARY = 50368
GPUS = {"a100_80gb": "A100-SXM-80GB", "a100_40gb": "A100-SXM-40GB"}
MEMORY_GBPS = {"a100_80gb": 2039.0, "a100_40gb": 1555.0}
NODE, LINK_GBPS, NODE_GBPS = 8, 300.0, 200.0
"""GPUs per node; NVLink, one direction; a node's eight network ports at 200 Gbit/s together, shared by rings over whole
nodes."""
HALF = 2


@dataclass(frozen=True)
class Steps:
    """[n] each."""

    model: np.ndarray
    gpu: np.ndarray
    gpus: np.ndarray
    sequence: np.ndarray
    micro_batch: np.ndarray
    accumulation: np.ndarray
    is_recomputed: np.ndarray
    is_pure: np.ndarray
    step_ms: np.ndarray


def read(points: Path) -> Steps:
    rows = pandas.read_csv(points, low_memory=False)
    rows = rows[rows.source.str.startswith("mosaicml/llm-foundry")]
    note = rows.notes.str.split("; ", expand=True)
    number = {name: note[i].str.extract(r"=(\d+)")[0].astype(float).to_numpy()
              for i, name in enumerate(("accumulation", "batch"))}
    sequence = rows.seq_or_resolution.to_numpy(dtype=float)
    return Steps(model=rows.model.to_numpy(dtype=str), gpu=rows.gpu.to_numpy(dtype=str), gpus=rows.gpus.to_numpy(dtype=float),
                 sequence=sequence, micro_batch=rows.batch_per_gpu.to_numpy(dtype=float), accumulation=number["accumulation"],
                 is_recomputed=(note[5] == "True").to_numpy(dtype=float), is_pure=(note[3] == "PURE").to_numpy(dtype=float),
                 step_ms=1e3 * number["batch"] * sequence / rows.throughput.to_numpy(dtype=float))


def _of_gpu(s: Steps, operators: Operators, gpu: str, rows: np.ndarray) -> dict[str, np.ndarray]:
    operators.gpu_model = GPUS[gpu]
    hidden, layers, heads = np.array([SHAPES[name] for name in s.model[rows]], dtype=float).T
    sequence, micro, gpus = s.sequence[rows], s.micro_batch[rows], s.gpus[rows]
    tokens, memory = micro * sequence, MEMORY_GBPS[gpu] * 1e6
    matmuls = sum(operators.trained_us(tokens, n, k)
                   for n, k in ((3 * hidden, hidden), (hidden, hidden), (4 * hidden, hidden), (hidden, 4 * hidden)))
    attention = {way: operators.attention_us(micro, heads, sequence, hidden / heads, way) for way in (False, True)}
    link = np.where(gpus <= NODE, LINK_GBPS, NODE_GBPS)
    of_layer = 12 * hidden**2
    gradient_bytes = np.where(s.is_pure[rows] > 0, 2, 4)
    parameters = of_layer * layers + VOCABULARY * hidden
    return {
        "forward": matmuls[0] / 1e3, "backward": matmuls[1:].sum(0) / 1e3,
        "attention_forward": attention[False] / 1e3, "attention_backward": attention[True] / 1e3,
        "maps": HALF * tokens * hidden / memory, "logits": operators.trained_us(tokens, VOCABULARY, hidden).sum(0) / 1e3,
        "logit_maps": 2 * HALF * tokens * VOCABULARY / memory,
        "gather": operators.collective_us("all_gather", gpus, HALF * of_layer, link) / 1e3,
        "scatter": operators.collective_us("reduce_scatter", gpus, gradient_bytes * of_layer, link) / 1e3,
        "optimizer": parameters / gpus * np.where(s.is_pure[rows] > 0, 14, 28) / memory,
        "layers": layers, "accumulation": s.accumulation[rows], "is_recomputed": s.is_recomputed[rows],
        "is_far": (gpus > NODE).astype(float), "step_ms": s.step_ms[rows],
    }


def features(s: Steps, operators: Operators) -> dict[str, Tensor]:
    """Terms in ms, of a layer and micro-batch unless the name states otherwise."""
    result: dict[str, np.ndarray] = {}
    for gpu in GPUS:
        rows = np.flatnonzero(s.gpu == gpu)
        if len(rows):
            for name, value in _of_gpu(s, operators, gpu, rows).items():
                result.setdefault(name, np.empty(len(s.gpu)))[rows] = value
    return {name: torch.tensor(value, dtype=torch.float32) for name, value in result.items()}


class ShardedCosts(Costs):
    START = {"matmul": 0.0, "attention": 0.0, "maps": 2.5, "logits": 0.0, "logit_maps": 1.5, "gather": 0.0, "far": 0.0,
             "optimizer": 0.0, "host_ms": 0.0, "fixed_ms": 1.0}

    def forward(self, f: dict[str, Tensor]) -> Tensor:
        cost = self.costs()
        once = cost["matmul"] * f["forward"] + cost["attention"] * f["attention_forward"] + cost["maps"] * f["maps"]
        back = (cost["matmul"] * f["backward"] + cost["attention"] * f["attention_backward"] + 2 * cost["maps"] * f["maps"])
        compute = once * (1 + f["is_recomputed"]) + back
        network = 1 + f["is_far"] * (cost["far"] - 1)
        exchanged = cost["gather"] * network * (2 * f["gather"] + f["scatter"])
        layer = longest(longest(compute, exchanged), cost["host_ms"] * (3 + f["is_recomputed"]) / 3)
        micro = f["layers"] * layer + cost["logits"] * f["logits"] + cost["logit_maps"] * f["logit_maps"]
        return f["accumulation"] * micro + cost["optimizer"] * f["optimizer"] + cost["fixed_ms"]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="mdot_lab.operator_benchmarks.foundry_steps",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("--measured", type=Path, required=True, help="folder of the tables of measured operators")
    parser.add_argument("--points", type=Path, required=True, help="training_points.csv")
    parser.add_argument("--rows", type=int, default=2000,
                        help="number of random rows of each GPU model and source to fit operators to (default 2000)")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    steps = read(options.points)
    terms = features(steps, Operators(options.measured, options.rows))
    left_out = {"model": steps.model, "GPU count": steps.gpus.astype(int), "length": steps.sequence.astype(int),
                "GPU model": steps.gpu}
    print(table(ShardedCosts, terms, left_out))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
