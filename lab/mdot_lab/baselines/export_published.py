"""Exports MDOT as published, fitted to all labels, to ONNX in the runtime's form: one job with operators in order.

The file has the inputs defined by include/mdot/mdot_predict.h for single-file predictors. It has positions, so the
runtime passes the sequence operator by operator.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from mdot_lab.baselines import training_folds, jobs, mdot_as_published, network_fitting
from mdot_lab.baselines.mdot_as_published import SETTINGS, Published, Reader, Rows, position_features
from mdot_lab.predictor import splits, tables
from mdot_lab.predictor.conditions import VERSIONS
from mdot_lab.predictor.dataset import Dataset
from mdot_lab.predictor.evaluation import read_folds

OPSET = 18
TOLERANCE = 1e-4
CHECKED_NETWORKS = 40
INPUTS = ("operator_type", "operator_setting", "operator_load", "operator_position", "configuration", "gpu")
OUTPUTS = ("step_ms", "outside_training")
READS = ("batch", "is_amp", "is_nhwc", "is_adam", "is_adamw", "torch")
"""The configuration numbers that it reads. The runtime estimates all other options analytically."""
NAME = "mdot as published"


def interval(results: Path) -> tuple[float, float]:
    """log(measured / predicted step) for held-out networks, 5 % and 95 % quantile. Networks with a held-out family have
    half weight."""
    quantiles = []
    for split in (splits.RANDOM, splits.FAMILIES):
        found = read_folds(results, NAME, split).values()
        if not found:
            raise ValueError(f"{results} has no predictions of {NAME} for the split {split}: evaluate it first")
        off = np.concatenate([np.log(fold.measured_ms / fold.predicted_ms) for fold in found])
        quantiles.append(np.quantile(off, (0.05, 0.95)))
    low, high = np.mean(quantiles, axis=0)
    return float(low), float(high)


class Exported(nn.Module):
    """The exported model. Other GPUs, precisions and optimizers are outside the training range, and get the answer for
    the labels' GPU."""

    def __init__(self, model: Published, training_steps: jobs.Steps, low: float, high: float) -> None:
        super().__init__()
        self.model = model
        # equal in all labels; batch, layout and software, which vary, come first
        self.register_buffer("same", torch.tensor(training_steps.configuration[:1, 2 + len(VERSIONS):], dtype=torch.float32))
        self.register_buffer("off", torch.tensor([low, 0.0, high]))
        self.register_buffer("versions", torch.tensor(VERSIONS, dtype=torch.float32))
        self.register_buffer("trained_gpu", torch.tensor(tables.gpu(training_folds.GPU).model_specs, dtype=torch.float32))
        self.least_batch, self.most_batch = float(training_steps.batch.min()), float(training_steps.batch.max())
        self.newest = float(max(v for v, seen in zip(VERSIONS, training_steps.configuration[:, 2:].any(axis=0)) if seen))

    def _outside(self, numbers: dict[str, Tensor], gpu: Tensor) -> Tensor:
        """[8] in the order of MDOT_OUTSIDE_MAP. FLOPs, bytes and types beyond the data are left unchecked."""
        batch, nothing = numbers["batch"], torch.zeros(1)
        other_gpu = ((gpu - self.trained_gpu) / (self.trained_gpu + 1)).abs().amax(dim=0, keepdim=True)
        below, above = torch.relu(torch.log(self.least_batch / batch)), torch.relu(torch.log(batch / self.most_batch))
        newer = torch.relu(numbers["torch"] - self.newest)
        optimizer = numbers["is_adam"] + numbers["is_adamw"]
        return torch.cat([below, above, nothing, other_gpu, 1 - numbers["is_amp"], newer, nothing, optimizer])

    def forward(self, operator_type: Tensor, operator_setting: Tensor, operator_load: Tensor, operator_position: Tensor,
                configuration: Tensor, gpu: Tensor) -> tuple[Tensor, Tensor]:
        numbers = dict(zip(READS, configuration.reshape(-1, 1).unbind(0), strict=True))
        numbers["batch"] = numbers["batch"].clamp(min=1)
        rows = Rows(operator_type, operator_setting.clamp(min=0), operator_load.clamp(min=0), operator_position.clamp(min=0))
        length = torch.ones_like(operator_position[:, 0]).sum(dim=0, keepdim=True)
        fused = self.model.fuse(rows, numbers["batch"])
        read = self.model.read(fused[None], position_features(rows.position, length)[None], None)
        torch_version = numbers["torch"] + self.newest * (1 - numbers["torch"].clamp(0, 1))     # 0: the newest known version
        is_newer = (torch_version - self.versions + 1).clamp(0, 1)
        factors = torch.cat([torch.log(numbers["batch"])[None], numbers["is_nhwc"].clamp(0, 1)[None], is_newer[None],
                             self.same],
                            dim=1)
        return torch.exp(self.model.answer(read.mean(dim=1), length[:, None], factors) + self.off), self._outside(numbers, gpu)


def job(data: Dataset, reader: Reader, network: int, batch: float, is_nhwc: bool, torch_version: int = 0) -> tuple[Tensor, ...]:
    """A network's inputs in the order of INPUTS, with the labels' GPU, AMP and SGD."""
    rows = reader.sequence(network)
    numbers = dict.fromkeys(READS, 0.0) | {"batch": batch, "is_amp": 1.0, "is_nhwc": float(is_nhwc), "torch": torch_version}
    return (torch.tensor(rows.type), *(torch.tensor(np.asarray(x), dtype=torch.float32) for x in (
        rows.setting, rows.load, rows.position, [numbers[name] for name in READS], tables.gpu(training_folds.GPU).model_specs)))


def write(model: Exported, example: tuple[Tensor, ...], path: Path) -> None:
    import onnx

    per_operator = [name for name in INPUTS if name.startswith("operator_")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")     # the exporter's warnings about its own age
        torch.onnx.export(model.eval(), example, str(path), dynamo=False, opset_version=OPSET, input_names=list(INPUTS),
                          output_names=list(OUTPUTS), dynamic_axes={name: {0: "L"} for name in per_operator})
    written = onnx.load(path)
    written.metadata_props.add(key="mdot.reads.configuration", value=", ".join(READS))
    major, minor = divmod(int(model.newest), 100)
    written.metadata_props.add(key="mdot.assumes.torch", value=f"{major}.{minor}")
    onnx.save(written, path)


def worst_difference(model: Exported, path: Path, data: Dataset, reader: Reader, random: np.random.Generator) -> float:
    """Worst relative difference between PyTorch and ONNX Runtime, over random networks and batches."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    graph, worst = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]), 0.0
    for network in random.integers(0, data.network_count, CHECKED_NETWORKS):
        inputs = job(data, reader, int(network), float(random.integers(1, 1025)), bool(random.integers(0, 2)),
                     int(random.choice((0, 110, 111, 112, 204))))
        with torch.no_grad():
            expected = model(*inputs)
        written = graph.run(list(OUTPUTS), dict(zip(INPUTS, (x.numpy() for x in inputs), strict=True)))
        worst = max(worst, float(np.abs(written[0] / expected[0].numpy() - 1).max()),
                    float(np.abs(written[1] - expected[1].numpy()).max()))
    return worst


def export(data_path: Path, results: Path, path: Path) -> float:
    """Writes `path` if the file matches PyTorch. Returns the worst difference."""
    torch.set_num_threads(1)
    data = Dataset.load_file(data_path)
    reader, train = Reader(data, SETTINGS.capacity), np.flatnonzero(training_folds.usable(data))
    fitted = network_fitting.fitted(mdot_as_published.form(data, train, SETTINGS, reader), data, train)
    model = Exported(fitted, jobs.steps(data, train), *interval(results))
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        part = Path(folder) / path.name
        write(model, job(data, reader, int(data.label_network[train[0]]), 64.0, False), part)
        worst = worst_difference(model, part, data, reader, np.random.default_rng(0))
        if worst > TOLERANCE:
            raise ValueError(f"{path.name}: ONNX Runtime and PyTorch differ by {worst:.1e}, more than {TOLERANCE:.0e}")
        part.rename(path)
    return worst
