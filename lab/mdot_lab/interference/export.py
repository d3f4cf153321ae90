"""The model as ONNX: one job's slowdown beside a partner."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from mdot_lab.interference.pairs import NUMBERS
from mdot_lab.interference.process import BUSY, CARD_SCALE, COMPUTE, GATE, HOST, LEAST, LEAST_USE, MEMORY, RATES, Process

LEAST_FAMILIARITY = float(np.exp(-2))
"""Below it, the card is unlike the measured ones: two CARD_SCALE from the nearest."""


class Graph:
    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, value: np.ndarray | float, rows: int = 1) -> str:
        array = np.asarray(value, dtype=np.float32)
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array.reshape(rows, -1) if array.ndim < 2 else array, name))
        return name

    def node(self, kind: str, *inputs: str, out: str = "", **attributes: int) -> str:
        name = out or f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name


def _near(graph: Graph, logs: str, mean: np.ndarray, scale: np.ndarray, centres: np.ndarray) -> str:
    """exp(-|x - centre|^2 / 2) for every centre."""
    x = graph.node("Mul", graph.node("Sub", logs, graph.constant(mean)), graph.constant(scale))
    square = graph.node("MatMul", graph.node("Mul", x, x), graph.constant(np.full((len(mean), 1), -0.5)))
    across = graph.node("MatMul", x, graph.constant(centres.T))
    whole = graph.node("Add", graph.node("Add", across, graph.constant(-0.5 * (centres**2).sum(1))), square)
    return graph.node("Exp", whole)


def _number(graph: Graph, side: str, index: int) -> str:
    """One of a load's numbers, [1, 1]."""
    return graph.node("MatMul", side, graph.constant(np.eye(len(NUMBERS))[:, index:index + 1]))


def _time_slicing(graph: Graph, process: Process) -> str:
    """The law for cards unlike the measured ones, [1, 1]."""
    one, least = graph.constant(1.0), graph.constant(LEAST_USE)
    factors = []
    for side, power in zip(("own", "partner"), process.law[1:], strict=True):
        use = graph.node("Max", _number(graph, side, COMPUTE), _number(graph, side, MEMORY), least)
        factors.append(graph.node("Mul", graph.node("Log", graph.node("Min", use, one)), graph.constant(power)))
    factor = graph.node("Exp", graph.node("Add", graph.node("Add", *factors), graph.constant(process.law[0])))
    busy = [graph.node("Min", _number(graph, side, BUSY), one) for side in ("own", "partner")]
    return graph.node("Log", graph.node("Add", graph.node("Mul", graph.node("Mul", *busy), factor), one))


def _familiarity(graph: Graph, logs: str, process: Process) -> str:
    """1 on a measured card, towards 0 far from all of them, [1, 1]."""
    rates = graph.node("MatMul", logs, graph.constant(np.eye(len(NUMBERS))[:, RATES]))
    near = _near(graph, rates, np.zeros(2), np.full(2, 1 / CARD_SCALE), process.cards / CARD_SCALE)
    return graph.node("Min", graph.node("MatMul", near, graph.constant(np.ones((len(process.cards), 1)))), graph.constant(1.0))


def _between(graph: Graph, known: str, near: str, far: str) -> str:
    return graph.node("Add", far, graph.node("Mul", known, graph.node("Sub", near, far)))


def to_onnx(process: Process, factor: float) -> onnx.ModelProto:
    """`factor` deviations are half the 90 % interval."""
    graph = Graph()
    least = graph.constant(LEAST)
    own, partner = (graph.node("Log", graph.node("Max", side, least)) for side in ("own", "partner"))
    mean, own_scale, partner_scale = (tensor.numpy() for tensor in (process.mean, process.scale_own, process.scale_partner))
    a = _near(graph, own, mean, own_scale, process.own.numpy())
    b = _near(graph, partner, mean, partner_scale, process.partner.numpy())
    first, second, both = (float(value) for value in process.amplitudes)
    crossed = graph.node("Mul", graph.node("MatMul", a, graph.constant(both * process.weights.numpy())), b)
    crossed = graph.node("MatMul", crossed, graph.constant(np.ones((len(process.partner), 1))))
    alone = graph.node("Add", graph.node("MatMul", a, graph.constant(process.own_weights.numpy()[:, None])),
                       graph.node("MatMul", b, graph.constant(process.partner_weights.numpy()[:, None])))
    centre = graph.node("Add", graph.node("Add", alone, crossed), graph.constant(process.prior))
    a = _near(graph, own, mean, own_scale, process.own_points.numpy())
    b = _near(graph, partner, mean, partner_scale, process.partner_points.numpy())
    kernel = graph.node("Add", graph.node("Mul", a, graph.constant(first)), graph.node("Mul", b, graph.constant(second)))
    kernel = graph.node("Add", kernel, graph.node("Mul", graph.node("Mul", a, b), graph.constant(both)))
    root = graph.node("MatMul", kernel, graph.constant(process.whitening.numpy()))
    ones = graph.constant(np.ones((process.whitening.shape[1], 1)))
    known = graph.node("MatMul", graph.node("Mul", root, root), ones)
    total = graph.constant(float(process.amplitudes.sum()) + process.noise)
    variance = graph.node("Max", graph.node("Sub", total, known), graph.constant(process.noise))
    familiar = _familiarity(graph, own, process)
    centre = _between(graph, familiar, graph.node("Relu", centre), _time_slicing(graph, process))
    deviation = graph.node("Sqrt", _between(graph, familiar, variance, graph.constant(process.law_variance)))
    shifts = graph.node("MatMul", deviation, graph.constant(np.array([[-factor, 0, factor]])))
    logarithms = graph.node("Relu", graph.node("Add", shifts, centre))
    busy = np.zeros((len(NUMBERS), 1))
    busy[[BUSY, HOST]] = -GATE
    gate = graph.node("Sub", graph.constant(1.0), graph.node("Exp", graph.node("MatMul", "partner", graph.constant(busy))))
    graph.node("Exp", graph.node("Mul", logarithms, gate), out="slowdown")
    graph.node("Sub", graph.constant(LEAST_FAMILIARITY), familiar, out="outside_training")
    tensor = helper.make_tensor_value_info
    made = helper.make_graph(graph.nodes, "interference", [tensor(name, TensorProto.FLOAT, [1, len(NUMBERS)]) for name in ("own", "partner")],
                             [tensor("slowdown", TensorProto.FLOAT, [1, 3]), tensor("outside_training", TensorProto.FLOAT, [1, 1])],
                             graph.constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def difference(model: onnx.ModelProto, process: Process, loads: np.ndarray) -> float:
    """The largest relative difference of the median, in f32 by ONNX Runtime."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    sides = np.asarray(loads, dtype=np.float32)
    wanted = np.exp(np.maximum(process(loads)[0], 0))
    worst = 0.0
    for pair, answers in zip(sides, wanted, strict=True):
        for side in (0, 1):
            got = session.run(None, {"own": pair[side:side + 1], "partner": pair[1 - side:2 - side]})[0][0, 1]
            worst = max(worst, abs(float(got) / float(answers[side]) - 1))
    return worst
