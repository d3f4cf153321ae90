"""Differences with a cause outside mdot: deviations of ONNX Runtime, and results that ONNX's specification leaves open.

A row has operators (the minimised graph contains one), a condition and the reason. Remove a row when a newer ONNX
Runtime makes it unnecessary. Rows apply only if mdot's evaluator agrees with the compiled code, except where `open`
is True: there the two may differ because the result depends on the order of operations.
"""

import numpy as np
import onnx
from onnx import helper

from compare import TRIALS, difference, expected, session


def is_special(array):
    return ~np.isfinite(array.astype(np.float64))


def only_special(c):
    """Whether all differences are at elements where one side is infinite or NaN."""
    if c.got.dtype.kind != "f":
        return False
    wrong = differing(c)
    rest = wrong & ~is_special(c.got) & ~is_special(c.wanted)
    got, wanted = c.got[rest], c.wanted[rest]
    return bool(is_special(c.got).any() | is_special(c.wanted).any()) and not (np.abs(got - wanted) >
                                                                               1e-3 * np.abs(wanted) + 1e-5).any()


def differing(c):
    return ~((c.got == c.wanted) | (np.isnan(c.got) & np.isnan(c.wanted)))


def opposite_infinities(c):
    """Whether all differences are between inf and -inf, as 1 / 0 and 1 / -0 are."""
    if c.got.dtype.kind != "f":
        return False
    got, wanted = c.got[differing(c)], c.wanted[differing(c)]
    return bool(got.size and np.isinf(got).all() and (got == -wanted).all())


def logarithm_of_zero(c):
    """Whether all differences are between -inf and NaN, as the logarithms of -0 and of a negative number are."""
    if c.got.dtype.kind != "f":
        return False
    got, wanted = c.got[differing(c)], c.wanted[differing(c)]
    return bool(got.size and ((np.isnan(got) & np.isneginf(wanted)) | (np.isneginf(got) & np.isnan(wanted))).all())


def logarithm_of_rounding(c):
    """Whether all differences are between logarithms of 0, of a negative number or of one below 1e-4."""
    if c.got.dtype.kind != "f":
        return False
    got, wanted = c.got[differing(c)], c.wanted[differing(c)]
    return bool(got.size and not (got >= -9).any() and not (wanted >= -9).any())


def logarithm_of_small(c):
    """Whether ONNX Runtime has -inf wherever mdot has an unlike logarithm, which is below -16."""
    wrong = differing(c) & ~np.isclose(c.got, c.wanted, 1e-4, 1e-5)
    return bool(wrong.any() and np.isneginf(c.wanted[wrong]).all() and (c.got[wrong] < -16).all())


def reads(c, condition):
    return any(condition(a.astype(np.float64)).any() for a in c.small_feeds.values() if a.dtype.kind == "f")


def reads_nan(c):
    return reads(c, np.isnan)


def reads_special(c):
    return reads(c, lambda a: ~np.isfinite(a))


def nan_only_there(c):
    return reads_nan(c) and only_special(c)


def special_only_there(c):
    return reads_special(c) and only_special(c)


def beyond_integers(c):
    """Whether an input has numbers that the result's integers cannot hold."""
    is_below = c.got.dtype.kind == "u" and reads(c, lambda a: a <= -1)
    return is_below or reads_special(c) or reads(c, lambda a: np.abs(a) >= 127)


def huge_integers(c):
    return any((np.abs(a.astype(np.float64)) > 2.0**53).any() for a in c.small_feeds.values() if a.dtype.kind == "i")


def all_masked(c):
    """Whether the differences come from rounding scores near -10000, in rows with all keys masked.

    A causal node's row sees the keys up to the row's position. Every other row must agree up to the rounding of
    sums.
    """
    causal = any(a.name == "unidirectional" and a.i for n in c.small.nodes for a in n.attribute)
    masks = [a for a in c.small_feeds.values() if a.dtype.kind == "i" and a.ndim == 2 and a.shape == c.got.shape[:2]]
    if c.got.ndim != 3 or not masks:
        return False
    visible = np.maximum.accumulate(masks[0] != 0, axis=1) if causal else (masks[0] != 0).any(axis=1, keepdims=True)
    tolerance = np.where(visible, 1e-5, 2e-3)[..., None] * np.abs(c.wanted[np.isfinite(c.wanted)]).max(initial=0)
    return bool(((np.abs(c.got - c.wanted) <= tolerance) | (c.got == c.wanted)).all())


def zero_for_nan(c):
    """Whether all differences are zeros of mdot where ONNX Runtime has NaN."""
    wrong = differing(c)
    return bool(wrong.any() and (c.got[wrong] == 0).all() and np.isnan(c.wanted[wrong]).all())


def mean_of_nothing(c):
    return any(n.op_type == "NonZero" for n in c.small.nodes) and only_special(c)


def amplified(c):
    """Whether the results differ by less than a thousandth, and the graph enlarges errors of small numbers."""
    wrong = differing(c)
    got, wanted = c.got[wrong].astype(np.float64), c.wanted[wrong].astype(np.float64)
    enlarges = any(n.op_type in ("Reciprocal", "Div", "Pow", "Log", "Exp", "Sinh", "Cosh", "Atanh") for n in c.small.nodes)
    return bool(enlarges and np.isfinite(got).all() and (np.abs(got - wanted) < 1e-3 * np.abs(wanted)).all())


def unsigned(name, added):
    """Nodes that add 128 to a tensor of signed bytes, and the name of the result."""
    bias = helper.make_tensor(f"{name}_128", onnx.TensorProto.INT32, [], [128])
    added += [helper.make_node("Constant", [], [f"{name}_bias"], value=bias),
              helper.make_node("Cast", [name], [f"{name}_wide"], to=onnx.TensorProto.INT32),
              helper.make_node("Add", [f"{name}_wide", f"{name}_bias"], [f"{name}_sum"]),
              helper.make_node("Cast", [f"{name}_sum"], [f"{name}_unsigned"], to=onnx.TensorProto.UINT8)]
    return f"{name}_unsigned"


def with_unsigned_bytes(model):
    """The model with unsigned factors in place of signed ones; their differences from the zero points are the same."""
    model = onnx.shape_inference.infer_shapes(model)
    types = {v.name: v.type.tensor_type.elem_type for v in (*model.graph.input, *model.graph.value_info)}
    types |= {i.name: i.data_type for i in model.graph.initializer}
    nodes, done = [], {"": "zero_128"}
    zero = helper.make_tensor("zero_128", onnx.TensorProto.UINT8, [], [128])
    for node in list(model.graph.node):
        for at in (0, 1) if node.op_type in ("MatMulInteger", "ConvInteger") else ():
            if types[node.input[at]] != onnx.TensorProto.INT8:
                continue
            node.input.extend([""] * (4 - len(node.input)))
            for name in {node.input[at], node.input[at + 2]} - set(done):
                done[name] = unsigned(name, nodes)
            node.input[at], node.input[at + 2] = done[node.input[at]], done[node.input[at + 2]]
        nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend([helper.make_node("Constant", [], ["zero_128"], value=zero), *nodes])
    return model


def saturates(c):
    """Whether ONNX Runtime agrees with mdot as soon as its products of bytes cannot saturate.

    Without VNNI, its product of unsigned and signed bytes adds pairs of products in 16 bits. Its product of unsigned
    bytes does not, nor does an f32 product between DequantizeLinear and QuantizeLinear, which its optimiser fuses.
    """
    exact = expected(session(with_unsigned_bytes(c.small.model()), optimised=False), c.small_feeds)[c.index]
    return difference(c.small, c.small.outputs[c.index], c.got, exact, [exact] * TRIALS) is None


def tiny_norm(c):
    return reads(c, lambda a: (np.abs(a) < 1e-18) & (a != 0))


# operators, condition, open, reason
ROWS = (
    ({"MatMulInteger", "ConvInteger", "DequantizeLinear"}, saturates, False,
     "without VNNI, ONNX Runtime's sum of two products of bytes ends at 32767 (255 * 127 * 16 gives 262136, not 518160)"),
    ({"LSTM", "GRU", "RNN"}, special_only_there, False, "ONNX Runtime's gates turn NaN into a number"),
    ({"Scan"}, special_only_there, False,
     "ONNX Runtime's Sigmoid is 0 where its value is below about 1e-8, and a state of 0 times infinity is NaN"),
    ({"MaxPool", "GlobalMaxPool"}, special_only_there, False,
     "ONNX Runtime's maximum begins with the type's least finite number"),
    ({"MaxPool"}, nan_only_there, True, "ONNX Runtime's maximum skips NaN, and which of 0 and -0 is greater is open"),
    ({"Einsum"}, special_only_there, True, "the order of products is open: infinities then meet zeros or each other"),
    ({"RotaryEmbedding"}, special_only_there, True,
     "whether a product overflows before the other one is added (fused multiply-add) is open"),
    ({"FastGelu", "Gelu", "BiasGelu", "QuickGelu"}, amplified, False,
     "ONNX Runtime's tanh and erf have an absolute error, which reciprocals and powers of small results enlarge"),
    ({"LSTM", "GRU", "RNN"}, amplified, False, "ONNX Runtime's gates have an absolute error, which powers and Atanh enlarge"),
    ({"GroupNormalization"}, amplified, False,
     "ONNX Runtime subtracts the square of the mean from the mean of squares, and powers enlarge the error"),
    ({"MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin", "ReduceLogSumExp", "ScatterElements", "ScatterND"}, nan_only_there, False,
     "ONNX Runtime's maximum skips NaN"),
    ({"Cast", "DynamicQuantizeLinear"}, beyond_integers, False, "numbers beyond the integers' range are open"),
    ({"DynamicQuantizeLinear"}, nan_only_there, False, "ONNX Runtime's extremes skip NaN"),
    ({"MeanVarianceNormalization"}, only_special, False,
     "ONNX Runtime subtracts the square of the mean from the mean of squares, which may be negative"),
    ({"ArgMax", "ArgMin"}, reads_nan, False, "the order of NaN is open; mdot takes the first or last NaN, as NumPy does"),
    ({"TopK"}, reads_nan, True, "the order of NaN is open"),
    ({"DFT"}, only_special, True,
     "infinity times a factor that is 0, or nearly 0 after rounding, is NaN or infinite; the order of sums is open"),
    ({"Resize"}, special_only_there, True, "whether a neighbour of weight 0 is left out or multiplied by 0 is open"),
    ({"ReduceMean"}, mean_of_nothing, False, "ONNX Runtime's mean of no elements is 0, and ONNX's reference gives NaN"),
    ({"ReduceSum", "CumSum"}, huge_integers, False, "the overflow of 64-bit integers is open"),
    ({"ReduceProd"}, only_special, True, "the order of factors is open, and products overflow on the way"),
    ({"Attention", "MultiHeadAttention"}, reads_special, True,
     "infinite scores and values, and keys whose weight is below 2^-100, are open"),
    ({"Attention", "MultiHeadAttention"}, all_masked, True,
     "ONNX Runtime, and mdot in causal rows, round the scores of a row without keys after the addition of -10000"),
    ({"Clip"}, special_only_there, False,
     "an absent bound leaves infinities, while ONNX Runtime takes the type's greatest number"),
    ({"Attention"}, opposite_infinities, True, "the sign of the zeros in a row without keys is open, and 1 / -0 is -inf"),
    ({"Sigmoid"}, logarithm_of_small, True, "ONNX Runtime's Sigmoid is 0 where its value is below about 1e-8"),
    ({"Softmax"}, zero_for_nan, True, "attention's rows whose keys are all masked by -inf are zeros (docs/decisions/numerics.md)"),
    ({"Gelu"}, logarithm_of_zero, True, "whether a tiny negative result is -0 is open, and its logarithm is -inf or NaN"),
    ({"Gelu"}, tiny_norm, True, "half of the least f32 number is 0 or this number"),
    ({"FusedGemm"}, only_special, False, "ONNX Runtime's Sigmoid is 0 where its value is below about 1e-8, and 0 / 0 is NaN"),
    ({"ReduceLogSum"}, logarithm_of_rounding, True, "a sum whose terms cancel is 0 or a rounding error"),
    ({"Sign"}, nan_only_there, False, "ONNX Runtime's sign of an f16 NaN is 0"),
    ({"DynamicQuantizeLinear"}, tiny_norm, False, "a scale that underflows to 0 is open"),
    ({"Normalizer"}, tiny_norm, False, "ONNX Runtime leaves rows whose norm underflows as they are"),
)


def known_deviation(operators, agrees, case):
    """The reason, or None. `operators` is the set of the minimised graph's operators."""
    for names, condition, is_open, reason in ROWS:
        if operators & names and (agrees or is_open) and condition(case):
            return reason
    return None
