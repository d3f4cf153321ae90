"""Writes or checks the optima of Gavel's programs with space sharing, solved by SciPy's HiGHS.

    python3 pairs_oneshot.py --make GAVEL_PAIRS.csv > data/pairs_oneshot.txt     new instances from measured pairs
    python3 pairs_oneshot.py --check data/pairs_oneshot.txt                     solves the instances in the file again

The programs are those of Narayanan et al., OSDI 2020, sections 3.1 and 4, written here a second time, independent of
cluster/simulator/solve. Instances hold speeds from Gavel's measurements (stanford-futuredata/gavel, MIT).
"""

import csv
import random
import sys

try:
    from scipy.optimize import linprog
except ImportError:
    print("SciPy is missing")
    sys.exit(77)

TYPES = ["k80", "p100", "v100"]


class Instance:
    def __init__(self, gpus, jobs, pairs):
        self.gpus, self.jobs, self.pairs = gpus, jobs, pairs  # jobs: scale, weight, remaining, since, speeds

    def maximise(self, needs):
        """The largest t with throughput(i) >= t * need(i), and the throughputs."""
        count, kinds = len(self.jobs), len(TYPES)
        columns = (count + len(self.pairs)) * kinds + 1
        rows, limits = [], []

        def row():
            rows.append([0.0] * columns)
            return rows[-1]

        bounds = [(0, None)] * columns
        by_type = [row() for _ in TYPES]
        limits += self.gpus
        sums, throughputs = [], []
        for i, job in enumerate(self.jobs):
            sums.append(row())
            limits.append(1)
            throughputs.append(row())
            limits.append(0)
            throughputs[i][-1] = 1
            for j in range(kinds):
                column = i * kinds + j
                by_type[j][column] = job["scale"]
                sums[i][column] = 1
                throughputs[i][column] = -job["speed"][j] / needs[i]
        for k, (a, b, speed_a, speed_b) in enumerate(self.pairs):
            for j in range(kinds):
                column = (count + k) * kinds + j
                by_type[j][column] = self.jobs[a]["scale"]
                sums[a][column] = sums[b][column] = 1
                throughputs[a][column] -= speed_a[j] / needs[a]
                throughputs[b][column] -= speed_b[j] / needs[b]
                if speed_a[j] == 0 or speed_b[j] == 0:
                    bounds[column] = (0, 0)
        result = linprog([0.0] * (columns - 1) + [-1.0], A_ub=rows, b_ub=limits, bounds=bounds, method="highs")
        assert result.status == 0, result.message
        return -result.fun

    def max_min(self):
        total = sum(self.gpus)
        needs = [
            job["weight"] * sum(s * g for s, g in zip(job["speed"], self.gpus)) / total / job["scale"]
            for job in self.jobs
        ]
        return self.maximise(needs)

    def makespan(self):
        return 1 / self.maximise([job["remaining"] for job in self.jobs])

    def finish_time(self):
        count = len(self.jobs)
        alone = []
        for job in self.jobs:
            fractions = [g / (count * job["scale"]) for g in self.gpus]
            over = max(1, sum(fractions))
            alone.append(job["remaining"] / sum(f / over * s for f, s in zip(fractions, job["speed"])))
        low = max(job["since"] / a for job, a in zip(self.jobs, alone))
        high = low + 1e4
        while high - low > 1e-8 * high:
            ratio = (low + high) / 2
            needs = [job["remaining"] / (ratio * a - job["since"]) for job, a in zip(self.jobs, alone)]
            if self.maximise(needs) >= 1:
                high = ratio
            else:
                low = ratio
        return high


def make(path):
    with open(path, encoding="utf-8") as file:
        table = [row for row in csv.DictReader(line for line in file if line[0] != "#") if row["table"] == "simulation"]
    alone, together = {}, {}
    for row in table:
        width = int(row["gpus"])
        for side, other in (("a", "b"), ("b", "a")):
            alone[row["gpu"], row["job_" + side], width] = float(row[f"alone_{side}_steps_s"])
            together[row["gpu"], row["job_" + side], row["job_" + other], width] = float(
                row[f"together_{side}_steps_s"]
            )
    kinds = sorted({(job, width) for gpu, job, width in alone if all((t, job, width) in alone for t in TYPES)})
    kinds = [kind for kind in kinds if all(alone[(t, *kind)] > 0 for t in TYPES)]
    narrow, double = ([kind for kind in kinds if kind[1] == width] for width in (1, 2))
    random.seed(7)
    for _ in range(6):
        jobs, pairs = [], []
        for _ in range(random.randint(8, 14)):
            kind = random.choice(narrow if random.random() < 0.9 else double)
            jobs.append(
                {
                    "kind": kind,
                    "scale": kind[1],
                    "weight": random.choice([1, 1, 2]),
                    "remaining": random.randint(1000, 500000),
                    "since": random.randint(0, 20000),
                    "speed": [alone[(t, *kind)] for t in TYPES],
                }
            )
        for a, first in enumerate(jobs):
            for b in range(a + 1, len(jobs)):
                second = jobs[b]
                if first["scale"] != second["scale"]:
                    continue
                key = (first["kind"][0], second["kind"][0]), (second["kind"][0], first["kind"][0])
                speed = [[together.get((t, *k, first["scale"]), 0.0) for t in TYPES] for k in key]
                if any(x > 0 and y > 0 for x, y in zip(*speed)):
                    pairs.append((a, b, speed[0], speed[1]))
        yield Instance([random.randint(1, 3) for _ in TYPES], jobs, pairs)


def write(instance):
    print(f"instance {len(instance.jobs)} {len(instance.pairs)} {' '.join(map(str, instance.gpus))}")
    for job in instance.jobs:
        print(job["scale"], job["weight"], job["remaining"], job["since"], *(repr(s) for s in job["speed"]))
    for a, b, speed_a, speed_b in instance.pairs:
        print(a, b, *(repr(s) for s in speed_a + speed_b))
    print("optima", repr(instance.max_min()), repr(instance.makespan()), repr(instance.finish_time()))


def read(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.split() for line in file if line[0] != "#"]
    while lines:
        head = lines.pop(0)
        jobs = []
        for words in lines[: int(head[1])]:
            values = [float(word) for word in words]
            names = ("scale", "weight", "remaining", "since")
            jobs.append(dict(zip(names, values), speed=values[4:]))
        del lines[: len(jobs)]
        pairs = []
        for words in lines[: int(head[2])]:
            speeds = [float(word) for word in words[2:]]
            pairs.append((int(words[0]), int(words[1]), speeds[:3], speeds[3:]))
        del lines[: len(pairs)]
        yield Instance([float(word) for word in head[3:]], jobs, pairs), [float(word) for word in lines.pop(0)[1:]]


def main():
    if sys.argv[1:2] == ["--make"]:
        print("# Gavel's programs with pairs, made and solved by pairs_oneshot.py with SciPy (HiGHS). Speeds:")
        print("# stanford-futuredata/gavel@c4fa400 simulation_throughputs.json, MIT. A block: jobs (scale, weight,")
        print("# remaining, since, speeds on k80 p100 v100), pairs (a, b, speeds of a, of b), optima of max-min,")
        print("# makespan and finish-time fairness.")
        for instance in make(sys.argv[2]):
            write(instance)
        return 0
    worst = 0
    for instance, optima in read(sys.argv[2]):
        for got, want in zip((instance.max_min(), instance.makespan(), instance.finish_time()), optima):
            worst = max(worst, abs(got - want) / want)
    print(f"largest difference {worst:.1e}")
    return 0 if worst < 1e-6 else 1


if __name__ == "__main__":
    sys.exit(main())
