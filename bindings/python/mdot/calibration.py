"""Calibrations: corrections of predictions by a site's own measurements (mdot_calibrate.h, mdot_calibration)."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import weakref
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Union

from mdot.configuration import Configuration, as_array
from mdot.explanation import Handle
from mdot.job import Job
from mdot.library import structs as c
from mdot.library.libraries import call, check, encode_path, read_text, runtime, saved_bytes
from mdot.prediction import GIB, Prediction, warning_bits

if TYPE_CHECKING:
    from mdot.predictor import Predictor


@dataclasses.dataclass(frozen=True)
class Measurement:
    """A job's measured step, or the median of several (mdot_calibrate.h, mdot_measurement)."""

    job: Job
    configuration: Configuration
    ms: float = 0.0
    """Milliseconds of the step; 0: not measured."""
    gib: float = 0.0
    """Peak of allocated memory on one GPU (torch.cuda.max_memory_allocated) in GiB; 0: not measured."""
    prediction: Prediction | None = None
    """The step's uncalibrated prediction, for example one stored with the measurement. Default: the step is predicted
    now."""


MeasurementLike = Union[Measurement, "tuple[Job, Configuration, float]"]


@dataclasses.dataclass(frozen=True)
class Effect:
    """One of the effects whose factors multiply to a correction."""

    factor: float
    believed: float
    """The explained part of the effect's prior variance: from 0, unknown, to 1, known exactly."""


@dataclasses.dataclass(frozen=True)
class Factors:
    """The correction of one prediction (mdot_calibrate.h, mdot_calibration_factors)."""

    factor: float
    interval: float
    """Factor on the logarithms of the interval's bounds over the median."""
    effects: Mapping[str, Effect]
    """site, gpu, host, kernels, precision, several, job, configuration."""
    memory_factor: float
    memory_interval: float
    memory_effects: Mapping[str, Effect]
    row_count: int
    """The GPU model's rows; `job_row_count` are the job's."""
    job_row_count: int
    carried_gpu: str | None
    """Another GPU model whose rows for this job correct the time here, because residuals agree on both."""
    carried_correlation: float
    """Correlation of a job's residuals on both GPU models, 0 to 1."""
    carried_factor: float
    """These rows' share of the job's factor."""


@dataclasses.dataclass(frozen=True)
class Correction:
    """The correction, on one GPU model, for a job without any part in common with the measured ones: one set of values
    for half precision, and one for all other precisions. `Calibration.explain` has the corrections of measured jobs."""

    row_count: int
    factor: float
    """Factor on predicted times."""
    interval: float
    """Factor on the logarithms of the interval's bounds over the median."""
    half_row_count: int
    half_factor: float
    half_interval: float


class Calibration:
    """An immutable calibration. It belongs to the predictor whose answers were compared with the measurements."""

    def __init__(self, handle: int) -> None:
        """Takes ownership of an mdot_calibration. Use `load` or `measured` instead."""
        self._handle = ctypes.c_void_p(handle)
        weakref.finalize(self, runtime().mdot_calibration_destroy, self._handle)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Calibration:
        """Reads a file that `save` or `mdot calibrate -o` wrote."""
        handle = ctypes.c_void_p()
        call(runtime().mdot_calibration_load, encode_path(path), ctypes.byref(handle))
        assert handle.value is not None
        return cls(handle.value)

    @classmethod
    def from_bytes(cls, data: bytes) -> Calibration:
        """Reads the bytes of such a file."""
        handle = ctypes.c_void_p()
        call(runtime().mdot_calibration_parse, data, len(data), ctypes.byref(handle))
        assert handle.value is not None
        return cls(handle.value)

    @classmethod
    def measured(cls, predictor: Predictor, rows: Iterable[MeasurementLike]) -> Calibration:
        """Fits a calibration to measured steps: Measurement, or tuples with a job, a configuration and milliseconds.
        One step is enough, and any order gives the same result. An empty list gives a calibration without effect."""
        steps = [row if isinstance(row, Measurement) else Measurement(*row) for row in rows]
        keep: list[Any] = []
        configurations = as_array((step.configuration for step in steps), keep)
        array = (c.mdot_measurement * max(len(steps), 1))()
        for i, step in enumerate(steps):
            array[i].struct_size = ctypes.sizeof(c.mdot_measurement)
            array[i].job = step.job._handle
            array[i].configuration = ctypes.pointer(configurations[i])
            array[i].step_ms = step.ms
            array[i].memory_bytes = step.gib * GIB
            if step.prediction is not None:
                keep.append(_uncalibrated(step.prediction))
                array[i].prediction = ctypes.pointer(keep[-1])
        handle = ctypes.c_void_p()
        call(runtime().mdot_calibrate_measured, predictor._context(), array, len(steps), ctypes.byref(handle))
        assert handle.value is not None
        return cls(handle.value)

    def __reduce__(self) -> tuple[Any, ...]:
        return Calibration.from_bytes, (saved_bytes(self.save),)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a text file of a few lines. The file appears in one step, complete."""
        call(runtime().mdot_calibration_save, self._handle, encode_path(path))

    def _info(self) -> c.mdot_calibration_info:
        info = c.new(c.mdot_calibration_info)
        check(runtime().mdot_calibration_get_info(self._handle, ctypes.byref(info)))
        return info

    @property
    def predictor(self) -> str:
        """The name of the calibrated predictor."""
        return read_text(self._info().predictor)

    @property
    def row_count(self) -> int:
        """The number of measured steps behind the calibration."""
        return int(self._info().row_count)

    @property
    def memory_row_count(self) -> int:
        """The number of these steps with measured memory."""
        return int(self._info().memory_row_count)

    @property
    def job_count(self) -> int:
        """The number of different jobs among them."""
        return int(self._info().job_count)

    @property
    def factor(self) -> float:
        """Factor on times for GPUs without a measured step. `interval` is the corresponding factor of the interval."""
        return float(self._info().factor)

    @property
    def interval(self) -> float:
        """Multiplier of the interval's logarithmic width, on GPU models without a row."""
        return float(self._info().interval)

    @property
    def several(self) -> tuple[int, float, float]:
        """Number of measured steps on several cooperating GPUs, the effect's mean factor, and 1."""
        info = self._info()
        return int(info.several_row_count), float(info.several_factor), float(info.several_interval)

    @property
    def gpus(self) -> dict[str, Correction]:
        """Corrections by GPU name."""
        found = {}
        for i in range(self._info().gpu_count):
            at = c.new(c.mdot_calibration_gpu)
            check(runtime().mdot_calibration_get_gpu(self._handle, i, ctypes.byref(at)))
            fields = {field.name: getattr(at, field.name) for field in dataclasses.fields(Correction)}
            found[read_text(at.name)] = Correction(**fields)
        return found

    def explain(
        self, predictor: Predictor, job: Job, configuration: Configuration, prediction: Prediction | None = None
    ) -> Factors:
        """The factors that correct a prediction, and how much of each is known. `prediction` is this step's
        uncalibrated prediction; by default, the step is predicted now."""
        keep: list[Any] = []
        asked = as_array([configuration], keep)[0]
        answer = c.new(c.mdot_prediction)
        call(runtime().mdot_predict, predictor._context(), job._handle, ctypes.byref(asked), ctypes.byref(answer))
        if prediction is not None:
            answer = _uncalibrated(prediction)
        explained, factors = Handle(predictor, job, asked), c.new(c.mdot_calibration_factors)
        call(
            runtime().mdot_calibration_explain,
            self._handle,
            ctypes.byref(asked),
            explained.pointer,
            ctypes.byref(answer),
            ctypes.byref(factors),
        )
        return Factors(
            factors.factor,
            factors.interval,
            _effects(factors.by_effect, factors.believed),
            factors.memory_factor,
            factors.memory_interval,
            _effects(factors.memory_by_effect, factors.memory_believed),
            factors.row_count,
            factors.job_row_count,
            read_text(factors.carried_gpu) if factors.carried_gpu is not None else None,
            factors.carried_correlation,
            factors.carried_factor,
        )

    def _apply(self, job: Job, configuration: c.mdot_configuration, answer: c.mdot_prediction) -> None:
        """Corrects an answer in place."""
        call(
            runtime().mdot_calibration_apply_to_job,
            self._handle,
            job._handle,
            ctypes.byref(configuration),
            ctypes.byref(answer),
        )


def _effects(factors: Any, believed: Any) -> dict[str, Effect]:
    return {name: Effect(factors[i], believed[i]) for i, name in enumerate(c.CALIBRATION_EFFECTS)}


def _uncalibrated(prediction: Prediction) -> c.mdot_prediction:
    memory = ("peak_memory_bytes", "memory_lower_bytes", "memory_upper_bytes")
    names = ("step_ms", "lower_ms", "upper_ms", "gpu_ms", "gpu_lower_ms", "gpu_upper_ms", "loader_ms", "host_share", *memory)
    values = {name: getattr(prediction, name) for name in names}
    return c.new(c.mdot_prediction, warnings=warning_bits(prediction.warnings), **values)
