"""A GPU's sustained rates from its data sheet: compute rate under the power limit, L2 and DRAM bandwidth. All operator
models use it.

All values are [rows, 1] tensors, and the code uses only operators that ONNX has.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

Rows = dict[str, Tensor]


def process_nm(compute_capability: Tensor) -> Tensor:
    """Process sizes from NVIDIA's white papers: Maxwell 28, Pascal 16, Volta and Turing 12, GA100 7, GA102 8, and 4 from Ada
    on."""
    steps = ((6.0, 16 - 28), (7.0, 12 - 16), (8.0, 7 - 12), (8.6, 8 - 7), (8.9, 4 - 8))
    return 28.0 + sum(change * (compute_capability >= at - 0.01).to(compute_capability) for at, change in steps)


SHARPNESS = 8.0


def at_most(x: Tensor, limit: Tensor) -> Tensor:
    """The smaller of both, as a smooth function: (x^-8 + limit^-8)^(-1/8)."""
    return x * torch.exp(-nn.functional.softplus(SHARPNESS * (x.log() - limit.log())) / SHARPNESS)


PROCESS, VOLTAGE = 0.85, 0.9
"""Exponents. The energy of an operation is proportional to the process size to the power PROCESS: foundries state a factor of
half to a third from 16 nm to 7, and two thirds from 7 to 5. The sustained rate is proportional to the available power to the
power VOLTAGE, because the voltage falls with the clock."""
TRUST = 0.05
"""Standard deviation of both priors. They are needed because few GPUs throttle, so that the data does not determine the
exponents if one of these GPUs is left out."""


class Rates(nn.Module):
    """The clock falls if computing at the full rate exceeds a GPU's power limit: for example, a T4 computes at half its data
    sheet's rate, and an L4 at a third. The energy of an operation falls with the process size, and with the clock itself
    (lower voltage), which gives the exponents."""

    def __init__(self) -> None:
        super().__init__()
        self.tflops_per_watt = nn.Parameter(torch.tensor([-2.6, 0.2]))      # logarithms at 12 nm: fp32, tensor cores
        self.process = nn.Parameter(torch.tensor(PROCESS))
        self.voltage = nn.Parameter(torch.tensor(VOLTAGE))
        self.efficiency = nn.Parameter(torch.tensor([-0.2, -0.4]))          # fraction of the sustained rate, as a logarithm
        self.wide_sm_limit = nn.Parameter(torch.tensor(0.1))
        self.dram = nn.Parameter(torch.tensor(-0.2))
        self.l2 = nn.Parameter(torch.tensor(-0.3))

    def implausibility(self) -> Tensor:
        return ((self.process - PROCESS) / TRUST) ** 2 + ((self.voltage - VOLTAGE) / TRUST) ** 2

    def clock_fraction(self, r: Rows) -> Tensor:
        """Fraction of the boost clock, 0 to 1."""
        per_watt = self.tflops_per_watt[0] + (self.tflops_per_watt[1] - self.tflops_per_watt[0]) * r["is_tensor"]
        finer = self.process * torch.log(12 / process_nm(r["compute_capability"]))
        allowed = per_watt + finer + torch.log(r["watts"] / r["tflops"])
        return at_most(torch.exp((self.voltage * allowed).clamp(-6, 6)), torch.ones_like(allowed))

    def clocks_per_us(self, r: Rows) -> Tensor:
        return r["boost_mhz"] * self.clock_fraction(r)

    def flops_per_clock(self, r: Rows) -> Tensor:
        """FLOPs per clock of one SM. Shared memory limits an SM with 128 fp32 lanes, because it supplies at most 128 bytes
        per clock."""
        peak = r["tflops"] * 1e6 / (r["sm_count"] * r["boost_mhz"])
        peak = peak * torch.exp(self.efficiency[0] + (self.efficiency[1] - self.efficiency[0]) * r["is_tensor"])
        limited = at_most(peak, 256 * torch.exp(self.wide_sm_limit) * torch.ones_like(peak))
        return limited + r["is_tensor"] * (peak - limited)

    def dram_us(self, r: Rows, moved: Tensor) -> Tensor:
        return moved / (r["memory_gbps"] * 1e3 * torch.exp(self.dram))

    def l2_us(self, r: Rows, moved: Tensor) -> Tensor:
        """Microseconds for L2 traffic. The L2 rate grows with reading SMs and with the memory behind it."""
        by_sm, by_memory = r["sm_count"] * 64 * self.clocks_per_us(r), r["memory_gbps"] * 1e3
        return moved / (torch.sqrt(by_sm * by_memory) * torch.exp(self.l2))


class Sources(nn.Module):
    """Measurement effects of a source: an offset (another library, other clocks) and a floor (a launch, the events around
    it). Number 0 is an unknown source, which has the mean of the known ones."""

    def __init__(self, count: int, floor_us: float) -> None:
        super().__init__()
        self.offset = nn.Parameter(torch.zeros(count + 1))                          # logarithms
        self.floor = nn.Parameter(torch.full((count + 1,), floor_us).log())

    def settle(self) -> None:
        with torch.no_grad():
            for of_source in (self.offset, self.floor):
                of_source[0] = of_source[1:].mean()

    def implausibility(self) -> Tensor:
        return (self.offset**2).mean()

    def forward(self, microseconds: Tensor, number: Tensor) -> Tensor:
        return microseconds * torch.exp(self.offset[number][:, None]) + torch.exp(self.floor[number][:, None])
