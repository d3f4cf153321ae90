"""The shipped ONNX files, read back as a PyTorch module, answer as before."""

from pathlib import Path

import numpy as np
import pytest
import torch

from mdot_lab.predictor import export, restored, tables
from mdot_lab.predictor.deploy_graphs import ENCODING, ROWS, Encode, Evaluate
from mdot_lab.predictor.operators import Operators

WEIGHTS = Path(__file__).parents[2] / "weights"


def test_a_restored_predictor_answers_as_its_files():
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    model, random = restored.read(WEIGHTS), np.random.default_rng(0)
    encode, evaluate = Encode(model).eval(), Evaluate(model).eval()
    of_encode, of_evaluate = (runtime.InferenceSession(str(WEIGHTS / name)) for name in (export.ENCODING_FILE, export.EVALUATE))
    for _ in range(20):
        job, (configurations, gpus) = export.random_rows(random, 30), export.random_configurations(random)
        encoding = of_encode.run(None, dict(zip(ROWS, (x.numpy() for x in job))))
        expected = of_evaluate.run(None, {**dict(zip(ENCODING, encoding)), "configuration": configurations, "gpu": gpus})
        with torch.no_grad():
            found = evaluate(*encode(*job), torch.tensor(configurations), torch.tensor(gpus))
        assert found[0].numpy() == pytest.approx(expected[0], rel=1e-4)
        assert found[1].numpy() == pytest.approx(expected[1], rel=1e-3, abs=1e-4)


def test_work_of_a_step_is_as_near_to_the_data_as_work_of_a_sample():
    trained_on, half = restored.read(WEIGHTS).trained_on, tables.PHASE_LOAD_COUNT
    for column in range(half):
        for amount in (1e4, 1e9, 1e16):
            distances = []
            for at in (column, half + column):
                load = torch.zeros(1, tables.LOAD_COUNT)
                load[0, at] = amount
                distances.append(float(trained_on.load(Operators(torch.zeros(1), torch.zeros(1), load))))
            assert distances[0] == distances[1] and (distances[0] > 0) == (amount > 1e15)
