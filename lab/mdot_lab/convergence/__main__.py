"""Judges `mdot converge` on measured curves.

    python3 -m mdot_lab.convergence losses.csv ../../shared/data/measured-2026/pollux_gradient_noise.csv \\
        --mdot ../build/release/cli/mdot

The first table has the columns curve, step and loss (mdot_lab.convergence.trainings writes one); the second is Pollux',
whose metrics become losses (1 - accuracy, 100 - F1). Each curve is cut at 30, 50 and 70 %. Targets are the losses that
the curve reaches half-way between cut and end, and at the end; the truth is the first step at which the mean of the last
5 % of the points is there. Errors are factors of steps less 1; "never" counts as infinite."""

from __future__ import annotations

import argparse
import collections
import csv
import json
import math
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

Points = list[tuple[float, float]]
Answer = tuple[float, float, float]  # median, lower and upper steps
ACCURACIES = {"cifar10": 1, "imagenet": 1, "ncf": 1, "bert": 100}
FEWEST = 30


def read(paths: list[Path]) -> dict[str, dict[str, Points]]:
    curves: dict[str, dict[str, Points]] = {}
    for path in paths:
        group: dict[str, Points] = collections.defaultdict(list)
        with path.open() as file:
            for row in csv.DictReader(line for line in file if not line.startswith("#")):
                if "curve" in row:
                    group[row["curve"]].append((float(row["step"]), float(row["loss"])))
                else:
                    name, metric = row["application"], float(row["metric"])
                    loss = ACCURACIES[name] - metric if name in ACCURACIES else metric
                    group[f"{name} {row['batch']}"].append((float(row["iteration"]), loss))
        curves[path.stem] = {name: points for name, points in group.items() if len(points) >= FEWEST}
    return curves


def trailing_means(losses: list[float], count: int) -> list[float]:
    return [statistics.fmean(losses[max(0, i + 1 - count) : i + 1]) for i in range(len(losses))]


def questions(points: Points, share: float) -> list[tuple[Points, float, float]]:
    """The curve's beginning, a target that it has not reached, and the step at which it will."""
    smooth = trailing_means([loss for _, loss in points], max(1, len(points) // 20))
    cut, found = int(share * len(points)), []
    for end in (int((1 + share) / 2 * len(points)), len(points)):
        target = min(smooth[:end])
        if target < min(smooth[:cut]):
            found.append((points[:cut], target, points[smooth.index(target)][0]))
    return found


def asked(mdot: Path) -> Callable[[Points, float], Answer]:
    def ask(points: Points, target: float) -> Answer:
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write("step,loss\n" + "".join(f"{step:.17g},{loss:.17g}\n" for step, loss in points))
            file.flush()
            run = subprocess.run([str(mdot), "converge", file.name, "--target", f"{target:.17g}", "--json"],
                                 capture_output=True, text=True, check=True)  # fmt: skip
        answer = json.loads(run.stdout)
        median, lower, upper = (math.inf if answer[key] is None else float(answer[key])
                                for key in ("steps", "lower_steps", "upper_steps"))  # fmt: skip
        return median, lower, upper

    return ask


def print_row(title: str, curves: dict[str, Points], ask: Callable[[Points, float], Answer]) -> None:
    for share in (0.3, 0.5, 0.7):
        errors, inside, widths = [], 0, []
        for points in curves.values():
            for known, target, truth in questions(points, share):
                median, lower, upper = ask(known, target)
                errors.append(math.exp(abs(math.log(median / truth))) - 1 if math.isfinite(median) else math.inf)
                inside += lower <= truth * 1.0001 and truth <= upper * 1.0001
                widths.append(upper / lower)
        never = sum(math.isinf(error) for error in errors)
        print(f"| {title} | {share:.0%} | {len(errors)} | {statistics.median(errors):.0%} | {inside / len(errors):.0%} | "
              f"{statistics.median(widths):.1f} | {never / len(errors):.0%} |")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--mdot", type=Path, required=True)
    arguments = parser.parse_args()
    print("| curves | known | questions | median error | inside | upper over lower | never |\n|" + " --- |" * 7)
    for name, curves in read(arguments.tables).items():
        print_row(name, curves, asked(arguments.mdot))


if __name__ == "__main__":
    main()
