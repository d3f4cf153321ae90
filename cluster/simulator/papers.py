#!/usr/bin/env python3
"""Compares the simulator's policies with the effects that their papers state, as tables 6 to 9 of the survey list them, and two more
(Yang, Wu, Wu and Zhang, Journal of Software 2025, 36(4):1570-1589):

    cluster/simulator/papers.py MDOT_SIMULATE [--out PREFIX] [--check] [--only NAME]

MDOT_CLI names mdot, which compiles the network of MLFS, if it is not on PATH.

Each row runs a system and its rival on traces that this script draws from stated seeds. It prints a table, and with
--out it writes PREFIX.json and PREFIX.md. With --check the exit status is 1 if an effect has the wrong sign or is
smaller than the row's floor.
"""
import argparse
import csv
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

SEEDS = (1, 2, 3)
TYPES = ("v100", "p100", "k80")


def write(path, header, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


class Trace:
    """Jobs and tables of one seed, in a folder."""

    def __init__(self, folder, seed):
        self.folder, self.random = Path(folder), random.Random(seed)

    def durations(self, count, median_s, sigma, most_s=4e5):
        return [min(most_s, max(60, round(median_s * math.exp(sigma * self.random.gauss(0, 1))))) for _ in range(count)]

    def arrivals(self, work_gpu_s, gpus, load):
        """Poisson arrivals at a load."""
        gap_s = sum(work_gpu_s) / len(work_gpu_s) / (gpus * load)
        time_s, times = 0.0, []
        for _ in work_gpu_s:
            time_s += self.random.expovariate(1 / gap_s)
            times.append(round(time_s))
        return times

    def widths(self, count, choices=(1, 1, 1, 1, 1, 2, 2, 4, 4, 8)):
        return [self.random.choice(choices) for _ in range(count)]

    def pool(self, gpus, types=("gpu",), node=4, **columns):
        rows = [
            [f"{t}{i}", t, node] + [value[t] if isinstance(value, dict) else value for value in columns.values()]
            for t in types
            for i in range(gpus // node // len(types))
        ]
        return ["--cluster", write(self.folder / "cluster.csv", ["node", "type", "gpus", *columns], rows)]

    def rigid(self, count, gpus, load, median_s=2000, sigma=1.7, widths=None, spread=None):
        """Jobs with durations, as in the traces of Philly: many short ones, few long ones."""
        durations = self.durations(count, median_s, sigma)
        widths = widths or self.widths(count)
        times = self.arrivals([d * w for d, w in zip(durations, widths)], gpus, load)
        rows = [[i, *row] for i, row in enumerate(zip(times, widths, durations))]
        header = ["job_id", "submit_s", "gpus", "duration_s"]
        if spread:
            header, rows = header + ["spread"], [row + [self.random.choice(spread)] for row in rows]
        return [write(self.folder / "trace.csv", header, rows)]

    def kinds(self, count=12, most_gpus=8):
        """Speeds of kinds of jobs. Some hardly gain from a fast GPU, others ten times, as in Gavel's table."""
        rows, speeds = [], {}
        for kind in range(count):
            ratio = math.exp(self.random.uniform(0, math.log(10)))
            speed = dict(zip(TYPES, (10, 10 / ratio**self.random.uniform(0.2, 0.8), 10 / ratio)))
            power = self.random.uniform(0.8, 0.98)
            for gpu_type, base in speed.items():
                rows += [[f"k{kind}", 2**w, gpu_type, base * 2 ** (w * power)] for w in range(most_gpus.bit_length())]
            speeds[f"k{kind}"] = speed
        path = write(self.folder / "speeds.csv", ["job_type", "gpus", "type", "steps_per_s"], rows)
        return speeds, ["--throughputs", path]

    def typed(self, count, gpus, load, widths=None, median_s=4000, sigma=1.3, columns=None):
        """Jobs of kinds over three GPU types; their durations are those on the fastest."""
        speeds, arguments = self.kinds()
        durations = self.durations(count, median_s, sigma)
        widths = widths or [1] * count
        names = [self.random.choice(sorted(speeds)) for _ in range(count)]
        times = self.arrivals([2 * d * w for d, w in zip(durations, widths)], gpus, load)
        rows = [
            [i, times[i], widths[i], names[i], max(1, round(10 * durations[i] * widths[i] ** 0.9))]
            for i in range(count)
        ]
        header = ["job_id", "submit_s", "gpus", "job_type", "steps"]
        for name, value in (columns or {}).items():
            header, rows = header + [name], [row + [value(i, self.random)] for i, row in enumerate(rows)]
        return [write(self.folder / "trace.csv", header, rows), *arguments]

    def pairs(self, arguments, kept=(0.5, 0.95)):
        """Speeds of two jobs on one GPU, for the kinds of --throughputs."""
        with open(arguments[arguments.index("--throughputs") + 1], newline="") as file:
            alone = {(r["job_type"], r["gpus"], r["type"]): float(r["steps_per_s"]) for r in csv.DictReader(file)}
        names = sorted({key[0] for key in alone})
        share = {(a, b): self.random.uniform(*kept) for a in names for b in names}
        rows = [
            [t, a, b, g, speed * share[a, b], alone[b, g, t] * share[b, a]]
            for (a, g, t), speed in alone.items()
            for b in names
            if a <= b
        ]
        header = ["gpu", "job_a", "job_b", "gpus", "together_a_steps_s", "together_b_steps_s"]
        return ["--pairs", write(self.folder / "pairs.csv", header, rows)]

    def adaptive(self, count, gpus, load):
        """Trainings whose batch may grow: a step model of computation and all-reduce, and gradient noise that grows
        along the training, as Pollux' authors measured."""
        steps, noise, jobs = [], [], []
        for name, base_s, sample_s, sync_s, batch, most, rise in (
            ("small", 0.02, 0.0008, 0.02, 128, 4096, 40), ("medium", 0.05, 0.008, 0.06, 64, 2048, 20),
            ("large", 0.1, 0.02, 0.15, 32, 1024, 10)):
            for placement in (1, 2, 4, 44, 4444, 44444444):
                nodes, total = len(str(placement)), sum(map(int, str(placement)))
                sync = 0 if total == 1 else sync_s * (1 if nodes == 1 else 2.5) * (1 + 0.02 * total)
                for octave in range(8):
                    size = batch // 8 * 2**octave
                    if size <= most // 4:
                        grad = base_s + sample_s * size
                        steps.append([name, placement, nodes, total, size, 1000 * (grad + sync), 1000 * sync])
            total_steps = {"small": 60000, "medium": 50000, "large": 60000}[name]
            for octave in range(6):
                noise += [[name, batch * 2**octave, p * total_steps // 4, 1, rise * (0.3 + 0.7 * p / 4) / 2**octave]
                          for p in range(5)]
            jobs.append((name, total_steps, batch, base_s + sample_s * batch))
        chosen = [self.random.choice(jobs) for _ in range(count)]
        times = self.arrivals([0.5 * job[1] * job[3] for job in chosen], gpus, load)
        rows = [[i, t, self.random.choice((1, 2, 4)), job[0], job[1]] for i, (t, job) in enumerate(zip(times, chosen))]
        header = ["job_id", "submit_s", "gpus", "job_type", "steps"]
        fixed = [row + [job[2] * row[2]] for row, job in zip(rows, chosen)]
        write(self.folder / "fixed.csv", [*header, "batch"], fixed)
        step_header = ["application", "placement", "nodes", "gpus", "batch_per_gpu", "step_ms", "sync_ms"]
        noise_header = ["application", "batch", "progress", "grad_sqr", "grad_var"]
        return [
            write(self.folder / "trace.csv", header, rows), "--restart-cost", 30,
            "--step-times", write(self.folder / "steps.csv", step_header, steps),
            "--gradient-noise", write(self.folder / "noise.csv", noise_header, noise),
        ]


# ---- Measures of one run ---------------------------------------------------------------------------------------------


def mean_s(result):
    return result["mean_jct_s"]


def met(result):
    return result["deadlines_met"]


def worst_rho(result):
    return result["max_rho"]


def utilisation(result):
    return result["used"]


def energy(result):
    return result["energy_kwh"]


def cost(result):
    return result["cost"]


def makespan(result):
    return result["makespan_s"]


MEASURES = {
    mean_s: ("mean completion time", -1), met: ("deadlines met", 1), worst_rho: ("largest rho", -1),
    utilisation: ("GPUs used", 1), energy: ("energy", -1), cost: ("cost", -1), makespan: ("makespan", -1),
}


# ---- The rows --------------------------------------------------------------------------------------------------------


def philly(trace):
    return trace.rigid(480, 60, 3) + trace.pool(60)


def philly_skewed(trace):
    return trace.rigid(480, 60, 3, spread=(1, 1.3, 2)) + trace.pool(60)


def philly_long(trace):
    """Hardly a job is shorter than a lease of 360 s."""
    return trace.rigid(480, 60, 1.5, median_s=4000, sigma=1) + trace.pool(60)


def narrow_deadlines(trace):
    """Nearly all jobs have one GPU, as in the excerpt of Philly that Tiresias' authors use."""
    widths = trace.widths(480, [1] * 58 + [2, 4])
    job = trace.rigid(480, 16, 3.4, median_s=2400, sigma=1.1, widths=widths)
    return job + trace.pool(16) + ["--deadlines", "1.2:4"]


def typed(trace):
    return trace.typed(200, 36, 3, sigma=0.7) + trace.pool(36, TYPES)


def typed_wide(trace):
    return trace.typed(200, 48, 3, widths=trace.widths(200, (1, 1, 1, 2, 4))) + trace.pool(48, TYPES)


def typed_long(trace):
    return trace.typed(100, 36, 1.2, median_s=60000, sigma=1) + trace.pool(36, TYPES)


def typed_deadlines(trace):
    return trace.typed(200, 36, 3, sigma=1) + trace.pool(36, TYPES) + ["--deadlines", "1.1:4"]


def priced(trace):
    """A fast GPU costs more than it is faster for half of the kinds."""
    job = trace.typed(200, 36, 0.7, sigma=1, widths=trace.widths(200, (1, 1, 2, 4)))
    return job + trace.pool(36, TYPES, price={"v100": 3, "p100": 1.5, "k80": 0.5}) + ["--deadlines", "2:8"]


def batch(trace):
    """All jobs come within an hour."""
    job = trace.typed(200, 24, 60, sigma=0.6)
    return job + trace.pool(24, ("v100",)) + trace.pairs(job)


def blocking(trace):
    """Wide jobs hold up a queue without reservations."""
    widths = trace.widths(300, (1, 1, 1, 2, 4, 24, 24))
    return trace.rigid(300, 48, 3, sigma=0.6, widths=widths, spread=(1, 1.3, 2)) + trace.pool(48)


def elastic_deadlines(trace):
    durations, widths = trace.durations(200, 3000, 1.2), trace.widths(200, (1, 1, 2, 4))
    times = trace.arrivals([d * w for d, w in zip(durations, widths)], 64, 1.2)
    rows = [[i, t, w, d, 1, 16, 0.9] for i, (t, w, d) in enumerate(zip(times, widths, durations))]
    header = ["job_id", "submit_s", "gpus", "duration_s", "min_gpus", "max_gpus", "scaling"]
    return [write(trace.folder / "trace.csv", header, rows), "--gpus", 64, "--deadlines", "0.6:2"]


def adaptive(trace):
    return trace.adaptive(160, 64, 1.5) + trace.pool(64)


def services(trace):
    job = trace.typed(300, 24, 6, sigma=0.8, columns={"online": lambda _, r: int(r.random() < 0.7)})
    return job + trace.pool(24, ("v100",)) + trace.pairs(job, (0.6, 0.98))


def loaders(trace):
    """Three CPUs for each GPU; loaders need 1 to 12."""
    [path] = trace.rigid(480, 64, 3)
    with open(path, newline="") as file:
        rows = [[*row.values(), int(row["gpus"]) * trace.random.choice((1, 1, 1, 2, 3, 6, 9, 12))]
                for row in csv.DictReader(file)]
    write(path, ["job_id", "submit_s", "gpus", "duration_s", "loader_cpus"], rows)
    return [path] + trace.pool(64, node=8, cpus=24)


def interference(trace):
    job = trace.typed(200, 24, 3, sigma=0.8)
    return job + trace.pool(24, ("v100",)) + trace.pairs(job, (0.2, 0.95))


def learned(trace):
    """Traces with other seeds than those of training, and estimates that are off by half."""
    command, network = os.environ.get("MDOT_CLI", "mdot"), trace.folder / "mlfs.mdot"
    source = Path(__file__).resolve().parent.parent / "tests" / "simulator" / "data" / "mlfs.onnx"
    subprocess.run([command, "compile", source, "-o", network, "-q"], check=True)
    return trace.rigid(480, 60, 3) + trace.pool(60) + ["--estimate", "error:0.5", "--learned", network]


def packed(trace):
    job = trace.typed(200, 48, 3, sigma=0.8, widths=trace.widths(200, (1, 1, 1, 2, 4, 8)))
    return job + trace.pool(48, ("v100",)) + trace.pairs(job)


def powered(trace):
    job = trace.typed(200, 36, 1.5, sigma=0.8, widths=trace.widths(200, (1, 2, 4, 8)),
                      columns={"clock_share": lambda _, r: round(r.uniform(0.5, 0.9), 2)})
    watts = {"v100": 300, "p100": 250, "k80": 150}
    return job + trace.pool(36, TYPES, watts=watts, idle_watts={t: w / 5 for t, w in watts.items()})


# System, policy, its rival and the rival's policy, measure, the paper's ratio of system to rival, trace, its words, the
# least gain in logarithms that --check accepts (None: the sign is not reached, and the reason says why), the reason.
ROWS = (
    ("Tiresias", "tiresias", "YARN", "yarn", mean_s, 0.22, philly_skewed,
     "480 jobs, 60 GPUs, load 3, slowed by up to 2 on several nodes", 0.8,
     "Exact SRSF, which knows durations, has 0.26 here; without slow placements Tiresias has 0.46."),
    ("Themis", "themis", "Tiresias", "dlas", worst_rho, 1 / 2.25, philly_long, "480 jobs of 4000 s (median), 60 GPUs, load 1.5", 0.4,
     "Equal. Jobs shorter than a lease spoil it (0.64), and so do GPU types, which Themis does not tell apart: 2 to 3 times "
     "Tiresias'."),
    ("AlloX", "allox", "SRTF", "srtf", mean_s, 0.05, typed, "200 jobs, 36 GPUs of 3 types, load 3", 0.04,
     "Our SRTF preempts and knows each job's speed on each type; the paper's ignores types, among them CPUs."),
    ("Chronus", "chronus", "EDF", "edf", met, 1.75, narrow_deadlines,
     "480 jobs, 16 GPUs, load 3.4, deadlines of 1.2 to 4 durations", 0.25,
     "With many wide jobs, guarantees cost as much as they gain: 1.0."),
    ("Hydra", "hydra", "AlloX", "allox", met, 1.86, typed_deadlines,
     "200 jobs, 36 GPUs of 3 types, load 3, deadlines of 1.1 to 4 durations", 0.08,
     "The paper counts tardiness, and our AlloX matches busy machines."),
    ("Hare", "hare", "Tiresias", "dlas", mean_s, 0.2, typed_wide, "200 jobs, 48 GPUs of 3 types, load 3", 0.25,
     "Our Tiresias knows each job's speed on each type."),
    ("Gavel", "gavel-ftf", "Themis", "themis", worst_rho, 1 / 2.8, typed_long,
     "100 long jobs, 36 GPUs of 3 types, load 1.2", 0.6,
     "The load is this script's; at a light load Gavel's new jobs wait for up to 1,920 s."),
    ("ElasticFlow", "elasticflow", "Chronus", "chronus", met, 1.5, elastic_deadlines,
     "200 jobs that scale with width^0.9, 64 GPUs, deadlines of 0.6 to 2 durations", 0.2,
     "The load is this script's."),
    ("Pollux", "pollux", "Optimus", "optimus", mean_s, 0.63, adaptive, "160 trainings, 64 GPUs, load 1.5", 0.15,
     "Steps and gradient noise are synthetic; with the authors' measurements it is 0.42 (sharing.md)."),
    ("MuxFlow", "muxflow", "Gandiva", "gandiva", utilisation, 1.45, services,
     "300 jobs, 70 % are services, 24 GPUs, load 6, pairs keep 60 to 98 %", 0.1,
     "Our Gandiva shares no service's GPUs, but packs offline jobs: with 30 % of services both are equal. Shares of "
     "multiprocessors are left out."),
    ("MLFS", "mlfs", "HyperSched", "hypersched", mean_s, 0.36, learned,
     "480 jobs, 60 GPUs, load 3, estimates off by half", 0.5,
     "HyperSched knows no durations. Over SRSF with the same estimates MLFS has 0.94 (history) to 1.00 (exact) on six "
     "unseen traces, after 11 minutes of training."),
    ("Gandiva", "gandiva", "YARN", "yarn", utilisation, 1.26, packed, "200 jobs, 48 GPUs, load 3, with pairs", 0.08,
     "Pairs keep 50 to 95 % of their speeds here."),
    ("SMD", "smd", "Optimus", "optimus", utilisation, 1.3, blocking,
     "300 rigid jobs of 1 to 4 or 24 GPUs, 48 GPUs, load 3, slowed by up to 2 on several nodes", 0.15,
     "It fills the gaps before wide jobs: eight seeds have 1.25 to 1.32, and other traces that were tried 1.04 to 1.56. "
     "With Philly's widths both are equal; numbers of workers and servers are left out."),
    ("Synergy", "synergy", "SRSF", "srsf", mean_s, 1 / 3.4, loaders,
     "480 jobs, 64 GPUs with 3 CPUs each, load 3, loaders need 1 to 12", 0.3,
     "The paper's is its largest gain; here a third of the jobs needs more CPUs than its part."),
    ("Shockwave", "shockwave", "Themis", "themis", worst_rho, 0.5, typed_long,
     "100 long jobs, 36 GPUs of 3 types, load 1.2", 0.5,
     "Themis does not tell types apart. On one type it is 0.89; over Gavel's fair policy 0.75 here."),
    ("CoGNN", "cognn", "MPS", "mps", mean_s, 0.25, interference, "200 jobs, 24 GPUs, load 3, pairs keep 20 to 95 %",
     0.1, "Groups of two, no memory model (a table of pairs says which fit); MIG is not the rival here."),
    ("Cynthia", "cynthia", "Optimus", "optimus", cost, 0.494, priced,
     "200 jobs, 36 GPUs of 3 types at 3, 1.5 and .5 an hour, load .7, deadlines of 2 to 8 durations", 0.4,
     "The paper's is its largest gain (abstract); its clouds have as many GPUs as a job wants."),
    ("GENIE", "genie", "EDF", "edf", met, 1.674, elastic_deadlines,
     "200 jobs that scale with width^0.9, 64 GPUs, deadlines of 0.6 to 2 durations", 0.05,
     "The paper's is its largest gain (abstract). GENIE does not preempt; our EDF does."),
    ("Horus", "horus", "FIFO", "fjf", makespan, 0.69, batch, "200 jobs at once, 24 GPUs, pairs keep 50 to 95 %", 0.15,
     "The paper's is its largest gain (abstract); it may put more than two jobs on a GPU."),
    ("Gavel, cost", "gavel-cost", "Gavel", "gavel", cost, 0.71, priced,
     "200 jobs, 36 GPUs of 3 types at 3, 1.5 and .5 an hour, load .7", 0.2,
     "The paper's figure is quoted from memory; no public text that was searched confirms it. Prices are this "
     "script's; at load 3 it is 0.86."),
    ("PowerFlow", "powerflow", "Tiresias", "dlas", energy, 1 / 1.57, powered,
     "200 jobs, 36 GPUs of 3 types, load 1.5", 0.4,
     "A GPU's power is a law here: a fifth of it idle, the rest by the clock's third power. Jobs end 1.2 times as late as "
     "Tiresias'; the paper's abstract states 1.57 for completion times at equal energy."),
)

ABSENT = """Harmony (Bao et al., INFOCOM 2019) is no policy here. It places workers and parameter servers on nodes by a network that
learns their interference, and a trace of whole GPUs has no workers and servers. mlfs is the learned policy, horus the
one by interference, and `python3 -m mdot_lab.baselines` has Harmony's model. CoGNN's memory model and groups of more
than two need measurements of more than two jobs on a GPU.

"""

EQUAL = """On rigid jobs (no bounds, one table row for each job_type) some policies add nothing: elastic and optimus equal
fifo, smd equals srsf on one node, synergy equals srsf without loader_cpus, kubeshare equals fjf without fractions,
cognn and mps equal fifo without pairs, horus equals fjf then, gavel-pairs equals gavel then, drf equals yarn without the columns cpus and
memory_gb, and yarn equals fifo with one group. Jobs with a quarter to two GPUs (400 jobs, 32 GPUs, load 1.2) take 0.48
of fjf's mean completion time under kubeshare with four slices.
"""


def run(simulate, arguments, policies):
    command = [simulate, *map(str, arguments), "--policy", ",".join(policies), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return {result["policy"]: result for result in json.loads(done.stdout)["results"]}


def measure(simulate, row):
    """Geometric mean over the seeds of the system's measure over its rival's."""
    _, policy, _, rival, of, _, draw = row[:7]
    logarithms = []
    for seed in SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            arguments = draw(Trace(folder, seed))
            both = run(simulate, arguments, [policy, rival])
            if of is mean_s and (Path(folder) / "fixed.csv").exists():  # the rival's users choose batches
                both[rival] = run(simulate, [Path(folder) / "fixed.csv", *arguments[1:]], [rival])[rival]
            logarithms.append(math.log(of(both[policy]) / of(both[rival])))
    return math.exp(sum(logarithms) / len(logarithms))


def table(results):
    lines = [
        "# Policies beside their papers",
        "",
        "`cluster/simulator/papers.py` writes this page from [papers.json](papers.json), with traces from seeds "
        + ", ".join(map(str, SEEDS)) + ". Effects are those of",
        "the survey's tables 6 to 9 (Yang, Wu, Wu and Zhang, Journal of Software 2025, 36(4):1570-1589) and, for Synergy, "
        "Shockwave, Cynthia, GENIE, Horus",
        "and Gavel's costs, of their papers: the system's figure over its rival's, as geometric means over the seeds.",
        "",
        "| system (policy) | rival | figure | paper | ours | trace | why they differ |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for r in results:
        policy, rival = (f" ({r[key]})" if r[key] else "" for key in ("policy", "rival_policy"))
        ours = "-" if r["ours"] is None else f"{r['ours']:.2f}"
        lines.append(f"| {r['system']}{policy} | {r['rival']}{rival} | {r['measure']} | {r['paper']:.2f} | {ours} | "
                     f"{r['trace']} | {r['reason']} |")
    return "\n".join(lines) + "\n\n" + ABSENT + EQUAL


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("simulate", metavar="MDOT_SIMULATE")
    parser.add_argument("--out", metavar="PREFIX", help="write PREFIX.json and PREFIX.md")
    parser.add_argument("--check", action="store_true", help="fail if an effect is smaller than its floor")
    parser.add_argument("--only", metavar="POLICY")
    arguments = parser.parse_args()
    results, wrong = [], 0
    for row in ROWS:
        name, policy, rival, rival_policy, of, paper, draw, words, floor, reason = row
        if arguments.only not in (None, policy):
            continue
        label, sign = MEASURES[of]
        ratio = measure(arguments.simulate, row) if draw else None
        fails = floor is not None and sign * math.log(ratio) < floor
        wrong += fails
        results.append({"system": name, "policy": policy, "rival": rival, "rival_policy": rival_policy,
                        "measure": label, "paper": round(paper, 3), "ours": ratio and round(ratio, 3), "trace": words,
                        "reason": reason})
        ours = "absent" if ratio is None else f"ours {ratio:.3f}{'  below its floor' if fails else ''}"
        print(f"{name:12} {rival:10} {label:22} paper {paper:.2f}  {ours}", flush=True)
    if arguments.out:
        Path(arguments.out + ".json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        Path(arguments.out + ".md").write_text(table(results), encoding="utf-8")
    return 1 if arguments.check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
