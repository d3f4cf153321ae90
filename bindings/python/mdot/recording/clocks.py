"""Clocks that mark the end of a step. A mark on a GPU is a CUDA event, timestamped when the GPU reaches it: the host
continues at once. Other clocks mark with the host's time."""

from __future__ import annotations

import time
from typing import Any, Callable, Protocol


class Clock(Protocol):
    """Marks moments. Tests pass a clock of their own."""

    def mark(self) -> Any:
        """Marks this moment."""

    def elapsed_ms(self, begin: Any, end: Any) -> float | None:
        """Milliseconds between two marks; None before the device reaches `end`."""

    def release(self, mark: Any) -> None:
        """Returns a mark for reuse."""

    def wait(self, mark: Any) -> None:
        """Waits until the device reaches the mark."""


class HostClock:
    """The clock of the host: for a CPU, and for frameworks other than PyTorch, whose steps end with a synchronisation."""

    def __init__(self, seconds: Callable[[], float] = time.perf_counter) -> None:
        self.mark = seconds

    def elapsed_ms(self, begin: float, end: float) -> float | None:
        return 1e3 * (end - begin)

    def release(self, mark: float) -> None:
        pass

    def wait(self, mark: float) -> None:
        pass


class CudaClock:
    """A GPU's clock: events on a device's current stream. Events are used again, so that recording allocates few."""

    def __init__(self, device: Any) -> None:
        import torch

        self._event: Any = torch.cuda.Event
        self._stream = torch.cuda.current_stream(device)
        self._free: list[Any] = []

    def mark(self) -> Any:
        event = self._free.pop() if self._free else self._event(enable_timing=True)
        event.record(self._stream)
        return event

    def elapsed_ms(self, begin: Any, end: Any) -> float | None:
        return float(begin.elapsed_time(end)) if end.query() else None

    def release(self, mark: Any) -> None:
        self._free.append(mark)

    def wait(self, mark: Any) -> None:
        mark.synchronize()
