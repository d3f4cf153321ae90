"""Small patterns whose numbers are easily wrong: scores beside additive masks, norms over pairs of positions, trees with
sets of categories, powers of integers, and factors of zero."""

import numpy as np

from graphs import LENGTH, fixed
from operators import operator
from operators_large import grown


@operator("AdditiveMask", weight=2)
def additive_mask(g, op):
    """softmax(q kT / 4 + mask) v with whole numbers as q and k, so that every order of additions gives the same scores.
    Every key of the first head is masked; beside -1e9, the rounded sums decide the weights."""
    heads, width = 2, 16
    q, k, v = (g.input("f32", fixed(1, heads, LENGTH, width), "unit") for _ in range(3))
    m = g.input("f32", fixed(1, 1, 1, LENGTH), "unit")
    size = g.constant(np.float32(g.pick([1 / 64, 1, 64])))
    number = g.constant(np.float32(g.pick([-1e4, -65504, -1e6, -1e9, -1e12, -3.4028235e38])))
    zero, quarter = g.constant(np.float32(0)), g.constant(np.float32(0.25))
    limit = g.constant(np.array([2, 0.5], np.float32).reshape(1, heads, 1, 1))
    scores = (("f32", fixed(1, heads, LENGTH, LENGTH)),)

    def inner(name, inputs, outputs, exact=True, **options):
        return g.node(name, inputs, list(outputs), exact, keep=False, **options)

    wide, half = g.constant(np.float32(9)), g.constant(np.float32(4.5))
    whole = [inner("Round", [inner("Sub", [inner("Mul", [x, wide], [("f32", x.shape)]), half], [("f32", x.shape)])],
                   [("f32", x.shape)]) for x in (q, k)]
    scaled = inner("Mul", [whole[0], size], [("f32", q.shape)])
    turned = inner("Transpose", [whole[1]], [("f32", fixed(1, heads, width, LENGTH))], perm=[0, 1, 3, 2])
    products = inner("MatMul", [scaled, turned], scores)
    hidden = inner("Less", [m, limit], [("bool", fixed(1, heads, 1, LENGTH))])
    mask = inner("Where", [hidden, number, zero], [("f32", fixed(1, heads, 1, LENGTH))])
    form = g.pick(["behind the scale", "inside the scale", "selected"])
    if form == "inside the scale":
        total = inner("Mul", [inner("Add", [products, mask], scores), quarter], scores)
    else:
        total = inner("Mul", [products, quarter], scores)
        chosen = ("Add", [mask, total]) if form == "behind the scale" else ("Where", [hidden, number, total])
        total = inner(*chosen, scores)
    weights = inner("Softmax", [total], scores, False, axis=-1, rounding=16)
    return g.node("MatMul", [weights, v], [("f32", v.shape)], False, rounding=64, sums=True)


@operator("PairNorm")
def pair_norm(g, op):
    """A norm over all pairs of positions, and the mean."""
    channels = g.pick([2, 4, 6])
    g.min_length = max(g.min_length, 2)  # one element has no variance
    x = g.input("f32", fixed(1, channels, LENGTH, LENGTH))
    scale, bias = g.weights(channels), g.weights(channels)
    if g.chance(0.5):
        y = g.node("InstanceNormalization", [x, scale, bias], [("f32", x.shape)], False, rounding=64, sums=True)
    else:
        g.require(g.since("GroupNormalization", 21))
        y = g.node("GroupNormalization", [x, scale, bias], [("f32", x.shape)], False, rounding=64, sums=True, num_groups=2)
    return y


@operator("CategoricalTrees")
def categorical_trees(g, op):
    """Tests for equality that lead to one subtree, as LightGBM's exporter writes sets of categories."""
    features = g.pick([1, 3])
    x = g.input("f32", fixed(LENGTH, features), "unit")
    seven = g.constant(np.float32(7))
    whole = g.node("Round", [g.node("Mul", [x, seven], [("f32", x.shape)], True, keep=False)], [("f32", x.shape)], True, keep=False)
    a = grown(g, features, g.pick([2, 8]), 1)
    for tree in sorted(set(a["nodes_treeids"])):
        rows = [i for i, t in enumerate(a["nodes_treeids"]) if t == tree and a["nodes_modes"][i] != "LEAF"]
        free = 1 + max(n for n, t in zip(a["nodes_nodeids"], a["nodes_treeids"]) if t == tree)
        for i in rows:
            if not g.chance(0.6):
                continue
            first = g.whole(1, 6)
            a["nodes_modes"][i], a["nodes_values"][i] = "BRANCH_EQ", float(first)
            values = [free, a["nodes_featureids"][i], float(first % 6 + 1), "BRANCH_EQ", a["nodes_truenodeids"][i],
                      a["nodes_falsenodeids"][i], 0]
            for key, item in zip(list(a)[:8], [tree, *values]):
                a[key].append(item)
            a["nodes_falsenodeids"][i] = free
            free += 1
    lists = list(a)[:8]  # ONNX Runtime expects the nodes of a tree side by side
    for key, column in zip(lists, zip(*sorted(zip(*(a[key] for key in lists))))):
        a[key] = list(column)
    return g.node("TreeEnsembleRegressor", [whole], [("f32", fixed(LENGTH, 1))], False, domain="ai.onnx.ml", rounding=32,
                  n_targets=1, **a)


@operator("IntegerPow")
def integer_power(g, op):
    """Powers up to 20^12. Beyond 2^53, ONNX Runtime loses digits."""
    g.require(g.since("Pow", 13))
    kind = g.pick(["i64", "i32"])
    x = g.input(kind, g.new_shape())
    y = g.input("i64", x.shape, "index", (0, 13 if kind == "i64" else 8))
    small = g.node("Clip", [x, g.constant(np.array(-20), kind), g.constant(np.array(20), kind)], [(kind, x.shape)], True,
                   keep=False)
    return g.node("Pow", [small, y], [(kind, x.shape)], True)


@operator("ZeroBeta")
def zero_beta(g, op):
    """Gemm with beta = 0 must not read C."""
    inner, columns = g.pick([3, 8]), g.pick([4, 16])
    x = g.input("f32", fixed(LENGTH, inner))
    y = g.weights(inner, columns) if g.chance(0.5) else g.input("f32", fixed(inner, columns))
    c = g.constant(np.array([np.nan, np.inf] + [1] * (columns - 2), np.float32))
    return g.node("Gemm", [x, y, c], [("f32", fixed(LENGTH, columns))], False, rounding=32, sums=True, beta=0.0)
