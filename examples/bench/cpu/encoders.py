"""Encoders in every spelling, compiled, against ONNX Runtime: table.md and results.json. Started by encoders.sh.

A round takes one sample of both sides of every encoder, one behind the other and in turns forwards and backwards. A
sample is some milliseconds of calls, of which the median is taken, by the thread's own processor time: on a machine with
neighbours the clock on the wall tells of them. Ratios are of samples that stood side by side, and the table has the
median over the rounds; beside it are the least times of both sides.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import time
from types import SimpleNamespace

import numpy as np

from measure import BOUNDS, Context, difference, processor
from peers import Mdot, OnnxRuntime

HALF_BOUND = 2e-2  # ONNX Runtime's answer in fp16, of the greatest output


class Encoder:
    """Both sides of a model, made ready for a length, and the samples taken of them."""

    def __init__(self, args, file, name, group):
        self.name, self.group = name, group
        path = os.path.join(args.models, file)
        context = Context(SimpleNamespace(model=path, artefact=path[: -len("onnx")] + "mdot", library=args.library,
                                          command=args.command))
        inputs = context.inputs(np.random.default_rng(args.length), args.length)
        mdot = Mdot(context, "fp32")
        self.level, self.ours = mdot.level, mdot.prepare(inputs, args.length)
        runtime = OnnxRuntime(context, "fp32")
        self.version, self.theirs = runtime.version, runtime.prepare(inputs, args.length)
        wanted = [np.array(o, np.float64) for o in self.theirs()]
        scale = [max(1e-3, float(np.max(np.abs(o)))) for o in wanted]
        self.difference = difference(self.ours(), wanted, scale)
        self.agrees = self.difference <= (HALF_BOUND if group == "fp16" else BOUNDS["fp32"])
        self.samples = []  # (ours, theirs)

    def take(self, seconds, backwards):
        calls = [self.theirs, self.ours] if backwards else [self.ours, self.theirs]
        times = [sample(call, seconds) for call in calls]
        self.samples.append(tuple(reversed(times)) if backwards else tuple(times))

    def row(self, plain):
        """`plain`: the encoder that is nothing but attention's scale, in the same rounds."""
        ours, theirs = zip(*self.samples)
        return {"name": self.name, "group": self.group, "us": min(ours), "peer_us": min(theirs),
                "ratio": statistics.median(o / t for o, t in self.samples),
                "of_plain": statistics.median(o / p for o, (p, _) in zip(ours, plain.samples)),
                "difference": self.difference, "agrees": self.agrees}


def sample(call, seconds):
    """Median µs of processor time; the first call finds caches as the side before left them, and does not count."""
    call()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.thread_time_ns()
        call()
        times.append((time.thread_time_ns() - start) / 1e3)
    return statistics.median(times)


def write_table(results, path):
    rows, machine = results["rows"], results["machine"]
    reference = rows[0]["ratio"]
    lines = [f"# Encoders on one thread, {results['length']} rows", "",
             f"{machine['processor']['name']} (family {machine['processor']['family']}, model "
             f"{machine['processor']['model']}), {machine['system']}; mdot's {results['level']}, fp32; ONNX Runtime "
             f"{results['runtime']}. {results['rounds']} rounds, interleaved in one process; times are the thread's own, the "
             "least of the rounds, in µs; a ratio is the median of the rounds' ratios, mdot's time by ONNX Runtime's, "
             "and the last column mdot's time by that of the plain encoder.", "",
             "| encoder | mdot | ONNX Runtime | ratio | of the plain one |", "| --- | --- | --- | --- | --- |"]
    for row in rows:
        name = row["name"] + {"minilm": ", MiniLM's shape", "fp16": ", fp16"}.get(row["group"], "")
        of_plain = f"{row['of_plain']:.2f}" if row["group"] == "two-layers" else ""
        lines.append(f"| {name}{'' if row['agrees'] else ' **differs**'} | {row['us']:.0f} | {row['peer_us']:.0f} | "
                     f"{row['ratio']:.2f} | {of_plain} |")
    encoders = [row["ratio"] for row in rows if row["group"] == "two-layers"]
    lines += ["", f"Of the {len(encoders)} encoders of two layers the median ratio is {statistics.median(encoders):.3f}, the "
              f"greatest {max(encoders):.3f}; the reference predictor's is {reference:.3f}. Greatest difference of answers in "
              f"fp32: {max(row['difference'] for row in rows if row['group'] != 'fp16'):.0e} of the greatest output."]
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("models", help="a folder with models, their artefacts, and a list of them")
    parser.add_argument("--library", required=True, help="libmdot.so")
    parser.add_argument("--command", required=True, help="mdot")
    parser.add_argument("--out", required=True, help="a folder")
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--sample-ms", type=float, default=10)
    args = parser.parse_args()

    with open(os.path.join(args.models, "list"), encoding="utf-8") as stream:
        encoders = [Encoder(args, *line.rstrip("\n").split("\t")) for line in stream]
    print(f"encoders.sh: measuring {len(encoders)} encoders", file=sys.stderr)
    for number in range(args.rounds):
        for encoder in encoders[:: -1 if number % 2 else 1]:
            encoder.take(args.sample_ms * 1e-3, number % 2 == 1)
    plain = next(e for e in encoders if e.group == "two-layers")
    results = {"machine": {"processor": processor(), "system": platform.platform()}, "length": args.length,
               "rounds": args.rounds, "level": encoders[0].level, "runtime": encoders[0].version, "rows": [e.row(plain) for e in encoders]}
    with open(os.path.join(args.out, "results.json"), "w", encoding="utf-8") as stream:
        json.dump(results, stream, indent=1)
        stream.write("\n")
    write_table(results, os.path.join(args.out, "table.md"))
    sys.exit(0 if all(e.agrees for e in encoders) else 1)


if __name__ == "__main__":
    main()
