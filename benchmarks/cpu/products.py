"""Rates of products with two variable inputs and of a transpose, against the linear kernel and ONNX Runtime on one
thread.

    python3 benchmarks/cpu/products.py build/release/cli/mdot build/release/runtime/libmdot.so

All sides of a shape run interleaved in one process. The table has medians, because neighbours on the machine disturb
single samples.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))

from libmdot import Predictor  # noqa: E402  pylint: disable=wrong-import-position

SHAPES = [(64, 64, 64), (128, 64, 128), (64, 256, 64), (256, 64, 256), (512, 64, 512), (512, 512, 64), (64, 2048, 64)]
TRANSPOSES = [(64, 64), (1024, 64)]
ROUNDS, SAMPLE_SECONDS = 60, 5e-4


def save(path, nodes, inputs, output, weights=()):
    def info(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    tensors = [onnx.numpy_helper.from_array(array, name) for name, array in weights]
    graph = helper.make_graph(nodes, "product", [info(*i) for i in inputs], [info("y", output)], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def mdot_call(command, library, path, arrays, output, length):
    subprocess.run([command, "compile", path, "-o", path + ".mdot", "--quiet", "--buckets", "1024"], check=True)
    return Predictor(library, path + ".mdot").bind(arrays, [output], length)


def onnxruntime_call(path, arrays, output):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for value, array in zip(session.get_inputs(), arrays):
        binding.bind_cpu_input(value.name, array)
    binding.bind_ortvalue_output("y", onnxruntime.OrtValue.ortvalue_from_numpy(output))
    return lambda: session.run_with_iobinding(binding)


def medians(calls):
    repeats, samples = {}, {name: [] for name in calls}
    for name, call in calls.items():
        call()
        start = time.perf_counter()
        call()
        repeats[name] = max(1, int(SAMPLE_SECONDS / (time.perf_counter() - start)))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(repeats[name]):
                call()
            samples[name].append((time.perf_counter() - start) / repeats[name])
    return {name: statistics.median(values) for name, values in samples.items()}


def measure_product(command, library, folder, shape):
    m, k, n = shape
    rng = np.random.default_rng(0)
    x, z, t = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n), (n, k)))
    matmul = helper.make_node("MatMul", ["x", "z"], ["y"])
    turned = [helper.make_node("Transpose", ["t"], ["z"], perm=[1, 0]), matmul]
    cases = {"linear": ([matmul], [("x", ["L", k])], [x], [("z", z)]),
             "x z": ([matmul], [("x", ["L", k]), ("z", [k, n])], [x, z], []),
             "x t^T": (turned, [("x", ["L", k]), ("t", [n, k])], [x, t], [])}
    calls = {}
    for name, (nodes, inputs, arrays, weights) in cases.items():
        path = os.path.join(folder, f"{name.replace(' ', '_').replace('^', '')}.onnx")
        save(path, nodes, inputs, ["L", n], weights)
        calls[name] = mdot_call(command, library, path, arrays, np.zeros((m, n), np.float32), m)
        if name == "x t^T":
            calls["peer"] = onnxruntime_call(path, arrays, np.zeros((m, n), np.float32))
    took = medians(calls)
    rates = {name: 2e-9 * m * k * n / seconds for name, seconds in took.items()}
    print(f"| {m} × {k} × {n} | {rates['linear']:.0f} | {took['linear'] / took['x z']:.2f} | "
          f"{took['linear'] / took['x t^T']:.2f} | {took['x t^T'] / took['peer']:.2f} |", flush=True)


def measure_transpose(command, library, folder, shape):
    path, x = os.path.join(folder, "transpose.onnx"), np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    save(path, [helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])], [("x", ["L", shape[1]])], [shape[1], "L"])
    calls = {"mdot": mdot_call(command, library, path, [x], np.zeros(shape[::-1], np.float32), shape[0]),
             "peer": onnxruntime_call(path, [x], np.zeros(shape[::-1], np.float32))}
    took = medians(calls)
    print(f"transpose of {shape[0]} × {shape[1]}: {1e6 * took['mdot']:.1f} µs, {took['mdot'] / took['peer']:.2f} of "
          "ONNX Runtime", flush=True)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    command, library = sys.argv[1:]
    print("| rows × k × columns | linear, GFLOP/s | x z, of linear | x tᵀ, of linear | x tᵀ, of ONNX Runtime's time |\n"
          "| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for shape in SHAPES:
            measure_product(command, library, folder, shape)
        for shape in TRANSPOSES:
            measure_transpose(command, library, folder, shape)


if __name__ == "__main__":
    main()
