"""GPUs that predictions are made for: those that libmdot knows, and others by their figures."""

from __future__ import annotations

import ctypes
import dataclasses

from mdot.library import structs as c
from mdot.library.libraries import call, read_text, runtime


@dataclasses.dataclass(frozen=True)
class GPU:
    """A GPU's figures; rates are dense, at boost clock, a multiply-add counted as two (mdot.h, mdot_gpu)."""

    name: str
    compute_capability: float
    sm_count: float
    boost_mhz: float
    memory_gib: float
    memory_gbps: float
    l2_mib: float
    fp32_tflops: float
    tf32_tflops: float
    fp16_tflops: float
    nvlink_gbps: float = 0.0
    """0: the board comes without NVLink."""
    pcie_gbps: float = 0.0
    """0: not known, and taken as PCIe 4 with 16 lanes."""
    watts: float = 0.0
    """The board's power limit, under which its clock may fall; 0: as many as the rates take."""

    def replace(self, **figures: float | str) -> GPU:
        """One like this with other figures: `mdot.gpu("A100").replace(name="half an A100", sm_count=54)`."""
        return dataclasses.replace(self, **figures)  # type: ignore[arg-type]

    def _as_struct(self) -> c.mdot_gpu:
        fields = dataclasses.asdict(self)
        fields["name"] = self.name.encode()
        return c.new(c.mdot_gpu, **fields)


def gpu(name: str) -> GPU:
    """The GPU called so: a name of `gpus()`, an alias, or what the driver calls it. InvalidArgumentError otherwise."""
    found = c.new(c.mdot_gpu)
    call(runtime().mdot_gpu_find, name.encode(), ctypes.byref(found))
    figures = {field.name: getattr(found, field.name) for field in dataclasses.fields(GPU) if field.name != "name"}
    return GPU(read_text(found.name), **figures)


def gpus() -> list[GPU]:
    """All that libmdot knows, in its order."""
    names = runtime().mdot_gpu_names()
    found = []
    for name in names:  # ends with NULL
        if name is None:
            break
        found.append(gpu(read_text(name)))
    return found
