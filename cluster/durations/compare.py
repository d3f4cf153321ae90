#!/usr/bin/env python3
"""Compares estimates of the durations of jobs on a trace, each made with the jobs that ended before its submission.

    compare.py NAME=TRACE... [--durations build/release/cluster/simulator/mdot-durations] [--out FILE]

Traces have any form that mdot-simulate reads. Rows of the table:

  history            mdot's history (mdot_history.h)
  boosting           like Helios (Hu et al., SC 2021): gradient boosting on user, group, normalised name, GPUs, their type,
                     hour and weekday, and the means of the user's and the name's earlier jobs. It is trained again after
                     each tenth of the trace. LightGBM if it is installed, else scikit-learn
  rolling            the mean of earlier jobs of the same user and GPUs, else of the user, else of all
  last-two           the mean of the user's last two jobs (Tsafrir, Etsion and Feitelson, IEEE TPDS 2007)
  requested          the time limit that the user requested

Boosting takes quantiles from models with a quantile loss. The last three estimates lack quantiles. Each gets those of its
logarithmic errors on jobs that ended earlier. Errors are those of completed jobs after the
first tenth of the trace.
"""
import argparse
import csv
import io
import math
import subprocess
import sys
from collections import defaultdict

import numpy as np

PROBABILITIES = [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95]
TENTHS = 10


def read_jobs(program, trace):
    """The rows of mdot-durations, as a dict of columns."""
    text = subprocess.run([program, trace], check=True, capture_output=True, text=True).stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    texts = {name: np.array([row[name] for row in rows]) for name in ("user", "group", "name", "gpu_type")}
    names = [name for name in rows[0] if name not in texts and name != "job_id"]
    jobs = {name: np.array([float(row[name]) for row in rows]) for name in names} | texts
    jobs["log_s"] = np.log(np.maximum(jobs["duration_s"], 1e-3))
    jobs["end_s"] = jobs["submit_s"] + jobs["duration_s"]
    jobs["completed"] = jobs["outcome"] == 0
    return jobs


def in_order(jobs):
    """Yields ("ask", job) and ("end", job) in the order of time. Only completed jobs end."""
    ends = [job for job in np.argsort(jobs["end_s"], kind="stable") if jobs["completed"][job]]
    at = 0
    for job in range(len(jobs["log_s"])):
        while at < len(ends) and jobs["end_s"][ends[at]] <= jobs["submit_s"][job]:
            yield "end", ends[at]
            at += 1
        yield "ask", job


def with_error_quantiles(jobs, center):
    """Quantiles of a point estimate: those of its errors so far, computed again after each 200 completed jobs."""
    errors, quantiles = [], np.zeros(len(PROBABILITIES))
    out = np.empty((len(center), len(PROBABILITIES)))
    for what, job in in_order(jobs):
        if what == "ask":
            out[job] = center[job] + quantiles
            continue
        errors.append(jobs["log_s"][job] - center[job])
        if len(errors) % 200 == 20:
            quantiles = np.quantile(errors[-5000:], PROBABILITIES)
    return out


def rolling(jobs):
    sums, counts = defaultdict(float), defaultdict(int)

    def keys(job):
        return [(jobs["user"][job], jobs["gpus"][job]), (jobs["user"][job],), ()]

    center = np.full(len(jobs["log_s"]), math.log(3600))
    for what, job in in_order(jobs):
        for key in keys(job):
            if what == "end":
                sums[key] += jobs["duration_s"][job]
                counts[key] += 1
            elif counts[key] > 0:
                center[job] = math.log(max(sums[key] / counts[key], 1))
                break
    return center


def last_two(jobs):
    pairs = defaultdict(list)
    center = np.full(len(jobs["log_s"]), math.log(3600))
    for what, job in in_order(jobs):
        user = jobs["user"][job]
        if what == "end":
            for key in (user, None):
                pairs[key] = [*pairs[key], jobs["duration_s"][job]][-2:]
        else:
            known = pairs[user] or pairs[None]
            if known:
                center[job] = math.log(max(sum(known) / len(known), 1))
    return center


def normalise(name):
    """Words with their digits removed; words that are mostly digits or hexadecimal are left out."""
    words = "".join(c.lower() if c.isalnum() else " " for c in name).split()
    words = ["".join(c for c in word if not c.isdigit()) for word in words
             if not (len(word) >= 6 and any(c.isdigit() for c in word) and all(c in "0123456789abcdef" for c in word))]
    return "-".join(word for word in words if word)


def features_of(jobs):
    """One row per job. Means of logarithms of earlier jobs stand beside the categories, as in Helios' estimator."""
    names = np.array([normalise(name) for name in jobs["name"]])
    columns = [np.unique(column, return_inverse=True)[1] for column in (jobs["user"], jobs["group"], names, jobs["gpu_type"])]
    columns += [jobs["gpus"], jobs["submit_s"] // 3600 % 24, jobs["submit_s"] // 86400 % 7]
    means = np.full((len(names), 6), np.nan)
    sums, counts, recent = defaultdict(float), defaultdict(int), defaultdict(list)
    for what, job in in_order(jobs):
        for i, key in enumerate([("user", jobs["user"][job]), ("name", jobs["user"][job], names[job])]):
            if what == "end":
                sums[key] += jobs["log_s"][job]
                counts[key] += 1
                recent[key] = [*recent[key], jobs["log_s"][job]][-5:]
            elif recent[key]:
                means[job, 3 * i:3 * i + 3] = sums[key] / counts[key], sum(recent[key]) / len(recent[key]), recent[key][-1]
    return np.column_stack([*columns, means])


def make_model(probability):
    """A model of one quantile, and its name."""
    try:
        import lightgbm
        return lightgbm.LGBMRegressor(objective="quantile", alpha=probability, n_estimators=200, num_leaves=31,
                                      learning_rate=0.05, min_child_samples=20, verbose=-1, n_jobs=1), "LightGBM"
    except ImportError:
        from sklearn.ensemble import HistGradientBoostingRegressor
        return HistGradientBoostingRegressor(loss="quantile", quantile=probability, max_iter=200, learning_rate=0.05,
                                             categorical_features=None), "scikit-learn"


def boosting(jobs):
    features, count = features_of(jobs), len(jobs["log_s"])
    out = np.full((count, len(PROBABILITIES)), math.log(3600))
    for tenth in range(1, TENTHS):
        begin, end = count * tenth // TENTHS, count * (tenth + 1) // TENTHS
        known = jobs["completed"] & (jobs["end_s"] <= jobs["submit_s"][begin])
        for i, probability in enumerate(PROBABILITIES):
            model, _ = make_model(probability)
            model.fit(features[known], jobs["log_s"][known])
            out[begin:end, i] = model.predict(features[begin:end])
    return np.sort(out, axis=1)  # quantiles of separate models may cross


def score(jobs, quantiles):
    """Scores of completed jobs after the first tenth."""
    chosen = jobs["completed"].copy()
    chosen[:len(chosen) // TENTHS] = False
    truth, q = jobs["log_s"][chosen], quantiles[chosen]
    error = np.abs(q[:, 3] - truth)
    pinball = np.mean([np.maximum(p * (truth - q[:, i]), (p - 1) * (truth - q[:, i])) for i, p in enumerate(PROBABILITIES)])
    return {"median error": f"{np.median(error):.3f}", "mean error": f"{np.mean(error):.3f}",
            "within ×2": f"{100 * np.mean(error < math.log(2)):.0f} %", "pinball": f"{pinball:.3f}",
            "80 % interval": f"{100 * np.mean((q[:, 1] <= truth) & (truth <= q[:, 5])):.0f} %",
            "90 % interval": f"{100 * np.mean((q[:, 0] <= truth) & (truth <= q[:, 6])):.0f} %",
            "width": f"×{math.exp(np.median(q[:, 5] - q[:, 1])):.1f}"}


def compare(jobs):
    rows = {"history": np.log(np.column_stack([jobs[f"p{round(100 * p)}_s"] for p in PROBABILITIES])),
            f"boosting ({make_model(0.5)[1]})": boosting(jobs),
            "rolling": with_error_quantiles(jobs, rolling(jobs)),
            "last-two": with_error_quantiles(jobs, last_two(jobs))}
    if np.any(jobs["limit_s"] > 0):
        limits = np.log(np.where(jobs["limit_s"] > 0, jobs["limit_s"], 86400))
        rows["requested, as it is"] = np.repeat(limits[:, None], len(PROBABILITIES), axis=1)
        rows["requested, with its errors"] = with_error_quantiles(jobs, limits)
    return {name: score(jobs, quantiles) for name, quantiles in rows.items()}


def write_table(stream, name, jobs, scores):
    ended = int(np.sum(jobs["completed"]))
    stream.write(f"\n**{name}**: {len(jobs['log_s']):,} jobs, {ended:,} completed, {len(set(jobs['user'])):,} users\n\n")
    columns = list(next(iter(scores.values())))
    stream.write("| estimate | " + " | ".join(columns) + " |\n|" + " --- |" * (len(columns) + 1) + "\n")
    for row, values in scores.items():
        stream.write(f"| {row} | " + " | ".join(values[column] for column in columns) + " |\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", metavar="NAME=TRACE")
    parser.add_argument("--durations", default="build/release/cluster/simulator/mdot-durations")
    parser.add_argument("--out", help="file for the tables (default: standard output)")
    options = parser.parse_args()
    for text in options.traces:
        if "=" not in text:
            parser.error(f"traces are NAME=FILE, not {text!r}")
    stream = open(options.out, "w") if options.out else sys.stdout
    for text in options.traces:
        name, _, path = text.partition("=")
        jobs = read_jobs(options.durations, path)
        write_table(stream, name, jobs, compare(jobs))
        stream.flush()


if __name__ == "__main__":
    main()
