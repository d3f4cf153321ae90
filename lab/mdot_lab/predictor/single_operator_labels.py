"""Operators that were timed in isolation or in a profile, as labels. They give the cost of single operators on GPUs
with few measured networks.

Each is a network of one operator, described in the format of `mdot extract`, and a label of the timed phase. The
measurements are a sample of the tables of `operators`, balanced over GPUs and sources. Short times are skipped,
because the launch of the kernel is a large part of them.

profiler_operators.csv (TraceLens: H100, MI300X, B200) has the GPU time of operators in profiles of networks, by
shape. Matmuls, LayerNormalization, softmax and attention without a mask are read. Convolutions are left out, because
the number of kernels of one call is unknown and strides are missing.
"""

from __future__ import annotations

import ast
import csv
from pathlib import Path
from typing import Iterator, NamedTuple

import numpy as np

from mdot_lab.operator_benchmarks import measurements
from mdot_lab.operator_benchmarks.measurements import Measured
from mdot_lab.predictor import tables
from mdot_lab.predictor.labels import ALONE, OPERATOR, Label, Network
from mdot_lab.predictor.operators import FP32_BYTES
from mdot_lab.predictor.sequences import Sequence

PER_GROUP = 250
"""Maximum number of labels for each GPU, source and kind."""
LEAST_MICROSECONDS = 40.0
LEAST_WITH_STARTING = 300.0
"""Minimum for NeuSight's times, because these include 30 to 50 µs for the launch of a kernel."""

SOFTWARE = {"NeuSight": "pt210", "DeepBench": "pt109", "Catapult": "pt109", "vidur": "pt210"}
"""PyTorch's version for each source. Libraries from 2018 have the oldest distinguished version."""
NEWEST_SOFTWARE = "pt290"
"""Version for the other sources, which measured in 2025."""

SOURCES = tuple(OPERATOR + name for name in (
    "NeuSight Linear", "aic Linear", "vidur Linear", "DeepBench Linear", "NeuSight Conv", "DeepBench Conv", "Catapult Conv",
    "flash_attention Attention", "vllm_flashinfer_trtllmprefill Attention", "vllm_vit_flash_attn_fa4 Attention",
    "cudnn Attention",
    "vllm_flash_attn_fa3 Attention", "vllm_flash_attn_fa4 Attention", "vllm_vit_flash_attn_fa3 Attention", "NeuSight Softmax",
    "NeuSight LayerNormalization", "vidur LayerNormalization", "TraceLens Linear", "TraceLens MatMul", "TraceLens Softmax",
    "TraceLens LayerNormalization", "TraceLens Attention"))
"""`run` in these labels."""


class Described(NamedTuple):
    """An operator at a batch."""

    type: str
    batch: int
    settings: dict[str, float]
    of_sample: list[tuple[float, float, float]]     # by phase: FLOPs, elements read and written
    of_step: list[tuple[float, float, float]]       # the same, for parameters and masks


NOTHING = (0.0, 0.0, 0.0)
MOST_ROWS = 4096
"""Maximum rows of a sample; more rows are split into several samples."""


def _samples(rows: float) -> int:
    """The number of samples for this many rows."""
    powers = (2**k for k in range(10))
    return next((count for count in powers if rows <= MOST_ROWS * count and rows % count == 0), 1)


Row = dict[str, float]


def linear(row: Row) -> Described:
    batch = _samples(row["m"])
    m, k, n = row["m"] / batch, row["k"], row["n"]
    flops = 2 * m * k * n
    return Described("Linear", batch, {"channels_in": k, "channels_out": n, "size_in": m, "size_out": m, "inputs": 1},
                     [(flops, m * k, m * n), (flops, m * n, m * k), (flops, m * (k + n), 0)],
                     [(0, k * n, 0), (0, k * n, 0), (0, 0, k * n)])


def convolution(row: Row) -> Described:
    """A convolution with square windows and feature maps. If a table omits the padding, the size is assumed to stay equal."""
    side = np.sqrt(row["window"])
    stride = max(1.0, np.round(np.sqrt(row["positions_in"] / row["positions_out"])))
    read, written = row["channels_in"] * row["positions_in"], row["channels_out"] * row["positions_out"]
    weights = row["channels_in"] * row["channels_out"] * row["window"]
    flops = 2 * weights * row["positions_out"]
    window = dict.fromkeys(("kernel_h", "kernel_w"), side) | dict.fromkeys(("stride_h", "stride_w"), stride)
    window |= dict.fromkeys(("padding_h", "padding_w"), side - side % 2)
    window |= dict.fromkeys(("kernel_d", "stride_d", "dilation_h", "dilation_w", "groups", "inputs"), 1.0)
    settings = window | {"channels_in": row["channels_in"], "channels_out": row["channels_out"], "size_in": row["positions_in"],
                         "size_out": row["positions_out"]}
    return Described("Conv", int(row["batch"]), settings,
                     [(flops, read, written), (flops, written, read), (flops, read + written, 0)],
                     [(0, weights, 0), (0, weights, 0), (0, 0, weights)])


SOFTMAX_FLOPS, NORMALISATION_FLOPS = 5, 8
"""FLOPs for each element, as the tokeniser counts them."""


def attention(row: Row) -> Described:
    heads, size, queries, keys = row["heads"], row["head_size"], row["queries"], row["keys"]
    read, written = heads * size * (queries + 2 * keys), heads * size * queries
    flops = heads * queries * keys * (4 * size + SOFTMAX_FLOPS)
    mask = (0, 2 * queries * keys * row["is_causal"], 0)
    return Described("Attention", int(row["batch"]),
                     {"heads": heads, "head_size": size, "queries": queries, "keys": keys, "inputs": 3},
                     [(flops, read, written), (2 * flops, read + written, read), NOTHING], [mask, mask, NOTHING])


def stream(row: Row) -> Described:
    """Softmax or LayerNormalization over rows."""
    batch, columns = _samples(row["rows"]), row["columns"]
    elements = row["rows"] / batch * columns
    settings = {"axis": 1, "extent": columns, "inputs": 1}
    if row["operation"] == measurements.STREAMS.index("softmax"):
        flops = SOFTMAX_FLOPS * elements
        return Described("Softmax", batch, settings, [(flops, elements, elements), (2 * flops, 2 * elements, elements),
                                                      NOTHING],
                         [NOTHING, NOTHING, NOTHING])
    flops, affine_parameters = NORMALISATION_FLOPS * elements, 2 * columns
    return Described("LayerNormalization", batch, settings,
                     [(flops, elements, elements), (2 * flops, 2 * elements, elements), (2 * elements, elements, 0)],
                     [(0, affine_parameters, 0), (0, affine_parameters, 0), (0, 0, affine_parameters)])


def sequence(described: Described) -> Sequence:
    settings = [float(described.settings.get(name, 0)) for name in tables.settings()]
    loads = [load for part in (described.of_sample, described.of_step) for flops, read, written in part
             for load in (flops, FP32_BYTES * read, FP32_BYTES * written)]
    _, _, parameters = described.of_step[-1]
    return Sequence(type=np.array([tables.operator_type_row(described.type)]), setting=np.array([settings]),
                    load=np.round([[*loads, parameters]]), position=np.zeros((1, len(tables.POSITIONS))),
                    edge=np.zeros((0, 2), dtype=np.int64))


def _name(described: Described) -> str:
    """Name of the network: equal for equal operators."""
    numbers = (*described.settings.values(), *described.of_sample[0], *described.of_step[0])
    return ".".join([OPERATOR + described.type, *(f"{number:.0f}" for number in numbers)])


def _label(described: Described, row: Row, source: str, gpu_model: str, microseconds: float) -> Label:
    software = SOFTWARE.get(source, NEWEST_SOFTWARE)
    if row["bytes"] < FP32_BYTES:
        precision = "bf16" if software == NEWEST_SOFTWARE else "fp16"
    else:       # also for convolutions on A100, where PyTorch's default is TF32: they take .88 of a V100's times, as fp32 would
        precision = "fp32"
    phase = int(row.get("phase", row.get("is_backward", 0)))
    return Label(Network(_name(described), 0), described.batch, "nchw", software, f"{OPERATOR}{source} {described.type}",
                 microseconds / 1e3, 0.0, gpu_model, precision, ALONE[phase], is_compiled=False, is_fused=True)


def _self_attention(folder: Path) -> Measured:
    found = measurements.attention(folder)
    c = found.columns
    return found.take(np.flatnonzero((c["heads"] == c["key_heads"]) & (c["queries"] == c["keys"])))


def _streams_by_row(folder: Path) -> Measured:
    found = measurements.streams(folder)
    return found.take(np.flatnonzero(found.columns["is_by_row"] > 0))


READERS = ((measurements.matmuls, linear), (measurements.convolutions, convolution), (_self_attention, attention),
           (_streams_by_row, stream))
"""Each operator kind's table, and the function that describes a row."""


def _usable(found: Measured) -> Measured:
    gpu_models = [name for row in tables.gpus() for name in row.names]
    least = np.where(np.char.startswith(found.source, "NeuSight"), LEAST_WITH_STARTING, LEAST_MICROSECONDS)
    return found.take(np.flatnonzero(np.isin(found.gpu_model, gpu_models) & (found.microseconds >= least)))


def matmul(row: Row) -> Described:
    """A batched matmul with two computed matrices. The network has one sample, therefore the batch is 1."""
    count, m, k, n = row["count"], row["m"], row["k"], row["n"]
    flops, a, b, out = 2 * count * m * k * n, count * m * k, count * k * n, count * m * n
    return Described("MatMul", 1, {"groups": count, "channels_in": k, "channels_out": n, "size_in": m, "size_out": m, "inputs": 2},
                     [(flops, a + b, out), (2 * flops, out + a + b, a + b), NOTHING], [NOTHING, NOTHING, NOTHING])


PROFILED = "TraceLens"
PROFILED_GPUS = {"NVIDIA H100 80GB HBM3": "H100-SXM-80GB", "NVIDIA B200": "B200-SXM-180GB", "AMD Instinct MI300X": "MI300X",
                 "AMD Instinct MI300X VF": "MI300X"}
PROFILED_HALVES = ("['c10::BFloat16'", "['c10::Half'")
"""Type beginnings in tables with cut names."""
PROFILED_OPERATORS = ("aten::addmm", "aten::mm", "aten::bmm", "aten::native_layer_norm", "aten::_softmax",
                      "aten::_flash_attention_forward")
DECODERS = ("Qwen",)
"""Parts of trace names with a causal attention mask (the table omits it)."""


def _profiled(operator: str, dims: list, is_decoder: bool) -> Described | None:
    """None for an operator that is not read."""
    if operator in ("aten::addmm", "aten::mm"):
        left, right = dims[1:3] if operator == "aten::addmm" else dims[:2]
        return linear({"m": left[0], "k": left[1], "n": right[1]})
    if operator == "aten::bmm":
        (count, m, k), (_, _, n) = dims[:2]
        return matmul({"count": count, "m": m, "k": k, "n": n})
    if operator in ("aten::native_layer_norm", "aten::_softmax"):
        kind = "normalisation" if operator == "aten::native_layer_norm" else "softmax"
        columns = float(dims[0][-1])
        return stream({"rows": np.prod(dims[0][:-1], dtype=float), "columns": columns, "operation": measurements.STREAMS.index(kind)})
    if operator == "aten::_flash_attention_forward" and not is_decoder:
        batch, queries, heads, size = dims[0]
        return attention({"batch": batch, "heads": heads, "head_size": size, "queries": queries, "keys": dims[1][1],
                          "is_causal": 0})
    return None


def read_profiles(path: Path) -> Iterator[tuple[Label, Sequence]]:
    """profiler_operators.csv. A call's time is the total kernel time for a shape over the count, because each operator
    launches one kernel. Times below LEAST_MICROSECONDS are skipped."""
    with open(path, newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(line for line in lines if not line.startswith("#")):
            gpu_model, microseconds = PROFILED_GPUS.get(row["gpu"]), float(row["kernel_us_total"]) / int(row["kernels"])
            if (gpu_model is None or row["operator"] not in PROFILED_OPERATORS or microseconds < LEAST_MICROSECONDS
                    or not row["input_types"].startswith(PROFILED_HALVES)):
                continue
            is_decoder = any(name in row["trace"] for name in DECODERS)
            described = _profiled(row["operator"], ast.literal_eval(row["input_dims"]), is_decoder)
            if described is not None:
                yield _label(described, {"bytes": 2.0}, PROFILED, gpu_model, microseconds), sequence(described)


def read(path: Path) -> Iterator[tuple[Label, Sequence]]:
    """Labels from a table folder, as a random sample per GPU, source and kind; or all of profiler_operators.csv."""
    if path.is_file():
        yield from read_profiles(path)
        return
    for table, describe in READERS:
        found = _usable(table(path)).at_most(PER_GROUP)
        for i in range(len(found)):
            row = {name: float(column[i]) for name, column in found.columns.items()}
            source, described = str(found.source[i]).split(":")[0].split(" ")[0], describe(row)
            yield _label(described, row, source, str(found.gpu_model[i]), float(found.microseconds[i])), sequence(described)
