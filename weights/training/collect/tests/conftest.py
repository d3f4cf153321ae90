"""Run with python -m pytest weights/training/collect/tests. Requires PyTorch; tests that need more are skipped without it."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from collect import SCHEMA  # noqa: E402
from collect.configuration import Configuration  # noqa: E402


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
            "optimizer_ms": spread, "host_step_ms": 10.0, "finite": True, "memory": {}, "card": [], **fields,
        }

    return make
