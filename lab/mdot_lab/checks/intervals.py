"""The law of intervals: in each regime with at least 30 measured steps, 86 to 95 % of them lie inside the 90 % interval, and
the interval is at most 1.3 times as wide as the one that would hold 90 % ("oracle"). More than 95 % are a fault where chance is an
unlikely reason.

    python3 -m mdot_lab.checks.intervals --data FOLDER --graphs FOLDER --held-out FOLDER [--model PREDICTOR.mdot] [--all]

FOLDER of --data holds the folders timm, torchvision-multigpu, neusight, training-points, measured-2026 and steps-2026; what
is missing is skipped with a line. --graphs holds the networks of lab/graphs.tar.xz; modern ones are added to it, and steps of
other missing networks are counted by publisher. --held-out is `weights/results`. A regime is a GPU model, a kind of network and a mode. --all prints smaller regimes, too.

The product answers every question. Where the predictor was trained on the label, its error comes from the held-out tables:
random.csv for timm's training (families were left out of
families.csv, which the product's interval cannot know), inference_families.csv.xz for inference, language_models.csv for language models. The
interval is the product's around this prediction. torchvision's steps have no such table with the GPU known, and are left out.

A width is the upper over the lower bound, and a regime's is the median. The oracle interval is the same for all steps of a
regime: from the 5 % to the 95 % quantile of measured over predicted. The exit status is 1 if a regime breaks the law, and 77
if no data was found.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from typing import Iterator, NamedTuple

import mdot
import numpy as np

from mdot_lab.checks import calibration, labels_by_source, modern_steps, published_steps
from mdot_lab.checks.points import distinct
from mdot_lab.predictor import collected, published
from mdot_lab.predictor.labels import BACKWARD, INFER, TRAIN, Label, Network, read_timm

LEAST_LABELS, COVERAGE, MOST_WIDER = 30, (86.0, 95.0), 1.3
FAMILIES = ("xcit", "dla", "mobilevit")
POINTS = {"measured-2026": ("superbench_a100.csv", "llm_points.csv", "modded_nanogpt.csv", "simumax_b200.csv"),
          "training-points": ("training_points.csv",), "neusight": ("label",)}


class Known(NamedTuple):
    """A measured step and the answer."""

    regime: str
    measured_ms: float
    step_ms: float
    lower_ms: float
    upper_ms: float


class Row(NamedTuple):
    regime: str
    labels: int
    mean: float         # of the absolute error, %
    bias: float         # %, negative if predictions are too short
    inside: float       # %
    width: float
    oracle: float
    score: float
    """Mean interval score of the logarithms: the width, plus 20 times the distance of steps outside."""

    @property
    def fault(self) -> str:
        """What the law forbids; "" if it holds."""
        if self.inside < COVERAGE[0]:
            return "too few inside"
        if self.width > MOST_WIDER * self.oracle:
            return "too wide"
        return "too many inside" if self.is_beyond_chance else ""

    @property
    def is_beyond_chance(self) -> bool:
        """As many steps inside, if 95 % of all are, would be rarer than 5 %."""
        count, inside = self.labels, round(self.labels * self.inside / 100)
        logs = (math.log(COVERAGE[1] / 100), math.log1p(-COVERAGE[1] / 100))
        return sum(math.exp(math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) + k * logs[0]
                            + (count - k) * logs[1]) for k in range(inside, count + 1)) < 0.05


def summary(regime: str, known: list[Known]) -> Row:
    measured, step, lower, upper = (np.log(x) for x in np.array([k[1:] for k in known]).T)
    off = measured - step
    low, high = np.quantile(off, [0.05, 0.95], method="closest_observation")
    outside = np.maximum(lower - measured, 0) + np.maximum(measured - upper, 0)
    return Row(regime, len(known), 100 * np.abs(np.expm1(-off)).mean(), 100 * np.expm1(-off.mean()),
               100 * (outside == 0).mean(), float(np.exp(np.median(upper - lower))), float(np.exp(high - low)),
               float((upper - lower + 20 * outside).mean()))


def is_judged(row: Row) -> bool:
    return row.labels >= LEAST_LABELS


class Reader(calibration.Reader):
    """Predictions of timm's training come from random.csv. Networks without a graph are counted by publisher."""

    def __init__(self, predictor: mdot.Predictor, graphs: Path, held_out: Path) -> None:
        super().__init__(predictor, graphs, held_out)
        self.held_out = held_out
        self.tables["timm"] = calibration.read_table(held_out / "random.csv")
        self.skipped: Counter[str] = Counter()

    def has(self, network: Network, publisher: str) -> bool:
        found = self.job(network) is not None
        self.skipped[publisher] += not found
        return found


# ---- Sources ---------------------------------------------------------------------------------------------------------


def _of(regime: str, ms: float, answer: mdot.Prediction) -> Known:
    return Known(regime, ms, answer.step_ms, answer.lower_ms, answer.upper_ms)


def _regime(label: Label, kind: str) -> str:
    mode = "inference" if label.kind == INFER else "training"
    return f"{label.gpu}, {kind}, {mode}{', compiled' if label.is_compiled else ''}"


def _labels(reader: Reader, source: str, labels: Iterator[Label], kind: str) -> Iterator[Known]:
    """Those with a held-out prediction."""
    for label in labels:
        step = reader.label(source, label) if reader.has(label.network, label.run if source == "language" else source) else None
        if step is not None and step.is_held_out:
            yield _of(_regime(label, kind), step.ms, step.prediction)


def timm(folder: Path, reader: Reader) -> Iterator[Known]:
    for name in ("train.csv", "train_torch112.csv"):
        yield from _labels(reader, "timm", read_timm(folder / name, TRAIN), "image networks")
    yield from _labels(reader, "inference", read_timm(folder / "infer.csv", INFER), "image networks")
    for label in read_timm(folder / "fresh_families.csv", TRAIN):
        step = reader.label("timm", label) if reader.has(label.network, "fresh families") else None
        if step is not None:
            yield _of(_regime(label, "fresh families"), step.ms, step.prediction)


def language(data: Path, reader: Reader) -> Iterator[Known]:
    for folder, names in POINTS.items():
        for path in (data / folder / name for name in names if (data / folder / name).exists()):
            labels = (label for label in published.read(path) if label.kind == BACKWARD)
            yield from _labels(reader, "language", labels, "language models")


def outside(data: Path, reader: Reader) -> Iterator[Known]:
    """Published steps that the predictor was not trained on. Left out: PROFET, whose program copies each batch from the host
    meanwhile, and PaddlePaddle's BERT, which skips padding."""
    points = distinct(published.points(data / "training-points" / "training_points.csv", published_steps.READERS))
    for point in points:
        publisher = point.source.split(":")[0]
        if point.is_trained or publisher == "PROFET" or "PaddlePaddle, pre-training" in point.source:
            continue
        if not reader.has(point.network, publisher):
            continue
        kind = "language models" if "language" in point.network.name else "image networks"
        answer = reader.predictor.predict(reader.job(point.network), point.gpu_model, **point.options)
        yield _of(f"{point.gpu_model}, {kind} ({publisher}), training", point.step_ms, answer)


def own(records: Path, reader: Reader) -> Iterator[Known]:
    """Our own records of an H200."""
    for label in collected.read(records):
        if not reader.has(label.network, "our own records"):
            continue
        options = labels_by_source.settings(label)
        if label.kind == INFER:
            options |= {"mode": "inference", "optimizer": "sgd"}
        kind = "image networks in fp32" if label.precision == "fp32" else "image networks"
        yield _of(_regime(label, kind), label.step_ms,
                  reader.predictor.predict(reader.job(label.network), label.gpu, **options))


def modern(data: Path, reader: Reader) -> Iterator[Known]:
    steps, older = data / "steps-2026", data / "measured-2026"
    found = modern_steps.read([steps / "small_tables.csv", steps / "mbridge_cards.csv"], [older / "llm_points.csv"],
                              [older / "modded_nanogpt.csv"], [steps, older])
    for step, job in modern_steps.with_jobs(found, reader.graphs):
        answer = reader.predictor.predict(job, step.gpu, **step.options)
        yield _of(f"{step.gpu}, {step.regime}", step.step_ms, answer)


SOURCES = {"timm": lambda data, reader: timm(data / "timm", reader), "training-points": outside, "neusight": language,
           "steps-2026": modern}


def read(data: Path, reader: Reader) -> Iterator[Known]:
    records = reader.held_out.parent / "data" / "h200.jsonl.gz"
    if records.exists():
        yield from own(records, reader)
    for folder, source in SOURCES.items():
        if (data / folder).is_dir():
            yield from source(data, reader)
        else:
            print(f"skipped: {data / folder} is missing", file=sys.stderr)


# ---- Table -----------------------------------------------------------------------------------------------------------


HEADING = "| regime | labels | mean error, % | bias | inside, % | width | oracle | score | |\n" + "| --- " * 9 + "|"


def line(row: Row) -> str:
    fault = row.fault if is_judged(row) else f"fewer than {LEAST_LABELS}"
    return (f"| {row.regime} | {row.labels} | {row.mean:.1f} | {row.bias:+.1f} | {row.inside:.0f} | {row.width:.2f} | "
            f"{row.oracle:.2f} | {row.score:.2f} | {fault} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--graphs", type=Path, required=True, help="folder of .job files; missing ones of modern steps are made")
    parser.add_argument("--held-out", type=Path, required=True, help="weights/results")
    parser.add_argument("--model", type=Path, help="artefact of a predictor (default: the shipped one)")
    parser.add_argument("--all", action="store_true", help="print regimes with fewer than 30 labels, too")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    predictor = mdot.Predictor(options.model) if options.model else mdot.Predictor()
    regimes = defaultdict(list)
    reader = Reader(predictor, options.graphs, options.held_out)
    for known in read(options.data, reader):
        regimes[known.regime].append(known)
    for publisher, count in sorted((+reader.skipped).items()):
        print(f"skipped: {count} steps of {publisher}, because {options.graphs} lacks their networks", file=sys.stderr)
    if not regimes:
        print("intervals: no data was found", file=sys.stderr)
        return 77
    rows = [summary(name, known) for name, known in sorted(regimes.items())]
    print(HEADING)
    for row in rows:
        if options.all or is_judged(row):
            print(line(row))
    broken = [row.regime for row in rows if is_judged(row) and row.fault]
    print(f"\n{len(broken)} of {sum(map(is_judged, rows))} regimes with at least {LEAST_LABELS} labels break the law")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
