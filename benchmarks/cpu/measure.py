"""Latency of a compiled predictor against peers on one core, interleaved in one process, outputs compared.

A sample is the median over a few milliseconds of successive calls. Before and after it, the core's multiply-add rate
is probed. A sample counts as quiet if that rate is close to the run's best and the process had nearly all the time;
otherwise a neighbour was busy. Rounds continue until every side has enough quiet samples at every length, or until
the time is used up. cpu.sh builds the inputs and starts this program. cpu_report.py makes the table and the plots.
"""

import argparse
import ctypes
import json
import os
import platform
import statistics
import subprocess
import sys
import time

import numpy as np

from libmdot import Failure, Predictor
from cpu_peers import PRECISIONS, SIDES, Absent

LEVELS = {"fp32": ["x86-64-v3", "x86-64-v4"], "bf16": ["x86-64-bf16", "x86-64-amx"]}
BOUNDS = {"fp32": 1e-4, "bf16": 5e-2}  # relative to the greatest output; peers in bf16 keep residuals and sums in bf16, too
QUIET_RATE, QUIET_SHARE = 0.97, 0.97  # relative to the best rate; relative to the elapsed time, by the process's own clock
CEILING_SECONDS, CEILING_PIECE, PROBE_SECONDS = 0.3, 0.002, 0.0005
SCALE_ITEMS = 16
DTYPES = {"i64": np.int64, "i32": np.int32, "f16": np.float16, "f32": np.float32, "f64": np.float64, "bool": np.bool_}


# ---- The model ---------------------------------------------------------------------------------------------------------


def concrete(dims, length):
    return [d["scale"] * length + d["offset"] + d.get("times", 0) * ((d.get("step", 0) * length + d.get("start", 0))
                                                                     // d.get("divisor", 1)) for d in dims]


def random_array(rng, tensor, length):
    dtype, shape = DTYPES[tensor["dtype"]], concrete(tensor["dims"], length)
    if dtype == np.bool_:
        array = rng.random(shape) < rng.uniform(0.5, 1)
        array.flat[0] = True
        return array
    if np.issubdtype(dtype, np.integer):
        return rng.integers(0, 2, shape, dtype=dtype)
    return rng.standard_normal(shape).astype(dtype)


class Context:
    """The model description for all sides."""

    def __init__(self, args):
        self.model, self.artefact, self.library = args.model, args.artefact, args.library
        text = subprocess.run([args.command, "inspect", args.artefact, "--json"], check=True, capture_output=True).stdout
        self.entry = json.loads(text)["entries"][0]
        self.is_reference = [i["name"] for i in self.entry["inputs"]] == ["op_type", "op_config", "op_load", "position",
                                                                          "mask"]
        self.symbol = self.find_symbol() if self.entry["has_length"] else None

    def find_symbol(self):
        """The name of the length in the ONNX file."""
        ort = __import__("onnxruntime")
        session = ort.InferenceSession(self.model, providers=["CPUExecutionProvider"])
        for tensor, there in zip(self.entry["inputs"], session.get_inputs()):
            for dim, size in zip(tensor["dims"], there.shape):
                if dim == {"scale": 1, "offset": 0} and isinstance(size, str):
                    return size
        return None

    def inputs(self, rng, length):
        return {t["name"]: random_array(rng, t, length) for t in self.entry["inputs"]}

    def outputs(self, length):
        return [np.zeros(concrete(t["dims"], length), DTYPES[t["dtype"]]) for t in self.entry["outputs"]]

    def flops(self, length):
        """FLOPs for a call; None unless the length is a bucket's full length."""
        return next((b["flops"] for b in self.entry["buckets"] if b["max_length"] == length), None)


# ---- The core ----------------------------------------------------------------------------------------------------------


class Core:
    """The core's multiply-adds per second, measured by the loops that `mdot bench` compares with (cli/bench/bench_peak.c)."""

    def __init__(self, context, probe):
        self.gflops = ctypes.CDLL(probe).bench_peak_gflops
        self.gflops.argtypes, self.gflops.restype = [ctypes.c_char_p, ctypes.c_double], ctypes.c_double
        self.ceilings = {}
        for level in (level for levels in LEVELS.values() for level in levels):
            try:
                Predictor(context.library, context.artefact, level=level)  # opening also requests the permission
            except Failure as reason:
                self.ceilings[level] = {"absent": str(reason)}
            else:
                self.ceilings[level] = {"gflops": self.ceiling(level)}
        self.level = max((level for level in LEVELS["fp32"] if "gflops" in self.ceilings[level]), key=self.of)
        self.best = self.of(self.level)

    def ceiling(self, level):
        pieces = int(CEILING_SECONDS / CEILING_PIECE)
        return max(self.gflops(level.encode(), CEILING_PIECE) for _ in range(pieces))

    def of(self, level):
        return self.ceilings[level].get("gflops", 0)

    def peak(self, precision):
        """The ceiling for this CPU in this precision; the f32 ceiling if the CPU lacks bf16 dot products and tiles."""
        return max([self.of(level) for level in LEVELS[precision]] + [0]) or self.best

    def probe(self):
        rate = self.gflops(self.level.encode(), PROBE_SECONDS)
        self.best = max(self.best, rate)
        return rate


# ---- Sides -------------------------------------------------------------------------------------------------------------


def attempt(notes, label, make):
    """The result of `make`; None if it fails, with the reason in a note."""
    try:
        return make()
    except Absent as reason:
        notes.append({**label, "absent": str(reason)})
    except Exception as reason:  # pylint: disable=broad-except # each peer has its own exceptions
        notes.append({**label, "failed": f"{type(reason).__name__}: {reason}".split("\n", maxsplit=1)[0][:300]})
    return None


def find_sides(context, names, notes):
    sides = []
    for precision in PRECISIONS:
        for kind in (kind for name in names for kind in SIDES[name]):
            label = {"side": getattr(kind, "name", "mdot"), "precision": precision}
            side = attempt(notes, label, lambda kind=kind, precision=precision: kind(context, precision))
            if side is not None:
                sides.append(side)
    return sides


def difference(got, wanted, scale):
    return max(float(np.max(np.abs(g.astype(np.float64) - w))) / s for g, w, s in zip(got, wanted, scale))


def make_cases(context, oracle, sides, length, notes):
    """Prepare every side at one length on the same inputs, with its difference from ONNX Runtime's outputs in f32."""
    rng = np.random.default_rng(length)
    scale = [1e-3 for _ in context.outputs(length)]
    for _ in range(SCALE_ITEMS):
        inputs = context.inputs(rng, length)
        outputs = oracle.prepare(inputs, length)()
        scale = [max(s, float(np.max(np.abs(o)))) for s, o in zip(scale, outputs)]
    wanted = [np.array(o, np.float64) for o in outputs]
    cases = []
    for side in sides:
        label = {"side": side.name, "precision": side.precision, "length": length}

        def ready(side=side, label=label):
            call = side.prepare(inputs, length)
            off = difference(call(), wanted, scale)
            return {**label, "difference": off, "agrees": off <= BOUNDS[side.precision], "call": call, "samples": []}

        case = attempt(notes, label, ready)
        if case is not None:
            cases.append(case)
    return cases


# ---- Measuring ---------------------------------------------------------------------------------------------------------


def sample(core, call, seconds):
    """Take a sample. The first call is excluded, because it finds the caches as the previous side left them."""
    call()
    before = core.probe()
    times, begin, own = [], time.perf_counter(), time.process_time()
    end = begin + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - start) / 1e3)
    share = (time.process_time() - own) / (time.perf_counter() - begin)
    return {"us": statistics.median(times), "rate": min(before, core.probe()), "share": share}


def is_quiet(core, one):
    return one["rate"] >= QUIET_RATE * core.best and one["share"] >= QUIET_SHARE


def quiet(core, case):
    return [one for one in case["samples"] if is_quiet(core, one)]


def measure(core, cases, args):
    """Run rounds over all lengths, alternately forwards and backwards."""
    end, number = time.monotonic() + args.seconds, 0
    lengths = sorted({case["length"] for case in cases})
    while time.monotonic() < end:
        wanting = 0
        for length in lengths:
            these = [case for case in cases if case["length"] == length]
            if all(len(quiet(core, case)) >= args.samples for case in these):
                continue
            wanting += 1
            for case in these if number % 2 == 0 else these[::-1]:
                case["samples"].append(sample(core, case["call"], args.sample_ms * 1e-3))
        number += 1
        if wanting == 0:
            break
    return number


def summary(core, context, case):
    """A result row. Without quiet samples, the time is the median over all samples, and `quiet` is 0."""
    silent = quiet(core, case)
    times = [one["us"] for one in silent or case["samples"]]
    row = {key: case[key] for key in ("side", "precision", "length", "difference", "agrees")}
    if not times:
        return {**row, "us": None, "quiet": 0, "samples": 0}
    flops, us = context.flops(case["length"]), statistics.median(times)
    row.update(us=us, least_us=min(times), quiet=len(silent), samples=len(case["samples"]))
    if flops:
        row.update(gflops=flops / us * 1e-3, peak_share=flops / us * 1e-3 / core.peak(case["precision"]))
    return row


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as stream:
        lines = dict(line.split(":", 1) for line in stream if ":" in line)
    traits = {key.strip(): value.strip() for key, value in lines.items()}
    return {"name": traits.get("model name", "?"), "family": traits.get("cpu family"), "model": traits.get("model"),
            "bf16": [flag for flag in ("avx512_bf16", "amx_bf16") if flag in traits.get("flags", "").split()],
            "cores": os.cpu_count()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("model")
    parser.add_argument("artefact")
    parser.add_argument("--library", required=True, help="libmdot.so")
    parser.add_argument("--probe", required=True, help="libbench_peak.so")
    parser.add_argument("--command", required=True, help="mdot")
    parser.add_argument("--json", required=True, help="the results")
    parser.add_argument("--lengths", default="32,64,128,256,512,1024")
    parser.add_argument("--peers", default="onnxruntime,openvino,torch", help="some of these")
    parser.add_argument("--samples", type=int, default=10, help="quiet ones of each side and length")
    parser.add_argument("--sample-ms", type=float, default=10, help="of a sample; at least one call")
    parser.add_argument("--seconds", type=float, default=300, help="at most, altogether")
    args = parser.parse_args()

    context, notes = Context(args), []
    core = Core(context, args.probe)
    names = ["mdot"] + [name for name in args.peers.split(",") if name]
    sides = find_sides(context, names, notes)
    oracle = SIDES["onnxruntime"][0](context, "fp32")
    lengths = [int(n) for n in args.lengths.split(",")] if context.entry["has_length"] else [0]
    cases = []
    for length in lengths:
        print(f"cpu.sh: making every side ready for length {length}", file=sys.stderr)
        cases += make_cases(context, oracle, sides, length, notes)
    print("cpu.sh: measuring", file=sys.stderr)
    rounds = measure(core, cases, args)
    results = {"model": args.model, "machine": {"processor": processor(), "system": platform.platform()},
               "versions": {"python": platform.python_version(), "numpy": np.__version__,
                            **{side.name.split(",")[0]: side.version for side in sides}},
               "levels": {side.precision: side.level for side in sides if side.name == "mdot"},
               "ceilings": core.ceilings, "bounds": BOUNDS, "rounds": rounds, "sample_ms": args.sample_ms, "notes": notes,
               "rows": [summary(core, context, case) for case in cases]}
    with open(args.json, "w", encoding="utf-8") as stream:
        json.dump(results, stream, indent=1)
        stream.write("\n")


if __name__ == "__main__":
    main()
