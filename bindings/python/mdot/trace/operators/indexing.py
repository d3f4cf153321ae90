"""Reads and writes by index: embeddings, gathers, scatters, top-k."""

from __future__ import annotations

from typing import Any, Callable

import torch

from mdot.trace.graph import BOOL, INT64, Value
from mdot.trace.operators.call import DTYPES, Call, axis_of


def _embedding(call: Call) -> Value:
    return call.result("Gather", [call["weight"], call["indices"]], axis=0, **_sparsity(call))


def _sparsity(call: Call) -> dict[str, Any]:
    """An attribute beyond ONNX: the table's gradient consists of the picked rows."""
    return {"sparse_gradient": 1} if call.get("sparse") else {}


def _embedding_bag(call: Call) -> list[Value]:
    """Assumes that all bags have the average length. PyTorch computes them in one kernel and does not write the picked rows."""
    weight, indices = call["weight"], call["indices"]
    bags, width = call.shape
    length = max(1, indices.count // max(bags, 1))
    whole = indices.count == bags * length
    picked = call.graph.op("Gather", [weight, indices], (*indices.shape, width), call.dtype, axis=0, **_sparsity(call))
    if not whole:
        return call.as_it_is("aten", "embedding_bag")
    apart = call.graph.reshape(picked, (bags, length, width))
    if call.get("per_sample_weights") is not None:
        scale = call.graph.reshape(call["per_sample_weights"], (bags, length, 1))
        apart = call.graph.op("Mul", [apart, scale], apart.shape, call.dtype)
    op = ("ReduceSum", "ReduceMean", "ReduceMax")[call["mode"] or 0]
    if length == 1:
        bag = call.graph.reshape(apart, call.shape)
    else:
        bag = call.graph.reduce(op, apart, [1], keep=False)
    return [bag, *[call.graph.constant(tuple(t.shape), DTYPES[t.dtype]) for t in call.outputs[1:]]]


def _gather(call: Call) -> Value:
    return call.result("GatherElements", [call["self"], call["index"]], axis=axis_of(call["dim"], len(call.x.shape)))


def _index_select(call: Call) -> Value:
    return call.result("Gather", [call["self"], call["index"]], axis=axis_of(call["dim"], len(call.x.shape)))


def _index(call: Call) -> Value | None:
    """x[i] and x[:, i] gather along one axis; x[i, j] gathers elements by coordinates."""
    x, indices = call["self"], call["indices"]
    used = [axis for axis, index in enumerate(indices) if index is not None]
    if any(indices[axis].dtype == BOOL for axis in used):
        mask = indices[used[0]]
        if len(used) > 1:
            return None
        rows = call.graph.constant((call.shape[used[0]],), INT64)
        flat = call.graph.reshape(x, (*x.shape[: used[0]], mask.count, *x.shape[used[0] + len(mask.shape) :]))
        return call.result("Gather", [flat, rows], axis=used[0])
    if len(used) == 1:
        return call.result("Gather", [x, indices[used[0]]], axis=used[0])
    if used != list(range(len(used))):
        order = [*used, *[axis for axis in range(len(x.shape)) if axis not in used]]
        x = call.graph.transpose(x, order)
    places = _places(call, [indices[axis] for axis in used])
    shape = (*places.shape[:-1], *x.shape[len(used) :])
    return call.graph.reshape(call.graph.op("GatherND", [x, places], shape, call.dtype), call.shape)


def _places(call: Call, indices: list[Value]) -> Value:
    """Broadcasts the indices to each other and stacks them along a new last axis."""
    rank = max(len(index.shape) for index in indices)
    aligned = [(1,) * (rank - len(index.shape)) + index.shape for index in indices]
    shape = tuple(max(extents) if 0 not in extents else 0 for extents in zip(*aligned))
    if all(index.kind == "constant" for index in indices):
        return call.graph.constant((*shape, len(indices)), INT64)
    columns = []
    for index, own in zip(indices, aligned):
        wide = call.graph.expand(call.graph.reshape(call.graph.cast(index, INT64), own), shape)
        columns.append(call.graph.reshape(wide, (*shape, 1)))
    return call.graph.op("Concat", columns, (*shape, len(columns)), INT64, axis=len(shape))


def _index_put(call: Call) -> Value | None:
    x, indices, values = call["self"], call["indices"], call.operand(call["values"], call.dtype)
    used = [axis for axis, index in enumerate(indices) if index is not None]
    if used != list(range(len(used))) or any(indices[axis].dtype == BOOL for axis in used):
        mask = indices[used[0]]
        if used != [0] or mask.dtype != BOOL or mask.shape != x.shape[: len(mask.shape)]:
            return None if any(indices[axis].dtype == BOOL for axis in used) else _put_elements(call, used, values)
        rest = x.shape[len(mask.shape) :]
        if values.count != 1 and values.shape != rest:
            return call.result("ScatterND", [x, *_rows(call, x, mask, values)])
        mask = call.graph.reshape(mask, mask.shape + (1,) * len(rest))
        return call.result("Where", [mask, values, x])
    places = _places(call, [indices[axis] for axis in used])
    shape = (*places.shape[:-1], *x.shape[len(used) :])
    if values.count != _count(shape):
        values = call.graph.expand(values, shape)
    return call.result("ScatterND", [x, places, call.graph.reshape(values, shape)])


def _put_elements(call: Call, used: list[int], values: Value) -> Value:
    """Writes behind axes without an index, as in x[:, i]: one element for each index and each place in these axes."""
    x, indices = call["self"], call["indices"]
    picked = torch.broadcast_shapes(*(indices[axis].shape for axis in used))  # type: ignore[no-untyped-call]
    shape = (*picked, *[extent for axis, extent in enumerate(x.shape) if axis not in used])
    count = _count(shape)
    values = values if values.count == count else call.graph.expand(values, shape)
    flat = call.graph.reshape(x, (x.count,)), call.graph.constant((count,), INT64), call.graph.reshape(values, (count,))
    written = call.graph.op("ScatterElements", flat, (x.count,), call.dtype, axis=0)
    return call.graph.reshape(written, call.shape)


def _rows(call: Call, x: Value, mask: Value, values: Value) -> tuple[Value, Value]:
    """Coordinates of the elements under a mask, as many as values."""
    each = _count(x.shape[len(mask.shape) :])
    shape = (values.count // max(each, 1), *x.shape[len(mask.shape) :])
    return call.graph.constant((shape[0], len(mask.shape)), INT64), call.graph.reshape(values, shape)


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def _scatter(call: Call) -> Value:
    x, index = call["self"], call["index"]
    source = call.operand(call.get("src", "value"), call.dtype)
    axis = axis_of(call["dim"], len(x.shape))
    if source.shape != index.shape:
        source = call.graph.expand(source, index.shape) if source.count == 1 else source
    return call.result("ScatterElements", [x, index, source], axis=axis)


def _index_add(call: Call) -> Value | None:
    """Supports only the first axis, because the reader's scatter indexes whole rows there."""
    x, index, source = call["self"], call["index"], call.operand(call.get("source", "src"), call.dtype)
    if axis_of(call["dim"], len(x.shape)) != 0:
        return None
    places = call.graph.reshape(call.graph.cast(index, INT64), (index.count, 1))
    return call.result("ScatterND", [x, places, source])


def _index_copy(call: Call) -> Value | None:
    return _index_add(call)


def _one_hot(call: Call) -> Value:
    values = call.graph.constant((2,), INT64)
    return call.result("OneHot", [call.x, call.graph.scalar(call.shape[-1], INT64), values], axis=-1)


def _top_k(call: Call) -> list[Value]:
    axis = axis_of(call["dim"], len(call.x.shape))
    shapes = [(tuple(tensor.shape), DTYPES[tensor.dtype]) for tensor in call.outputs]
    k = call.graph.ints([shapes[0][0][axis] if shapes[0][0] else 1])
    return call.graph.node("TopK", [call.x, k], shapes, axis=axis)


def _argsort(call: Call) -> Value:
    axis = axis_of(call["dim"], len(call.x.shape))
    k = call.graph.ints([call.shape[axis] if call.shape else 1])
    shapes = [(call.shape, call.x.dtype), (call.shape, INT64)]
    return call.graph.node("TopK", [call.x, k], shapes, axis=axis)[1]


def _arg(op: str) -> Callable[[Call], Value]:
    def translate(call: Call) -> Value:
        x, axis = call.x, call["dim"]
        if axis is None:
            x, axis = call.graph.reshape(x, (x.count,)), 0
        axis = axis_of(axis, len(x.shape))
        shape = tuple(n for i, n in enumerate(x.shape) if i != axis)
        made = call.graph.op(op, [x], shape, INT64, axis=axis, keepdims=0)
        return call.graph.reshape(made, call.shape)

    return translate


def _cumsum(call: Call) -> Value:
    x = call.operand(call.x, call.dtype)
    return call.result("CumSum", [x, call.graph.scalar(axis_of(call["dim"], len(x.shape)), INT64)])


TRANSLATIONS: dict[str, Callable[[Call], Any]] = {
    "embedding": _embedding,
    "embedding_bag": _embedding_bag,
    "_embedding_bag": _embedding_bag,
    "gather": _gather,
    "nonzero": Call.places,
    "nonzero_numpy": Call.places,
    "argwhere": Call.places,
    "index_select": _index_select,
    "index": _index,
    "index_put": _index_put,
    "_index_put_impl": _index_put,
    "scatter": _scatter,
    "scatter_add": _scatter,
    "scatter_reduce": _scatter,
    "index_add": _index_add,
    "index_copy": _index_copy,
    "one_hot": _one_hot,
    "topk": _top_k,
    "sort": _top_k,
    "argsort": _argsort,
    "argmax": _arg("ArgMax"),
    "argmin": _arg("ArgMin"),
    "cumsum": _cumsum,
}
