"""Write the graphs of this folder: ResNet-50 from torchvision and BERT-base from transformers, in training mode.

The batch is symbolic, and so is BERT's sentence length. Weights are left out. See README.md.
"""

from __future__ import annotations

import io
import sys
import warnings
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "weights" / "training"))

from collect.export import leave_weights_out  # noqa: E402 - the path must be known first

OPSET = 17      # the first opset that has LayerNormalization
EXAMPLES = 2    # tracing runs the network, and BatchNormalization may reject a batch of one


def resnet50() -> tuple[torch.nn.Module, dict[str, torch.Tensor], dict[str, dict[int, str]]]:
    import torchvision

    return torchvision.models.resnet50(), {"input_0": torch.zeros(EXAMPLES, 3, 224, 224)}, {"input_0": {0: "batch"}}


def bert_base() -> tuple[torch.nn.Module, dict[str, torch.Tensor], dict[str, dict[int, str]]]:
    """BERT-base, fine-tuned for a choice of two classes."""
    import transformers

    config = transformers.BertConfig(num_labels=2, return_dict=False)
    tokens = torch.zeros(EXAMPLES, 8, dtype=torch.int64)
    axes = {0: "batch", 1: "sequence"}
    return (transformers.BertForSequenceClassification(config), {"input_0": tokens, "input_1": torch.ones_like(tokens)},
            {"input_0": axes, "input_1": axes})


def shorten_names(serialised: bytes) -> bytes:
    """Replace the names of values and nodes by numbers, because module paths take three quarters of BERT's file."""
    import onnx

    model = onnx.load_model_from_string(serialised)
    fixed = {v.name for part in (model.graph.input, model.graph.output, model.graph.initializer) for v in part} | {""}
    number: dict[str, str] = {}
    for node in model.graph.node:
        node.ClearField("name")
        for names in (node.input, node.output):
            names[:] = [name if name in fixed else number.setdefault(name, str(len(number))) for name in names]
    return model.SerializeToString()


def graph(model: torch.nn.Module, inputs: dict[str, torch.Tensor], axes: dict[str, dict[int, str]], name: str) -> bytes:
    stream = io.BytesIO()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")     # tracing warns about values that are independent of the symbolic dimension
        torch.onnx.export(model.train(), tuple(inputs.values()), stream, dynamo=False, opset_version=OPSET,
                          input_names=list(inputs), output_names=["output"], dynamic_axes={**axes, "output": {0: "batch"}},
                          export_params=False, do_constant_folding=False, training=torch.onnx.TrainingMode.TRAINING)
    return shorten_names(leave_weights_out(stream.getvalue(), len(inputs), {"network": name}))


def main() -> None:
    torch.manual_seed(0)
    for name, make in {"resnet50": resnet50, "bert_base": bert_base}.items():
        path = HERE / f"{name}.onnx"
        path.write_bytes(graph(*make(), name))
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
