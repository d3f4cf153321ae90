"""Trains the policy and writes it as ONNX:

    python3 -m mdot_lab.policy --out mlfs.onnx [--minutes 10] [--seed 1]

The network scores a job by its features: a linear part, which begins as shortest remaining service first, as MLFS begins
with a heuristic, and a hidden layer of 12 units. It learns by evolution strategies (Salimans et al., 2017): the reward
of a disturbed network on fresh traces is the logarithm of the heuristic's mean completion time over its own, and the
network moves towards the disturbances with high rewards. Traces have jobs like Philly's, and estimates that are off by
half. The network with the best reward on 16 further traces is kept.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from mdot_lab.policy.simulation import FEATURES, Array, Score, Trace, draw, mean_completion_s

HIDDEN, PAIRS, SIGMA, RATE = 12, 8, 0.6, 0.15
COUNT = len(FEATURES)
SIZE = COUNT + COUNT * HIDDEN + 2 * HIDDEN


def parts(weights: Array) -> tuple[Array, Array, Array, Array]:
    linear, hidden, bias, out = np.split(weights, np.cumsum([COUNT, COUNT * HIDDEN, HIDDEN]))
    return linear, hidden.reshape(COUNT, HIDDEN), bias, out


def heuristic() -> Array:
    weights = np.zeros(SIZE)
    weights[:2] = -10, -5 * np.log(2)  # -log(remaining seconds * GPUs)
    return weights


def score_of(weights: Array) -> Score:
    linear, hidden, bias, out = parts(weights)
    return lambda features: features @ linear + np.tanh(features @ hidden + bias) @ out


def reward(weights: Array, traces: list[Trace], baseline: list[float]) -> float:
    score = score_of(weights)
    return float(np.mean([np.log(b / mean_completion_s(t, score)) for t, b in zip(traces, baseline)]))


def train(minutes: float, seed: int) -> Array:
    random = np.random.default_rng(seed)
    held = [draw(random, 100) for _ in range(16)]
    held_base = [mean_completion_s(t, score_of(heuristic())) for t in held]
    weights = heuristic()
    weights[COUNT:-HIDDEN] = 0.3 * random.standard_normal(SIZE - COUNT - HIDDEN)
    best, best_reward, end = weights.copy(), reward(weights, held, held_base), time.monotonic() + 60 * minutes
    velocity = np.zeros(SIZE)
    for step in range(100000):
        if time.monotonic() > end:
            break
        traces = [draw(random, 100) for _ in range(2)]
        base = [mean_completion_s(t, score_of(heuristic())) for t in traces]
        noise = random.standard_normal((PAIRS, SIZE))
        gains = np.array([reward(weights + SIGMA * n, traces, base) - reward(weights - SIGMA * n, traces, base) for n in noise])
        velocity = 0.7 * velocity + RATE * (gains / (gains.std() + 1e-9)) @ noise / PAIRS
        weights = weights + velocity
        if step % 10 == 9:
            now = reward(weights, held, held_base)
            print(f"step {step + 1}: reward on held traces {now:+.4f} (best {best_reward:+.4f})", flush=True)
            if now > best_reward:
                best, best_reward = weights.copy(), now
    return best


def to_onnx(weights: Array) -> onnx.ModelProto:
    linear, hidden, bias, out = parts(weights)
    arrays = {"linear": linear[:, None], "hidden": hidden, "bias": bias[None, :], "out": out[:, None]}
    constants = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in arrays.items()]
    nodes = [
        helper.make_node("MatMul", ["features", "hidden"], ["h0"]), helper.make_node("Add", ["h0", "bias"], ["h1"]),
        helper.make_node("Tanh", ["h1"], ["h2"]), helper.make_node("MatMul", ["h2", "out"], ["deep"]),
        helper.make_node("MatMul", ["features", "linear"], ["plain"]), helper.make_node("Add", ["deep", "plain"], ["score"]),
    ]
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "mlfs", [tensor("features", TensorProto.FLOAT, [1, COUNT])],
                              [tensor("score", TensorProto.FLOAT, [1, 1])], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    onnx.save(to_onnx(train(arguments.minutes, arguments.seed)), arguments.out)


if __name__ == "__main__":
    main()
