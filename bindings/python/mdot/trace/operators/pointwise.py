"""Element-wise operators: sums and products, activations, comparisons, masks, dropout."""

from __future__ import annotations

from typing import Any, Callable

from mdot.trace.graph import BOOL, FLOATS, Value
from mdot.trace.operators.call import Call

Translation = Callable[[Call], Any]


def _unary(op: str, **attributes: Any) -> Translation:
    return lambda call: call.result(op, [call.operand(call.x, call.dtype)], **attributes)


def _test(op: str) -> Translation:
    return lambda call: call.result(op, [call.x])


def _scaled(call: Call, value: Any, factor: Any) -> Value:
    """An operand times alpha or value, which the kernel of the sum multiplies. Integers may be indices that a reader knows."""
    operand: Value = call.operand(value, call.dtype)
    if factor is None or factor == 1 or call.dtype in FLOATS:
        return operand
    return call.graph.op("Mul", [operand, call.graph.scalar(factor, call.dtype)], operand.shape, call.dtype)


def _binary(op: str) -> Translation:
    def translate(call: Call) -> Value:
        left, right = call.get("self", "input", "base"), call.get("other", "exponent", "value")
        return call.result(op, [call.operand(left, call.dtype), _scaled(call, right, call.get("alpha"))])

    return translate


def _product(op: str) -> Translation:
    """Drops random factors, because jobs leave out dropout and stochastic depth."""

    def translate(call: Call) -> Value:
        left, right = call["self"], call["other"]
        if isinstance(right, Value) and isinstance(left, Value) and left.noise != right.noise:
            data = left if right.noise else right
            if data.shape == call.shape and data.kind != "constant":
                return data
        left, right = call.operand(left, call.dtype), call.operand(right, call.dtype)
        quotient = call.result(op, [left, right])
        mode = call.get("rounding_mode")
        return call.result("Floor", [quotient]) if mode is not None and call.dtype in FLOATS else quotient

    return translate


def _floor_divide(call: Call) -> Value:
    quotient = _product("Div")(call)
    return call.result("Floor", [quotient]) if call.dtype in FLOATS else quotient


def _comparison(op: str, negated: bool = False) -> Translation:
    def translate(call: Call) -> Value:
        left, right = call["self"], call["other"]
        dtype = call.common_dtype(left, right)
        made = call.graph.op(op, [call.operand(left, dtype), call.operand(right, dtype)], call.shape, BOOL)
        return call.result("Not", [made]) if negated else made

    return translate


def _logical(op: str, bitwise: str | None = None) -> Translation:
    def translate(call: Call) -> Value:
        left, right = call["self"], call["other"]
        if bitwise is not None and call.dtype != BOOL:
            return call.result(bitwise, [call.operand(left, call.dtype), call.operand(right, call.dtype)])
        return call.result(op, [call.operand(left, BOOL), call.operand(right, BOOL)])

    return translate


def _shift(direction: str) -> Translation:
    def translate(call: Call) -> Value:
        left, right = call.operand(call["self"], call.dtype), call.operand(call["other"], call.dtype)
        return call.result("BitShift", [left, right], direction=direction)

    return translate


def _clip(call: Call) -> Value | None:
    least, most = call.get("min", "min_val"), call.get("max", "max_val")
    x = call.operand(call.x, call.dtype)
    if isinstance(least, Value) or isinstance(most, Value):
        for op, bound in (("Max", least), ("Min", most)):
            if bound is not None:
                x = call.result(op, [x, call.operand(bound, call.dtype)])
        return x
    bounds = [call.graph.scalar(bound, call.dtype) if bound is not None else None for bound in (least, most)]
    return call.result("Clip", [x, *bounds] if bounds[1] is not None else [x, bounds[0]])


def _relu6(call: Call) -> Value:
    return call.result("Clip", [call.x, call.graph.scalar(0.0, call.dtype), call.graph.scalar(6.0, call.dtype)])


def _rsqrt(call: Call) -> Value:
    return call.result("Reciprocal", [call.result("Sqrt", [call.operand(call.x, call.dtype)])])


def _square(call: Call) -> Value:
    return call.result("Pow", [call.x, call.graph.scalar(2, call.dtype)])


def _log1p(call: Call) -> Value:
    return call.result("Log", [call.result("Add", [call.x, call.graph.scalar(1, call.dtype)])])


def _expm1(call: Call) -> Value:
    return call.result("Sub", [call.result("Exp", [call.x]), call.graph.scalar(1, call.dtype)])


def _gelu(call: Call) -> Value:
    return call.result("Gelu", [call.x], approximate=call.get("approximate") or "none")


def _elu(call: Call) -> Value:
    return call.result("Elu", [call.x], alpha=float(call["alpha"]))


def _leaky_relu(call: Call) -> Value:
    return call.result("LeakyRelu", [call.x], alpha=float(call["negative_slope"]))


def _softplus(call: Call) -> Value:
    return call.result("Softplus", [call.x])


def _prelu(call: Call) -> Value:
    weight: Value = call["weight"]
    if weight.count > 1 and len(call.x.shape) > 2:
        weight = call.graph.reshape(weight, (weight.count, *[1] * (len(call.x.shape) - 2)))
    return call.result("PRelu", [call.x, weight])


def _glu(call: Call) -> Value:
    axis = call["dim"] % len(call.x.shape)
    left, gate = call.graph.node("Split", [call.x], [(call.shape, call.dtype)] * 2, axis=axis, num_outputs=2)
    return call.result("Mul", [left, call.result("Sigmoid", [gate])])


def _where(call: Call) -> Value | list[Value]:
    if call.get("self", "input") is None or call.get("other") is None:  # where(condition) returns coordinates
        return call.places()
    left, right = call.get("self", "input"), call["other"]
    condition = call.operand(call["condition"], BOOL)
    return call.result("Where", [condition, call.operand(left, call.dtype), call.operand(right, call.dtype)])


def _masked_fill(call: Call) -> Value:
    mask, number = call.operand(call["mask"], BOOL), call.operand(call["value"], call.dtype)
    return call.result("Where", [mask, number, call["self"]])


def _fill(call: Call) -> Value:
    """The result depends on the filled value, or the source of the copy, alone."""
    source = call.get("value", "src", "other")
    made = call.operand(source if source is not None else 0, call.dtype)
    return call.graph.expand(made, call.shape)


def _cast(call: Call) -> Value:
    return call.operand(call.x, call.dtype)


def _same(call: Call) -> Value:
    return call.operand(call.x, call.dtype)


def _detach(call: Call) -> Value:
    return call.graph.stop_gradient(call.x)


def _dropout(call: Call) -> list[Value]:
    """Passes the input through, because jobs leave out dropout. native_dropout also returns a mask."""
    return [call.x, *[call.graph.constant(tuple(t.shape), BOOL) for t in call.outputs[1:]]]


def _noise(call: Call) -> Value:
    made = call.graph.constant(call.shape, call.dtype)
    made.noise = True
    return made


def _fresh(call: Call) -> Value:
    """zeros_like and similar functions, which use only the operand's shape."""
    content = call.outputs[0]
    return call.graph.constant(tuple(content.shape), call.dtype)


def _addcmul(call: Call) -> Value:
    left, right = call.operand(call["tensor1"], call.dtype), call.operand(call["tensor2"], call.dtype)
    product = call.result("Mul", [left, right])
    return call.result("Add", [call.operand(call["self"], call.dtype), _scaled(call, product, call["value"])])


def _addcdiv(call: Call) -> Value:
    left, right = call.operand(call["tensor1"], call.dtype), call.operand(call["tensor2"], call.dtype)
    quotient = call.result("Div", [left, right])
    return call.result("Add", [call.operand(call["self"], call.dtype), _scaled(call, quotient, call["value"])])


def _lerp(call: Call) -> Value:
    start, end = call.operand(call["self"], call.dtype), call.operand(call["end"], call.dtype)
    step = call.result("Mul", [call.result("Sub", [end, start]), call.operand(call["weight"], call.dtype)])
    return call.result("Add", [start, step])


def _rsub(call: Call) -> Value:
    return call.result("Sub", [call.operand(call["other"], call.dtype), _scaled(call, call["self"], call["alpha"])])



TRANSLATIONS: dict[str, Translation] = {
    **{
        name: _unary(op)
        for name, op in {
            "abs": "Abs", "neg": "Neg", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "sin": "Sin", "cos": "Cos",
            "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh",
            "tanh": "Tanh", "sigmoid": "Sigmoid", "erf": "Erf", "floor": "Floor", "ceil": "Ceil", "round": "Round",
            "relu": "Relu", "reciprocal": "Reciprocal", "sign": "Sign", "silu": "Swish", "mish": "Mish",
            "hardswish": "HardSwish", "selu": "Selu", "softsign": "Softsign",
        }.items()
    },  # fmt: skip
    "hardsigmoid": _unary("HardSigmoid", alpha=1 / 6, beta=0.5),
    "logical_not": lambda call: call.result("Not", [call.operand(call.x, BOOL)]),
    "bitwise_not": lambda call: call.result("Not" if call.dtype == BOOL else "BitwiseNot", [call.x]),
    "isnan": _test("IsNaN"),
    "isinf": _test("IsInf"),
    "add": _binary("Add"),
    "sub": _binary("Sub"),
    "subtract": _binary("Sub"),
    "rsub": _rsub,
    "mul": _product("Mul"),
    "multiply": _product("Mul"),
    "div": _product("Div"),
    "true_divide": _product("Div"),
    "floor_divide": _floor_divide,
    "pow": _binary("Pow"),
    "maximum": _binary("Max"),
    "minimum": _binary("Min"),
    "remainder": _binary("Mod"),
    "eq": _comparison("Equal"),
    "ne": _comparison("Equal", negated=True),
    "not_equal": _comparison("Equal", negated=True),
    "lt": _comparison("Less"),
    "le": _comparison("LessOrEqual"),
    "gt": _comparison("Greater"),
    "ge": _comparison("GreaterOrEqual"),
    "greater_equal": _comparison("GreaterOrEqual"),
    "logical_and": _logical("And"),
    "logical_or": _logical("Or"),
    "logical_xor": _logical("Xor"),
    "bitwise_and": _logical("And", "BitwiseAnd"),
    "__iand__": _logical("And", "BitwiseAnd"),
    "__ior__": _logical("Or", "BitwiseOr"),
    "__ixor__": _logical("Xor", "BitwiseXor"),
    "bitwise_or": _logical("Or", "BitwiseOr"),
    "bitwise_xor": _logical("Xor", "BitwiseXor"),
    "__and__": _logical("And", "BitwiseAnd"),
    "__or__": _logical("Or", "BitwiseOr"),
    "__xor__": _logical("Xor", "BitwiseXor"),
    **{name: _shift("LEFT") for name in ("__lshift__", "__ilshift__", "bitwise_left_shift")},
    **{name: _shift("RIGHT") for name in ("__rshift__", "__irshift__", "bitwise_right_shift")},
    "clamp": _clip,
    "clip": _clip,
    "clamp_min": _clip,
    "clamp_max": _clip,
    "hardtanh": _clip,
    "relu6": _relu6,
    "rsqrt": _rsqrt,
    "square": _square,
    "log1p": _log1p,
    "expm1": _expm1,
    "gelu": _gelu,
    "elu": _elu,
    "leaky_relu": _leaky_relu,
    "softplus": _softplus,
    "prelu": _prelu,
    "glu": _glu,
    "where": _where,
    "masked_fill": _masked_fill,
    "fill": _fill,
    "zero": _fill,
    "copy": _fill,
    "addcmul": _addcmul,
    "addcdiv": _addcdiv,
    "lerp": _lerp,
    "detach": _detach,
    "set": lambda call: call.get("source", "self"),
    "dropout": _dropout,
    "native_dropout": _dropout,
    "feature_dropout": _dropout,
    "alpha_dropout": _dropout,
    "feature_alpha_dropout": _dropout,
    **{name: _noise for name in ("bernoulli", "rand_like", "randn_like", "uniform", "normal", "randint_like")},
    **{name: _fresh for name in ("zeros_like", "ones_like", "empty_like", "full_like", "new_empty", "new_full", "new_ones",
                                 "new_zeros")},
    **{name: _cast for name in ("to", "_to_copy", "type_as", "float", "half")},
    **{name: _same for name in ("contiguous", "clone", "alias", "lift_fresh", "lift_fresh_copy", "lift", "pin_memory",
                                "requires_grad", "resolve_conj", "resolve_neg", "positive")},
}  # fmt: skip
