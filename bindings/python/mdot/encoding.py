"""Encodings: what a predictor knows of a job before it hears of a configuration (mdot_predict.h, mdot_encoding)."""

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
    """A job that is asked about again and again, read once by a predictor: `Predictor.encode` makes it. Immutable; any
    number of threads may price it."""

    def __init__(self, predictor: Predictor, job: Job) -> None:
        self.predictor, self.job = predictor, job  # both are kept as long
        self._handle = ctypes.c_void_p()
        call(runtime().mdot_encoding_create, predictor._context(), job._handle, ctypes.byref(self._handle))
        weakref.finalize(self, _destroy, self._handle, job)

    def price(self, configurations: Iterable[Configuration]) -> list[Prediction | Error]:
        """Answers each configuration as `Predictor.predict_many` would, for a few microseconds each, in one call of the
        library. One that is wrong leaves the others answered: its place holds the exception that says why.
        Configurations of one batch that follow each other cost least."""
        given = list(configurations)
        keep: list[Any] = []

        def ask(array: Any, answers: Any, error: c.mdot_error) -> int:
            status: int = runtime().mdot_evaluate(
                self.predictor._context(), self._handle, array, len(given), answers, ctypes.byref(error)
            )
            return status

        return self.predictor._answer([(self.job, one) for one in given], as_array(given, keep), ask)


def _destroy(handle: ctypes.c_void_p, job: Job) -> None:
    """With the job still there, which an encoding borrows."""
    runtime().mdot_encoding_destroy(handle)
