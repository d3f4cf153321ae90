"""Exports a trained predictor as ONNX files, and compares each through ONNX Runtime with the results of training."""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Iterator, Sequence

import numpy as np
import torch
from torch import nn

from mdot_lab.predictor import batches, decode_inputs, features, normalisation, tables, training
from mdot_lab.predictor.conditions import NEWEST
from mdot_lab.predictor.dataset import Dataset
from mdot_lab.predictor.decode_inputs import FIRST_WITH_BF16
from mdot_lab.predictor.labels import INFER, TRAIN
from mdot_lab.predictor.deploy_graphs import (ANSWER, CONFIGURATION, CONFIGURATIONS, ENCODING, EXPLANATION, ROWS, Encode,
                                                   Evaluate, Explain, Rows, Shipped, Whole)
from mdot_lab.predictor.model import SMOOTHNESS
from mdot_lab.predictor.operators import Operators, where_type

OPSET = 18
TOLERANCE = 1e-4
"""Relative tolerance for f32 sums in another order. It is within the error of one logarithm, because steps range from 1e-3 to
1e6 ms."""
CHECKED_LABELS, CHECKED_JOBS = 200, 40
BATCHES = tuple(2**k for k in range(10))
BATCH_GPUS = ("RTX-3090", "P100-PCIe-16GB", "T4", "A100-SXM-80GB", "H100-SXM-80GB", "H200", "B200", "RTX-4090")
"""GPU models on which every network's step must grow with the batch, and sample time must fall."""
THROUGHPUT_LOSS = 0.03
WAITING = 1     # number of this time in other_ms
UNKNOWN_WATTS = "0"
MONOTONE = ({}, {"is_nhwc": 1.0}, {"is_amp": 0.0, "is_fp32": 1.0}, {"torch": 112.0, "is_eager": 1.0}, {"is_compiled": 1.0},
            {"is_inference": 1.0})
WHOLE, ENCODING_FILE, EVALUATE, EXPLAIN = "predictor.onnx", "encode.onnx", "evaluate.onnx", "explain.onnx"


def configuration(**flags: float) -> list[float]:
    """A vector of READS; flags default to one GPU, AMP, NCHW, SGD and the newest software."""
    return [(dict.fromkeys(tables.READS, 0.0) | {"batch": 1.0, "is_amp": 1.0} | flags)[name]
            for name in tables.READS]


def rows(data: Dataset, network: int) -> tuple[torch.Tensor, ...]:
    """A network's distinct operators with their counts."""
    operators, count = data.multiset(network)
    return (torch.tensor(data.type[operators]),
            *(torch.tensor(x, dtype=torch.float32) for x in (data.setting[operators], data.load[operators], count)))


@dataclass(frozen=True)
class _File:
    module: nn.Module
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    example: tuple[torch.Tensor, ...]


LENGTHS = {name: {0: "L"} for name in (*ROWS, "encoding_rows", "operator_ms")} | {
    name: {1: "L"} for name in ("encoding_work", "encoding_cost")}


def _files(model: Shipped, data: Dataset) -> dict[str, _File]:
    job = rows(data, 0)
    gpus = torch.tensor([gpu.numbers for gpu in tables.gpus()[:CONFIGURATIONS]]).T.contiguous()
    many = torch.tensor([configuration(batch=64.0)] * CONFIGURATIONS).T.contiguous()
    one = (*job, many[:, 0].contiguous(), gpus[:, 0].contiguous())
    encode = Encode(model).eval()
    with torch.no_grad():
        encoding = encode(*job)
    return {WHOLE: _File(Whole(model), (*ROWS, *CONFIGURATION), ANSWER, one), ENCODING_FILE: _File(encode, ROWS, ENCODING, job),
            EVALUATE: _File(Evaluate(model), (*ENCODING, *CONFIGURATION), ANSWER, (*encoding, many, gpus)),
            EXPLAIN: _File(Explain(model), (*ROWS, *CONFIGURATION), EXPLANATION, one)}


def _write(file: _File, path: Path) -> None:
    import onnx

    axes = {name: LENGTHS[name] for name in (*file.inputs, *file.outputs) if name in LENGTHS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")     # the exporter's warnings about its own age
        torch.onnx.export(file.module.eval(), file.example, str(path), dynamo=False, opset_version=OPSET,
                          input_names=list(file.inputs), output_names=list(file.outputs), dynamic_axes=axes)
    if "configuration" in file.inputs:
        model = onnx.load(str(path))
        model.metadata_props.add(key="mdot.reads.configuration", value=", ".join(tables.READS))
        # from a libmdot whose GPU table lacks the column of watts
        model.metadata_props.add(key="mdot.defaults.gpu", value=UNKNOWN_WATTS)
        model.metadata_props.add(key="mdot.assumes.torch", value=f"{NEWEST // 100}.{NEWEST % 100}")
        onnx.save(model, str(path))


class _Written:
    """The written files as functions."""

    def __init__(self, folder: Path, files: dict[str, _File]) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.files = files
        self.sessions = {name: onnxruntime.InferenceSession(str(folder / name), options, providers=["CPUExecutionProvider"])
                         for name in files}

    def run(self, name: str, *inputs) -> list[np.ndarray]:
        file = self.files[name]
        return self.sessions[name].run(list(file.outputs), dict(zip(file.inputs, (np.asarray(x) for x in inputs), strict=True)))


PRECISION_FLAGS = {"amp": {}, "amp_bf16": {"is_amp_bf16": 1.0}, "bf16": {"is_bf16": 1.0},
                   "tf32": {"is_amp": 0.0, "is_tf32": 1.0},
              "fp32": {"is_amp": 0.0, "is_fp32": 1.0}}
"""Flags by the precision of a label."""


def _off(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found / expected - 1).max())


def worst_of_training(model: Shipped, written: _Written, data: Dataset, random: np.random.Generator) -> float:
    """Worst relative difference between predictor.onnx and training, over random measured networks and batches, on any GPU,
    in any precision, with or without fused attention and torch.compile, of steps and of inference."""
    labels = random.choice(np.flatnonzero(np.isin(data.kind, (TRAIN, INFER))), CHECKED_LABELS)
    count = len(data.step_ms)
    settings = [(gpu.names[0], precision) for gpu in tables.gpus() for precision in PRECISION_FLAGS
                if "bf16" not in precision or gpu["compute_capability"] >= FIRST_WITH_BF16]   # labels contain no emulated bf16
    gpu, precision = np.array(settings)[random.integers(0, len(settings), count)].T
    is_fused, is_compiled = random.integers(0, 2, (2, count), dtype=bool)
    data = replace(data, gpu=gpu, precision=precision, is_fused=is_fused, is_compiled=is_compiled)
    logs = [np.log(training.predict_labels((member, None), data, labels)) for member in model.members]
    expected, worst = np.exp(np.mean(logs, axis=0)), 0.0
    for label, step_ms in zip(labels, expected):
        flags = {"batch": float(data.batch[label]), "is_nhwc": float(data.is_nhwc[label]),
                 "is_eager": float(not is_fused[label]), "is_compiled": float(is_compiled[label]),
                 "is_inference": float(data.kind[label] == INFER),
                 **PRECISION_FLAGS[str(data.precision[label])],
                 "torch": float(batches.versions(data, np.array([label]))[0])}
        numbers = tables.gpu(str(data.gpu[label])).numbers
        found = written.run(WHOLE, *rows(data, int(data.label_network[label])), np.float32(configuration(**flags)),
                            np.float32(numbers))[0][1]
        worst = max(worst, _off(found, step_ms))
    return worst


def random_rows(random: np.random.Generator, count: int) -> tuple[torch.Tensor, ...]:
    """Operators outside all networks: any type with any attributes, and any FLOPs and bytes, some zero."""
    settings, loads = len(tables.settings()), tables.LOAD_COUNT
    setting = np.floor(random.random((count, settings)) * random.choice([0, 1, 8, 300], (count, settings)))
    load = np.floor(10 ** (random.random((count, loads)) * 10) * random.integers(0, 2, (count, loads)))
    return (torch.tensor(random.integers(0, len(tables.operator_types()), count)), torch.tensor(setting, dtype=torch.float32),
            torch.tensor(load, dtype=torch.float32), torch.tensor(random.integers(1, 9, count), dtype=torch.float32))


PRECISIONS = ({"is_fp32": 1.0}, {"is_tf32": 1.0}, {"is_amp": 1.0}, {"is_amp": 1.0, "is_amp_bf16": 1.0},
              {"is_amp": 1.0, "is_bf16": 1.0}, {"is_fp32": 1.0, "is_pytorch": 1.0})


def random_configurations(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """[READS, CONFIGURATIONS] and [columns, CONFIGURATIONS], with a common batch."""
    batch, configurations, gpus = float(random.integers(1, 1025)), [], []
    for _ in range(CONFIGURATIONS):
        flags = {name: float(random.integers(0, 2)) for name in ("is_nhwc", "is_adam", "is_eager", "is_compiled",
                                                                 "is_inference")}
        flags["host_launch_us"] = float(random.choice([0, 0.5, 10, 100]))
        flags |= {"is_amp": 0.0} | PRECISIONS[random.integers(0, len(PRECISIONS))]
        flags |= {"torch": float(random.choice([0, 107, 110, 112, 201, NEWEST, 300]))}
        configurations.append(configuration(batch=batch, **flags))
        *specs, watts = tables.gpus()[random.integers(0, len(tables.gpus()))].numbers
        gpus.append([*specs, watts * random.integers(0, 2)])
    return np.float32(configurations).T.copy(), np.float32(gpus).T.copy()


def worst_of_entries(written: _Written, random: np.random.Generator) -> float:
    """Worst relative difference from predictor.onnx, over random jobs and configurations: encode.onnx with
    evaluate.onnx, and the explanation's sum."""
    worst = 0.0
    for _ in range(CHECKED_JOBS):
        job, (configurations, gpu) = random_rows(random, int(random.integers(1, 100))), random_configurations(random)
        encoding = written.run(ENCODING_FILE, *job)
        step_ms, outside, part_ms = written.run(EVALUATE, *encoding, configurations, gpu)
        for i in range(CONFIGURATIONS):
            one = (*job, configurations[:, i].copy(), gpu[:, i].copy())
            wanted_ms, wanted, wanted_parts = written.run(WHOLE, *one)
            outside_off = float(np.abs(outside[:, i] - wanted).max() / max(1, wanted.max()))
            parts_off = float(np.abs(part_ms[:, i] - wanted_parts).max() / wanted_ms[1])
            *gpu_parts, host_part = wanted_parts.astype(np.float64)
            overlapped = (sum(gpu_parts) ** SMOOTHNESS + host_part**SMOOTHNESS) ** (1 / SMOOTHNESS)
            worst = max(worst, _off(step_ms[:, i], wanted_ms), outside_off, parts_off, _off(overlapped, wanted_ms[1]))
        of_operators, others = written.run(EXPLAIN, *one)
        if of_operators.min() < 0 or others.min() < 0:
            raise ValueError("a part of a step is negative")
        *parts, host_ms = others.astype(np.float64)
        worst = max(worst, _off(of_operators.sum(dtype=np.float64) + sum(parts), wanted_ms[1]))
        if host_ms < parts[WAITING] - TOLERANCE * wanted_ms[1]:
            raise ValueError("the GPU waits for the host longer than the host works")
    return worst


def _gpus(names: Sequence[str]) -> np.ndarray:
    """[columns, CONFIGURATIONS]: the GPU models, one after the other in every condition of MONOTONE."""
    numbers = [tables.gpu(names[i // len(MONOTONE) % len(names)]).numbers for i in range(CONFIGURATIONS)]
    return np.float32(numbers).T.copy()


def shrinking(written: _Written, data: Dataset) -> Iterator[str]:
    """Networks with a shorter predicted step after doubling the batch, or fewer samples per second. A host-limited step
    stays equal. The GPU models in BATCH_GPUS take turns."""
    many = np.float32([configuration(**MONOTONE[i % len(MONOTONE)]) for i in range(CONFIGURATIONS)]).T.copy()
    at_once = CONFIGURATIONS // len(MONOTONE)
    for turn, network in enumerate(data.whole_networks):
        gpu = _gpus([BATCH_GPUS[(turn + k) % len(BATCH_GPUS)] for k in range(at_once)])
        encoding, before = written.run(ENCODING_FILE, *rows(data, network)), None
        for batch in BATCHES:
            many[tables.READS.index("batch")] = batch
            step_ms = written.run(EVALUATE, *encoding, many, gpu)[0][1]
            if before is not None:
                shrinks, falls = step_ms < before * (1 - 1e-5), step_ms / 2 > before * (1 + THROUGHPUT_LOSS)
                if (shrinks | falls).any():
                    at = int(np.argmax(shrinks | falls))
                    yield (f"{data.network_name[network]} at {data.network_size[network]}, batch {batch}, "
                           f"{MONOTONE[at % len(MONOTONE)]}: {before[at]:.4g} ms, then {step_ms[at]:.4g}")
                    break
            before = step_ms


CHECKED_TRIPLES = 20_000
LEAST_FLOPS = 1.0


def _peaks(types: torch.Tensor, setting: torch.Tensor, gpu: np.ndarray, flags: dict[str, float]) -> torch.Tensor:
    """[operators, CONFIGURATIONS]: the highest TFLOP/s of a unit that may run the operator. Winograd's algorithm needs 2.25 times
    fewer multiplications on vector units."""
    column = {name: torch.tensor(gpu[i]) for i, name in enumerate(tables.gpu_columns())}
    vector = column["fp32_tflops"][None] * torch.where(features.is_winograd(Operators(types, setting, setting)) > 0, 2.25, 1.0)
    matmul = vector
    if not flags.get("is_fp32") or flags.get("is_pytorch"):
        tf32 = torch.where(column["compute_capability"] >= 8, column["tf32_tflops"], column["fp32_tflops"])
        matmul = torch.maximum(matmul, tf32[None])
    if flags.get("is_amp"):
        matmul = torch.maximum(matmul, column["fp16_tflops"][None])
    is_matmul = where_type(types, features.MATMUL_TYPES) > 0
    return torch.where(is_matmul, matmul, column["fp32_tflops"][None])


def beating_hardware(model: Shipped, data: Dataset, random: np.random.Generator) -> Iterator[str]:
    """Operators that would take less time than the FLOPs at the peak rate, in CHECKED_TRIPLES random (network, GPU,
    configuration), whose parts worst_of_entries compares with the files."""
    encode, evaluate = Encode(model).eval(), Evaluate(model).eval()
    for _ in range(CHECKED_TRIPLES // CONFIGURATIONS):
        job, (configurations, gpu) = rows(data, int(random.choice(data.whole_networks))), random_configurations(random)
        precision = PRECISIONS[random.integers(0, len(PRECISIONS))]
        for name in tables.READS:
            if name in ("is_fp32", "is_tf32", "is_amp", "is_amp_bf16", "is_bf16", "is_pytorch"):
                configurations[tables.READS.index(name)] = precision.get(name, 0.0)
        types, setting, load, count = job
        bare, _ = normalisation.split(Operators(types, setting, load))
        with torch.no_grad():
            encoding = encode(*job)
            c = decode_inputs.read(torch.tensor(configurations), torch.tensor(gpu))
            parts = evaluate.times(encoding[0], Rows.read(encoding[1]), *encoding[2:], c)[0].parts
            peak = _peaks(types, setting, gpu, precision)
            for phase, ms in enumerate(parts):
                flops = bare.load[:, 3 * phase] * c.batch + bare.load[:, tables.PHASE_LOAD_COUNT + 3 * phase]
                is_run = 1 - c.is_inference if phase else torch.ones_like(c.is_inference)
                least = (count * flops)[:, None] * is_run / (peak * 1e9)
                is_fast = (ms < least * (1 - 1e-3)) & (flops[:, None] > LEAST_FLOPS)
                if is_fast.any():
                    at = is_fast.nonzero()[0]
                    yield (f"a {tables.operator_types()[int(types[at[0]])]} takes {ms[tuple(at)]:.3g} ms, at least "
                           f"{least[tuple(at)]:.3g}")


def export(model: Shipped, data: Dataset, folder: Path) -> float:
    """Writes the four files if they match training and steps grow with the batch. Returns the worst difference."""
    folder.mkdir(parents=True, exist_ok=True)
    files = _files(model, data)
    with tempfile.TemporaryDirectory(dir=folder) as part:
        for name, file in files.items():
            _write(file, Path(part) / name)
        written, random = _Written(Path(part), files), np.random.default_rng(0)
        worst = max(worst_of_training(model, written, data, random), worst_of_entries(written, random))
        if not worst <= TOLERANCE:
            raise ValueError(f"the files differ from the trained model by {worst:.1e}, more than {TOLERANCE:.0e}")
        found = list(beating_hardware(model, data, random))
        if found:
            raise ValueError(f"{len(found)} operators are faster than the hardware: {'; '.join(found[:8])}")
        found = list(shrinking(written, data))
        if found:
            raise ValueError(f"steps or samples per second fall with a larger batch for {len(found)}: {'; '.join(found)}")
        for name in files:
            (Path(part) / name).rename(folder / name)
    return worst
