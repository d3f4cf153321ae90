"""A trained predictor → ONNX, checked against PyTorch through ONNX Runtime."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Callable

import numpy as np
import torch

from predictor import tables
from predictor.batches import LABELLED_GPU
from predictor.dataset import Dataset
from predictor.exported import INPUTS, OUTPUTS, Exported

OPSET = 18
TOLERANCE = 1e-4
CHECKED_NETWORKS = 40
BATCHES = tuple(2**k for k in range(10))
LAYOUTS_AND_PRECISIONS = ({}, {"is_nhwc": 1.0}, {"is_amp": 0.0, "is_fp32": 1.0})


def job(data: Dataset, network: int, batch: float, gpu: str, **flags: float) -> tuple[torch.Tensor, ...]:
    """A network's inputs in INPUTS' order, operators merged and counted; flags default to one GPU, AMP, NCHW, SGD."""
    operators, count = data.bag(network)
    configuration = dict.fromkeys(tables.CONFIGURATION, 0.0) | {"batch": batch, "gpu_count": 1.0, "is_amp": 1.0} | flags
    return (torch.tensor(data.type[operators]),
            *(torch.tensor(x, dtype=torch.float32) for x in (
                data.setting[operators], data.load[operators], count, [configuration[n] for n in tables.CONFIGURATION],
                tables.gpu(gpu).numbers)))


def write(model: Exported, example: tuple[torch.Tensor, ...], path: Path) -> None:
    per_operator = [name for name in INPUTS if name.startswith("operator_")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")     # of the exporter, about its own age
        torch.onnx.export(model.eval(), example, str(path), dynamo=False, opset_version=OPSET, input_names=list(INPUTS),
                          output_names=list(OUTPUTS), dynamic_axes={name: {0: "L"} for name in per_operator})


def _open(path: Path) -> Callable[..., list[np.ndarray]]:
    """The written file, as a function of INPUTS that gives OUTPUTS."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    graph = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda *inputs: graph.run(list(OUTPUTS), dict(zip(INPUTS, (x.numpy() for x in inputs), strict=True)))


def worst_difference(model: Exported, path: Path, data: Dataset, random: np.random.Generator) -> float:
    """Between PyTorch and ONNX Runtime, relative, over networks, batches, GPUs and precisions at random."""
    written, worst = _open(path), 0.0
    for network in random.integers(0, data.network_count, CHECKED_NETWORKS):
        precision = random.choice(["is_fp32", "is_tf32", "is_amp"])
        flags = {"is_amp": 0.0} | {str(precision): 1.0, "is_nhwc": float(random.integers(0, 2))}
        gpu = tables.gpus()[random.integers(0, len(tables.gpus()))].names[0]
        inputs = job(data, int(network), float(random.integers(1, 1025)), gpu, **flags)
        with torch.no_grad():
            expected = model(*inputs)
        step_ms, outside = written(*inputs)
        worst = max(worst, float(np.abs(step_ms / expected[0].numpy() - 1).max()),
                    float(np.abs(outside - expected[1].numpy()).max()))
    return worst


def shrinking_networks(path: Path, data: Dataset, gpu: str) -> list[str]:
    """Networks whose step is said to get shorter when the batch doubles, which no GPU does. Where the host is the limit it
    stays."""
    written, found = _open(path), []
    for network in range(data.network_count):
        for flags in LAYOUTS_AND_PRECISIONS:
            *operators, configuration, numbers = job(data, network, 1.0, gpu, **flags)
            at = [configuration.clone() for _ in BATCHES]
            for one, batch in zip(at, BATCHES, strict=True):
                one[tables.CONFIGURATION.index("batch")] = batch
            times = [written(*operators, one, numbers)[0][1] for one in at]
            if any(a > b for a, b in zip(times, times[1:])):
                found.append(f"{data.network_name[network]} at {data.network_size[network]}")
                break
    return found


def export(model: Exported, data: Dataset, path: Path) -> float:
    """Writes `path` if the file computes what PyTorch does and steps grow with the batch; returns the worst difference."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        part = Path(folder) / path.name
        write(model, job(data, 0, 64.0, LABELLED_GPU), part)
        worst = worst_difference(model, part, data, np.random.default_rng(0))
        if worst > TOLERANCE:
            raise ValueError(f"{path.name}: ONNX Runtime and PyTorch differ by {worst:.1e}, more than {TOLERANCE:.0e}")
        shrinking = shrinking_networks(part, data, LABELLED_GPU)
        if shrinking:
            raise ValueError(f"{path.name}: steps get shorter with a larger batch for {', '.join(shrinking)}")
        part.rename(path)
    return worst
