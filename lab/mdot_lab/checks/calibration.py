"""Measures how much calibration by few measured steps improves predictions that are held out.

    python3 -m mdot_lab.checks.calibration --graphs FOLDER [--timm FOLDER] [--torchvision FOLDER] [--points CSV]
        [--neusight FOLDER] [--pollux CSV] [--held-out FOLDER] [--half chosen|judged] [--draws 20] [--model PREDICTOR.mdot]

FOLDER of --graphs holds the networks as `.job` files (lab/graphs.tar.xz); steps of other networks are skipped.
--timm, --torchvision, --neusight, --points and --pollux (pollux_step_times.csv) are the published measurements. --held-out is
`weights/results`, whose tables predict labels outside the predictor's training. A step that a table has is
predicted by it: families.csv for timm, gpus.csv for torchvision, language_models.csv for language models. The shipped
predictor predicts the others (torch 1.10 of timm, PROFET and Pollux), which is printed. The interval is the shipped
predictor's around either prediction. It is narrower than held-out errors of networks that the shipped predictor was trained
on. Therefore each side of the intervals of a source's held-out predictions is widened until at most 5 % of the steps lie beyond
it before calibration. The sides differ, because the interval is wider above where no step of the kind was measured.
Predictions of gpus.csv carry the warning that the training data lack the GPU model.

`--half` selects networks by a hash of the names. The constants of runtime/predict/calibration_prior.c were first chosen on
`chosen`, and then adjusted on all networks. The comment there names those that were changed later on `chosen` alone. Each line
gives mean and median error in %, before and after, as medians over the draws; the share of steps inside the interval; and
the largest increase of the mean error of a draw, in points.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import itertools
import lzma
import math
import sys
import warnings
import zlib
from collections import defaultdict
from pathlib import Path
from typing import Callable, Iterable, Iterator, Sequence

import mdot
import numpy as np
from mdot_lab.checks.points import profet
from mdot_lab.predictor import published
from mdot_lab.predictor.labels import (BACKWARD, CIFAR_RESNET18, INFER, TORCHVISION, TRAIN, Label, Network,
                                            read_timm, read_torchvision)

PRECISIONS = {"fp32": "fp32", "tf32": "tf32", "amp": "amp", "fp16": "amp", "amp_bf16": "amp-bf16", "bf16": "bf16"}
TABLES = {"timm": "families.csv", "inference": "inference_families.csv.xz", "torchvision": "gpus.csv",
          "language": "language_models.csv"}  # fmt: skip
POLLUX = {"cifar10": (Network(CIFAR_RESNET18, 32), "fp32", "1.5"),
          "imagenet": (Network(TORCHVISION + "resnet50", 224), "amp", "1.7")}  # fmt: skip
"""Pollux's applications whose networks are known. Both include the loader, which bounds small batches."""
NEW_GPU = "gpu-not-measured"
QUANTILE = 95
BOUNDS: tuple[Callable[[mdot.Prediction], float], ...] = (lambda p: p.lower_ms, lambda p: p.upper_ms)
SOURCES = ("timm", "inference", "torchvision", "profet", "language", "pollux")


@dataclasses.dataclass(frozen=True)
class Step:
    source: str
    network: Network
    software: str
    job: mdot.Job
    configuration: mdot.Configuration
    ms: float
    prediction: mdot.Prediction
    is_held_out: bool

    @property
    def measurement(self) -> mdot.Measurement:
        return mdot.Measurement(self.job, self.configuration, self.ms, prediction=self.prediction)

    @property
    def cell(self) -> tuple[str, str]:
        """The GPU in one precision."""
        return str(self.configuration.gpu), str(self.configuration.precision)

    @property
    def error(self) -> float:
        return math.log(self.ms / self.prediction.step_ms)


def is_chosen(network: Network) -> bool:
    return zlib.crc32(network.name.removeprefix("torchvision.").encode()) % 2 == 0


# ---- Reading ---------------------------------------------------------------------------------------------------------


class Reader:
    def __init__(self, predictor: mdot.Predictor, graphs: Path, held_out: Path | None) -> None:
        self.predictor, self.graphs = predictor, graphs
        self.jobs: dict[Network, mdot.Job | None] = {}
        self.tables = {source: read_table(held_out / name) if held_out else {} for source, name in TABLES.items()}

    def job(self, network: Network) -> mdot.Job | None:
        if network not in self.jobs:
            path = self.graphs / network.graph_file
            self.jobs[network] = mdot.Job.load(path) if path.exists() else None
        return self.jobs[network]

    def label(self, source: str, label: Label) -> Step | None:
        options = {"attention": "flash" if label.is_fused else "eager"} if source == "language" else {}
        if label.recomputes:
            options["checkpoint"] = "blocks"
        if label.kind == INFER:
            options["mode"] = "inference"
        torch = f"{label.software[2]}.{label.software[3:]}"
        configuration = mdot.Configuration(label.gpu, label.batch, precision=PRECISIONS[label.precision], layout=label.layout,
                                           torch=torch, optimizer="sgd", **options)  # fmt: skip
        key = (label.network.name, label.gpu, label.precision, f"{label.batch:g}", label.layout, label.software)
        found = [ms for measured, ms in self.tables[source].get(key, ()) if abs(measured / label.step_ms - 1) < 1e-4]
        return self.step(source, label.network, label.software, configuration, label.step_ms, found[0] if found else None)

    def step(self, source: str, network: Network, software: str, configuration: mdot.Configuration, ms: float,
             held_out_ms: float | None = None) -> Step | None:  # fmt: skip
        job = self.job(network)
        answer = self.predictor.predict_many([(job, configuration)])[0] if job is not None else None
        if not isinstance(answer, mdot.Prediction):
            return None
        if held_out_ms is not None:
            answer = _scaled(answer, held_out_ms / answer.step_ms, 1, 1)
            if source == "torchvision":  # gpus.csv: the GPU model was left out, too
                answer = dataclasses.replace(answer, warnings=(*answer.warnings, NEW_GPU))
        return Step(source, network, software, job, configuration, ms, answer, held_out_ms is not None)


def _scaled(p: mdot.Prediction, factor: float, lower: float, upper: float) -> mdot.Prediction:
    """The median times a factor, and the width of each side of the interval, as a logarithm, times another."""
    ms = p.step_ms * factor
    return dataclasses.replace(p, step_ms=ms, lower_ms=ms * (p.lower_ms / p.step_ms) ** lower,
                               upper_ms=ms * (p.upper_ms / p.step_ms) ** upper)  # fmt: skip


def read_table(path: Path) -> dict[tuple[str, ...], list[tuple[float, float]]]:
    found = defaultdict(list)
    opener = lzma.open if path.suffix == ".xz" else open
    with opener(path, "rt", newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            key = tuple(row[name] for name in ("network", "gpu", "precision", "batch", "layout", "torch"))
            found[key].append((float(row["step_ms"]), float(row["mdot"])))
    return found


def _labels(options: argparse.Namespace) -> Iterator[tuple[str, Label]]:
    if options.timm:
        for name in ("train.csv", "train_torch112.csv"):
            yield from (("timm", label) for label in read_timm(options.timm / name, TRAIN))
        yield from (("inference", label) for label in read_timm(options.timm / "infer.csv", INFER)
                    if label.software in ("pt111", "pt112") and not label.is_compiled)  # fmt: skip
    if options.torchvision:
        yield from (("torchvision", label) for label in read_torchvision(options.torchvision))
    for path in filter(None, (options.neusight, options.points)):
        yield from (("language", label) for label in published.read(path) if label.kind == BACKWARD)


def read_steps(options: argparse.Namespace, predictor: mdot.Predictor) -> list[Step]:
    reader = Reader(predictor, options.graphs, options.held_out)
    found = [reader.label(source, label) for source, label in _labels(options)]
    if options.points:
        for point in published.points(options.points, profet.READERS):
            configuration = mdot.Configuration(point.gpu_model, point.options["batch"], precision="fp32", optimizer="sgd",
                                               torch="1.10")  # fmt: skip
            found.append(reader.step("profet", point.network, "", configuration, point.step_ms))
    if options.pollux:
        found += [reader.step("pollux", network, "", *measured) for network, *measured in _pollux(options.pollux)]
    steps = [step for step in found if step is not None]
    sources = dict.fromkeys(s.source for s in steps)
    return [step for source in sources for step in _widened(s for s in steps if s.source == source)]


def _pollux(path: Path) -> Iterator[tuple[Network, mdot.Configuration, float]]:
    """Steps on one T4."""
    with open(path, newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(line for line in lines if not line.startswith("#")):
            if row["application"] in POLLUX and (row["table"], row["gpus"]) == ("placements", "1"):
                network, precision, torch = POLLUX[row["application"]]
                batch, ms = int(row["batch_per_gpu"]), float(row["step_ms"])
                yield network, mdot.Configuration("T4", batch, precision=precision, optimizer="sgd", torch=torch), ms


def _widened(steps: Iterable[Step]) -> list[Step]:
    """Widens each side of one source's held-out intervals until at most 5 % of the steps lie beyond."""
    found = list(steps)
    held_out = [s for s in found if s.is_held_out]
    if not held_out:
        return found
    sides = [[s.error / math.log(bound(s.prediction) / s.prediction.step_ms) for s in held_out] for bound in BOUNDS]
    lower, upper = (max(1.0, float(np.percentile(ratios, QUANTILE))) for ratios in sides)
    return [dataclasses.replace(s, prediction=_scaled(s.prediction, 1, lower, upper)) if s.is_held_out else s for s in found]


# ---- Judging ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Judged:
    before: list[float] = dataclasses.field(default_factory=list)
    after: list[float] = dataclasses.field(default_factory=list)
    inside: list[bool] = dataclasses.field(default_factory=list)
    width: list[float] = dataclasses.field(default_factory=list)

    def add(self, other: Judged) -> None:
        for field in dataclasses.fields(self):
            getattr(self, field.name).extend(getattr(other, field.name))

    @property
    def change(self) -> float:
        return float(np.mean(self.after) - np.mean(self.before))


def judge(predictor: mdot.Predictor, measured: Sequence[Step], asked: Sequence[Step]) -> Judged:
    """Errors in % of the steps `asked`, before and after calibration by the steps `measured`."""
    calibration, out = mdot.Calibration.measured(predictor, [step.measurement for step in measured]), Judged()
    for step in asked:
        factors = calibration.explain(predictor, step.job, step.configuration, step.prediction)
        p = _scaled(step.prediction, factors.factor, factors.interval, factors.interval)
        out.before.append(100 * abs(step.prediction.step_ms / step.ms - 1))
        out.after.append(100 * abs(p.step_ms / step.ms - 1))
        out.inside.append(p.lower_ms <= step.ms <= p.upper_ms)
        out.width.append(factors.interval)
    return out


Draw = Callable[[np.random.Generator], Iterable[tuple[Sequence[Step], Sequence[Step]]]]


def report(title: str, predictor: mdot.Predictor, draw: Draw, draws: int) -> None:
    """Prints a line of the table. A draw gives pairs of measured and asked steps; each pair may be a half."""
    rng = np.random.default_rng(1)
    figures, changes, whole = [], [], Judged()
    for _ in range(draws):
        one = Judged()
        for measured, asked in draw(rng):
            if measured and asked:
                judged = judge(predictor, measured, asked)
                one.add(judged)
                changes.append(judged.change)
        if one.before:
            figures.append([f(v) for v in (one.before, one.after) for f in (np.mean, np.median)])
            whole.add(one)
    if not figures:
        return
    before, before_median, after, after_median = np.median(figures, axis=0)
    worst = f"{max(changes):+.1f}" if draws > 1 else ""
    print(f"| {title} | {len(whole.before) // draws} | {before:.1f} / {before_median:.1f} | {after:.1f} / {after_median:.1f} | "
          f"{100 * np.mean(whole.inside):.0f} | {np.median(whole.width):.2f} | {worst} |", flush=True)


# ---- Questions -------------------------------------------------------------------------------------------------------


def versions(steps: Sequence[Step], layout: str, first: str, then: str, limit: int) -> Draw:
    """One step of the same job under another PyTorch version."""
    by_network = {s.network: s for s in steps if s.software == first and s.configuration.layout == layout}
    asked = [s for s in steps if s.software == then and s.configuration.layout == layout and s.network in by_network]

    def draw(rng: np.random.Generator) -> Iterator[tuple[list[Step], list[Step]]]:
        for at in sorted(rng.permutation(len(asked))[:limit]):
            yield [by_network[asked[at].network]], [asked[at]]

    return draw


def _families(steps: Iterable[Step], key: Callable[[Step], object]) -> list[list[Step]]:
    found = defaultdict(list)
    for step in steps:
        found[key(step)].append(step)
    return list(found.values())


def batches(steps: Sequence[Step], neighbours: bool, limit: int) -> Draw:
    """One step of the same job and card at another batch."""
    pairs = []
    for same in _families(steps, lambda s: (s.network, s.cell)):
        sizes = sorted({s.configuration.batch for s in same})
        for a, b in itertools.product(same, same):
            apart = abs(sizes.index(a.configuration.batch) - sizes.index(b.configuration.batch))
            if apart == 1 or (apart > 1 and not neighbours):
                pairs.append((a, b))

    def draw(rng: np.random.Generator) -> Iterator[tuple[list[Step], list[Step]]]:
        for at in rng.permutation(len(pairs))[:limit]:
            yield [pairs[at][0]], [pairs[at][1]]

    return draw


def other_mode(measured: Sequence[Step], asked: Sequence[Step], layout: str, least: float) -> Draw:
    """One step of the same job in the other mode, off by more than `least` from the median residual, as a logarithm."""
    median = float(np.median([s.error for s in measured]))
    far = {(s.network, s.software): s for s in measured if s.configuration.layout == layout and abs(s.error - median) > least}
    pairs = [(far[s.network, s.software], s) for s in asked
             if s.configuration.layout == layout and (s.network, s.software) in far]  # fmt: skip

    def draw(rng: np.random.Generator) -> Iterator[tuple[list[Step], list[Step]]]:
        for one, other in pairs:
            yield [one], [other]

    return draw


def others(steps: Sequence[Step], count: int) -> Draw:
    """`count` other networks on the same card, in the same precision."""

    def draw(rng: np.random.Generator) -> Iterator[tuple[list[Step], list[Step]]]:
        for cell in _families(steps, lambda s: s.cell):
            order = rng.permutation(len(cell))
            yield [cell[i] for i in order[:count]], [cell[i] for i in order[count:]]

    return draw


def other_cards(steps: Sequence[Step]) -> Draw:
    """One step of the same job on another card."""

    def draw(rng: np.random.Generator) -> Iterator[tuple[list[Step], list[Step]]]:
        for same in _families(steps, lambda s: (s.network, s.cell[1])):
            a, b = rng.permutation(len(same))[:2] if len(same) > 1 else (0, 0)
            if same[a].cell != same[b].cell:
                yield [same[a]], [same[b]]

    return draw


def common_jobs(steps: Sequence[Step], count: int, elsewhere: bool) -> Draw:
    """`count` networks on a card calibrate the others there. With `elsewhere`, the other cards have rows of all networks."""

    def draw(rng: np.random.Generator) -> Iterator[tuple[list[Step], list[Step]]]:
        for on_card in _families(steps, lambda s: str(s.configuration.gpu)):
            names = sorted({s.network.name for s in on_card})
            picked = {names[i] for i in rng.permutation(len(names))[:count]}
            others = [s for s in steps if elsewhere and s.configuration.gpu != on_card[0].configuration.gpu]
            yield (others + [s for s in on_card if s.network.name in picked],
                   [s for s in on_card if s.network.name not in picked])  # fmt: skip

    return draw


def halves(steps: Sequence[Step], by_network: bool, networks: int) -> Draw:
    """Each half of the steps by the other half; with `by_network`, halves of the networks."""
    names = sorted({s.network.name for s in steps})

    def draw(rng: np.random.Generator) -> Iterator[tuple[list[Step], list[Step]]]:
        picked = [names[i] for i in rng.permutation(len(names))[:networks]]
        rows = [s for s in steps if s.network.name in picked]
        first = set(picked[: len(picked) // 2])
        chance = rng.random(len(rows)) < 0.5
        in_first = [s.network.name in first if by_network else bool(chance[i]) for i, s in enumerate(rows)]
        a, b = ([s for s, is_in in zip(rows, in_first) if is_in is half] for half in (True, False))
        yield a, b
        yield b, a

    return draw


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=Path, required=True, help="folder of .job files")
    parser.add_argument("--timm", type=Path, help="folder of train.csv and train_torch112.csv")
    parser.add_argument("--torchvision", type=Path, help="folder of pytorch-gpu-benchmark")
    parser.add_argument("--points", type=Path, help="training_points.csv")
    parser.add_argument("--neusight", type=Path, help="folder of NeuSight's labels")
    parser.add_argument("--pollux", type=Path, help="pollux_step_times.csv")
    parser.add_argument("--held-out", type=Path, help="folder of held-out predictions (weights/results)")
    parser.add_argument("--half", choices=("chosen", "judged"), help="networks to use (default: all)")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--limit", type=int, default=200, help="most pairs of a draw (default: 200)")
    parser.add_argument("--networks", type=int, default=40, help="networks of a half's draw (default: 40)")
    parser.add_argument("--model", type=Path, help="artefact of a predictor (default: the shipped one)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    predictor = mdot.Predictor(options.model) if options.model else mdot.Predictor()
    steps = read_steps(options, predictor)
    if options.half:
        steps = [s for s in steps if is_chosen(s.network) == (options.half == "chosen")]
    for source in dict.fromkeys(s.source for s in steps):
        held = [s.is_held_out for s in steps if s.source == source]
        print(f"{source}: {len(held)} steps, {sum(held)} by held-out predictions, the others by the shipped predictor")
    of = {source: [s for s in steps if s.source == source] for source in SOURCES}
    print("\n| measured | steps | before | after | inside the interval, % | width | worst |")
    print("| --- " * 7 + "|")

    def line(title: str, draw: Draw, draws: int = options.draws) -> None:
        report(title, predictor, draw, draws)

    shipped = [dataclasses.replace(s, prediction=_shipped(predictor, s), is_held_out=False) for s in of["timm"]]
    held = [s for s in of["timm"] if s.is_held_out]
    for layout in ("nchw", "nhwc"):
        line(f"the job with torch 1.10 → 1.11, {layout} (shipped)", versions(shipped, layout, "pt110", "pt111", 1000), 1)
        line(f"the job with torch 1.11 → 1.12, {layout}", versions(held, layout, "pt111", "pt112", 1000), 1)
    for layout in ("nchw", "nhwc"):
        line(f"the job's inference, asked for training, {layout}", other_mode(of["inference"], held, layout, 0), 1)
        line(f"the same, off by more than .25, {layout}", other_mode(of["inference"], held, layout, 0.25), 1)
    line("the job at a neighbouring batch, PROFET", batches(of["profet"], True, 1000), 1)
    line("the job at any other batch, PROFET", batches(of["profet"], False, 1000), 1)
    line("the job at a neighbouring batch, Pollux", batches(of["pollux"], True, 1000), 1)
    line("the job at any other batch, language models", batches(of["language"], False, options.limit))
    line("five other networks on the card, torchvision", others(of["torchvision"], 5))
    line("one other network on the card, torchvision", others(of["torchvision"], 1))
    line("the job on another card, torchvision", other_cards(of["torchvision"]))
    for source, count in (("torchvision", 3), ("torchvision", 5), ("torchvision", 10), ("language", 5)):
        line(f"{count} networks on the card, {source}", common_jobs(of[source], count, False))
        line("the same, and all networks on the other cards", common_jobs(of[source], count, True))
    for source, rows in of.items():
        if source in ("pollux", "inference"):  # two networks; the other mode
            continue
        rows = held if source == "timm" else rows
        line(f"a half of the steps, {source}", halves(rows, False, options.networks))
        line(f"a half of the networks, {source}", halves(rows, True, options.networks))
    return 0


def _shipped(predictor: mdot.Predictor, step: Step) -> mdot.Prediction:
    answer = predictor.predict_many([(step.job, step.configuration)])[0]
    assert isinstance(answer, mdot.Prediction)
    return answer


if __name__ == "__main__":
    sys.exit(main())
