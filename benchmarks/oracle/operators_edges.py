"""Forms and attributes that exporters write rarely: ties, negative and repeated indices, empty lists of axes, operands of
every integer type, strided windows, conditions, and the equations of Einsum."""

import numpy as np
from onnx import TensorProto, helper

from graphs import LENGTH, Unavailable, fixed, is_fixed
from operators import drawn_axes, operator, reduced_shape
from operators_large import info

WHOLE = ("i64", "i32", "i16", "i8", "u8", "u32", "u64")


def tied(g, dtype, shape):
    """A new input that holds few different whole numbers."""
    return g.input(dtype, shape, "ties")


@operator("SignedDiv", "SignedMod")
def signed_quotient(g, op):
    """Quotients and remainders of run-time integers of both signs."""
    name = op[6:]
    dtype = g.pick(["i64", "i32", "i8", "i16", "u8", "u32", "u64"] if name == "Mod" else ["i64", "i32", "u8", "i8"])
    g.require(g.since(name, 13 if name == "Mod" else 14))
    x = g.input(dtype, g.new_shape())
    y = g.input(dtype, x.shape if g.chance(0.6) else x.shape[-1:], "divisor")
    return g.node(name, [x, y], [(dtype, x.shape)], True, **({"fmod": g.whole(0, 1)} if name == "Mod" else {}))


@operator("FloatMod")
def float_remainder(g, op):
    g.since("Mod", 10)
    x = tied(g, "f32", g.new_shape())
    y = g.constant(np.float32(g.pick([1, -1, 2, -3, 0.5])))
    return g.node("Mod", [x, y], [("f32", x.shape)], True, fmod=1)


@operator("MixedPow")
def mixed_power(g, op):
    """Pow with operands of two types: the first one's type is the result's."""
    g.require(g.since("Pow", 13))
    base, power = g.pick(["f32", "i32", "i64"]), g.pick(["f32", "i32", "i64"])
    g.require(base != "f32" or power != "f32")
    x = g.input(base, g.new_shape(), "any" if base == "f32" else "ties")
    if g.chance(0.5):
        y = g.constant(np.array(g.pick([0, 1, 2, 3] + ([0.5, 1.5, -0.5, -1, -2] if power == "f32" and base == "f32" else []))), power)
    else:
        y = g.input(power, x.shape, "index" if power != "f32" else "unit", (0, 6))
    g.require(base == "f32" or power != "f32" or y.array is not None)
    return g.node("Pow", [x, y], [(base, x.shape)], base != "f32", rounding=16)


@operator("IntegerArithmetic")
def integer_arithmetic(g, op):
    """Sums and products that wrap, extremes, absolute values and signs of small types."""
    dtype = g.pick(WHOLE)
    name = g.pick(["Add", "Sub", "Mul", "Min", "Max", "Abs", "Neg", "Sign"])
    g.require(g.opset >= 14)
    g.require(dtype[0] != "u" or name != "Neg")
    x = g.input(dtype, g.new_shape())
    if name in ("Abs", "Neg", "Sign"):
        return g.same(name, x, True)
    y = g.input(dtype, x.shape if g.chance(0.5) else x.shape[-1:])
    return g.node(name, [x, y], [(dtype, x.shape)], True)


@operator("IntegerReduce")
def integer_reduction(g, op):
    name = g.pick(["ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceMean", "ReduceL1", "ReduceSumSquare"])
    dtype = g.pick(["i64", "i32"] + (["i8", "u8"] if name in ("ReduceMax", "ReduceMin") else []))
    x = tied(g, dtype, g.new_shape())
    keep = g.whole(0, 1)
    axes, written = drawn_axes(g, x)
    as_input = g.since(name, 13 if name == "ReduceSum" else 18)
    shape = reduced_shape(x.shape, axes, keep)
    inputs, attributes = ([x, g.integers(written)], {}) if as_input else ([x], {"axes": written})
    return g.node(name, inputs, [(dtype, shape)], True, keepdims=keep, **attributes)


@operator("NoAxes")
def no_axes(g, op):
    """A reduction with an empty or absent list of axes."""
    name = g.pick(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp", "ReduceProd", "ReduceL1", "ReduceSumSquare",
                   "ReduceLogSum"])
    g.require(g.since(name, 13 if name == "ReduceSum" else 18))
    x = g.input("f32", g.new_shape())
    keep, noop = g.whole(0, 1), g.whole(0, 1)
    form = g.pick(["absent", "empty"])
    shape = x.shape if noop else reduced_shape(x.shape, list(range(x.rank)), keep)
    inputs = [x] if form == "absent" else [x, g.constant(np.zeros(0, np.int64))]
    return g.node(name, inputs, [("f32", shape)], False, rounding=32, sums=True, keepdims=keep, noop_with_empty_axes=noop)


@operator("Ties")
def ties(g, op):
    """Selections among equal numbers."""
    name = g.pick(["TopK", "TopK", "ArgMax", "ArgMin", "Hardmax"])
    dtype = g.pick(["f32", "i64", "i32"]) if name == "TopK" else "f32"
    x = tied(g, dtype, g.new_shape())
    axis = g.whole(0, x.rank - 1)
    if name == "Hardmax":
        g.require(g.since(name, 13))
        return g.same(name, x, True, axis=axis)
    if name in ("ArgMax", "ArgMin"):
        g.require(g.since(name, 12))
        return g.node(name, [x], [("i64", reduced_shape(x.shape, [axis], 0))], True, axis=axis, keepdims=0,
                      select_last_index=g.whole(0, 1))
    g.require(g.since(name, 11))
    size = x.shape[axis]
    k = g.whole(1, size[1]) if is_fixed(size) else g.pick([1, 3])
    g.min_length = max(g.min_length, k if not is_fixed(size) else 1)
    shape = [(0, k) if i == axis else d for i, d in enumerate(x.shape)]
    return g.node(name, [x, g.integers([k])], [(dtype, shape), ("i64", shape)], True, axis=axis, largest=g.whole(0, 1), sorted=1)


@operator("AllTopK")
def sorted_rows(g, op):
    """A whole axis sorted, and the inverse order, as PyTorch's sort and argsort are exported."""
    g.require(g.since("TopK", 11))
    x = tied(g, "f32", fixed(g.whole(1, 3), LENGTH)) if g.chance(0.5) else g.input("f32", fixed(g.whole(1, 3), LENGTH))
    shape = g.node("Shape", [x], [("i64", fixed(2))], True, keep=False)
    k = g.node("Gather", [shape, g.integers([1])], [("i64", fixed(1))], True, keep=False)
    return g.node("TopK", [x, k], [("f32", x.shape), ("i64", x.shape)], True, axis=-1, largest=g.whole(0, 1))


@operator("SignedIndex")
def signed_index(g, op):
    """Gathers and scatters with run-time indices of both signs, and repeated ones where an order is fixed."""
    name = g.pick(["Gather", "GatherElements", "GatherND", "ScatterND", "ScatterElements"])
    g.require(g.opset >= 18)
    rows, width = g.pick([1, 3, 8]), g.pick([1, 4, 5])
    dtype = g.pick(["f32", "i64", "i32"])
    x = g.input(dtype, fixed(rows, width))
    if name == "Gather":
        axis = g.whole(0, 1)
        index = g.input(g.pick(["i64", "i32"]), g.pick([(LENGTH,), fixed(2, LENGTH)]), "signed", (0, (rows, width)[axis]))
        shape = x.shape[:axis] + index.shape + x.shape[axis + 1:]
        return g.node(name, [x, index], [(dtype, shape)], True, axis=axis - 2 * g.whole(0, 1))
    if name == "GatherElements":
        index = g.input("i64", fixed(LENGTH, width), "signed", (0, rows))
        return g.node(name, [x, index], [(dtype, index.shape)], True, axis=0)
    if name == "GatherND":
        index = g.input("i64", fixed(LENGTH, 1), "signed", (0, rows))
        return g.node(name, [x, index], [(dtype, fixed(LENGTH, width))], True)
    reduce = g.pick(["add", "mul", "max", "min"])
    y = g.input(dtype, fixed(LENGTH, width), "any" if dtype == "f32" else "ties")
    g.require(dtype == "f32" or reduce != "mul")
    exact = reduce in ("max", "min") or dtype != "f32"
    if name == "ScatterND":
        index = g.input("i64", fixed(LENGTH, 1), "signed", (0, rows))
        return g.node(name, [x, index, y], [(dtype, x.shape)], exact, rounding=64, sums=not exact, reduction=reduce)
    index = g.input("i64", fixed(LENGTH, width), "signed", (0, rows))
    return g.node(name, [x, index, y], [(dtype, x.shape)], exact, rounding=64, sums=not exact, axis=0, reduction=reduce)


@operator("WrittenRows")
def written_rows(g, op):
    """ScatterND with partial indices, and without a reduction."""
    g.since("ScatterND", 11)
    heads, width = g.whole(1, 3), g.whole(1, 4)
    x = g.input("f32", fixed(heads, LENGTH, width))
    least = g.whole(1, 3)
    g.min_length = max(g.min_length, least)
    pairs = [(h, n) for h in range(heads) for n in range(least)]
    chosen = [pairs[i] for i in g.rng.permutation(len(pairs))[:g.whole(1, len(pairs))]]
    if g.chance(0.3) and g.opset >= 13:
        chosen = [(h - heads, n) for h, n in chosen]
    y = g.input("f32", fixed(len(chosen), width))
    return g.node("ScatterND", [x, g.constant(np.array(chosen, np.int64)), y], [("f32", x.shape)], True)


@operator("WhereNan")
def where_nan(g, op):
    """Numbers that are not selected must not reach the result."""
    shape = g.new_shape(g.whole(1, 3))
    x = g.input("f32", shape)
    form = g.pick(["log", "divide", "sqrt", "nan"])
    zero = g.constant(np.float32(0))
    positive = g.node("Greater", [x, zero], [("bool", shape)], True, keep=False) if g.opset >= 11 else g.input("bool", shape)
    if form == "nan":
        g.require(g.opset >= 13)
        is_nan = g.node("IsNaN", [x], [("bool", shape)], True, keep=False)
        return g.node("Where", [is_nan, zero, x], [("f32", shape)], True)
    if form == "divide":
        y = g.node("Div", [g.constant(np.float32(1)), x], [("f32", shape)], False, keep=False)
    else:
        y = g.same(form.capitalize(), x, False, rounding=16, keep=False)
    chosen = g.node("Where", [positive, y, g.constant(np.float32(g.pick([0, -1, np.nan, -np.inf])))], [("f32", shape)], False, keep=False)
    return g.node("Mul", [chosen, g.constant(np.float32(2))], [("f32", shape)], False)


@operator("EinsumForms", weight=2)
def einsum_forms(g, op):
    g.since("Einsum", 12)
    n, k, m, h, b = LENGTH, (0, g.pick([2, 8])), (0, g.pick([3, 8])), (0, g.pick([2, 3])), (0, g.whole(1, 3))
    equation, shapes, out = g.pick([
        ("ij,jk", [(n, k), (k, m)], (n, m)), ("ba,bc", [(k, n), (k, m)], (n, m)), ("ij,kj", [(n, k), (m, k)], (n, m)),
        ("ii->i", [(k, k)], (k,)), ("ii", [(k, k)], ()), ("bii->b", [(n, k, k)], (n,)), ("bii->bi", [(n, k, k)], (n, k)),
        ("ij,jk,kl->il", [(n, k), (k, m), (m, h)], (n, h)), ("bhqd,bhkd->bhqk", [(b, h, n, k), (b, h, n, k)], (b, h, n, n)),
        ("bqhd,bkhd->bhqk", [(b, n, h, k), (b, n, h, k)], (b, h, n, n)), ("bhqk,bkhd->bqhd", [(b, h, n, n), (b, n, h, k)], (b, n, h, k)),
        ("...ij,...jk->...ik", [(b, n, k), (k, m)], (b, n, m)), ("i...,i...->...", [(k, n), (k, n)], (n,)),
        ("...,...->...", [(n, k), (k,)], (n, k)), ("ij->", [(n, k)], ()), ("ijk->kji", [(n, k, m)], (m, k, n)),
        ("ijk,ilm->jlm", [(k, n, h), (k, h, m)], (n, h, m)), ("i,i->", [(n,), (n,)], ()), ("i,j,k->ijk", [(n,), (k,), (m,)], (n, k, m)),
        ("kih,kjh->ijh", [(k, n, h), (k, n, h)], (n, n, h)), ("ikh,jkh->ijh", [(n, k, h), (n, k, h)], (n, n, h)),
        (" ij , jk -> ik ", [(n, k), (k, m)], (n, m)), ("bnhd,hde->bne", [(b, n, h, k), (h, k, m)], (b, n, m)),
        ("bnd,hde->bhne", [(b, n, k), (h, k, m)], (b, h, n, m)), ("aB,Bc->ca", [(n, k), (k, m)], (m, n)),
        ("...d->...", [(b, n, k)], (b, n)), ("ij,i->ij", [(n, k), (n,)], (n, k)), ("ij,i->j", [(n, k), (n,)], (k,))])
    inputs = [g.input("f32", s) for s in shapes]
    return g.node("Einsum", inputs, [("f32", out)], False, rounding=64, sums=True, equation=equation)


@operator("StridedConv", weight=2)
def strided_conv(g, op):
    """Strides over fixed sides, groups, dilations, auto_pad, and three dimensions."""
    spatial = g.whole(1, 3)
    groups = g.pick([1, 1, 2, 3])
    channels, made = groups * g.whole(1, 3), groups * g.whole(1, 9)
    sides = [g.whole(3, 9) for _ in range(spatial)]
    over_length = g.chance(0.4)
    x = g.input("f32", (LENGTH if not over_length else (0, g.whole(1, 2)),) + fixed(channels, *sides[:-1])
                + (LENGTH if over_length else (0, sides[-1]),))
    kernel = [min(s, g.whole(1, 4)) for s in sides]
    strides = [g.whole(1, 3) for _ in sides]
    dilations = [g.pick([1, 1, 2]) for _ in sides]
    if over_length:
        strides[-1] = 1
        g.min_length = max(g.min_length, 8)
    auto = g.pick([None, None, "SAME_UPPER", "SAME_LOWER", "VALID"])
    g.require(auto is None or not over_length)
    g.require(auto is None or max(dilations) == 1)
    reach = [(k - 1) * d for k, d in zip(kernel, dilations)]
    before = [g.whole(0, r) if r else 0 for r in reach]
    after = [g.whole(0, r) if r else 0 for r in reach]
    out = []
    for i, (s, r, p, q, t) in enumerate(zip(sides, reach, before, after, strides)):
        if over_length and i == spatial - 1:
            out.append((1, p + q - r))
            continue
        pads = p + q if auto is None else 0
        size = -(-s // t) if auto in ("SAME_UPPER", "SAME_LOWER") else (s + pads - r - 1) // t + 1
        g.require(size > 0)
        out.append((0, size))
    return g.node("Conv", [x, g.weights(made, channels // groups, *kernel), g.weights(made) if g.chance(0.5) else None],
                  [("f32", x.shape[:1] + fixed(made) + tuple(out))], False, rounding=32, sums=True, group=groups, strides=strides,
                  dilations=dilations, auto_pad=auto, pads=None if auto else before + after)


@operator("StridedPool")
def strided_pool(g, op):
    """Pools with strides, ceil_mode, dilations and auto_pad."""
    name = g.pick(["MaxPool", "AveragePool", "LpPool"])
    spatial = g.whole(1, 3)
    sides = [g.whole(4, 9) for _ in range(spatial)]
    x = g.input("f32", (LENGTH,) + fixed(g.whole(1, 3), *sides))
    kernel, strides = [g.whole(1, 3) for _ in sides], [g.whole(1, 3) for _ in sides]
    ceil = g.whole(0, 1) if g.opset >= (18 if name == "LpPool" else 10) else None
    dilated = (name == "MaxPool" and g.opset >= 10) or (name == "AveragePool" and g.opset >= 19)
    dilations = [g.pick([1, 2]) if dilated else 1 for _ in sides]
    before, after = [[g.whole(0, (k - 1) // 2 if k > 1 else 0) for k in kernel] for _ in range(2)]
    out = []
    for s, k, d, t, p, q in zip(sides, kernel, dilations, strides, before, after):
        room = s + p + q - (k - 1) * d - 1
        g.require(room >= 0)
        size = (-(-room // t) if ceil else room // t) + 1
        if ceil and (size - 1) * t >= s + p:
            size -= 1
        out.append(size)
    attributes = {"count_include_pad": g.whole(0, 1)} if name == "AveragePool" else {"p": g.whole(1, 3)} if name == "LpPool" else {}
    return g.node(name, [x], [("f32", x.shape[:2] + fixed(*out))], name == "MaxPool", rounding=64, sums=name != "MaxPool",
                  kernel_shape=kernel, strides=strides, pads=before + after, ceil_mode=ceil,
                  dilations=dilations if dilated else None, **attributes)


@operator("ConvTransposeForms")
def conv_transpose_forms(g, op):
    spatial = g.whole(1, 2)
    groups = g.pick([1, 2])
    channels, made = groups * g.whole(1, 3), g.whole(1, 3)
    sides = [g.whole(2, 5) for _ in range(spatial)]
    x = g.input("f32", (LENGTH,) + fixed(channels, *sides))
    kernel, strides = [g.whole(1, 4) for _ in sides], [g.whole(1, 3) for _ in sides]
    dilations = [g.pick([1, 1, 2]) for _ in sides]
    extra = [g.whole(0, s - 1) for s in strides]
    before, after = [[g.whole(0, (k - 1) * d // 2) for k, d in zip(kernel, dilations)] for _ in range(2)]
    out = [t * (s - 1) + e + (k - 1) * d + 1 - p - q
           for s, t, e, k, d, p, q in zip(sides, strides, extra, kernel, dilations, before, after)]
    g.require(min(out) > 0)
    return g.node("ConvTranspose", [x, g.weights(channels, made, *kernel)], [("f32", x.shape[:1] + fixed(groups * made, *out))], False,
                  rounding=32, sums=True, group=groups, strides=strides, dilations=dilations, output_padding=extra, pads=before + after)


@operator("ResizeForms", weight=2)
def resize_forms(g, op):
    """Sizes and scales below and above 1 over fixed sides, with every mode."""
    g.since("Resize", 13)
    spatial = g.whole(1, 2)
    sides = [g.whole(2, 8) for _ in range(spatial)]
    x = g.input("f32", (LENGTH,) + fixed(g.whole(1, 2), *sides))
    mode = g.pick(["nearest", "linear", "cubic"])
    g.require(mode != "cubic" or spatial == 2)
    place = g.pick(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
                   + (["half_pixel_symmetric"] if g.opset >= 19 else []))
    out = [g.whole(1, 12) for _ in sides]
    attributes = {}
    g.require(place != "pytorch_half_pixel" or mode != "cubic")  # a result of one element is open
    if mode == "nearest":
        attributes["nearest_mode"] = g.pick(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
    if mode == "cubic":
        attributes.update(cubic_coeff_a=float(g.pick([-0.75, -0.5])), exclude_outside=g.whole(0, 1))
    if g.since("Resize", 18) and mode != "nearest" and g.chance(0.4):
        attributes["antialias"] = 1
    if g.chance(0.5):  # sizes
        inputs = [x, None, None]
        if g.since("Resize", 18) and g.chance(0.5):
            attributes["axes"] = list(range(2, 2 + spatial))
            inputs.append(g.integers(out))
        else:
            raise Unavailable("sizes of the length")
    else:
        factors = [float(g.pick([0.5, 1, 1.5, 2, 2.5, 3])) for _ in sides]
        out = [int(np.floor(s * f)) for s, f in zip(sides, factors)]
        g.require(place != "align_corners" or all(s * f == n for s, f, n in zip(sides, factors, out)))
        inputs = [x, None, g.constant(np.array([1, 1] + factors, np.float32))]
    return g.node("Resize", inputs, [("f32", x.shape[:2] + fixed(*out))], False, rounding=64, sums=True, mode=mode,
                  coordinate_transformation_mode=place, **attributes)


@operator("PadForms")
def pad_forms(g, op):
    """Negative pads, lists of axes, and integer types."""
    g.require(g.since("Pad", 18))
    dtype = g.pick(["f32", "i64", "i32", "bool", "u8"])
    shape = [(0, g.whole(4, 6)) for _ in range(g.whole(1, 3))]
    at = g.whole(0, len(shape) - 1)
    shape[at] = LENGTH
    x = g.input(dtype, shape)
    g.min_length = max(g.min_length, 8)
    mode = g.pick(["constant", "reflect", "edge"] + (["wrap"] if g.since("Pad", 19) else []))
    low = -2 if mode == "constant" else 0
    axes = sorted(int(a) for a in g.rng.permutation(len(shape))[:g.whole(1, len(shape))])
    before, after = [[g.whole(low, 3) for _ in axes] for _ in range(2)]
    out = list(shape)
    for a, p, q in zip(axes, before, after):
        out[a] = (out[a][0], out[a][1] + p + q)
    fill = None if mode != "constant" or g.chance(0.3) else g.constant(np.array(1), dtype)
    written = [a - len(shape) if g.chance(0.3) else a for a in axes]
    return g.node("Pad", [x, g.integers(before + after), fill, g.integers(written)], [(dtype, out)], True, mode=mode)


@operator("IfElse")
def if_else(g, op):
    """A condition on data or on the length, and branches that read outer values."""
    g.require(g.opset >= 13)
    width = g.pick([1, 4, 17])
    x = g.input("f32", fixed(LENGTH, width), "plain")  # ONNX Runtime's maximum skips NaN
    if g.chance(0.5):
        total = g.node("ReduceMax", [x], [("f32", ())], True, keep=False, keepdims=0)
        condition = g.node("Greater", [total, g.constant(np.float32(g.pick([0, 2, 3])))], [("bool", ())], True, keep=False)
    else:
        size = g.node("Size", [x], [("i64", ())], True, keep=False)
        condition = g.node("Less", [size, g.constant(np.int64(g.pick([5, 20, 100])))], [("bool", ())], True, keep=False)

    def branch(nodes, name):
        return helper.make_graph(nodes, name, [], [info(nodes[-1].output[0], TensorProto.FLOAT, ["N", width])])

    one = branch([helper.make_node(g.pick(["Exp", "Tanh", "Neg"]), [x.name], [g.name("b")])], "one")
    first, second = g.name("b"), g.name("b")
    two = branch([helper.make_node("Mul", [x.name, x.name], [first]), helper.make_node("Sub", [first, x.name], [second])], "two")
    return g.node("If", [condition], [("f32", x.shape)], False, rounding=32, then_branch=one, else_branch=two)


@operator("LoopForms")
def loop_forms(g, op):
    """A loop that reads rows of an outer value by its counter."""
    g.require(g.opset >= 13)
    width, count = g.pick([1, 4]), g.whole(1, 5)
    f32 = TensorProto.FLOAT
    x = g.input("f32", fixed(LENGTH, width))
    start = g.input("f32", fixed(width))
    form = g.pick(["row", "fixed"])
    nodes = [helper.make_node("Gather", [x.name, "step"], ["row"], axis=0), helper.make_node("Add", ["state", "row"], ["sum"]),
             helper.make_node("Tanh", ["sum"], ["next"]), helper.make_node("Identity", ["going"], ["still"])]
    trips = g.constant(np.int64(count))
    g.min_length = max(g.min_length, count)
    if form == "row":
        shape = g.node("Shape", [x], [("i64", fixed(2))], True, keep=False)
        trips = g.node("Gather", [shape, g.constant(np.int64(0))], [("i64", ())], True, keep=False)
    body = helper.make_graph(
        nodes, "body", [info("step", TensorProto.INT64, []), info("going", TensorProto.BOOL, []), info("state", f32, [width])],
        [info("still", TensorProto.BOOL, []), info("next", f32, [width])])
    return g.node("Loop", [trips, g.constant(np.array(True)), start], [("f32", fixed(width))], False,
                  rounding=128, sums=True, body=body)


@operator("QuantisedForms", weight=2)
def quantised_forms(g, op):
    """Quantisation by channel, with ties, and a layer between its two nodes, as QDQ tools write it."""
    g.require(g.since("QuantizeLinear", 13))
    kind = g.pick(["u8", "i8", "i8", "i16"] if g.since("QuantizeLinear", 21) else ["u8", "i8"])
    width, made = g.pick([1, 4, 16]), g.pick([1, 3, 8])

    def pair_of(n):
        low, high = {"u8": (0, 255), "i8": (-128, 127), "i16": (-3000, 3000)}[kind]
        zero = g.rng.integers(low, high + 1, size=() if n is None else n)
        return g.constant(np.float32(2.0) ** g.rng.integers(-6, 0, size=() if n is None else n).astype(np.float32)), g.constant(zero, kind)

    form = g.pick(["tied", "channel", "linear", "dynamic", "dequantise"])
    if form == "tied":
        x = g.node("Mul", [tied(g, "f32", fixed(LENGTH, width)), g.constant(np.float32(0.25))], [("f32", fixed(LENGTH, width))], True,
                   keep=False)
        scale, zero = g.constant(np.float32(0.5)), g.constant(np.array(g.whole(0, 9)), kind)
        q = g.node("QuantizeLinear", [x, scale, zero], [(kind, x.shape)], True, keep=False)
        return g.node("DequantizeLinear", [q, scale, zero], [("f32", x.shape)], True)
    if form == "channel":
        x = g.input("f32", fixed(LENGTH, width))
        scale, zero = pair_of(width)
        return g.node("QuantizeLinear", [x, scale, zero], [(kind, x.shape)], True, axis=-1)
    if form == "dequantise":
        x = g.input(kind, fixed(2, width, LENGTH))
        scale, zero = pair_of(width)
        return g.node("DequantizeLinear", [x, scale, zero], [("f32", x.shape)], True, axis=1)
    g.require(kind != "i16")
    x = g.input("f32", fixed(LENGTH, width), "unit")
    w = g.constant(g.rng.integers(-127, 128, size=(width, made)), "i8")
    if form == "dynamic":
        q = g.node("DynamicQuantizeLinear", [x], [("u8", x.shape), ("f32", ()), ("u8", ())], True, keep=False)
        y = g.node("MatMulInteger", [q[0], w, q[2]], [("i32", fixed(LENGTH, made))], True, keep=False)
        y = g.node("Cast", [y], [("f32", y.shape)], True, keep=False, to=TensorProto.FLOAT)
        return g.node("Mul", [y, q[1]], [("f32", y.shape)], False, rounding=64)
    scale, zero = pair_of(None)
    q = g.node("QuantizeLinear", [x, scale, zero], [(kind, x.shape)], True, keep=False)
    a = g.node("DequantizeLinear", [q, scale, zero], [("f32", x.shape)], True, keep=False)
    b = g.node("DequantizeLinear", [w, g.constant((0.01 + g.rng.random(made) * 0.02).astype(np.float32)),
                                    g.constant(np.zeros(made), "i8")], [("f32", fixed(width, made))], True, keep=False, axis=1)
    return g.node("MatMul", [a, b], [("f32", fixed(LENGTH, made))], False, rounding=64, sums=True)


@operator("CumSumForms")
def cumsum_forms(g, op):
    g.since("CumSum", 11)
    dtype = g.pick(["i64", "i32", "f64", "f32"])
    x = tied(g, dtype, g.new_shape())
    axis = g.constant(np.array(g.whole(-x.rank, x.rank - 1)), g.pick(["i64", "i32"]))
    return g.node("CumSum", [x, axis], [(dtype, x.shape)], True, exclusive=g.whole(0, 1), reverse=g.whole(0, 1))


@operator("OneHotForms")
def one_hot_forms(g, op):
    """Negative and foreign indices, an axis in the middle, and values of other types."""
    g.since("OneHot", 11)
    classes = g.whole(1, 6)
    index = g.input("i64", fixed(2, LENGTH), "ties")
    axis = g.whole(-3, 2)
    shape = list(index.shape)
    shape.insert(axis + 3 if axis < 0 else axis, (0, classes))
    to = g.pick(["f32", "i64"])
    return g.node("OneHot", [index, g.constant(np.int64(classes)), g.constant(np.array([-1, 3]), to)], [(to, shape)], True, axis=axis)


@operator("SliceForms")
def slice_forms(g, op):
    """Several axes, negative steps and starts behind the ends, over fixed sides."""
    g.since("Slice", 10)
    sides = [g.whole(2, 7) for _ in range(2)]
    dtype = g.pick(["f32", "i64", "bool", "u8", "f64"])
    x = g.input(dtype, fixed(LENGTH, *sides))
    starts, ends, steps, out = [], [], [], []
    for s in sides:
        start, end, step = g.whole(-s - 1, s + 1), g.whole(-s - 2, s + 2), g.pick([1, 2, -1, -2])
        out.append(len(range(s)[start:end:step]))
        starts.append(start), ends.append(end), steps.append(step)
    g.require(min(out) > 0)
    return g.node("Slice", [x] + [g.integers(v) for v in (starts, ends, [1, -1], steps)], [(dtype, fixed(LENGTH, *out))], True)


@operator("SplitForms")
def split_forms(g, op):
    g.require(g.since("Split", 18))
    size, parts = g.whole(3, 9), g.whole(2, 3)
    x = g.input(g.pick(["f32", "i64"]), fixed(LENGTH, size))
    each = -(-size // parts)
    sizes = [min(each, size - i * each) for i in range(parts)]
    g.require(min(sizes) > 0)
    return g.node("Split", [x], [(x.dtype, fixed(LENGTH, s)) for s in sizes], True, axis=-1, num_outputs=parts)


@operator("Rare")
def rare(g, op):
    """Operators that the other modules leave out."""
    name = g.pick(["ReverseSequence", "Swish", "CastLike", "Trilu", "Clip", "Softmax", "LogSoftmax", "Expand", "Hardmax"])
    if name == "ReverseSequence":
        g.since(name, 10)
        x = g.input("f32", fixed(LENGTH, 3, 2))
        lengths = g.constant(np.array([1, 1, 2]), "i64")
        g.min_length = max(g.min_length, 2)
        return g.node(name, [x, lengths], [("f32", x.shape)], True, time_axis=0, batch_axis=1)
    if name == "Swish":
        g.since(name, 24)
        return g.same(name, g.input("f32", g.new_shape()), False, rounding=16, alpha=1.5)
    if name == "CastLike":
        g.require(g.since(name, 15))
        x = tied(g, g.pick(["f32", "i64", "i32"]), g.new_shape())
        like = g.constant(np.zeros(1), g.pick(["f32", "i64", "i32", "f64"]))
        return g.node(name, [x, like], [(like.dtype, x.shape)], True)
    if name == "Trilu":
        g.since(name, 14)
        x = g.input(g.pick(["i32", "f64", "bool", "u8"]), fixed(2, LENGTH, g.pick([3, 5])))
        return g.node(name, [x, g.constant(np.int64(g.whole(-2, 2)))], [(x.dtype, x.shape)], True, upper=g.whole(0, 1))
    if name == "Clip":
        g.require(g.since(name, 12))
        x = g.input(g.pick(["i8", "u8", "i32", "i64", "u32", "f64"]), g.new_shape())
        low, high = g.pick([(1, 5), (5, 1), (0, 0)])
        return g.node(name, [x, g.constant(np.array(low), x.dtype), g.constant(np.array(high), x.dtype)], [(x.dtype, x.shape)], True)
    if name in ("Softmax", "LogSoftmax"):  # the old form, over all dimensions from an axis on
        g.require(not g.since(name, 13))
        x = g.input("f32", fixed(LENGTH, 2, 3))
        return g.same(name, x, False, rounding=32, sums=True, axis=g.whole(0, 2))
    if name == "Expand":
        x = g.input("f32", fixed(LENGTH, 1))
        return g.node(name, [x, g.integers([2, 1, 5])], [("f32", fixed(2, LENGTH, 5))], True)
    if name == "Hardmax":
        g.require(not g.since(name, 13))
        return g.same(name, g.input("f32", fixed(LENGTH, 2, 3)), True, axis=g.whole(0, 2))
    raise Unavailable(name)


@operator("MiddleAxis")
def middle_axis(g, op):
    """Softmax and its neighbours over the length in the middle."""
    x = g.input("f32", fixed(g.whole(1, 2), LENGTH, g.pick([1, 3, 17])))
    name = g.pick(["Softmax", "LogSoftmax", "ReduceLogSumExp", "ReduceMax", "ReduceMean"])
    if name in ("Softmax", "LogSoftmax"):
        g.require(g.since(name, 13))
        return g.same(name, x, False, rounding=32, sums=True, axis=1)
    g.require(g.since(name, 18))
    return g.node(name, [x, g.integers([1])], [("f32", x.shape[:1] + x.shape[2:])], False, rounding=32, sums=True, keepdims=0)
