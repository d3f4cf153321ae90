#!/usr/bin/env python3
"""Writes accuracy.csv, cases.csv, baselines.csv, memory.csv, figures.csv and ranges.csv from the other tables beside it, or checks
them:

    python3 weights/results/summarise.py [--check]
"""

import csv
import io
import itertools
import lzma
import math
import statistics
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SPLITS = ("random", "families", "software", "gpus", "language_models", "language_gpus", "sources", "inference_families",
          "inference_gpus")
TITLES = {"dnnabacus": "DNNAbacus", "dnnperf": "DNNPerf", "driple": "Driple", "ets": "ETS", "habitat": "Habitat",
          "horus": "Horus", "mdot_as_published": "MDOT as published", "neusight": "NeuSight", "perfnet": "PerfNet", "seer": "SEER"}
CASES = {
    "random": "image network like those of timm, RTX 3090, AMP, PyTorch 1.10 to 1.12",
    "new_families": "the same, but a family of networks that no label has",
    "gpus": "image network of torchvision, GPU model that no label has, small batch",
    "inference_families": "inference of an image network, RTX 3090 to 5090, AMP",
    "h200_images": "training with PyTorch 2.11 on an H200, image network",
    "language_models": "GPT, BERT, OPT or MPT, mostly on A100 in half precision",
    "modern_bf16": "training with PyTorch 2.9 on an H100, H200 or B200, language model, bf16",
    "modern_fp8": "the same in FP8",
    "other_networks": "today's other questions: recommenders, experts, LSTMs, diffusion, LoRA, power limits",
}
METHODS = {"nf4": "qlora", "qlora": "qlora", "adapter": "adapter", "lora": "lora", "full": "full"}
"""Ways of fine-tuning in the rows of litgpt, by the first word that a row contains."""
LABEL = ("network", "gpu", "precision", "batch", "layout", "torch", "fold", "step_ms")


def read(name: str) -> list[dict[str, str]]:
    path = FOLDER / f"{name}.csv"
    text = path.read_text() if path.exists() else lzma.open(f"{path}.xz", "rt").read()
    return list(csv.DictReader(io.StringIO(text)))


def errors(rows: list[dict[str, str]], column: str = "mdot") -> dict[str, str]:
    ratios = [float(row[column]) / float(row["step_ms"]) for row in rows]
    percent = sorted(100 * abs(ratio - 1) for ratio in ratios)
    bias = 100 * math.expm1(statistics.fmean(map(math.log, ratios)))
    return {"labels": f"{len(rows):,}", "mean": f"{statistics.fmean(percent):.1f}", "median": f"{statistics.median(percent):.1f}",
            "p90": f"{statistics.quantiles(percent, n=10, method='inclusive')[8]:.1f}",
            "within_10": f"{100 * sum(each <= 10 for each in percent) / len(rows):.0f}", "bias": f"{bias:+.1f}"}


def ordered_pairs(rows: list[dict[str, str]]) -> tuple[int, int]:
    """Pairs of equal jobs on two GPU models whose measured times differ by more than 10 %, and how many are in the right order."""
    jobs: dict[tuple[str, bool], list[tuple[str, float, float]]] = {}
    for row in rows:
        is_single = row["precision"] in ("fp32", "tf32")
        jobs.setdefault((row["network"], is_single), []).append((row["gpu"], float(row["step_ms"]), float(row["mdot"])))
    pairs = [(a, b) for steps in jobs.values() for a, b in itertools.combinations(steps, 2)
             if a[0] != b[0] and max(a[1], b[1]) > 1.1 * min(a[1], b[1])]
    return len(pairs), sum((a[2] < b[2]) == (a[1] < b[1]) for a, b in pairs)


def cases(summary: list[dict[str, str]]) -> list[dict[str, str]]:
    """The nine cases of docs/explanation/accuracy.md: a split of accuracy.csv or a row of judged.csv for each."""
    rows = {row["key"]: row for row in (*summary, *read("judged"))}
    return [{"key": key, "case": case, **{column: rows[key][column] for column in ("mean", "inside", "width")}}
            for key, case in CASES.items()]


def accuracy() -> list[dict[str, str]]:
    intervals = {row["split"]: row for row in read("intervals")}
    found = []
    for split in SPLITS:
        rows = read(split)
        parts = {split: rows}
        if split in ("random", "families", "software"):
            parts.update({f"{split}_{layout}": [row for row in rows if row["layout"] == layout] for layout in ("nchw", "nhwc")})
        for key, part in parts.items():
            interval = intervals.get(key, {"inside": "", "width": ""})
            found.append({"key": key, **errors(part), "inside": interval["inside"], "width": interval["width"]})
    return found


def accuracy_by_fold(split: str) -> list[dict[str, str]]:
    rows = read(split)
    return [errors([row for row in rows if row["fold"] == fold]) for fold in dict.fromkeys(row["fold"] for row in rows)]


def baselines() -> list[dict[str, str]]:
    """The published method with the smallest mean error on the folds of each split, and MDOT as published."""
    found = []
    for split in ("random", "families", "software", "gpus"):
        rows = read(split)
        means = {name: errors(rows, name) for name in rows[0] if name not in (*LABEL, "mdot", "trees")}
        best = min(means, key=lambda name: float(means[name]["mean"]))
        own, published = float(errors(rows)["mean"]), means["mdot_as_published"]
        found.append({"key": split, "best": TITLES[best], "mean": means[best]["mean"], "median": means[best]["median"],
                      "gain": f"{100 * (1 - own / float(means[best]['mean'])):.0f}", "published_mean": published["mean"],
                      "published_median": published["median"]})
    return found


def memory_row(key: str, ratios: list[float]) -> dict[str, str]:
    percent = [100 * abs(ratio - 1) for ratio in ratios]
    return {"key": key, "rows": str(len(ratios)), "mean": f"{statistics.fmean(percent):.2f}", "short": f"{statistics.fmean(percent):.1f}",
            "worst": f"{max(percent):.1f}", "within_10": f"{100 * sum(each <= 10 for each in percent) / len(percent):.0f}",
            "ratio": f"{statistics.fmean(ratios):.2f}"}


def memory() -> list[dict[str, str]]:
    ratios: dict[str, list[float]] = {}
    for row in read("memory_networks"):
        ratio = int(row["predicted_bytes"]) / int(row["reference_bytes"])
        for key in (f"{row['network'].split('/')[0]} {row['precision']}", "networks"):
            ratios.setdefault(key, []).append(ratio)
    for row in (row for row in read("memory_published") if row["predicted_gib"]):
        method = next((f" {METHODS[name]}" for name in METHODS if name in row["row"].lower()), "")
        for key in (row["source"] + method if row["source"] == "litgpt" else row["source"], "published"):
            ratios.setdefault(key, []).append(float(row["predicted_gib"]) / float(row["measured_gib"]))
    return [memory_row(key, ratios[key]) for key in sorted(ratios)]


def ranges() -> list[dict[str, str]]:
    """The smallest and the largest value over all lengths, of each row in the tables of speed."""
    found = []
    for name in ("speed_fp32", "speed_bf16", "speed_gpu"):
        for row in read(name):
            values = sorted((value for column, value in row.items() if column not in ("key", "row")), key=float)
            found.append({"key": f"{name} {row['key']}", "least": values[0], "greatest": values[-1]})
    return found


def text(rows: list[dict[str, str]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def main() -> int:
    pairs, right = ordered_pairs(read("gpus"))
    families = [float(row["mean"]) for row in accuracy_by_fold("families")]
    figures = [{"key": "pairs", "value": str(pairs)}, {"key": "pairs_in_order", "value": f"{100 * right / pairs:.0f}"},
               {"key": "predictor_kb", "value": f"{(FOLDER.parent / 'predictor.onnx').stat().st_size / 1000:.0f}"},
               {"key": "family_least", "value": f"{min(families):.0f}"}, {"key": "family_greatest", "value": f"{max(families):.0f}"}]
    summary = accuracy()
    summaries = {"accuracy": summary, "cases": cases(summary), "baselines": baselines(), "memory": memory(), "figures": figures,
                 "ranges": ranges()}
    differing = []
    for name, rows in summaries.items():
        path = FOLDER / f"{name}.csv"
        if "--check" not in sys.argv:
            path.write_text(text(rows))
        elif not path.exists() or path.read_text() != text(rows):
            differing.append(path.name)
    for name in differing:
        print(f"{name} differs from the tables; run weights/results/summarise.py", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
