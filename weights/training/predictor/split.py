"""A predictor in one piece → the same in two (pair.py), each an ONNX file, held to the one piece through ONNX Runtime."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from predictor import tables
from predictor.exported import Exported
from predictor.pair import CONFIGURATIONS, ENCODING, OUTPUTS, ROWS, Encode, Price

OPSET = 18
TOLERANCE = 2e-5
"""Relative, for sums of f32 in another order. Within what one logarithm is off by: steps span 1e-3 to 1e6 ms."""
CHECKED_JOBS = 40
LENGTH_OF = {name: {0: "L"} for name in ROWS} | {"encoding_rows": {0: "L"}, "encoding_work": {1: "L"}, "encoding_cost": {1: "L"}}


def random_rows(random: np.random.Generator, count: int) -> tuple[Tensor, ...]:
    """Operators as no network has them: any type with any setting and loads of any size, some of them zero."""
    settings, loads = len(tables.settings()), tables.LOAD_COUNT
    setting = np.floor(random.random((count, settings)) * random.choice([0, 1, 8, 300], (count, settings)))
    load = np.floor(10 ** (random.random((count, loads)) * 10) * random.integers(0, 2, (count, loads)))
    return (torch.tensor(random.integers(0, len(tables.operator_types()), count)), torch.tensor(setting, dtype=torch.float32),
            torch.tensor(load, dtype=torch.float32), torch.tensor(random.integers(1, 9, count), dtype=torch.float32))


def random_configurations(random: np.random.Generator) -> tuple[Tensor, Tensor]:
    """[numbers, CONFIGURATIONS] and [columns, CONFIGURATIONS], of one batch."""
    batch, rows, gpus = float(random.integers(1, 1025)), [], []
    for _ in range(CONFIGURATIONS):
        precision, optimizer = random.choice(["is_fp32", "is_tf32", "is_amp"]), random.choice(["", "is_adam", "is_adamw"])
        given = dict.fromkeys(tables.CONFIGURATION, 0.0) | {"batch": batch, "gpu_count": float(2 ** random.integers(0, 5)),
                                                            "is_nhwc": float(random.integers(0, 2)), str(precision): 1.0}
        if optimizer:
            given[str(optimizer)] = 1.0
        rows.append([given[name] for name in tables.CONFIGURATION])
        gpus.append(tables.gpus()[random.integers(0, len(tables.gpus()))].numbers)
    return torch.tensor(rows).T.contiguous(), torch.tensor(gpus, dtype=torch.float32).T.contiguous()


def _write(piece: nn.Module, example: tuple[Tensor, ...], path: Path, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> None:
    axes = {name: LENGTH_OF[name] for name in (*inputs, *outputs) if name in LENGTH_OF}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")     # of the exporter, about its own age
        torch.onnx.export(piece.eval(), example, str(path), dynamo=False, opset_version=OPSET, input_names=list(inputs),
                          output_names=list(outputs), dynamic_axes=axes)


def worst_difference(whole: Path, encode: Path, price: Path, random: np.random.Generator) -> float:
    """Between the files, relative, over jobs and configurations at random."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    one, first, second = (onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
                          for path in (whole, encode, price))
    worst = 0.0
    for _ in range(CHECKED_JOBS):
        rows = dict(zip(ROWS, (x.numpy() for x in random_rows(random, int(random.integers(1, 100)))), strict=True))
        configuration, gpu = (x.numpy() for x in random_configurations(random))
        encoding = dict(zip(ENCODING, first.run(list(ENCODING), rows), strict=True))
        step_ms, outside = second.run(list(OUTPUTS), encoding | {"configuration": configuration, "gpu": gpu})
        for i in range(CONFIGURATIONS):
            wanted_ms, wanted = one.run(list(OUTPUTS), rows | {"configuration": configuration[:, i], "gpu": gpu[:, i]})
            worst = max(worst, float(np.abs(step_ms[:, i] / wanted_ms - 1).max()),
                        float(np.abs(outside[i] - wanted).max() / max(1, wanted.max())))
    return worst


def split(model: Exported, whole: Path, encode: Path, price: Path) -> float:
    """Writes both files if they compute what `whole`, which `model` was exported to, does; returns the worst difference."""
    random = np.random.default_rng(0)
    rows, given = random_rows(random, 7), random_configurations(random)
    first, second = Encode(model), Price(model)
    with torch.no_grad():
        encoding = first(*rows)
    parts = [path.with_name(path.name + ".part") for path in (encode, price)]
    try:
        _write(first, rows, parts[0], ROWS, ENCODING)
        _write(second, (*encoding, *given), parts[1], (*ENCODING, "configuration", "gpu"), OUTPUTS)
        worst = worst_difference(whole, *parts, random)
        if not worst <= TOLERANCE:
            raise ValueError(f"{encode.name} and {price.name} differ from {whole.name} by {worst:.1e}, more than {TOLERANCE:.0e}")
        for part, path in zip(parts, (encode, price)):
            part.rename(path)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)
    return worst
