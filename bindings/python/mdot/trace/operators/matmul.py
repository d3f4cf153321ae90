"""Matmuls, convolutions, attention."""

from __future__ import annotations

from typing import Any, Callable

from mdot.trace.graph import BOOL, Value
from mdot.trace.operators.call import Call


def _linear(call: Call) -> Value:
    x, weight, bias = call["input"], call["weight"], call["bias"]
    if len(x.shape) == 2 and len(weight.shape) == 2:
        return call.result("Gemm", [x, weight, bias] if bias is not None else [x, weight], transB=1)
    order = list(range(len(weight.shape)))[::-1]
    made = call.result("MatMul", [x, call.graph.transpose(weight, order)])
    return call.result("Add", [made, bias]) if bias is not None else made


def _product(call: Call) -> Value:
    return call.result("MatMul", call.operands[:2])


def _sum_and_product(call: Call) -> Value:
    """beta * input + alpha * a @ b."""
    bias, left, right = call.operands[:3]
    made = call.result("MatMul", [left, right])
    if call.get("alpha") not in (None, 1):
        made = call.result("Mul", [made, call.graph.scalar(call["alpha"], call.dtype)])
    if call.get("beta") == 0:
        return made
    if call.get("beta") not in (None, 1):
        bias = call.graph.op("Mul", [bias, call.graph.scalar(call["beta"], bias.dtype)], bias.shape, bias.dtype)
    return call.result("Add", [made, bias])


def _einsum(call: Call) -> Value:
    return call.result("Einsum", [call.graph.cast(x, call.dtype) for x in call["tensors"]], equation=call["equation"])


def _outer(call: Call) -> Value:
    left, right = (call.operand(x, call.dtype) for x in call.operands[:2])
    return call.result("Mul", [call.graph.reshape(left, (left.count, 1)), right])


def _grouped(call: Call) -> Value:
    """Multiplies the rows of each group, for example an expert's tokens, by the group's matrix. The groups may differ in
    size."""
    left, right = call.operands[:2]
    groups = right.shape[0] if len(left.shape) == len(right.shape) == 3 else 1
    flops = 2.0 * groups * left.shape[-2] * left.shape[-1] * right.shape[-1]
    return call.graph.op("grouped_mm", [left, right], call.shape, call.dtype, domain="mdot.call", flops=flops, type="MatMul")


# ---- Convolutions ----------------------------------------------------------------------------------------------------


def _several(value: Any, count: int) -> list[int]:
    items = list(value) if isinstance(value, list) else [value]
    return items * count if len(items) == 1 else items


def _convolution(call: Call) -> Value:
    x, weight, bias = call["input"], call["weight"], call["bias"]
    spatial = len(weight.shape) - 2
    batched = len(x.shape) == spatial + 2
    if not batched:
        x = call.graph.reshape(x, (1, *x.shape))
    attributes: dict[str, Any] = {
        "kernel_shape": list(weight.shape[2:]),
        "strides": _several(call["stride"], spatial),
        "dilations": _several(call["dilation"], spatial),
        "group": call["groups"],
    }
    padding = call["padding"]
    if isinstance(padding, str):
        dilations = attributes["dilations"]
        total = [0] * spatial
        if padding == "same":
            total = [d * (k - 1) for k, d in zip(weight.shape[2:], dilations)]
        pads = [n // 2 for n in total] + [n - n // 2 for n in total]
    else:
        pads = _several(padding, spatial) * 2
    inputs = [x, weight, bias] if bias is not None else [x, weight]
    shape = call.shape if batched else (1, *call.shape)
    op = "Conv"
    if call.get("transposed") or call.get("output_padding") not in (None, []) and call.get("transposed") is None:
        op = "ConvTranspose"
        attributes["output_padding"] = _several(call["output_padding"], spatial)
    return call.graph.reshape(call.graph.op(op, inputs, shape, call.dtype, **attributes, pads=pads), call.shape)


# ---- Attention -------------------------------------------------------------------------------------------------------


def _attention(call: Call) -> Value:
    """Decomposes attention, as PyTorch's own exporters do. The reader fuses it again, together with the head transposes
    around it, which a single attention node would hide."""
    graph = call.graph
    graph.fused_attentions += 1
    query, key, value, mask = call["query"], call["key"], call["value"], call["attn_mask"]
    if len(query.shape) != 4:  # leading dimensions are merged into one of heads
        query, key, value = (_as_heads(call, x) for x in (query, key, value))
        if mask is not None and len(mask.shape) > 2:
            mask = _as_heads(call, mask)
    if key.shape[1] != query.shape[1]:
        key, value = (_repeat_heads(call, x, query.shape[1]) for x in (key, value))
    scores = (*query.shape[:3], key.shape[2])
    scale = call["scale"] if call.get("scale") is not None else query.shape[3] ** -0.5
    root = graph.scalar(abs(scale) ** 0.5, query.dtype)
    turned = graph.transpose(key, [0, 1, 3, 2])
    scaled = [graph.op("Mul", [x, root], x.shape, x.dtype) for x in (query, turned)]
    made = graph.op("MatMul", scaled, scores, query.dtype)
    if mask is not None and mask.dtype == BOOL:
        numbers = [graph.scalar(number, query.dtype) for number in (0.0, float("-inf"))]
        mask = graph.op("Where", [mask, *numbers], mask.shape, query.dtype)
    if mask is None and call["is_causal"]:
        mask = graph.constant(scores[2:], query.dtype)
    if mask is not None:
        made = graph.op("Add", [made, mask], scores, query.dtype)
    made = graph.op("Softmax", [made], scores, query.dtype, axis=3)
    made = graph.op("MatMul", [made, value], (*query.shape[:3], value.shape[3]), query.dtype)
    return graph.reshape(made, call.shape)


def _repeat_heads(call: Call, x: Value, heads: int) -> Value:
    """Several query heads use one key head: turns [B, G, N, D] into [B, H, N, D]."""
    batch, groups, length, width = x.shape
    apart = call.graph.op("Unsqueeze", [x, call.graph.ints([2])], (batch, groups, 1, length, width), x.dtype)
    wide = call.graph.expand(apart, (batch, groups, heads // groups, length, width))
    return call.graph.reshape(wide, (batch, heads, length, width))


def _as_heads(call: Call, x: Value) -> Value:
    """Turns [N, D], [H, N, D] or [A, B, H, N, D] into [B, H, N, D]."""
    shape = (1,) * (4 - len(x.shape)) + x.shape
    if len(shape) > 4:
        leading = 1
        for extent in shape[:-3]:
            leading *= extent
        shape = (leading, *shape[-3:])
    return call.graph.reshape(x, shape)


TRANSLATIONS: dict[str, Callable[[Call], Any]] = {
    "linear": _linear,
    "matmul": _product,
    "mm": _product,
    "bmm": _product,
    "mv": _product,
    "dot": _product,
    "addmm": _sum_and_product,
    "baddbmm": _sum_and_product,
    "einsum": _einsum,
    "outer": _outer,
    "ger": _outer,
    "_grouped_mm": _grouped,
    "grouped_mm": _grouped,
    **{
        name: _convolution
        for name in (
            "conv1d", "conv2d", "conv3d", "convolution", "_convolution", "conv_transpose1d", "conv_transpose2d",
            "conv_transpose3d",
        )
    },  # fmt: skip
    "scaled_dot_product_attention": _attention,
}
