"""Reductions and losses."""

from __future__ import annotations

from typing import Any, Callable

from mdot.trace.graph import BOOL, INT32, Value
from mdot.trace.operators.call import Call, axis_of


def _axes(call: Call, x: Value) -> list[int]:
    dims = call.get("dim", "axis")
    if dims is None or dims == []:
        return list(range(len(x.shape)))
    return [axis_of(d, len(x.shape)) for d in (dims if isinstance(dims, list) else [dims])]


def _reduce(op: str) -> Callable[[Call], Value]:
    def translate(call: Call) -> Value:
        x = call.operand(call.x, call.dtype)
        return call.graph.reduce(op, x, _axes(call, x), bool(call.get("keepdim")))

    return translate


def _logical(op: str) -> Callable[[Call], Value]:
    def translate(call: Call) -> Value:
        x = call.graph.cast(call.x, INT32)
        return call.graph.cast(call.graph.reduce(op, x, _axes(call, x), bool(call.get("keepdim"))), BOOL)

    return translate


def _extreme(op: str, arg: str) -> Callable[[Call], Any]:
    """max(x), max(x, y), and max(x, dim), which also returns the indices."""

    def translate(call: Call) -> Any:
        if call.get("other") is not None:
            return call.result(op[len("Reduce") :], [call["self"], call.operand(call["other"], call.dtype)])
        x = call.x
        best = call.graph.reduce(op, x, _axes(call, x), bool(call.get("keepdim")))
        if len(call.outputs) == 1:
            return best
        places = call.graph.op(arg, [x], best.shape, 7, axis=_axes(call, x)[0], keepdims=int(bool(call["keepdim"])))
        return [best, places]

    return translate


def _norm(call: Call) -> Value | None:
    order = call.get("ord", "p")
    op = {None: "ReduceL2", 1: "ReduceL1", 2: "ReduceL2"}.get(order)
    return _reduce(op)(call) if op is not None else None


def _moments(call: Call) -> tuple[Value, Value]:
    """Returns variance and mean."""
    x, axes, keep = call.x, _axes(call, call.x), bool(call.get("keepdim"))
    mean = call.graph.reduce("ReduceMean", x, axes, keep=True)
    apart = call.graph.op("Sub", [x, mean], x.shape, x.dtype)
    square = call.graph.op("Mul", [apart, apart], x.shape, x.dtype)
    variance = call.graph.reduce("ReduceMean", square, axes, keep)
    return variance, mean


def _variance(call: Call) -> Value:
    return _moments(call)[0]


def _deviation(call: Call) -> Value:
    return call.result("Sqrt", [_moments(call)[0]])


def _variance_and_mean(call: Call) -> list[Value]:
    return list(_moments(call))


def _cross_entropy(call: Call) -> Value | None:
    if not 0 < len(call["target"].shape) < len(call.x.shape):
        return None
    names = ("none", "mean", "sum")
    return call.result("SoftmaxCrossEntropyLoss", [call.x, call["target"]], reduction=names[call["reduction"]])


def _negative_log_likelihood(call: Call) -> Value | None:
    if len(call.outputs) > 1 or not call["target"].shape:
        return None
    names = ("none", "mean", "sum")
    return call.result("NegativeLogLikelihoodLoss", [call.x, call["target"]], reduction=names[call["reduction"]])


def _squared_error(call: Call) -> Value:
    left, right = call["self"], call["target"]
    shape = left.shape if left.count >= right.count else right.shape
    apart = call.graph.op("Sub", [left, right], shape, call.dtype)
    square = call.graph.op("Mul", [apart, apart], shape, call.dtype)
    op = {1: "ReduceMean", 2: "ReduceSum"}.get(call["reduction"])
    return call.graph.reduce(op, square, range(len(shape)), keep=False) if op is not None else square


TRANSLATIONS: dict[str, Callable[[Call], Any]] = {
    "sum": _reduce("ReduceSum"),
    "mean": _reduce("ReduceMean"),
    "amax": _reduce("ReduceMax"),
    "amin": _reduce("ReduceMin"),
    "prod": _reduce("ReduceProd"),
    "logsumexp": _reduce("ReduceLogSumExp"),
    "any": _logical("ReduceMax"),
    "all": _logical("ReduceMin"),
    "max": _extreme("ReduceMax", "ArgMax"),
    "min": _extreme("ReduceMin", "ArgMin"),
    "norm": _norm,
    "linalg_vector_norm": _norm,
    "var": _variance,
    "std": _deviation,
    "var_mean": _variance_and_mean,
    "cross_entropy_loss": _cross_entropy,
    "nll_loss": _negative_log_likelihood,
    "nll_loss_nd": _negative_log_likelihood,
    "mse_loss": _squared_error,
}
