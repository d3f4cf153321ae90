"""Operators for random graphs: elementwise ones, reductions, moves and selections.

`@operator(NAME)` adds a function that adds one node to a graph. The module operators_large.py has products, norms,
attention, recurrent networks, trees and loops. A node's `rounding` is a tolerance in units of the type's spacing,
because a result may be rounded at other places: 0 where `exact`, 4 for arithmetic, 16 for functions that ONNX
Runtime approximates, and 32 to 128 for sums.
"""

import numpy as np

from graphs import FLOATS, LENGTH, TYPES, Unavailable, Value, fixed, is_fixed

OPERATORS = {}


def operator(*names, weight=1.0):
    def add(function):
        for name in names:
            OPERATORS[name] = (lambda g, f=function, n=name: f(g, n), weight)
        return function
    return add


SIGNED = FLOATS + ("i64", "i32")
INTEGERS = ("i64", "i32", "i8", "u8")
ANY = FLOATS + ("i64", "i32", "u8", "bool")


# ---- Elementwise -----------------------------------------------------------------------------------------------------


@operator("Abs", "Neg", "Sign")
def exact_signed(g, op):
    value = g.operand(SIGNED, exact=op == "Sign")
    return g.same(op, value, exact=value.exact, rounding=0)


@operator("Relu", "Identity")
def plain(g, op):
    value = g.operand(SIGNED if op == "Identity" else FLOATS)
    return g.same(op, value, exact=value.exact, rounding=0)


@operator("Floor", "Ceil", "Round")
def steps(g, op):
    return g.same(op, g.operand(FLOATS[:2], exact=True), exact=True)


@operator("Sqrt", "Reciprocal", "Softsign")
def arithmetic(g, op):
    return g.same(op, g.operand(FLOATS[:2]), exact=False)


@operator("Exp", "Log", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Tanh", "Sigmoid",
          "Erf", "Softplus", "Mish", "HardSwish")
def functions(g, op):
    return g.same(op, g.operand(FLOATS[:1] if g.chance(0.9) else FLOATS), exact=False, rounding=16)


@operator("LeakyRelu", "Elu", "Selu", "Celu", "HardSigmoid", "ThresholdedRelu", "Shrink")
def with_alpha(g, op):
    attributes = {"alpha": float(g.pick([0.1, 0.5, 1.0, 2.0]))} if g.chance(0.6) else {}
    if op == "Shrink":
        attributes = {"lambd": float(g.pick([0.1, 0.5, 1.5])), "bias": float(g.pick([0.0, 0.25]))} if g.chance(0.7) else {}
    if op == "HardSigmoid" and g.chance(0.5):
        attributes["beta"] = 0.25
    step = op in ("ThresholdedRelu", "Shrink")
    return g.same(op, g.operand(exact=step), exact=False, rounding=16, **attributes)


@operator("Gelu")
def gelu(g, op):
    return g.same(op, g.operand(), exact=False, rounding=16, approximate=g.pick([None, "none", "tanh"]))


@operator("MSGelu", "QuickGelu", "BiasGelu", "FastGelu")
def microsoft_gelu(g, op):
    value = g.operand(least_rank=1, where=lambda v: is_fixed(v.shape[-1]))
    bias = g.weights(value.shape[-1][1]) if op == "BiasGelu" or (op == "FastGelu" and g.chance(0.5)) else None
    attributes = {"alpha": float(g.pick([1.0, 1.702]))} if op == "QuickGelu" else {}
    name = "Gelu" if op == "MSGelu" else op
    return g.node(name, [value, bias], [(value.dtype, value.shape)], False, domain="com.microsoft", rounding=16, **attributes)


@operator("Not", "BitwiseNot")
def logical_not(g, op):
    return g.same(op, g.operand("bool" if op == "Not" else INTEGERS), exact=True)


@operator("IsNaN", "IsInf")
def classified(g, op):
    value = g.operand(exact=True)
    attributes = {"detect_negative": g.whole(0, 1), "detect_positive": g.whole(0, 1)} if op == "IsInf" and g.chance(0.5) else {}
    return g.node(op, [value], [("bool", value.shape)], True, **attributes)


@operator("Cast")
def cast(g, op):
    value = g.operand(ANY, exact=True)
    to = g.pick(["f32", "f64", "f16", "i64", "i32", "bool", "u8", "i8"])
    g.require(to != "f16" or value.dtype != "f64")  # ONNX Runtime rounds twice
    return g.node(op, [value], [(to, value.shape)], True, to=TYPES[to][0])


@operator("Clip")
def clip(g, op):
    value = g.operand(("f32", "i64", "i32") if g.opset >= 12 else ("f32",))
    low, high = sorted(g.numbers(value.dtype, [2]))
    if not g.since(op, 11):
        return g.same(op, value, exact=value.exact, rounding=0, min=float(low), max=float(high))
    low, high = (g.constant(low) if g.chance(0.8) else None), (g.constant(high) if g.chance(0.8) else None)
    return g.node(op, [value, low, high], [(value.dtype, value.shape)], value.exact, rounding=0)


def result_shape(x, y):
    """The broadcast shape: the second shape has ones or equals the first."""
    width = max(len(x), len(y))
    x, y = ((0, 1),) * (width - len(x)) + tuple(x), ((0, 1),) * (width - len(y)) + tuple(y)
    return tuple(b if a == (0, 1) else a for a, b in zip(x, y))


def pair(g, dtypes, exact=False):
    x = g.operand(dtypes, exact=exact)
    y = g.broadcastable(x, exact)
    shape = result_shape(x.shape, y.shape)
    return (y, x, shape) if g.chance(0.3) else (x, y, shape)


@operator("Add", "Sub", "Mul", "Div", "Pow", "PRelu")
def binary(g, op):
    x, y, shape = pair(g, ("f32",) if op == "PRelu" else FLOATS[:2] if op in ("Div", "Pow") else SIGNED)
    if op == "PRelu":  # the slope broadcasts to the first operand only
        x, y = (x, y) if x.shape == shape else (y, x)
        g.require(x.shape == shape)
    integral = x.dtype not in FLOATS
    return g.node(op, [x, y], [(x.dtype, shape)], integral and x.exact and y.exact, rounding=16 if op == "Pow" else 4)


@operator("IntegerDiv")
def integer_division(g, op):
    x = g.operand(("i64", "i32"), exact=True)
    y = g.constant(g.pick([np.array(d) for d in (1, 2, 3, 7, -3, 16)]), x.dtype)
    return g.node("Div", [x, y], [(x.dtype, x.shape)], True)


@operator("Mod")
def modulo(g, op):
    g.since(op, 10)
    if g.chance(0.5):
        x, y, shape = pair(g, ("f32",), exact=True)
        return g.node(op, [x, y], [("f32", shape)], False, fmod=1)
    x = g.operand(("i64", "i32"), exact=True)
    y = g.constant(np.array(g.pick([1, 2, 3, 7, -3])), x.dtype)
    return g.node(op, [x, y], [(x.dtype, x.shape)], True, fmod=g.pick([None, 0, 1]))


@operator("BitShift")
def shift(g, op):
    x = g.operand(("u8", "u32", "u64"), exact=True)
    y = g.constant(g.rng.integers(0, 7, size=()), x.dtype)
    return g.node(op, [x, y], [(x.dtype, x.shape)], True, direction=g.pick(["LEFT", "RIGHT"]))


@operator("BitwiseAnd", "BitwiseOr", "BitwiseXor", "And", "Or", "Xor")
def bits(g, op):
    x, y, shape = pair(g, INTEGERS if op.startswith("Bit") else ("bool",), exact=True)
    return g.node(op, [x, y], [(x.dtype, shape)], True)


@operator("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")
def compared(g, op):
    x, y, shape = pair(g, ("f32", "i64", "i32", "f64") if g.opset >= 11 else ("i64", "i32"), exact=True)
    return g.node(op, [x, y], [("bool", shape)], True)


@operator("Min", "Max", "Sum", "Mean")
def variadic(g, op):
    x, y, shape = pair(g, FLOATS[:2] if op in ("Sum", "Mean") or g.opset < 12 else ("f32", "f64", "i64", "i32"))
    inputs = [x, y] + ([g.like(x, shape)] if g.chance(0.4) else [])
    is_choice = op in ("Min", "Max")
    exact = is_choice and all(v.exact for v in inputs) and x.dtype not in FLOATS
    return g.node(op, inputs, [(x.dtype, shape)], exact, rounding=0 if is_choice else 4)


@operator("Where")
def where(g, op):
    x, y, shape = pair(g, ("f32", "i64", "i32"))
    options = [v for v in g.values if v.dtype == "bool" and v.shape == shape]
    condition = g.pick(options) if options and g.chance(0.7) else g.input("bool", shape)
    return g.node(op, [condition, x, y], [(x.dtype, shape)], x.exact and y.exact, rounding=0)


@operator("Dropout")
def dropout(g, op):
    value = g.operand()
    return g.same(op, value, exact=value.exact, rounding=0)


# ---- Reductions and scans --------------------------------------------------------------------------------------------


def drawn_axes(g, value, count=None):
    count = g.whole(1, value.rank) if count is None else count
    axes = sorted(int(a) for a in g.rng.permutation(value.rank)[:count])
    return axes, [a - value.rank if g.chance(0.3) else a for a in axes]


def reduced_shape(shape, axes, keep):
    return [(0, 1) if i in axes else d for i, d in enumerate(shape) if keep or i not in axes]


@operator("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
          "ReduceSumSquare")
def reduction(g, op):
    value = g.operand(("f32", "f32", "i64") if op in ("ReduceSum", "ReduceMax", "ReduceMin") else ("f32",), least_rank=1)
    keep = g.whole(0, 1)
    axes, written = drawn_axes(g, value)
    everything = g.chance(0.15)
    axes = list(range(value.rank)) if everything else axes
    shape = reduced_shape(value.shape, axes, keep)
    as_input = g.since(op, 13 if op == "ReduceSum" else 18)
    inputs = [value] + ([g.integers(written)] if as_input and not everything else [])
    attributes = {} if as_input or everything else {"axes": written}
    is_choice = op in ("ReduceMax", "ReduceMin")
    exact = value.exact and not value.is_float
    return g.node(op, inputs, [(value.dtype, shape)], exact, rounding=0 if is_choice else 32, sums=not is_choice, keepdims=keep,
                  **attributes)


@operator("ArgMax", "ArgMin")
def arg(g, op):
    value = g.operand(("f32", "i32") if g.opset >= 11 else ("f32",), least_rank=1, exact=True)
    axes, written = drawn_axes(g, value, 1)
    keep = g.whole(0, 1)
    last = g.whole(0, 1) if g.since(op, 12) and g.chance(0.3) else None
    return g.node(op, [value], [("i64", reduced_shape(value.shape, axes, keep))], True, axis=written[0], keepdims=keep,
                  select_last_index=last)


@operator("Softmax", "LogSoftmax")
def softmax(g, op):
    value = g.operand(least_rank=1)
    axis = g.whole(-value.rank, value.rank - 1)
    return g.same(op, value, exact=False, rounding=32, sums=True, axis=axis)


@operator("CumSum")
def cumulative(g, op):
    value = g.operand(("f32", "i64", "i32"), least_rank=1)
    axis = g.constant(np.array(g.whole(-value.rank, value.rank - 1), np.int64))
    return g.node(op, [value, axis], [(value.dtype, value.shape)], value.exact and not value.is_float, rounding=32, sums=True,
                  exclusive=g.whole(0, 1), reverse=g.whole(0, 1))


@operator("TopK")
def top(g, op):
    value = g.operand(("f32", "i64") if g.opset >= 11 else ("f32",), least_rank=1, exact=True)
    axis = g.whole(0, value.rank - 1)
    size = value.shape[axis]
    k = g.whole(1, size[1] if is_fixed(size) else 3)
    g.min_length = max(g.min_length, k if not is_fixed(size) else 1)
    shape = [(0, k) if i == axis else d for i, d in enumerate(value.shape)]
    outputs = [(value.dtype, shape), ("i64", shape)]
    if not g.since(op, 10):
        return g.node(op, [value], outputs, True, axis=axis, k=k)
    largest = {"largest": g.whole(0, 1)} if g.since(op, 11) else {}
    return g.node(op, [value, g.integers([k])], outputs, True, axis=axis, **largest)


# ---- Moves -----------------------------------------------------------------------------------------------------------


def moved(g, op, inputs, shape, **attributes):
    value = inputs[0]
    return g.node(op, inputs, [(value.dtype, shape)], value.exact, rounding=0, **attributes)


@operator("Transpose")
def transpose(g, op):
    value = g.operand(ANY, least_rank=1)
    if g.chance(0.15):
        return moved(g, op, [value], value.shape[::-1])
    order = [int(a) for a in g.rng.permutation(value.rank)]
    return moved(g, op, [value], [value.shape[a] for a in order], perm=order)


@operator("Flatten")
def flatten(g, op):
    axis = g.whole(0, 3)
    value = g.operand(("f32",), least_rank=max(axis, 1))
    sides = value.shape[:axis], value.shape[axis:]
    g.require(sum(not is_fixed(d) for d in value.shape) <= 1)
    return moved(g, op, [value], [product(s) for s in sides], axis=axis)


def product(dims):
    scale, offset = 0, 1
    for a, b in dims:
        if a and scale:
            raise Unavailable("a square of the length")
        scale, offset = scale * b + a * offset, offset * b
    return scale, offset


@operator("Reshape")
def reshape(g, op):
    value = g.operand(("f32", "i64"), least_rank=1)
    varying = [i for i, d in enumerate(value.shape) if not is_fixed(d)]
    g.require(len(varying) <= 1 and all(value.shape[i] == LENGTH for i in varying))
    sizes = [-1 if i in varying else d[1] for i, d in enumerate(value.shape)]
    shape = list(value.shape)
    fused = [i for i in range(value.rank - 1) if i not in varying and i + 1 not in varying]
    if fused and g.chance(0.6):
        i = g.pick(fused)
        sizes[i:i + 2] = [sizes[i] * sizes[i + 1]]
        shape[i:i + 2] = fixed(sizes[i])
    elif g.chance(0.7):
        i = g.pick(range(len(sizes)))
        if sizes[i] > 3 and sizes[i] % 2 == 0:
            sizes[i:i + 1], shape[i:i + 1] = [2, sizes[i] // 2], fixed(2, sizes[i] // 2)
        else:
            sizes.insert(i, 1)
            shape.insert(i, (0, 1))
    return moved(g, op, [value, g.integers(sizes)], shape)


@operator("Squeeze", "Unsqueeze")
def ones(g, op):
    if op == "Squeeze":
        value = g.operand(ANY, least_rank=1, where=lambda v: (0, 1) in v.shape)
        axis = g.pick([i for i, d in enumerate(value.shape) if d == (0, 1)])
        shape = value.shape[:axis] + value.shape[axis + 1:]
    else:
        value = g.operand(ANY)
        g.require(value.rank < 5)
        axis = g.whole(0, value.rank)
        shape = value.shape[:axis] + ((0, 1),) + value.shape[axis:]
    if g.since(op, 13):
        return moved(g, op, [value, g.integers([axis])], shape)
    return moved(g, op, [value], shape, axes=[axis])


@operator("Expand")
def expand(g, op):
    value = g.operand(("f32", "i64"), where=lambda v: all(is_fixed(d) for d in v.shape))
    sizes = [g.whole(2, 5) if d == (0, 1) and g.chance(0.7) else d[1] for d in value.shape]
    sizes = [g.whole(1, 3)] * g.whole(0, 1) + sizes
    return moved(g, op, [value, g.integers(sizes)], fixed(*sizes))


@operator("Tile")
def tile(g, op):
    value = g.operand(("f32", "i64"), least_rank=1)
    repeats = [g.pick([1, 1, 2, 3]) for _ in value.shape]
    return moved(g, op, [value, g.integers(repeats)], [(a * r, b * r) for (a, b), r in zip(value.shape, repeats)])


@operator("DepthToSpace", "SpaceToDepth")
def depth(g, op):
    block = 2
    if op == "DepthToSpace":
        shape = ((0, g.whole(1, 2)), (0, 4 * g.whole(1, 3)), LENGTH, (0, g.whole(1, 4)))
        made = (shape[0], (0, shape[1][1] // 4), (2, 0), (0, shape[3][1] * 2))
        attributes = {"mode": g.pick(["DCR", "CRD"])} if g.since(op, 11) else {}
    else:
        shape = (LENGTH, (0, g.whole(1, 3)), (0, 4), (0, 6))
        made, attributes = (shape[0], (0, shape[1][1] * 4), (0, 2), (0, 3)), {}
    return moved(g, op, [g.input("f32", shape)], made, blocksize=block, **attributes)


@operator("Trilu")
def trilu(g, op):
    value = g.operand(("f32", "i64"), least_rank=2)
    k = g.constant(np.array(g.whole(-3, 3), np.int64)) if g.chance(0.7) else None
    return moved(g, op, [value, k], value.shape, upper=g.whole(0, 1))


@operator("Slice")
def cut(g, op):
    value = g.operand(("f32", "i64"), least_rank=1)
    axis = g.whole(0, value.rank - 1)
    scale, offset = value.shape[axis]
    if scale == 0:
        start, end, step = g.whole(0, offset - 1), g.whole(1, offset + 2), g.pick([1, 1, 1, 2, 3])
        g.require(end > start)
        size = (0, len(range(offset)[start:end:step]))
        if g.since(op, 10) and g.chance(0.2):
            start, end, step, size = -1, -offset - 1, -1, (0, offset)
    else:
        g.require(scale == 1 and offset == 0)
        least = g.whole(0, 3)
        start, end, step, size = g.pick([(least, 2**31 - 1, 1, (1, -least)), (0, -least, 1, (1, -least)), (-1, -2**31, -1, (1, 0)),
                                         (-least, 2**31 - 1, 1, (0, least)), (0, least, 1, (0, least))])
        g.require(least > 0 or step == -1)
        g.require(step == 1 or g.since(op, 10))
        g.min_length = max(g.min_length, least + 1)
    shape = [size if i == axis else d for i, d in enumerate(value.shape)]
    if not g.since(op, 10):
        return moved(g, op, [value], shape, starts=[start], ends=[end], axes=[axis])
    return moved(g, op, [value] + [g.integers([n]) for n in (start, end, axis, step)], shape)


@operator("Split")
def split(g, op):
    value = g.operand(("f32",), least_rank=1, where=lambda v: any(is_fixed(d) and d[1] > 1 for d in v.shape))
    axis = g.pick([i for i, d in enumerate(value.shape) if is_fixed(d) and d[1] > 1])
    first = g.whole(1, value.shape[axis][1] - 1)
    sizes = [first, value.shape[axis][1] - first]
    outputs = [(value.dtype, [(0, s) if i == axis else d for i, d in enumerate(value.shape)]) for s in sizes]
    inputs, attributes = ([value, g.integers(sizes)], {}) if g.since(op, 13) else ([value], {"split": sizes})
    return g.node(op, inputs, outputs, value.exact, rounding=0, axis=axis, **attributes)


@operator("Concat")
def concat(g, op):
    value = g.operand(("f32", "i64"), least_rank=1)
    axis = g.whole(0, value.rank - 1)
    parts, total = [value], value.shape[axis]
    for _ in range(g.whole(1, 2)):
        dim = g.pick([value.shape[axis], (0, 2), (0, 5)])
        parts.append(g.like(value, [dim if i == axis else d for i, d in enumerate(value.shape)]))
        total = (total[0] + dim[0], total[1] + dim[1])
    shape = [total if i == axis else d for i, d in enumerate(value.shape)]
    return g.node(op, parts, [(value.dtype, shape)], all(p.exact for p in parts), rounding=0, axis=axis - value.rank * g.whole(0, 1))


@operator("Pad")
def pad(g, op):
    value = g.operand(("f32",), least_rank=1)
    mode = g.pick(["constant", "constant", "reflect", "edge"] + (["wrap"] if g.opset >= 19 else []))
    most = 2 if mode in ("constant", "edge") else 1
    before, after = ([g.whole(0, most) for _ in value.shape] for _ in range(2))
    if mode in ("reflect", "wrap"):
        g.require(all(d[1] > 1 or not is_fixed(d) for d in value.shape))
        g.min_length = max(g.min_length, 3)
    shape = [(a, b + p + q) for (a, b), p, q in zip(value.shape, before, after)]
    fill = float(g.pick([0.0, 1.5, -3.0]))
    if not g.since(op, 11):
        return moved(g, op, [value], shape, mode=mode, pads=before + after, value=fill)
    return moved(g, op, [value, g.integers(before + after), g.constant(np.float32(fill))], shape, mode=mode)


# ---- Selections ------------------------------------------------------------------------------------------------------


def indices(g, shape, bound):
    """Integers below `bound`, and negative ones if the bound is known."""
    if all(is_fixed(d) for d in shape) and is_fixed(bound) and g.chance(0.5):
        low = -bound[1] if g.opset >= 11 and g.chance(0.3) else 0
        return g.constant(g.rng.integers(low, bound[1], size=[d[1] for d in shape]).astype(np.int64))
    return g.input(g.pick(["i64", "i32"]), shape, "index", bound)


@operator("Gather")
def gather(g, op):
    value = g.operand(("f32", "i64"), least_rank=1)
    axis = g.whole(0, value.rank - 1)
    index = indices(g, g.new_shape(g.whole(0, 2)), value.shape[axis])
    shape = value.shape[:axis] + index.shape + value.shape[axis + 1:]
    g.require(len(shape) <= 5)
    return g.node(op, [value, index], [(value.dtype, shape)], value.exact, rounding=0, axis=axis)


@operator("GatherElements", "ScatterElements")
def elements(g, op):
    g.since(op, 11)
    value = g.operand(least_rank=1)
    axis = g.whole(0, value.rank - 1)
    if op == "GatherElements":
        shape = [(0, g.whole(1, 6)) if i == axis else d for i, d in enumerate(value.shape)]
        return g.node(op, [value, indices(g, shape, value.shape[axis])], [(value.dtype, shape)], value.exact, rounding=0, axis=axis)
    g.require(is_fixed(value.shape[axis]))
    count = g.whole(1, value.shape[axis][1])
    shape = [(0, count) if i == axis else d for i, d in enumerate(value.shape)]
    reduce = g.pick([None, "add", "mul"] + (["max", "min"] if g.opset >= 18 else [])) if g.opset >= 16 else None
    if reduce is None:  # distinct targets, because the order of writes is open
        places = g.rng.permutation(value.shape[axis][1])[:count].reshape([-1 if i == axis else 1 for i in range(value.rank)])
        g.require(all(is_fixed(d) for d in shape))
        index = g.constant(np.broadcast_to(places, [d[1] for d in shape]).astype(np.int64))
    else:
        index = indices(g, shape, value.shape[axis])
    return g.node(op, [value, index, g.like(value, shape)], [(value.dtype, value.shape)], False, sums=reduce in ("add", "mul"),
                  rounding=32, axis=axis, reduction=reduce)


@operator("GatherND")
def gather_nd(g, op):
    g.since(op, 11)
    value = g.operand(least_rank=2)
    index = g.input("i64", g.new_shape(1) + ((0, 1),), "index", value.shape[0])
    return g.node(op, [value, index], [(value.dtype, index.shape[:1] + value.shape[1:])], value.exact, rounding=0)


@operator("ScatterND")
def scatter_nd(g, op):
    g.since(op, 11)
    value = g.operand(least_rank=1, where=lambda v: is_fixed(v.shape[0]))
    count = g.whole(1, value.shape[0][1])
    index = g.constant(g.rng.permutation(value.shape[0][1])[:count].reshape(count, 1).astype(np.int64))
    reduce = g.pick([None, "add", "mul"]) if g.opset >= 16 else None
    return g.node(op, [value, index, g.like(value, fixed(count) + value.shape[1:])], [(value.dtype, value.shape)], False,
                  reduction=reduce, sums=reduce is not None)


@operator("NonZero", weight=2)
def selected_rows(g, op):
    """Rows that a mask selects, an operator on them, and a sum or a scatter back."""
    g.since(op, 13)
    x = g.operand("f32", rank=2, where=lambda v: not is_fixed(v.shape[0]))
    mask = g.like(Value("", "bool", x.shape[:1], True))
    at = g.node(op, [mask], [("i64", fixed(1, 1))], True, keep=False)
    at = g.node("Transpose", [at], [("i64", fixed(1, 1))], True, keep=False)
    rows = g.node("GatherND", [x, at], [("f32", x.shape)], x.exact, keep=False)
    function = g.pick([None, "Exp", "Tanh", "Sigmoid"])
    if function:
        rows = g.node(function, [rows], [("f32", x.shape)], False, rounding=16, keep=False)
    end = g.pick(["none", "add", "mul", "ReduceSum", "ReduceMax", "ReduceMean"])
    if end == "ReduceSum":
        return g.node(end, [rows, g.integers([0])], [("f32", x.shape[1:])], False, rounding=64, sums=True, keepdims=0)
    if end in ("ReduceMax", "ReduceMean"):
        g.require(g.opset >= 18)
        return g.node(end, [rows, g.integers([0])], [("f32", x.shape[1:])], False, rounding=64, sums=True, keepdims=0)
    reduce = end if end != "none" and g.opset >= 16 else None
    return g.node("ScatterND", [x, at, rows], [("f32", x.shape)], False, rounding=8, reduction=reduce, sums=reduce is not None)


@operator("OneHot")
def one_hot(g, op):
    classes = g.whole(2, 6)
    index = g.input("i64", g.new_shape(g.whole(1, 2)), "index", (0, classes))
    axis = g.pick([-1, 0])
    shape = index.shape + fixed(classes) if axis == -1 else fixed(classes) + index.shape
    inputs = [index, g.constant(np.int64(classes)), g.constant(np.array([0, 1], np.float32))]
    return g.node(op, inputs, [("f32", shape)], True, axis=axis)


@operator("Shape", "Size")
def measured(g, op):
    value = g.operand(least_rank=1)
    return g.node(op, [value], [("i64", fixed(value.rank) if op == "Shape" else ())], True)


@operator("EyeLike")
def eye(g, op):
    value = g.operand(rank=2)
    return g.node(op, [value], [(value.dtype, value.shape)], True, k=g.whole(-2, 2))


@operator("ConstantOfShape")
def filled(g, op):
    value = g.operand(least_rank=1)
    shape = g.node("Shape", [value], [("i64", fixed(value.rank))], True, keep=False)
    return g.node(op, [shape], [("f32", value.shape)], True)


@operator("Range")
def counted(g, op):
    g.since(op, 11)
    value = g.operand(rank=1, where=lambda v: v.shape[0] == LENGTH)
    shape = g.node("Shape", [value], [("i64", fixed(1))], True, keep=False)
    inputs = [shape] + ([g.integers([0])] if g.since("Squeeze", 13) else [])
    limit = g.node("Squeeze", inputs, [("i64", ())], True, keep=False)
    return g.node(op, [g.constant(np.int64(0)), limit, g.constant(np.int64(1))], [("i64", [LENGTH])], True)
