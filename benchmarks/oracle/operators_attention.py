"""Attention for random graphs: with fewer key heads, masks of every rank and kind, and as exporters spell it."""

import numpy as np
from onnx import TensorProto

from graphs import LENGTH, fixed
from operators import operator


@operator("GroupedQueries", weight=2)
def grouped_queries(g, op):
    """ONNX's Attention with fewer key heads, past keys, three-dimensional operands, masks of every rank and key lengths."""
    g.since("Attention", 23)
    batch, shared, groups, width = g.whole(1, 2), g.pick([1, 2]), g.pick([1, 2, 3]), g.pick([2, 8, 16])
    value_width = g.pick([width, 4])
    heads = shared * groups
    is_packed = g.chance(0.4)
    shapes = [fixed(batch, h, LENGTH, w) if not is_packed else fixed(batch, LENGTH, h * w)
              for h, w in ((heads, width), (shared, width), (shared, value_width))]
    q, k, v = (g.input("f32", s, "plain") for s in shapes)
    mask = g.pick([None, (LENGTH, LENGTH), fixed(1, LENGTH, LENGTH), fixed(batch, 1, LENGTH, LENGTH), fixed(batch, heads, LENGTH, LENGTH),
                   fixed(1, LENGTH), fixed(batch, 1, 1, LENGTH), fixed(1, heads, 1, LENGTH)])
    mask = g.input(g.pick(["bool", "f32"]), mask, "plain") if mask is not None else None
    out = fixed(batch, heads, LENGTH, value_width) if not is_packed else fixed(batch, LENGTH, heads * value_width)
    counts = {"q_num_heads": heads, "kv_num_heads": shared} if is_packed else {}
    return g.node("Attention", [q, k, v, mask], [("f32", out)], False, rounding=64, sums=True, is_causal=g.whole(0, 1),
                  scale=g.pick([None, 0.3, 1.0]), softcap=g.pick([None, None, 2.0]), **counts)


@operator("SpelledAttention", weight=3)
def spelled_attention(g, op):
    """Attention as exporters spell it: repeated key heads, masks of every rank and kind, biases, and scales at each place."""
    g.require(g.opset >= 13)
    batch, shared, groups, width = g.whole(1, 2), g.pick([1, 2]), g.pick([1, 1, 2, 3]), g.pick([4, 8, 16])
    heads = shared * groups
    wide = fixed(batch, heads, LENGTH, width)
    scores_shape = fixed(batch, heads, LENGTH, LENGTH)

    def inner(name, inputs, shape, exact=False, dtype="f32", **options):
        return g.node(name, inputs, [(dtype, shape)], exact, keep=False, **options)

    def operand(count):
        """A projection's columns turned into heads."""
        x = g.input("f32", fixed(batch, LENGTH, count * width), "plain")
        y = inner("Reshape", [x, g.integers([batch, -1, count, width])], fixed(batch, LENGTH, count, width), True)
        return inner("Transpose", [y], fixed(batch, count, LENGTH, width), True, perm=[0, 2, 1, 3])

    def repeated(x):
        if groups == 1:
            return x
        y = inner("Unsqueeze", [x, g.integers([2])], fixed(batch, shared, 1, LENGTH, width), True)
        ones = g.constant(np.ones((1, 1, groups, 1, 1), np.float32))
        tall = fixed(batch, shared, groups, LENGTH, width)
        y = inner("Mul", [y, ones], tall, True) if g.chance(0.3) else inner("Tile", [y, g.integers([1, 1, groups, 1, 1])], tall, True)
        return inner("Reshape", [y, g.integers([batch, heads, -1, width])], wide, True)

    q, k, v = operand(heads), repeated(operand(shared)), repeated(operand(shared))
    scale = float(g.pick([width**-0.5, 1.0, 0.3]))
    place = g.pick(["scores", "query", "both", "key", "divided"])
    half = g.constant(np.float32(scale**0.5))
    if place in ("query", "both"):
        q = inner("Mul", [q, g.constant(np.float32(scale)) if place == "query" else half], wide)
    if place == "key":
        k = inner("Mul", [k, g.constant(np.float32(scale))], wide)
    turned = inner("Transpose", [k], fixed(batch, heads, width, LENGTH), k.exact, perm=[0, 1, 3, 2])
    if place == "both":
        turned = inner("Mul", [turned, half], turned.shape)
    scores = inner("MatMul", [q, turned], scores_shape, rounding=64, sums=True)
    if place == "scores":
        scores = inner("Mul", [scores, g.constant(np.float32(scale))], scores_shape)
    if place == "divided":
        scores = inner("Div", [scores, g.constant(np.float32(1 / scale))], scores_shape)
    if g.chance(0.3):
        bias = g.input("f32", g.pick([fixed(heads, LENGTH, LENGTH), fixed(1, heads, LENGTH, LENGTH), (LENGTH, LENGTH),
                                      fixed(heads, 1, LENGTH), fixed(batch, 1, LENGTH, LENGTH), fixed(1, 1, LENGTH, 1)]), "plain")
        scores = inner("Add", [bias, scores] if g.chance(0.5) else [scores, bias], scores_shape)
    kind = g.pick(["none", "bool", "i64", "f32", "causal", "not"])
    least = g.constant(np.float32(g.pick([-1e4, -65504, -1e9, -3.4028235e38, -np.inf])))
    shapes = [(LENGTH,), fixed(1, LENGTH), fixed(batch, 1, 1, LENGTH), (LENGTH, LENGTH), fixed(1, LENGTH, LENGTH),
              fixed(batch, 1, LENGTH, LENGTH), fixed(batch, heads, LENGTH, LENGTH), fixed(1, 1, LENGTH, LENGTH)]
    shape = g.pick(shapes)
    if kind in ("bool", "not"):
        mask = g.input("bool", shape)
        if kind == "not" or g.chance(0.5):
            mask = inner("Not", [mask], shape, True, "bool")
        scores = inner("Where", [mask, least, scores] if kind == "not" else [mask, scores, least], scores_shape)
    elif kind == "i64":
        mask = g.input("i64", shape, "index", (0, 2))
        mask = inner("Cast", [mask], shape, True, to=TensorProto.FLOAT)
        mask = inner("Sub", [g.constant(np.float32(1)), mask], shape, True)
        g.require(np.isfinite(least.array))
        mask = inner("Mul", [mask, least], shape, True)
        scores = inner("Add", [scores, mask], scores_shape)
    elif kind == "f32":
        scores = inner("Add", [scores, g.input("f32", shape, "plain")], scores_shape)
    elif kind == "causal":
        g.since("Trilu", 14)
        size = inner("Shape", [q], fixed(4), True, "i64")
        n = inner("Gather", [size, g.integers([2])], fixed(1), True, "i64")
        both = inner("Concat", [n, n], fixed(2), True, "i64", axis=0)
        full = inner("Expand", [least, both], (LENGTH, LENGTH), True)
        g.require(np.isfinite(least.array))
        upper = inner("Trilu", [full, g.constant(np.int64(1))], (LENGTH, LENGTH), True, upper=1)
        scores = inner("Add", [scores, upper], scores_shape)
    weights = inner("Softmax", [scores], scores_shape, axis=g.pick([-1, 3]), rounding=32, sums=True)
    if np.isinf(least.array) and kind in ("bool", "not") and g.chance(0.7):  # PyTorch's guard for rows without keys
        is_nan = inner("IsNaN", [weights], scores_shape, True, "bool")
        weights = inner("Where", [is_nan, g.constant(np.float32(0)), weights], scores_shape)
    y = inner("MatMul", [weights, v], wide, rounding=64, sums=True)
    y = inner("Transpose", [y], fixed(batch, LENGTH, heads, width), perm=[0, 2, 1, 3])
    return g.node("Reshape", [y, g.integers([batch, -1, heads * width])], [("f32", fixed(batch, LENGTH, heads * width))], False)
