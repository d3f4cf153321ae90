"""The time of memory-bound operators: elementwise functions, softmax, normalisations.

    time = (DRAM time beyond L2 + L2 time) · cost of the kind + a pass over few long rows,
           with the offset and floor of the source

Reductions need one block per row. Therefore few rows leave SMs idle, because each busy SM has a row to itself.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from mdot_lab.operator_benchmarks.gpu_rates import Rates, Rows, Sources

KINDS = ("elementwise", "softmax", "normalisation")


class StreamModel(nn.Module):
    def __init__(self, source_count: int) -> None:
        super().__init__()
        self.rates = Rates()
        self.sources = Sources(source_count, floor_us=10.0)
        self.cost = nn.Parameter(torch.zeros(len(KINDS)))
        self.row_bytes_per_clock = nn.Parameter(torch.full((len(KINDS),), 3.5))      # of one SM, a logarithm
        self.resident = nn.Parameter(torch.tensor(-1.0))

    def forward(self, r: Rows) -> tuple[Tensor, Tensor]:
        kind = r["operation"][:, 0].long()
        moved = r["accesses"] * r["rows"] * r["columns"] * r["bytes"]
        beyond_l2 = torch.sigmoid(2 * (moved.log() - (r["l2_mib"] * 2**20).log() - self.resident))
        memory = (self.rates.dram_us(r, moved) * beyond_l2 + self.rates.l2_us(r, moved)) * torch.exp(self.cost[kind][:, None])
        waves = torch.ceil(r["rows"] / r["sm_count"])
        row = r["columns"] * r["bytes"] / (torch.exp(self.row_bytes_per_clock[kind][:, None]) * r["boost_mhz"])
        alone = waves * row * r["is_by_row"]
        physical = (memory**4 + alone**4) ** 0.25
        return self.sources(physical, r["source"]), torch.zeros_like(physical)
