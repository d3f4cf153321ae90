"""The time of a matmul: waves of tiles over SMs, memory traffic, and a penalised correction.

    compute = least over tiles and splits of
              ⌈tiles · splits / SMs⌉ · k / splits · clocks of a tile's step + prologue + reduction
    time = (compute^p + memory^p)^(1/p) · exp(correction), with the offset and floor of the source

A tile's step takes the longer of multiplications and reads from L2, as a smooth maximum. The library's choice of tile
is unknown. The model assumes the best one, because a library with a good heuristic chooses it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from mdot_lab.operator_benchmarks.gpu_rates import Rates, Rows, Sources

TILES = ((256, 256), (256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (32, 64), (64, 32), (32, 32), (16, 32),
         (16, 64), (16, 128))
SPLITS = (1, 2, 4, 8, 16)
STEP = 32.0
"""Sum elements that a tile processes in one step."""


class MatmulModel(nn.Module):
    def __init__(self, source_count: int, hidden: int = 16) -> None:
        super().__init__()
        candidates = [(rows, columns, split) for rows, columns in TILES for split in SPLITS]
        self.register_buffer("tile", torch.tensor(candidates, dtype=torch.float32).T.contiguous())      # [3, candidates]
        self.rates = Rates()
        self.load_rate = nn.Parameter(torch.tensor([-0.9, 0.6]))    # L2 to SM, as a logarithm of 64 bytes a clock
        self.prologue = nn.Parameter(torch.tensor([1.4, 0.1]))      # logarithms of µs: fp32, tensor cores
        self.reduction = nn.Parameter(torch.tensor(-0.8))
        self.resident = nn.Parameter(torch.tensor(-2.3))            # L2 fraction that keeps operands between calls
        self.sharpness = nn.Parameter(torch.tensor(0.0))
        self.sources = Sources(source_count, floor_us=2.0)
        self.middle = nn.Linear(FEATURES, hidden)
        self.out = nn.Linear(hidden, 1)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def _of_kind(self, parameter: Tensor, r: Rows) -> Tensor:
        return parameter[0] + (parameter[1] - parameter[0]) * r["is_tensor"]

    def compute_us(self, r: Rows) -> Tensor:
        rows, columns, splits = self.tile[:, None, :].unbind(0)     # [1, candidates]
        clocks_per_us = self.rates.clocks_per_us(r)
        math_clocks = 2 * rows * columns / self.rates.flops_per_clock(r)
        loads = (rows + columns) * r["bytes"] / (64 * torch.exp(self._of_kind(self.load_rate, r)))
        step = (math_clocks**4 + loads**4) ** 0.25
        depth = torch.ceil(r["k"] / (splits * STEP)) * STEP
        blocks = torch.ceil(r["m"] / rows) * torch.ceil(r["n"] / columns) * splits * r["count"]
        waves = torch.ceil(blocks / r["sm_count"])
        sums = (splits > 1).to(step) * (8 * splits * r["count"] * r["m"] * r["n"] / (r["memory_gbps"] * 1e3)
                                        * torch.exp(self.reduction) + 1)
        prologue = torch.exp(self._of_kind(self.prologue, r))
        return (waves * depth * step / clocks_per_us + sums).amin(dim=1, keepdim=True) + prologue

    def memory_us(self, r: Rows) -> Tensor:
        moved = r["count"] * (r["m"] * r["k"] + r["k"] * r["n"] + r["m"] * r["n"]) * r["bytes"]
        beyond_l2 = torch.sigmoid(2 * (moved.log() - (r["l2_mib"] * 2**20).log() - self.resident))
        return self.rates.dram_us(r, moved) * beyond_l2 + self.rates.l2_us(r, moved)

    def physical_us(self, r: Rows) -> tuple[Tensor, Tensor, Tensor]:
        compute, memory = self.compute_us(r), self.memory_us(r)
        power = 1 + torch.exp(self.sharpness)
        longer = torch.maximum(compute, memory)
        return longer * (1 + (torch.minimum(compute, memory) / longer) ** power) ** (1 / power), compute, memory

    def forward(self, r: Rows) -> tuple[Tensor, Tensor]:
        """[rows, 1]: microseconds as the source measures them, and the correction."""
        physical, compute, memory = self.physical_us(r)
        correction = torch.tanh(self.out(nn.functional.gelu(self.middle(features(r, physical, compute, memory))))) * 2
        return self.sources(physical * torch.exp(correction), r["source"]), correction


def _rounded(x: Tensor, multiple: int) -> Tensor:
    return torch.log(torch.ceil(x / multiple) * multiple / x)


def features(r: Rows, physical: Tensor, compute: Tensor, memory: Tensor) -> Tensor:
    """Features without absolute spec values, so that the correction transfers between GPUs."""
    m, n, k = r["m"], r["n"], r["k"]
    moved = (m * k + k * n + m * n) * r["bytes"]
    odd = [((x / 8).ceil() * 8 > x).to(x) for x in (m, n, k)]
    return torch.cat([0.4 * torch.log(compute / memory), 0.4 * torch.log(physical), 0.5 * (k.log() - 7), 0.4 * (m.log() - 6),
                      0.4 * (n.log() - 7), _rounded(m, 128), _rounded(n, 128), _rounded(m, 64), *odd,
                      0.3 * torch.log(m * n / (128 * 128 * r["sm_count"])), 0.4 * torch.log(moved / (r["l2_mib"] * 2**20)),
                      r["is_tensor"]], dim=1)


FEATURES = 14
