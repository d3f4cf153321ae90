"""Records a training's step time, beside the configuration, as a table row for `mdot calibrate`.

A step ends with an optimizer update. Its time is the time between the ends of two steps, on the device's clock.
These are excluded:

  the first steps      the warm-up: PyTorch compiles, chooses kernels and fills its memory cache
  interrupted steps    the program evaluates, saves or begins an epoch between two steps, and calls `interrupt`, as the
                       callbacks for frameworks do
  stalled steps        more than three times the median, for example the first in an epoch, which waits for data
  other steps          with another number of passes or samples, for example the last one in an epoch

The result is the median over windows of the mean step time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
import warnings
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Callable, Mapping

from mdot.configuration import Configuration, fill, read_options
from mdot.gpus import gpu as find_gpu
from mdot.job import Job
from mdot.library import structs as c
from mdot.library.errors import Error, InvalidArgumentError, NotFoundError, OutOfRangeError, RecordingWarning
from mdot.library.libraries import encode_path
from mdot.recording import observed
from mdot.recording.clocks import Clock, CudaClock, HostClock
from mdot.recording.row import Recorded, StepTimes, append, path_in_table
from mdot.version import VERSION

MARK_SHARE = 0.0005
"""Largest part of a step for a mark. If a mark takes more, several steps share one."""
LEAST_WINDOWS = 5
"""Windows after which a recording may be complete."""
LEAST_DATA_WAIT = 0.1
"""Part of the time that a training waits for data from which on the loaders bound its steps. The row then has their
rate (loader_rate), so that a calibration does not take the wait for the GPU's time."""
MEMORY_SECONDS = 1.0
"""Least time between two readings of the peak memory."""


class Recorder:
    """Records one training. Make it with `mdot.record`, or let a callback of a framework make it. It belongs to one thread.

    A recorder never ends a training: from the first step on, it reports faults as `RecordingWarning`.
    """

    result: Recorded | None = None
    """The measured step, once recording is complete. Also set if the row could not be written."""

    def __init__(
        self,
        job: Job | str | os.PathLike[str],
        table: str | os.PathLike[str] = "measured.csv",
        *,
        batch: Any = None,
        gpu: str | None = None,
        model: Any = None,
        optimizer: Any = None,
        dims: Mapping[str, int | str] | None = None,
        warmup_steps: int = 10,
        window_steps: int = 10,
        seconds: float = 30.0,
        clock: Clock | None = None,
        host: Callable[[], float] = time.perf_counter,
        **options: Any,
    ) -> None:
        """Records a training loop's steps, for `mdot calibrate`:

            with mdot.record(job, batch=loader, model=model, optimizer=optimizer) as recorder:
                for inputs, targets in loader:
                    …
                    recorder.step()

        `job` is a job or a file; a `Job` is saved beside the table. `table` is a CSV file, which is made if it
        is missing, and to which any number of trainings may append at once. `batch` is the number of samples per
        pass and GPU, or the DataLoader. `gpu` defaults to the training's GPU. Precision, layout, optimizer,
        compilation and sharding follow from PyTorch's objects `model` and `optimizer`. `optimizer` may also be a
        word, for example "adamw". `options` are those of mdot.Configuration, and take precedence; name invisible
        ones, for example tensor_parallel=4.

        The first `warmup_steps` are excluded. `window_steps` is the number of steps in a window. After `seconds` and
        at least five windows, the row is written, and recording costs nothing from then on. A shorter training
        writes the row at the end of the `with` block, if it has three windows. In a distributed training, only rank
        0 records.

        Raises InvalidArgumentError, TypeError and ValueError for invalid arguments, NotFoundError for a missing job
        or folder. Later faults are RecordingWarnings, because they must not end a training. `clock` and `host`
        replace the clocks of device and host.
        """
        self._arguments: dict[str, Any] = {
            "job": job, "table": os.path.abspath(table), "batch": batch, "gpu": gpu, "model": model, "optimizer": optimizer,
            "dims": dims, "warmup_steps": warmup_steps, "window_steps": window_steps, "seconds": seconds, "clock": clock,
            "host": host, **options,
        }  # fmt: skip
        encode_path(table)  # refuses a NUL before the training, because later faults are warnings
        self._table = Path(os.path.abspath(table))  # the program may change its folder
        if not self._table.parent.is_dir():
            raise NotFoundError(f"{self._table}: the folder {self._table.parent} of the table does not exist")
        loaded = job if isinstance(job, Job) else Job.read(job, dims=dims)
        self._job: Job | str = loaded if isinstance(job, Job) or dims else path_in_table(job, self._table)
        self._job_optimizer = loaded.optimizer
        self._batch = _batch_of(batch)
        self._given = _checked({**options, **({"optimizer": optimizer} if isinstance(optimizer, str) else {})})
        self._gpu = gpu
        self._model = model
        self._optimizer = None if isinstance(optimizer, str) else optimizer
        self._probe = observed.AutocastProbe(model) if model is not None else None
        self._seen: dict[str, Any] = {}
        self._times = StepTimes(warmup_steps, window_steps)
        self._warmup_steps, self._window_steps, self._seconds = warmup_steps, window_steps, seconds
        self._clock, self._host = clock, host
        self._device: Any = None
        self._begun = self._done = False
        self._steps = self._passes = self._since = self._interrupted = 0
        self._stride = 1
        self._usual_passes: int = self._given.get("accumulate", 0)
        self._passes_seen: Counter[int] = Counter()
        self._last: Any = None
        self._pending: deque[tuple[Any, Any, int]] = deque()
        self._mark_seconds = float("inf")
        self._warmup_ends: list[float] = []
        self._after_warmup = self._memory_read_at = 0.0
        self._memory: tuple[int, int] | None = None
        self._is_memory_final = False
        self._waited = self._spanned = 0.0
        self._ended: float | None = None
        self._is_begin_called = self._updated = False
        self._hook = self._watch(self._optimizer)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, also in another process, has the same arguments and result; it begins its own recording."""
        return _copied, (type(self), self._arguments, self.result)

    # ---- For training loops ------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Marks the begin of a pass, once the data have arrived. Optional: the row then notes the time share of waiting
        for data (data_wait), and has the loaders' rate if that share is above a tenth."""
        if self._done:
            return
        self._is_begin_called = True
        if self._ended is not None:
            self._waited += self._host() - self._ended

    def step(self, samples: int | None = None) -> None:
        """Ends a pass. Call it once for each batch, behind the optimizer's step if there is one.

        A step is complete with every `accumulate`-th pass, or, if the recorder knows the optimizer, with a pass that updated
        the parameters. A step with other `samples` than `batch` is excluded.
        """
        if self._done:
            return
        if self._hook is not None:
            is_complete, self._updated = self._updated, False
        else:
            is_complete = self._passes + 1 >= max(self._usual_passes, 1)
        self._add_pass(samples, is_complete)

    def _add_pass(self, samples: int | None, is_complete: bool) -> None:
        if self._done:
            return
        self._passes += 1
        self.end_pass()
        if samples is not None and samples != self._batch:
            self.interrupt("samples")
        if is_complete:
            self.end_step(self._passes)

    def end_pass(self) -> None:
        """Ends a pass that need not end a step; the program waits for data from then on. For framework callbacks with
        `begin` for each pass."""
        if self._is_begin_called and not self._done:
            now = self._host()
            if self._ended is not None:
                self._spanned += now - self._ended
            self._ended = now

    def end_step(self, passes: int = 1) -> None:
        """Ends an optimizer step with gradients from so many passes. For framework callbacks."""
        if self._done:
            return
        self._passes = 0
        if not self._begun:
            self._begin()
        if self._done:
            return
        self._steps += 1
        self.end_pass()
        if self._steps <= self._warmup_steps:
            self._warm_up(passes)
        elif passes != self._usual_passes:
            self._last = None
            self._interrupted += 1
        self._since += 1
        if self._last is None or self._since >= self._stride:
            self._mark()

    def interrupt(self, reason: str = "pause") -> None:
        """Excludes the time from the last step to the end of the next one. Call it if the program does other work between two
        steps, for example when it evaluates ("evaluation"), saves ("checkpoint") or begins an epoch ("epoch")."""
        if self._last is not None:
            self._interrupted += 1
        self._last = self._ended = None
        if reason == "evaluation" and self._memory is not None:
            self._is_memory_final = True  # an evaluation may take more memory than a step

    def finish(self) -> Recorded | None:
        """Ends the recording and writes the row, unless this has happened. Returns the measured step, or None, with a
        RecordingWarning, if there are too few steps. Waits for the GPU once."""
        if not self._done:
            self._done = True
            self._release()
            if self._begun:
                if self._pending:
                    assert self._clock is not None
                    self._clock.wait(self._pending[-1][1])
                self._drain()
                self._write(is_last=True)
            else:
                _warn("no step was recorded")
        return self.result

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish()

    @property
    def usual_passes(self) -> int:
        """Passes of a step (gradient accumulation), as given or as seen during the warm-up."""
        return max(self._usual_passes, 1)

    def see(self, **options: Any) -> None:
        """Adds options from a framework. The user's options take precedence."""
        self._seen.update({name: value for name, value in options.items() if value is not None})
        if "accumulate" in self._seen and not self._usual_passes:
            self._usual_passes = self._seen["accumulate"]

    def see_objects(self, *, model: Any = None, optimizer: Any = None, batch: Any = None) -> None:
        """Adds objects that a framework makes: the model, the optimizer, the batch or loader. Given ones take precedence."""
        if self._model is None and model is not None:
            self._model, self._probe = model, observed.AutocastProbe(model)
        if self._optimizer is None and optimizer is not None:
            self._optimizer = optimizer
        if self._batch is None:
            self._batch = _batch_of(batch)

    # ---- Marks -------------------------------------------------------------------------------------------------------

    def _watch(self, optimizer: Any) -> Any:
        """Notices updates by PyTorch's optimizer. Returns the hook's handle; None for other optimizers."""
        register = getattr(observed.unwrapped(optimizer), "register_step_post_hook", None)
        if register is None:
            return None

        def notice(*_: Any) -> None:
            self._updated = True

        return register(notice)

    def _release(self) -> None:
        """Removes the hook of the optimizer."""
        if self._hook is not None:
            self._hook.remove()

    def _begin(self) -> None:
        self._begun = True
        self._done = True  # unless the next lines succeed
        with going_on():
            if observed.rank() == 0:
                self._device = observed.device_of(self._model)
                if self._clock is None:
                    self._clock = CudaClock(self._device) if self._device is not None else HostClock(self._host)
                self._check_gpu()
                if self._batch is None:
                    _warn("no row will be written, because the batch is unknown; pass batch=")
                self._done = False
        if self._done:
            self._release()

    def _check_gpu(self) -> None:
        """Finds the GPU. Warns at the first step of a training whose row `mdot calibrate` could not read."""
        if self._gpu is None and self._device is not None:
            self._gpu = str(observed.torch_if_loaded().cuda.get_device_name(self._device))
        if self._gpu is None:
            _warn("no row will be written, because the training uses no GPU of PyTorch; if it uses another, pass gpu=")
            return
        try:
            find_gpu(self._gpu)
        except InvalidArgumentError as fault:
            self._gpu = None
            _warn(f"no row will be written: {fault}")

    def _warm_up(self, passes: int) -> None:
        """Learns, during the warm-up, how many passes a step has, how long it takes, and how long a mark takes."""
        self._passes_seen[passes] += 1
        self._warmup_ends.append(self._host())
        if self._steps < self._warmup_steps:
            return
        self._usual_passes = self._passes_seen.most_common(1)[0][0]
        gaps = sorted(end - begin for begin, end in zip(self._warmup_ends, self._warmup_ends[1:]))
        step_seconds = gaps[len(gaps) // 2] if gaps else 0.0
        if step_seconds > 0 and self._mark_seconds < float("inf"):
            self._stride = 1 + min(int(self._mark_seconds / (MARK_SHARE * step_seconds)), 999)
        self._after_warmup = self._memory_read_at = self._warmup_ends[-1]

    def _mark(self) -> None:
        assert self._clock is not None
        if self._steps <= self._warmup_steps:
            before = self._host()
            mark = self._clock.mark()
            self._mark_seconds = min(self._mark_seconds, self._host() - before)
        else:
            mark = self._clock.mark()
        if self._last is not None:
            self._pending.append((self._last, mark, self._since))
            if len(self._pending) >= self._window_steps:
                self._drain()
                self._look()
        self._last = mark
        self._since = 0

    def _drain(self) -> None:
        """Reads the times at marks behind the device's progress."""
        assert self._clock is not None
        while self._pending:
            begin, end, steps = self._pending[0]
            ms = self._clock.elapsed_ms(begin, end)
            if ms is None:
                break
            self._pending.popleft()
            self._times.add(ms / steps, steps)
            self._clock.release(begin)

    def _look(self) -> None:
        """Reads the memory from time to time, and writes the row as soon as the recording is complete, so that a
        training that is killed later has its row."""
        now = self._host()
        if now - self._memory_read_at >= MEMORY_SECONDS and not self._is_memory_final:
            self._memory_read_at = now
            self._memory = observed.peak_memory(self._device)
        is_long = now - self._after_warmup >= self._seconds
        if is_long and self._steps >= self._warmup_steps + LEAST_WINDOWS * self._window_steps:
            self._write(is_last=False)

    # ---- The row -----------------------------------------------------------------------------------------------------

    def _write(self, is_last: bool) -> None:
        try:
            recorded = self._times.summary()
        except OutOfRangeError as fault:
            if is_last:
                _warn(f"no row was written: {fault}")
            return
        self._done = True
        self._release()
        with going_on():
            self.result = self._make(recorded)
            if self._gpu is not None and self._batch is not None:
                append(self._table, self._job, self.result)

    def _make(self, recorded: c.mdot_recorded) -> Recorded:
        if self._memory is None:
            self._memory = observed.peak_memory(self._device)
        allocated, reserved = self._memory if self._memory is not None else (None, None)
        notes = {"mdot": VERSION, **observed.software()}
        notes.update(steps=str(recorded.step_count), windows=str(recorded.window_count), spread=f"{recorded.spread:.4f}")
        notes.update(stalled=str(recorded.stalled_count), interrupted=str(self._interrupted))
        if allocated is not None and reserved is not None:
            notes.update(allocated_bytes=str(allocated), reserved_bytes=str(reserved))
        if self._is_begin_called and self._spanned > 0:
            notes["data_wait"] = f"{min(self._waited / self._spanned, 1):.3f}"
        configuration = Configuration(gpu=self._gpu or "", batch=self._batch or 1, **self._options(notes))
        if self._waited > LEAST_DATA_WAIT * self._spanned:
            rate = 1000 * configuration.samples / recorded.step_ms
            configuration = dataclasses.replace(configuration, loader_rate=configuration.loader_rate or rate)
        return Recorded(configuration, recorded.step_ms, recorded.spread, int(recorded.window_count), allocated, reserved, notes)

    def _options(self, notes: dict[str, str]) -> dict[str, Any]:
        """The row's options: the given ones, then the visible ones, then the job's."""
        seen: dict[str, Any] = {**observed.world()}
        if self._model is not None:
            seen.update(observed.of_model(self._model))
            if self._probe is not None and self._probe.precision is not None and seen.get("precision") != "bf16":
                seen["precision"] = self._probe.precision
        if self._optimizer is not None:
            seen.update(observed.of_optimizer(self._optimizer))
        torch = observed.torch_if_loaded()
        if torch is not None:
            seen["torch"] = str(torch.__version__)
        if self._usual_passes > 1:
            seen["accumulate"] = self._usual_passes
        options = {**seen, **self._seen, **self._given}
        if "optimizer" not in options and self._optimizer is not None:
            notes["optimizer"] = type(observed.unwrapped(self._optimizer)).__name__
            _warn(f"mdot does not know the optimizer {notes['optimizer']}; pass optimizer= with the nearest one that it knows")
        options.setdefault("optimizer", self._job_optimizer or "sgd")
        return options


def _copied(kind: type[Recorder], arguments: dict[str, Any], result: Recorded | None) -> Recorder:
    made = kind(**arguments)
    if result is not None:
        made.result, made._done = result, True
        made._release()
    return made


def _batch_of(batch: Any) -> int | None:
    """The samples per pass: a number, or a DataLoader's."""
    if batch is None or isinstance(batch, int) and not isinstance(batch, bool) and batch > 0:
        return batch
    sampler = getattr(batch, "batch_sampler", None)
    samples = getattr(batch, "batch_size", None) or getattr(sampler, "batch_size", None)
    if isinstance(samples, int) and not isinstance(samples, bool) and samples > 0:
        return samples
    raise InvalidArgumentError(f"batch must be a whole number above 0, or a DataLoader with a batch_size, not {batch!r}")


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    """The options that are given. Refuses unknown names and words before the training begins."""
    given = {name: value for name, value in read_options(options).items() if value is not None}
    fill(c.mdot_configuration(), Configuration(gpu="", **given), [])
    return given


@contextlib.contextmanager
def going_on() -> Iterator[None]:
    """Turns an exception into a warning, because recording must not end a training. It reads objects from many
    frameworks and versions, so that any exception is possible."""
    try:
        yield
    except Error as fault:
        _warn(f"no row was written: {fault}")
    except Exception as fault:  # noqa: BLE001
        _warn(f"no row was written: {type(fault).__name__}: {fault}")


def _warn(message: str) -> None:
    warnings.warn(f"recording: {message}", RecordingWarning, stacklevel=2)


record = Recorder
"""`mdot.record` reads better in front of a training loop."""
