"""The figures of baselines/README.md are those of the result tables, and names say where a paper was followed in part."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np

LAB = Path(__file__).resolve().parents[1]
PAGE = (LAB / "mdot_lab" / "baselines" / "README.md").read_text(encoding="utf-8")
COLUMNS = {"after Horus": "horus", "DNNAbacus": "dnnabacus", "boosted trees, after SEER": "seer", "PerfNet": "perfnet", "NeuSight": "neusight",
           "boosted trees on sums by kind and counts by type": "trees", "ETS": "ets", "DNNPerf": "dnnperf", "Driple": "driple",
           "MDOT as published": "mdot_as_published", "Habitat": "habitat", "the shipped predictor": "mdot"}
SPLITS = ("random", "families", "software", "gpus")


def rows_below(title: str) -> list[list[str]]:
    """Cells of the first table below a title."""
    found = re.search(r"^\|.*?(?=^[^|])", PAGE.partition(title)[2], re.MULTILINE | re.DOTALL)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found[0].splitlines()[2:]]


def read(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_results_are_those_of_the_held_out_predictions() -> None:
    shown = {cells[0]: cells[1:] for cells in rows_below("## Results")}
    for split, column in zip(SPLITS, range(4), strict=True):
        rows = read(LAB.parent / "weights" / "results" / f"{split}.csv")
        for name, key in COLUMNS.items():
            if key not in rows[0]:
                assert shown[name][column] == "", name
                continue
            errors = [100 * abs(float(row[key]) / float(row["step_ms"]) - 1) for row in rows]
            assert shown[name][column].startswith(f"{np.mean(errors):.1f} / {np.median(errors):.1f}"), (name, split)


def test_systems_whose_paper_was_followed_in_part_are_called_after_it() -> None:
    names = " ".join(cells[0] for cells in rows_below("## Results"))
    for cells in rows_below("Each baseline is one file"):
        system = re.match(r"after (\w+)", cells[2])
        if system and cells[0] not in ("distributed.py", "pei.py", "li.py"):
            assert f"after {system[1]}" in names, cells[0]
    assert "after Pei et al." in names and "after Li, Sun and Jog" in names


def _by_system(field: str, split: str) -> dict[str, float]:
    """A figure's mean over seeds with every fold, weighted by labels; squares add up for RMSE."""
    rows = [row for row in read(LAB / "notes" / "results" / "trials.csv") if row["split"] == split and row["baseline"] != "mdot"]
    folds, power = len({row["fold"] for row in rows if row["fold"] != "all"}) or 1, 2 if field == "rmse_ms" else 1
    runs: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for row in rows:
        runs.setdefault((row["baseline"], row["seed"]), []).append((int(row["labels"]), float(row[field])))
    found: dict[str, list[float]] = {}
    for (system, _), parts in runs.items():
        if len(parts) == folds or len(parts) == 1:
            found.setdefault(system, []).append(float(np.average([x**power for _, x in parts], weights=[n for n, _ in parts]) ** (1 / power)))
    return {system: float(np.mean(values)) for system, values in found.items()}


def test_the_verdict_on_the_published_claim_follows_from_the_trials() -> None:
    above, ranks = {"mae_ms": [], "rmse_ms": []}, []
    for split in SPLITS:
        for field, list_of in above.items():
            systems = _by_system(field, split)
            own = systems.pop("mdot as published")
            list_of.append(round(100 * (own / min(systems.values()) - 1)))
            if field == "mae_ms":
                ranks.append(1 + sum(value < own for value in systems.values()))
    mae, rmse = (f"{min(values)} to {max(values)} %" for values in above.values())
    verdict = " ".join(PAGE.split())
    assert f"its MAE is {mae} and its RMSE {rmse} above" in verdict, (mae, rmse)
    assert f"it ranks {min(ranks)}th to {max(ranks)}th by MAE" in verdict, ranks
