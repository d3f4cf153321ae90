"""Checks that `mdot extract` reads the same sequence from the graphs of every exporter.

Each network is exported four times by the installed PyTorch: by TorchScript for training (weights left out) and for inference
(weights in the file, BatchNormalization folded into them), and by dynamo in both modes. Weights and statistics are random
numbers, because TorchScript merges initializers with equal content, which fresh ones have. The first export's sequence is the
reference. A cell of the table contains "same", or the number of operators whose types, configurations, inputs and parameters
differ, and the number whose FLOPs or bytes differ.

    python3 -m mdot_lab.checks.exporters MDOT --out FOLDER [--strip FOLDER] [NETWORK …]

--strip writes the graphs once more without weights and names, small enough for the repository. For example,
tests/support/fixture/exports was made with it. Needs torch, onnx, onnxscript, timm and transformers.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import warnings
from pathlib import Path

from mdot_lab.collect.export_graphs import NO_FILE, leave_weights_out, trace

OPSET = 18
EXPORTS = ("training", "inference", "dynamo-training", "dynamo-inference")
KEPT_ELEMENTS = 8
"""Floating initializers up to this size keep the content when a graph is stripped, because the scales of a Resize are
needed."""


# ---- Networks --------------------------------------------------------------------------------------------------------

def _timm(name: str):
    import timm
    import torch

    return timm.create_model(name, pretrained=False), (torch.randn(2, 3, 224, 224),)


def _shallow(module: str, kind: str, **arguments):
    """A network of timm's with fewer blocks, for a small graph."""
    import importlib

    import torch

    return getattr(importlib.import_module(f"timm.models.{module}"), kind)(**arguments), (torch.randn(2, 3, 224, 224),)


def _transformer(kind: str, inputs: int, **arguments):
    """A network of transformers' with two layers."""
    import torch
    import transformers

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            configuration = getattr(transformers, f"{kind}Config")(vocab_size=1000, **arguments)
            self.body = getattr(transformers, f"{kind}Model")(configuration)

        def forward(self, tokens, mask=None):
            return self.body(tokens, attention_mask=mask, return_dict=False)[0]

    return Network(), (torch.ones(2, 64, dtype=torch.long),) * inputs


_SIZE = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 512}

NETWORKS = {
    "bert-tiny": lambda: _transformer("Bert", 2, attn_implementation="eager", **_SIZE),
    "bert-tiny-sdpa": lambda: _transformer("Bert", 2, attn_implementation="sdpa", **_SIZE),
    "convnext": lambda: _shallow("convnext", "ConvNeXt", depths=(1, 1, 2, 1), dims=(32, 64, 128, 256)),
    "densenet121": lambda: _timm("densenet121"),
    "efficientnet_b0": lambda: _timm("efficientnet_b0"),
    "llama-tiny": lambda: _transformer("Llama", 1, attn_implementation="sdpa", num_key_value_heads=2, use_cache=False,
                                       **_SIZE),
    "mobilenetv3_small": lambda: _timm("mobilenetv3_small_100"),
    "regnety_002": lambda: _timm("regnety_002"),
    "resnet18": lambda: _timm("resnet18"),
    "swin": lambda: _shallow("swin_transformer", "SwinTransformer", depths=(2, 2), embed_dim=48, num_heads=(3, 6)),
    "vit": lambda: _shallow("vision_transformer", "VisionTransformer", embed_dim=192, depth=3, num_heads=3),
}


def _make(name: str):
    import torch

    torch.manual_seed(0)
    model, inputs = NETWORKS[name]()
    with torch.no_grad():
        for value in [*model.parameters(), *model.buffers()]:
            if value.is_floating_point():
                value.uniform_(0.5, 1.5)
    return model, inputs


# ---- Exports ---------------------------------------------------------------------------------------------------------

def export(name: str, kind: str) -> bytes:
    import torch

    model, inputs = _make(name)
    model.train(kind.endswith("training"))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "training":
            return leave_weights_out(trace(model, inputs, OPSET, dynamic_batch=False), len(inputs), {"network": name})
        if kind == "inference":
            stream = io.BytesIO()
            torch.onnx.export(model, inputs, stream, dynamo=False, opset_version=OPSET)
            return stream.getvalue()
        return torch.onnx.export(model, inputs, dynamo=True, verbose=False).model_proto.SerializeToString()


def strip(serialised: bytes) -> bytes:
    """Removes the weights and unused names and notes from the graph."""
    import onnx

    model = onnx.load_model_from_string(serialised)
    floats = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE, onnx.TensorProto.BFLOAT16)
    for tensor in model.graph.initializer:
        elements = 1
        for dim in tensor.dims:
            elements *= dim
        if tensor.data_type not in floats or elements <= KEPT_ELEMENTS:
            continue
        for field in ("raw_data", "float_data", "double_data", "int32_data", "external_data"):
            tensor.ClearField(field)
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=NO_FILE)
    _strip_notes(model)
    _shorten_names(model.graph)
    return model.SerializeToString()


def _strip_notes(model) -> None:
    """Also removes functions that are never called."""
    bodies = {(f.domain, f.name): f for f in model.functions}
    wanted, waiting = set(), [model.graph]
    while waiting:
        body = waiting.pop()
        body.ClearField("doc_string")
        body.ClearField("metadata_props")
        body.ClearField("value_info")
        for node in body.node:
            for field in ("doc_string", "metadata_props", "name"):
                node.ClearField(field)
            waiting += [a.g for a in node.attribute if a.HasField("g")]
            key = (node.domain, node.op_type)
            if key in bodies and key not in wanted:
                wanted.add(key)
                waiting.append(bodies[key])
    for key in set(bodies) - wanted:
        model.functions.remove(bodies[key])
    model.ClearField("metadata_props")


def _shorten_names(graph) -> None:
    """Shortens the names of node results. Initializers keep theirs as identifiers."""
    kept = {value.name for value in [*graph.output, *graph.input]}
    short: dict[str, str] = {}
    for node in graph.node:
        for name in node.output:
            if name and name not in kept and not any(a.HasField("g") for n in graph.node for a in n.attribute):
                short[name] = f"v{len(short)}"
    for node in graph.node:
        for names in (node.input, node.output):
            for i, name in enumerate(names):
                names[i] = short.get(name, name)


# ---- Comparison ------------------------------------------------------------------------------------------------------

def read(mdot: Path, graph: Path) -> list[dict]:
    run = subprocess.run([mdot, "extract", "--json", "--quiet", "--batch", "2", graph], capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr.strip())
    return json.loads(run.stdout)["operators"]


LOADS = ("forward", "data_gradient", "weight_gradient")


def difference(reference: list[dict], other: list[dict]) -> str:
    if len(reference) != len(other):
        return f"{len(other)} operators"
    forms = sum(any(a[key] != b[key] for key in a if key not in LOADS and key != "optimizer")
                for a, b in zip(reference, other))
    loads = sum(any(a[key] != b[key] for key in LOADS) for a, b in zip(reference, other))
    return "same" if not forms and not loads else f"{forms} operators differ, FLOPs or bytes of {loads}"


def compare(mdot: Path, name: str, folder: Path) -> list[str]:
    reference = read(mdot, folder / f"{name}.{EXPORTS[0]}.onnx")
    cells = [name, str(len(reference))]
    for kind in EXPORTS[1:]:
        path = folder / f"{name}.{kind}.onnx"
        cells.append(difference(reference, read(mdot, path)) if path.exists() else "not exported")
    return cells


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mdot", type=Path, help="the command")
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=f"of {', '.join(NETWORKS)}; all by default")
    parser.add_argument("--out", type=Path, required=True, help="folder of the exports; those that exist stay")
    parser.add_argument("--strip", type=Path, help="folder for the same graphs without weights")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in options.networks or NETWORKS:
        for kind in EXPORTS:
            path = options.out / f"{name}.{kind}.onnx"
            try:
                if not path.exists():
                    path.write_bytes(export(name, kind))
            except Exception as fault:      # exporters raise many exception types; the table shows which export is
                                            # missing
                print(f"exporters: {name}, {kind}: {type(fault).__name__}: {fault}", file=sys.stderr)
                continue
            if options.strip:
                options.strip.mkdir(parents=True, exist_ok=True)
                (options.strip / path.name).write_bytes(strip(path.read_bytes()))
        if (options.out / f"{name}.{EXPORTS[0]}.onnx").exists():
            rows.append(compare(options.mdot, name, options.out))
    print("| network | operators | TorchScript, inference | dynamo, training | dynamo, inference |")
    print("| --- | --- | --- | --- | --- |")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
