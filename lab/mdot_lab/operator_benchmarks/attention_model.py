"""Fused (flash) attention: query blocks are distributed over SMs, and each processes all keys.

A block's step over some keys has two matmuls forward and five backward, and one exponential per score, at 16 per
clock in the special-function units. Both overlap in part. Causal blocks differ in length: SM time is the larger of
the mean block and the longest block.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from mdot_lab.operator_benchmarks.gpu_rates import Rates, Rows, Sources, at_most

BLOCK = 128.0       # queries per block, and keys per step
EXPONENTIALS_PER_CLOCK = 16.0
FORWARD_MATMULS, BACKWARD_MATMULS = 2.0, 5.0


class AttentionModel(nn.Module):
    def __init__(self, source_count: int, hidden: int = 12) -> None:
        super().__init__()
        self.rates = Rates()
        self.backward_cost = nn.Parameter(torch.tensor(0.2))
        self.exponential_cost = nn.Parameter(torch.tensor(0.0))
        self.overlap = nn.Parameter(torch.tensor(-1.0))
        self.block_clocks = nn.Parameter(torch.tensor(7.0))         # logarithm: block cost in addition to steps
        self.sharpness = nn.Parameter(torch.tensor(0.0))
        self.sources = Sources(source_count, floor_us=4.5)
        self.middle = nn.Linear(FEATURES, hidden)
        self.out = nn.Linear(hidden, 1)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def compute_us(self, r: Rows) -> Tensor:
        size = torch.ceil(r["head_size"] / 32) * 32
        matmuls = FORWARD_MATMULS + (BACKWARD_MATMULS - FORWARD_MATMULS) * r["is_backward"]
        cost = torch.exp(self.backward_cost * r["is_backward"])
        math_clocks = matmuls * 2 * BLOCK * BLOCK * size / self.rates.flops_per_clock(r) * cost
        exponentials = BLOCK * BLOCK / EXPONENTIALS_PER_CLOCK * torch.exp(self.exponential_cost)
        step = torch.maximum(math_clocks, exponentials * torch.ones_like(math_clocks))
        step = step + torch.sigmoid(self.overlap) * torch.minimum(math_clocks, exponentials * torch.ones_like(math_clocks))
        rows, steps = torch.ceil(r["queries"] / BLOCK), torch.ceil(r["keys"] / BLOCK)
        # Causal: the first block of queries has the fewest keys, and the last block has all of them.
        mean_steps = steps - r["is_causal"] * torch.minimum(rows, steps).sub(1) / 2
        blocks = r["batch"] * r["heads"] * rows
        longest, mean_clocks = steps * step, mean_steps * step
        per_block = torch.exp(self.block_clocks)
        waves = torch.ceil(blocks / r["sm_count"])
        even = torch.maximum(blocks / r["sm_count"], torch.ones_like(blocks))
        # Blocks with equal length run in waves; blocks with different lengths fill gaps.
        packed = waves + r["is_causal"] * (even - waves)
        clocks = torch.maximum(packed * (mean_clocks + per_block), longest + per_block)
        return clocks / self.rates.clocks_per_us(r)

    def memory_us(self, r: Rows) -> Tensor:
        of_queries = r["batch"] * r["heads"] * r["queries"] * r["head_size"]
        of_keys = r["batch"] * r["key_heads"] * r["keys"] * r["head_size"]
        passes = 1 + 1.5 * r["is_backward"]     # five tensors read and three written; forward has three and one
        return self.rates.dram_us(r, passes * r["bytes"] * 2 * (of_queries + of_keys))

    def forward(self, r: Rows) -> tuple[Tensor, Tensor]:
        compute, memory = self.compute_us(r), self.memory_us(r)
        power = 1 + torch.exp(self.sharpness)
        longer = torch.maximum(compute, memory)
        physical = longer * (1 + (torch.minimum(compute, memory) / longer) ** power) ** (1 / power)
        correction = torch.tanh(self.out(nn.functional.gelu(self.middle(features(r, compute, memory))))) * 2
        return self.sources(physical * torch.exp(correction), r["source"]), correction


def features(r: Rows, compute: Tensor, memory: Tensor) -> Tensor:
    blocks = r["batch"] * r["heads"] * torch.ceil(r["queries"] / BLOCK) / r["sm_count"]
    one = torch.ones_like(blocks)
    return torch.cat([0.4 * torch.log(compute / memory), 0.3 * (r["queries"].log() - 7), 0.3 * (r["keys"].log() - 7),
                      r["head_size"].log() - 4.8, at_most(blocks, one).log(), 0.3 * blocks.log(),
                      0.5 * torch.log(r["heads"] / r["key_heads"]), r["is_causal"], r["is_backward"]], dim=1)


FEATURES = 9
