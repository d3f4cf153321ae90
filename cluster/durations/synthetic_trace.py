#!/usr/bin/env python3
"""Writes a synthetic trace of jobs with users, names, outcomes and time limits.

    synthetic_trace.py mdot|sacct FILE [--jobs N] [--seed N]
    synthetic_trace.py pai FOLDER [--jobs N] [--seed N]

The traces that this project can read offline lack users and names. This generator is for tests and comparisons
only: a result on its traces shows that an estimator finds the structure that the generator put in, and says nothing
about a site's accuracy. It follows these published statistics, which are quoted from memory:

  - about 65 % of the tasks of Alibaba's PAI recur at least five times, 5 % of the users own 77 % of the task instances,
    the median of run times is 23 min and the 90 % quantile 4.5 h (Weng et al., MLaaS in the Wild, NSDI 2022);
  - more than a third of the GPU jobs of SenseTime's Helios end unsuccessfully, most of them early (Hu et al., SC 2021).

A user has recipes, which are scripts that run again and again. Recipes have a usual duration, an own spread, and heavy
tails. The duration drifts, and jumps when its user changes the script. Users submit sweeps of similar jobs at once.
"""
import argparse
import csv
import datetime
import math
import os
import random

STEMS = ["train", "finetune", "eval", "pretrain", "ablation", "sweep", "distill", "export", "debug", "baseline"]
NETWORKS = ["resnet", "bert", "gpt", "vit", "unet", "yolo", "gnn", "ctr", "wav2vec", "t5", "swin", "dlrm"]
TYPES = ["V100", "T4", "P100", "A100"]
SPEEDS = {"V100": 1.0, "T4": 2.6, "P100": 1.7, "A100": 0.5}
LIMITS_H = [1, 2, 4, 8, 12, 24, 48, 72]
MEDIAN_S, SIGMA = 23 * 60, math.log(4.5 * 60 / 23) / 1.2816
START = 1_700_000_000


class Recipe:
    """A script of a user."""

    def __init__(self, rng, user):
        self.words = [rng.choice(STEMS), rng.choice(NETWORKS), "".join(rng.choices("abcdefghiklmnoprstuvwz", k=4))]
        self.user = user
        self.log_s = math.log(MEDIAN_S) + user.log_s + rng.gauss(0, 0.95 * SIGMA)
        self.spread = 0.08 if rng.random() < 0.4 else rng.uniform(0.2, 0.9)
        self.gpus = rng.choices([1, 2, 4, 8, 16], [62, 14, 12, 9, 3])[0]
        self.type = rng.choices(TYPES, [40, 25, 20, 15])[0]
        self.failing = rng.betavariate(0.8, 2.2)
        self.limit_h = 24 if rng.random() < 0.5 else None

    def name(self, rng, at_s):
        date = datetime.datetime.fromtimestamp(at_s, datetime.timezone.utc)
        endings = [f"lr{rng.choice([1, 3, 5])}e-{rng.randint(3, 5)}", f"seed{rng.randint(0, 99)}", f"{date:%Y%m%d}",
                   f"{rng.getrandbits(32):08x}"]
        return "-".join(self.words + rng.sample(endings, rng.randint(0, 2)))

    def limit_s(self, rng):
        if self.limit_h is not None:
            return self.limit_h * 3600
        wanted = math.exp(self.log_s) / 3600 * rng.choice([2, 3, 5, 10])
        return next((h for h in LIMITS_H if h >= wanted), LIMITS_H[-1]) * 3600


class User:
    def __init__(self, rng, number):
        self.name = f"user{number:03d}"
        self.group = f"team{rng.randrange(18):02d}"
        self.log_s = rng.gauss(0, 0.45 * SIGMA)
        self.recipes = []

    def recipe(self, rng):
        """A recipe that runs once, a new one that recurs, or an earlier one, mostly a recent one."""
        if rng.random() < 0.42:
            return Recipe(rng, self)
        if not self.recipes or rng.random() < 0.12:
            self.recipes.append(Recipe(rng, self))
            return self.recipes[-1]
        back = min(int(rng.expovariate(1 / 4)), len(self.recipes) - 1)
        return self.recipes[-1 - back]


def heavy(rng):
    """Student's t with four degrees of freedom, of variance one."""
    return rng.gauss(0, 1) / math.sqrt(rng.gammavariate(2, 0.5)) / math.sqrt(2)


def run(rng, recipe, at_s):
    """Returns duration, outcome and limit of one job."""
    limit_s = recipe.limit_s(rng)
    log_s = recipe.log_s + recipe.spread * heavy(rng)
    if rng.random() < recipe.failing:
        outcome = "failed" if rng.random() < 0.6 else "cancelled"
        early = rng.random() < 0.75
        duration_s = rng.uniform(10, 240) if early else math.exp(log_s) * rng.uniform(0.1, 1.2)
    else:
        outcome, duration_s = "completed", math.exp(log_s)
    if duration_s > limit_s:
        return limit_s, "timed-out", limit_s
    return max(1.0, duration_s), outcome, limit_s


def generate(count, seed):
    """Yields jobs as dicts, ordered by submission."""
    rng = random.Random(seed)
    users = [User(rng, i) for i in range(200)]
    weights = [1 / (1 + i) ** 1.45 for i in range(len(users))]
    mean = sum(weight * user.log_s for weight, user in zip(weights, users)) / sum(weights)
    for user in users:  # the few users with most jobs leave the median of all jobs as it is
        user.log_s -= mean
    at_s, jobs = float(START), []
    while len(jobs) < count:
        hour = at_s % 86400 / 3600
        busy = 1.6 if 9 <= hour < 20 else 0.5
        at_s += rng.expovariate(busy / 150)
        recipe = rng.choices(users, weights)[0].recipe(rng)
        recipe.log_s += rng.gauss(0, 0.03)
        if rng.random() < 0.03:
            recipe.log_s += rng.gauss(0, 1)
        gpus, gpu_type = recipe.gpus, recipe.type
        if rng.random() < 0.08:  # the same script on other resources
            gpus = max(1, gpus * rng.choice([2, 1]) // rng.choice([1, 2]))
            gpu_type = rng.choice(TYPES)
        sweep = rng.choice([4, 8, 16]) if rng.random() < 0.06 else 1
        for i in range(min(sweep, count - len(jobs))):
            duration_s, outcome, limit_s = run(rng, recipe, at_s)
            if outcome == "completed":
                scale = SPEEDS[gpu_type] / SPEEDS[recipe.type] * (recipe.gpus / gpus) ** 0.8
                duration_s = min(max(1.0, duration_s * scale), limit_s)
            submit_s = round(at_s + i)
            jobs.append({"job_id": str(len(jobs) + 1), "submit_s": submit_s, "gpus": gpus, "duration_s": round(duration_s),
                         "user": recipe.user.name, "group": recipe.user.group, "name": recipe.name(rng, submit_s),
                         "recipe": "-".join([recipe.user.name, *recipe.words]), "gpu_type": gpu_type, "outcome": outcome,
                         "limit_s": limit_s})
        at_s += sweep
    return sorted(jobs, key=lambda job: job["submit_s"])


def write_mdot(jobs, path):
    columns = ["job_id", "submit_s", "gpus", "duration_s", "user", "group", "name", "gpu_type", "outcome", "limit_s"]
    with open(path, "w", newline="") as file:
        rows = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        rows.writeheader()
        rows.writerows(jobs)


def write_sacct(jobs, path):
    """As `sacct -a -X -P` prints jobs; Timelimit as days-hours:minutes:seconds."""
    states = {"completed": "COMPLETED", "failed": "FAILED", "cancelled": "CANCELLED by 1001", "timed-out": "TIMEOUT"}
    with open(path, "w") as file:
        file.write("JobID|User|Account|Submit|ElapsedRaw|Timelimit|State|AllocTRES|JobName\n")
        for job in jobs:
            submit = datetime.datetime.fromtimestamp(job["submit_s"], datetime.timezone.utc)
            days, hours = divmod(job["limit_s"] // 3600, 24)
            limit = f"{days}-{hours:02d}:00:00" if days else f"{hours:02d}:00:00"
            gpus = f"cpu=8,gres/gpu:{job['gpu_type'].lower()}={job['gpus']},gres/gpu={job['gpus']},mem=64G,node=1"
            file.write(f"{job['job_id']}|{job['user']}|{job['group']}|{submit:%Y-%m-%dT%H:%M:%S}|{job['duration_s']}|{limit}|"
                       f"{states[job['outcome']]}|{gpus}|{job['name']}\n")


def write_pai(jobs, folder):
    """The task, job and tag tables of cluster-trace-gpu-v2020, without headers, as they are published."""
    os.makedirs(folder, exist_ok=True)
    tables = ["pai_task_table", "pai_job_table", "pai_group_tag_table"]
    files = [open(os.path.join(folder, name + ".csv"), "w") for name in tables]
    for job in jobs:
        status = "Terminated" if job["outcome"] == "completed" else "Failed"
        begin, end = job["submit_s"] - START, job["submit_s"] - START + job["duration_s"]
        files[0].write(f"job{job['job_id']},worker,{job['gpus']}.0,{status},{begin}.0,{end}.0,600.0,29.3,100.0,"
                       f"{job['gpu_type']}\n")
        files[1].write(f"job{job['job_id']},inst{job['job_id']},{job['user']},{status},{begin}.0,{end}.0\n")
        files[2].write(f"inst{job['job_id']},{job['user']},,{job['recipe']},\n")
    for file in files:
        file.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("form", choices=["mdot", "sacct", "pai"])
    parser.add_argument("path", help="file, or folder for pai")
    parser.add_argument("--jobs", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    jobs = generate(options.jobs, options.seed)
    {"mdot": write_mdot, "sacct": write_sacct, "pai": write_pai}[options.form](jobs, options.path)


if __name__ == "__main__":
    main()
