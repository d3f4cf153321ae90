"""Parts and evaluation of whole-step models: operators' models on a GPU, costs fitted to steps, folds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from mdot_lab.operator_benchmarks import operator_fitting, measurements
from mdot_lab.operator_benchmarks.attention_model import AttentionModel
from mdot_lab.operator_benchmarks.collective_model import OPERATIONS, CollectiveModel
from mdot_lab.operator_benchmarks.gpu_rates import Rows
from mdot_lab.operator_benchmarks.matmul_model import MatmulModel


class Operators:
    """Models fitted to all measured operators, as functions of shapes on one GPU."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.gpu_model = "A100-SXM-80GB"
        self.matmuls, names = operator_fitting.fit(MatmulModel, measurements.matmuls(folder).at_most(rows))
        self.matmul_source = 1 + names.index("vidur")      # PyTorch's own layers in fp16
        self.collectives, names = operator_fitting.fit(CollectiveModel, measurements.collectives(folder).at_most(rows))
        self.collective_sources = {name: 1 + i for i, name in enumerate(names)}
        self.attention, names = operator_fitting.fit(AttentionModel, measurements.attention(folder).at_most(rows))
        self.attention_source = 1 + names.index("flash_attention")      # FlashAttention 2 on A100

    def _rows(self, columns: dict[str, np.ndarray], source: int) -> Rows:
        count = max(np.size(column) for column in columns.values())
        full = {name: np.broadcast_to(np.asarray(column, dtype=np.float64), count) for name, column in columns.items()}
        full = measurements.with_specs(full, np.array([self.gpu_model] * count), np.ones(count, dtype=bool))
        return {**{name: torch.tensor(np.array(column)[:, None], dtype=torch.float32) for name, column in full.items()},
                "source": torch.full((count,), source)}

    def matmul_us(self, m, n, k, count=1.0) -> np.ndarray:
        with torch.no_grad():
            return self.matmuls(self._rows({"m": m, "n": n, "k": k, "count": count}, self.matmul_source))[0][:, 0].numpy()

    def trained_us(self, m, n, k) -> np.ndarray:
        """[3, n]: forward, and both gradients."""
        return np.stack([self.matmul_us(m, n, k), self.matmul_us(m, k, n), self.matmul_us(k, n, m)])

    def collective_us(self, operation: str, gpus, message_bytes, link_gbps) -> np.ndarray:
        gpus = np.asarray(gpus, dtype=np.float64)
        columns = {"operation": OPERATIONS.index(operation), "gpus": np.maximum(gpus, 2), "message_bytes": message_bytes,
                   "is_reduced_twice": float(operation == "all_reduce"), "link_gbps": link_gbps, "adds_in_switch": 0.0}
        with torch.no_grad():
            microseconds = self.collectives(self._rows(columns, self.collective_sources[operation]))[0][:, 0].numpy()
        return np.where(gpus > 1, microseconds, 0.0)


    def attention_us(self, batch, heads, sequence, head_size, is_backward: bool) -> np.ndarray:
        """Causal fused attention."""
        columns = {"batch": batch, "heads": heads, "key_heads": heads, "queries": sequence, "keys": sequence,
                   "head_size": head_size, "is_causal": 1.0, "is_backward": float(is_backward)}
        with torch.no_grad():
            return self.attention(self._rows(columns, self.attention_source))[0][:, 0].numpy()


class Costs(nn.Module):
    """Logarithms: factors on operator times from the models, and milliseconds. Each family defines initial values and
    the step formula."""

    START: dict[str, float] = {}

    def __init__(self) -> None:
        super().__init__()
        self.log = nn.ParameterDict({name: nn.Parameter(torch.tensor(value)) for name, value in self.START.items()})

    def costs(self) -> dict[str, Tensor]:
        return {name: torch.exp(value) for name, value in self.log.items()}


SHARPNESS = 4.0


def longest(a: Tensor, b: Tensor) -> Tensor:
    """A smooth maximum."""
    larger = torch.maximum(a, b) + 1e-9
    return larger * ((a / larger) ** SHARPNESS + (b / larger) ** SHARPNESS) ** (1 / SHARPNESS)


STEPS, RATE, PRIOR = 600, 3e-2, 1e-4


def fit(make: type[Costs], f: dict[str, Tensor]) -> Costs:
    model = make()
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=STEPS)
    start = make()
    for _ in range(STEPS):
        error = torch.log(model(f)) - torch.log(f["step_ms"])
        far = sum((model.log[name] - start.log[name].detach()) ** 2 for name in model.log)
        loss = nn.functional.huber_loss(error, torch.zeros_like(error), delta=0.1) * 10 + PRIOR * far
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rate.step()
    return model.eval()


def _at(f: dict[str, Tensor], rows: np.ndarray) -> dict[str, Tensor]:
    return {name: value[torch.tensor(rows)] for name, value in f.items()}


def table(make: type[Costs], f: dict[str, Tensor], foldings: dict[str, np.ndarray]) -> str:
    """`f`: step features, including `step_ms`; `foldings`: for each title, the value that defines folds."""
    step_ms = f["step_ms"].numpy()
    lines = ["| left out | steps | mean | median | P90 | predicted / measured |", "| --- " * 6 + "|"]
    for title, value in foldings.items():
        every = np.empty(len(value))
        for fold in np.unique(value):
            test = np.flatnonzero(value == fold)
            every[test] = fit(make, _at(f, np.flatnonzero(value != fold)))(_at(f, test)).detach().numpy()
            lines.append(_line(f"{title} {fold}", every[test], step_ms[test]))
        lines.append(_line(f"**each {title} in turn**", every, step_ms))
    model = fit(make, f)
    lines.append(_line("nothing", model(f).detach().numpy(), step_ms))
    costs = ", ".join(f"{name} {value.exp().item():.2f}" for name, value in model.log.items())
    return "\n".join([*lines, "", f"Costs fitted to all steps: {costs}."])


def _line(title: str, predicted: np.ndarray, actual: np.ndarray) -> str:
    error = 100 * np.abs(predicted / actual - 1)
    return (f"| {title} | {len(error)} | {error.mean():.1f} | {np.median(error):.1f} | {np.percentile(error, 90):.1f} | "
            f"{np.median(predicted / actual):.2f} |")
