#!/usr/bin/env python3
"""Compares trees that mdot compiled with ONNX Runtime and TL2cgen, one thread each, interleaved.

    benchmarks/cpu/trees.py --command build/release/cli/mdot --library build/release/runtime/libmdot.so [--trees 500]
                            [--rounds 200] [--batches 1,32]

Needs numpy, lightgbm, xgboost, onnxmltools, skl2onnx, onnxruntime, treelite (4.8 was tried), tl2cgen 1.0 and gcc. Models are trained
on random data. Every call gets other rows, so that no branch predictor learns them. mdot is called through ctypes, and
the others through their Python interfaces. `overhead` is the time of ONNX Runtime for a model of one tree, because it
shows the share of such a call. Prints a median in microseconds for each.
"""
import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "common"))
FEATURES, POOL = 20, 4096


def train(kind, trees, folder):
    """Trains a model and writes KIND.onnx and the framework's own file. Returns their paths."""
    import onnx
    import onnxmltools
    from onnxmltools.convert.common.data_types import FloatTensorType
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, FEATURES)).astype(np.float32)
    y = x[:, 0] * 2 + np.sin(x[:, 1] * 3) + x[:, 2] * x[:, 3]
    types = [("x", FloatTensorType([None, FEATURES]))]
    native = os.path.join(folder, kind + (".txt" if kind == "lightgbm" else ".json"))
    if kind == "lightgbm":
        import lightgbm
        model = lightgbm.LGBMRegressor(n_estimators=trees, verbose=-1).fit(x, y)
        model.booster_.save_model(native)
        exported = onnxmltools.convert_lightgbm(model, initial_types=types, target_opset=15)
    else:
        import xgboost
        model = xgboost.XGBRegressor(n_estimators=trees).fit(x, y)
        model.save_model(native)
        exported = onnxmltools.convert_xgboost(model, initial_types=types, target_opset=15)
    path = os.path.join(folder, f"{kind}_{trees}.onnx")
    onnx.save(exported, path)
    return path, native


def mdot_call(options, path, rows):
    from libmdot import Predictor
    artefact = path[:-5] + ".mdot"
    subprocess.run([options.command, "compile", path, "-o", artefact, "-q", "-b", options.batches], check=True)
    predictor = Predictor(options.library, artefact)
    x, y = np.empty((rows, FEATURES), np.float32), np.empty((rows, 1), np.float32)
    call = predictor.bind([x], [y], rows)

    def run(sample):
        x[:] = sample
        start = time.perf_counter()
        call()
        return time.perf_counter() - start, y[:, 0].copy()
    run.keeps = predictor
    return run


def onnxruntime_call(path):
    import onnxruntime
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])

    def run(sample):
        start = time.perf_counter()
        result = session.run(None, {"x": sample})
        return time.perf_counter() - start, np.asarray(result[0]).reshape(-1)
    return run


def tl2cgen_call(native, kind):
    import tl2cgen
    import treelite
    load = {"lightgbm": treelite.frontend.load_lightgbm_model, "xgboost": treelite.frontend.load_xgboost_model}[kind]
    library = native + ".so"
    tl2cgen.export_lib(load(native), toolchain="gcc", libpath=library, params={"parallel_comp": 8})
    predictor = tl2cgen.Predictor(library, nthread=1)

    def run(sample):
        matrix = tl2cgen.DMatrix(sample)
        start = time.perf_counter()
        result = predictor.predict(matrix)
        return time.perf_counter() - start, result.reshape(-1)
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--command", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--batches", default="1,32")
    parser.add_argument("--no-tl2cgen", action="store_true", help="its C code takes gcc minutes to compile")
    options = parser.parse_args()
    pool = np.random.default_rng(1).normal(size=(POOL, FEATURES)).astype(np.float32)
    print("model     batch       mdot  onnxruntime    tl2cgen   overhead of onnxruntime's call")
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("lightgbm", "xgboost"):
            path, native = train(kind, options.trees, folder)
            small, _ = train(kind, 1, tempfile.mkdtemp(dir=folder))
            shared = {"onnxruntime": onnxruntime_call(path), "overhead": onnxruntime_call(small)}
            if not options.no_tl2cgen:
                shared["tl2cgen"] = tl2cgen_call(native, kind)
            for rows in map(int, options.batches.split(",")):
                calls = {"mdot": mdot_call(options, path, rows), **shared}
                times = {name: [] for name in calls}
                for k in range(options.rounds):
                    at = k * rows % (POOL - rows)
                    sample = np.ascontiguousarray(pool[at:at + rows])
                    results = {name: call(sample) for name, call in calls.items()}
                    for name, (seconds, _) in results.items():
                        times[name].append(seconds * 1e6)
                    np.testing.assert_allclose(results["mdot"][1], results["onnxruntime"][1], rtol=1e-4, atol=1e-4)
                median = {name: f"{np.median(values):10.1f}" for name, values in times.items()}
                print(f"{kind:9} {rows:5} {median['mdot']} {median['onnxruntime']:>12} "
                      f"{median.get('tl2cgen', '-'):>10} {median['overhead']:>10}", flush=True)


if __name__ == "__main__":
    main()
