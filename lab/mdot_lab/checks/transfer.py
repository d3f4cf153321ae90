"""From card A to card B: Habitat's wave scaling of measured kernels and its perceptrons, mdot's own answer, and a combination.

    python3 -m mdot_lab.checks.transfer ../shared/data/neusight ../shared/data/operators [TABLE.csv]

NeuSight's labels have training steps in fp32 (forward and backward) with the time of each operator on four cards. Wave scaling
multiplies each operator's share of the step on A by (bandwidths)^g (multiprocessors x clocks)^(1 - g), with g from its FLOPs per
byte (mdot_lab.baselines.habitat); the step on A is the measured one. Habitat takes its perceptrons' time on B for matrix products
(mdot_lab.baselines.habitat_perceptrons) and scales the others by waves; the perceptrons know B's measured products, as published, or
no product of B. mdot predicts B without any measurement, or is corrected by
the whole step on A: A's step times mdot's ratio. A combination is a weighted mean of logarithms; its weight is fitted on the pairs
of cards that share neither card with the judged pair. It would ship only if it won there.
"""

from __future__ import annotations

import ast
import csv
import itertools
import json
import re
import sys
import time
from pathlib import Path

import numpy as np
import torch

import mdot
from mdot_lab.baselines import habitat_perceptrons
from mdot_lab.baselines.habitat_perceptrons import Perceptron

CARDS = {"NVIDIA_A100_80GB_PCIe": "A100-PCIE-80GB", "NVIDIA_H100_80GB_HBM3": "H100", "NVIDIA_L4": "L4",
         "Tesla_V100-PCIE-32GB": "V100-PCIE-32GB"}
METHODS = ("wave scaling", "mdot", "mdot, corrected by the step", "Habitat", "Habitat, products of B unknown")
MDOT, COMBINED = 1, (0, 2, 3)
"""Columns of METHODS; each of the latter is combined with mdot."""
COMBINATIONS = tuple(f"mdot with {METHODS[column]}" for column in COMBINED)
WEIGHTS = np.linspace(0, 1, 21)
LAYER = re.compile(r"\.(?:h|layers?)\.0\b")
DENSE = re.compile(r"lm_head|proj|fc\d|dense|query|key|value|linear|decoder$|pooler")


def _count(shape: list[int]) -> float:
    return float(np.prod(shape)) if shape else 0.0


def operators(path: Path, layers: int) -> np.ndarray:
    """[operators, 7]: milliseconds of both passes, FLOPs per byte, repetitions, and a product's batch, m, n and k, or 0."""
    csv.field_size_limit(1 << 30)
    rows = []
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            ms = float(row["fw_latency"] or 0) + float(row["bw_latency"] or 0)
            inputs = [shape for shape in ast.literal_eval(row["input_shapes"] or "[]") if isinstance(shape, list)]
            out = ast.literal_eval(row["output_shape"] or "()")
            if ms <= 0 or not inputs or not all(isinstance(extent, int) for extent in out):
                continue
            size, moved = _count(list(out)), sum(map(_count, inputs)) + _count(list(out))
            name, flops, product = row["target"], size, (0.0, 0.0, 0.0, 0.0)
            if re.search(r"addmm|matmul|bmm", name):
                flops = 2 * size * inputs[-1][-2]
                product = (_count(list(out[:-2])) or 1.0, float(out[-2]), float(out[-1]), float(inputs[-1][-2]))
            elif row["op"] == "call_module" and DENSE.search(name):
                flops = 2 * size * inputs[0][-1]
                moved += inputs[0][-1] * out[-1]
                product = (1.0, size / out[-1], float(out[-1]), float(inputs[0][-1]))
            repeated = layers if LAYER.search(f".{name}") or LAYER.search(row["meta"]) else 1
            rows.append((ms * repeated, flops / (4 * moved), repeated, *product))
    return np.array(rows)


def wave_factors(found: np.ndarray, have: mdot.GPU, wanted: mdot.GPU) -> np.ndarray:
    """Time of each operator on the wanted card over that on the other."""
    intensity = found[:, 1]
    balance = wanted.fp32_tflops * 1e3 / wanted.memory_gbps
    memory = np.where(intensity < balance, 1 - intensity / balance / 2, balance / np.maximum(intensity, balance) / 2)
    compute = have.sm_count / wanted.sm_count * have.boost_mhz / wanted.boost_mhz
    return (have.memory_gbps / wanted.memory_gbps) ** memory * compute ** (1 - memory)


def habitat_factor(found: np.ndarray, have: mdot.GPU, wanted: mdot.GPU, perceptron: Perceptron | None, card: str) -> float:
    """The step's time on the wanted card over that on the other."""
    ms = found[:, 0] * wave_factors(found, have, wanted)
    products = found[:, 3] > 0
    if perceptron is not None and products.any():
        ms[products] = found[products, 2] * perceptron.training_ms(found[products, 3:], card)
    return float(ms.sum() / found[:, 0].sum())


def own_ms(folder: Path, step: str, card: str) -> float:
    name, _, length, batch = step.split("-")
    job = mdot.Job.read(folder / "data" / "DLmodel_configs" / f"{name}.json", dims={"length": int(length)})
    why = mdot.explain(job, CARDS[card], int(batch), precision="fp32", attention="eager", torch="2.1")
    return why.step_ms - why.optimizer_ms


def main() -> int:
    folder, products = Path(sys.argv[1]), habitat_perceptrons.read(Path(sys.argv[2]))
    torch.set_num_threads(1)
    begin = time.process_time()
    known = habitat_perceptrons.Perceptron(products)
    seconds = time.process_time() - begin
    unknown = {name: habitat_perceptrons.Perceptron(products, left_out=name) for name in CARDS.values()}
    print(f"{len(products.ms)} products, perceptron fitted in {seconds:.0f} s; error on its inner fold {known.inner_error:.1%}\n")
    labels = {}
    for card in CARDS:
        for path in sorted((folder / "label" / card).glob("*-train-*.csv")):
            about = json.loads(path.with_suffix(".json").read_text())
            labels[card, path.stem] = (about["e2e_latency"], operators(path, about["num_layer"]), own_ms(folder, path.stem, card))
    rows = []   # cards, then logarithms of answer over truth, in the order of METHODS
    for (a, step), (b, other) in itertools.permutations(labels, 2):
        if step != other or a == b:
            continue
        (ms_a, found, own_a), (ms_b, _, own_b) = labels[a, step], labels[b, step]
        cards = mdot.gpu(CARDS[a]), mdot.gpu(CARDS[b])
        scaled, published, new = (ms_a * habitat_factor(found, *cards, each, CARDS[b]) for each in (None, known, unknown[CARDS[b]]))
        rows.append((a, b, *np.log(np.array([scaled, own_b, ms_a * own_b / own_a, published, new]) / ms_b)))
    print(f"| from | to | steps | {' | '.join((*METHODS, *COMBINATIONS))} | weights |\n" + "| --- " * 12 + "|")
    errors = []
    for a, b in itertools.permutations(CARDS, 2):
        own, rest = ([row[2:] for row in rows if test(row)] for test in (
            lambda row: row[:2] == (a, b), lambda row: not {row[0], row[1]} & {a, b}))
        judged, other, cells, weights = np.array(own), np.array(rest), [np.array(own)], []
        for column in COMBINED:
            tried = [np.abs(np.expm1(w * other[:, column] + (1 - w) * other[:, MDOT])).mean() for w in WEIGHTS]
            weights.append(WEIGHTS[int(np.argmin(tried))])
            cells.append((weights[-1] * judged[:, column] + (1 - weights[-1]) * judged[:, MDOT])[:, None])
        each = np.abs(np.expm1(np.concatenate(cells, axis=1)))
        errors.append(each)
        print(f"| {CARDS[a]} | {CARDS[b]} | {len(judged)} | " + " | ".join(f"{e:.1%}" for e in each.mean(0)) + f" | {', '.join(f'{weight:.2f}' for weight in weights)} |")
    print("| all | | " + f"{sum(map(len, errors))} | " + " | ".join(f"{e:.1%}" for e in np.concatenate(errors).mean(0)) + " | |")
    if len(sys.argv) > 3:
        every = np.concatenate(errors)
        with open(sys.argv[3], "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([("method", "steps", "mean", "median"), *(
                (name, len(every), f"{100 * each.mean():.1f}", f"{100 * np.median(each):.1f}")
                for name, each in zip((*METHODS, *COMBINATIONS), every.T))])
    print("| median | | | " + " | ".join(f"{e:.1%}" for e in np.median(np.concatenate(errors), 0)) + " | |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
