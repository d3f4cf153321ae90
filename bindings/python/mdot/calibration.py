"""Calibrations: corrections of predictions that follow from a site's own measurements (mdot_calibrate.h, mdot_calibration)."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import weakref
from typing import TYPE_CHECKING, Any, Iterable

from mdot.configuration import Configuration, as_array
from mdot.explanation import Handle
from mdot.job import Job
from mdot.library import structs as c
from mdot.library.libraries import call, check, encode_path, read_text, runtime

if TYPE_CHECKING:
    from mdot.predictor import Predictor


@dataclasses.dataclass(frozen=True)
class Correction:
    """The correction of one GPU model: one set of values for half precision, and one for all other precisions."""

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
    def measured(cls, predictor: Predictor, rows: Iterable[tuple[Job, Configuration, float]]) -> Calibration:
        """Fits a calibration to measured steps, each a job, a configuration and milliseconds. Three steps are enough to help.
        An empty list gives a calibration that changes nothing."""
        steps = list(rows)
        keep: list[Any] = []
        count = max(len(steps), 1)
        jobs = (ctypes.c_void_p * count)(*[job._handle for job, _, _ in steps])
        times = (ctypes.c_double * count)(*[ms for _, _, ms in steps])
        handle = ctypes.c_void_p()
        configurations = as_array((configuration for _, configuration, _ in steps), keep)
        call(
            runtime().mdot_calibrate, predictor._context(), jobs, configurations, times, len(steps), ctypes.byref(handle)
        )
        assert handle.value is not None
        return cls(handle.value)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a text file of a few lines. The file appears complete or not at all."""
        call(runtime().mdot_calibration_save, self._handle, encode_path(path))

    def _info(self) -> c.mdot_calibration_info:
        info = c.new(c.mdot_calibration_info)
        check(runtime().mdot_calibration_get_info(self._handle, ctypes.byref(info)))
        return info

    @property
    def predictor(self) -> str:
        """The name of the predictor that the calibration was made with."""
        return read_text(self._info().predictor)

    @property
    def row_count(self) -> int:
        """The number of measured steps that the calibration was made from."""
        return int(self._info().row_count)

    @property
    def factor(self) -> float:
        """Factor on times for GPUs without a measured step. `interval` is the corresponding factor of the interval."""
        return float(self._info().factor)

    @property
    def interval(self) -> float:
        return float(self._info().interval)

    @property
    def several(self) -> tuple[int, float, float]:
        """Number of measured steps on several cooperating GPUs, and the factor and interval that are applied to such steps in
        addition."""
        info = self._info()
        return int(info.several_row_count), float(info.several_factor), float(info.several_interval)

    @property
    def gpus(self) -> dict[str, Correction]:
        """Corrections by the name of the GPU that steps were measured on."""
        found = {}
        for i in range(self._info().gpu_count):
            at = c.new(c.mdot_calibration_gpu)
            check(runtime().mdot_calibration_get_gpu(self._handle, i, ctypes.byref(at)))
            fields = {field.name: getattr(at, field.name) for field in dataclasses.fields(Correction)}
            found[read_text(at.name)] = Correction(**fields)
        return found

    def _apply(
        self, predictor: Predictor, job: Job, configuration: c.mdot_configuration, answer: c.mdot_prediction
    ) -> None:
        """Corrects an answer in place. The correction includes the factor of measured steps that spend their time in the same
        parts, therefore it needs an explanation."""
        explained = Handle(predictor, job, configuration)
        call(
            runtime().mdot_calibration_apply,
            self._handle,
            ctypes.byref(configuration),
            explained.pointer,
            ctypes.byref(answer),
        )
