"""One table by class of performance model, from the measured tables: `python3 -m mdot_lab.baselines classes`."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np


SPLITS = {"repeat": "known job", "random": "new networks", "families": "new families", "software": "newer software",
          "gpus": "new card"}
MDOT = "mdot"
"""Its rows are `weights/results`' (trials.py)."""
MEASURED, METADATA, GRAPH, OPERATORS = "measured", "metadata", "graph", "operators"


@dataclass(frozen=True)
class System:
    key: str        # in trials.csv
    name: str
    of: str
    stated: str     # the survey's figure, in percent


SYSTEMS = (
    System("profile", "n × mean measured step (Chronus, Hydra, AlloX)", MEASURED, "5"),
    System("horus", "after Horus", GRAPH, "11.3"),
    System("dnnabacus", "DNNAbacus, boosted trees", GRAPH, "7.1"),
    System("dnnabacus searched", "DNNAbacus, searched model", GRAPH, "7.1"),
    System("dnnperf", "DNNPerf", GRAPH, "12.8"),
    System("driple", "Driple", GRAPH, "8"),
    System("trees", "trees, on sums by kind and counts by type (ours)", GRAPH, ""),
    System("habitat", "Habitat, wave scaling alone", OPERATORS, "10.8"),
    System("seer analytic", "after SEER, three classes of kernels", OPERATORS, "12.1"),
    System("seer", "after SEER, boosted trees", OPERATORS, ""),
    System("perfnet", "PerfNet", OPERATORS, "13.1"),
    System("perfnet 2", "PerfNetV2", OPERATORS, "13.1"),
    System("neusight", "NeuSight", OPERATORS, ""),
    System("ets", "ETS", OPERATORS, ""),
    System("li", "after Li et al. (2023)", OPERATORS, ""),
    System("pei", "after Pei et al. (2019)", OPERATORS, ""),
    System("mdot as published", "MDOT as published", OPERATORS, ""),
    System(MDOT, "mdot, the shipped form", OPERATORS, ""),
)
WITHOUT_CHANCE = ("profile", "habitat", "seer analytic", "li", "pei")
COST_OF_USE = {
    MEASURED: ("some steps of the job itself on the card", "no: each job is measured first", "no: each card is measured"),
    METADATA: ("none: the request's text and a history", "yes, from their users' and names' earlier jobs", "only as a name"),
    GRAPH: ("the graph, and labels of whole steps", "yes", "only with labels on like cards"),
    OPERATORS: ("the graph, and labels of steps or kernels", "yes", "by the card's figures"),
}


def read(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _weighted(rows: list[dict[str, str]], field: str) -> float:
    labels = np.array([int(row["labels"]) for row in rows])
    return float((np.array([float(row[field]) for row in rows]) * labels).sum() / labels.sum())


def _whole(rows: list[dict[str, str]], key: str, split: str) -> dict[str, list[dict[str, str]]]:
    """Rows by seed, of seeds with every fold of the split."""
    folds = {row["fold"] for row in rows if row["split"] == split and row["fold"] != "all"} or {"all"}
    seeds: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        if row["baseline"] == key and row["split"] == split:
            seeds.setdefault(row["seed"], []).append(row)
    return {seed: found for seed, found in seeds.items() if len(found) == len(folds) or found[0]["fold"] == "all"}


def _cell(rows: list[dict[str, str]], key: str, split: str) -> str:
    """Mean error, its range over seeds, and the median error."""
    seeds = _whole(rows, key, split)
    if not seeds:
        return "–"
    means = [_weighted(found, "mean") for found in seeds.values()]
    medians = [_weighted(found, "median") for found in seeds.values()]
    spread = f" ({min(means):.1f} to {max(means):.1f})" if len(seeds) > 1 else ""
    return f"{np.mean(means):.1f}{spread} / {np.mean(medians):.1f}"


def _mean(rows: list[dict[str, str]], key: str, split: str) -> float:
    seeds = _whole(rows, key, split)
    return float(np.mean([_weighted(found, "mean") for found in seeds.values()])) if seeds else np.inf


def _seeds(rows: list[dict[str, str]], key: str) -> str:
    """The seeds of each split that the system answers."""
    if key in WITHOUT_CHANCE:
        return "no chance"
    counts = [count for split in SPLITS if (count := len(_whole(rows, key, split)))]
    return str(counts[0]) if len(set(counts)) == 1 else ", ".join(map(str, counts))


def _costs(rows: list[dict[str, str]], key: str) -> tuple[float, float]:
    """Median seconds of a fit, and microseconds of an answer."""
    own = [row for row in rows if row["baseline"] == key]
    return tuple(float(np.median([float(row[name]) for row in own])) for name in ("fit_s", "answer_us"))


def _number(value: float) -> str:
    return "–" if not np.isfinite(value) else f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def systems_table(rows: list[dict[str, str]]) -> list[str]:
    lines = ["| system | class | stated | " + " | ".join(SPLITS.values()) + " | seeds | fit, s | answer, µs |",
             "| --- " * (6 + len(SPLITS)) + "|"]
    for system in SYSTEMS:
        if any(row["baseline"] == system.key for row in rows):
            fit, answer = _costs(rows, system.key)
            cells = [_cell(rows, system.key, split) for split in SPLITS]
            words = (system.name, system.of, system.stated or "–", *cells, _seeds(rows, system.key), _number(fit), _number(answer))
            lines.append(f"| {' | '.join(words)} |")
    return lines


def classes_table(rows: list[dict[str, str]], durations: list[dict[str, str]]) -> list[str]:
    lines = ["| class | cost of use | new jobs | new cards | " + " | ".join(f"best: {name}" for name in SPLITS.values()) + " | fit, s |",
             "| --- " * (5 + len(SPLITS)) + "|"]
    for of, words in COST_OF_USE.items():
        chosen = [system for system in SYSTEMS if system.of == of and system.key != MDOT]
        cells = []
        for split in SPLITS:
            best = min(chosen, key=lambda system: _mean(rows, system.key, split), default=None)
            error = _mean(rows, best.key, split) if best else np.inf
            cells.append(f"{error:.1f} {best.name.partition(',')[0].partition(' (')[0]}" if best and np.isfinite(error) else "–")
        run = (_costs(rows, system.key) for system in chosen if any(row["baseline"] == system.key for row in rows))
        fits = [fit for fit, _ in run if np.isfinite(fit)]
        spread = f"{_number(min(fits))} to {_number(max(fits))}" if fits else "–"
        if of == METADATA and durations:
            spread = f"{min(float(row['fit, s']) for row in durations):.0f} to {max(float(row['fit, s']) for row in durations):.0f}"
        lines.append(f"| {of} | {' | '.join(words)} | {' | '.join(cells)} | {spread} |")
    return lines


def plain_table(rows: list[dict[str, str]]) -> list[str]:
    lines = [f"| {' | '.join(row.values())} |" for row in rows]
    return [f"| {' | '.join(rows[0])} |", "| --- " * len(rows[0]) + "|", *lines]


TEXT = """# Performance models by class

`python3 -m mdot_lab.baselines classes` writes this page from `notes/results`, and tests/test_model_classes.py compares
them. mdot's rows are those of `weights/results` at the time of the others. The classes are those of the survey: Yang,
Wu, Wu and Zhang, Survey on task scheduling of deep learning training based on performance modeling, Journal of Software
2025, 36(4):1570–1589. MDOT as published is Chen et al., Computer Science 2026, 53(5):129–136, doi
10.11896/jsjkx.250900001. "After X" marks a form that differs from the paper's, or whose paper was not available
as a whole. Labels are whole steps, so that PerfNet, NeuSight and ETS learn their sum over operators.

## The four classes

Mean relative error in % of the best system of each class, on equal folds; the next table has all systems.

{classes}

A measured profile is best for a job that ran before on the same card and software, and has no answer otherwise.
Metadata give durations, not steps, so they stand in a table of their own. New cards separate the systems most.

## Systems, on equal labels and folds

`python3 -m mdot_lab.baselines trials`: eager training steps of timm's networks on an RTX 3090 and of torchvision's on
six cards. Mean error, in brackets its range over seeds, / median error, in %; `stated` is the survey's figure on each
paper's own networks. Settings were tuned on inner folds (README.md); PerfNetV2 has the first that were tried, and MDOT
as published the better of two. Networks stop early on an inner fold. A dash means not run or no answer. `seeds` are runs
with other inner folds, initial weights and samples, in the order of the columns where they differ.

{systems}

New networks are random fold 1, families three groups, software PyTorch 1.12 after 1.11, and the card an A100. Fitting
is processor time on one core (Zen 5, or Xeon at 2.5 GHz), the median over folds; the answer is one step's, in Python,
of a network that nobody read before. Networks stop soon here (patience 4, three halvings); MDOT as published gains from
more (README.md). On the new card, perceptrons for the GPU's figures depend on the seed: NeuSight and ETS extrapolate
without bound. The same command resumes from the table, and runs the seeds below three.

## Peak memory

`python3 -m mdot_lab.baselines.dnnabacus_memory`: DNNAbacus' second target with a searched model, on left-out networks.
`common` are rows of memory_networks.csv, which mdot's memory model was developed on.

{memory}

## Transfer

Driple (`python3 -m mdot_lab.baselines.driple_transfer`): from training on an RTX 3090 to another setting, mean over
seeds.

{driple}

Between cards with measured kernels (`python3 -m mdot_lab.checks.transfer`): twelve pairs of NVIDIA cards, three
language models in fp32. Habitat's perceptrons answer matrix products, and waves scale the rest. "mdot with X" is a
weighted mean of logarithms, with weights from pairs of the two other cards. No combination wins on all twelve pairs
(they lose on 4, 1 and 2), so none ships.

{transfer}

## Several GPUs

`python3 -m mdot_lab.baselines.distributed`: one application at a time on Pollux's measured placements of T4. Mean and
median error in % on left-out placements, and on three and more nodes after at most two.

{distributed}

## Two jobs on one GPU

`python3 -m mdot_lab.interference --rivals`: error of the slowdown in %, and right decisions whether packing pays
(`clear`: where it changes the work by more than 5 %). {interference_note}

{interference}

## One job on a MIG slice

`python3 -m mdot_lab.interference.slices`: error in % of a step on a slice over that on the whole A100, networks left
out (MISO's eight).

{slices}

## Durations from metadata

`python3 -m mdot_lab.durations --table`: absolute errors of log durations, fitted on the first four tenths of a trace.
MLaaS' CART reads metadata alone; Helios' boosted trees here correct the history's answer.

{durations}

## Every row of the survey's tables 1 to 4, and of MDOT's evaluation

Mean / median error in %, unless a cell says otherwise; `stated` is the survey's figure on each paper's own jobs. "After
X" is explained above. A dash in `seeds` means a single answer without chance.

{survey}
"""


def _find(rows: list[dict[str, str]], wanted: dict[str, str], *names: str) -> str:
    """The named figures of the rows with these values, averaged over seeds."""
    found = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    return " / ".join(f"{np.mean([float(row[name]) for row in found]):.1f}" for name in names)


def _survey(trials: list[dict[str, str]], results: Path) -> list[str]:
    """What stands for each row: class, system, form here, error, stated error, seeds, command, and what is missing."""
    tables = {name: read(results / f"{name}.csv") for name in ("distributed", "durations", "interference_rivals", "driple_transfer",
                                                              "habitat_transfer", "dnnabacus_memory")}

    def steps(key: str, split: str = "random") -> str:
        return f"{SPLITS[split]} {_cell(trials, key, split)}"

    def several(method: str) -> str:
        both = (_find(tables["distributed"], {"method": method, "split": split}, "mean", "median") for split in ("placements", "nodes"))
        return "{} new placements, {} more nodes".format(*both)

    def durations(estimate: str) -> str:
        logs = (row["median error"] for row in tables["durations"] if row["estimate"] == estimate)
        return "median log error {} Philly, {} ITP".format(*logs)

    def pairs(method: str) -> str:
        return ", ".join(f"{split} {_find(tables['interference_rivals'], {'split': split, 'method': method}, 'mean', 'median')}"
                         for split in ("pairs", "networks", "cards"))

    trial, places, jobs, beside = ("trials", "distributed", "mdot_lab.durations --table", "mdot_lab.interference --rivals")
    forest, perceptron = "after Yeung et al. and Horus: XGBoost", "after Harmony: perceptron"
    helios = "after Helios: trees, fitted on its first jobs"
    memory = _find(tables["dnnabacus_memory"], {}, "mean", "median")
    moved = _find(tables["driple_transfer"], {"networks": "10", "target": "training, A100", "way": "transferred"}, "mean", "median")
    transfer = _find(tables["habitat_transfer"], {"method": "Habitat"}, "mean", "median")
    rows = (
        ("Chronus, Hydra, AlloX", "n × mean measured step", steps("profile", "repeat"), "5", "profile", trial, "no answer for other jobs"),
        ("Cynthia", "`mdot predict --parallel ps=K --sync bsp` or `asp`", "not compared", "1.6 to 6.3", "", "tests/runtime/perf",
         "its text was not available; laws of servers and of asp hold"),
        ("Synergy", "`--loader-rate --cpu-rate --cpus`, `mdot.loader_rates`", "not compared", "3", "", "tests/runtime/perf",
         "no public table of loaders"),
        ("Optimus, speed", "its regression", several("Optimus"), "9", "", places, ""),
        ("Optimus and MLFS, convergence", "`mdot converge`", "median 22, 23 and 18 from 30, 50 and 70 % of a curve; 90, 78 and 92 % inside", "9",
         "", "mdot_lab.convergence", "intervals without an upper end in most cases"),
        ("Shockwave", "`mdot.trajectory`", "not compared", "13", "", "tests/bindings", "no public labels of its regression of phases"),
        ("Daydream", "`mdot explain-trace`; what-ifs are options", "not compared", "2.8", "", "tests/bindings", "no measured what-ifs of one trace"),
        ("Proteus", "`mdot plan`", "orders of published layouts", "4.3", "", "mdot_lab.checks.choices", "its nine networks were not run"),
        ("MLaaS", "after MLaaS: CART on metadata", durations("after MLaaS: CART on metadata"), "8.9", "", jobs, "no offline trace with users"),
        ("Helios", "after Helios: trees that correct the history", durations(helios), "10.8", "", jobs, "the same"),
        ("Harmony", "after Harmony: a perceptron of both loads", pairs(perceptron), "9.8", "3", beside, "no reinforcement, no Seq2Seq or CTC"),
        ("GENIE", "after GENIE", several("after GENIE"), "12", "", places, ""),
        ("Horus, Yeung et al.", "after Yeung et al. and Horus: XGBoost", pairs(forest), "11.3", "3", beside, "no public labels of utilisation"),
        ("Horus, steps", "after Horus", steps("horus"), "11.3", "horus", trial, ""),
        ("DNNAbacus", "searched model", f"{steps('dnnabacus searched')}; memory {memory}", "7.1", "dnnabacus searched", trial, ""),
        ("DNNPerf", "its form", steps("dnnperf"), "12.8", "dnnperf", trial, ""),
        ("Driple", "its form, and its transfer", f"{steps('driple')}; moved to an A100 with 10 networks {moved}", "8", "driple", trial, ""),
        ("Habitat", "waves and perceptrons", f"{steps('habitat', 'gpus')} (waves); from kernels {transfer}", "10.8", "habitat", trial,
         "no combination wins on all twelve pairs of cards, so none ships"),
        ("SEER", "after SEER, three classes of kernels", steps("seer analytic"), "12.1", "seer analytic", trial, "the survey's description alone"),
        ("PerfNet", "its form", steps("perfnet"), "13.1", "perfnet", trial, "whole steps in place of operators' times"),
        ("PerfNetV2", "its form", steps("perfnet 2"), "13.1", "perfnet 2", trial, "settings were not tuned"),
        ("NeuSight", "its form", steps("neusight"), "", "neusight", trial, "whole steps in place of kernels' times"),
        ("ETS", "its form", steps("ets"), "", "ets", trial, "the same"),
        ("Li, Sun and Jog", "after Li et al. (2023)", steps("li"), "", "li", trial, ""),
        ("Pei et al.", "after Pei et al. (2019)", steps("pei"), "", "pei", trial, ""),
        ("MDOT as published", "its form", steps("mdot as published"), "", "mdot as published", trial, "its claim does not hold here (README.md)"),
        ("the shipped form", "`mdot predict`", steps(MDOT), "", MDOT, trial, "one seed"),
    )
    lines = ["| system | form | error | stated | seeds | command | missing |", "| --- " * 7 + "|"]
    for system, form, error, stated, seeds, command, missing in rows:
        known = any(row["baseline"] == seeds for row in trials)
        cells = (system, form, error, stated, _seeds(trials, seeds) if known else seeds, f"`{command}`", missing)
        lines.append(f"| {' | '.join(cell or '–' for cell in cells)} |")
    return lines


def _durations(rows: list[dict[str, str]]) -> list[str]:
    return plain_table(rows) if rows else ["not run"]


def _interference(rivals: list[dict[str, str]]) -> list[str]:
    lines = ["| split | method | median | mean | pays | clear |", "| --- " * 6 + "|"]
    for split in ("pairs", "networks", "cards", "bound"):
        methods = dict.fromkeys(row["method"] for row in rivals if row["split"] == split)
        for method in methods:
            own = [row for row in rivals if row["split"] == split and row["method"] == method]
            cells = [f"{np.mean([float(row[name]) for row in own]):.1f}" for name in ("median", "mean", "pays", "pays_clear")]
            lines.append(f"| {split} | {method} | {' | '.join(cells)} |")
    return lines


def _driple(rows: list[dict[str, str]]) -> list[str]:
    lines = ["| target | networks with labels | anew: mean / median, fit | transferred: mean / median, fit |", "| --- " * 4 + "|"]
    for target, networks in dict.fromkeys((row["target"], row["networks"]) for row in rows):
        cells = []
        for way in ("anew", "transferred"):
            own = [row for row in rows if (row["target"], row["networks"], row["way"]) == (target, networks, way)]
            mean, median, fit = (np.mean([float(row[name]) for row in own]) for name in ("mean", "median", "fit_s"))
            cells.append(f"{mean:.1f} / {median:.1f} %, {fit:.1f} s")
        lines.append(f"| {target} | {networks} | {' | '.join(cells)} |")
    return lines


NOTE = """"The same pair elsewhere" takes the measured slowdown of the same two jobs on the other two cards: it bounds a model
that knows jobs and cards but not the hosts, which differed. "Own and partner's factor" multiplies two numbers of each
job and card, both fitted to the judged labels: even so, a law of separate jobs decides 87 % right. "The same speeds,
alone again" is Gavel's other table: equal speeds together, and a second measurement of each job alone. It decides 82.3
% as the first does (K80 55.8, P100 89.2, V100 99.5), because 42 % of K80's pairs gain or lose less than 5 %. "n pairs
measured" are mdot's answers after n random pairs of the left-out network (three draws): 20 suffice for an error of 10
%, and 85 % of right decisions take more than 40. A process for the pair's work and its division, with the same inputs,
had 13.4 to 16.8 % and 76.6 to 79.3 % on networks, and 18.7 to 22.0 % and 77.3 to 79.7 % on cards, so it is better on
cards alone."""


def page(results: Path) -> str:
    rows = read(results / "trials.csv")
    durations = read(results / "durations.csv")
    memory = [{key: value for key, value in row.items() if key != "models"} for row in read(results / "dnnabacus_memory.csv")]
    parts = {
        "classes": classes_table(rows, durations), "systems": systems_table(rows), "memory": plain_table(memory),
        "driple": _driple(read(results / "driple_transfer.csv")), "transfer": plain_table(read(results / "habitat_transfer.csv")),
        "distributed": plain_table(read(results / "distributed.csv")), "durations": _durations(durations),
        "interference": _interference(read(results / "interference_rivals.csv")),
        "interference_note": [NOTE], "survey": _survey(rows, results), "slices": plain_table(read(results / "mig_slices.csv")),
    }
    return TEXT.format(**{name: "\n".join(lines) for name, lines in parts.items()})
