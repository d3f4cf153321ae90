"""Data movement without computation: reshapes, transposes, slices, concatenations."""

from __future__ import annotations

from typing import Any, Callable

from mdot.trace.graph import Value
from mdot.trace.operators.call import DTYPES, Call, axis_of


def _reshape(call: Call) -> Value:
    return call.graph.reshape(call.x, call.shape)


def _transpose(call: Call) -> Value:
    rank = len(call.x.shape)
    order = list(range(rank))
    first = axis_of(call.get("dim0", "axis0"), rank)
    second = axis_of(call.get("dim1", "axis1"), rank)
    order[first], order[second] = order[second], order[first]
    return call.graph.transpose(call.x, order)


def _matrix_transpose(call: Call) -> Value:
    rank = len(call.x.shape)
    return call.graph.transpose(call.x, [*range(rank - 2), rank - 1, rank - 2] if rank > 1 else range(rank))


def _reverse(call: Call) -> Value:
    return call.graph.transpose(call.x, range(len(call.x.shape))[::-1])


def _permute(call: Call) -> Value:
    rank = len(call.x.shape)
    return call.graph.transpose(call.x, [axis_of(dim, rank) for dim in call["dims"]])


def _movedim(call: Call) -> Value:
    rank = len(call.x.shape)
    source, target = call["source"], call["destination"]
    source = [axis_of(d, rank) for d in (source if isinstance(source, list) else [source])]
    target = [axis_of(d, rank) for d in (target if isinstance(target, list) else [target])]
    order = [d for d in range(rank) if d not in source]
    for to, from_ in sorted(zip(target, source)):
        order.insert(to, from_)
    return call.graph.transpose(call.x, order)


def _expand(call: Call) -> Value:
    x = call.x
    if len(x.shape) < len(call.shape):
        x = call.graph.reshape(x, (1,) * (len(call.shape) - len(x.shape)) + x.shape)
    return call.graph.expand(x, call.shape)


def _repeat(call: Call) -> Value:
    times = call.get("repeats", "dims")
    x = call.x
    if len(x.shape) < len(times):
        x = call.graph.reshape(x, (1,) * (len(times) - len(x.shape)) + x.shape)
    times = [1] * (len(x.shape) - len(times)) + list(times)
    return x if all(n == 1 for n in times) else call.result("Tile", [x, call.graph.ints(times)])


def _repeat_interleave(call: Call) -> Value | None:
    times = call.get("repeats")
    if not isinstance(times, int):
        return None
    x, axis = call["self"], call["dim"]
    if axis is None:
        x, axis = call.graph.reshape(x, (x.count,)), 0
    axis = axis_of(axis, len(x.shape))
    apart = call.graph.reshape(x, (*x.shape[: axis + 1], 1, *x.shape[axis + 1 :]))
    wide = call.graph.expand(apart, (*x.shape[: axis + 1], times, *x.shape[axis + 1 :]))
    return call.graph.reshape(wide, call.shape)


# ---- Slices ----------------------------------------------------------------------------------------------------------


def _cut(call: Call, x: Value, axis: int, start: int, end: int, step: int = 1) -> Value:
    extent = len(range(start, end, step))
    if extent == x.shape[axis] and step > 0:
        return x
    shape = (*x.shape[:axis], extent, *x.shape[axis + 1 :])
    places = [call.graph.ints([n]) for n in (start, end, axis, step)]
    return call.graph.op("Slice", [x, *places], shape, x.dtype)


def _slice(call: Call) -> Value:
    axis = axis_of(call["dim"], len(call.x.shape))
    extent, step = call.x.shape[axis], call.get("step") or 1
    start, end, _ = slice(call.get("start"), call.get("end"), step).indices(extent)
    return _cut(call, call.x, axis, start, max(start, end), step)


def _narrow(call: Call) -> Value | None:
    if not isinstance(call["start"], int):
        return None
    axis = axis_of(call["dim"], len(call.x.shape))
    start = call["start"] % max(call.x.shape[axis], 1)
    return _cut(call, call.x, axis, start, start + call["length"])


def _select(call: Call) -> Value:
    axis = axis_of(call["dim"], len(call.x.shape))
    index = call.graph.scalar(call["index"] % max(call.x.shape[axis], 1), 7)
    return call.result("Gather", [call.x, index], axis=axis)


def _split(call: Call) -> list[Value]:
    rank = len(call.x.shape)
    axis = axis_of(call["dim"], rank)
    shapes = [(tuple(tensor.shape), DTYPES[tensor.dtype]) for tensor in call.outputs]
    if len(shapes) == 1:
        return [call.x]
    sizes = call.graph.ints([shape[axis] for shape, _ in shapes])
    return call.graph.node("Split", [call.x, sizes], shapes, axis=axis)


def _unbind(call: Call) -> list[Value]:
    axis, count = axis_of(call["dim"], len(call.x.shape)), len(call.outputs)
    shape = (*call.x.shape[:axis], 1, *call.x.shape[axis + 1 :])
    parts = [call.x]
    if count > 1:
        parts = call.graph.node("Split", [call.x, call.graph.ints([1] * count)], [(shape, call.dtype)] * count, axis=axis)
    return [call.graph.op("Squeeze", [part, call.graph.ints([axis])], call.shape, call.dtype) for part in parts]


def _flip(call: Call) -> Value:
    rank = len(call.x.shape)
    axes = [axis_of(dim, rank) for dim in call["dims"]]
    least = -(1 << 62)
    places = [[-1] * len(axes), [least] * len(axes), axes, [-1] * len(axes)]
    return call.result("Slice", [call.x, *[call.graph.ints(place) for place in places]])


def _roll(call: Call) -> Value:
    x, shifts, axes = call.x, call["shifts"], call["dims"]
    if not axes:
        x, axes = call.graph.reshape(x, (x.count,)), [0]
    for shift, dim in zip(shifts, axes):
        axis = axis_of(dim, len(x.shape))
        extent = x.shape[axis]
        at = -shift % extent if extent else 0
        if at:
            parts = [_cut(call, x, axis, at, extent), _cut(call, x, axis, 0, at)]
            x = call.graph.op("Concat", parts, x.shape, x.dtype, axis=axis)
    return call.graph.reshape(x, call.shape)


def _diagonal_part(upper: int) -> Callable[[Call], Value]:
    return lambda call: call.result("Trilu", [call.x, call.graph.scalar(call["diagonal"], 7)], upper=upper)


# ---- Concatenations --------------------------------------------------------------------------------------------------


def _concat(call: Call) -> Value:
    parts = [call.graph.cast(part, call.dtype) for part in call["tensors"] if part.shape != (0,)]
    if len(parts) == 1:
        return parts[0]
    return call.result("Concat", parts, axis=axis_of(call.get("dim", "axis"), len(call.shape)))


def _stack(call: Call) -> Value:
    axis = axis_of(call["dim"], len(call.shape))
    parts = []
    for part in call["tensors"]:
        part = call.graph.cast(part, call.dtype)
        shape = (*part.shape[:axis], 1, *part.shape[axis:])
        parts.append(call.graph.op("Unsqueeze", [part, call.graph.ints([axis])], shape, call.dtype))
    return call.result("Concat", parts, axis=axis)


_PADDINGS = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _pad(call: Call) -> Value | None:
    pads, rank = call.get("pad", "padding"), len(call.x.shape)
    if not any(pads):
        return call.x
    begins, ends = [0] * rank, [0] * rank
    for i in range(len(pads) // 2):
        begins[rank - 1 - i], ends[rank - 1 - i] = pads[2 * i], pads[2 * i + 1]
    mode = _PADDINGS.get(call.get("mode") or "constant", "constant")
    inputs: list[Any] = [call.x, call.graph.ints(begins + ends)]
    if mode == "constant":
        inputs.append(call.graph.scalar(call.get("value") or 0, call.dtype))
    return call.result("Pad", inputs, mode=mode)


def _fixed_pad(mode: str) -> Callable[[Call], Value | None]:
    def translate(call: Call) -> Value | None:
        call._arguments["mode"] = mode
        return _pad(call)

    return translate


def _pixel_shuffle(call: Call) -> Value:
    return call.result("DepthToSpace", [call.x], blocksize=call["upscale_factor"], mode="CRD")


def _pixel_unshuffle(call: Call) -> Value:
    return call.result("SpaceToDepth", [call.x], blocksize=call["downscale_factor"])


TRANSLATIONS: dict[str, Callable[[Call], Any]] = {
    **{
        name: _reshape
        for name in (
            "view", "reshape", "_unsafe_view", "flatten", "unflatten", "view_as", "reshape_as", "squeeze", "unsqueeze",
            "_reshape_alias", "ravel", "atleast_1d", "atleast_2d", "atleast_3d",
        )
    },  # fmt: skip
    "transpose": _transpose,
    "swapaxes": _transpose,
    "swapdims": _transpose,
    "t": _matrix_transpose,
    "mT": _matrix_transpose,
    "numpy_T": _reverse,
    "permute": _permute,
    "movedim": _movedim,
    "expand": _expand,
    "expand_as": _expand,
    "broadcast_to": _expand,
    "repeat": _repeat,
    "tile": _repeat,
    "repeat_interleave": _repeat_interleave,
    "slice": _slice,
    "narrow": _narrow,
    "select": _select,
    "split": _split,
    "split_with_sizes": _split,
    "chunk": _split,
    "tensor_split": _split,
    "unsafe_split": _split,
    "unsafe_chunk": _split,
    "unbind": _unbind,
    "flip": _flip,
    "roll": _roll,
    "tril": _diagonal_part(0),
    "triu": _diagonal_part(1),
    "cat": _concat,
    "concat": _concat,
    "concatenate": _concat,
    "stack": _stack,
    "pad": _pad,
    "constant_pad_nd": _pad,
    "reflection_pad1d": _fixed_pad("reflect"),
    "reflection_pad2d": _fixed_pad("reflect"),
    "replication_pad1d": _fixed_pad("replicate"),
    "replication_pad2d": _fixed_pad("replicate"),
    "pixel_shuffle": _pixel_shuffle,
    "pixel_unshuffle": _pixel_unshuffle,
}
