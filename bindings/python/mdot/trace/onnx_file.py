"""Writes a graph as an ONNX model in protobuf's wire format (onnx.proto3), without the package onnx.

Parameters become initializers with external data in a file that is never written. Constants are nodes, so that a
reader can distinguish them from trained parameters, even if the values are irrelevant.
"""

from __future__ import annotations

import struct

from mdot.trace.graph import INT64, Attribute, Graph, Node, Value

OPSET = 24
IR_VERSION = 10
NO_FILE = "weights-left-out"
"""Location of external data (ONNX, ExternalData.md). This file is never written."""
BATCH = "batch"
"""Name of the symbolic dimension."""


# ---- The wire format -------------------------------------------------------------------------------------------------


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _int(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _bytes(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode())


# ---- Messages --------------------------------------------------------------------------------------------------------


def _tensor(value: Value) -> bytes:
    out = b"".join(_int(1, extent) for extent in value.shape) + _int(2, value.dtype) + _text(8, value.name)
    if value.data is not None:
        return out + _bytes(9, value.data)
    return out + _bytes(13, _text(1, "location") + _text(2, NO_FILE)) + _int(14, 1)


def _attribute(name: str, value: Attribute) -> bytes:
    out = _text(1, name)
    if isinstance(value, (bool, int)):
        return out + _int(3, int(value)) + _int(20, 2)
    if isinstance(value, float):
        return out + _varint(2 << 3 | 5) + struct.pack("<f", value) + _int(20, 1)
    if isinstance(value, str):
        return out + _text(4, value) + _int(20, 3)
    if any(isinstance(item, float) for item in value):
        return out + b"".join(_varint(7 << 3 | 5) + struct.pack("<f", item) for item in value) + _int(20, 6)
    return out + b"".join(_int(8, int(item)) for item in value) + _int(20, 7)


def _node(node: Node) -> bytes:
    out = b"".join(_text(1, value.name if value is not None else "") for value in node.inputs)
    out += b"".join(_text(2, value.name if value is not None else "") for value in node.outputs)
    out += _text(3, node.name) + _text(4, node.op)
    out += b"".join(_bytes(5, _attribute(name, value)) for name, value in node.attributes.items())
    return out + (_text(7, node.domain) if node.domain else b"")


def _constant(value: Value) -> bytes:
    attribute = _text(1, "value") + _bytes(5, _tensor(value)) + _int(20, 4)
    return _text(2, value.name) + _text(4, "Constant") + _bytes(5, attribute)


def _value_info(value: Value, batch: int | None = None) -> bytes:
    dims = b""
    for i, extent in enumerate(value.shape):
        is_batch = i == 0 and extent == batch
        dims += _bytes(1, _text(2, BATCH) if is_batch else _int(1, extent))
    kind = _bytes(1, _int(1, value.dtype) + _bytes(2, dims))
    return _text(1, value.name) + _bytes(2, kind)


def serialise(graph: Graph, batch: int) -> bytes:
    """Serialises the model. An input's first dimension becomes symbolic if it equals the batch; all other dimensions
    are numbers. A reader binds BATCH to `batch`."""
    body = b""
    written: set[Value] = set()
    domains = set()
    nodes, outputs = list(graph.nodes), list(graph.outputs)
    if graph.unread:  # all that no output needs would be removed
        outputs.append(Value(graph.unique("unread"), (1,), INT64))
        nodes.append(Node(outputs[-1].name, "View", "mdot", list(graph.unread), [outputs[-1]], {}))
    for node in nodes:
        for value in node.inputs:
            if value is not None and value.kind == "constant" and value not in written:
                written.add(value)
                body += _bytes(1, _constant(value))
        body += _bytes(1, _node(node))
        if node.domain:
            domains.add(node.domain)
    body += _text(2, graph.name)
    body += b"".join(_bytes(5, _tensor(value)) for value in graph.parameters)
    inputs = list(graph.inputs)
    if not any(value.shape and value.shape[0] == batch for value in inputs):
        inputs.append(Value(graph.unique("samples"), (batch,), 7))  # an unused input that records the batch
    body += b"".join(_bytes(11, _value_info(value, batch)) for value in inputs)
    body += b"".join(_bytes(12, _value_info(value)) for value in outputs)
    for node in nodes:
        if node.domain:
            body += b"".join(_bytes(13, _value_info(value)) for value in node.outputs if value is not None)
    opsets = [_text(1, "") + _int(2, OPSET), *(_text(1, domain) + _int(2, 1) for domain in sorted(domains))]
    model = _int(1, IR_VERSION) + _text(2, "mdot") + b"".join(_bytes(8, opset) for opset in opsets)
    return model + _bytes(7, body) + b"".join(_bytes(14, _text(1, key) + _text(2, text)) for key, text in _facts(graph))


def _facts(graph: Graph) -> list[tuple[str, str]]:
    """The program's properties, as metadata of the model: see frontend/job."""
    return [
        ("mdot.program", "1"),
        ("mdot.compiled", str(int(graph.is_compiled))),
        ("mdot.attention", "fused" if graph.fused_attentions > 0 else "written"),
        ("mdot.frozen", "\n".join(graph.frozen)),
        ("mdot.recomputed", "\n".join(graph.recomputed)),
        ("mdot.repeated", "\n".join(graph.repeated)),
        ("mdot.kept", "\n".join(graph.kept)),
        ("mdot.once_more", "\n".join(graph.more[1])),
        ("mdot.twice_more", "\n".join(graph.more[2])),
        ("mdot.offloaded", "\n".join(graph.offloaded)),
        ("mdot.ran_full", "\n".join(graph.ran["full"])),
        ("mdot.ran_half", "\n".join(graph.ran["half"])),
    ]
