"""Encodings: the part of a prediction that depends on the job alone, computed once (mdot_predict.h, mdot_encoding)."""

from __future__ import annotations

import ctypes
import weakref
from typing import TYPE_CHECKING, Any, Iterable

from mdot.configuration import Configuration, as_array
from mdot.job import Job
from mdot.library import structs as c
from mdot.library.errors import Error
from mdot.library.libraries import call, runtime
from mdot.prediction import Prediction

if TYPE_CHECKING:
    from mdot.predictor import Predictor


class Encoding:
    """Cached features of a job for repeated queries. `Predictor.encode` makes it. It is immutable: any number of
    threads may evaluate it."""

    def __init__(self, predictor: Predictor, job: Job) -> None:
        self.predictor, self.job = predictor, job  # keeps both alive as long as the encoding
        self._handle = ctypes.c_void_p()
        call(runtime().mdot_encoding_create, predictor._context(), job._handle, ctypes.byref(self._handle))
        weakref.finalize(self, _destroy, self._handle, job)

    def __reduce__(self) -> tuple[Any, ...]:
        return Encoding, (self.predictor, self.job)

    def evaluate(self, configurations: Iterable[Configuration]) -> list[Prediction | Error]:
        """Predicts each configuration as `Predictor.predict_many` would, for a few microseconds each, in one library
        call. An invalid configuration leaves the others alone: an exception with the reason takes its position.
        Consecutive configurations with equal batches cost least."""
        listed = list(configurations)
        keep: list[Any] = []

        def query(array: Any, answers: Any, error: c.mdot_error) -> int:
            status: int = runtime().mdot_evaluate(
                self.predictor._context(), self._handle, array, len(listed), answers, ctypes.byref(error)
            )
            return status

        return self.predictor._answer([(self.job, one) for one in listed], as_array(listed, keep), query, self.predictor.calibration)


def _destroy(handle: ctypes.c_void_p, job: Job) -> None:
    """Takes the job as an argument, because the job that an encoding borrows must be alive when the encoding is destroyed."""
    runtime().mdot_encoding_destroy(handle)
