"""Rebuilds a measured network's ONNX graph on any machine: builds and traces it on the CPU, and omits weights.

Weights become initializers with external data in a file that is never written, because a reader of training jobs
needs only shapes and types. Therefore a graph has a few hundred kilobytes for a network of any size. Requires the
package onnx.
"""

from __future__ import annotations

import io
import re
import sys
import warnings
from pathlib import Path
from typing import Iterable, Mapping

from mdot_lab.collect.architecture import Architecture, Unavailable, build
from mdot_lab.collect.measured_configuration import Configuration

NO_FILE = "weights-left-out"
"""Location of the weights' external data (ONNX, ExternalData.md). This file is never written."""


def file_name(architecture: str, size: int, batch: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", f"{architecture}.s{size}.b{batch}.onnx")


def _rms_norm(graph, x, shape, weight, epsilon):
    """Exports aten::rms_norm, which the TorchScript exporter supports only with ONNX's own operator (opset 23)."""
    import torch
    from torch.onnx import symbolic_helper

    if epsilon is None or symbolic_helper._is_none(epsilon):
        epsilon = torch.finfo(torch.float32).eps
    else:
        epsilon = symbolic_helper._maybe_get_const(epsilon, "f")
    axes = list(range(-len(symbolic_helper._maybe_get_const(shape, "is")), 0))
    constant = lambda value: graph.op("Constant", value_t=torch.tensor(value, dtype=torch.float32))  # noqa: E731
    mean = graph.op("ReduceMean", graph.op("Pow", x, constant(2.0)), axes_i=axes, keepdims_i=1)
    normed = graph.op("Div", x, graph.op("Sqrt", graph.op("Add", mean, constant(epsilon))))
    return normed if symbolic_helper._is_none(weight) else graph.op("Mul", normed, weight)


def trace(model, inputs, opset: int, dynamic_batch: bool) -> bytes:
    """The forward graph in training mode, weights as inputs, as a serialised ONNX model."""
    import torch

    names = [f"input_{i}" for i in range(len(inputs))]
    axes = {name: {0: "batch"} for name in [*names, "output"]} if dynamic_batch else None
    stream = io.BytesIO()
    torch.onnx.register_custom_op_symbolic("aten::rms_norm", _rms_norm, opset)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")         # tracing warns about values that do not depend on the batch
        torch.onnx.export(model, inputs, stream, dynamo=False, opset_version=opset, input_names=names,
                          output_names=["output"], dynamic_axes=axes, export_params=False, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.TRAINING)
    return stream.getvalue()


def leave_weights_out(serialised: bytes, data_inputs: int, notes: Mapping[str, str]) -> bytes:
    """Turns graph inputs that are weights into initializers without data. The notes become the model's metadata."""
    import onnx

    model = onnx.load_model_from_string(serialised)
    weights = [i for i in model.graph.input if not re.fullmatch(r"input_\d+", i.name)]
    if len(model.graph.input) - len(weights) > data_inputs:
        raise ValueError("the graph has more inputs than the network")
    for value in weights:
        tensor = model.graph.initializer.add(name=value.name, data_type=value.type.tensor_type.elem_type,
                                             dims=[d.dim_value for d in value.type.tensor_type.shape.dim])
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=NO_FILE)
        model.graph.input.remove(value)
    for key, value in notes.items():
        model.metadata_props.add(key=key, value=value)
    return model.SerializeToString()


def export(row: Architecture, size: int, batch: int, opset: int, dynamic_batch: bool = False) -> bytes:
    """Exports one architecture's graph.

    Tracing computes the network, therefore use few examples, but at least two, because batch normalisation may reject one.
    Raises Unavailable, or the exceptions of building and tracing.
    """
    import torch

    from mdot_lab.collect.tasks import TASKS

    model = build(row, size, "cpu")
    inputs = TASKS[row.task].inputs(batch, size, row.arguments, "cpu")
    notes = {"architecture": row.name, "family": row.family, "size": str(size), "torch": torch.__version__,
             "parameters": str(sum(p.numel() for p in model.parameters()))}
    with torch.no_grad():
        return leave_weights_out(trace(model, inputs, opset, dynamic_batch), len(inputs), notes)


def export_all(keys: Iterable[str], rows: Mapping[str, Architecture], folder: Path, batch: int, opset: int,
               dynamic_batch: bool = False) -> int:
    """Exports each required graph once, and skips existing files. Returns 1 after a failure."""
    wanted = sorted({(c.architecture, c.size) for c in map(Configuration.from_key, keys)})
    folder.mkdir(parents=True, exist_ok=True)
    status = 0
    for name, size in wanted:
        path = folder / file_name(name, size, "N" if dynamic_batch else str(batch))
        if path.exists():
            continue
        try:
            if name not in rows:
                raise Unavailable("the catalogue has no such architecture")
            path.write_bytes(export(rows[name], size, batch, opset, dynamic_batch))
            print(path)
        except Exception as fault:
            # TorchScript's messages contain whole graphs; the first line has the reason.
            reason = (str(fault).splitlines() or [""])[0][:300]
            print(f"collect: {name} at {size}: {type(fault).__name__}: {reason}", file=sys.stderr)
            status = 1
    return status
