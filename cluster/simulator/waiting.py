#!/usr/bin/env python3
"""How much waiting would mdot's time limits save? mdot-waiting is a name of this file.

Simulates a cluster's accounting (`sacct -P`, or any trace of mdot-simulate) under backfill with the requested limits,
with mdot's, and with exact durations, and writes PREFIX.md, PREFIX.json and PREFIX.svg. A limit by mdot is the predicted
duration times a margin, plus the startup time, and never longer than the requested one. Jobs without a limit of their own
(UNLIMITED, Partition_Limit) have the longest one. Failed, cancelled and timed-out jobs keep their requests, because their
plans are unknown. Waiting is all time in which a job does not progress: a job that its limit cuts off starts anew.
"""
import argparse
import csv
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile

import draw
import experiment

SOURCES = {"requested": "#b0b0b0", "mdot": "#1a7f37", "exact": "#c8501e"}
CLASSES = [(1, 1), (2, 4), (5, 8), (9, 1 << 20)]  # GPUs


def read_jobs(trace):
    """Returns the jobs as mdot-durations reads them: id, GPUs, duration, outcome (0: completed) and requested limit."""
    program = experiment.find_simulator().removesuffix("simulate") + "durations"
    run = subprocess.run([program, trace], capture_output=True, check=False)
    if run.returncode != 0:
        raise experiment.Failure(run.stderr.decode(errors="replace").strip().removeprefix("mdot-durations: "))
    jobs = [(row["job_id"], int(row["gpus"]), float(row["duration_s"]), int(row["outcome"]), float(row["limit_s"]))
            for row in csv.DictReader(run.stdout.decode(errors="surrogateescape").splitlines())]
    longest_s = max((job[4] for job in jobs), default=0)
    if longest_s == 0:
        raise experiment.Failure(f"{trace}: no job requests a time limit; export the column Timelimit of sacct, or limit_s")
    return [(*job[:4], max(job[4] or longest_s, job[2])) for job in jobs]


def spread_of(error):
    """Standard deviation of the logarithm of log-normal factors with median one and this mean error."""
    low, high = 0, 10
    for _ in range(60):
        middle = (low + high) / 2
        is_small = math.exp(middle ** 2 / 2) * math.erf(middle / math.sqrt(2)) < error
        low, high = (middle, high) if is_small else (low, middle)
    return low


def limits_of(jobs, source, setup, seed):
    """Returns each job's limit over its duration."""
    draws, spread = random.Random(seed), spread_of(setup.error)
    margin = setup.margin * math.exp(1.6449 * spread)  # the upper end of the prediction's 90 % interval
    for name, _, duration_s, outcome, limit_s in jobs:
        predicted_s = duration_s * math.exp(spread * draws.gauss(0, 1))
        uses_mdot = draws.random() < setup.share and outcome == 0
        if source == "mdot" and uses_mdot:
            limit_s = min(limit_s, margin * predicted_s + setup.startup)
        yield name, (1 if source == "exact" else limit_s / duration_s)


def simulate(setup, jobs, source, seed):
    """Returns the waiting time of each job by name, and the share of cut-off jobs."""
    with tempfile.TemporaryDirectory() as folder:
        factors, results = os.path.join(folder, "factors.csv"), os.path.join(folder, "jobs.csv")
        with open(factors, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            csv.writer(file).writerows([("job_id", "factor"), *((name, f"{max(factor, 1e-9):.17g}") for name, factor in
                                                                limits_of(jobs, source, setup, seed))])
        cluster = ["--cluster", setup.cluster] if setup.cluster else ["--gpus", str(setup.gpus)]
        result = experiment.simulate([setup.trace, *cluster, "--policy", setup.policy, "--factors", factors,
                                      "--errors", "total", "--limits", "1.000001", *setup.options], results)
        duration_s = {job[0]: job[2] for job in jobs}
        with open(results, encoding="utf-8", errors="surrogateescape", newline="") as file:
            waits = {row["job_id"]: max(0, float(row["jct_s"]) - duration_s[row["job_id"]]) for row in csv.DictReader(file)}
    return waits, result["results"][0]["cut_off"] / max(1, len(waits))


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def summarise(setup, jobs):
    """Returns for each source: mean, median and P95 waiting hours, the cut-off share, and means by class of GPUs."""
    gpus, out = {job[0]: job[1] for job in jobs}, {}
    for source in SOURCES:
        runs = [simulate(setup, jobs, source, seed) for seed in range(1, (setup.seeds if source == "mdot" else 1) + 1)]
        if not runs[0][0]:
            raise experiment.Failure(f"{setup.trace}: no job ran")
        mean = lambda measure: statistics.fmean(measure(list(waits.values())) / 3600 for waits, _ in runs)
        hours = lambda low, high: [wait / 3600 for waits, _ in runs for name, wait in waits.items()
                                   if low <= gpus[name] <= high]
        classes = [hours(low, high) for low, high in CLASSES]
        out[source] = {"mean_h": mean(statistics.fmean), "median_h": mean(lambda w: quantile(w, .5)),
                       "p95_h": mean(lambda waits: quantile(waits, .95)), "cut_off": sum(cut for _, cut in runs) / len(runs),
                       "jobs": len(runs[0][0]), "classes_h": [statistics.fmean(c) if c else None for c in classes]}
    return out


def class_name(low, high):
    return f"{low} GPU" if high == 1 else f"over {low - 1} GPUs" if high > 8 else f"{low} to {high} GPUs"


def sentence(results):
    requested, ours = results["requested"]["mean_h"], results["mdot"]["mean_h"]
    change = "the same"
    if requested > 0:
        change = f"{100 * abs(1 - ours / requested):.0f} % {'less' if ours <= requested else 'more'}"
    return (f"{results['mdot']['jobs']} jobs waited {requested:.2f} h on average with the requested limits, and {ours:.2f} h "
            f"with mdot's: {change}. Exact durations: {results['exact']['mean_h']:.2f} h.")


def table(setup, results):
    rows = [f"| {source} | {r['mean_h']:.3f} | {r['median_h']:.3f} | {r['p95_h']:.3f} | {100 * r['cut_off']:.2f} % |"
            for source, r in results.items()]
    size = setup.cluster or f"{setup.gpus} GPUs"
    head = (f"# Waiting under time limits\n\n{sentence(results)}\n\nSimulated with {setup.policy} on {size}. Predicted durations "
            f"are wrong by {100 * setup.error:g} % in the mean, and\n{100 * setup.share:g} % of the completed jobs use mdot.\n")
    return "\n".join([head, "| limits | mean wait h | median h | P95 h | cut off |", "| --- " * 5 + "|", *rows, ""])


def figure(results):
    """Bars of the mean wait of all jobs, and by the number of GPUs."""
    groups = [("all jobs", [r["mean_h"] for r in results.values()])]
    groups += [(class_name(*bounds), [r["classes_h"][i] for r in results.values()]) for i, bounds in enumerate(CLASSES)
               if results["requested"]["classes_h"][i] is not None]
    left, top, height, width = 60, 84, 240, 130
    most = max(max(hours) for _, hours in groups) or 1
    out = draw.begin(left + len(groups) * width + 20, top + height + 48, left,
                     "Mean wait under backfill, hours, by time limits")
    for i, (source, colour) in enumerate(SOURCES.items()):
        out += [f'<rect x="{left + 130 * i}" y="40" width="12" height="12" fill="{colour}"/>',
                draw.text(left + 130 * i + 18, 50, source)]
    for place, (name, hours) in enumerate(groups):
        for i, (value, colour) in enumerate(zip(hours, SOURCES.values())):
            x, bar = left + place * width + 34 * i, height * value / most
            out += [f'<rect x="{x}" y="{top + height - bar:.1f}" width="30" height="{bar:.1f}" fill="{colour}"/>',
                    draw.text(x + 15, top + height - bar - 4, f"{value:.2f}", ' text-anchor="middle" font-size="9"')]
        out.append(draw.text(left + place * width + 49, top + height + 16, name, ' text-anchor="middle"'))
    return "\n".join([*out, f'<path d="M{left} {top + height}h{len(groups) * width - 28}" stroke="#888"/>', "</svg>", ""])


def parse(arguments):
    parser = experiment.Parser(prog="mdot-waiting", description=__doc__.split("\n\n")[1], epilog="OPTIONs behind -- go to "
                               "mdot-simulate, for example --priority or --window. The exit status is 0, or 1 with a reason.")
    number = experiment.number
    parser.add_argument("trace", metavar="TRACE", help="`sacct -aXP` with JobID, Submit, Elapsed, Timelimit, State, AllocTRES")
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--gpus", type=number(1, 1 << 20, int), metavar="N", help="GPUs of the cluster")
    size.add_argument("--cluster", metavar="FILE", help="node,type,gpus: one line per node")
    parser.add_argument("--out", required=True, metavar="PREFIX", help="PREFIX.md, PREFIX.json and PREFIX.svg")
    parser.add_argument("--policy", choices=["easy", "conservative", "fifo"], default="easy", help="default easy")
    parser.add_argument("--error", type=number(0, 5), default=.1, metavar="E",
                        help="mean error of predicted durations (default 0.1)")
    parser.add_argument("--share", type=number(0, 1), default=1, metavar="S",
                        help="part of the completed jobs that use mdot (default 1)")
    parser.add_argument("--margin", type=number(1, 10), default=experiment.MARGIN, metavar="Q",
                        help=f"limit over the prediction's upper end (default {experiment.MARGIN}, as in mdot.conf)")
    parser.add_argument("--startup", type=number(0, 1e6), default=experiment.STARTUP_S, metavar="S",
                        help=f"seconds added to each limit (default {experiment.STARTUP_S})")
    parser.add_argument("--seeds", type=number(1, 100, int), default=3, metavar="N", help="random errors (default 3)")
    end = arguments.index("--") if "--" in arguments else len(arguments)
    setup = parser.parse_args(arguments[:end])
    setup.options = arguments[end + 1:]
    return setup


def main(arguments):
    setup = parse(arguments)
    try:
        for suffix in ("md", "json", "svg"):
            experiment.check_output(f"{setup.out}.{suffix}", [setup.trace, setup.cluster])
        results = summarise(setup, read_jobs(setup.trace))
        written = {"md": table(setup, results), "json": json.dumps(results, indent=1) + "\n", "svg": figure(results)}
        for suffix, content in written.items():
            with open(f"{setup.out}.{suffix}", "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(content)
        experiment.say("mdot-waiting", sentence(results) + "\n")
    except (experiment.Failure, OSError) as error:
        sys.exit(f"mdot-waiting: {experiment.printable(str(error))}")


if __name__ == "__main__":
    main(sys.argv[1:])
