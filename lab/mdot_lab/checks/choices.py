"""Judges mdot's choice of a layout by searches that others published.

    python3 -m mdot_lab.checks.choices --data FOLDER --graphs FOLDER [--model PREDICTOR.mdot] [--of SOURCE …] [--plan]
        [--wrong] [--out TABLE.csv]

FOLDER of --data holds training-points, measured-2026 and steps-2026; what is missing is skipped with a line. --graphs keeps the
networks; missing ones are made with PyTorch. A contest is one network with one length on one number of GPUs from one source and,
for Megatron's tests, one software release. A layout that a contest states several times counts once, with its median.
A layout's time is that of one sample, so that batches are comparable. Columns:

- refused: layouts that mdot answers with an error;
- too large: layouts that ran, and for which mdot's memory exceeds the GPU;
- pairs, right: ordered pairs whose measured times differ by more than 10 %, and the part in the right order;
- regret: the measured time of mdot's choice among the published layouts over the published best, mean and largest;
- best / mdot's: the predicted time of the published best over that of mdot's best layout, median and largest over the contests.
  `--plan` searches every division of the GPUs by tensor, pipeline and data parallelism and every micro-batch at the
  source's global batch, the options being those of the published best, for sources that searched themselves (SEARCHES);
  without it, mdot's best is the best published layout.

`--wrong` counts pairs and wrong orders by the options in which the layouts differ. Each source is judged alone, because vTrain
has most of all pairs. The exit status is 1 if less than 85 % of a source's pairs are in the right order, or if the median of
its last column is above 1.1. It is 77 if no data was found.

Sources: BLOOM's search on up to 384 A100 (rows whose table gives the network's width and depth; from 320 GPUs on, the
runs set CUDA_LAUNCH_BLOCKING=1, so that the host's time is added to the step), vTrain's GPT on 8 to 512 A100
(Megatron-DeepSpeed), InternEvo, torchtitan's ladders, Megatron's functional tests, Hugging Face's Trainer (micro-batches and
fused kernels), litgpt's ladders, xtuner's Qwen3-235B on 256 H800, and fsdp_qlora on two RTX 3090. Megatron-Bridge's recipes state
no two layouts of one network on equally many GPUs. litgpt's samples have different lengths: a micro-batch is taken as long as
Alpaca's longest of so many samples (mean 110 tokens).
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import re
import statistics
import sys
import warnings
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path
from typing import Any, Callable, Iterator, NamedTuple, Sequence

import mdot
from mdot import planning

from mdot_lab.checks import modern_steps
from mdot_lab.checks.memory import published, run_published
from mdot_lab.checks.memory.published import litgpt, llm_points, megatron
from mdot_lab.checks.memory.published.point import GIB, model
from mdot_lab.checks.points import decoders
from mdot_lab.predictor import graphs
from mdot_lab.predictor import published as training_points
from mdot_lab.predictor.labels import Network

DIFFERS, RIGHT_SHARE, MOST_SLOWER = 1.1, 0.85, 1.1
DEGREES = ("data_parallel", "tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel")
PASSES = ("batch", "micro_batches", "accumulate")
OPTIONS = {"tensor_parallel": "tp", "pipeline_parallel": "pp", "context_parallel": "cp", "expert_parallel": "ep",
           "sequence_parallel": "sp", "virtual_stages": "vpp", "zero": "ZeRO", "checkpoint": "recomputation"}
SEARCHES = ("BLOOM", "vTrain", "InternEvo", "torchtitan", "xtuner", "fsdp_qlora")
"""Sources that sought a fast layout. The others are functional tests, or choose the batch alone."""
KEPT = 20
"""Layouts of a plan that are judged again with the source's own conditions."""
ALPACA_LENGTHS = {1: 110, 2: 145, 4: 190, 8: 235}


class Layout(NamedTuple):
    contest: tuple[Any, ...]
    """Source, network, GPU model, GPUs and what else must be equal."""
    gpu: Any
    options: dict[str, Any]
    sample_ms: float
    network: Any = None
    """If the contest's networks differ, as in LoRA and QLoRA."""
    is_synchronous: bool = False
    """The host waits for each kernel (CUDA_LAUNCH_BLOCKING=1), so that its time adds to the GPU's."""

    @property
    def key(self) -> Any:
        return self.network or self.contest[1]


class Judged(NamedTuple):
    layout: Layout
    sample_ms: float
    """Predicted; 0: refused."""
    fits: bool
    refusal: str = ""


def workers(options: dict[str, Any]) -> int:
    """Data-parallel workers."""
    count = options.get("gpus", 1)
    for name in DEGREES[1:4]:
        count //= options.get(name) or 1
    return count


def samples(options: dict[str, Any]) -> int:
    """Samples of a step over all GPUs."""
    return options["batch"] * (options.get("accumulate") or 1) * workers(options)


def micro_batch(options: dict[str, Any]) -> int:
    return options["batch"] // (options.get("micro_batches") or 1)


# ---- Sources ---------------------------------------------------------------------------------------------------------


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as lines:
        yield from csv.DictReader(line for line in lines if not line.startswith("#"))


JEAN_ZAY = {"network": 5.0}
"""GB/s of a GPU to other nodes: four 100 Gb/s links for the eight GPUs of a node, of which collectives reach .8, as in mdot's
default."""
BLOCKING_GPUS = 320
"""From so many GPUs on, runs hang without CUDA_LAUNCH_BLOCKING=1 ("dealing with JZ hanging on the large model")."""
INCOMPARABLE = ("02-25", "02-28")
"""Days from which on the source forbids comparisons with earlier rows: placement on NUMA nodes, and another optimizer."""


def _end_blocks(layers: int, stages: int, notes: str) -> dict[str, int]:
    """Embedding and head count as layers from the last day on. Before, the last stage has the rest of an uneven division."""
    if stages > 1 and notes[:5] >= INCOMPARABLE[-1] and (layers + 2) % stages == 0:
        return dict.fromkeys(("first_stage_blocks", "last_stage_blocks"), (layers + 2) // stages - 1)
    rest = layers - (stages - 1) * -(-layers // stages)
    return {"last_stage_blocks": rest} if layers % stages and rest > 0 else {}


def bloom(path: Path) -> Iterator[Layout]:
    """Rows without width and depth have those that the same size has elsewhere, if they are the only ones."""
    rows = [row for row in _rows(path) if row["gpu"].startswith("A100")]
    widths = defaultdict(set)
    for row in rows:
        if (found := megatron.widths(row)) is not None:
            widths[row["size"]].add(found)
    for row in rows:
        if row["tp"] and int(row["dp"] or 1) * int(row["tp"]) * int(row["pp"] or 1) != int(row["gpus"]) or "GBS=" in row["near"]:
            continue    # the source contradicts itself: the product is not the GPUs, or the batch of the section is another one
        if megatron.widths(row) is None and not row["hidden"] and not row["layers"] and len(widths[row["size"]]) == 1:
            ((hidden, layers),) = widths[row["size"]]
            row |= {"hidden": str(hidden), "layers": str(layers)}
        has_memory = re.fullmatch(r"\d+GB", row["memory"])
        point = megatron.bigscience(row if has_memory else {**row, "memory": "0GB"})
        if point is None or point.model is None:
            continue
        ends = _end_blocks(dict(point.model.values)["n_layer"], point.options["pipeline_parallel"], row["notes"])
        options = {**point.options, **JEAN_ZAY, **ends, "framework": "megatron"}
        period = sum(row["notes"][:5] >= day for day in INCOMPARABLE)
        yield Layout(("BLOOM", point.model, row["gpu"], options["gpus"], period), row["gpu"], options,
                     1e3 * float(row["step_s"]) / samples(options), is_synchronous=options["gpus"] >= BLOCKING_GPUS)


def vtrain(path: Path) -> Iterator[Layout]:
    for point in training_points.points(path, {"VIA-Research/vTrain": decoders.vtrain}):
        yield Layout(("vTrain", point.network, point.gpu_model, point.gpus), point.gpu_model, point.options,
                     point.step_ms / samples(point.options))


def internevo(path: Path) -> Iterator[Layout]:
    for step in modern_steps.read([], [path], [], []):
        if step.publisher == "InternLM/InternEvo":
            yield Layout(("InternEvo", step.network, step.gpu, step.options["gpus"]), step.gpu, step.options,
                         step.step_ms / samples(step.options))


def torchtitan(path: Path) -> Iterator[Layout]:
    for row in _rows(path):
        if not row["source"].startswith("pytorch/torchtitan"):
            continue
        point = llm_points.torchtitan(row)
        options = {**point.options, "power_limit": 500, "framework": "pytorch"}
        ms = 1e3 * int(row["sequence"]) / float(row["throughput"]) / options["gpus"]
        yield Layout(("torchtitan", row["model"], row["sequence"], options["gpus"]), point.gpu, options, ms, point.model)


def tests(folder: Path) -> Iterator[Layout]:
    """Megatron's functional tests, Trainer's and SimuMax's rows."""
    for point in published.read(folder, folder.parent / "measured-2026"):
        if point.step_ms == 0 or point.model is None or point.source not in ("Megatron", "Trainer", "SimuMax"):
            continue
        options, lacking = run_published.expressible({**point.options, **point.optional})
        if lacking:
            continue
        if point.source == "SimuMax":
            options["framework"] = "megatron"
        release = point.name.split("; ")[2] if point.source == "Megatron" else ""
        same = dataclasses.replace(point.model, has_full_adapters=False) if point.source == "Trainer" else point.model
        yield Layout((point.source, same, point.gpu, options.get("gpus", 1), release), point.gpu, options,
                     point.step_ms / samples(options), point.model)


def litgpt_ladders(path: Path) -> Iterator[Layout]:
    for row in _rows(path):
        time = float(row["s_per_1000_micro_iterations"] or "nan") if row["s_per_1000_micro_iterations"] != "-" else 0
        point = litgpt.read(row)
        if not time > 0 or point is None or point.model is None or point.options.get("gpus", 1) > 1:
            continue
        batch = int(row["micro_batch"])
        network = dataclasses.replace(point.model, sequence=ALPACA_LENGTHS[batch])
        yield Layout(("litgpt", row["model"], point.gpu, 1), point.gpu, point.options, time / batch, network)


RECOMPUTED = {"none": "nothing", "select": "selective", "moe": "selective", "full": "blocks"}
H800_LINK = 160.0
"""GB/s that a collective reaches over NVLink: .8 of 200, half an H100's."""


def xtuner(path: Path) -> Iterator[Layout]:
    """Qwen3-235B-A22B with Megatron. "select" recomputes all but matmuls. Rows with DeepEP or an overlap of their own are left out:
    mdot has no option for them."""
    for row in _rows(path):
        text = row["parallel"]
        if not row["source"].startswith("InternLM/xtuner") or "235B" not in row["model"] or re.search("deepep|overlap|capacity", text):
            continue
        degrees = {name: int(value) for name, value in re.findall(r"(tp|ep|pp|vpp)(\d+)", text)}
        gpus, micro = int(row["gpus"]), int(row["micro_batch"])
        tensor, stages = degrees["tp"], degrees["pp"]
        data = gpus // (tensor * stages)
        experts = max(degrees["ep"] // tensor, 1)   # mdot divides experts by tp, too; here their own tensor parallelism is 1
        passes = int(row["global_batch"]) // (data * micro)
        options = modern_steps.MEGATRON | {
            "gpus": gpus, "nodes": gpus // 8, "precision": "mixed-bf16", "tensor_parallel": tensor, "pipeline_parallel": stages,
            "expert_parallel": experts, "link": H800_LINK, "virtual_stages": degrees.get("vpp", 1), "sequence_parallel": int(tensor > 1),
            "micro_batches": passes, "batch": passes * micro, "checkpoint": RECOMPUTED[row["recompute"]]}
        yield Layout(("xtuner", "qwen3-235b-a22b", "H800", gpus), "H100-SXM-80GB", options,
                     float(row["step_ms"]) / int(row["global_batch"]))


def fsdp_qlora(path: Path) -> Iterator[Layout]:
    for row in _rows(path):
        if not row["source"].startswith("AnswerDotAI/fsdp_qlora") or "3090" not in row["gpu"] or "Llama-2-7b" not in row["model"]:
            continue
        is_quantised = "QLoRA" in row["model"]
        length, batch = int(row["seq_or_size"]), int(row["micro_batch"])
        network = model("Llama", length, 64, litgpt.LLAMA_PRODUCTS[:-1], **litgpt.MODELS["llama-2-7b"][1])
        options = {"batch": batch, "gpus": 2, "link": "pcie", "precision": "bf16", "optimizer": "adamw", "checkpoint": "blocks",
                   "power_limit": 280, "zero": 0 if "no shard" in row["parallel"] else 3}
        if is_quantised:
            options["frozen_weights"] = "nf4"
        yield Layout(("fsdp_qlora", f"Llama-2-7b {length}", "RTX-3090", 2), "RTX-3090", options, float(row["step_ms"]) / (2 * batch),
                     network)


SOURCES: dict[str, tuple[str, Callable[[Path], Iterator[Layout]]]] = {
    "BLOOM": ("measured-2026/bigscience_steps.csv", bloom), "vTrain": ("training-points/training_points.csv", vtrain),
    "InternEvo": ("measured-2026/llm_points.csv", internevo), "torchtitan": ("measured-2026/llm_points.csv", torchtitan),
    "tests": ("steps-2026", tests), "litgpt": ("measured-2026/litgpt_finetuning.csv", litgpt_ladders),
    "xtuner": ("steps-2026/small_tables.csv", xtuner), "fsdp_qlora": ("steps-2026/small_tables.csv", fsdp_qlora)}


def read(data: Path, sources: Sequence[str]) -> list[Layout]:
    found: list[Layout] = []
    for name, (path, reader) in SOURCES.items():
        if sources and name not in sources:
            continue
        if (data / path).exists():
            found += reader(data / path)
        else:
            print(f"skipped: {data / path} is missing", file=sys.stderr)
    return found


# ---- Answers ---------------------------------------------------------------------------------------------------------


def contests(layouts: Sequence[Layout]) -> list[list[Layout]]:
    """The layouts of each contest, each once with its median. Contests with one layout are left out."""
    times: dict[tuple[Any, ...], dict[Any, list[Layout]]] = defaultdict(lambda: defaultdict(list))
    for layout in layouts:
        times[layout.contest][layout.key, tuple(sorted((k, str(v)) for k, v in layout.options.items()))].append(layout)
    merged = [[same[0]._replace(sample_ms=statistics.median(one.sample_ms for one in same)) for same in equal.values()]
              for equal in times.values()]
    return [contest for contest in merged if len(contest) > 1]


class Jobs:
    def __init__(self, folder: Path) -> None:
        self.folder, self.known = folder, {}

    def get(self, key: Any) -> mdot.Job:
        if key not in self.known:
            self.known[key] = self._read(key)
        return self.known[key]

    def _read(self, key: Any) -> mdot.Job:
        if isinstance(key, Network):
            path = self.folder / key.graph_file
            if not path.exists():
                graphs.build(key).save(path)
            return mdot.Job.load(path)
        if isinstance(key, str) and key not in modern_steps.SHAPES:
            return mdot.Job.read(key).with_length(4096)
        return modern_steps.job(key, self.folder)


def judge(layout: Layout, predictor: mdot.Predictor, jobs: Jobs) -> Judged:
    job = jobs.get(layout.key)
    try:
        answer = predictor.predict(job, layout.gpu, **layout.options)
        host_ms = predictor.explain(job, layout.gpu, **layout.options).host_busy_ms if layout.is_synchronous else 0
    except mdot.Error as error:
        return Judged(layout, 0, False, " ".join(str(error).split()))
    return Judged(layout, (answer.step_ms + host_ms) / samples(layout.options), bool(answer.fits))


def best_of_plan(best: Layout, predictor: mdot.Predictor, jobs: Jobs) -> float:
    """Predicted ms of a sample in the best layout with the options of `best`, at its global batch."""
    searched = (*DEGREES, *PASSES, "gpus", "nodes", "sequence_parallel", "first_stage_blocks", "last_stage_blocks")
    fixed = {"zero": 0, "checkpoint": "nothing", "virtual_stages": 1}
    fixed |= {name: value for name, value in best.options.items() if name not in searched}
    fixed |= {name: best.options.get(name, 1) for name in ("context_parallel", "expert_parallel")}
    gpus = best.options["gpus"]
    found = planning.search(predictor, jobs.get(best.key), best.gpu, gpus, global_batch=samples(best.options), node_gpus=min(8, gpus),
                            kept=KEPT, **fixed)
    times = []
    for row in found:
        chosen = {name: getattr(row.configuration, name) for name in (*DEGREES, *PASSES)}
        chosen = {name: value for name, value in chosen.items() if value}
        options = {name: value for name, value in best.options.items() if name not in searched} | chosen
        options |= {"gpus": gpus, "nodes": best.options.get("nodes", 1)}
        if "sequence_parallel" in best.options and options.get("tensor_parallel", 1) > 1:
            options["sequence_parallel"] = best.options["sequence_parallel"]
        one = judge(best._replace(options=options), predictor, jobs)
        times += [one.sample_ms] if one.sample_ms and one.fits else []
    return min(times, default=0)


def differences(one: Layout, other: Layout) -> Iterator[str]:
    """The options in which two layouts differ."""
    names = {name for layout in (one, other) for name in layout.options} - {*PASSES, "nodes", "data_parallel"}

    def value(layout: Layout, name: str) -> Any:
        """Absent options have their defaults."""
        return layout.options.get(name) or (1 if name.endswith(("_parallel", "_stages")) and name != "sequence_parallel" else 0)

    yield from (OPTIONS.get(name, name) for name in sorted(names) if value(one, name) != value(other, name))
    if micro_batch(one.options) != micro_batch(other.options):
        yield "micro-batch"
    elif samples(one.options) != samples(other.options):
        yield "global batch"
    if one.key != other.key:
        yield "program"


class Line(NamedTuple):
    source: str
    contests: int
    layouts: int
    refused: int
    too_large: int
    pairs: int
    right: int
    regrets: list[float]
    slower: list[float]


def pairs(contest: Sequence[Judged]) -> Iterator[tuple[Judged, Judged]]:
    """Those whose measured times differ; the measured faster one first."""
    known = sorted((one for one in contest if one.sample_ms), key=lambda one: one.layout.sample_ms)
    for fast, slow in combinations(known, 2):
        if slow.layout.sample_ms > DIFFERS * fast.layout.sample_ms:
            yield fast, slow


def is_right(fast: Judged, slow: Judged) -> bool:
    return fast.sample_ms < slow.sample_ms


def line(source: str, judged: Sequence[Sequence[Judged]], plans: dict[int, float]) -> Line:
    """`plans`: mdot's best time by the contest's place."""
    every = [one for contest in judged for one in contest]
    ordered = [is_right(*pair) for contest in judged for pair in pairs(contest)]
    regrets, slower = [], []
    for place, contest in enumerate(judged):
        known = [one for one in contest if one.sample_ms]
        if len(known) < 2:
            continue
        best, chosen = (min(known, key=key) for key in (lambda one: one.layout.sample_ms, lambda one: one.sample_ms))
        regrets.append(chosen.layout.sample_ms / best.layout.sample_ms)
        slower.append(best.sample_ms / min(plans.get(place) or chosen.sample_ms, chosen.sample_ms))
    return Line(source, len(judged), len(every), sum(not one.sample_ms for one in every),
                sum(bool(one.sample_ms) and not one.fits for one in every), len(ordered), sum(ordered), regrets, slower)


HEADING = ("| source | contests | layouts | refused | too large | pairs | right, % | regret, mean | largest | best / mdot's, median | "
           "largest | within 10 %, % |\n" + "| --- " * 12 + "|")


def text(row: Line) -> str:
    def of(values: list[float], way: Callable[[list[float]], float]) -> str:
        return f"{way(values):.2f}" if values else ""

    near = f"{100 * sum(x <= MOST_SLOWER for x in row.slower) / len(row.slower):.0f}" if row.slower else ""
    right = f"{100 * row.right / row.pairs:.1f}" if row.pairs else ""
    return (f"| {row.source} | {row.contests} | {row.layouts} | {row.refused} | {row.too_large} | {row.pairs} | {right} | "
            f"{of(row.regrets, statistics.mean)} | {of(row.regrets, max)} | {of(row.slower, statistics.median)} | "
            f"{of(row.slower, max)} | {near} |")


def wrong(judged: Sequence[Sequence[Judged]]) -> str:
    """Wrong orders by source and the options that differ."""
    total, bad = Counter(), Counter()
    for contest in judged:
        for fast, slow in pairs(contest):
            key = (fast.layout.contest[0], ", ".join(differences(fast.layout, slow.layout)) or "nothing")
            total[key] += 1
            bad[key] += not is_right(fast, slow)
    rows = sorted(total, key=lambda key: -bad[key])
    return "\n".join(f"| {source} | {options} | {total[source, options]} | {bad[source, options]} |" for source, options in rows)


def write(path: Path, judged: Sequence[Sequence[Judged]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as lines:
        out = csv.writer(lines)
        out.writerow(["contest", "source", "gpus", "options", "measured_ms", "predicted_ms", "fits", "refusal"])
        for place, contest in enumerate(judged):
            for one in sorted(contest, key=lambda one: one.layout.sample_ms):
                options = ";".join(f"{name}={value}" for name, value in sorted(one.layout.options.items()))
                out.writerow([place, one.layout.contest[0], one.layout.contest[3], options, f"{one.layout.sample_ms:.5g}",
                              f"{one.sample_ms:.5g}", one.fits, one.refusal])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--graphs", type=Path, required=True, help="folder of .job files; missing ones are made")
    parser.add_argument("--model", type=Path, help="artefact of a predictor (default: the shipped one)")
    parser.add_argument("--of", nargs="*", default=[], choices=SOURCES, help="sources (default: all)")
    parser.add_argument("--plan", action="store_true", help="search mdot's own best layout for each contest")
    parser.add_argument("--wrong", action="store_true", help="count wrong orders by the options that differ")
    parser.add_argument("--out", type=Path, help="write each layout's times as CSV")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    predictor = mdot.Predictor(options.model) if options.model else mdot.Predictor()
    jobs = Jobs(options.graphs)
    judged = [[judge(layout, predictor, jobs) for layout in contest] for contest in contests(read(options.data, options.of))]
    if not judged:
        print("choices: no data was found", file=sys.stderr)
        return 77
    rows = []
    print(HEADING)
    for source in sorted({contest[0].layout.contest[0] for contest in judged}):
        of_source = [contest for contest in judged if contest[0].layout.contest[0] == source]
        plans = {}
        for place, contest in enumerate(of_source if options.plan and source in SEARCHES else []):
            best = min((one for one in contest if one.sample_ms), key=lambda one: one.layout.sample_ms, default=None)
            if best is not None and best.layout.options.get("gpus", 1) > 1:
                plans[place] = best_of_plan(best.layout, predictor, jobs)
        rows.append(line(source, of_source, plans))
        print(text(rows[-1]), flush=True)
    refusals = Counter((one.layout.contest[0], one.refusal) for contest in judged for one in contest if one.refusal)
    for (source, reason), count in refusals.most_common():
        print(f"refused {count} times: {source}: {reason}")
    if options.wrong:
        print("\n| source | options that differ | pairs | wrong |\n| --- | --- | --- | --- |\n" + wrong(judged))
    if options.out:
        write(options.out, judged)
    right, total = sum(row.right for row in rows), sum(row.pairs for row in rows)
    shares = [row.right / row.pairs for row in rows if row.pairs]
    print(f"\n{right} of {total} pairs are in the right order ({100 * right / max(total, 1):.1f} %); "
          f"mean over sources {100 * statistics.mean(shares or [0]):.1f} %")
    is_met = min(shares, default=1) >= RIGHT_SHARE and all(statistics.median(row.slower) <= MOST_SLOWER for row in rows if row.slower)
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
