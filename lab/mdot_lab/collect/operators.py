"""Times single operators on this machine's GPU, forward and backward, and writes a table.

Each operator is captured several times in a CUDA graph, so that the cost of launches is left out. The time of a backward
pass is the difference between a graph of both passes and one of the forward pass. The same tensors are used every time:
small ones stay in the L2 cache, as in other tables of single operators. Inputs are random, because a GPU multiplies zeros
measurably faster.
"""

from __future__ import annotations

import csv
import random
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator

import torch
import torch.nn.functional as F

COLUMNS = ("gpu", "software", "operator", "precision", "direction", "settings", "microseconds")
COPIES = 4          # operator copies in one graph
REPLAYS = 9         # repetitions; the median counts
LONG_MICROSECONDS, LONG_REPLAYS = 3000.0, 3     # operators from this time on are captured once
DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

Settings = dict[str, int]


@dataclass(frozen=True)
class Case:
    operator: str
    precision: str
    settings: Settings

    @property
    def text(self) -> str:
        return ";".join(f"{name}={value}" for name, value in self.settings.items())


def _tensor(case: Case, device: str, *shape: int, needs_gradient: bool = True) -> torch.Tensor:
    return torch.randn(*shape, device=device, dtype=DTYPES[case.precision]).requires_grad_(needs_gradient)


Made = tuple[Callable[..., torch.Tensor], list[torch.Tensor]]
"""A function and its inputs."""


def _linear(case: Case, device: str) -> Made:
    s = case.settings
    return F.linear, [_tensor(case, device, s["m"], s["k"]), _tensor(case, device, s["n"], s["k"])]


def _matmul(case: Case, device: str) -> Made:
    s = case.settings
    return torch.bmm, [_tensor(case, device, s["count"], s["m"], s["k"]), _tensor(case, device, s["count"], s["k"], s["n"])]


def _attention(case: Case, device: str) -> Made:
    s = case.settings
    inputs = [_tensor(case, device, s["batch"], heads, s["length"], s["head_size"])
              for heads in (s["heads"], s["key_heads"], s["key_heads"])]
    grouped = s["heads"] != s["key_heads"]
    return (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=bool(s["causal"]), enable_gqa=grouped)), inputs


def _convolution(case: Case, device: str) -> Made:
    s = case.settings
    layout = torch.channels_last if s["nhwc"] else torch.contiguous_format
    shapes = ((s["batch"], s["channels_in"], s["size"], s["size"]),
              (s["channels_out"], s["channels_in"] // s["groups"], s["kernel"], s["kernel"]))
    inputs = [_tensor(case, device, *shape).detach().contiguous(memory_format=layout).requires_grad_() for shape in shapes]
    return (lambda x, w: F.conv2d(x, w, stride=s["stride"], padding=s["kernel"] // 2, groups=s["groups"])), inputs


def _by_row(function: Callable[..., torch.Tensor], affine: int = 0) -> Callable[[Case, str], Made]:
    """An operator over rows, with `affine` parameters of a row's length."""
    def make(case: Case, device: str) -> Made:
        rows, columns = case.settings["rows"], case.settings["columns"]
        inputs = [_tensor(case, device, rows, columns), *(_tensor(case, device, columns) for _ in range(affine))]
        return (lambda x, *rest: function(x, columns, *rest)), inputs
    return make


def _batch_norm(case: Case, device: str) -> Made:
    s = case.settings
    layout = torch.channels_last if s["nhwc"] else torch.contiguous_format
    x = _tensor(case, device, s["batch"], s["channels"], s["size"], s["size"]).detach().contiguous(memory_format=layout)
    mean, variance = torch.zeros(s["channels"], device=device), torch.ones(s["channels"], device=device)
    scale = [torch.ones(s["channels"], device=device).requires_grad_() for _ in range(2)]
    return (lambda a, w, b: F.batch_norm(a, mean, variance, w, b, training=True)), [x.requires_grad_(), *scale]


def _cross_entropy(case: Case, device: str) -> Made:
    rows, columns = case.settings["rows"], case.settings["columns"]
    targets = torch.randint(columns, (rows,), device=device)
    return (lambda x: F.cross_entropy(x, targets)), [_tensor(case, device, rows, columns)]


MAKERS: dict[str, Callable[[Case, str], Made]] = {
    "linear": _linear, "matmul": _matmul, "attention": _attention, "convolution": _convolution, "batch_norm": _batch_norm,
    "cross_entropy": _cross_entropy,
    "layer_norm": _by_row(lambda x, n, w, b: F.layer_norm(x, (n,), w, b), 2),
    "rms_norm": _by_row(lambda x, n, w: F.rms_norm(x, (n,), w), 1),
    "softmax": _by_row(lambda x, n: torch.softmax(x, -1)),
    "gelu": _by_row(lambda x, n: F.gelu(x)),
    "silu": _by_row(lambda x, n: F.silu(x)),
    "relu": _by_row(lambda x, n: F.relu(x)),
    "dropout": _by_row(lambda x, n: F.dropout(x, 0.1)),
    "add": _by_row(lambda x, n: x + 1.0),
}


def _shuffled(kind: str, rows: list[tuple[str, Settings]]) -> list[Case]:
    cases = [Case(kind, precision, settings) for precision, settings in rows]
    random.Random(kind).shuffle(cases)
    return cases


def cases() -> Iterator[Case]:
    """All cases. The kinds take turns, so that an interrupted run is balanced."""
    lists = [
        _shuffled("linear", [(p, dict(m=m, n=n, k=k)) for p in ("fp32", "tf32", "bf16", "fp16") for m in (512, 2048, 8192, 32768)
                             for n, k in ((768, 768), (3072, 768), (768, 3072), (4096, 4096), (11008, 4096), (4096, 11008),
                                          (8192, 8192), (32000, 4096), (50257, 768), (1000, 2048))]),
        _shuffled("attention", [("bf16", dict(batch=b, heads=h, key_heads=g, length=n, head_size=d, causal=c))
                                for b, n in ((32, 128), (32, 512), (16, 1024), (8, 2048), (4, 4096), (2, 8192), (1, 16384))
                                for h, g, d in ((12, 12, 64), (32, 32, 128), (32, 8, 128), (16, 16, 80), (8, 8, 256))
                                for c in (0, 1)]
                  + [(p, dict(batch=b, heads=12, key_heads=12, length=n, head_size=64, causal=c)) for p in ("fp32", "fp16")
                     for b, n in ((32, 128), (16, 512), (8, 1024), (4, 2048)) for c in (0, 1)]),
        _shuffled("convolution", [(p, dict(batch=b, channels_in=i, channels_out=o, size=s, kernel=k, stride=t, groups=g, nhwc=l))
                                  for p in ("fp32", "tf32", "bf16", "fp16") for l in (0, 1) for b in (32, 128)
                                  for i, o, s, k, t, g in (
                                      (3, 64, 224, 7, 2, 1), (64, 64, 56, 3, 1, 1), (256, 64, 56, 1, 1, 1),
                                      (128, 128, 28, 3, 1, 1), (512, 256, 28, 1, 2, 1), (512, 512, 7, 3, 1, 1),
                                      (96, 96, 56, 7, 1, 96), (144, 144, 56, 3, 1, 144), (384, 384, 14, 5, 1, 384),
                                      (256, 256, 28, 3, 1, 32), (512, 512, 14, 3, 1, 8), (128, 128, 56, 3, 1, 4),
                                      (448, 448, 28, 3, 1, 7), (160, 160, 28, 3, 1, 10))]),
        _shuffled("matmul", [(p, dict(count=c, m=m, n=n, k=k)) for p in ("fp32", "tf32", "bf16") for c in (96, 384)
                             for m, n, k in ((128, 128, 64), (512, 512, 64), (512, 64, 512), (1024, 128, 1024))]),
        _shuffled("batch_norm", [(p, dict(batch=b, channels=c, size=s, nhwc=l)) for p in ("fp32", "bf16") for l in (0, 1)
                                 for b in (32, 128) for c, s in ((64, 112), (256, 56), (512, 28), (2048, 7))]),
        _shuffled("cross_entropy", [(p, dict(rows=r, columns=c)) for p in ("fp32", "bf16") for r in (1024, 8192)
                                    for c in (1000, 32000, 50257, 128256)]),
        *(_shuffled(kind, [(p, dict(rows=r, columns=c)) for p in ("fp32", "bf16") for r, c in
                           ((8192, 768), (32768, 768), (8192, 4096), (32768, 4096), (131072, 1024), (4096, 16384))])
          for kind in ("layer_norm", "rms_norm", "softmax", "gelu", "silu", "relu", "dropout", "add")),
    ]
    for turn in range(max(map(len, lists))):
        yield from (rows[turn] for rows in lists if turn < len(rows))


def _median_us(run: Callable[[], Any], device: str) -> float:
    """Microseconds per call of `run`, which only launches kernels."""
    if torch.device(device).type != "cuda":
        def timed() -> float:
            start = time.perf_counter()
            run()
            return 1e6 * (time.perf_counter() - start)
        return statistics.median(timed() for _ in range(3))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):             # loads kernels, and lets libraries choose algorithms
        for _ in range(2):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    is_long = _span_us(run) > LONG_MICROSECONDS
    copies, replays = (1, LONG_REPLAYS) if is_long else (COPIES, REPLAYS)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(copies):
            run()
    graph.replay()
    return statistics.median(_span_us(graph.replay) / copies for _ in range(replays))


def _span_us(launch: Callable[[], Any]) -> float:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    launch()
    end.record()
    end.synchronize()
    return 1e3 * begin.elapsed_time(end)


def measure(case: Case, device: str) -> list[tuple[str, float]]:
    """(direction, microseconds) for the forward and the backward pass."""
    torch.set_float32_matmul_precision("high" if case.precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = case.precision == "tf32"
    function, inputs = MAKERS[case.operator](case, device)
    gradient = torch.randn_like(function(*inputs).detach())
    forward = _median_us(lambda: function(*inputs), device)
    both = _median_us(lambda: torch.autograd.grad(function(*inputs), inputs, gradient), device)
    return [("forward", forward), ("backward", both - forward)]


def run(out: Path, device: str, deadline: float, log: Callable[[str], None]) -> int:
    """Appends a row for each case and direction that `out` lacks. Returns the number of failures."""
    out.parent.mkdir(parents=True, exist_ok=True)
    known, failed = set(), 0
    if out.exists():
        with open(out, newline="", encoding="utf-8") as lines:
            known = {(row["operator"], row["precision"], row["settings"]) for row in csv.DictReader(lines)}
    name = torch.cuda.get_device_name(device) if torch.device(device).type == "cuda" else "cpu"
    with open(out, "a", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        if not file.tell():
            table.writerow(COLUMNS)
        for case in cases():
            if time.time() > deadline:
                break
            if (case.operator, case.precision, case.text) in known:
                continue
            try:
                timed = measure(case, device)
            except RuntimeError as fault:       # for example, out of memory
                log(f"{case.operator} {case.precision} {case.text}: {fault}"[:300])
                failed += 1
                continue
            # A gradient passed on as it is takes zero time: the difference is noise.
            table.writerows((name, f"torch {torch.__version__}", case.operator, case.precision, direction, case.text,
                             f"{microseconds:.4g}") for direction, microseconds in timed if microseconds > 0)
            file.flush()
    return failed
