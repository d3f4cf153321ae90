"""A hook for training loops with functions for the begin and the end of a step, for example torchtitan's Trainer:

    hook = mdot.StepHook(mdot.record(job, batch=8, model=model, tensor_parallel=4))
    trainer.train_step = hook.wrap(trainer.train_step)
    trainer.train()
    hook.close()
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Iterator, TypeVar

from mdot.recording.recorder import Recorder
from mdot.recording.row import Recorded

Result = TypeVar("Result")


class StepHook:
    """Begin and end of steps for a Recorder. A step updates the parameters; it includes all passes with gradients for
    this update."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._passes = 0

    def begin_step(self) -> None:
        """Marks the begin of a step. The time since the last step's end counts as waiting for data (data_wait)."""
        self.recorder.begin()

    def end_pass(self) -> None:
        """Marks the end of a forward and backward pass. Optional: without it, a step has as many passes as `accumulate`."""
        self._passes += 1

    def end_step(self) -> None:
        """Marks the end of a step, behind the parameter update."""
        passes, self._passes = self._passes, 0
        self.recorder.end_step(passes or self.recorder.usual_passes)

    def interrupt(self, reason: str = "pause") -> None:
        """Excludes the time until the end of the next step. Reasons: "evaluation", "checkpoint", "epoch", "pause"."""
        self.recorder.interrupt(reason)

    @contextlib.contextmanager
    def paused(self, reason: str = "pause") -> Iterator[None]:
        """Excludes a block of other work, for example an evaluation."""
        self.recorder.interrupt(reason)
        try:
            yield
        finally:
            self.recorder.interrupt(reason)

    def wrap(self, train_step: Callable[..., Result]) -> Callable[..., Result]:
        """A function around `train_step` with `begin_step` and `end_step`. A step with an exception is left out."""

        @functools.wraps(train_step)
        def step(*args: Any, **kwargs: Any) -> Result:
            self.begin_step()
            result = train_step(*args, **kwargs)
            self.end_step()
            return result

        return step

    def close(self) -> Recorded | None:
        """Ends the recording and writes the row."""
        return self.recorder.finish()
