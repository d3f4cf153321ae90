"""A scheduler round's cost against the number of operators and configurations: plots from `mdot bench --round`.

    round_growth.py MDOT PREDICTOR.mdot FOLDER [--seconds S]

FOLDER receives round.json, operators.svg and configurations.svg. The values are minimums over the rounds, because
other work on the machine disturbs some rounds. round.sh starts this program. Standard library only.
"""

import argparse
import json
import os
import subprocess
import tempfile

import chart
import onnx_model as onnx

OPERATORS = [8, 16, 32, 64, 128, 256, 512]
CONFIGURATIONS = [1, 2, 4, 8, 16, 32, 64, 128]
FEW_OPERATORS, FEW_CONFIGURATIONS, JOBS = 32, 20, 5  # few jobs, because a short round is more likely to be undisturbed
LEAST_WIDTH, WIDTHS = 8, 37  # a prime, so that any stride visits all widths


def widths(count):
    """A walk over widths with a different step every time, so that every matrix product is a distinct operator."""
    walk = [LEAST_WIDTH]
    for step in range(count):
        stride = 1 + step // WIDTHS
        walk.append(LEAST_WIDTH + (walk[-1] - LEAST_WIDTH + stride) % WIDTHS)
    return walk


def write_job(path, count):
    """Write a network of `count` distinct matrix products."""
    walk = widths(count)
    assert len(set(zip(walk, walk[1:]))) == count
    nodes, initializers = [], []
    for i, (rows, columns) in enumerate(zip(walk, walk[1:])):
        initializers.append(onnx.tensor(f"w{i}", onnx.FLOAT, [rows, columns], onnx.floats([0.5] * (rows * columns))))
        nodes.append(onnx.node("MatMul", [f"v{i}", f"w{i}"], f"v{i + 1}", {}))
    inputs = [onnx.value_info("v0", onnx.FLOAT, ["batch", walk[0]])]
    outputs = [onnx.value_info(f"v{count}", onnx.FLOAT, ["batch", walk[-1]])]
    with open(path, "wb") as stream:
        stream.write(onnx.model(17, nodes, initializers, inputs, outputs))


def measure(args, job, operators, configurations):
    """Microseconds per job: cold, encoding, and evaluation with cached features."""
    text = subprocess.run([args.mdot, "bench", args.predictor, "--device", "cpu", "--round", job, "--jobs", str(JOBS),
                           "--configurations", str(configurations), "--seconds", str(args.seconds), "--json"], check=True,
                          capture_output=True).stdout
    found = json.loads(text)
    assert found["operators"] == operators
    times = {key: 1e3 * found["least"][key + "_ms"] / JOBS for key in ("cold", "encode", "encoded")}
    return {"operators": operators, "configurations": configurations, "rounds": found["rounds"], **times}


def draw(rows, key, title):
    names = {"cold": "cold", "encode": "encoding", "encoded": "evaluation with cached features"}
    curves = {name: {row[key]: row[of] for row in rows} for of, name in names.items()}
    return chart.draw(title, key, "µs per job, minimum over the rounds", curves)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("mdot")
    parser.add_argument("predictor")
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, default=1, help="of each of three measurements in a row of the table")
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as jobs:
        def job(operators):
            path = os.path.join(jobs, f"{operators}.onnx")
            write_job(path, operators)
            return path

        results = {"operators": [measure(args, job(n), n, FEW_CONFIGURATIONS) for n in OPERATORS],
                   "configurations": [measure(args, job(FEW_OPERATORS), FEW_OPERATORS, n) for n in CONFIGURATIONS]}
    with open(os.path.join(args.folder, "round.json"), "w", encoding="utf-8") as stream:
        json.dump(results, stream, indent=1)
        stream.write("\n")
    titles = {"operators": f"A job under {FEW_CONFIGURATIONS} configurations, by its operators",
              "configurations": f"A job of {FEW_OPERATORS} operators, by its configurations"}
    for key, title in titles.items():
        with open(os.path.join(args.folder, key + ".svg"), "w", encoding="utf-8") as stream:
            stream.write(draw(results[key], key, title))
        print(f"| {key} | cold, µs per job | encoding | evaluation with cached features |\n| --- | --- | --- | --- |")
        for row in results[key]:
            print(f"| {row[key]} | {row['cold']:.0f} | {row['encode']:.0f} | {row['encoded']:.0f} |")
        print()


if __name__ == "__main__":
    main()
