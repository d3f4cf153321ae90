"""Normalisations and softmax."""

from __future__ import annotations

from typing import Any, Callable

from mdot.trace.graph import Value
from mdot.trace.operators.call import DTYPES, Call, axis_of


def _affine(call: Call, vector: Value | None, shape: tuple[int, ...]) -> Value:
    """A trained vector, or a constant if the module has none."""
    return vector if vector is not None else call.graph.constant(shape, call.dtype)


def _statistics(call: Call) -> list[Value]:
    """Results after the first, which a forward graph does not read."""
    return [call.graph.constant(tuple(tensor.shape), DTYPES[tensor.dtype]) for tensor in call.outputs[1:]]


def _layer_norm(call: Call) -> list[Value]:
    shape = tuple(call["normalized_shape"])
    inputs = [call["input"], _affine(call, call["weight"], shape)]
    if call["bias"] is not None:
        inputs.append(call["bias"])
    epsilon = float(call.get("eps"))
    return [call.result("LayerNormalization", inputs, axis=-len(shape), epsilon=epsilon), *_statistics(call)]


def _rms_norm(call: Call) -> list[Value]:
    shape = tuple(call["normalized_shape"])
    epsilon = call["eps"] if call["eps"] is not None else 1e-6
    inputs = [call["input"], _affine(call, call["weight"], shape)]
    made = call.result("RMSNormalization", inputs, axis=-len(shape), epsilon=float(epsilon))
    return [made, *_statistics(call)]


def _group_norm(call: Call) -> list[Value]:
    x = call["input"]
    shape = (x.shape[1],)
    inputs = [x, _affine(call, call["weight"], shape), _affine(call, call["bias"], shape)]
    groups = call.get("num_groups", "group")
    return [call.result("GroupNormalization", inputs, num_groups=groups, epsilon=float(call["eps"])), *_statistics(call)]


def _batch_norm(call: Call) -> list[Value]:
    x = call["input"]
    shape = (x.shape[1],)
    names = ("weight", "bias", "running_mean", "running_var")
    inputs = [x, *[_affine(call, call.get(name), shape) for name in names]]
    return [call.result("BatchNormalization", inputs, epsilon=float(call["eps"])), *_statistics(call)]


def _instance_norm(call: Call) -> Value:
    x = call["input"]
    shape = (x.shape[1],)
    inputs = [x, _affine(call, call["weight"], shape), _affine(call, call["bias"], shape)]
    return call.result("InstanceNormalization", inputs, epsilon=float(call["eps"]))


def _softmax(op: str) -> Callable[[Call], Value]:
    def translate(call: Call) -> Value:
        x = call.operand(call.x, call.dtype)
        return call.result(op, [x], axis=axis_of(call["dim"], len(x.shape)))

    return translate


TRANSLATIONS: dict[str, Callable[[Call], Any]] = {
    "layer_norm": _layer_norm,
    "native_layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "_fused_rms_norm": _rms_norm,
    "group_norm": _group_norm,
    "batch_norm": _batch_norm,
    "native_batch_norm": _batch_norm,
    "_native_batch_norm_legit": _batch_norm,
    "_native_batch_norm_legit_functional": _batch_norm,
    "cudnn_batch_norm": _batch_norm,
    "instance_norm": _instance_norm,
    "softmax": _softmax("Softmax"),
    "_softmax": _softmax("Softmax"),
    "_safe_softmax": _softmax("Softmax"),
    "log_softmax": _softmax("LogSoftmax"),
    "_log_softmax": _softmax("LogSoftmax"),
}
