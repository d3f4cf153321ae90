"""The GPUs that operators were measured on: spec values by name, and the GPUs that share an architecture.

Spec values come from runtime/job/gpus.def if it contains the GPU. The sources of the others are NVIDIA's data sheets and
product pages. The tables of lab/notes/operators were made with the values here, also for GPUs that were added to gpus.def later.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from mdot_lab.predictor import tables

SPEC_COLUMNS = ("compute_capability", "sm_count", "boost_mhz", "memory_gbps", "l2_mib", "fp32_tflops", "fp16_tflops", "watts")


@dataclass(frozen=True)
class GpuSpec:
    name: str
    compute_capability: float
    sm_count: float
    boost_mhz: float
    memory_gbps: float
    l2_mib: float
    fp32_tflops: float      # outside tensor cores
    fp16_tflops: float      # of tensor cores, dense, fp32 accumulation; the fp32 rate for GPUs without tensor cores
    watts: float            # power limit

    @property
    def architecture(self) -> str:
        return architecture(self.compute_capability)


ARCHITECTURES = {5.0: "Kepler", 6.0: "Maxwell", 7.0: "Pascal", 7.5: "Volta", 8.0: "Turing", 8.9: "Ampere", 9.0: "Ada",
                 10.0: "Hopper", 13.0: "Blackwell"}
"""Keys are the compute capability at which the next architecture begins."""


def architecture(compute_capability: float) -> str:
    return ARCHITECTURES[next(limit for limit in ARCHITECTURES if compute_capability < limit)]


OTHER_GPUS = {spec.name: spec for spec in (
    GpuSpec("M60", 5.2, 16, 1178, 160, 2, 4.8, 4.8, 150),      # one half of an M60
    GpuSpec("M40", 5.2, 24, 1114, 288, 3, 6.8, 6.8, 250),
    GpuSpec("TITAN-X-Maxwell", 5.2, 24, 1075, 336.5, 3, 6.6, 6.6, 250),
    GpuSpec("TITAN-X-Pascal", 6.1, 28, 1531, 480, 3, 11.0, 11.0, 250),
    GpuSpec("P4", 6.1, 20, 1063, 192, 2, 5.5, 5.5, 75),
    # From the HGX B200 and B300, GB200 and GB300 NVL72 data sheets, whose values for a rack or eight GPUs are divided.
    GpuSpec("B200", 10.0, 148, 1965, 7700, 126, 74.4, 2200, 1000),
    GpuSpec("B300", 10.3, 148, 1965, 7700, 126, 74.4, 2250, 1100),
    GpuSpec("GB200", 10.0, 152, 1965, 8000, 126, 80.0, 2500, 1200),
    GpuSpec("GB300", 10.3, 152, 1965, 8000, 126, 80.0, 2500, 1400),
    GpuSpec("RTX-PRO-6000-Server", 12.0, 188, 2340, 1597, 128, 110.0, 440, 600),
)}

NAMES = {
    "a100_sxm": "A100-SXM-80GB", "b200_sxm": "B200", "b300_sxm": "B300", "gb200": "GB200", "gb300": "GB300",
    "h100_sxm": "H100-SXM-80GB", "h200_sxm": "H200-SXM-141GB", "rtx_pro_6000_server": "RTX-PRO-6000-Server",
    "a100": "A100-SXM-80GB", "a40": "A40", "h100": "H100-SXM-80GB",
    "NVIDIA A100 80GB PCIe": "A100-PCIe-80GB", "NVIDIA A100-PCIE-40GB": "A100-PCIe-40GB",
    "NVIDIA H100 80GB HBM3": "H100-SXM-80GB", "NVIDIA L4": "L4", "Tesla P100-PCIE-16GB": "P100-PCIe-16GB",
    "Tesla P4": "P4", "Tesla T4": "T4", "Tesla V100-PCIE-32GB": "V100-PCIe-32GB", "NVIDIA GB200": "GB200",
    "NVIDIA GB300": "GB300", "NV_1080Ti": "GTX-1080-Ti", "NV_M40": "M40", "NV_P100": "P100-SXM-16GB", "NV_T4": "T4",
    "NV_TitanX": "TITAN-X-Maxwell", "NV_TitanX_Pascal": "TITAN-X-Pascal", "NV_V100": "V100-SXM-16GB",
    "catapult 1080ti": "GTX-1080-Ti", "catapult P100": "P100-PCIe-16GB", "catapult V100": "V100-SXM-16GB",
    "catapult M60": "M60", "catapult K80": "K80", "catapult k80": "K80",
}
"""Maps the names in measurements to the names here. AMD's and Intel's GPUs are absent, because their spec values mean other
things."""


@cache
def gpu_spec(name: str) -> GpuSpec:
    if name in OTHER_GPUS:
        return OTHER_GPUS[name]
    row = tables.gpu(name)
    return GpuSpec(name, *(row[column] for column in SPEC_COLUMNS))
