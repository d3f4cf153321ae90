"""A recorded training step has the operators, kept tensors and peak of the same step on fake CUDA tensors.

This test runs the kinds that differ on the CPU, and each twelfth other module. `python3 -m mdot_lab.checks.cuda` runs all.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("mdot.trace.training_run")

COMPARE = """
import json
from mdot_lab.checks.memory import fake_cuda
fake_cuda.install()
from mdot_lab.checks.cuda import compare, modules
kinds = ["LSTMCell", "GRUCell", "RMSNorm, affine True", "LogSigmoid", "BatchNorm2d of rank 2", "EmbeddingBag sum", "grid", "Bilinear",
         "detach", "detached branch", "attention dropout"]
every = modules.makers()
print(json.dumps(compare.compare(kinds + [name for i, name in enumerate(every) if i % 12 == 0 and name not in kinds])))
"""


@pytest.fixture(scope="module")
def compared():
    if torch.version.cuda is None or not (shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")):
        pytest.skip("needs a build of torch for CUDA and a C compiler")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", COMPARE], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_recorded_steps_equal_those_on_fake_cuda_tensors(compared):
    count, differences = compared
    assert count >= 60 and differences == {}
