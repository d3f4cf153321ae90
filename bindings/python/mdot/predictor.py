"""Predictors: opened artefacts that predict step times."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import itertools
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Sequence, Union

from mdot.artefact import Entry, Image, compute_inputs, read_entries, read_images, run_entry, run_entry_many
from mdot.beside import GpuLoad, load_of, pair
from mdot.calibration import Calibration, Measurement
from mdot.configuration import Configuration, Options, as_array, read_options
from mdot.encoding import Encoding
from mdot.explanation import Explanation, explain_step
from mdot.example_inputs import is_module, named
from mdot.gpus import GPU, gpus
from mdot.job import Job, _warn
from mdot.library import structs as c
from mdot.library.errors import (
    BY_NAME,
    Error,
    IncompatibleError,
    InvalidArgumentError,
    OutsideTrainingWarning,
    PredictionWarning,
    SoftwareNotMeasuredWarning,
    of_status,
)
from mdot.library.libraries import call, check, encode_path, encode_text, in_python, read_text, runtime, shipped_predictor
from mdot.prediction import Prediction, Table, implausible_text, of_struct

if TYPE_CHECKING:
    from typing_extensions import Unpack

JobLike = Union[Job, str, "os.PathLike[str]"]
"""A job, or a file that `Job.read` reads."""

MeasuredLike = Union[Measurement, Mapping[str, Any]]
"""A measured step: a Measurement, or options with `ms`, `gib` or both."""

MAX_BATCH = 1 << 24


class _Context:
    """The state of one thread. It is destroyed with the thread's last reference."""

    def __init__(self, predictor: ctypes.c_void_p, threads: int) -> None:
        self.handle = ctypes.c_void_p()
        options = c.new(c.mdot_context_options, threads=threads)
        call(runtime().mdot_context_create_with, predictor, ctypes.byref(options), ctypes.byref(self.handle))
        weakref.finalize(self, runtime().mdot_context_destroy, self.handle)


class Predictor:
    """An opened artefact. Any number of threads may call it, because each thread gets its own context at its first
    call."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        device: str | None = None,
        cpu_isa: str | None = None,
        kernel_precision: str | None = None,
        device_timeout_ms: int = 0,
        threads: int = 1,
        calibration: Calibration | None = None,
    ) -> None:
        """Opens the artefact at `path`. The default is the path in MDOT_PREDICTOR, or else the package's artefact.

        An artefact is native code, therefore open only files that you trust. `device`, `cpu_isa`, `kernel_precision`
        and `device_timeout_ms` are the fields of mdot_open_options. `threads` is the number of threads for one call
        on the CPU (mdot_context_options). The calibration corrects all predictions and must belong to this
        predictor.
        """
        self.path = os.fspath(path) if path is not None else str(shipped_predictor())
        whole = None if path is None else os.path.abspath(path)
        self._made = (whole, device, cpu_isa, kernel_precision, device_timeout_ms, threads)
        texts = {"device": device, "cpu_isa": cpu_isa, "kernel_precision": kernel_precision}
        options = c.new(
            c.mdot_open_options,
            device_timeout_ms=device_timeout_ms,
            **{name: encode_text(text) for name, text in texts.items() if text is not None},
        )
        self._handle = ctypes.c_void_p()
        call(
            runtime().mdot_predictor_open, encode_path(self.path), ctypes.byref(options), ctypes.byref(self._handle)
        )
        self._finalizer = weakref.finalize(self, runtime().mdot_predictor_close, self._handle)
        self._local = threading.local()
        self._threads = threads
        self.calibration = calibration
        if calibration is not None and calibration.predictor != self.info["name"]:
            raise IncompatibleError(
                f"the calibration was made with predictor \"{calibration.predictor}\", not \"{self.info['name']}\""
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, also in another process, opens the file again: the same path, or that process's default predictor."""
        return _reopened, (*self._made, self.calibration)

    def _context(self) -> ctypes.c_void_p:
        if not hasattr(self._local, "context"):
            self._local.context = _Context(self._handle, self._threads)
        handle: ctypes.c_void_p = self._local.context.handle
        return handle

    @property
    def info(self) -> Mapping[str, str | int]:
        """name, compiler, kernel_precision, cpu_isa, device and more (mdot.h, mdot_predictor_info)."""
        info = c.new(c.mdot_predictor_info)
        check(runtime().mdot_predictor_get_info(self._handle, ctypes.byref(info)))
        return {
            name: read_text(value) if isinstance(value := getattr(info, name), bytes) else value or ""
            for name, *_ in c.mdot_predictor_info._fields_
            if name not in ("struct_size", "reserved")
        }

    @functools.cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Entry points: names, tensors, and buckets with kernels."""
        return read_entries(self._handle, int(self.info["entry_count"] or 0))

    @functools.cached_property
    def images(self) -> tuple[Image, ...]:
        """Code for each kind of processor, with each bucket's resources there."""
        return read_images(self._handle, int(self.info["image_count"] or 0), self.entries)

    @property
    def device_fault(self) -> str | None:
        """The fault of this thread's GPU. The CPU has served the thread since. None: the GPU works."""
        message = ctypes.c_char_p()
        status = runtime().mdot_context_get_device_status(self._context(), ctypes.byref(message))
        return None if status == 0 else read_text(message.value)

    def run(self, inputs: Mapping[str, Any], entry: str = "predict") -> dict[str, memoryview]:
        """Runs any entry point on named tensors: `run({"tokens": numpy_array, …})["step_ms"]`.

        Inputs are buffers in the entry point's types, for example numpy arrays. Outputs are memoryviews for
        numpy.asarray. bf16 is passed as 16-bit integers.
        """
        return run_entry(self, inputs, entry)

    def run_many(self, items: Sequence[Mapping[str, Any]], entry: str = "predict") -> list[dict[str, memoryview]]:
        """Runs several items, with any lengths and without padding: row-wise kernels compute the rows of many items at
        once. Worthwhile for items with a few rows."""
        return run_entry_many(self, items, entry)

    def inputs_of(self, job: JobLike, configuration: Configuration, entry: str = "predict") -> dict[str, memoryview]:
        """The inputs of an entry point for a job, as predictions pass them: `run(inputs_of(job, …))` predicts the job."""
        return compute_inputs(self, entry, as_job(job), configuration)

    def __repr__(self) -> str:
        return f"<mdot.Predictor {self.info['name']}, by {self.info['compiler']}, on {self.info['device']}>"

    # ---- Predicting --------------------------------------------------------------------------------------------------

    def predict_many(
        self, pairs: Iterable[tuple[Job, Configuration]], *, measured: Iterable[Measurement] = ()
    ) -> list[Prediction | Error]:
        """Predicts pairs of job and configuration in one library call, for example in a scheduler's loop.

        An invalid pair leaves the others alone: an exception with the reason takes its position. Instead of issuing
        warnings, each prediction lists `warnings`. Consecutive pairs with one job cost less than the same pairs
        in mixed order. `measured` are steps that correct the predictions; they exclude the predictor's own
        calibration.
        """
        requests = list(pairs)
        calibration = self._calibration_of(measured)
        keep: list[Any] = []
        jobs = (ctypes.c_void_p * max(len(requests), 1))(*[job._handle for job, _ in requests])

        def query(configurations: Any, answers: Any, error: c.mdot_error) -> int:
            status: int = runtime().mdot_predict_many(
                self._context(), jobs, configurations, len(requests), answers, ctypes.byref(error)
            )
            return status

        configurations = as_array((configuration for _, configuration in requests), keep)
        return self._answer(requests, configurations, query, calibration)

    def _calibration_of(self, measured: Iterable[Measurement]) -> Calibration | None:
        rows = list(measured)
        if not rows:
            return self.calibration
        if self.calibration is not None:
            raise InvalidArgumentError("the predictor has a calibration, which excludes measured steps")
        return Calibration.measured(self, rows)

    def _answer(
        self,
        requests: Sequence[tuple[Job, Configuration]],
        configurations: Any,
        query: Callable[[Any, Any, c.mdot_error], int],
        calibration: Calibration | None,
    ) -> list[Prediction | Error]:
        """The calibrated predictions from one library call for many pairs. An invalid pair yields an exception."""
        if not requests:
            return []
        answers = (c.mdot_prediction * len(requests))()
        answers[0].struct_size = ctypes.sizeof(c.mdot_prediction)
        error = c.mdot_error()
        status = query(configurations, answers, error)
        if status != 0 and all(answer.status == 0 for answer in answers):
            check(status, error)  # the whole call failed
        if calibration is not None:
            for (job, _), configuration, answer in zip(requests, configurations, answers):
                if answer.status == 0:
                    calibration._apply(job, configuration, answer)
        return [
            of_struct(pair[1], answer) if answer.status == 0 else self._error_of(pair[0], configurations[i], answer.status)
            for i, (pair, answer) in enumerate(zip(requests, answers))
        ]

    def _error_of(self, job: Job, configuration: c.mdot_configuration, status: int) -> Error:
        """One pair's exception. It takes a call of its own, because the call for many pairs reports only the first
        message."""
        answer, error = c.new(c.mdot_prediction), c.mdot_error()
        array = (c.mdot_configuration * 1)(configuration)
        runtime().mdot_sweep(self._context(), job._handle, array, 1, ctypes.byref(answer), ctypes.byref(error))
        return of_status(status, in_python(read_text(error.message)))

    def predict(
        self,
        job: JobLike,
        gpu: str | GPU,
        batch: int | None = None,
        *,
        measured: Iterable[MeasuredLike] = (),
        beside: JobLike | None = None,
        beside_batch: int | None = None,
        **options: Unpack[Options],
    ) -> Prediction:
        """Predicts one step: `predict(job, "A100", 64, precision="amp")`.

        The options are those of `Configuration`. The default batch and optimizer are those in the job's file.
        Reasons for less trust are issued as warnings, one PredictionWarning for each kind.

        `measured` are steps that correct the prediction: a Measurement, or a dictionary with options for this job,
        and `ms`, `gib` or both: `measured=[{"gpu": "A100", "batch": 32, "precision": "amp", "ms": 123}]`. Other
        options are the prediction's.

        `beside` is a second job on the same GPU, with the batch `beside_batch` and the same options. The prediction's
        `beside` then has the slowdown of both.
        """
        read = as_job(job)
        asked = {"gpu": gpu, "batch": batch, **options}
        rows = [as_measurement(read, row, asked) for row in measured]
        jobs = [(read, configure(read, gpu, batch, options))]
        if beside is not None:
            partner = as_job(beside)
            jobs.append((partner, configure(partner, gpu, beside_batch, options)))
        answers = []
        for found in self.predict_many(jobs, measured=rows):
            if isinstance(found, Error):
                raise found
            answers.append(found)
        _warn_of(answers[:1], read)
        if beside is None:
            return answers[0]
        return dataclasses.replace(answers[0], beside=pair(self, [job for job, _ in jobs], answers))

    def load(self, job: JobLike, gpu: str | GPU, batch: int | None = None, **options: Unpack[Options]) -> GpuLoad:
        """The job's load on a GPU, of which `mdot.beside` predicts the slowdown of two jobs."""
        read = as_job(job)
        return self._load(read, configure(read, gpu, batch, options))

    def _load(self, job: Job, configuration: Configuration) -> GpuLoad:
        keep: list[Any] = []
        return load_of(self, job, as_array([configuration], keep)[0])

    def sweep(
        self,
        job: JobLike,
        gpu: str | GPU | Sequence[str | GPU],
        batch: int | Sequence[int] | None = None,
        **options: Any,
    ) -> Table:
        """Predicts every combination of options given as lists, for example `sweep(job, ["T4", "A100"], [32, 64],
        precision=["fp32", "amp"])`. The GPU "all" stands for all of `mdot.gpus()`.

        The first invalid combination raises an exception.
        """
        read = as_job(job)
        lists = {"gpu": gpu, "batch": batch, **options}
        lists = {name: _values(value) for name, value in lists.items()}
        lists["gpu"] = [one for name in lists["gpu"] for one in ([g.name for g in gpus()] if name == "all" else [name])]
        empty = [name for name, values in lists.items() if not values]
        if empty:
            raise InvalidArgumentError(f"{empty[0]} is an empty list")
        configurations = [
            configure(read, one.pop("gpu"), one.pop("batch"), one)
            for one in (dict(zip(lists, values)) for values in itertools.product(*lists.values()))
        ]
        rows: list[Prediction] = []
        for answer in self.predict_many([(read, configuration) for configuration in configurations]):
            if isinstance(answer, Error):
                raise answer
            rows.append(answer)
        _warn_of(rows, read)
        return Table(rows)

    def explain(
        self, job: JobLike, gpu: str | GPU, batch: int | None = None, **options: Unpack[Options]
    ) -> Explanation:
        """Divides the time and the memory of one step by phase, and by operator, block and module."""
        read = as_job(job)
        return explain_step(self, read, configure(read, gpu, batch, options))

    def encode(self, job: JobLike) -> Encoding:
        """Computes a job's cached features, so that repeated predictions cost a few microseconds: `Encoding.evaluate`."""
        return Encoding(self, as_job(job))

    def largest_batch(self, job: JobLike, gpu: str | GPU, **options: Unpack[Options]) -> int:
        """The largest batch whose step fits the GPU's memory, or 0 if every batch is too large. Memory grows with the batch."""
        read = as_job(job)
        unit = options.get("micro_batches") or options.get("pipeline_parallel") or 1

        def fits(tried: int) -> bool:
            answer = self.predict_many([(read, configure(read, gpu, tried * unit, options))])[0]
            if isinstance(answer, Error):
                raise answer
            return answer.fits

        least, most = 0, MAX_BATCH // unit + 1
        tried = 1
        while most - least > 1:
            if fits(tried):
                least = tried
            else:
                most = tried
            tried = min(2 * least, least + (most - least) // 2) if least > 0 else least + (most - least) // 2
        return least * unit


def _reopened(path: str | None, device: str | None, isa: str | None, precision: str | None, timeout_ms: int, threads: int,
              calibration: Calibration | None) -> Predictor:  # fmt: skip
    return Predictor(path, device=device, cpu_isa=isa, kernel_precision=precision, device_timeout_ms=timeout_ms,
                     threads=threads, calibration=calibration)  # fmt: skip


# ---- Jobs and configurations -----------------------------------------------------------------------------------------


def as_job(job: JobLike) -> Job:
    if isinstance(job, Job):
        return job
    if isinstance(job, (str, os.PathLike)):
        return Job.read(job)
    if is_module(job):
        remedy = "pass mdot.Job.from_torch(module, example_inputs)"
        raise InvalidArgumentError(f"the job is {named(job)}, a PyTorch module: {remedy}")
    raise InvalidArgumentError(f"the job must be an mdot.Job or a file (.job or .onnx), not {named(job)}")


def _values(value: Any) -> list[Any]:
    """The values of an option in a sweep: of a list, a range, an array or another iterable, or a single value."""
    if isinstance(value, (str, bytes, GPU, type)) or not hasattr(value, "__iter__"):
        return [value]
    return list(value.tolist() if hasattr(value, "tolist") else value)


def as_measurement(job: Job, row: MeasuredLike, asked: Mapping[str, Any]) -> Measurement:
    """A measured step from options; `asked` has the others."""
    if isinstance(row, Measurement):
        return row
    fields = {**asked, **row}
    ms, gib, gpu, batch = (fields.pop(name, None) for name in ("ms", "gib", "gpu", "batch"))
    if ms is None and gib is None:
        raise InvalidArgumentError("a measured step requires ms, gib or both")
    for name, value in (("ms", ms), ("gib", gib)):
        if value is not None and not 0 < value < float("inf"):
            raise InvalidArgumentError(f"{name} of a measured step must be a number above 0, not {value!r}")
    if gpu is None:
        raise InvalidArgumentError("a measured step requires a gpu")
    return Measurement(job, configure(job, gpu, batch, fields), ms or 0.0, gib or 0.0)


def configure(job: Job, gpu: str | GPU, batch: int | None, options: Mapping[str, Any]) -> Configuration:
    """Makes a configuration. The batch and the optimizer default to those of the job."""
    fields = {name: value for name, value in read_options(options).items() if value is not None}
    fields.setdefault("optimizer", job.optimizer or "sgd")
    return Configuration(gpu=gpu, batch=batch if batch is not None else job.batch, **fields)


def _specific_warnings(row: Prediction) -> list[str]:
    """A prediction's warnings. The general warning outside-training is dropped if another warning gives the reason. The
    warning about software versions is excluded: a predictor without versions issues it, too."""
    reasons = {kind.name for kind in OutsideTrainingWarning.__subclasses__()} - {SoftwareNotMeasuredWarning.name}
    return [name for name in row.warnings if name != OutsideTrainingWarning.name or not reasons & set(row.warnings)]


def _warn_of(rows: Sequence[Prediction], job: Job) -> None:
    """Issues each kind of warning once."""
    for ignored in dict.fromkeys(row.configuration.without_effect for row in rows):
        if ignored is not None and all(row.configuration.gpu_total == 1 for row in rows):
            _warn(ignored, PredictionWarning)
    for name in dict.fromkeys(name for row in rows for name in _specific_warnings(row)):
        bit = next(bit for bit in range(32) if read_text(runtime().mdot_warning_name(1 << bit)) == name)
        text = f"{name}: {read_text(runtime().mdot_warning_text(1 << bit))}"
        if name == "implausible":
            bounds = dict.fromkeys(row.implausible for row in rows if row.implausible is not None)
            text = f"{name}: {'; '.join(implausible_text(bound) for bound in bounds)}"
        if name == "unknown-operators":
            kinds = sorted({op.type for op in job if not op.known})
            share = max(row.unknown_share for row in rows)
            text += f": {', '.join(kinds[:5])}{' and others' if len(kinds) > 5 else ''}; {share:.0%} of the work"
        touched = sum(name in _specific_warnings(row) for row in rows)
        if len(rows) > 1:
            text += f" ({touched} of {len(rows)} predictions)"
        _warn(text, BY_NAME.get(name, PredictionWarning))


# ---- The shipped predictor -------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def _opened(path: str) -> Predictor:
    return Predictor(path)


def _shipped() -> Predictor:
    return _opened(str(shipped_predictor()))


def predict(
    job: JobLike,
    gpu: str | GPU,
    batch: int | None = None,
    *,
    measured: Iterable[MeasuredLike] = (),
    beside: JobLike | None = None,
    beside_batch: int | None = None,
    **options: Unpack[Options],
) -> Prediction:
    """Calls `Predictor.predict` with the package's predictor, which is opened once."""
    return _shipped().predict(
        job, gpu, batch, measured=measured, beside=beside, beside_batch=beside_batch, **options
    )


def sweep(
    job: JobLike,
    gpu: str | GPU | Sequence[str | GPU],
    batch: int | Sequence[int] | None = None,
    **options: Any,
) -> Table:
    """Calls `Predictor.sweep` with the package's predictor, which is opened once."""
    return _shipped().sweep(job, gpu, batch, **options)


def explain(job: JobLike, gpu: str | GPU, batch: int | None = None, **options: Unpack[Options]) -> Explanation:
    """Calls `Predictor.explain` with the package's predictor, which is opened once."""
    return _shipped().explain(job, gpu, batch, **options)


def largest_batch(job: JobLike, gpu: str | GPU, **options: Unpack[Options]) -> int:
    """Calls `Predictor.largest_batch` with the package's predictor, which is opened once."""
    return _shipped().largest_batch(job, gpu, **options)
