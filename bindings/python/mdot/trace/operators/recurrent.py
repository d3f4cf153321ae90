"""LSTM, GRU and RNN: one node for each layer."""

from __future__ import annotations

from typing import Any, Callable

from mdot.trace.graph import Graph, Value
from mdot.trace.operators.call import Call


def _join(graph: Graph, parts: list[Value], shape: tuple[int, ...], **packs: Any) -> Value:
    return parts[0] if len(parts) == 1 else graph.op("Concat", parts, shape, parts[0].dtype, axis=0, **packs)


def _layer(call: Call, op: str, x: Value, parameters: list[list[Value]], attributes: dict[str, Any]) -> list[Value]:
    """One layer in one or both directions on [T, B, C]. Returns all results [T, B, D * H] and the last states [D, B, H]."""
    graph, directions = call.graph, len(parameters)
    hidden = parameters[0][1].shape[1]
    joined = []
    for i in range(2):  # input weights, then recurrent weights
        rows, columns = parameters[0][i].shape
        parts = [graph.reshape(group[i], (1, rows, columns)) for group in parameters]
        joined.append(_join(graph, parts, (directions, rows, columns), packs=1))
    inputs: list[Value | None] = [x, *joined]
    if len(parameters[0]) > 2:
        rows = 2 * parameters[0][2].shape[0]
        parts = []
        for group in parameters:
            both = graph.op("Concat", group[2:4], (rows,), group[2].dtype, axis=0, packs=1)
            parts.append(graph.reshape(both, (1, rows)))
        inputs.append(_join(graph, parts, (directions, rows), packs=1))
    length, batch, _ = x.shape
    state = ((directions, batch, hidden), x.dtype)
    outputs = [((length, directions, batch, hidden), x.dtype), state] + ([state] if op == "LSTM" else [])
    attributes = {**attributes, "hidden_size": hidden, "direction": "bidirectional" if directions > 1 else "forward"}
    made = graph.node(op, inputs, outputs, **attributes)
    if directions == 1:
        made[0] = graph.reshape(made[0], (length, batch, hidden))
    else:
        apart = graph.transpose(made[0], [0, 2, 1, 3])
        made[0] = graph.reshape(apart, (length, batch, directions * hidden))
    return made


def _recurrent(op: str, **attributes: Any) -> Callable[[Call], Any]:
    def translate(call: Call) -> Any:
        x, params, biases = call.get("input", "data"), call["params"], call["has_biases"]
        directions = 2 if call["bidirectional"] else 1
        if call.get("batch_sizes") is not None:
            return _packed(call, op, attributes)
        each = 4 if biases else 2
        if len(params) != each * directions * call["num_layers"]:
            return None  # a layer with projections
        if call["batch_first"]:
            x = call.graph.transpose(x, [1, 0, 2])
        x, finals = _layers(call, op, x, params, directions, each, attributes)
        if call["batch_first"]:
            x = call.graph.transpose(x, [1, 0, 2])
        return [x, *finals]

    return translate


def _packed(call: Call, op: str, attributes: dict[str, Any]) -> list[Value] | None:
    """Rows of all sequences, sorted by time. They count as sequences of equal length; a share takes the padding back."""
    x, params, directions = call["data"], call["params"], 2 if call["bidirectional"] else 1
    each = 4 if call["has_biases"] else 2
    if len(params) != each * directions * call["num_layers"]:
        return None
    rows, length = x.shape[0], max(call["batch_sizes"].count, 1)
    batch = -(-rows // length)
    padded = call.graph.view(x, (length, batch, x.shape[1]), x.dtype)
    share = {"share": rows / (length * batch)} if rows != length * batch else {}
    out, finals = _layers(call, op, padded, params, directions, each, {**attributes, **share})
    finals = [call.graph.view(final, tuple(t.shape), final.dtype) for final, t in zip(finals, call.outputs[1:])]
    return [call.graph.view(out, call.shape, out.dtype), *finals]


def _layers(
    call: Call, op: str, x: Value, params: list[Value], directions: int, each: int, attributes: dict[str, Any]
) -> tuple[Value, list[Value]]:
    states: list[list[Value]] = []
    for layer in range(call["num_layers"]):
        first = layer * directions * each
        groups = [params[first + d * each : first + (d + 1) * each] for d in range(directions)]
        x, *last = _layer(call, op, x, groups, attributes)
        states.append(last)
    kinds = range(len(states[0]))
    shape = (len(states) * directions, *states[0][0].shape[1:])
    return x, [_join(call.graph, [last[i] for last in states], shape) for i in kinds]


TRANSLATIONS: dict[str, Callable[[Call], Any]] = {
    "lstm": _recurrent("LSTM"),
    "gru": _recurrent("GRU", linear_before_reset=1),
    "rnn_tanh": _recurrent("RNN"),
    "rnn_relu": _recurrent("RNN"),
}
