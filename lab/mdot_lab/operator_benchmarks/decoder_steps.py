"""A GPT's training step from operator models, with tensor, pipeline and data parallelism.

    step   = (micro-batches + stages - 1) · slowest stage + gradients' all-reduce + optimizer + fixed
    stage  = layers · layer, of the last one also the logits
    layer  = smooth maximum of  matmuls + memory-bound operators + collectives of tensor parallelism
                           and  host time to launch them

The forward phase counts twice if activations are recomputed in the backward pass. The operators' models are fitted to single
operators. A dozen costs are fitted to steps: the memory-bound operators beside bytes, the host, the optimizer. The
model is compared with the published steps of vTrain (Megatron on A100, attention decomposed into matmuls), in folds by the
model's size and by the number of GPUs.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pandas
import torch
from torch import Tensor

from mdot_lab.operator_benchmarks.step_costs import Costs, Operators, longest, table

LINK_GBPS, NODE = 300.0, 8
NETWORK_GBPS = 25.0
"""One direction per GPU in a node: eight ports at 200 Gbit/s, as in DGX A100."""
VOCABULARY = 51200
"""GPT-2's vocabulary with Megatron's padding, which vTrain's points leave unstated."""
HALF = 2


@dataclass(frozen=True)
class Steps:
    """Measured steps, [n] each."""

    hidden: np.ndarray
    layers: np.ndarray
    heads: np.ndarray
    sequence: np.ndarray
    micro_batch: np.ndarray     # samples of a micro-batch
    micro_batches: np.ndarray   # micro-batches of a step, executed in sequence
    tensor: np.ndarray          # degree for each kind of parallelism, in GPUs
    pipeline: np.ndarray
    data: np.ndarray
    step_ms: np.ndarray

    def take(self, rows: np.ndarray) -> "Steps":
        return Steps(*(getattr(self, field.name)[rows] for field in fields(self)))

    @property
    def gpus(self) -> np.ndarray:
        return self.tensor * self.pipeline * self.data


def read(points: Path) -> Steps:
    """Reads vTrain's rows from the table of published points."""
    rows = pandas.read_csv(points, low_memory=False)
    rows = rows[rows.source.str.startswith("VIA-Research/vTrain")]
    shape = rows.model.str.extract(r"GPT-h(\d+)-L(\d+)-a(\d+)").astype(float).to_numpy().T
    note = {name: rows.notes.str.extract(rf"{name}=([\d.]+)")[0].astype(float).to_numpy()
            for name in ("iteration_ms", "global_batch", "tp", "dp", "pp")}
    micro = rows.batch_per_gpu.to_numpy(dtype=float)
    return Steps(*shape, sequence=rows.seq_or_resolution.to_numpy(dtype=float), micro_batch=micro,
                 micro_batches=note["global_batch"] / (note["dp"] * micro), tensor=note["tp"], pipeline=note["pp"],
                 data=note["dp"], step_ms=note["iteration_ms"])


def layer_parameters(s: Steps) -> np.ndarray:
    return 12 * s.hidden**2


def features(s: Steps, operators: Operators, memory_gbps: float) -> dict[str, Tensor]:
    """The terms that costs are fitted for, in ms. They are of one micro-batch unless the name contains "step"."""
    rows, wide = s.micro_batch * s.sequence, s.hidden / s.tensor
    matmuls = sum(operators.trained_us(rows, n, k)
                   for n, k in ((3 * wide, s.hidden), (s.hidden, wide), (4 * wide, s.hidden), (s.hidden, 4 * wide)))
    count, size = s.micro_batch * s.heads / s.tensor, s.hidden / s.heads
    scores = np.stack([operators.matmul_us(s.sequence, s.sequence, size, count),
                       operators.matmul_us(s.sequence, size, s.sequence, count)])
    logits = operators.trained_us(rows, VOCABULARY / s.tensor, s.hidden)
    maps = HALF * rows * s.hidden / (memory_gbps * 1e6)            # a pass over [batch · sequence, hidden]
    score_map = HALF * s.micro_batch * s.heads / s.tensor * s.sequence**2 / (memory_gbps * 1e6)
    exchange = operators.collective_us("all_reduce", s.tensor, HALF * rows * s.hidden, LINK_GBPS)
    parameters = (layer_parameters(s) * s.layers / s.pipeline + VOCABULARY * s.hidden) / s.tensor
    # Data-parallel groups stride over tensor-parallel groups, because the latter fill a node first.
    within = s.tensor * s.data <= NODE
    link = np.where(within, LINK_GBPS, NETWORK_GBPS)
    reduced = operators.collective_us("all_reduce", s.data, HALF * parameters, link)
    sent = np.where(s.pipeline > 1, HALF * rows * s.hidden / (np.where(s.gpus <= NODE, LINK_GBPS, NETWORK_GBPS) * 1e6), 0)
    values = {
        "forward": (matmuls[0] + scores.sum(0)) / 1e3, "backward": (matmuls[1:].sum(0) + 2 * scores.sum(0)) / 1e3,
        "logits": logits.sum(0) / 1e3, "maps": maps, "wide_maps": maps * 4 / s.tensor, "score_maps": score_map,
        "logit_maps": 2 * HALF * rows * VOCABULARY / s.tensor / (memory_gbps * 1e6), "exchange": exchange / 1e3,
        "optimizer_step": parameters * 20 / (memory_gbps * 1e6), "reduced_step": reduced / 1e3, "sent": sent,
        "layers": s.layers / s.pipeline, "micro_batches": s.micro_batches, "stages": s.pipeline,
        "is_parallel": (s.tensor > 1).astype(float), "step_ms": s.step_ms,
    }
    return {name: torch.tensor(value, dtype=torch.float32) for name, value in values.items()}


class StepCosts(Costs):
    """Megatron's costs."""

    START = {"matmul": 0.0, "maps": 2.5, "wide_maps": 1.5, "score_maps": 2.0, "logits": 0.0, "logit_maps": 2.0, "exchange": 0.0,
             "optimizer": 0.0, "reduced": 0.0, "sent": 0.0, "host_forward_ms": 0.0, "host_exchange_ms": -1.5, "fixed_ms": 1.0}

    def forward(self, f: dict[str, Tensor]) -> Tensor:
        cost = self.costs()
        # Recomputation runs forward twice. Backward accesses the feature maps twice as often as forward.
        streams = 4 * (cost["maps"] * f["maps"] + cost["wide_maps"] * f["wide_maps"] + cost["score_maps"] * f["score_maps"])
        gpu = cost["matmul"] * (2 * f["forward"] + f["backward"]) + streams + 6 * cost["exchange"] * f["exchange"]
        host = 4 * (cost["host_forward_ms"] + f["is_parallel"] * cost["host_exchange_ms"])
        logits = cost["logits"] * f["logits"] + cost["logit_maps"] * f["logit_maps"]
        stage = f["layers"] * longest(gpu, host) + logits + cost["sent"] * f["sent"]
        step = cost["reduced"] * f["reduced_step"] + cost["optimizer"] * f["optimizer_step"] + cost["fixed_ms"]
        return (f["micro_batches"] + f["stages"] - 1) * stage + step


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="mdot_lab.operator_benchmarks.decoder_steps",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("--measured", type=Path, required=True, help="folder of the tables of measured operators")
    parser.add_argument("--points", type=Path, required=True, help="training_points.csv")
    parser.add_argument("--rows", type=int, default=2000,
                        help="number of random rows of each GPU model and source to fit operators to (default 2000)")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    steps = read(options.points)
    terms = features(steps, Operators(options.measured, options.rows), memory_gbps=2039.0)
    whole = {"hidden size": steps.hidden, "layer count": steps.layers, "GPU count": steps.gpus}
    print(table(StepCosts, terms, {title: value.astype(int) for title, value in whole.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
