"""The time of a collective over a node's links, as NCCL reaches it.

    time = start + hops · latency + slope · √(busy · 1 µs) + busy,   busy = bytes · passes / (link · efficiency)

The root describes messages between those that latency dominates and those that the link dominates. In that range, NCCL
changes protocols and rings, and approaches the link's rate slowly. `passes`: each GPU sends (n-1)/n of the message,
all-reduce twice.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from mdot_lab.operator_benchmarks.gpu_rates import Rows, Sources

OPERATIONS = ("all_gather", "all_reduce", "alltoall", "reduce_scatter")


class CollectiveModel(nn.Module):
    def __init__(self, source_count: int) -> None:
        super().__init__()
        kinds = len(OPERATIONS)
        self.latency = nn.Parameter(torch.full((kinds,), 0.0))          # logarithms of µs
        self.slope = nn.Parameter(torch.full((kinds,), 0.0))
        self.efficiency = nn.Parameter(torch.full((kinds,), -0.3))
        self.peer = nn.Parameter(torch.zeros(kinds))                    # effect of each further GPU on the rate
        self.switch = nn.Parameter(torch.full((kinds,), 0.0))           # effect of adding NVLink switches
        self.sources = Sources(source_count, floor_us=3.0)              # a source is an operation

    def forward(self, r: Rows) -> tuple[Tensor, Tensor]:
        kind = r["operation"][:, 0].long()
        of_kind = {name: getattr(self, name)[kind][:, None] for name in ("latency", "slope", "efficiency", "peer", "switch")}
        gpus = r["gpus"]
        passes = (gpus - 1) / gpus * (1 + r["is_reduced_twice"])
        rate = r["link_gbps"] * 1e3 * torch.exp(of_kind["efficiency"] + of_kind["peer"] * torch.log(gpus / 2)
                                                + of_kind["switch"] * r["adds_in_switch"])
        busy = r["message_bytes"] * passes / rate
        microseconds = ((gpus - 1) * torch.exp(of_kind["latency"]) + torch.exp(of_kind["slope"]) * torch.sqrt(busy) + busy)
        return self.sources(microseconds, r["source"]), torch.zeros_like(microseconds)
