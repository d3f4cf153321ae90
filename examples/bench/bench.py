"""Latency of compiled predictors against ONNX Runtime, interleaved in one process, outputs compared.

Both sides run on one thread over preallocated inputs and outputs: mdot through its C library (ctypes), ONNX Runtime
through I/O binding. Each round measures every length on both, in alternating order; medians and their ratio are printed.
Started by run.sh, which builds what this needs.
"""

import argparse
import ctypes
import json
import statistics
import sys
import time

import numpy as np
import onnxruntime as ort

DTYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64,
          "tensor(int32)": np.int32, "tensor(bool)": np.bool_}


class MdotError(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("message", ctypes.c_char * 1024)]


class Mdot:
    """One context of an opened artefact; inputs and outputs in the entry's order, which is the model's."""

    def __init__(self, library, artefact):
        self.lib = ctypes.CDLL(library)
        self.error = MdotError()
        self.predictor = ctypes.c_void_p()
        self.context = ctypes.c_void_p()
        self._check(self.lib.mdot_predictor_open(artefact.encode(), None, ctypes.byref(self.predictor),
                                                 ctypes.byref(self.error)))
        self._check(self.lib.mdot_context_create(self.predictor, ctypes.byref(self.context),
                                                 ctypes.byref(self.error)))
        self.lib.mdot_run_ordered.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64, ctypes.c_void_p,
                                              ctypes.c_void_p, ctypes.c_void_p]

    def _check(self, status):
        if status != 0:
            sys.exit(f"mdot: {self.error.message.decode()}")

    def bind(self, inputs, outputs, length):
        pointers_in = (ctypes.c_void_p * len(inputs))(*[a.ctypes.data for a in inputs])
        pointers_out = (ctypes.c_void_p * len(outputs))(*[a.ctypes.data for a in outputs])
        run, context, error = self.lib.mdot_run_ordered, self.context, ctypes.byref(self.error)

        def call():
            if run(context, 0, length, pointers_in, pointers_out, error) != 0:
                self._check(1)

        return call


def random_input(rng, kind, shape):
    dtype = DTYPES[kind]
    if dtype == np.bool_:
        array = rng.random(shape) < 0.9
        array.flat[0] = True
        return array
    if np.issubdtype(dtype, np.integer):
        return rng.integers(0, 2, shape, dtype=dtype)
    return rng.standard_normal(shape).astype(dtype)


def concrete(shape, symbol, length):
    return [length if d == symbol else 1 if isinstance(d, str) else d for d in shape]


def find_symbol(runtime):
    """The dimension that is the length: the symbol that is not only ever a leading batch."""
    inner = {d for i in runtime.get_inputs() for d in i.shape[1:] if isinstance(d, str)}
    return inner.pop() if len(inner) == 1 else None


def bind_ort(runtime, inputs, outputs):
    binding = runtime.io_binding()
    for info, array in zip(runtime.get_inputs(), inputs):
        binding.bind_input(info.name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
    for info, array in zip(runtime.get_outputs(), outputs):
        binding.bind_output(info.name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
    return lambda: runtime.run_with_iobinding(binding)


def measure(call, seconds):
    """Times of single calls, in µs, for at least `seconds` and three calls."""
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - start) / 1e3)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("artefact")
    parser.add_argument("--library", required=True, help="libmdot.so")
    parser.add_argument("--lengths", default="32,64,128,256,512,1024")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.05, help="per side, length and round")
    parser.add_argument("--json", help="write the table here too")
    args = parser.parse_args()

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    runtime = ort.InferenceSession(args.model, options, providers=["CPUExecutionProvider"])
    symbol = find_symbol(runtime)
    mdot = Mdot(args.library, args.artefact)
    rng = np.random.default_rng(1)

    cases = []
    for length in [int(n) for n in args.lengths.split(",")] if symbol else [0]:
        inputs = [random_input(rng, i.type, concrete(i.shape, symbol, length)) for i in runtime.get_inputs()]
        wanted = runtime.run(None, {i.name: a for i, a in zip(runtime.get_inputs(), inputs)})
        got = [np.full_like(a, np.nan) if a.dtype.kind == "f" else np.zeros_like(a) for a in wanted]
        again = [np.zeros_like(a) for a in wanted]
        ours, theirs = mdot.bind(inputs, got, length), bind_ort(runtime, inputs, again)
        ours()
        error = max(float(np.max(np.abs(g.astype(np.float64) - w)) / max(1e-3, float(np.max(np.abs(w)))))
                    for g, w in zip(got, wanted))
        if not error < 1e-3:
            sys.exit(f"outputs differ at length {length}: relative error {error:.2e}")
        cases.append({"length": length, "error": error, "calls": (ours, theirs), "times": ([], []),
                      "arrays": (inputs, got, again)})  # both sides hold bare addresses

    for round_number in range(args.rounds):
        for case in cases:
            for side in (0, 1) if round_number % 2 == 0 else (1, 0):
                case["times"][side].extend(measure(case["calls"][side], args.seconds)[1:])

    print(f"{args.model}, one thread, ONNX Runtime {ort.__version__}, {args.rounds} interleaved rounds")
    print(f"{'length':>7} {'mdot µs':>10} {'ORT µs':>10} {'mdot/ORT':>9} {'difference':>11}")
    rows = []
    for case in cases:
        ours, theirs = (statistics.median(t) for t in case["times"])
        rows.append({"length": case["length"], "mdot_us": ours, "ort_us": theirs, "ratio": ours / theirs,
                     "relative_difference": case["error"]})
        print(f"{case['length']:7d} {ours:10.1f} {theirs:10.1f} {ours / theirs:9.3f} {case['error']:11.1e}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as stream:
            json.dump({"onnxruntime": ort.__version__, "threads": 1, "rows": rows}, stream, indent=1)


if __name__ == "__main__":
    main()
