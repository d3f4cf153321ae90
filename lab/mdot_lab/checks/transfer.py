"""From card A to card B: Habitat's wave scaling of measured kernels, mdot's own answer, and their combination.

    python3 -m mdot_lab.checks.transfer ../shared/data/neusight

NeuSight's labels have training steps in fp32 (forward and backward) with the time of each operator on four cards. Wave scaling
multiplies each operator's share of the step on A by (bandwidths)^g (multiprocessors x clocks)^(1 - g), with g from its FLOPs per
byte (mdot_lab.baselines.habitat); the step on A is the measured one. mdot predicts B without any measurement, or is corrected by
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
from pathlib import Path

import numpy as np

import mdot

CARDS = {"NVIDIA_A100_80GB_PCIe": "A100-PCIE-80GB", "NVIDIA_H100_80GB_HBM3": "H100", "NVIDIA_L4": "L4",
         "Tesla_V100-PCIE-32GB": "V100-PCIE-32GB"}
WEIGHTS = np.linspace(0, 1, 21)
LAYER = re.compile(r"\.(?:h|layers?)\.0\b")
DENSE = re.compile(r"lm_head|proj|fc\d|dense|query|key|value|linear|decoder$|pooler")


def _count(shape: list[int]) -> float:
    return float(np.prod(shape)) if shape else 0.0


def operators(path: Path, layers: int) -> np.ndarray:
    """[operators, 2]: milliseconds of both passes over all layers, and FLOPs per byte."""
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
            name, flops = row["target"], size
            if re.search(r"addmm|matmul|bmm", name):
                flops = 2 * size * inputs[-1][-2]
            elif row["op"] == "call_module" and DENSE.search(name):
                flops = 2 * size * inputs[0][-1]
                moved += inputs[0][-1] * out[-1]
            rows.append((ms * (layers if LAYER.search(f".{name}") or LAYER.search(row["meta"]) else 1), flops / (4 * moved)))
    return np.array(rows)


def wave_factor(found: np.ndarray, have: mdot.GPU, wanted: mdot.GPU) -> float:
    """Time of these operators on the wanted card over that on the other."""
    ms, intensity = found.T
    balance = wanted.fp32_tflops * 1e3 / wanted.memory_gbps
    memory = np.where(intensity < balance, 1 - intensity / balance / 2, balance / np.maximum(intensity, balance) / 2)
    compute = have.sm_count / wanted.sm_count * have.boost_mhz / wanted.boost_mhz
    return float((ms * (have.memory_gbps / wanted.memory_gbps) ** memory * compute ** (1 - memory)).sum() / ms.sum())


def own_ms(folder: Path, step: str, card: str) -> float:
    name, _, length, batch = step.split("-")
    job = mdot.Job.read(folder / "data" / "DLmodel_configs" / f"{name}.json", dims={"length": int(length)})
    why = mdot.explain(job, CARDS[card], int(batch), precision="fp32", attention="eager", torch="2.1")
    return why.step_ms - why.optimizer_ms


def main() -> int:
    folder = Path(sys.argv[1])
    labels = {}
    for card in CARDS:
        for path in sorted((folder / "label" / card).glob("*-train-*.csv")):
            about = json.loads(path.with_suffix(".json").read_text())
            labels[card, path.stem] = (about["e2e_latency"], operators(path, about["num_layer"]), own_ms(folder, path.stem, card))
    rows = []   # cards, then logarithms of answer over truth: wave scaling, mdot, mdot corrected by the whole step
    for (a, step), (b, other) in itertools.permutations(labels, 2):
        if step != other or a == b:
            continue
        (ms_a, found, own_a), (ms_b, _, own_b) = labels[a, step], labels[b, step]
        scaled = ms_a * wave_factor(found, mdot.gpu(CARDS[a]), mdot.gpu(CARDS[b]))
        rows.append((a, b, *np.log(np.array([scaled, own_b, ms_a * own_b / own_a]) / ms_b)))
    print("| from | to | steps | wave scaling | mdot | mdot, corrected by the step | combination | weight of wave scaling |\n" + "| --- " * 8 + "|")
    errors = []
    for a, b in itertools.permutations(CARDS, 2):
        own, rest = ([row[2:] for row in rows if test(row)] for test in (
            lambda row: row[:2] == (a, b), lambda row: not {row[0], row[1]} & {a, b}))
        judged, other = np.array(own), np.array(rest)
        tried = [np.abs(np.expm1(w * other[:, 0] + (1 - w) * other[:, 1])).mean() for w in WEIGHTS]
        weight = WEIGHTS[int(np.argmin(tried))]
        combined = weight * judged[:, 0] + (1 - weight) * judged[:, 1]
        each = np.abs(np.expm1(np.column_stack([judged, combined])))
        errors.append(each)
        print(f"| {CARDS[a]} | {CARDS[b]} | {len(judged)} | " + " | ".join(f"{e:.1%}" for e in each.mean(0)) + f" | {weight:.2f} |")
    print("| all | | " + f"{sum(map(len, errors))} | " + " | ".join(f"{e:.1%}" for e in np.concatenate(errors).mean(0)) + " | |")
    print("| median | | | " + " | ".join(f"{e:.1%}" for e in np.median(np.concatenate(errors), 0)) + " | |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
