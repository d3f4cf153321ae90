"""The learned policy: its simulator on small cases, its features, and the exported network."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort

from mdot_lab.policy.__main__ import SIZE, heuristic, reward, score_of, to_onnx, train
from mdot_lab.policy.simulation import FEATURES, Trace, draw, features, loss, mean_completion_s


def test_shortest_service_goes_first() -> None:
    # One GPU: 100 s, then 1,000 s; the order by the heuristic gives means of (100 + 1100) / 2.
    trace = Trace(np.array([0.0, 0.0]), np.array([1.0, 1.0]), np.array([1000.0, 100.0]), np.ones(2), 1)
    assert mean_completion_s(trace, score_of(heuristic())) == 600
    assert mean_completion_s(trace, lambda f: f[:, 0]) == 1050  # longest first
    # A job that fits beside a wide one runs beside it: 2 GPUs for 100 s, 1 GPU for 500 s of 3.
    trace = Trace(np.array([0.0, 0.0]), np.array([2.0, 1.0]), np.array([100.0, 500.0]), np.ones(2), 3)
    assert mean_completion_s(trace, score_of(heuristic())) == 300


def test_features_by_hand() -> None:
    trace = Trace(np.array([0.0]), np.array([4.0]), np.array([1000.0]), np.array([2.0]), 8)
    row = dict(zip(FEATURES, features(trace, np.array([0]), np.array([750.0]), np.array([250.0]), np.ones(1), 400.0)[0]))
    assert np.isclose(row["left"], np.log1p(1500) / 10) and np.isclose(row["duration"], np.log1p(2000) / 10)
    assert row["gpus"] == 2 / 5 and row["done"] == 0.25 and row["runs"] == 1
    assert np.isclose(row["waited"], np.log1p(150) / 10) and np.isclose(row["attained"], np.log1p(1000) / 10)
    assert np.isclose(row["load"], np.log1p(0.5)) and 0.1 < row["loss"] < 1
    assert np.allclose(loss(np.array([0.0, 1.0]), np.array([1.3, 1.3])), [1, 0.1])


def test_the_network_equals_its_export() -> None:
    random = np.random.default_rng(3)
    weights = random.standard_normal(SIZE)
    session = ort.InferenceSession(to_onnx(weights).SerializeToString())
    for _ in range(20):
        row = random.standard_normal((1, len(FEATURES)))
        answer = session.run(None, {"features": row.astype(np.float32)})[0]
        assert np.allclose(answer, score_of(weights)(row), atol=1e-4)


def test_training_never_ends_below_the_heuristic() -> None:
    weights = train(0, 1)  # no step: the heuristic beside a hidden layer without output
    random = np.random.default_rng(5)
    traces = [draw(random, 30) for _ in range(2)]
    base = [mean_completion_s(t, score_of(heuristic())) for t in traces]
    assert reward(weights, traces, base) == 0
