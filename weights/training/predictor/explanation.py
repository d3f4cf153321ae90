"""An exported predictor → what it says of where a step's time goes: the same graph with other outputs.

    operator_ms  [L, 3]  of each row: forward, data gradient, weight gradient; its normalisation is part of it
    other_ms     [3]     optimizer; waiting for the host that starts kernels; waiting for the link between GPUs

They add up to the median of step_ms. A member's step is a smooth maximum (Σ t^4)^(1/4) of three times: homogeneous, so that by
Euler's theorem its parts are t · d step / d t = step · t^4 / Σ t^4. The GPU's part divides as the GPU's time does. Members are
averaged as logarithms, so their shares are averaged as they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Iterator

import numpy as np
import onnx
from onnx import helper, numpy_helper

from predictor import tables

OUTPUTS = ("operator_ms", "other_ms")
MEMBER_SHARES = ("operator", "optimizer", "host", "link")
TOLERANCE = 1e-4


class _Graph:
    """Nodes by what they give, and new ones behind them."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.graph = model.graph
        self.maker = {name: node for node in self.graph.node for name in node.output}

    def operand(self, name: str, kind: str, index: int = 0) -> str:
        """The operand of the node that gives `name`, which must be a `kind`."""
        node = self.maker[name]
        if node.op_type != kind:
            raise ValueError(f"{node.name} is no {kind}: the graph is not as exported.py writes it")
        return node.input[index]

    def add(self, kind: str, *inputs: str, name: str, **attributes: int) -> str:
        node = helper.make_node(kind, inputs, [name], name=f"/explain/{name}", **attributes)
        self.graph.node.append(node)
        self.maker[name] = node
        return name

    def constant(self, name: str, value: np.ndarray) -> str:
        self.graph.initializer.append(numpy_helper.from_array(value, name))
        return name


def _steps(graph: _Graph) -> Iterator[tuple[str, str]]:
    """Of each member the sum of fourth powers in its smooth maximum, and the GPU's time."""
    low_median_high = graph.operand(graph.operand("step_ms", "Gather"), "Exp")
    logs = graph.operand(graph.operand(low_median_high, "Concat", 1), "ReduceMean")
    for log in graph.maker[logs].input:
        step = graph.operand(graph.operand(log, "Unsqueeze"), "Log")
        powers = graph.operand(graph.operand(step, "Mul", 1), "Pow")
        gpu_power = graph.operand(graph.operand(powers, "Add"), "Add")
        yield powers, graph.operand(graph.operand(gpu_power, "Pow"), "Div")


def _shares(graph: _Graph, member: int, powers: str, gpu_ms: str) -> dict[str, str]:
    """[L, PARTS], [1, 1], [1, 1], [1, 1]: they add up to 1."""
    gpu_and_host, link_power = graph.maker[powers].input
    gpu_power, host_power = graph.maker[gpu_and_host].input
    operators_ms, optimizer_ms = graph.maker[gpu_ms].input
    parts = graph.operand(graph.operand(operators_ms, "ReduceSum"), "ReduceSum")
    per_ms = graph.add("Div", graph.add("Div", gpu_power, powers, name=f"gpu_share_{member}"), gpu_ms, name=f"per_ms_{member}")
    return {"operator": graph.add("Mul", parts, per_ms, name=f"operator_share_{member}"),
            "optimizer": graph.add("Mul", optimizer_ms, per_ms, name=f"optimizer_share_{member}"),
            "host": graph.add("Div", host_power, powers, name=f"host_share_{member}"),
            "link": graph.add("Div", link_power, powers, name=f"link_share_{member}")}


def _mean(graph: _Graph, shares: list[dict[str, str]], which: str) -> str:
    total = shares[0][which]
    for member, share in enumerate(shares[1:]):
        total = graph.add("Add", total, share[which], name=f"{which}_sum_{member}")
    return graph.add("Mul", total, "explain.one_of_members", name=f"{which}_share")


def phases_of_parts() -> np.ndarray:
    """[PARTS, phases]: parts are the phases, then normalisations forward and backward."""
    return np.concatenate([np.eye(len(tables.PHASES)), np.eye(len(tables.PHASES))[:2]]).astype(np.float32)


def make(predictor: onnx.ModelProto) -> onnx.ModelProto:
    model = onnx.ModelProto()
    model.CopyFrom(predictor)
    graph = _Graph(model)
    shares = [_shares(graph, member, *step) for member, step in enumerate(_steps(graph))]
    graph.constant("explain.one_of_members", np.float32(1 / len(shares)))
    graph.constant("explain.phases_of_parts", phases_of_parts())
    graph.constant("explain.median", np.int64([1]))
    graph.constant("explain.flat", np.int64([-1]))
    mean = {which: _mean(graph, shares, which) for which in MEMBER_SHARES}
    median_ms = graph.add("Gather", "step_ms", "explain.median", name="median_ms")
    phases = graph.add("MatMul", mean["operator"], "explain.phases_of_parts", name="phase_shares")
    graph.add("Mul", phases, median_ms, name=OUTPUTS[0])
    others = graph.add("Concat", *(mean[which] for which in MEMBER_SHARES[1:]), name="other_shares", axis=1)
    graph.add("Mul", graph.add("Reshape", others, "explain.flat", name="flat_shares"), median_ms, name=OUTPUTS[1])
    del model.graph.output[:]
    model.graph.output.extend([helper.make_tensor_value_info(OUTPUTS[0], onnx.TensorProto.FLOAT, ["L", len(tables.PHASES)]),
                               helper.make_tensor_value_info(OUTPUTS[1], onnx.TensorProto.FLOAT, [3])])
    _drop_unread(model.graph)
    onnx.checker.check_model(model, full_check=True)
    return model


def _drop_unread(graph: onnx.GraphProto) -> None:
    read, kept = {output.name for output in graph.output}, []
    for node in reversed(graph.node):
        if read.isdisjoint(node.output):
            continue
        kept.append(node)
        read.update(node.input)
    del graph.node[:]
    graph.node.extend(reversed(kept))
    initializers = [tensor for tensor in graph.initializer if tensor.name in read]
    del graph.initializer[:]
    graph.initializer.extend(initializers)


def _examples(random: np.random.Generator, count: int) -> Iterator[dict[str, np.ndarray]]:
    for _ in range(count):
        rows = int(random.integers(1, 60))
        flags = dict.fromkeys(tables.CONFIGURATION, 0.0) | {"batch": float(random.integers(1, 512)), "is_amp": 1.0,
                                                             "gpu_count": float(random.integers(1, 9))}
        gpu = tables.gpus()[random.integers(0, len(tables.gpus()))]
        yield {"operator_type": random.integers(0, len(tables.operator_types()), rows),
               "operator_setting": random.integers(0, 64, (rows, len(tables.settings()))).astype(np.float32),
               "operator_load": (10 ** random.uniform(0, 8, (rows, tables.LOAD_COUNT))).astype(np.float32),
               "operator_count": random.integers(1, 9, rows).astype(np.float32),
               "configuration": np.float32([flags[name] for name in tables.CONFIGURATION]),
               "gpu": np.float32(gpu.numbers)}


def worst_difference(predictor: Path, explained: Path, count: int = 200) -> float:
    """Between the parts' sum and the median of step_ms, relative, over made-up jobs, and whether no part is negative."""
    import onnxruntime

    def opened(path: Path) -> onnxruntime.InferenceSession:
        return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    whole, parts, worst = opened(predictor), opened(explained), 0.0
    for inputs in _examples(np.random.default_rng(0), count):
        of_operators, others = parts.run(list(OUTPUTS), inputs)
        if of_operators.min() < 0 or others.min() < 0:
            raise ValueError("a part of a step is negative")
        step_ms = whole.run(["step_ms"], inputs)[0][1]
        worst = max(worst, abs((of_operators.sum(dtype=np.float64) + others.sum(dtype=np.float64)) / step_ms - 1))
    return worst


def write(predictor: Path, out: Path) -> float:
    """Writes `out` if its parts add up to what the predictor says; returns the worst difference."""
    part = out.with_suffix(".part.onnx")
    onnx.save(make(onnx.load(predictor)), part)
    worst = worst_difference(predictor, part)
    if worst > TOLERANCE:
        part.unlink()
        raise ValueError(f"{predictor.name}: the parts of a step differ from it by {worst:.1e}, more than {TOLERANCE:.0e}")
    part.rename(out)
    return worst
