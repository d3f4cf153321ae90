"""GPUs for predictions: those in libmdot, and others by spec values."""

from __future__ import annotations

import ctypes
import dataclasses

from mdot.library import structs as c
from mdot.library.libraries import call, encode_text, read_text, runtime
from mdot.options import GPUColumns


@dataclasses.dataclass(frozen=True)
class GPU(GPUColumns):
    """The spec values of a GPU. Rates are dense rates at boost clock, and a multiply-add counts as two (mdot.h, mdot_gpu)."""

    def replace(self, **specs: float | str) -> GPU:
        """A copy with other spec values, for example `mdot.gpu("A100").replace(name="half an A100", sm_count=54)`."""
        return dataclasses.replace(self, **specs)  # type: ignore[arg-type]

    def _as_struct(self) -> c.mdot_gpu:
        fields = dataclasses.asdict(self)
        fields["name"] = encode_text(self.name)
        return c.new(c.mdot_gpu, **fields)


def gpu(name: str) -> GPU:
    """Finds a GPU by a name from `gpus()`, by an alias, or by the driver's name. Raises InvalidArgumentError for an
    unknown GPU."""
    found = c.new(c.mdot_gpu)
    call(runtime().mdot_gpu_find, encode_text(name), ctypes.byref(found))
    specs = {field.name: getattr(found, field.name) for field in dataclasses.fields(GPU) if field.name != "name"}
    return GPU(read_text(found.name), **specs)


def gpus() -> list[GPU]:
    """All GPUs in libmdot, in the library's order."""
    names = runtime().mdot_gpu_names()
    found = []
    for name in names:  # the array ends with NULL
        if name is None:
            break
        found.append(gpu(read_text(name)))
    return found
