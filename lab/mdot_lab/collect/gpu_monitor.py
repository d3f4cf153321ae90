"""Describes the machine: versions once, and the GPU's clocks, temperature and power during measurements."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import time
from typing import Any, Callable

import torch

from mdot_lab.collect.architecture import LIBRARIES

_SMI_FIELDS = ("clocks.sm", "clocks.mem", "temperature.gpu", "power.draw")
_SMI_SECONDS = 10.0         # seconds between two calls of nvidia-smi, a tenth of a second each


def _version(library: str) -> str | None:
    """The installed version, without importing the library, which would take seconds."""
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        return names[0] if names else platform.processor()
    except OSError:
        return platform.processor()


def _open_nvml():
    try:
        import pynvml

        pynvml.nvmlInit()
        return pynvml
    except Exception:       # absent, or the driver denies access; nvidia-smi is then used
        return None


def _smi(fields: str, index: int) -> list[str]:
    try:
        command = ["nvidia-smi", f"--id={index}", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
        return [cell.strip() for cell in answer.stdout.strip().split(",")]
    except (OSError, subprocess.SubprocessError):
        return []


class GpuMonitor:
    """Reads the state of the CUDA device in use. Every reading is one small dict. The device's settings stay unchanged."""

    def __init__(self, device: str):
        self.is_cuda = torch.device(device).type == "cuda"
        self._nvml = _open_nvml() if self.is_cuda else None
        self._smi_last, self._smi_state = -_SMI_SECONDS, {}
        self._index, self._handle = 0, None
        if self.is_cuda:
            # The driver's GPU numbers include those that CUDA_VISIBLE_DEVICES hides.
            uuid = str(getattr(torch.cuda.get_device_properties(device), "uuid", ""))
            self._handle = self._find(uuid)

    def _find(self, uuid: str):
        if self._nvml is None:
            return None
        try:
            for index in range(self._nvml.nvmlDeviceGetCount()):
                handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
                if uuid and uuid in str(self._nvml.nvmlDeviceGetUUID(handle)):
                    self._index = index
                    return handle
            return self._nvml.nvmlDeviceGetHandleByIndex(0)
        except self._nvml.NVMLError:
            return None

    def state(self) -> dict[str, Any]:
        """Clocks in MHz, temperature in °C, power in W, throttle reasons as the driver's bits; empty on a CPU."""
        if not self.is_cuda:
            return {}
        if self._handle is None:
            return self._smi_reading()
        nvml, handle = self._nvml, self._handle
        readings: dict[str, Callable[[], Any]] = {
            "sm_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
            "memory_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
            "temperature_c": lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
            "power_w": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000.0,
            "throttle": lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),
        }
        state = {}
        for name, read in readings.items():
            try:
                state[name] = read()
            except (nvml.NVMLError, AttributeError):    # hidden by a virtual machine, or named differently by this NVML
                continue
        return state

    def joules(self) -> float | None:
        """The board's energy counter in J, updated about ten times a second. None without such a counter."""
        if self._handle is None:
            return None
        try:
            return self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle) / 1000.0
        except (self._nvml.NVMLError, AttributeError):
            return None

    def _smi_reading(self) -> dict[str, Any]:
        if time.monotonic() - self._smi_last < _SMI_SECONDS:
            return {**self._smi_state, "age_s": round(time.monotonic() - self._smi_last, 1)}
        cells = _smi(",".join(_SMI_FIELDS), self._index)
        names = ("sm_mhz", "memory_mhz", "temperature_c", "power_w")
        self._smi_last, self._smi_state = time.monotonic(), {}
        for name, cell in zip(names, cells):
            try:
                self._smi_state[name] = float(cell)
            except ValueError:
                continue
        return dict(self._smi_state)

    def driver(self) -> str | None:
        if self._nvml is not None:
            version = self._nvml.nvmlSystemGetDriverVersion()
            return version.decode() if isinstance(version, bytes) else version
        return next(iter(_smi("driver_version", self._index)), None) if self.is_cuda else None


def environment(monitor: GpuMonitor, device: str) -> dict[str, Any]:
    """The environment behind the times, in addition to the configuration. It is equal for all records of a process."""
    found: dict[str, Any] = {library: _version(library) for library in LIBRARIES}
    found |= {
        "torch": torch.__version__,         # includes its build: 2.11.0+cu130
        "device": torch.device(device).type, "python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(), "processor_cores": os.cpu_count(), "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "cudnn_deterministic": torch.backends.cudnn.deterministic, "cuda": torch.version.cuda,
        "allocator": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""), "driver": monitor.driver(), "gpu": None,
    }
    if monitor.is_cuda:
        properties = torch.cuda.get_device_properties(device)
        found |= {"gpu": properties.name, "gpu_memory_bytes": properties.total_memory,
                  "gpu_multiprocessors": properties.multi_processor_count,
                  "gpu_capability": f"{properties.major}.{properties.minor}", "cudnn": torch.backends.cudnn.version()}
    return found
