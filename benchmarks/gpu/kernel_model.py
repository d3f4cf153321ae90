"""A static model of a predictor's GPU kernels, from the compiler's counts, beside measured times.

    python3 benchmarks/gpu/kernel_model.py [--mdot PROGRAM] [--out FOLDER] REFERENCE.mdot CLUSTERS.mdot

It writes speed_model.csv and speed_model_constants.csv, by default into weights/results.

A block with one tile of rows takes

    kernel = grid barriers * their measured time + steps * step time + bytes / rate

where the bytes are the weights, keys and values that the block reads: weights once a tile, keys and values once for 16
rows. A multiplication reads two bytes of them, so that they are the FLOPs of matrix kernels divided by the length. Step
time and rate follow from the measured kernels of the shortest and the longest length (weights/results/speed_gpu.csv);
the other lengths test them.
A cluster divides a linear's columns and an attention's heads among its blocks. Its size stands in the cubin. The time
of its barriers is unknown.
"""

import argparse
import csv
import json
import struct
import subprocess
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
MULTIPROCESSORS = 132  # of an H200
CTA_PER_CLUSTER = 0x3D  # attribute in a cubin's .nv.info sections


def read_results(name):
    with open(TREE / "weights" / "results" / f"{name}.csv", encoding="utf-8", newline="") as file:
        return {row[next(iter(row))]: row for row in csv.DictReader(file)}


def cluster_sizes(artefact):
    """Blocks per cluster for each kernel's name; kernels without clusters are absent."""
    data = Path(artefact).read_bytes()
    start = data.find(b"\x7fELF", 1)
    sizes = {}
    while start >= 0:
        cubin = data[start:]
        table, = struct.unpack_from("<Q", cubin, 40)
        width, count, names = struct.unpack_from("<HHH", cubin, 58)
        sections = [struct.unpack_from("<IIQQQQ", cubin, table + i * width) for i in range(count)]
        for name_at, _, _, _, at, length in sections:
            name = cubin[sections[names][4] + name_at:].split(b"\0", 1)[0].decode()
            end = at + length if name.startswith(".nv.info.") else at
            while at + 4 <= end:
                kind, attribute, size = struct.unpack_from("<BBH", cubin, at)
                if kind == 4 and attribute == CTA_PER_CLUSTER:
                    sizes[name[len(".nv.info."):]] = struct.unpack_from("<I", cubin, at + 4)[0]
                at += 4 + (size if kind == 4 else 0)
        start = data.find(b"\x7fELF", start + 1)
    return sizes


def read_counts(mdot, artefact):
    """By length: steps, grid barriers, bytes that a block reads."""
    described = json.loads(subprocess.run([mdot, "inspect", "--json", artefact], check=True, capture_output=True).stdout)
    image = next(image for image in described["images"] if image["kind"] == "cuda")
    clusters = cluster_sizes(artefact)
    counts = {}
    for bucket, kernel in zip(described["entries"][0]["buckets"], image["kernels"], strict=True):
        length, blocks = bucket["max_length"], clusters.get(kernel["name"], 1)
        rows = 16  # as cu_fit_schedule (codegen/cuda/tile_schedule.c) fits them to clusters
        while rows < 64 and blocks > 1 and -(-length // rows) * blocks > 128:
            rows *= 2
        tiles = -(-length // rows)
        turns = -(-tiles * blocks // (MULTIPROCESSORS // blocks * blocks))
        heads = 4  # of the reference predictor (benchmarks/common/reference.py)
        of_kind = {kind: sum(k["flops"] for k in bucket["kernels"] if k["kind"] == kind) for kind in ("linear", "attention")}
        share = {"linear": 1 / blocks, "attention": -(-heads // blocks) / heads * rows / 16}
        bytes_read = turns * sum(of_kind[kind] / length * share[kind] for kind in of_kind)
        counts[length] = (len(bucket["kernels"]), kernel["grid_barriers"], bytes_read)
    return counts


def fit(counts, kernel_us, barrier_us):
    """Step time in us and rate in bytes/us, from the shortest and the longest length."""
    short, long = min(kernel_us), max(kernel_us)
    rest = {length: kernel_us[length] - counts[length][1] * barrier_us for length in (short, long)}
    rate = (counts[long][2] - counts[short][2]) / (rest[long] - rest[short])
    return (rest[short] - counts[short][2] / rate) / counts[short][0], rate


def write(folder, name, rows):
    with open(folder / f"{name}.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--mdot", default=TREE / "build/release/cli/mdot")
    parser.add_argument("--out", default=TREE / "weights/results", type=Path)
    parser.add_argument("reference", help="artefact of the reference predictor with the measured buckets, for sm_90a")
    parser.add_argument("clusters", help="the same for sm_90a+clusters")
    options = parser.parse_args()
    barrier_us = float(read_results("speed")["barrier_us"]["value"])
    measured = {int(k): float(v) for k, v in read_results("speed_gpu")["kernel"].items() if k.isdigit()}
    counts, clustered = (read_counts(options.mdot, path) for path in (options.reference, options.clusters))
    step_us, rate = fit(counts, measured, barrier_us)

    def predict(counts):
        return {n: barriers * barrier_us + steps * step_us + read / rate for n, (steps, barriers, read) in counts.items()}

    rows = (
        ("kilobytes", "read by a block, kB", {n: c[2] / 1e3 for n, c in counts.items()}),
        ("measured", "kernel, measured", measured),
        ("model", "kernel, model", predict(counts)),
        ("cluster_kilobytes", "read by a block of a cluster, kB", {n: c[2] / 1e3 for n, c in clustered.items()}),
        ("clusters", "kernel in clusters, model without their barriers", predict(clustered)),
    )
    write(options.out, "speed_model", [("key", "row", *measured)] +
          [(key, name, *(f"{values[n]:.0f}" for n in measured)) for key, name, values in rows])
    constants = ("now", f"{step_us:.2f}", f"{rate / 1e3:.0f}")
    write(options.out, "speed_model_constants", [("key", "step_us", "kilobytes_per_us"), constants])


if __name__ == "__main__":
    main()
