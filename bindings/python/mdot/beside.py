"""Two jobs on one GPU (mdot_beside.h)."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdot.library import structs as c
from mdot.library.errors import InvalidArgumentError, NotFoundError
from mdot.library.libraries import call, runtime, shipped_predictor

if TYPE_CHECKING:
    from mdot.job import Job
    from mdot.prediction import Prediction
    from mdot.predictor import Predictor


@dataclasses.dataclass(frozen=True)
class GpuLoad:
    """One job alone on one GPU, as far as another job on this GPU feels it (mdot_gpu_load)."""

    step_ms: float
    """Step time alone; a measured one may replace it, and scales the two shares."""
    gpu_busy_ms: float
    host_busy_ms: float
    operator_count: float
    compute_share: float
    memory_share: float
    fp32_tflops: float
    memory_gbps: float
    peak_memory_bytes: int
    reserved_bytes: int
    usable_bytes: int


@dataclasses.dataclass(frozen=True)
class Beside:
    """A job's step beside a partner (mdot_beside)."""

    slowdown: float
    """Step time beside the partner, relative to alone; at least 1."""
    lower_slowdown: float
    upper_slowdown: float
    """Bounds of the 90 % interval."""
    step_ms: float
    reserved_bytes: float
    """Memory of both processes."""
    fits: bool
    extrapolated: bool = False
    """The GPU is unlike those with measured pairs, and is assumed to slice time."""


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two jobs on one GPU."""

    own: Beside
    partner: Beside

    @property
    def gain(self) -> float:
        """Work of both together, relative to the same jobs in turn. Packing pays above 1, if the pair fits."""
        return 1 / self.own.slowdown + 1 / self.partner.slowdown


def load_of(predictor: Predictor, job: Job, asked: Any) -> GpuLoad:
    out = c.new(c.mdot_gpu_load)
    call(runtime().mdot_gpu_load_of, predictor._context(), job._handle, ctypes.byref(asked), ctypes.byref(out))
    return GpuLoad(*(getattr(out, field.name) for field in dataclasses.fields(GpuLoad)))


@functools.lru_cache(maxsize=None)
def _shipped() -> Predictor:
    from mdot.predictor import Predictor

    path = shipped_predictor().parent / "interference.mdot"
    if not path.is_file():
        raise NotFoundError(f"there is no {path}; it ships beside the predictor")
    return Predictor(Path(path), device="cpu")


def beside(load: GpuLoad, partner: GpuLoad) -> Beside:
    """A job's step beside a partner on the same GPU, in microseconds."""
    for side in (load, partner):
        if not isinstance(side, GpuLoad):
            raise InvalidArgumentError(f"beside takes two loads as mdot.Predictor.load gives them, not {side!r:.60}")
    loads = [c.new(c.mdot_gpu_load, **dataclasses.asdict(side)) for side in (load, partner)]
    out = c.new(c.mdot_beside)
    call(
        runtime().mdot_predict_beside,
        _shipped()._context(),
        ctypes.byref(loads[0]),
        ctypes.byref(loads[1]),
        ctypes.byref(out),
    )
    values = {field.name: getattr(out, field.name) for field in dataclasses.fields(Beside)}
    return Beside(**values | {"extrapolated": out.extrapolated != 0})


def pair(predictor: Predictor, jobs: Sequence[Job], answers: Sequence[Prediction]) -> Pair:
    """The pair of two jobs with these, possibly corrected, predictions."""
    loads = [_corrected(predictor._load(job, answer.configuration), answer) for job, answer in zip(jobs, answers)]
    return Pair(beside(loads[0], loads[1]), beside(loads[1], loads[0]))


def _corrected(load: GpuLoad, answer: Prediction) -> GpuLoad:
    ratio = load.step_ms / answer.step_ms
    return dataclasses.replace(
        load,
        step_ms=answer.step_ms,
        compute_share=load.compute_share * ratio,
        memory_share=load.memory_share * ratio,
        peak_memory_bytes=answer.peak_memory_bytes,
        reserved_bytes=answer.reserved_bytes,
    )
