"""Trains a small predictor of training steps in PyTorch and exports it to ONNX, for `mdot compile`.

The model is a roofline with trained efficiencies. Each operator takes the time of its arithmetic or of its memory
traffic, whichever is longer, and a constant for the launch of its kernels. The labels are published steps of
torchvision's networks on six GPU models (weights/results/gpus.csv). One GPU model is held out as a test.

    python3 examples/train_predictor.py MINE.onnx
"""
import collections
import csv
import json
import sys
import tarfile
from pathlib import Path

import onnx
import torch

import mdot

CLONE = Path(__file__).resolve().parent.parent
SCHEMA = json.loads((CLONE / "docs" / "schema.json").read_text())  # ids of operator types, among others
PHASES = ("forward", "data_gradient", "weight_gradient")
GPU_COLUMNS = SCHEMA["gpu_columns"][:11]  # the spec values that this predictor reads
READS = ("batch", "is_tf32", "is_amp")  # the numbers of a configuration that it reads
HELD_OUT = "TITAN-RTX"
STEPS = 200


class Predictor(torch.nn.Module):
    """Inputs and output are those of mdot_predict.h, for one job. In training, each has a dimension more in front."""

    def __init__(self) -> None:
        super().__init__()
        types = len(SCHEMA["operator_types"])
        self.compute = torch.nn.Parameter(torch.full((types, 3), -0.7))  # log of the efficiency in fp32, tf32 and amp
        self.memory = torch.nn.Parameter(torch.full((types,), -0.3))
        self.launch = torch.nn.Parameter(torch.tensor(-5.0))  # log of ms, for each operator and phase
        self.register_buffer("spread", torch.tensor(0.0))  # standard deviation of the logarithm of a step

    def forward(self, operator_type, operator_load, operator_count, configuration, gpu):
        batch, is_tf32, is_amp = configuration[..., 0:1], configuration[..., 1:2], configuration[..., 2:3]
        precision = torch.cat([1 - is_tf32 - is_amp, is_tf32, is_amp], -1)
        tflops = (gpu[..., 6:9] * precision).sum(-1, keepdim=True)
        efficiency = (torch.nn.functional.embedding(operator_type, self.compute) * precision.unsqueeze(-2)).sum(-1).exp()
        gbps = gpu[..., 4:5] * torch.nn.functional.embedding(operator_type, self.memory.unsqueeze(-1)).squeeze(-1).exp()
        work = operator_load[..., :9] * batch.unsqueeze(-1) + operator_load[..., 9:18]
        ms = 3 * self.launch.exp() * torch.ones_like(gbps)
        for phase in range(0, 9, 3):  # FLOPs, bytes read and bytes written of each
            arithmetic = work[..., phase] / (1e9 * tflops * efficiency)
            traffic = (work[..., phase + 1] + work[..., phase + 2]) * (1 - is_amp / 2)  # mdot counts 4 bytes per element
            ms = ms + torch.maximum(arithmetic, traffic / (1e6 * gbps))
        step = (ms * operator_count).sum(-1, keepdim=True)
        return step * torch.exp(self.spread * torch.tensor([-1.645, 0.0, 1.645]))  # 5, 50 and 95 % quantile


def rows_of(job: mdot.Job) -> list[torch.Tensor]:
    """Returns types, loads and counts of a job's operators. Equal operators share a row, as when mdot runs a predictor."""
    names = {name: number for number, name in enumerate(SCHEMA["operator_types"])}
    rows = collections.Counter(
        (names.get(o.type, 0) if o.known else 0,
         *(number for scale in (o.per_sample, o.per_step) for phase in PHASES
           for number in (scale[phase].flops, scale[phase].bytes_read, scale[phase].bytes_written)), o.parameters)
        for o in job)  # fmt: skip
    return [torch.tensor([row[0] for row in rows]), torch.tensor([row[1:] for row in rows]),
            torch.tensor(list(rows.values()), dtype=torch.float32)]  # fmt: skip


def read_labels() -> tuple[list[str], list[torch.Tensor], torch.Tensor]:
    """Returns the GPU model of each label, the inputs of all labels, and the measured steps in ms."""
    jobs = {}
    with tarfile.open(CLONE / "lab" / "graphs.tar.xz") as archive:
        for member in archive:
            if member.name.startswith("torchvision."):
                name = member.name.rsplit(".", 2)[0]  # the name in front of the image size and .job
                jobs[name] = rows_of(mdot.Job.from_bytes(archive.extractfile(member).read()))
    labels = list(csv.DictReader((CLONE / "weights" / "results" / "gpus.csv").open()))
    rows = [torch.nn.utils.rnn.pad_sequence([jobs[label["network"]][column] for label in labels], batch_first=True)
            for column in range(3)]  # padded rows have the count 0
    gpus = [[getattr(mdot.gpu(label["gpu"]), column) for column in GPU_COLUMNS] for label in labels]
    configurations = [[float(label["batch"]), label["precision"] == "tf32", label["precision"] == "fp16"] for label in labels]
    return ([label["gpu"] for label in labels], [*rows, torch.tensor(configurations), torch.tensor(gpus)],
            torch.tensor([float(label["step_ms"]) for label in labels]))  # fmt: skip


def export(model: Predictor, inputs: list[torch.Tensor], path: str) -> None:
    names = ["operator_type", "operator_load", "operator_count", "configuration", "gpu"]
    rows = {name: {0: "L"} for name in names[:3]}
    torch.onnx.export(model.eval(), tuple(tensor[0] for tensor in inputs), path, dynamo=False, input_names=names,
                      output_names=["step_ms"], dynamic_axes=rows)  # fmt: skip
    written = onnx.load(path)
    onnx.helper.set_model_props(written, {"mdot.reads.configuration": ", ".join(READS)})
    onnx.save(written, path)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: train_predictor.py OUTPUT.onnx")
    torch.manual_seed(1)
    torch.set_num_threads(1)
    gpus, inputs, measured = read_labels()
    held_out = torch.tensor([gpu == HELD_OUT for gpu in gpus])
    model = Predictor()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    for step in range(STEPS):
        error = (model(*inputs)[:, 1] / measured).log()
        loss = error[~held_out].abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0 or step == STEPS - 1:
            middle = [error[part].abs().median().exp().item() - 1 for part in (~held_out, held_out)]
            print(f"step {step:3}: median error {middle[0]:.0%}, on {HELD_OUT}, which is held out, {middle[1]:.0%}")
    model.spread.fill_(error[held_out].square().mean().sqrt().item())
    export(model, inputs, sys.argv[1])


if __name__ == "__main__":
    main()
