#!/usr/bin/env python3
"""Compares the parameters that `mdot extract` reports with PyTorch's own count, for exports as users make them.

Each network is made from its configuration with fresh weights, and exported by both exporters, in training mode and for
inference, with default options. A row has the parameters that PyTorch counts and, for each export, the missing share, unknown
operators, and the reader's warnings. Exporters merge equal parameters and omit zero biases. Fresh weights have both, which
explains shares of a percent.

    python parameters.py MDOT --out FOLDER [NETWORK …]

Needs torch, onnx, onnxscript, torchvision and transformers. Written for PyTorch 2.15.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import subprocess
import warnings
from pathlib import Path

import torch

EXPORTS = [(dynamo, training) for dynamo in (False, True) for training in (True, False)]
VISION = ["resnet50", "vgg11", "vgg11_bn", "alexnet", "convnext_tiny", "mobilenet_v3_small", "squeezenet1_1", "swin_t"]


class Logits(torch.nn.Module):
    """Wraps a network of transformers so that its inputs and outputs are tensors."""

    def __init__(self, model: torch.nn.Module, names: list[str]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        return self.model(**dict(zip(self.names, tensors)), return_dict=True).logits


def text(model: str, configuration: str, names: list[str], **settings) -> tuple[torch.nn.Module, tuple]:
    import transformers

    made = getattr(transformers, model)(getattr(transformers, configuration)(vocab_size=1000, **settings))
    tensors = {"input_ids": torch.randint(0, 1000, (2, 32)), "attention_mask": torch.ones(2, 32, dtype=torch.int64)}
    return Logits(made, names), tuple(tensors[name] for name in names)


def make(name: str) -> tuple[torch.nn.Module, tuple]:
    if name in VISION:
        import torchvision

        return torchvision.models.get_model(name, weights=None), (torch.randn(2, 3, 224, 224),)
    masked = ["input_ids", "attention_mask"]
    if name == "bert":
        return text("BertForSequenceClassification", "BertConfig", masked, num_hidden_layers=2, hidden_size=128,
                    num_attention_heads=4, intermediate_size=256)
    if name == "gpt2":
        return text("GPT2LMHeadModel", "GPT2Config", masked, n_layer=2, n_embd=128, n_head=4, use_cache=False)
    return text("LlamaForCausalLM", "LlamaConfig", ["input_ids"], num_hidden_layers=2, hidden_size=128,
                num_attention_heads=4, num_key_value_heads=2, intermediate_size=256, use_cache=False)


def export(model: torch.nn.Module, example: tuple, path: Path, dynamo: bool, training: bool) -> None:
    model.train(training)
    mode = torch.onnx.TrainingMode.TRAINING if training else torch.onnx.TrainingMode.EVAL
    extra = {} if dynamo else {"training": mode}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        torch.onnx.export(model, example, str(path), dynamo=dynamo, **extra)


def read(mdot: str, path: Path, counted: int) -> str:
    result = subprocess.run([mdot, "tokens", "--json", str(path)], capture_output=True, text=True)
    if result.returncode != 0:
        return "refused"
    job = json.loads(result.stdout)
    missing = 100 * (1 - job["parameters"] / counted)
    return f"{missing:+.2f} %, {job['unknown']} unknown, {len(result.stderr.splitlines())} warnings"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mdot")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("networks", nargs="*", default=[*VISION, "bert", "gpt2", "llama"])
    arguments = parser.parse_intermixed_args()
    warnings.filterwarnings("ignore")
    arguments.out.mkdir(parents=True, exist_ok=True)
    print("| network | parameters | TorchScript, training | TorchScript, inference | dynamo, training | dynamo, inference |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in arguments.networks:
        model, example = make(name)
        counted = sum(parameter.numel() for parameter in model.parameters())
        cells = []
        for dynamo, training in EXPORTS:
            path = arguments.out / f"{name}.{'dynamo' if dynamo else 'script'}.{'training' if training else 'inference'}.onnx"
            try:
                export(model, example, path, dynamo, training)
            except Exception as error:  # noqa: BLE001 — an exporter's failure is a cell of the table
                cells.append(f"no export: {type(error).__name__}")
                continue
            cells.append(read(arguments.mdot, path, counted))
        print(f"| {name} | {counted} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
