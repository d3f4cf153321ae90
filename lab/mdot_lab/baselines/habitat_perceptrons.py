"""Habitat's perceptrons: the time of a matrix product on a card, from its sizes and the card's figures.

Source: Habitat: A Runtime-Based Computational Performance Predictor for Deep Neural Network Training. USENIX ATC, 2021.

Published: kernels that differ between cards (convolutions, matrix products, recurrences) have a perceptron each, with eight hidden
layers, which was trained on operators measured on all cards, the wanted one among them. Inputs are the operator's sizes and the
card's memory, bandwidth, multiprocessors and peak rate. Here: products alone, because the judged networks are language models; one
perceptron with three hidden layers for plain and batched products, trained on NeuSight's forward products in fp32, with early
stopping on a tenth of the sizes. A backward pass is two products with exchanged sizes.
"""

from __future__ import annotations

import copy
import csv
import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import mdot
from mdot_lab.baselines import network_fitting
from mdot_lab.baselines.network_fitting import Scaled, tensor

CARDS = {"NVIDIA A100-PCIE-40GB": "A100-PCIE-40GB", "NVIDIA A100 80GB PCIe": "A100-PCIE-80GB", "NVIDIA H100 80GB HBM3": "H100",
         "NVIDIA L4": "L4", "Tesla V100-PCIE-32GB": "V100-PCIE-32GB", "Tesla T4": "T4", "Tesla P100-PCIE-16GB": "P100-PCIE-16GB"}
TWINS = {"A100-PCIE-40GB": "A100", "A100-PCIE-80GB": "A100"}
"""Cards that are left out together."""
WIDTH, BATCH, EPOCHS, PATIENCE, RATE, INNER_PART = 64, 1024, 60, 6, 3e-3, 0.1


@dataclass(frozen=True)
class Products:
    sizes: np.ndarray   # [p, 4]: batch, m, n, k
    card: np.ndarray    # [p] text
    ms: np.ndarray      # [p]


def die(card: str) -> str:
    return TWINS.get(card, card)


def read(folder: Path) -> Products:
    """`folder` has gemm.csv.gz and neusight_ops/bmm_fp32.csv.gz."""
    found: list[tuple[list[float], str, float]] = []
    with gzip.open(folder / "gemm.csv.gz", "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["dtype"] == "fp32" and row["source"].startswith("NeuSight") and row["gpu"] in CARDS:
                found.append(([1, *(float(row[name]) for name in "mnk")], CARDS[row["gpu"]], float(row["microseconds"]) / 1e3))
    with gzip.open(folder / "neusight_ops" / "bmm_fp32.csv.gz", "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["Device"] in CARDS:
                found.append(([float(row[name]) for name in "BMNK"], CARDS[row["Device"]], float(row["microseconds"]) / 1e3))
    sizes, card, ms = zip(*found)
    return Products(np.array(sizes), np.array(card), np.array(ms))


def _inputs(sizes: np.ndarray, card: np.ndarray) -> np.ndarray:
    known = {name: mdot.gpu(str(name)) for name in np.unique(card)}
    figures = {name: np.log([gpu.memory_gbps, gpu.sm_count, gpu.boost_mhz, gpu.fp32_tflops]) for name, gpu in known.items()}
    logs = np.log(sizes)
    return np.column_stack([logs, logs.sum(1), np.array([figures[name] for name in card])])


class Perceptron:
    """Fitted to products; `left_out` is a card whose measurements, and its twins', are not used."""

    def __init__(self, products: Products, left_out: str = "", seed: int = 0) -> None:
        used = np.array([not left_out or die(name) != die(left_out) for name in products.card])
        random = np.random.default_rng(seed)
        shapes, of_row = np.unique(products.sizes[used], axis=0, return_inverse=True)
        inner = (random.random(len(shapes)) < INNER_PART)[of_row.reshape(-1)]
        x, y = _inputs(products.sizes[used], products.card[used]), tensor(np.log(products.ms[used]))
        torch.manual_seed(seed)
        self.scaled = Scaled.of(x[~inner])
        self.model = network_fitting.perceptron(x.shape[1], WIDTH, WIDTH, WIDTH, 1)
        self.middle, self.inner_error, x_all = y[~inner].mean(), np.inf, tensor(x)
        self._fit(x_all[~inner], y[~inner], x_all[inner], y[inner])

    def _answer(self, x: Tensor) -> Tensor:
        return self.middle + self.model(self.scaled(x))[:, 0]

    def _fit(self, x: Tensor, y: Tensor, inner_x: Tensor, inner_y: Tensor) -> None:
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=RATE)
        best, since = copy.deepcopy(self.model.state_dict()), 0
        for _ in range(EPOCHS):
            for rows in torch.randperm(len(x)).split(BATCH):
                optimizer.zero_grad(set_to_none=True)
                (self._answer(x[rows]) - y[rows]).abs().mean().backward()
                optimizer.step()
            with torch.no_grad():
                error = float((self._answer(inner_x) - inner_y).abs().mean())
            since = 0 if error < self.inner_error else since + 1
            if error < self.inner_error:
                self.inner_error, best = error, copy.deepcopy(self.model.state_dict())
            if since == PATIENCE // 2:
                optimizer.param_groups[0]["lr"] /= 2
            if since == PATIENCE:
                break
        self.model.load_state_dict(best)

    @torch.no_grad()
    def ms(self, sizes: np.ndarray, card: str) -> np.ndarray:
        """Milliseconds of products of these sizes [p, 4] on the card."""
        return np.exp(self._answer(tensor(_inputs(sizes, np.full(len(sizes), card)))).numpy())

    def training_ms(self, sizes: np.ndarray, card: str) -> np.ndarray:
        """Forward, and the gradients of both operands."""
        exchanged = (sizes, sizes[:, [0, 1, 3, 2]], sizes[:, [0, 3, 2, 1]])
        return np.sum([self.ms(each, card) for each in exchanged], axis=0)
