"""Write the reference predictor: a Transformer encoder over an operator sequence, with random weights, as ONNX.

    reference.py MODEL.onnx [--width 128] [--hidden 512] [--layers 4]

A token is the normalised sum of three parts, plus the position: an embedding of the operator type, an MLP over the
configuration, and an MLP over FLOPs and bytes. Pre-norm layers with masked attention in heads of 32 channels follow,
then a masked mean and a two-layer head. The graph has the same form as from PyTorch's exporter (decomposed GELU and
attention). The output is the same file every time. Standard library only.
"""

import argparse
import math
import random

import onnx_model as onnx

TYPES, CONFIGURATION, LOADS, POSITION, HEAD = 128, 16, 8, 16, 32


class Writer:
    """Nodes and initializers in call order; each call returns the result's name."""

    def __init__(self):
        self.nodes, self.initializers = [], []
        self.random = random.Random(1)

    def apply(self, op, *inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(onnx.node(op, inputs, name, attributes))
        return name

    def constant(self, kind, dims, data):
        name = f"k{len(self.initializers)}"
        self.initializers.append(onnx.tensor(name, kind, dims, data))
        return name

    def scalar(self, value):
        return self.constant(onnx.FLOAT, [], onnx.floats([value]))

    def integers(self, *values):
        return self.constant(onnx.INT64, [len(values)], b"".join(v.to_bytes(8, "little", signed=True) for v in values))

    def weight(self, name, dims, center, limit):
        count = math.prod(dims)
        values = [center + limit * (2 * self.random.random() - 1) for _ in range(count)]
        self.initializers.append(onnx.tensor(name, onnx.FLOAT, dims, onnx.floats(values)))
        return name

    def linear(self, x, name, rows, columns):
        """A linear layer with the weight distribution of torch.nn.Linear."""
        limit = 1 / math.sqrt(rows)
        matrix = self.weight(f"matrix.{name}", [rows, columns], 0, limit)
        product = self.apply("MatMul", x, matrix)
        return self.apply("Add", self.weight(f"{name}.bias", [columns], 0, limit), product)

    def norm(self, x, name, width):
        scale = self.weight(f"{name}.weight", [width], 1, 0.2)
        return self.apply("LayerNormalization", x, scale, self.weight(f"{name}.bias", [width], 0, 0.2), axis=-1,
                          epsilon=1e-5)

    def gelu(self, x):
        erf = self.apply("Erf", self.apply("Div", x, self.scalar(math.sqrt(2))))
        return self.apply("Mul", self.apply("Mul", x, self.apply("Add", erf, self.scalar(1))), self.scalar(0.5))

    def heads(self, x, width, perm):
        split = self.apply("Reshape", x, self.integers(0, 0, width // HEAD, HEAD))
        return self.apply("Transpose", split, perm=perm)

    def attention(self, x, name, bias, width):
        q = self.heads(self.linear(x, f"{name}.q", width, width), width, [0, 2, 1, 3])
        k = self.heads(self.linear(x, f"{name}.k", width, width), width, [0, 2, 3, 1])
        v = self.heads(self.linear(x, f"{name}.v", width, width), width, [0, 2, 1, 3])
        scores = self.apply("Mul", self.apply("MatMul", q, k), self.scalar(1 / math.sqrt(HEAD)))
        shares = self.apply("Softmax", self.apply("Add", scores, bias), axis=-1)
        mixed = self.apply("Transpose", self.apply("MatMul", shares, v), perm=[0, 2, 1, 3])
        return self.linear(self.apply("Reshape", mixed, self.integers(0, 0, width)), f"{name}.o", width, width)

    def layer(self, x, name, bias, width, hidden):
        x = self.apply("Add", x, self.attention(self.norm(x, f"{name}.n1", width), f"{name}.a", bias, width))
        inner = self.gelu(self.linear(self.norm(x, f"{name}.n2", width), f"{name}.f1", width, hidden))
        return self.apply("Add", x, self.linear(inner, f"{name}.f2", hidden, width))


def build(width, hidden, layers):
    w = Writer()
    types = w.apply("Gather", w.weight("emb.weight", [TYPES, width], 0, 1.7), "op_type")
    configuration = w.linear(w.gelu(w.linear("op_config", "c1", CONFIGURATION, width)), "c2", width, width)
    loads = w.linear(w.gelu(w.linear("op_load", "l1", LOADS, width)), "l2", width, width)
    x = w.norm(w.apply("Add", w.apply("Add", types, configuration), loads), "n0", width)
    x = w.apply("Add", x, w.linear("position", "pos", POSITION, width))

    shown = w.apply("Cast", "mask", to=onnx.FLOAT)
    bias = w.apply("Mul", w.apply("Sub", w.scalar(1), shown), w.scalar(-1e9))
    bias = w.apply("Unsqueeze", bias, w.integers(1, 2))
    for i in range(layers):
        x = w.layer(x, f"layers.{i}", bias, width, hidden)

    x = w.apply("Mul", w.norm(x, "nf", width), w.apply("Unsqueeze", shown, w.integers(-1)))
    count = w.apply("ReduceSum", shown, w.integers(1), keepdims=1)
    pooled = w.apply("Div", w.apply("ReduceSum", x, w.integers(1), keepdims=0), count)
    result = w.linear(w.gelu(w.linear(pooled, "h1", width, 64)), "h2", 64, 1)
    w.nodes.append(onnx.node("Identity", [result], "latency", {}))

    inputs = [onnx.value_info("op_type", onnx.INT64, [1, "N"]),
              onnx.value_info("op_config", onnx.FLOAT, [1, "N", CONFIGURATION]),
              onnx.value_info("op_load", onnx.FLOAT, [1, "N", LOADS]),
              onnx.value_info("position", onnx.FLOAT, [1, "N", POSITION]),
              onnx.value_info("mask", onnx.BOOL, [1, "N"])]
    return onnx.model(17, w.nodes, w.initializers, inputs, [onnx.value_info("latency", onnx.FLOAT, [1, 1])])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("output")
    parser.add_argument("--width", type=int, default=128, help="a multiple of 32")
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--layers", type=int, default=4)
    args = parser.parse_args()
    if args.width % HEAD != 0:
        parser.error(f"--width {args.width} is not a multiple of {HEAD}")
    with open(args.output, "wb") as stream:
        stream.write(build(args.width, args.hidden, args.layers))


if __name__ == "__main__":
    main()
