"""Runs one model in ONNX Runtime and in mdot, and compares the outputs.

An element's tolerance is the sum of two parts. The first is `rounding` units of the type's spacing (operators.py)
times the element, or, if the graph adds terms, times the greatest element in the row. The second is eight times the
change in ONNX Runtime's result when every input changes by one or two units, because a cancellation enlarges both
alike. Elements that become infinite or NaN through such a change are left out. Integers and booleans must be equal.
"""

import json
import os
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from graphs import EPSILON, TYPES

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "common"))
from libmdot import Failure, Predictor  # noqa: E402

TRIALS = 4
onnxruntime.set_default_logger_severity(4)


class Skipped(Exception):
    """One of the two sides cannot run the model; the argument is the reason."""


def session(model, optimised=True):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its exceptions lack a common base
        raise Skipped("ONNX Runtime: " + str(error).split("\n", maxsplit=1)[0][:160]) from None


def expected(runner, feeds):
    try:
        return runner.run(None, feeds)
    except Exception as error:
        raise Skipped("ONNX Runtime: " + str(error).split("\n", maxsplit=1)[0][:160]) from None


class Mdot:
    """The command and the library of one build."""

    def __init__(self, build):
        self.command = os.path.join(build, "cli", "mdot")
        self.library = os.path.join(build, "runtime", "libmdot.so")

    def compile(self, path, artefact, buckets, min_length, level):
        line = [self.command, "compile", path, "-o", artefact, "-q", "-b", ",".join(map(str, buckets)), "-t", level]
        line += ["--min-length", str(min_length)] if min_length > 1 else []
        done = subprocess.run(line, capture_output=True, text=True, errors="replace", timeout=300, check=False)
        return done.returncode, done.stderr.strip(), line

    def run(self, artefact, graph, feeds, outputs, length):
        """Outputs of the artefact; bytes behind each one are checked."""
        predictor = Predictor(self.library, artefact)
        inputs = [np.ascontiguousarray(feeds[v.name]) for v in graph.inputs]
        raws = [np.full(o.nbytes + 128, 0xA5, np.uint8) for o in outputs]
        views = []
        for raw, like in zip(raws, outputs):
            start = -raw.ctypes.data % 64
            views.append(raw[start:start + like.nbytes].view(like.dtype).reshape(like.shape))
        keep = [a if a.size else np.zeros(1, a.dtype) for a in inputs]
        predictor.bind(keep, views, length)()
        for raw, like in zip(raws, outputs):
            end = -raw.ctypes.data % 64 + like.nbytes
            if (raw[end:] != 0xA5).any():
                raise Failure("mdot wrote behind an output")
        return views

    def agrees_with_evaluator(self, artefact, path, folder):
        """Whether mdot's reference evaluator agrees with the compiled code on the inputs in this folder."""
        line = [self.command, "verify", artefact, path, "--inputs", folder, "--json"]
        done = subprocess.run(line, capture_output=True, text=True, errors="replace", timeout=300, check=False)
        try:
            rows = json.loads(done.stdout)
        except ValueError:
            rows = []
        return bool(rows) and all(row["passed"] for row in rows), (done.stdout + done.stderr).strip()


def nudged(feeds, rng):
    """The feeds, with every floating-point number moved by up to two units in the last place."""
    moved = {}
    for name, array in feeds.items():
        if array.dtype.kind != "f":
            moved[name] = array
            continue
        step = np.finfo(array.dtype).eps * rng.choice([-1.0, -0.5, 0.5, 1.0], size=array.shape)
        with np.errstate(all="ignore"):
            moved[name] = (array * (1 + step).astype(array.dtype)).astype(array.dtype)
    return moved


def tolerances(graph, value, want, trials):
    """The tolerance for each element in one output, and which elements are comparable."""
    with np.errstate(all="ignore"):
        reference = want.astype(np.float64)
        stable = np.ones(want.shape, bool)
        change = np.zeros(want.shape)
        for trial in trials:
            other = trial.astype(np.float64)
            stable &= (np.isfinite(other) == np.isfinite(reference)) & (np.isnan(other) == np.isnan(reference))
            both = np.isfinite(other) & np.isfinite(reference)
            change = np.maximum(change, np.where(both, np.abs(other - reference), 0))
        magnitude = np.where(np.isfinite(reference), np.abs(reference), 0)
        if graph.sums and magnitude.size:
            magnitude = np.full_like(magnitude, magnitude.max())
            change = np.full_like(change, change.max())
        epsilon = max(EPSILON[value.dtype], EPSILON["f32"] if not graph.only_f64 else 0)
        floor = float(np.finfo(TYPES[value.dtype][1]).tiny) * 4
        # ONNX Runtime approximates erf, tanh and others with an absolute error, which cancellation in GELU shows
        floor += graph.rounding * epsilon if graph.functions else 0
        return (graph.rounding * magnitude * epsilon + 8 * change + floor) if not value.exact else np.zeros(want.shape), stable


def difference(graph, value, got, want, trials):
    """None, or a text that describes the worst element."""
    if value.dtype not in EPSILON:
        wrong = got != want
    else:
        limit, stable = tolerances(graph, value, want, trials)
        with np.errstate(all="ignore"):
            error = np.abs(got.astype(np.float64) - want.astype(np.float64))
        finite = np.isfinite(got) & np.isfinite(want)
        same_special = (np.isnan(got) & np.isnan(want)) | (got == want)
        wrong = stable & ~same_special & ~(finite & (error <= limit))
    if not wrong.any():
        return None
    at = np.argwhere(wrong)[0] if wrong.ndim else np.array([], int)
    index = tuple(int(i) for i in at)
    return f"output {value.name}{list(index)}: mdot {got[index]!r}, ONNX Runtime {want[index]!r}; {int(wrong.sum())} of {wrong.size}"


def save_inputs(graph, feeds, folder):
    os.makedirs(folder, exist_ok=True)
    for i, value in enumerate(graph.inputs):
        with open(os.path.join(folder, f"input_{i}.pb"), "wb") as file:
            file.write(numpy_helper.from_array(feeds[value.name], value.name).SerializeToString())


def third_opinion(model, feeds, index):
    """Output `index` by onnx's own reference implementation. The answer is None if that fails to run the model."""
    try:
        from onnx.reference import ReferenceEvaluator
        with np.errstate(all="ignore"):
            return ReferenceEvaluator(onnx.load_from_string(model.SerializeToString())).run(None, feeds)[index]
    except Exception:  # after any failure, the reference abstains
        return None
