"""Operators with weights or state for random graphs: products, convolutions, pooling, norms, attention, recurrent
networks, quantised forms, trees, linear models and loops."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from graphs import LENGTH, Value, fixed, is_fixed
from operators import operator

MICROSOFT = "com.microsoft"


def rows(g, rank=None):
    """A value whose last dimension is fixed."""
    return g.operand("f32", rank=rank, least_rank=1, where=lambda v: is_fixed(v.shape[-1]))


def batch_rows(g, width):
    return g.like(Value("", "f32", fixed(g.whole(1, 3), LENGTH, width), True))


def size(dim):
    return dim[1]


# ---- Products --------------------------------------------------------------------------------------------------------


@operator("MatMul", "FusedMatMul", weight=2)
def matmul(g, op):
    form = g.pick(["weights", "weights", "run time", "transposed", "outer"])
    fused = {"alpha": float(g.pick([1.0, 0.25]))} if op == "FusedMatMul" else {}
    domain = MICROSOFT if fused else ""
    if form == "weights":
        x = rows(g, rank=None if not fused else g.whole(2, 3))
        g.require(x.rank >= 2)
        y = g.weights(size(x.shape[-1]), g.pick([1, 3, 8, 16, 17, 33]))
        if fused and g.chance(0.4):
            y = g.weights(g.pick([3, 8]), size(x.shape[-1]))
            fused["transB"] = 1
        out = x.shape[:-1] + (y.shape[0 if fused.get("transB") else 1],)
    else:
        inner = (0, g.pick([1, 3, 8, 16, 20]))
        lead = fixed(*([g.whole(1, 3)] * g.whole(0, 2)))
        x = g.like(Value("", "f32", lead + (LENGTH, inner), True))
        if form == "run time":
            y = g.input("f32", lead + (inner, (0, g.pick([1, 4, 9]))))
            out = x.shape[:-1] + y.shape[-1:]
        elif form == "transposed":
            y = g.input("f32", lead + (inner, LENGTH))
            out = lead + (LENGTH, LENGTH)
        else:
            x = g.input("f32", lead + (inner, LENGTH))
            y = g.input("f32", lead + (LENGTH, (0, g.pick([1, 5, 8]))))
            out = lead + (inner, y.shape[-1])
    return g.node(op, [x, y], [("f32", out)], False, domain=domain, rounding=32, sums=True, **fused)


@operator("Gemm", "FusedGemm")
def gemm(g, op):
    inner, width = g.pick([1, 3, 8, 16, 20]), g.pick([1, 4, 8, 17])
    trans_a = g.chance(0.3)
    x = g.like(Value("", "f32", fixed(inner, LENGTH) if trans_a else fixed(LENGTH, inner), True))
    trans_b = g.chance(0.5)
    y = g.weights(width, inner) if trans_b else g.weights(inner, width)
    bias = g.pick([g.weights(width), g.weights(1, width), g.weights(1), None if g.opset >= 11 else g.weights(width)])
    attributes = {"transA": int(trans_a), "transB": int(trans_b), "alpha": float(g.pick([1.0, 0.5])), "beta": float(g.pick([1.0, 2.0]))}
    if op == "FusedGemm":
        attributes["activation"] = g.pick(["Relu", "Tanh", "Sigmoid", "LeakyRelu"])
    return g.node(op, [x, y, bias], [("f32", fixed(LENGTH, width))], False, domain=MICROSOFT if op == "FusedGemm" else "", rounding=32,
                  sums=True, **attributes)


@operator("Einsum")
def einsum(g, op):
    g.since(op, 12)
    n, k, m, b = LENGTH, (0, g.pick([2, 8])), (0, g.pick([3, 8])), (0, g.whole(1, 3))
    equation, shapes, out = g.pick([
        ("ik,kj->ij", [(n, k), (k, m)], (n, m)), ("bik,bjk->bij", [(b, n, k), (b, n, k)], (b, n, n)),
        ("bij,bjk->bik", [(b, n, n), (b, n, k)], (b, n, k)), ("ij->ji", [(n, k)], (k, n)), ("ij->i", [(n, k)], (n,)),
        ("i,j->ij", [(n,), (k,)], (n, k)), ("ij,ij->i", [(n, k), (n, k)], (n,)), ("...k,km->...m", [(b, n, k), (k, m)], (b, n, m)),
        ("bnk,km->bmn", [(b, n, k), (k, m)], (b, m, n))])
    inputs = [g.weights(*[d[1] for d in s]) if all(is_fixed(d) for d in s) else g.like(Value("", "f32", s, True)) for s in shapes]
    return g.node(op, inputs, [("f32", out)], False, rounding=32, sums=True, equation=equation)


# ---- Convolutions and windows ------------------------------------------------------------------------------------------


def planes(g, channels, spatial):
    """(batch, channels, …) with the length as one spatial dimension."""
    others = [(0, g.whole(3, 7)) for _ in range(spatial - 1)]
    return g.like(Value("", "f32", fixed(g.whole(1, 2), channels) + tuple(others) + (LENGTH,), True)), spatial


def window(g, spatial, dilated=True):
    kernel = [g.whole(1, 3) for _ in range(spatial)]
    dilations = [g.whole(1, 2) if dilated and g.chance(0.3) else 1 for _ in range(spatial)]
    reach = [(k - 1) * d for k, d in zip(kernel, dilations)]
    before = [g.whole(0, r) for r in reach]
    after = [g.whole(0, r) for r in reach]
    return kernel, dilations, reach, before, after


@operator("Conv", weight=2)
def conv(g, op):
    spatial = g.whole(1, 2)
    groups = g.pick([1, 1, 2])
    channels, made = groups * g.whole(1, 4), groups * g.whole(1, 5)
    x, _ = planes(g, channels, spatial)
    kernel, dilations, reach, before, after = window(g, spatial)
    shape = [(a, b + p + q - r) for (a, b), p, q, r in zip(x.shape[2:], before, after, reach)]
    g.require(all(a > 0 or b > 0 for a, b in shape))
    g.min_length = max(g.min_length, reach[-1] + 1)
    bias = g.weights(made) if g.chance(0.6) else None
    return g.node(op, [x, g.weights(made, channels // groups, *kernel), bias], [("f32", x.shape[:1] + fixed(made) + tuple(shape))], False,
                  rounding=32, sums=True, group=groups, kernel_shape=kernel if g.chance(0.7) else None, dilations=dilations,
                  pads=before + after)


@operator("ConvTranspose")
def conv_transpose(g, op):
    channels, made = g.whole(1, 3), g.whole(1, 3)
    spatial = g.whole(1, 2)
    x, _ = planes(g, channels, spatial)
    kernel = [g.whole(1, 4) for _ in range(spatial)]
    strides = [g.whole(1, 2) if i < spatial - 1 or g.chance(0.5) else 1 for i in range(spatial)]
    before = [g.whole(0, k - 1) if k > 1 and g.chance(0.5) else 0 for k in kernel]
    shape = [(a * s, (b - 1) * s + k - p) for (a, b), s, k, p in zip(x.shape[2:], strides, kernel, before)]
    g.require(all(a > 0 or b > 0 for a, b in shape))
    g.min_length = max(g.min_length, 4)
    return g.node(op, [x, g.weights(channels, made, *kernel), g.weights(made) if g.chance(0.5) else None],
                  [("f32", x.shape[:1] + fixed(made) + tuple(shape))], False, rounding=32, sums=True, strides=strides,
                  pads=before + [0] * spatial)


@operator("MaxPool", "AveragePool", "LpPool")
def pool(g, op):
    spatial = g.whole(1, 2)
    x, _ = planes(g, g.whole(1, 3), spatial)
    kernel, _, reach, before, after = window(g, spatial, dilated=False)
    g.min_length = max(g.min_length, reach[-1] + 1)
    shape = [(a, b + p + q - r) for (a, b), p, q, r in zip(x.shape[2:], before, after, reach)]
    g.require(all(a > 0 or b > 0 for a, b in shape))
    attributes = {"count_include_pad": g.whole(0, 1)} if op == "AveragePool" else {"p": g.whole(1, 2)} if op == "LpPool" else {}
    return g.node(op, [x], [("f32", x.shape[:2] + tuple(shape))], x.exact and op == "MaxPool", rounding=0 if op == "MaxPool" else 32,
                  sums=True, kernel_shape=kernel, pads=before + after, **attributes)


@operator("GlobalMaxPool", "GlobalAveragePool")
def global_pool(g, op):
    x, spatial = planes(g, g.whole(1, 3), g.whole(1, 2))
    return g.node(op, [x], [("f32", x.shape[:2] + fixed(*[1] * spatial))], False, rounding=32, sums=True)


@operator("LRN")
def lrn(g, op):
    x, _ = planes(g, g.whole(1, 6), 2)
    return g.same(op, x, False, rounding=32, sums=True, size=g.pick([1, 3, 5]), alpha=0.1, bias=1.5)


@operator("Resize")
def resize(g, op):
    g.since(op, 11)
    x, _ = planes(g, g.whole(1, 2), g.whole(1, 2))
    factors = [1, 1] + [g.pick([1, 2, 3]) for _ in x.shape[2:]]
    mode = g.pick(["nearest", "linear", "cubic"])
    g.require(mode != "cubic" or x.rank == 4)
    place = g.pick(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
    shape = [(a * f, b * f) for (a, b), f in zip(x.shape, factors)]
    divisor = g.pick([1, 1, 2, 3, 4, 5])
    if divisor > 1 and place != "align_corners":  # the length over a whole number
        factors[-1], shape[-1] = np.float32(1) / np.float32(divisor), None
        g.min_length = max(g.min_length, 2 * divisor)
    attributes = {"nearest_mode": g.pick(["floor", "ceil", "round_prefer_floor"])} if mode == "nearest" else {}
    g.min_length = max(g.min_length, 2)
    exact = mode == "nearest" and place in ("half_pixel", "asymmetric")
    g.require(mode != "nearest" or exact)  # other positions round at ties
    is_rounded = shape[-1] is None  # a rounded length has no form as a pair
    shape[-1] = (1, 1) if is_rounded else shape[-1]
    y = g.node(op, [x, g.constant(np.zeros(0, np.float32)), g.constant(np.array(factors, np.float32))], [("f32", shape)],
               exact and x.exact, rounding=64, sums=True, mode=mode, coordinate_transformation_mode=place, **attributes)
    y.content = "result" if is_rounded else "any"  # no other operator takes it
    return y


@operator("DFT")
def dft(g, op):
    g.since(op, 17)
    kind = g.pick([1, 2])
    n = g.pick([(0, 4), (0, 7), LENGTH])
    x = g.input("f32", fixed(g.whole(1, 2), n, kind))
    half = kind == 1 and is_fixed(n) and g.chance(0.5)
    out = (0, size(n) // 2 + 1) if half else n
    attributes = {"onesided": int(half), "inverse": int(kind == 2 and g.chance(0.5))}
    inputs = [x]
    if g.since(op, 20):
        inputs += [None, g.constant(np.int64(1))]
    else:
        attributes["axis"] = 1
    return g.node(op, inputs, [("f32", x.shape[:1] + (out, (0, 2)))], False, rounding=64, sums=True, **attributes)


@operator("GridSample")
def grid_sample(g, op):
    g.since(op, 16)
    x = g.input("f32", fixed(1, g.whole(1, 2), g.whole(2, 5), g.whole(2, 5)))
    grid = g.input("f32", fixed(1, LENGTH, g.whole(1, 4), 2), "unit")
    mode = ("bilinear" if g.opset < 20 else "linear")
    return g.node(op, [x, grid], [("f32", x.shape[:2] + grid.shape[1:3])], False, rounding=64, sums=True, mode=mode,
                  padding_mode=g.pick(["zeros", "border", "reflection"]), align_corners=g.whole(0, 1))


# ---- Norms -----------------------------------------------------------------------------------------------------------


@operator("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
def layer_norm(g, op):
    x = rows(g)
    width = size(x.shape[-1])
    weights = [g.weights(width)] + ([g.weights(width)] if op[0] == "L" and g.chance(0.7) else [])
    g.require(op != "SimplifiedLayerNormalization" or g.opset < 23)
    if op == "SimplifiedLayerNormalization":  # of ONNX Runtime, in ONNX's domain
        made = g.name("v")
        g.nodes.append(helper.make_node(op, [x.name, weights[0].name], [made], axis=-1, epsilon=1e-5))
        g.values.append(Value(made, "f32", x.shape, False))
        g.rounding += 64
        g.sums = True
        return g.values[-1]
    return g.node(op, [x, *weights], [("f32", x.shape)], False, rounding=64, sums=True, axis=-1, epsilon=float(g.pick([1e-5, 1e-2])))


@operator("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
def skip_norm(g, op):
    width = g.pick([3, 8, 16, 17])
    x, y = batch_rows(g, width), None
    y = g.like(x)
    weights = [g.weights(width) for _ in range(3 if op == "SkipLayerNormalization" else 2)]
    weights = weights[:1] + weights[1:] if g.chance(0.6) else weights[:-1]
    return g.node(op, [x, y, *weights], [("f32", x.shape)], False, domain=MICROSOFT, rounding=64, sums=True, epsilon=1e-5)


@operator("GroupNormalization", "InstanceNormalization", "BatchNormalization", "MeanVarianceNormalization", "LpNormalization")
def channel_norm(g, op):
    channels = g.pick([2, 4])
    x, _ = planes(g, channels, g.whole(1, 2))
    options = {"rounding": 64, "sums": True}
    if op == "MeanVarianceNormalization":
        return g.same(op, x, False, axes=[x.rank - 1], **options)
    if op == "LpNormalization":
        return g.same(op, x, False, axis=g.pick([-1, 1]), p=g.whole(1, 2), **options)
    g.min_length = max(g.min_length, 2)
    weights = [g.weights(channels), g.weights(channels)]
    if op == "BatchNormalization":
        weights += [g.weights(channels), g.constant(np.abs(g.rng.normal(size=channels)).astype(np.float32) + 0.1)]
    if op == "GroupNormalization":
        g.since(op, 21)
        options["num_groups"] = 2
    return g.node(op, [x, *weights], [("f32", x.shape)], False, epsilon=1e-3, **options)


# ---- Attention -------------------------------------------------------------------------------------------------------


@operator("Attention", weight=2)
def attention(g, op):
    g.since(op, 23)
    batch, heads, width = g.whole(1, 2), g.pick([1, 2, 4]), g.pick([2, 8, 16])
    shape = fixed(batch, heads, LENGTH, width)
    q, k, v = (g.input("f32", shape) for _ in range(3))
    mask = g.pick([None, None, ("bool", (LENGTH, LENGTH)), ("f32", (LENGTH, LENGTH)), ("f32", fixed(1, 1, LENGTH, LENGTH))])
    mask = g.input(*mask) if mask else None
    return g.node(op, [q, k, v, mask], [("f32", shape)], False, rounding=64, sums=True, is_causal=int(g.chance(0.3)),
                  scale=g.pick([None, 0.3]), softcap=g.pick([None, None, 2.0]))


@operator("MultiHeadAttention")
def multi_head_attention(g, op):
    batch, heads, width = g.whole(1, 2), g.pick([1, 2, 4]), g.pick([2, 8])
    shape = fixed(batch, LENGTH, heads * width)
    bias = g.weights(3 * heads * width) if g.chance(0.4) else None
    mask = g.input("i32", fixed(batch, LENGTH), "index", (0, 2)) if g.chance(0.3) else None
    scores = g.input("f32", fixed(batch, heads, LENGTH, LENGTH)) if g.chance(0.3) else None
    return g.node(op, [g.input("f32", shape) for _ in range(3)] + [bias, mask, scores], [("f32", shape)], False, domain=MICROSOFT,
                  rounding=64, sums=True, num_heads=heads, unidirectional=int(g.chance(0.2)))


@operator("MSAttention")
def microsoft_attention(g, op):
    batch, heads, width = g.whole(1, 2), g.pick([1, 2]), g.pick([2, 8])
    hidden = heads * width
    x = batch_rows(g, g.pick([3, 8]))
    batch = size(x.shape[0])
    inputs = [x, g.weights(size(x.shape[2]), 3 * hidden), g.weights(3 * hidden)]
    outputs = [("f32", fixed(batch, LENGTH, hidden))]
    form = g.pick(["plain", "mask", "past"])
    if form == "mask":
        inputs.append(g.input("i32", fixed(batch, LENGTH), "index", (0, 2)))
    if form == "past":
        past = g.pick([1, 5])
        inputs += [None, g.input("f32", fixed(2, batch, heads, past, width))]
        outputs.append(("f32", fixed(2, batch, heads, (1, past), width)))
    return g.node("Attention", inputs, outputs, False, domain=MICROSOFT, rounding=64, sums=True, num_heads=heads,
                  unidirectional=int(g.chance(0.3)))


@operator("RotaryEmbedding")
def rotary(g, op):
    g.since(op, 23)
    heads, width = g.pick([1, 3]), g.pick([4, 8])
    x = g.input("f32", fixed(1, heads, LENGTH, width))
    tables = [g.input("f32", fixed(1, LENGTH, width // 2)) for _ in range(2)]
    return g.node(op, [x, *tables], [("f32", x.shape)], False, interleaved=g.whole(0, 1))


# ---- Recurrent networks and loops -------------------------------------------------------------------------------------


@operator("LSTM", "GRU", "RNN", weight=2)
def recurrent(g, op):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    batch, width, hidden = g.whole(1, 3), g.pick([1, 4, 8]), g.pick([1, 3, 8])
    direction = g.pick(["forward", "reverse", "bidirectional"])
    sides = 2 if direction == "bidirectional" else 1
    x = g.like(Value("", "f32", fixed(LENGTH, batch, width), True))
    inputs = [x, g.weights(sides, gates * hidden, width, scale=0.5), g.weights(sides, gates * hidden, hidden, scale=0.5)]
    if g.chance(0.6):
        inputs.append(g.weights(sides, 2 * gates * hidden, scale=0.5))
        if g.chance(0.4):
            inputs += [None, g.input("f32", fixed(sides, batch, hidden))]
    attributes = {"linear_before_reset": g.whole(0, 1)} if op == "GRU" else {}
    outputs = [("f32", fixed(LENGTH, sides, batch, hidden)), ("f32", fixed(sides, batch, hidden))]
    outputs += [("f32", fixed(sides, batch, hidden))] if op == "LSTM" else []
    return g.node(op, inputs, outputs, False, rounding=128, sums=True, hidden_size=hidden, direction=direction, **attributes)


def info(name, dtype, shape):
    return helper.make_tensor_value_info(name, dtype, shape)


@operator("Loop")
def loop(g, op):
    """Carries a vector through a constant number of steps, or one step per unit of length."""
    width = g.pick([1, 4, 17])
    f32, matrix = TensorProto.FLOAT, g.weights(width, width, scale=0.3)
    start = g.input("f32", fixed(width))
    body = helper.make_graph(
        [helper.make_node("MatMul", ["state", matrix.name], ["mixed"]), helper.make_node("Tanh", ["mixed"], ["next"]),
         helper.make_node("Identity", ["going"], ["still"]), helper.make_node("Neg", ["next"], ["row"])], "body",
        [info("step", TensorProto.INT64, []), info("going", TensorProto.BOOL, []), info("state", f32, [width])],
        [info("still", TensorProto.BOOL, []), info("next", f32, [width]), info("row", f32, [width])])
    count = g.whole(1, 4)
    trips, steps = g.constant(np.int64(count)), (0, count)
    if g.chance(0.5):
        value = g.operand(rank=2, where=lambda v: v.shape[0] == LENGTH)
        shape = g.node("Shape", [value], [("i64", fixed(2))], True, keep=False)
        trips = g.node("Gather", [shape, g.constant(np.int64(0))], [("i64", ())], True, keep=False)
        steps = LENGTH
    return g.node(op, [trips, g.constant(np.array(True)), start], [("f32", fixed(width)), ("f32", fixed(steps, width))], False,
                  rounding=128, sums=True, body=body)


@operator("Scan")
def scan(g, op):
    g.since(op, 9)
    width = g.pick([1, 4, 17])
    f32 = TensorProto.FLOAT
    body = helper.make_graph(
        [helper.make_node("Mul", ["state", "x"], ["product"]), helper.make_node("Add", ["product", "x"], ["sum"]),
         helper.make_node("Sigmoid", ["sum"], ["next"]), helper.make_node("Identity", ["next"], ["row"])], "body",
        [info("state", f32, [width]), info("x", f32, [width])], [info("next", f32, [width]), info("row", f32, [width])])
    inputs = [g.input("f32", fixed(width)), g.like(Value("", "f32", fixed(LENGTH, width), True))]
    reverse = [g.whole(0, 1)]
    return g.node(op, inputs, [("f32", fixed(width)), ("f32", fixed(LENGTH, width))], False, rounding=128, sums=True, body=body,
                  num_scan_inputs=1, scan_input_directions=reverse, scan_output_directions=reverse)


# ---- Quantised forms -------------------------------------------------------------------------------------------------


def scale_and_zero(g, dtype, low=0.02):
    zero = g.whole(100, 150) if dtype == "u8" else g.whole(-5, 5)
    return g.constant(np.float32(low * (1 + g.rng.random()))), g.constant(np.array(zero), dtype)


@operator("QuantizeLinear")
def quantise(g, op):
    g.since(op, 10)
    x = g.operand(exact=True)
    scale, zero = g.constant(np.float32(2.0**-g.whole(2, 6))), g.constant(np.array(g.whole(0, 5)), g.pick(["u8", "i8"]))
    return g.node(op, [x, scale, zero], [(zero.dtype, x.shape)], True)


@operator("DequantizeLinear")
def dequantise(g, op):
    g.since(op, 10)
    x = g.operand(("u8", "i8"), exact=True, least_rank=1)
    scale, zero = scale_and_zero(g, x.dtype)
    return g.node(op, [x, scale, zero], [("f32", x.shape)], False)


@operator("DynamicQuantizeLinear")
def dynamic_quantise(g, op):
    g.since(op, 11)
    x = g.input("f32", g.new_shape())
    g.sums = True
    return g.node(op, [x], [("u8", x.shape), ("f32", ()), ("u8", ())], True)


@operator("MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv")
def integer_products(g, op):
    g.since(op, 10)
    kind = g.pick(["u8", "i8"]) if op == "QLinearMatMul" else "u8"
    width, made = g.pick([1, 4, 16, 20]), g.pick([1, 3, 8])
    is_conv = "Conv" in op
    shape = fixed(1, width, LENGTH) if is_conv else fixed(LENGTH, width)
    x = g.input(kind, shape)
    sizes = (made, width, 3) if is_conv else (width, made)
    y = g.constant(g.rng.integers(-50, 50, size=sizes), "i8")
    out = fixed(1, made, LENGTH) if is_conv else fixed(LENGTH, made)
    pads = {"pads": [1, 1]} if is_conv else {}
    if op.endswith("Integer"):
        zeros = [g.constant(np.array(g.whole(0, 9)), kind)] if g.chance(0.6) else []
        return g.node(op, [x, y, *zeros], [("i32", out)], True, **pads)
    (xs, xz), (ys, yz), (zs, zz) = scale_and_zero(g, kind), scale_and_zero(g, "i8"), scale_and_zero(g, kind, low=0.3)
    return g.node(op, [x, xs, xz, y, ys, yz, zs, zz], [(kind, out)], True, **pads)


@operator("MatMulNBits")
def nbits(g, op):
    bits, block = g.pick([4, 8]), g.pick([16, 32])
    rows_, made = g.pick([16, 32, 40]), g.pick([1, 3, 16, 17])
    blocks = -(-rows_ // block)
    x = g.like(Value("", "f32", fixed(LENGTH, rows_), True))
    packed = g.constant(g.rng.integers(0, 256, size=(made, blocks, block * bits // 8)), "u8")
    scales = g.constant((g.rng.random((made, blocks)) * 0.1).astype(np.float32))
    zeros = g.constant(g.rng.integers(0, 256, size=(made, -(-blocks * bits // 8))), "u8") if g.chance(0.5) else None
    return g.node(op, [x, packed, scales, zeros], [("f32", fixed(LENGTH, made))], False, domain=MICROSOFT, rounding=64, sums=True,
                  K=rows_, N=made, bits=bits, block_size=block)


# ---- Trees and linear models -----------------------------------------------------------------------------------------


def grown(g, features, leaves, targets):
    """The attributes of a TreeEnsembleRegressor: random binary trees."""
    a = {key: [] for key in ("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_values", "nodes_modes", "nodes_truenodeids",
                             "nodes_falsenodeids", "nodes_missing_value_tracks_true", "target_treeids", "target_nodeids", "target_ids",
                             "target_weights")}

    def add(tree, node, mode, feature=0, value=0.0, yes=0, no=0):
        for key, item in zip(list(a)[:8], (tree, node, feature, value, mode, yes, no, g.whole(0, 1) if mode != "LEAF" else 0)):
            a[key].append(item)

    for tree in range(g.whole(1, 5)):
        open_nodes, count = [0], 1
        while open_nodes:
            node = open_nodes.pop(0)
            if count + 2 <= 2 * leaves and g.chance(0.8):
                add(tree, node, "BRANCH_LEQ", g.whole(0, features - 1), float(np.float32(g.rng.normal())), count, count + 1)
                open_nodes += [count, count + 1]
                count += 2
            else:
                add(tree, node, "LEAF")
                for key, item in zip(list(a)[8:], (tree, node, g.whole(0, targets - 1), float(np.float32(g.rng.normal())))):
                    a[key].append(item)
    return a


@operator("TreeEnsembleRegressor", weight=2)
def trees(g, op):
    features, targets = g.pick([1, 4, 9]), g.pick([1, 1, 3])
    x = g.input("f32", fixed(LENGTH, features))
    attributes = grown(g, features, g.pick([2, 8, 20]), targets)
    if targets == 1 and g.chance(0.4):
        attributes["base_values"] = [0.5]
    return g.node(op, [x], [("f32", fixed(LENGTH, targets))], False, domain="ai.onnx.ml", rounding=32, n_targets=targets,
                  aggregate_function=g.pick(["SUM", "SUM", "AVERAGE"]), **attributes)


@operator("TreeEnsemble")
def joined_trees(g, op):
    """The same trees in version 5's form: lists of inner nodes and leaves."""
    features, targets = g.pick([1, 4, 9]), g.pick([1, 1, 3])
    x = g.input("f32", fixed(LENGTH, features))
    a = grown(g, features, g.pick([2, 8, 20]), targets)
    rows = list(zip(*(a[k] for k in list(a)[:8])))
    places, inner, leaves = {}, [], []
    leaf_of = {(t, n): (i, w) for t, n, i, w in zip(*(a[k] for k in list(a)[8:12]))}
    for row in rows:
        kind = leaves if row[4] == "LEAF" else inner
        places[row[0], row[1]] = (len(kind), int(row[4] == "LEAF"))
        kind.append(row)
    roots = []
    for tree in sorted({row[0] for row in rows}):
        place, is_leaf = places[tree, 0]
        if is_leaf:  # a node whose branches lead to the same leaf
            places[tree, -1] = (place, 1)
            inner.append((tree, -2, 0, 0.0, "BRANCH_LEQ", -1, -1, 0))
            place = len(inner) - 1
        roots.append(place)
    yes = [places[row[0], row[5]] for row in inner]
    no = [places[row[0], row[6]] for row in inner]
    numbers = lambda kind, items: numpy_helper.from_array(np.array(items, kind))  # noqa: E731
    return g.node(op, [x], [("f32", fixed(LENGTH, targets))], False, domain="ai.onnx.ml", rounding=32, n_targets=targets,
                  aggregate_function=g.pick([0, 1, 1, 2, 3]), tree_roots=roots, nodes_modes=numbers(np.uint8, [0] * len(inner)),
                  nodes_splits=numbers(np.float32, [row[3] for row in inner]), nodes_featureids=[row[2] for row in inner],
                  nodes_truenodeids=[p for p, _ in yes], nodes_trueleafs=[leaf for _, leaf in yes],
                  nodes_falsenodeids=[p for p, _ in no], nodes_falseleafs=[leaf for _, leaf in no],
                  nodes_missing_value_tracks_true=[row[7] for row in inner],
                  leaf_targetids=[leaf_of[row[0], row[1]][0] for row in leaves],
                  leaf_weights=numbers(np.float32, [leaf_of[row[0], row[1]][1] for row in leaves]))


@operator("LinearRegressor", "Scaler", "Normalizer", "Binarizer")
def linear_model(g, op):
    features = g.pick([1, 4, 9])
    x = g.input("f32", fixed(LENGTH, features))
    draw = lambda n: [float(np.float32(v)) for v in g.rng.normal(size=n)]  # noqa: E731
    targets = g.whole(1, 3)
    attributes = {"LinearRegressor": lambda: {"coefficients": draw(features * targets), "intercepts": draw(targets), "targets": targets},
                  "Scaler": lambda: {"offset": draw(features), "scale": draw(features)},
                  "Normalizer": lambda: {"norm": g.pick(["L1", "L2"])}, "Binarizer": lambda: {"threshold": 0.25}}[op]()
    width = targets if op == "LinearRegressor" else features
    return g.node(op, [x], [("f32", fixed(LENGTH, width))], op == "Binarizer", domain="ai.onnx.ml", rounding=32,
                  sums=op in ("LinearRegressor", "Normalizer"), **attributes)


# ---- Losses ----------------------------------------------------------------------------------------------------------


@operator("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
def loss(g, op):
    g.since(op, 12)
    classes = g.pick([2, 5])
    x = g.input("f32", fixed(LENGTH, classes))
    label = g.input("i64", (LENGTH,), "index", (0, classes))
    reduction = g.pick(["none", "mean", "sum"])
    return g.node(op, [x, label], [("f32", (LENGTH,) if reduction == "none" else ())], False, rounding=64, sums=True, reduction=reduction)
