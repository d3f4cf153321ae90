"""Calibrations: a site's own measurements, by which predictions are corrected (mdot_calibrate.h, mdot_calibration)."""

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
from mdot.library.libraries import call, check, read_text, runtime

if TYPE_CHECKING:
    from mdot.predictor import Predictor


@dataclasses.dataclass(frozen=True)
class Correction:
    """Of one GPU: in half precision, and not."""

    row_count: int
    factor: float
    """That times are multiplied by."""
    interval: float
    """That the logarithms of their interval's bounds over the median are multiplied by."""
    half_row_count: int
    half_factor: float
    half_interval: float


class Calibration:
    """Immutable. It belongs to the predictor whose answers were held to the measurements."""

    def __init__(self, handle: int) -> None:
        """Takes an mdot_calibration over: use `load` or `measured`."""
        self._handle = ctypes.c_void_p(handle)
        weakref.finalize(self, runtime().mdot_calibration_destroy, self._handle)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Calibration:
        """From a file, as `save` and `mdot calibrate -o` write it."""
        handle = ctypes.c_void_p()
        call(runtime().mdot_calibration_load, os.fsencode(path), ctypes.byref(handle))
        assert handle.value is not None
        return cls(handle.value)

    @classmethod
    def from_bytes(cls, data: bytes) -> Calibration:
        """The same from the bytes of such a file."""
        handle = ctypes.c_void_p()
        call(runtime().mdot_calibration_parse, data, len(data), ctypes.byref(handle))
        assert handle.value is not None
        return cls(handle.value)

    @classmethod
    def measured(cls, predictor: Predictor, rows: Iterable[tuple[Job, Configuration, float]]) -> Calibration:
        """From measured steps: job, configuration, milliseconds. As few as three help; none changes nothing."""
        given = list(rows)
        keep: list[Any] = []
        count = max(len(given), 1)
        jobs = (ctypes.c_void_p * count)(*[job._handle for job, _, _ in given])
        times = (ctypes.c_double * count)(*[ms for _, _, ms in given])
        handle = ctypes.c_void_p()
        configurations = as_array((configuration for _, configuration, _ in given), keep)
        call(
            runtime().mdot_calibrate, predictor._context(), jobs, configurations, times, len(given), ctypes.byref(handle)
        )
        assert handle.value is not None
        return cls(handle.value)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a text of a few lines, which appears complete or not at all."""
        call(runtime().mdot_calibration_save, self._handle, os.fsencode(path))

    def _info(self) -> c.mdot_calibration_info:
        info = c.new(c.mdot_calibration_info)
        check(runtime().mdot_calibration_get_info(self._handle, ctypes.byref(info)))
        return info

    @property
    def predictor(self) -> str:
        """The name of the one that it was made with."""
        return read_text(self._info().predictor)

    @property
    def row_count(self) -> int:
        """Measured steps that it was made of."""
        return int(self._info().row_count)

    @property
    def factor(self) -> float:
        """That times are multiplied by on GPUs without a row; `interval` likewise."""
        return float(self._info().factor)

    @property
    def interval(self) -> float:
        return float(self._info().interval)

    @property
    def several(self) -> tuple[int, float, float]:
        """Rows of several GPUs that worked together; factor and interval, which such steps are multiplied by besides."""
        info = self._info()
        return int(info.several_row_count), float(info.several_factor), float(info.several_interval)

    @property
    def gpus(self) -> dict[str, Correction]:
        """By the names of GPUs that rows were measured on."""
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
        """Corrects an answer in place, with what steps have in common that spend their time in the same parts."""
        explained = Handle(predictor, job, configuration)
        call(
            runtime().mdot_calibration_apply,
            self._handle,
            ctypes.byref(configuration),
            explained.pointer,
            ctypes.byref(answer),
        )
