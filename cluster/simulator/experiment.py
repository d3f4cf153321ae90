#!/usr/bin/env python3
"""Experiments with many simulations: mdot-figure4, mdot-cold-start and mdot-backfill are names of this file.

Each one runs mdot-simulate on windows that lie evenly along each trace, and writes PREFIX.md and PREFIX.json, which
draw.py draws. mdot-simulate is the program beside this file's name, that of MDOT_SIMULATE, or the one on PATH. Only the
standard library is needed. An arm is a policy with an estimate; random arms run once per seed.

  mdot-figure4     the survey's figure 4: shortest remaining service first (SRSF) with mispredicted durations
  mdot-cold-start  estimates that start without knowledge and learn from completed jobs
  mdot-backfill    sources of time limits under backfill
"""
import argparse
import collections
import concurrent.futures
import csv
import difflib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

# 97.5 % quantiles of Student's t for 1 … 30 degrees of freedom. Beyond 30 the normal distribution is used, with an
# error of at most 4 %.
QUANTILES = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
             2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042]


class Failure(Exception):
    """An experiment that cannot be run, with the reason."""


# ---- Means over windows ----------------------------------------------------------------------------------------------

Band = collections.namedtuple("Band", "mean low high")


def band_of(values):
    """Returns mean and 95 % confidence interval by Student's t. With one value, the interval is that value."""
    count, mean, half = len(values), sum(values) / len(values), 0
    if count > 1:
        t = QUANTILES[count - 2] if count - 1 <= len(QUANTILES) else 1.96
        half = t * math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1) / count)
    return Band(mean, mean - half, mean + half)


def ratio_band(ratios):
    """The same for ratios, with their geometric mean."""
    return Band(*map(math.exp, band_of([math.log(ratio) for ratio in ratios])))


# ---- Simulations -----------------------------------------------------------------------------------------------------

def find_simulator():
    beside = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "mdot-simulate")
    found = os.environ.get("MDOT_SIMULATE") or (beside if os.path.exists(beside) else shutil.which("mdot-simulate"))
    if found is None:
        raise Failure("there is no mdot-simulate; name it with MDOT_SIMULATE")
    return found


def simulate(arguments, per_job=None):
    """Runs mdot-simulate and returns its JSON."""
    if per_job is not None:
        arguments = [*arguments, "--per-job", per_job]
    run = subprocess.run([find_simulator(), *arguments, "--json"], capture_output=True, check=False)
    if run.returncode != 0:
        message = run.stderr.decode(errors="replace").partition("\n")[0].removeprefix("mdot-simulate: ")
        raise Failure(message or f"mdot-simulate ended with status {run.returncode}")
    return json.loads(run.stdout)


def run_all(tasks, function, workers):
    """Returns the function's results, one for each task. The simulations run on `workers` cores."""
    show = sys.stderr.isatty()
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(function, task) for task in tasks]
        try:
            for done, _ in enumerate(concurrent.futures.as_completed(futures), 1):
                if show:
                    print(f"\r{done} of {len(tasks)} simulations", end="", file=sys.stderr, flush=True)
            if show:
                print("\r\033[K", end="", file=sys.stderr)
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()


def window_arguments(setup, trace, window, load):
    arguments = [setup.traces[trace], "--gpus", str(setup.gpus), "--window",
                 f"{window + 1}/{setup.windows}:{setup.jobs}"]
    return arguments + (["--scale-load", f"{load:.17g}"] if load > 0 else [])


# ---- Predictions -----------------------------------------------------------------------------------------------------

def read_predictions(path):
    """Returns predicted over measured step time of each network, by predictor: network,…,step_ms,PREDICTOR,…."""
    try:
        with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            lines = csv.reader(file)
            rows = ([field.strip() for field in row] for row in lines if row and not row[0].startswith("#"))
            header = next(rows, [])
            for name in ("network", "step_ms"):
                if name not in header:
                    raise Failure(f"{path}: there is no column {name}")
            label = header.index("step_ms")
            factors = {name: [] for name in header[label + 1:]}
            if not factors:
                raise Failure(f"{path}: the table lacks a predictor column")
            for row in rows:
                step_ms, *predicted_ms = [float(field) for field in row[label:]]
                if len(predicted_ms) != len(factors) or not all(0 < ms < math.inf for ms in (step_ms, *predicted_ms)):
                    raise ValueError
                for name, value in zip(factors, predicted_ms):
                    factors[name].append(value / step_ms)
    except (ValueError, TypeError) as error:
        raise Failure(f"{path}:{lines.line_num}: expected a positive time in step_ms and in each column behind it") \
            from error
    if not next(iter(factors.values())):
        raise Failure(f"{path}: holds no networks")
    return factors


def mean_error(factors):
    return sum(abs(factor - 1) for factor in factors) / len(factors)


# ---- mdot-figure4 and mdot-cold-start --------------------------------------------------------------------------------

class Arm:
    """A policy with an estimate. `error` is the mean error of the estimate; below 0: unknown."""

    def __init__(self, label, policy, estimate=(), error=0.0, is_random=False):
        self.label, self.policy, self.estimate = label, policy, list(estimate)
        self.error, self.is_random = error, is_random


def figure4_arms(setup):
    arms = [Arm("SRSF, exact", "srsf")]
    for name, options in (("step times", []), ("totals", ["--errors", "total"])):
        arms += [Arm(f"SRSF, {name} off by {100 * error:.0f} %", "srsf",
                     ["--estimate", f"error:{error},{setup.error_model}", *options], error, True)
                 for error in (.1, .25, .5, .75)]
    arms += [Arm(f"SRSF, {name}", "srsf", ["--predictions", setup.predictions, "--predicted-by", name],
                 mean_error(factors), True) for name, factors in setup.factors.items()]
    return arms + [Arm("LAS, continuous", "las"), Arm("LAS, three levels", "dlas"), Arm("FIFO that skips", "fjf"),
                   Arm("FIFO", "fifo")]


def cold_start_arms(setup):
    if "mdot" not in setup.factors:
        raise Failure("--predictions must name a table with the column mdot")
    predicted = ["--predictions", setup.predictions]
    return [Arm("SRSF, exact", "srsf"),
            Arm("SRSF, cold mdot", "srsf", predicted, mean_error(setup.factors["mdot"]), True),
            Arm("SRSF, mdot that learns", "srsf", [*predicted, "--learn"], -1, True),
            Arm("SRSF, history", "srsf", ["--estimate", "history"], -1),
            Arm(f"SRSF, mdot for {100 * setup.known:.0f} %, else history", "srsf",
                [*predicted, "--learn", "--known", f"{setup.known:.17g}"], -1, True),
            Arm("SRSF, rolling means", "srsf", ["--estimate", "rolling"], -1),
            Arm("SRSF, last two", "srsf", ["--estimate", "last-two"], -1),
            Arm("LAS, continuous", "las", error=-1), Arm("FIFO that skips", "fjf", error=-1)]


# The mean completion time of one window under one arm, and of the jobs in each tenth by submission.
Cell = collections.namedtuple("Cell", "mean_jct_s tenths_s load")


def run_arm(setup, trace, window, load, arm, seed):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "jobs.csv")
        result = simulate(window_arguments(setup, trace, window, load) + arm.estimate +
                          ["--policy", arm.policy, "--seed", str(seed)], path)
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            jct_s = [float(row["jct_s"]) for row in csv.DictReader(file)]
    bounds = [part * len(jct_s) // 10 for part in range(11)]
    tenths_s = [sum(jct_s[i:j]) / (j - i) if j > i else math.nan for i, j in zip(bounds, bounds[1:])]
    return Cell(sum(jct_s) / len(jct_s), tenths_s, result["load"])


class Comparison:
    """The cells of all arms in all windows, and their bands relative to the first arm in the same window."""

    def __init__(self, setup, arms):
        self.setup, self.arms, self.loads = setup, arms, [0, setup.load]
        tasks = [(trace, window, load, arm, seed)
                 for load in self.loads for trace in setup.traces for window in range(setup.windows) for arm in arms
                 for seed in range(1, (setup.seeds if arm.is_random else 1) + 1)]
        by_arm = collections.defaultdict(list)
        for task, cell in zip(tasks, run_all(tasks, lambda task: run_arm(setup, *task), setup.workers)):
            by_arm[task[:4]].append(cell)
        mean = lambda values: sum(values) / len(values)
        self.cells = {key: Cell(mean([cell.mean_jct_s for cell in cells]),
                                [mean(tenth) for tenth in zip(*(cell.tenths_s for cell in cells))], cells[0].load)
                      for key, cells in by_arm.items()}

    def windows(self, load, trace, arm):
        """The cells of an arm in the windows of one trace, or of all traces, each with the exact arm's cell."""
        return [(self.cells[name, window, load, arm], self.cells[name, window, load, self.arms[0]])
                for name in ([trace] if trace in self.setup.traces else self.setup.traces)
                for window in range(self.setup.windows)]

    def ratio(self, load, trace, arm):
        return ratio_band([cell.mean_jct_s / exact.mean_jct_s for cell, exact in self.windows(load, trace, arm)])

    def hours(self, load, trace, arm):
        return band_of([cell.mean_jct_s / 3600 for cell, _ in self.windows(load, trace, arm)]).mean

    def tenth(self, load, trace, arm, part):
        return ratio_band([cell.tenths_s[part] / exact.tenths_s[part]
                           for cell, exact in self.windows(load, trace, arm)]).mean

    def table(self):
        setup, names = self.setup, [*self.setup.traces, "all"]
        loads = "; ".join(f"{trace} " + ", ".join(f"{self.cells[trace, window, 0, self.arms[0]].load:.1f}"
                                                  for window in range(setup.windows)) for trace in setup.traces)
        out = ["Each ratio is a mean completion time divided by that of SRSF with exact durations in the same window. "
               "It is the geometric\nmean over windows, with its 95 % confidence interval (Student's t). The last "
               f"columns are mean completion times in hours.\nWe ran {setup.windows} windows of {setup.jobs} jobs of "
               f"each trace on {setup.gpus} GPUs, with {setup.seeds} seeds.\n\nLoads of the unmodified windows: "
               f"{loads}.\n"]
        for load in self.loads:
            out += [f"\n### At load {load:.2g}\n\n" if load > 0 else "\n### Unmodified traces\n\n",
                    "| arm | mean error |", *(f" {name} |" for name in names),
                    *(f" {name}, h |" for name in setup.traces),
                    "\n| --- | --- |" + " --- |" * (2 * len(setup.traces) + 1) + "\n"]
            for arm in self.arms:
                is_blind = arm.policy != "srsf"
                out.append(f"| {arm.label} |" + (" – |" if is_blind or arm.error < 0 else f" {100 * arm.error:.1f} % |"))
                for name in names:
                    band = self.ratio(load, name, arm)
                    out.append(f" {band.mean:.3f} ({band.low:.3f}–{band.high:.3f}) |")
                out += [f" {self.hours(load, name, arm):.2f} |" for name in setup.traces] + ["\n"]
        return "".join(out)

    def json(self):
        rows = []
        for load in self.loads:
            for name in [*self.setup.traces, "all"]:
                for arm in self.arms:
                    band = self.ratio(load, name, arm)
                    row = (f'{{"trace": {quoted(name)}, "load": {load:.6g}, "arm": {quoted(arm.label)}, '
                           f'"policy": "{arm.policy}", "error": {arm.error:.6g}, "ratio": {band.mean:.6f}, '
                           f'"ratio_low": {band.low:.6f}, "ratio_high": {band.high:.6f}, '
                           f'"mean_jct_h": {self.hours(load, name, arm):.6f}')
                    if name in self.setup.traces:
                        times = ", ".join(f"{cell.mean_jct_s:.3f}" for cell, _ in self.windows(load, name, arm))
                        tenths = ", ".join(f"{self.tenth(load, name, arm, part):.4f}" for part in range(10))
                        row += f', "windows_mean_jct_s": [{times}], "tenths_ratio": [{tenths}]'
                    rows.append(f"    {row}}}")
        setup = self.setup
        return (f'{{"gpus": {setup.gpus}, "windows": {setup.windows}, "jobs": {setup.jobs}, "seeds": {setup.seeds},\n'
                '  "results": [\n' + ",\n".join(rows) + "\n  ]}\n")


# ---- mdot-backfill ---------------------------------------------------------------------------------------------------

POLICIES = {"FIFO": ["fifo"], "EASY": ["easy"], "conservative": ["conservative"],
            "EASY, short jobs first": ["easy", "--priority", "1000,0,0,10000"]}
# Limits as users request them, the partition's maximum for all jobs, limits as cluster/slurm sets them, where jobs are
# cut off, plans by predictions with the requested limits, and true durations.
SOURCES = ["requested", "maximum", "mdot, binding", "mdot, planned", "exact"]
MARGIN, STARTUP_S = 1.1, 600  # the defaults of cluster/slurm


def source_arguments(setup, source):
    predicted = ["--predictions", setup.predictions, "--predicted-by", setup.predictor]
    drawn = ["--user-limits", f"{setup.most_limit:.17g}"]
    return {"requested": [*drawn, "--estimate", "limit"],
            "maximum": [drawn[0], drawn[1] + ",all", "--estimate", "limit"],
            "mdot, binding": [*drawn, *predicted, "--limits", f"{MARGIN * setup.upper:.17g},{STARTUP_S}"],
            "mdot, planned": drawn + predicted,
            "exact": drawn}[source]


class Backfill:
    """The results of every policy with every source of limits. Ratios are to requested limits under the same policy in
    the same window."""

    def __init__(self, setup):
        self.setup = setup
        if setup.predictor not in setup.factors:
            raise Failure(f'the predictions have no column "{setup.predictor}"; name one with --predictor')
        ratios = sorted(1 / factor for factor in setup.factors[setup.predictor])
        setup.upper = ratios[int(.95 * (len(ratios) - 1))]  # true over predicted step time
        tasks = [(load, trace, window, policy, source) for load in setup.loads for trace in setup.traces
                 for window in range(setup.windows) for policy in POLICIES for source in SOURCES]
        self.cells = dict(zip(tasks, run_all(tasks, self.run, setup.workers)))

    def run(self, task):
        load, trace, window, policy, source = task
        seed = self.setup.seed * 1000003 + list(self.setup.traces).index(trace) * 1009 + window
        return simulate(window_arguments(self.setup, trace, window, load) + source_arguments(self.setup, source) +
                        ["--policy", *POLICIES[policy], "--seed", str(seed)])["results"][0]

    def windows(self, load, policy, source):
        return [self.cells[load, trace, window, policy, source] for trace in self.setup.traces
                for window in range(self.setup.windows)]

    def table(self):
        setup = self.setup
        out = ["# Time limits under backfill\n\n"
               f"Windows of {setup.jobs} jobs on {setup.gpus} GPUs, {setup.windows} of each trace. Ratios are to "
               "requested limits under the same policy in the\nsame window: geometric means with 95 % confidence over "
               "windows. Other values are means over windows. Requested limits\nare the trace's, or drawn: used part "
               f"uniform, rounded up to popular values, at most {setup.most_limit / 3600:g} h. The 95 % quantile of "
               f"true\nover predicted step times is {setup.upper:.3f}.\n"]
        for load in setup.loads:
            out.append(f"\n## Load {load:g}\n\n| policy | limits | wait, ratio | completion, ratio | slowdown, ratio | "
                       "wait h | completion h | slowdown | utilisation | cut off | GPU time lost |\n" +
                       "|" + " --- |" * 11 + "\n")
            for policy in POLICIES:
                for source in SOURCES:
                    cells, requested = self.windows(load, policy, source), self.windows(load, policy, "requested")
                    out.append(f"| {policy} | {source} |")
                    for measure, plus in MEASURES.items():
                        band = ratio_band([(cell[measure] + plus) / (other[measure] + plus)
                                           for cell, other in zip(cells, requested)])
                        out.append(" 1 |" if source == "requested" else
                                   f" {band.mean:.3f} ({band.low:.3f}–{band.high:.3f}) |")
                    mean = lambda value: sum(map(value, cells)) / len(cells)
                    held_h = lambda cell: cell["utilisation"] * cell["makespan_s"] * setup.gpus / 3600
                    lost = mean(lambda cell: cell["lost_gpu_h"] / held_h(cell) if held_h(cell) > 0 else 0)
                    out.append(f" {mean(lambda cell: cell['mean_wait_s']) / 3600:.2f} | "
                               f"{mean(lambda cell: cell['mean_jct_s']) / 3600:.2f} | "
                               f"{mean(lambda cell: cell['mean_bounded_slowdown']):.2f} | "
                               f"{100 * mean(lambda cell: cell['utilisation']):.1f} % | "
                               f"{100 * mean(lambda cell: cell['cut_off'] / cell['jobs']):.2f} % | {100 * lost:.2f} % |\n")
        return "".join(out)

    def json(self):
        setup = self.setup
        rows = [f' {{"load": {load:g}, "trace": {quoted(trace)}, "window": {window}, "policy": "{policy}", '
                f'"limits": "{source}", "mean_wait_s": {cell["mean_wait_s"]:.8g}, "mean_jct_s": '
                f'{cell["mean_jct_s"]:.8g}, "mean_bounded_slowdown": {cell["mean_bounded_slowdown"]:.6g}, '
                f'"p95_jct_s": {cell["p95_jct_s"]:.8g}, "utilisation": {cell["utilisation"]:.5f}, '
                f'"cut_off": {cell["cut_off"]}, "lost_gpu_h": {cell["lost_gpu_h"]:.6g}}}'
                for (load, trace, window, policy, source), cell in self.cells.items()]
        return (f'{{"gpus": {setup.gpus}, "windows": {setup.windows}, "jobs": {setup.jobs}, "most_limit_s": '
                f'{setup.most_limit:g}, "upper": {setup.upper:.6g}, "cells": [\n' + ",\n".join(rows) + "\n]}\n")


# Measures of the ratios, with what is added to both sides: a second, so that an empty queue has a ratio.
MEASURES = {"mean_wait_s": 1, "mean_jct_s": 0, "mean_bounded_slowdown": 0}


# ---- Command lines ---------------------------------------------------------------------------------------------------

def quoted(text):
    return json.dumps(text, ensure_ascii=False)


def printable(text):
    return "".join(char if char.isprintable() else "?" for char in text)


def say(program, text):
    """Writes to stdout, and ends the program if that fails."""
    try:
        print(text, end="", flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python would try again at the end
        sys.exit(f"{program}: cannot write the output: {error.strerror}")


class ShowVersion(argparse.Action):
    """Prints the version of mdot-simulate, of which all these programs are a part."""

    def __call__(self, parser, *_):
        try:
            run = subprocess.run([find_simulator(), "--version"], capture_output=True, check=True, text=True)
        except (Failure, OSError, subprocess.CalledProcessError) as error:
            sys.exit(f"{parser.prog}: {printable(str(error))}")
        say(parser.prog, run.stdout.replace("mdot-simulate", parser.prog, 1))
        parser.exit()


class Parser(argparse.ArgumentParser):
    def __init__(self, **texts):
        super().__init__(**texts)
        self.add_argument("--version", action=ShowVersion, nargs=0, help="show the version")

    def parse_known_args(self, args=None, namespace=None):
        options = list(self._option_string_actions)
        for word in sys.argv[1:] if args is None else args:
            name = word.partition("=")[0]
            if name.startswith("--") and not any(option.startswith(name) for option in options):
                nearest = difflib.get_close_matches(name, options, 1)
                self.error(f"unknown option {name}" + (f" (did you mean {nearest[0]}?)" if nearest else ""))
        return super().parse_known_args(args, namespace)

    def error(self, message):
        super().error(printable(message))

    def print_help(self, file=None):
        say(self.prog, self.format_help())


def number(least, most, kind=float):
    def parse(text):
        value = float(text)
        if not least <= value <= most:
            raise ValueError
        return kind(value)

    parse.__name__ = f"number from {least:g} to {most:g}"  # for argparse's message
    return parse


def named_trace(text):
    name, _, path = text.partition("=")
    if not name or not path:
        raise argparse.ArgumentTypeError(f'traces are NAME=FILE: "{text}"')
    return name, path


def number_list(text):
    return [number(1e-3, 1e3)(part) for part in text.split(",")]


def parser_of(program, description, needs_predictions, gpus=64, compares=True):
    parser = Parser(prog=program, description=description)
    add = parser.add_argument
    add("traces", nargs="+", type=named_trace, metavar="NAME=TRACE.csv", help="traces that mdot-simulate reads")
    add("--out", required=True, metavar="PREFIX", help="PREFIX.md and PREFIX.json, which cluster/simulator/draw.py draws")
    add("--predictions", required=needs_predictions, metavar="FILE",
        help="network,…,step_ms,PREDICTOR,…: jobs are drawn from these networks")
    add("--gpus", type=number(1, 1 << 20, int), default=gpus, metavar="N", help=f"GPUs of the pool (default {gpus})")
    add("--windows", type=number(1, 32, int), default=5, metavar="N", help="windows of each trace (default 5)")
    add("--jobs", type=number(2, 1e7, int), default=10000, metavar="N", help="jobs of a window (default 10000)")
    add("--workers", type=number(1, 4096, int), default=len(os.sched_getaffinity(0)), metavar="N",
        help="simulations at the same time (default: one per core)")
    if compares:
        add("--load", type=number(1e-3, 1e3), default=.9, metavar="L",
            help="load to which submit times are stretched, beside unmodified windows (default 0.9)")
        add("--seeds", type=number(1, 1000, int), default=3, metavar="N",
            help="seeds of random errors and of the networks that jobs have (default 3)")
    return parser


def figure4(program):
    parser = parser_of(program, "Simulates shortest remaining service first under mispredicted durations, and policies "
                       "without durations, on windows of traces. Each predictor is an arm.", False)
    parser.add_argument("--error-model", choices=["normal", "two-point", "log-normal"], default="log-normal",
                        help="distribution of random errors with the stated mean (default log-normal, with median one)")
    return parser, lambda setup: Comparison(setup, figure4_arms(setup))


def cold_start(program):
    parser = parser_of(program, "Simulates shortest remaining service first with estimates that start cold and learn "
                       "from completed jobs: histories of durations, predictions of step times, and both. Compares "
                       "them with the truth and with policies without durations.", True)
    parser.add_argument("--known", type=number(0, 1), default=.5, metavar="SHARE",
                        help="share of jobs whose number of steps is known, for the arm of both (default 0.5)")
    return parser, lambda setup: Comparison(setup, cold_start_arms(setup))


def backfill(program):
    parser = parser_of(program, "Simulates first come, first served, EASY and conservative backfill with the time "
                       "limits that users request, the partition's maximum, limits as cluster/slurm sets them, plans "
                       "by predictions, and exact times.", True, 512, False)
    parser.add_argument("--predictor", default="mdot", metavar="NAME", help="column of the predictor (default mdot)")
    parser.add_argument("--loads", type=number_list, default=[.7, .9], metavar="L,…",
                        help="loads to which submit times are stretched (default 0.7,0.9)")
    parser.add_argument("--most-limit", type=number(1, 1e9), default=7 * 86400., metavar="S",
                        help="maximum of the partition, seconds (default 604800)")
    parser.add_argument("--seed", type=number(0, 1e9, int), default=1, metavar="N",
                        help="seed of drawn limits and networks (default 1)")
    return parser, Backfill


def check_output(path, inputs):
    if os.path.exists(path) and not os.path.isfile(path):
        raise Failure(f"{path}: not a regular file")
    for source in inputs:
        if os.path.exists(path) and source is not None and os.path.exists(source) and os.path.samefile(path, source):
            raise Failure(f"{path}: the output would replace its own input {source}")


def main():
    program = os.path.basename(sys.argv[0])
    programs = {"mdot-figure4": figure4, "mdot-cold-start": cold_start, "mdot-backfill": backfill}
    if program not in programs:
        sys.exit(__doc__)
    parser, run = programs[program](program)
    setup = parser.parse_intermixed_args()
    setup.traces = dict(setup.traces)
    try:
        for suffix in ("md", "json"):
            check_output(f"{setup.out}.{suffix}", [setup.predictions, *setup.traces.values()])
        setup.factors = read_predictions(setup.predictions) if setup.predictions is not None else {}
        results = run(setup)
        for suffix, content in (("md", results.table()), ("json", results.json())):
            with open(f"{setup.out}.{suffix}", "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(content)
    except (Failure, OSError) as error:
        sys.exit(f"{program}: {printable(str(error))}")


if __name__ == "__main__":
    main()
