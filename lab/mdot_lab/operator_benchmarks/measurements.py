"""Reads tables of measured operators into arrays with a row for each measurement: shapes, spec values of the GPU, source,
microseconds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas
import torch
from torch import Tensor

from mdot_lab.operator_benchmarks import gpu_specs
from mdot_lab.operator_benchmarks.collective_model import OPERATIONS as COLLECTIVES
from mdot_lab.operator_benchmarks.convolution_model import PHASES
from mdot_lab.operator_benchmarks.stream_model import KINDS as STREAMS


@dataclass(frozen=True)
class Measured:
    columns: dict[str, np.ndarray]      # numbers that a model reads
    source: np.ndarray                  # text: the measurement's origin; each has a fitted offset and floor
    gpu_model: np.ndarray               # text: values of gpu_specs.NAMES
    kind: np.ndarray                    # text: additional property with its own line in the tables
    microseconds: np.ndarray

    def __len__(self) -> int:
        return len(self.microseconds)

    @property
    def architecture(self) -> np.ndarray:
        return np.array([gpu_specs.gpu_spec(name).architecture for name in self.gpu_model])

    @property
    def group(self) -> np.ndarray:
        """Text: rows with the same line in the tables."""
        return np.array([f"{c} | {s} | {k}" for c, s, k in zip(self.gpu_model, self.source, self.kind)])

    def take(self, rows: np.ndarray) -> "Measured":
        return replace(self, columns={name: column[rows] for name, column in self.columns.items()}, source=self.source[rows],
                       gpu_model=self.gpu_model[rows], kind=self.kind[rows], microseconds=self.microseconds[rows])

    def at_most(self, count: int, seed: int = 0) -> "Measured":
        """At most `count` random rows of every group."""
        order = np.random.default_rng(seed).permutation(len(self))
        group = pandas.Series(self.group[order])
        return self.take(order[(group.groupby(group).cumcount() < count).to_numpy()])

    def tensors(self, sources: list[str]) -> dict[str, Tensor]:
        """The rows as tensors. A source outside `sources` has number 0, the mean of all sources."""
        number = {name: i + 1 for i, name in enumerate(sources)}
        found = {name: torch.tensor(column[:, None], dtype=torch.float32) for name, column in self.columns.items()}
        return {**found, "source": torch.tensor([number.get(name, 0) for name in self.source]),
                "microseconds": torch.tensor(self.microseconds[:, None], dtype=torch.float32)}


SPEC_COLUMNS = ("compute_capability", "sm_count", "boost_mhz", "memory_gbps", "l2_mib", "watts")


def with_specs(columns: dict[str, np.ndarray], gpu_model: np.ndarray, is_half: np.ndarray) -> dict[str, np.ndarray]:
    """Adds the GPU's spec values at the requested precision: `tflops`, `is_tensor` (tensor cores), `bytes` of an element."""
    of_row = [gpu_specs.gpu_spec(name) for name in gpu_model]
    specs = {name: np.array([getattr(c, name) for c in of_row], dtype=np.float64) for name in SPEC_COLUMNS}
    fp32, fp16 = (np.array([getattr(c, name) for c in of_row]) for name in ("fp32_tflops", "fp16_tflops"))
    is_tensor = is_half & (specs["compute_capability"] >= 7)
    return {**columns, **specs, "tflops": np.where(is_half, fp16, fp32), "is_tensor": is_tensor.astype(np.float64),
            "bytes": np.where(is_half, 2.0, 4.0)}


def matmuls(folder: Path) -> Measured:
    """gemm.csv.gz: [m, k] times [k, n], forward."""
    rows = pandas.read_csv(folder / "gemm.csv.gz")
    rows = rows[rows.gpu.isin(gpu_specs.NAMES) & (rows.microseconds > 0)]
    gpu_model = rows.gpu.map(gpu_specs.NAMES).to_numpy(dtype=str)
    # vidur measures all layers of a network in the same way; DeepBench's layouts and aic's frameworks differ
    source = np.where(rows.source.str.startswith("vidur"), "vidur", rows.source).astype(str)
    shape = {name: rows[name].to_numpy(dtype=np.float64) for name in ("m", "n", "k")}
    columns = with_specs({"count": np.ones(len(rows)), **shape}, gpu_model, rows.dtype.to_numpy() != "fp32")
    kind = np.where(columns["is_tensor"] > 0, "tensor cores", "fp32")
    return Measured(columns, source, gpu_model, kind, rows.microseconds.to_numpy())


LEAST_QUERIES = 64
"""Fewer queries occur in generation alone, with other kernels."""


def attention(folder: Path) -> Measured:
    """attention.csv.gz: fused kernels in bf16, causal or not, forward and backward."""
    rows = pandas.read_csv(folder / "attention.csv.gz")
    rows = rows[rows.gpu.isin(gpu_specs.NAMES) & rows.dtype.isin(("bf16", "bfloat16")) & (rows.q_len >= LEAST_QUERIES)]
    gpu_model = rows.gpu.map(gpu_specs.NAMES).to_numpy(dtype=str)
    columns = {"batch": "batch", "queries": "q_len", "keys": "kv_len", "heads": "heads", "key_heads": "kv_heads",
               "head_size": "head_dim"}
    shape = {name: rows[column].to_numpy(dtype=np.float64) for name, column in columns.items()}
    flags = {"is_causal": rows["mask"].isin(("causal", "top_left")), "is_backward": rows.direction == "bwd"}
    shape.update({name: flag.to_numpy(dtype=np.float64) for name, flag in flags.items()})
    source = rows.source.str.split(":").str[-1].where(rows.source.str.startswith("aic"), "cudnn").to_numpy(dtype=str)
    mask = np.where(shape["is_causal"] > 0, "causal, ", "full, ")
    kind = np.char.add(mask, np.where(shape["is_backward"] > 0, "backward", "forward"))
    return Measured(with_specs(shape, gpu_model, np.ones(len(rows), dtype=bool)), source, gpu_model, kind,
                    rows.microseconds.to_numpy(dtype=float))


LINK_GBPS = {"V100-SXM-16GB": 150, "A100-SXM-80GB": 300, "H100-SXM-80GB": 450, "H200-SXM-141GB": 450, "B200": 900, "B300": 900,
             "GB200": 900, "GB300": 900, "RTX-PRO-6000-Server": 63}
"""One direction: NVLink if the GPU has it, its PCIe slot otherwise."""


LARGE_MESSAGE = 2**20
"""Gradients are larger, and the messages of tensor parallelism have about this size."""


def collectives(folder: Path) -> Measured:
    """nccl.csv: within a node. L40S is excluded: eight GPUs need .65 s for 512 MiB, an effect of the node."""
    rows = pandas.read_csv(folder / "aiconfigurator" / "nccl.csv")
    gpu_model = rows.gpu.map(gpu_specs.NAMES)
    rows, gpu_model = rows[gpu_model.isin(LINK_GBPS)], gpu_model[gpu_model.isin(LINK_GBPS)].to_numpy(dtype=str)
    is_half = (rows.dtype == "half").to_numpy()
    columns = {
        "operation": rows.op.map(COLLECTIVES.index).to_numpy(dtype=float), "gpus": rows.gpus.to_numpy(dtype=float),
        "message_bytes": rows.message_size.to_numpy(dtype=float) * np.where(is_half, 2, 1),
        "is_reduced_twice": (rows.op == "all_reduce").to_numpy(dtype=float),
        "link_gbps": np.array([LINK_GBPS[name] for name in gpu_model], dtype=float),
    }
    columns = with_specs(columns, gpu_model, np.ones(len(rows), dtype=bool))
    columns["adds_in_switch"] = (((columns["compute_capability"] >= 9) & (columns["compute_capability"] < 12)).astype(float)
                                 * (columns["gpus"] > 2))
    kind = np.where(columns["message_bytes"] >= LARGE_MESSAGE, "from 1 MiB", "below 1 MiB")
    return Measured(columns, rows.op.to_numpy(dtype=str), gpu_model, kind, rows.microseconds.to_numpy())


def streams(folder: Path) -> Measured:
    """Elementwise functions, softmax and normalisations, forward: fp32 by NeuSight, fp16 by Vidur."""
    fp32 = pandas.read_csv(folder / "neusight_ops" / "vector_softmax_ln_fp32.csv.gz")
    kind = fp32.OPName.map({"softmax": "softmax", "ln": "normalisation"}).fillna("elementwise")
    fp32 = pandas.DataFrame({"gpu": fp32.Device, "kind": kind, "rows": fp32.B, "columns": fp32.H, "source": "NeuSight",
                             "accesses": np.where(fp32.OPName.isin(("add", "mul", "div", "pow")), 3, 2), "is_half": False,
                             "microseconds": fp32.microseconds})
    fp16 = pandas.read_csv(folder / "vidur" / "elementwise_fp16.csv.gz")
    fp16 = fp16[fp16.op.isin(("add", "input_layernorm", "post_attention_layernorm"))]
    kind = np.where(fp16.op == "add", "elementwise", "normalisation")
    fp16 = pandas.DataFrame({"gpu": fp16.gpu, "kind": kind, "rows": fp16.tokens, "columns": fp16.n_embd, "source": "vidur",
                             "accesses": np.where(fp16.op == "add", 3, 2), "is_half": True, "microseconds": fp16.microseconds})
    rows = pandas.concat([fp32, fp16])
    rows = rows[rows.gpu.isin(gpu_specs.NAMES)]
    gpu_model, kind = rows.gpu.map(gpu_specs.NAMES).to_numpy(dtype=str), rows.kind.to_numpy(dtype=str)
    columns = {name: rows[name].to_numpy(dtype=np.float64) for name in ("rows", "columns", "accesses")}
    columns["operation"] = np.array([STREAMS.index(name) for name in kind], dtype=np.float64)
    columns["is_by_row"] = (kind != "elementwise").astype(np.float64)
    columns = with_specs(columns, gpu_model, rows.is_half.to_numpy(dtype=bool))
    # the kinds are launched by different code, therefore each has its own floor
    source = (rows.source + " " + rows.kind).to_numpy(dtype=str)
    return Measured(columns, source, gpu_model, kind, rows.microseconds.to_numpy(dtype=float))


def convolutions(folder: Path) -> Measured:
    """Forward in fp32 by NeuSight (3 × 3, stride 1); all three phases, fp32 and fp16, by DeepBench; forward in TensorFlow 1
    by Catapult, whose rows with an optimizer are sums of phases."""
    neusight = pandas.read_csv(folder / "neusight_ops" / "conv_fp32_forward.csv.gz")
    side = (neusight.in_hw + 2 * neusight.Padding - neusight.kernel) // neusight.Stride + 1
    tables = [pandas.DataFrame({
        "gpu": neusight.Device, "batch": neusight.B, "channels_in": neusight.cin, "channels_out": neusight.cout,
        "window": neusight.kernel**2, "positions_in": neusight.in_hw**2, "positions_out": side**2, "phase": 0, "is_half": False,
        "has_winograd": (neusight.kernel == 3) & (neusight.Stride == 1), "source": "NeuSight",
        "microseconds": neusight.microseconds})]
    deep = pandas.read_csv(folder / "deepbench" / "conv_train.csv")
    height = (deep.h + 2 * deep.pad_h - deep.kernel_h) // deep.stride_h + 1
    width = (deep.w + 2 * deep.pad_w - deep.kernel_w) // deep.stride_w + 1
    for phase, column in enumerate(("forward_ms", "backward_data_ms", "backward_weight_ms")):
        tables.append(pandas.DataFrame({
            "gpu": deep.gpu, "batch": deep.n, "channels_in": deep.c, "channels_out": deep.k,
            "window": deep.kernel_w * deep.kernel_h, "positions_in": deep.w * deep.h, "positions_out": height * width,
            "phase": phase, "is_half": deep.precision == "mixed",
            "has_winograd": (deep.kernel_w == 3) & (deep.kernel_h == 3) & (deep.stride_w == 1) & (deep.stride_h == 1),
            "source": "DeepBench", "microseconds": 1000 * deep[column]}))
    layers = pandas.read_parquet(folder / "cdecatapult" / "conv_train.parquet")
    layers = layers[layers.optimizer == 0]
    inner = (layers.matsize - layers.kernelsize) // layers.strides + 1
    side = np.where(layers.padding == 1, -(-layers.matsize // layers.strides), inner)
    tables.append(pandas.DataFrame({
        "gpu": "catapult " + layers.gpu, "batch": layers.batchsize, "channels_in": layers.channels_in,
        "channels_out": layers.channels_out, "window": layers.kernelsize**2, "positions_in": layers.matsize**2,
        "positions_out": side**2, "phase": 0, "is_half": False,
        "has_winograd": (layers.kernelsize == 3) & (layers.strides == 1),
        "source": "Catapult", "microseconds": 1000 * layers.timeUsed_median}))
    rows = pandas.concat(tables)
    rows = rows[rows.gpu.isin(gpu_specs.NAMES) & (rows.microseconds > 0) & (rows.positions_out > 0)]
    gpu_model = rows.gpu.map(gpu_specs.NAMES).to_numpy(dtype=str)
    names = ("batch", "channels_in", "channels_out", "window", "positions_in", "positions_out", "phase", "has_winograd")
    columns = with_specs({name: rows[name].to_numpy(dtype=np.float64) for name in names}, gpu_model,
                         rows.is_half.to_numpy(dtype=bool))
    kind = np.array([f"{PHASES[int(p)]}, {'tensor cores' if t else 'fp32'}"
                     for p, t in zip(columns["phase"], columns["is_tensor"])])
    return Measured(columns, rows.source.to_numpy(dtype=str), gpu_model, kind, rows.microseconds.to_numpy(dtype=float))
