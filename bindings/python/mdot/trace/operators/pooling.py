"""Pooling over sliding windows, and changes of resolution."""

from __future__ import annotations

from typing import Any, Callable

from mdot.trace.graph import INT64, Value
from mdot.trace.operators.call import Call


def _several(value: Any, count: int, default: Any = None) -> list[int]:
    items = list(value) if isinstance(value, list) else [value] if value is not None else []
    if not items:
        return list(default or [])
    return items * count if len(items) == 1 else items


def _batched(call: Call, spatial: int) -> Value:
    """Adds a batch dimension to images that lack one."""
    x = call.x
    return x if len(x.shape) == spatial + 2 else call.graph.reshape(x, (1, *x.shape))


def _pool(op: str, spatial: int) -> Callable[[Call], Any]:
    def translate(call: Call) -> Any:
        x = _batched(call, spatial)
        kernel = _several(call["kernel_size"], spatial)
        attributes: dict[str, Any] = {
            "kernel_shape": kernel,
            "strides": _several(call["stride"], spatial, kernel),
            "pads": _several(call["padding"], spatial) * 2,
            "ceil_mode": int(bool(call["ceil_mode"])),
        }
        if op == "MaxPool":
            attributes["dilations"] = _several(call.get("dilation"), spatial, [1] * spatial)
        else:
            attributes["count_include_pad"] = int(bool(call.get("count_include_pad")))
        shape = (*x.shape[:2], *call.shape[-spatial:])
        outputs = [(shape, call.dtype)] + ([(shape, INT64)] if len(call.outputs) > 1 else [])
        made = call.graph.node(op, [x], outputs, **attributes)
        return [call.graph.reshape(value, tuple(t.shape)) for value, t in zip(made, call.outputs)]

    return translate


def _adaptive(op: str, spatial: int) -> Callable[[Call], Any]:
    """Pools to a requested size: globally, over equal windows, or over windows that are as equal as possible."""

    def translate(call: Call) -> Any:
        x = _batched(call, spatial)
        size, target = x.shape[2:], call.shape[-spatial:]
        shape = (*x.shape[:2], *target)
        if all(extent == 1 for extent in target):
            made = call.graph.op("Global" + op, [x], shape, call.dtype)
        elif size == target:
            made = x
        elif any(n < m for n, m in zip(size, target)):  # windows of one element
            made = call.graph.op("adaptive_pool", [x], shape, call.dtype, domain="mdot.call", flops=float(call.outputs[0].numel()), type=op)
        else:
            strides = [max(1, n // m) for n, m in zip(size, target)]
            kernel = [n - (m - 1) * s for n, m, s in zip(size, target, strides)]
            made = call.graph.op(op, [x], shape, call.dtype, kernel_shape=kernel, strides=strides)
        rest = [call.graph.constant(tuple(t.shape), INT64) for t in call.outputs[1:]]
        return [call.graph.reshape(made, call.shape), *rest]

    return translate


def _resize(mode: str) -> Callable[[Call], Value]:
    def translate(call: Call) -> Value:
        corners = call.get("align_corners")
        place = "asymmetric" if mode == "nearest" else "align_corners" if corners else "pytorch_half_pixel"
        attributes: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": place}
        if mode == "nearest":
            attributes["nearest_mode"] = "floor"
        return call.result("Resize", [call.x, None, None, call.graph.ints(call.shape)], **attributes)

    return translate


_MODES = ("linear", "nearest", "cubic")
_PADDINGS = ("zeros", "border", "reflection")


def _grid_sample(call: Call) -> Value:
    return call.result(
        "GridSample",
        [call["input"], call["grid"]],
        mode=_MODES[call["interpolation_mode"]],
        padding_mode=_PADDINGS[call["padding_mode"]],
        align_corners=int(bool(call["align_corners"])),
    )


TRANSLATIONS: dict[str, Callable[[Call], Any]] = {
    **{f"max_pool{n}d": _pool("MaxPool", n) for n in (1, 2, 3)},
    **{f"max_pool{n}d_with_indices": _pool("MaxPool", n) for n in (1, 2, 3)},
    **{f"avg_pool{n}d": _pool("AveragePool", n) for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": _adaptive("AveragePool", n) for n in (1, 2, 3)},
    **{f"adaptive_max_pool{n}d": _adaptive("MaxPool", n) for n in (1, 2, 3)},
    **{f"upsample_nearest{n}d": _resize("nearest") for n in (1, 2, 3)},
    **{f"_upsample_nearest_exact{n}d": _resize("nearest") for n in (1, 2, 3)},
    "upsample_linear1d": _resize("linear"),
    "upsample_bilinear2d": _resize("linear"),
    "_upsample_bilinear2d_aa": _resize("linear"),
    "upsample_trilinear3d": _resize("linear"),
    "upsample_bicubic2d": _resize("cubic"),
    "_upsample_bicubic2d_aa": _resize("cubic"),
    "_upsample_lanczos2d_aa": _resize("cubic"),
    "grid_sampler": _grid_sample,
    "grid_sampler_2d": _grid_sample,
    "grid_sampler_3d": _grid_sample,
}
