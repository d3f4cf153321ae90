"""Latency of mdot on a GPU against PyTorch and ONNX Runtime, interleaved in one process, outputs compared.

    gpu_peers.py --model MODEL.onnx --artefact MODEL.mdot --library libmdot.so --rows ROWS.jsonl

Every side takes the prediction's inputs from host memory and leaves the result there, as a scheduler calls it.
Everything that can be prepared beforehand (weights, static buffers, graphs) is prepared. PyTorch runs the reference
predictor (reference.py) as a module with PyTorch's fused functions, in bf16 throughout. A side that cannot run here
is listed with the reason. `gpu.sh run` starts this program. It needs numpy, and uses the other packages if they are
installed.
"""

import argparse
import json
import sys
import time

import numpy as np

from libmdot import Predictor
from reference_module import make_module

ROUNDS = 10
SCALE_ITEMS = 16
SANE_DIFFERENCE = 0.1  # far beyond the rounding of bf16; a larger difference means another model
ORDER = [128, 64, 256, 512, 1024, 32]  # most important lengths first, because the time may run out


class Absent(Exception):
    """A side cannot run on this machine."""


# ---- mdot --------------------------------------------------------------------------------------------------------------


class Mdot(Predictor):
    name = "mdot"

    def prepare(self, inputs):
        call = self.bind(list(inputs.values()), [np.zeros((1, 1), np.float32)], inputs["mask"].shape[1])

        def first():
            return call()[0]

        return first


# ---- PyTorch -----------------------------------------------------------------------------------------------------------


def torch_on_gpu():
    try:
        import torch
    except ImportError as reason:
        raise Absent(str(reason)) from reason
    if not torch.cuda.is_available():
        raise Absent(f"torch {torch.__version__} sees no GPU")
    return torch


class Torch:
    """Inputs are copied implicitly and the result is copied back, as in a straightforward program."""

    name = "torch eager, bf16"

    def __init__(self, model):
        self.torch = torch_on_gpu()
        self.module = make_module(self.torch, model).to("cuda", self.torch.bfloat16)

    def compile(self):
        return self.module

    def prepare(self, inputs):
        run = self.compile()
        pinned = [self.torch.from_numpy(a).pin_memory() for a in inputs.values()]

        def call():
            with self.torch.inference_mode():
                return run(*[p.to("cuda", non_blocking=True) for p in pinned]).cpu().numpy()

        return call


class TorchReduceOverhead(Torch):
    """torch.compile with the CUDA graphs that it creates."""

    name = "torch.compile, reduce-overhead (CUDA graphs), bf16"

    def compile(self):
        self.torch._dynamo.reset()  # pylint: disable=protected-access # generate new code for each length
        return self.torch.compile(self.module, mode="reduce-overhead", dynamic=False)


class TorchGraph(Torch):
    """The compiled module and both copies in one CUDA graph: the lower bound of PyTorch."""

    name = "torch.compile, one CUDA graph with the copies, bf16"

    def prepare(self, inputs):
        torch = self.torch
        torch._dynamo.reset()  # pylint: disable=protected-access
        run = torch.compile(self.module, dynamic=False)
        pinned = [torch.from_numpy(a).pin_memory() for a in inputs.values()]
        static = [p.to("cuda") for p in pinned]
        result = torch.zeros(1, 1).pin_memory()

        def step():
            for s, p in zip(static, pinned):
                s.copy_(p, non_blocking=True)
            result.copy_(run(*static), non_blocking=True)

        with torch.inference_mode():
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for _ in range(3):
                    step()
            stream.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                step()

        def call():
            graph.replay()
            torch.cuda.current_stream().synchronize()
            return result.numpy()

        return call


# ---- ONNX Runtime ------------------------------------------------------------------------------------------------------


class OnnxRuntime:
    name = "ONNX Runtime CUDA, fp32"
    options = {}

    def __init__(self, model):
        try:
            import onnxruntime
        except ImportError as reason:
            raise Absent(str(reason)) from reason
        self.ort = onnxruntime
        if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
            raise Absent(f"onnxruntime {onnxruntime.__version__} has no CUDA provider")
        self.model = model
        self.open()

    def open(self):
        session = self.ort.InferenceSession(self.model, providers=[("CUDAExecutionProvider", self.options)])
        if session.get_providers()[0] != "CUDAExecutionProvider":
            raise Absent(f"onnxruntime {self.ort.__version__}: its CUDA provider does not start")
        return session

    def prepare(self, inputs):
        session, result = self.open(), np.zeros((1, 1), np.float32)
        binding = session.io_binding()
        for name, a in inputs.items():
            binding.bind_input(name, "cpu", 0, a.dtype, a.shape, a.ctypes.data)
        binding.bind_output("latency", "cpu", 0, result.dtype, result.shape, result.ctypes.data)

        def call():
            session.run_with_iobinding(binding)
            return result

        call.keeps = inputs
        return call


class OnnxRuntimeGraph(OnnxRuntime):
    """ONNX Runtime with a CUDA graph, for which inputs and outputs need fixed addresses on the GPU."""

    name = "ONNX Runtime CUDA, CUDA graph, fp32"
    options = {"enable_cuda_graph": "1"}

    def prepare(self, inputs):
        session, value = self.open(), self.ort.OrtValue.ortvalue_from_numpy
        there = {name: value(a, "cuda", 0) for name, a in inputs.items()}
        result = value(np.zeros((1, 1), np.float32), "cuda", 0)
        binding = session.io_binding()
        for name, a in there.items():
            binding.bind_ortvalue_input(name, a)
        binding.bind_ortvalue_output("latency", result)

        def call():
            for name, a in inputs.items():
                there[name].update_inplace(a)
            session.run_with_iobinding(binding)
            return result.numpy()

        return call


# ---- Measuring ---------------------------------------------------------------------------------------------------------


def random_inputs(rng, length):
    """Inputs of different magnitudes and different masks, because otherwise all outputs would be nearly equal."""
    mask = rng.random((1, length)) < rng.uniform(0.3, 1)
    mask[0, 0] = True

    def floats(width):
        return rng.standard_normal((1, length, width), dtype=np.float32) * np.float32(2.0 ** rng.integers(-4, 3))

    return {"op_type": rng.integers(0, 128, (1, length)), "op_config": floats(16), "op_load": floats(8),
            "position": floats(16), "mask": mask}


def timed(call, seconds):
    """Times of single calls in µs, without the first call in a slice."""
    call()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - start) / 1e3)
    return times


class Rows:
    def __init__(self, path):
        self.stream = open(path, "a", encoding="utf-8")  # pylint: disable=consider-using-with # open until the program ends

    def write(self, section, **row):
        self.stream.write(json.dumps({"section": section, **row}) + "\n")
        self.stream.flush()


def attempt(rows, label, make):
    """The result of `make`; None if it fails, with the reason in a row."""
    try:
        return make()
    except Absent as reason:
        rows.write("peer", **label, absent=str(reason))
    except Exception as reason:  # pylint: disable=broad-except # each peer has its own exceptions
        rows.write("peer", **label, failed=f"{type(reason).__name__}: {reason}".split("\n", maxsplit=1)[0][:300])
    return None


def measure_length(rows, sides, oracle, length, seconds):
    rng = np.random.default_rng(length)
    scale = max(abs(float(oracle.prepare(random_inputs(rng, length))()[0, 0])) for _ in range(SCALE_ITEMS))
    inputs = random_inputs(rng, length)
    wanted = float(oracle.prepare(inputs)()[0, 0])
    cases = []
    for side in sides:
        label = {"length": length, "side": side.name}

        def ready(side=side):
            call = side.prepare(inputs)
            difference = abs(float(call()[0, 0]) - wanted) / scale
            if not difference < SANE_DIFFERENCE:
                raise RuntimeError(f"different result: error {difference:.1e} of the greatest output")
            return {"label": label, "call": call, "error": difference, "times": []}

        case = attempt(rows, label, ready)
        if case is not None:
            cases.append(case)
    part = seconds / ROUNDS / max(1, len(cases))
    for number in range(ROUNDS):
        for case in cases if number % 2 == 0 else cases[::-1]:
            case["times"].extend(timed(case["call"], part))
    for case in cases:
        p50, p99, p999 = np.percentile(case["times"], [50, 99, 99.9], method="higher")
        rows.write("peer", **case["label"], count=len(case["times"]), p50_us=p50, p99_us=p99, p999_us=p999,
                   error=case["error"])


def versions():
    out = {"python": sys.version.split()[0], "numpy": np.__version__}
    for name in ("torch", "onnxruntime"):
        try:
            out[name] = __import__(name).__version__
        except ImportError:
            pass
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--artefact", required=True)
    parser.add_argument("--library", required=True, help="libmdot.so")
    parser.add_argument("--rows", required=True, help="file to append to")
    parser.add_argument("--lengths", default=",".join(map(str, ORDER)), help="the most important ones first")
    parser.add_argument("--seconds", type=float, default=60, help="to measure for, altogether")
    args = parser.parse_args()

    rows = Rows(args.rows)
    rows.write("peers", **versions())
    oracle = Mdot(args.library, args.artefact, "cpu")
    ours = Mdot(args.library, args.artefact, "cuda:0")
    sides = [ours]
    for kind in (Torch, TorchReduceOverhead, TorchGraph, OnnxRuntime, OnnxRuntimeGraph):
        side = attempt(rows, {"side": kind.name}, lambda kind=kind: kind(args.model))
        if side is not None:
            sides.append(side)
    lengths = [int(n) for n in args.lengths.split(",")]
    for length in lengths:
        measure_length(rows, sides, oracle, length, args.seconds / len(lengths))
        ours.still_on_device()


if __name__ == "__main__":
    main()
