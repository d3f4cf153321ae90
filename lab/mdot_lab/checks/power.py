"""Compares the time and the power of ResNet-50 under power limits with Zeus' measurements.

    python3 -m mdot_lab.checks.power zeus_power.csv --mdot ../../build/release/cli/mdot \
        --job ../../examples/jobs/resnet50.onnx

The table has the columns gpu, network, batch, power_limit_w, average_power_w and step_ms_if_size_known, and may begin with
lines of comments. Zeus' epochs include the data loader. Therefore the slowdown relative to the highest limit is compared,
beside the time itself. The training is fp32; the reported errors are relative, in percent.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import subprocess
from pathlib import Path

GPUS = {"V100": "V100-PCIe-32GB", "P100": "P100-PCIe-16GB", "Quadro RTX 6000": "RTX-6000", "A40": "A40"}


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as stream:
        table = csv.DictReader(line for line in stream if not line.startswith("#"))
        return [row for row in table if row["network"] == "resnet50" and row["gpu"] in GPUS]


def predict(mdot: Path, job: Path, row: dict[str, str]) -> dict[str, float]:
    command = [str(mdot), "predict", str(job), "--gpu", GPUS[row["gpu"]], "--batch", row["batch"], "--precision", "fp32",
               "--power-limit", row["power_limit_w"], "--json"]  # fmt: skip
    asked = subprocess.run(command, capture_output=True, text=True, check=True)
    answer: dict[str, float] = json.loads(asked.stdout)["predictions"][0]
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--mdot", type=Path, required=True)
    parser.add_argument("--job", type=Path, required=True)
    parsed = parser.parse_args()
    measured = rows(parsed.table)
    print(f"{'GPU':<16} {'rows':>4} {'slowdown':>9} {'worst':>7} {'power':>6} {'worst':>7} {'energy':>7} {'step':>6}")
    for gpu in sorted({row["gpu"] for row in measured}):
        own = [row for row in measured if row["gpu"] == gpu]
        answers = [predict(parsed.mdot, parsed.job, row) for row in own]
        highest = max(float(row["power_limit_w"]) for row in own)
        base = {row["batch"]: (answer["step_ms"], float(row["step_ms_if_size_known"]))
                for row, answer in zip(own, answers) if float(row["power_limit_w"]) == highest}  # fmt: skip
        slower, power, energy, step = [], [], [], []
        for row, answer in zip(own, answers):
            ms, watts = float(row["step_ms_if_size_known"]), float(row["average_power_w"])
            predicted_base, measured_base = base[row["batch"]]
            slower.append(answer["step_ms"] / predicted_base / (ms / measured_base) - 1)
            power.append(answer["average_watts"] / watts - 1)
            energy.append(answer["energy_joules"] / (watts * ms / 1000) - 1)
            step.append(answer["step_ms"] / ms - 1)
        mean = [100 * statistics.mean(map(abs, errors)) for errors in (slower, power, energy, step)]
        worst = [100 * max(errors, key=abs) for errors in (slower, power)]
        print(f"{gpu:<16} {len(own):>4} {mean[0]:>9.1f} {worst[0]:>+7.1f} {mean[1]:>6.1f} {worst[1]:>+7.1f} {mean[2]:>7.1f} "
              f"{mean[3]:>6.1f}")  # fmt: skip


if __name__ == "__main__":
    main()
