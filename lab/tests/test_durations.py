"""mdot_lab.durations: the ONNX model answers as LightGBM, and trees find what the metadata state."""

from __future__ import annotations

import numpy as np
import pytest

lightgbm = pytest.importorskip("lightgbm")
onnxruntime = pytest.importorskip("onnxruntime")

from mdot_lab.durations import export, trees  # noqa: E402
from mdot_lab.durations.jobs import NUMBERS  # noqa: E402


def draw(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A history's answers, and durations that are e times its median on four or more GPUs."""
    random = np.random.default_rng(seed)
    x = np.zeros((count, len(NUMBERS)), np.float32)
    x[:, :7] = np.cumsum(random.uniform(0.3, 1, (count, 7)), 1) + random.uniform(0, 6, (count, 1))
    gpus = NUMBERS.index("gpus")
    x[:, gpus] = random.integers(0, 7, count)
    return x, x[:, trees.ENDS[1]] + np.where(x[:, gpus] >= 2, 1.0, 0.0) + random.normal(0, 0.2, count)


def test_the_onnx_model_answers_as_lightgbm() -> None:
    x, log_s = draw(3000, 1)
    boosters = trees.fit(x, log_s)
    session = onnxruntime.InferenceSession(export.to_onnx(boosters).SerializeToString(), providers=["CPUExecutionProvider"])
    thresholds = np.array([node["threshold"] for node in _splits(boosters[1].dump_model()["tree_info"])])
    x[:100] = np.float32(thresholds[:100, None])  # equal to a threshold in f32
    want = trees.predict(boosters, x[:400])
    got = np.concatenate([session.run(None, {"numbers": x[i:i + 1]})[0] for i in range(400)])
    assert np.abs(got - want).max() < 1e-4


def _splits(trees_of: list) -> list:
    stack, found = [tree["tree_structure"] for tree in trees_of], []
    while stack:
        node = stack.pop()
        if "threshold" in node:
            found.append(node)
            stack += [node["left_child"], node["right_child"]]
    return found


def test_trees_correct_the_history_and_ascend() -> None:
    x, log_s = draw(20000, 2)
    asked, truth = draw(2000, 3)
    answer = trees.predict(trees.fit(x, log_s), asked)
    assert (np.diff(answer, axis=1) >= 0).all()
    before, after = (np.abs(truth - middle).mean() for middle in (asked[:, trees.ENDS[1]], answer[:, 1]))
    assert after < 0.6 * before


def test_cart_has_the_quantiles_of_its_leaves() -> None:
    random = np.random.default_rng(4)
    kind = random.integers(0, 2, 4000)
    log_s = 5.0 + 3 * kind + random.normal(0, 0.1, 4000)
    answer = trees.cart(kind[:, None].astype(float), log_s, np.array([[0.0], [1.0]]))
    assert np.allclose(answer[:, 1], [5, 8], atol=0.05)
    assert np.allclose(answer[:, 2] - answer[:, 0], 2 * 1.645 * 0.1, rtol=0.15)
