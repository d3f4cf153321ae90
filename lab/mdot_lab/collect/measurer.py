"""Measures a model under a configuration and returns the fields of a record. Every kind of failure becomes a status."""

from __future__ import annotations

import contextlib
import gc
import time
from typing import Any

import torch

from mdot_lab.collect import SCHEMA
from mdot_lab.collect.architecture import Architecture
from mdot_lab.collect.gpu_monitor import GpuMonitor
from mdot_lab.collect.measured_configuration import Configuration
from mdot_lab.collect.records import Record
from mdot_lab.collect.training_step import InferencePass, TrainingStep
from mdot_lab.collect.timing import INFERENCE_SECONDS, PHASES, Clock, OverCap, sample, spread


def is_out_of_memory(fault: BaseException) -> bool:
    """True for PyTorch's own exception, and for library errors that report a failed allocation in the text alone."""
    if isinstance(fault, (torch.OutOfMemoryError, MemoryError)):
        return True
    text = str(fault).lower()
    return isinstance(fault, RuntimeError) and any(
        words in text for words in ("out of memory", "alloc_failed", "not enough memory", "can't allocate memory"))


def free_memory(device: str) -> None:
    """Returns the allocator's blocks. A broken device is detected and reported elsewhere, where its state is queried."""
    gc.collect()
    if torch.device(device).type == "cuda":
        with contextlib.suppress(RuntimeError):
            torch.cuda.empty_cache()


def _bytes_of(tensors) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


class Measurer:
    """Measures configurations on one device. The caller keeps ownership of `model`."""

    def __init__(self, device: str, clock: Clock, monitor: GpuMonitor, cap_seconds: float):
        self.device, self.clock, self.monitor, self.cap_seconds = device, clock, monitor, cap_seconds

    def measure(self, model: torch.nn.Module, row: Architecture, configuration: Configuration) -> Record:
        """The fields for one configuration, with a status. Failures that the configuration causes never raise."""
        try:
            return self._measure(model, row, configuration)
        except OverCap as over:
            return {"status": "over_cap", "estimate_ms": round(over.estimate_ms, 3), "memory": self._memory(model)}
        except Exception as fault:
            status = "oom" if is_out_of_memory(fault) else "error"
            # Leaving this block drops the traceback, and therefore the frames that hold the failed step's tensors.
            return {"status": status, "error": f"{type(fault).__name__}: {fault}"[:500]}
        finally:
            model.zero_grad(set_to_none=True)
            free_memory(self.device)

    def _measure(self, model, row, configuration) -> Record:
        if self.monitor.is_cuda:
            torch.cuda.reset_peak_memory_stats(self.device)
        step = TrainingStep(model, row, configuration, self.device)
        states = [self.monitor.state()]
        samples = sample(step.run, self.clock, self.cap_seconds, lambda: states.append(self.monitor.state()),
                         self.monitor.joules)
        parameters = list(model.parameters())
        record = {
            "status": "ok",
            "inputs": [{"shape": list(x.shape), "dtype": str(x.dtype).removeprefix("torch.")} for x in step.inputs],
            "parameters": sum(p.numel() for p in parameters), "parameter_tensors": len(parameters),
            "warmup_steps": samples.warmup_steps, "steps": len(samples.phases_ms), "step_ms": samples.spread(),
            **{f"{phase}_ms": samples.spread(phase) for phase in PHASES}, "host_step_ms": samples.host_step_ms,
            "finite": step.loss_is_finite(), "memory": self._memory(model), "gpu_state": states,
        }
        if samples.joules is not None:
            record["step_joules"] = round(samples.joules, 4)
        inputs = step.inputs
        del step                                # and therefore the state of the optimizer
        return record | self._infer(model, inputs, configuration.precision)

    def _infer(self, model, inputs, precision: str) -> Record:
        """Latency and peak memory of inference; only the fault, if it fails after training has been measured."""
        model.zero_grad(set_to_none=True)
        free_memory(self.device)
        if self.monitor.is_cuda:
            torch.cuda.reset_peak_memory_stats(self.device)
        model.eval()
        try:
            run = InferencePass(model, inputs, precision, self.device).run
            samples = sample(run, self.clock, self.cap_seconds, target_seconds=INFERENCE_SECONDS)
            return {"inference_ms": spread([milliseconds for (milliseconds,) in samples.phases_ms]),
                    "inference_host_ms": samples.host_step_ms, "inference_memory": self._memory(model)}
        except Exception as fault:
            return {"inference_error": f"{type(fault).__name__}: {fault}"[:500]}
        finally:
            model.train()

    def _memory(self, model) -> dict[str, int]:
        memory = {"model_bytes": _bytes_of(model.parameters()) + _bytes_of(model.buffers())}
        if self.monitor.is_cuda:
            memory |= {"peak_allocated_bytes": torch.cuda.max_memory_allocated(self.device),
                       "peak_reserved_bytes": torch.cuda.max_memory_reserved(self.device)}
        return memory


def describe(row: Architecture, configuration: Configuration, repeat: int, process: str, cap_seconds: float,
             environment: dict[str, Any], started: float, measured: Record) -> Record:
    """The complete record: the measurement, its configuration, place and time. `started` is a time.time()."""
    return {
        "schema": SCHEMA, "key": configuration.key, "repeat": repeat, "process": process,
        "time_unix": round(started, 1), "seconds": round(time.time() - started, 3), "cap_seconds": cap_seconds,
        "architecture": row.name, "family": row.family, "library": row.library, "builder": row.builder,
        "arguments": row.arguments_at(configuration.size), "task": row.task, "size": configuration.size,
        "batch": configuration.batch, "precision": configuration.precision,
        "channels_last": configuration.channels_last, "optimizer": configuration.optimizer,
        "implementation": configuration.implementation, "environment": environment,
        **measured,
    }
