"""Calibrations: a site's own measurements, by which predictions are corrected (mdot_predict.h, mdot_calibration)."""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import TYPE_CHECKING, Any, Iterable

from mdot.configuration import Configuration, as_array
from mdot.job import Job
from mdot.library import structs as c
from mdot.library.libraries import call, runtime

if TYPE_CHECKING:
    from mdot.predictor import Predictor


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

    def _apply(self, configuration: c.mdot_configuration, answer: c.mdot_prediction) -> None:
        """Corrects an answer in place, by its GPU; what parts of a step have in common is left out."""
        call(
            runtime().mdot_calibration_apply, self._handle, ctypes.byref(configuration), None, ctypes.byref(answer)
        )
