"""The time of a convolution's phases, as an implicit matmul, or by Winograd's algorithm where fp32 libraries use it.

Forward, data gradient and weight gradient are matmuls with the same dimensions in other roles: [batch · positions,
channels in · window] times channels out, and so on. Winograd replaces a 3 × 3 window at stride 1 by a quarter to a
half of the multiplications, but moves operands through memory. Libraries take the faster way.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from mdot_lab.operator_benchmarks.gpu_rates import Rows, Sources
from mdot_lab.operator_benchmarks.matmul_model import MatmulModel, features

PHASES = ("forward", "data gradient", "weight gradient")
WINOGRAD_TILE, WINOGRAD_WINDOW = 4.0, 3.0
"""F(4 × 4, 3 × 3): 36 multiplications for 16 results, instead of 144."""


class ConvolutionModel(MatmulModel):
    def __init__(self, source_count: int) -> None:
        super().__init__(source_count)
        self.sources = Sources(source_count, floor_us=40.0)
        self.phase_cost = nn.Parameter(torch.zeros(len(PHASES)))
        self.window_cost = nn.Parameter(torch.tensor(0.1))          # gathering a window of more than one position
        self.winograd_cost = nn.Parameter(torch.tensor([0.3, 1.0])) # logarithms: multiplications, transforms

    def _phase(self, r: Rows) -> Tensor:
        return self.phase_cost[r["phase"][:, 0].long()][:, None]

    @staticmethod
    def matmul(r: Rows) -> Rows:
        """The dimensions of a phase's matmul."""
        positions, window = r["batch"] * r["positions_out"], r["window"]
        is_forward, is_weight = (r["phase"] == 0).to(window), (r["phase"] == 2).to(window)
        is_data = 1 - is_forward - is_weight
        m = is_forward * positions + is_data * r["batch"] * r["positions_in"] + is_weight * r["channels_out"]
        n = is_forward * r["channels_out"] + is_data * r["channels_in"] + is_weight * r["channels_in"] * window
        # The data gradient has as many multiplications as the forward phase, for every stride.
        k = (is_forward * r["channels_in"] * window
             + is_data * r["channels_out"] * window * r["positions_out"] / r["positions_in"] + is_weight * positions)
        return {**r, "m": m, "n": n, "k": k.clamp(min=1), "count": torch.ones_like(m)}

    def direct_us(self, r: Rows, matmul: Rows) -> tuple[Tensor, Tensor]:
        """Time as an implicit matmul: data is read once through L2, rather than once for each position of a window."""
        window = r["window"]
        compute = self.compute_us(matmul) * torch.exp(self.window_cost * (window > 1).to(window))
        moved = r["bytes"] * (r["batch"] * (r["positions_in"] * r["channels_in"] + r["positions_out"] * r["channels_out"])
                              + r["channels_in"] * r["channels_out"] * window)
        return compute, self.rates.dram_us(r, moved)

    def winograd_us(self, r: Rows) -> Tensor:
        """Time for 36 matmuls, tiles by channels, and for moving both feature maps at 2.25 times their size."""
        points = (WINOGRAD_TILE + WINOGRAD_WINDOW - 1) ** 2
        side = torch.sqrt(r["positions_out"])
        tiles = r["batch"] * torch.ceil(side / WINOGRAD_TILE) ** 2
        is_weight = (r["phase"] == 2).to(tiles)
        m, k = tiles + is_weight * (r["channels_out"] - tiles), r["channels_in"] + is_weight * (tiles - r["channels_in"])
        n = r["channels_out"] + is_weight * (r["channels_in"] - r["channels_out"])
        matmul = {**r, "m": m, "n": n, "k": k, "count": torch.full_like(m, points)}
        elements = tiles * (r["channels_in"] + r["channels_out"]) + r["channels_in"] * r["channels_out"]
        transformed = points * r["bytes"] * elements
        return (self.compute_us(matmul) * torch.exp(self.winograd_cost[0])
                + self.rates.dram_us(r, transformed) * torch.exp(self.winograd_cost[1]))

    def forward(self, r: Rows) -> tuple[Tensor, Tensor]:
        matmul = self.matmul(r)
        compute, memory = self.direct_us(r, matmul)
        power = 1 + torch.exp(self.sharpness)
        longer = torch.maximum(compute, memory)
        direct = longer * (1 + (torch.minimum(compute, memory) / longer) ** power) ** (1 / power)
        winograd = self.winograd_us(r)
        may_winograd = r["has_winograd"] * (1 - r["is_tensor"])
        physical = torch.minimum(direct, winograd * may_winograd + direct * (1 - may_winograd)) * torch.exp(self._phase(r))
        seen = features(matmul, physical, compute, memory)
        correction = torch.tanh(self.out(nn.functional.gelu(self.middle(seen)))) * 2
        return self.sources(physical * torch.exp(correction), r["source"]), correction
