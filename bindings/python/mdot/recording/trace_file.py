"""A measured step from a torch.profiler trace, in Chrome's JSON format (export_chrome_trace,
tensorboard_trace_handler):

    with torch.profiler.profile(schedule=torch.profiler.schedule(wait=5, warmup=5, active=10), …) as profiler:
        for batch in loader:
            …
            profiler.step()

The profiler marks each step as ProfilerStep#N. The step time is the median time between begins of consecutive steps,
and at least the GPU's busy time. Profiling slows the host, so that host-bound steps are longer than without a
profiler; `mdot.record` measures them better.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import re
import statistics
import zlib
from pathlib import Path
from typing import Any, Iterable, Iterator

from mdot.library.errors import MalformedError, NotFoundError

_STEP = re.compile(r"ProfilerStep#(\d+)")
GPU_WORK = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}
"""Event categories on a GPU, in lower case. The last two are from PyTorch before 1.13."""
_CUDA_DEVICE = 1
"""PyTorch's number for the device type CUDA, also for AMD's GPUs."""


@dataclasses.dataclass(frozen=True)
class TracedSteps:
    """The steps of a trace. Times are in milliseconds, sizes in bytes."""

    step_ms: float
    """The time of a step."""
    step_count: int
    """Number of marked steps."""
    gpu: str | None
    """GPU name from the driver. None for a training on the CPU."""
    busy_ms: float
    """Time per step with at least one kernel or copy on the GPU."""
    kernel_count: int
    """Kernels and copies in the marked steps."""
    world_size: int
    """Processes of the training."""
    rank: int
    """The traced process's number."""
    allocated_bytes: int | None
    """Peak tensor memory. None unless the trace was made with profile_memory=True."""
    reserved_bytes: int | None
    """Peak GPU memory in the allocator. None likewise."""


def read_trace(path: str | os.PathLike[str]) -> TracedSteps:
    """Reads a trace, which may be compressed (.json.gz). Raises NotFoundError if the file or its steps are missing, and
    MalformedError for other kinds of files."""
    trace = load(Path(path))
    events = trace.get("traceEvents") if isinstance(trace, dict) else trace
    if not isinstance(events, list):
        raise MalformedError(f"{path}: the file is no trace of torch.profiler: it has no list traceEvents")
    whole = [event for event in events if isinstance(event, dict)]
    steps = _steps_of(whole)
    if not steps:
        raise NotFoundError(f"{path}: the trace marks no step; call profiler.step() at the end of each step")
    about = trace if isinstance(trace, dict) else {}
    work = sorted(_work_of(whole, min(begin for begin, _ in steps.values())))
    busy_ms = _union_us((begin, end) for begin, end, _ in work) / 1e3 / len(steps)
    distributed = about.get("distributedInfo")
    distributed = distributed if isinstance(distributed, dict) else {}
    allocated, reserved = _peaks_of(whole)
    return TracedSteps(
        step_ms=max(_step_us(steps) / 1e3, busy_ms),
        step_count=len(steps),
        gpu=_gpu_of(about, work[0][2]) if work else None,
        busy_ms=busy_ms,
        kernel_count=len(work),
        world_size=int(distributed.get("world_size") or 1),
        rank=int(distributed.get("rank") or 0),
        allocated_bytes=allocated,
        reserved_bytes=reserved,
    )


def is_trace(path: str | os.PathLike[str]) -> bool:
    """Whether the file seems to be a trace, judged by its first bytes."""
    try:
        with open(path, "rb") as plain:
            packed = plain.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if packed else open(path, "rb") as file:
            head = file.read(1 << 16)
    except OSError:
        return False
    return head.lstrip()[:1] == b"{" and (b'"traceEvents"' in head or b'"schemaVersion"' in head or b"chakra" in head)


def gpu_of_trace(path: str | os.PathLike[str]) -> str | None:
    """The GPU's name in a trace; None if it has none."""
    trace = load(Path(path))
    return _gpu_of(trace, 0) if isinstance(trace, dict) else None


def load(path: Path) -> Any:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFoundError(f"{path}: there is no such file") from None
    try:
        text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        return json.loads(text.decode("utf-8", "replace"), strict=False)
    except (EOFError, OSError, zlib.error, ValueError, RecursionError) as fault:
        raise MalformedError(f"{path}: the file is no trace of torch.profiler: {fault}") from None


def span_of(event: dict[str, Any]) -> tuple[float, float] | None:
    """Begin and end of a complete event, in microseconds."""
    begin, duration = event.get("ts"), event.get("dur", 0)
    if event.get("ph") != "X" or not isinstance(begin, (int, float)) or not isinstance(duration, (int, float)):
        return None
    return float(begin), float(begin) + max(float(duration), 0.0)


def _arguments(event: dict[str, Any]) -> dict[str, Any]:
    arguments = event.get("args")
    return arguments if isinstance(arguments, dict) else {}


def _steps_of(events: Iterable[dict[str, Any]]) -> dict[int, tuple[float, float]]:
    """The host's span of each step, by the step's number."""
    steps: dict[int, tuple[float, float]] = {}
    for event in events:
        found = _STEP.fullmatch(str(event.get("name", "")))
        span = span_of(event) if found is not None and "gpu" not in str(event.get("cat", "")) else None
        if found is not None and span is not None:
            steps.setdefault(int(found[1]), span)
    return steps


def _step_us(steps: dict[int, tuple[float, float]]) -> float:
    """Median time between begins of consecutive steps; for a single step, the duration."""
    apart = [steps[number + 1][0] - begin for number, (begin, _) in steps.items() if number + 1 in steps]
    return statistics.median(apart or [end - begin for begin, end in steps.values()])


def _work_of(events: Iterable[dict[str, Any]], first_us: float) -> Iterator[tuple[float, float, int]]:
    """Begin, end and device of the work on GPUs from a moment on."""
    for event in events:
        span = span_of(event) if str(event.get("cat", "")).lower() in GPU_WORK else None
        if span is not None and span[0] >= first_us:
            device = _arguments(event).get("device", event.get("pid", 0))
            yield (*span, device if isinstance(device, int) else 0)


def _union_us(spans: Iterable[tuple[float, float]]) -> float:
    """Time within at least one span; the spans are in order of begin."""
    total, covered_until = 0.0, float("-inf")
    for begin, end in spans:
        total += max(end - max(begin, covered_until), 0.0)
        covered_until = max(covered_until, end)
    return total


def _gpu_of(about: dict[str, Any], device: int) -> str | None:
    """A device's name, in the trace's device table."""
    table = about.get("deviceProperties")
    devices = [entry for entry in table if isinstance(entry, dict)] if isinstance(table, list) else []
    named = [entry for entry in devices if entry.get("id") == device] or devices
    return str(named[0]["name"]) if named and named[0].get("name") else None


def _peaks_of(events: Iterable[dict[str, Any]]) -> tuple[int | None, int | None]:
    """Peaks of "Total Allocated" and "Total Reserved" on GPUs."""
    peaks: dict[str, int] = {}
    for event in events:
        arguments = _arguments(event) if event.get("name") == "[memory]" else {}
        if arguments.get("Device Type") != _CUDA_DEVICE:
            continue
        for key in ("Total Allocated", "Total Reserved"):
            if isinstance(arguments.get(key), (int, float)):
                peaks[key] = max(peaks.get(key, 0), int(arguments[key]))
    return peaks.get("Total Allocated"), peaks.get("Total Reserved")
