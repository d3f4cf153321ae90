"""Run with python -m pytest lab/tests/collect. Requires PyTorch; tests that need more are skipped without it."""

import pytest

from mdot_lab.collect import SCHEMA
from mdot_lab.collect.measured_configuration import Configuration


@pytest.fixture
def make_record():
    """A complete, valid record for a configuration's key. Arguments replace its fields."""

    def make(key: str, **fields):
        c = Configuration.from_key(key)
        spread = {"median": 10.0, "iqr": 0.1, "min": 9.9, "mean": 10.0}
        return {
            "schema": SCHEMA, "key": key, "repeat": 0, "status": "ok", "process": "a", "time_unix": 100.0,
            "seconds": 1.0, "cap_seconds": 8.0, "architecture": c.architecture, "family": "family", "library": "torch",
            "builder": "b", "arguments": {}, "task": "vector", "size": c.size, "batch": c.batch,
            "precision": c.precision, "channels_last": c.channels_last,
            "optimizer": c.optimizer, "implementation": c.implementation,
            "environment": {"gpu": "G", "torch": "2"}, "inputs": [], "parameters": 1, "parameter_tensors": 1,
            "warmup_steps": 5, "steps": 20, "step_ms": spread, "forward_ms": spread, "backward_ms": spread,
            "optimizer_ms": spread, "host_step_ms": 10.0, "finite": True, "memory": {}, "gpu_state": [], **fields,
        }

    return make
