"""Read and write ONNX files without the onnx package, as far as a reference predictor needs it.

Protobuf's wire format is a sequence of tag-value pairs, and a nested message is a byte string. Field numbers come
from onnx.proto3. reference.py writes a model with this module, and cpu_peers.py reads the weights.
"""

import struct
from array import array

FLOAT, INT64, BOOL = 1, 7, 9  # TensorProto.DataType


# ---- Writing -----------------------------------------------------------------------------------------------------------


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value):
    """One field: integers as varints, floats as four bytes, text and messages with a length prefix."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def tensor(name, kind, dims, data):
    """A TensorProto with raw_data; `data` is bytes."""
    return b"".join(field(1, d) for d in dims) + field(2, kind) + field(8, name) + field(9, data)


def floats(values):
    return array("f", values).tobytes()


def value_info(name, kind, dims):
    """A ValueInfoProto; a dimension is a number or the name of a symbol."""
    shape = b"".join(field(1, field(2 if isinstance(d, str) else 1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))


def attribute(name, value):
    """An AttributeProto: an integer, a float or a list of integers."""
    if isinstance(value, list):
        return field(1, name) + b"".join(field(8, v) for v in value) + field(20, 7)
    if isinstance(value, float):
        return field(1, name) + field(2, value) + field(20, 1)
    return field(1, name) + field(3, value) + field(20, 2)


def node(op, inputs, output, attributes):
    return (b"".join(field(1, i) for i in inputs) + field(2, output) + field(3, output) + field(4, op)
            + b"".join(field(5, attribute(k, v)) for k, v in attributes.items()))


def model(opset, nodes, initializers, inputs, outputs):
    graph = (b"".join(field(1, n) for n in nodes) + field(2, "graph") + b"".join(field(5, t) for t in initializers)
             + b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outputs))
    return field(1, 8) + field(2, "mdot") + field(7, graph) + field(8, field(2, opset))


# ---- Reading -----------------------------------------------------------------------------------------------------------


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value) of every field; a value is an integer, or bytes for any other type."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(data, at)
        elif wire == 2:
            size, at = _varint(data, at)
            value, at = data[at:at + size], at + size
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = data[at:at + size], at + size
        else:
            raise ValueError(f"wire type {wire} at byte {at}: not an ONNX file")
        yield number, value


def _texts(message, number):
    return [bytes(v).decode() for n, v in fields(message) if n == number]


def read_linears(path):
    """A predictor's parameters by module name: {"c1.weight": (dims, bytes), …}.

    Exporters name a MatMul's matrix by a number. The bias added to the result identifies the module. Those matrices
    are [inputs, outputs], and "t" is appended to `dims`. A Gemm's matrices are [outputs, inputs].
    """
    with open(path, "rb") as stream:
        data = memoryview(stream.read())
    graph = next(v for n, v in fields(data) if n == 7)
    tensors, nodes = {}, []
    for number, value in fields(graph):
        if number == 5:
            dims, raw, name = [], b"", ""
            for n, v in fields(value):
                if n == 1:
                    dims.append(v)
                elif n == 8:
                    name = bytes(v).decode()
                elif n == 9:
                    raw = v
            tensors[name] = (dims, raw)
        elif number == 1:
            nodes.append((_texts(value, 4)[0], _texts(value, 1), _texts(value, 2)[0]))
    matrix_of = {}
    for op, inputs, output in nodes:
        if op == "Identity" and inputs[0] in tensors:  # equal tensors are stored once
            tensors[output] = tensors[inputs[0]]
        elif op == "MatMul" and inputs[1] in tensors:
            matrix_of[output] = inputs[1]
        elif op == "Add":
            for bias, product in (inputs, inputs[::-1]):
                if product in matrix_of and bias.endswith(".bias"):
                    dims, raw = tensors[matrix_of[product]]
                    tensors[bias[:-len("bias")] + "weight"] = (dims + ["t"], raw)
    return tensors
