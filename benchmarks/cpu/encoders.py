"""Measure encoders in every supported pattern against ONNX Runtime: table.md and results.json. Started by encoders.sh.

A round takes one sample of both sides of every encoder, one directly after the other, alternately forwards and
backwards. A sample is the median over a few milliseconds of calls. It uses the thread's processor time, because wall
time includes the load by neighbours on the machine. A ratio compares two adjacent samples, and the table contains
the median over the rounds, with the minimum times on both sides.
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

from measure import BOUNDS, Context, Core, difference, processor
from cpu_peers import Mdot, OnnxRuntime

GROUPS = {"reference": "reference predictor", "minilm": "MiniLM's shape", "two-layers": "two layers of width 128",
          "fp16": "two layers in fp16"}
HALF_BOUND = 2e-2  # for ONNX Runtime's output in fp16, relative to the greatest output


class Encoder:
    """Both sides of a model, prepared for a length, with samples."""

    def __init__(self, args, file, name, group):
        self.name, self.group = name, group
        path = os.path.join(args.models, file)
        context = Context(SimpleNamespace(model=path, artefact=path[: -len("onnx")] + "mdot", library=args.library,
                                          command=args.command))
        self.context, self.flops = context, context.flops(args.length)
        inputs = context.inputs(np.random.default_rng(args.length), args.length)
        mdot = Mdot(context, "fp32")
        self.level, self.ours = mdot.level, mdot.prepare(inputs, args.length)
        runtime = OnnxRuntime(context, "fp32")
        self.version, self.theirs = runtime.version, runtime.prepare(inputs, args.length)
        self.refused = self.difference = None  # why ONNX Runtime cannot run the model; difference of the outputs
        self.samples = []  # (ours, theirs)
        try:
            wanted = [np.array(o, np.float64) for o in self.theirs()]
        except Exception as reason:  # pylint: disable=broad-except # each failure has its own class
            self.refused, self.agrees = str(reason), True
            return
        scale = [max(1e-3, float(np.max(np.abs(o)))) for o in wanted]
        self.difference = difference(self.ours(), wanted, scale)
        self.agrees = self.difference <= (HALF_BOUND if group == "fp16" else BOUNDS["fp32"])

    def take(self, seconds, backwards):
        calls = [self.ours] if self.refused else [self.ours, self.theirs]
        times = {call: sample(call, seconds) for call in (calls[::-1] if backwards else calls)}
        self.samples.append((times[self.ours], times.get(self.theirs)))

    def row(self, plain, gflops):
        """A row of the results. `plain` is the encoder with attention's scale only, in the same rounds; `gflops` is the
        core's peak rate."""
        ours, theirs = zip(*self.samples)
        ran = not self.refused
        return {"name": self.name, "group": self.group, "us": min(ours), "peer_us": min(theirs) if ran else None,
                "ratio": statistics.median(o / t for o, t in self.samples) if ran else None, "refused": self.refused,
                "peak_us": self.flops / gflops * 1e-3,
                "of_plain": statistics.median(o / p for o, (p, _) in zip(ours, plain.samples)),
                "difference": self.difference, "agrees": self.agrees}


def sample(call, seconds):
    """Median µs of processor time. The first call is excluded, because it finds the caches as the previous side left them."""
    call()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.thread_time_ns()
        call()
        times.append((time.thread_time_ns() - start) / 1e3)
    return statistics.median(times)


def ratio_at_peak(rows):
    """The median ratio for hypothetical kernels at the core's peak rate, by all operations that mdot counts."""
    return statistics.median(row["peak_us"] / row["peer_us"] for row in rows)


def write_table(results, path):
    rows, processor_name = results["rows"], results["machine"]["processor"]
    lines = [f"# Encoders on one thread, {results['length']} rows", "",
             f"{processor_name['name']} (family {processor_name['family']}, model {processor_name['model']}), "
             f"{results['machine']['system']}; mdot's {results['level']}, fp32; ONNX Runtime {results['runtime']}. "
             f"{results['rounds']} rounds, interleaved in one process. Times are the thread's processor time in µs, the "
             "minimum over the rounds. A ratio is mdot's time divided by ONNX Runtime's, the median over the rounds. `% of peak` is "
             f"mdot's utilisation of the core's multiply-add rate, {results['gflops']:.1f} GFLOP/s. `of plain` is mdot's "
             "time divided by that of the plain encoder.", "",
             "| encoder | mdot | ONNX Runtime | ratio | % of peak | of plain |", "| --- | --- | --- | --- | --- | --- |"]
    for row in rows:
        name = row["name"] + {"minilm": ", MiniLM's shape", "fp16": ", fp16"}.get(row["group"], "")
        name += "" if row["agrees"] else " **differs**"
        theirs = "unsupported | " if row["refused"] else f"{row['peer_us']:.0f} | {row['ratio']:.2f}"
        of_plain = f"{row['of_plain']:.2f}" if row["group"] == "two-layers" else ""
        lines.append(f"| {name} | {row['us']:.0f} | {theirs} | {100 * row['peak_us'] / row['us']:.0f} | {of_plain} |")
    groups = {group: [row for row in rows if row["group"] == group and not row["refused"]] for group in GROUPS}
    lines += ["", "| | encoders | median ratio | greatest ratio | ratio at peak rate |", "| --- | --- | --- | --- | --- |"]
    for group, name in GROUPS.items():
        ratios = [row["ratio"] for row in groups[group]]
        if ratios:
            lines.append(f"| {name} | {len(ratios)} | {statistics.median(ratios):.3f} | {max(ratios):.3f} | "
                         f"{ratio_at_peak(groups[group]):.3f} |")
    worst = max(row["difference"] or 0 for row in rows if row["group"] != "fp16")
    lines += ["", f"The outputs in fp32 differ by at most {worst:.0e}, relative to the greatest output."]
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("models", help="a folder with models, their artefacts, and a list of them")
    parser.add_argument("--library", required=True, help="libmdot.so")
    parser.add_argument("--command", required=True, help="mdot")
    parser.add_argument("--probe", required=True, help="libbench_peak.so")
    parser.add_argument("--out", required=True, help="a folder")
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--sample-ms", type=float, default=10)
    args = parser.parse_args()

    with open(os.path.join(args.models, "list"), encoding="utf-8") as stream:
        encoders = [Encoder(args, *line.rstrip("\n").split("\t")) for line in stream]
    core = Core(encoders[0].context, args.probe)
    print(f"encoders.sh: measuring {len(encoders)} encoders", file=sys.stderr)
    for number in range(args.rounds):
        core.probe()
        for encoder in encoders[:: -1 if number % 2 else 1]:
            encoder.take(args.sample_ms * 1e-3, number % 2 == 1)
    plain = next(e for e in encoders if e.group == "two-layers")
    results = {"machine": {"processor": processor(), "system": platform.platform()}, "length": args.length,
               "rounds": args.rounds, "level": encoders[0].level, "runtime": encoders[0].version, "gflops": core.best,
               "rows": [e.row(plain, core.best) for e in encoders]}
    with open(os.path.join(args.out, "results.json"), "w", encoding="utf-8") as stream:
        json.dump(results, stream, indent=1)
        stream.write("\n")
    write_table(results, os.path.join(args.out, "table.md"))
    sys.exit(0 if all(e.agrees for e in encoders) else 1)


if __name__ == "__main__":
    main()
