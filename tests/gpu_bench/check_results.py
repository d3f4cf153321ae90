"""Checks the results from a complete dry run of gpu.sh: check_results.py FOLDER. It prints nothing if all are present."""

import json
import os
import sys
import xml.etree.ElementTree as xml

STEPS = ["machine", "check, bf16", "latency", "check, fp32", "batch", "memcheck", "racecheck", "peers"]
PEERS = ["torch eager", "torch.compile, reduce-overhead", "torch.compile, one CUDA graph", "ONNX Runtime CUDA, fp32",
         "ONNX Runtime CUDA, CUDA graph"]
LENGTHS = [16, 32]


def expect(condition, what):
    if not condition:
        sys.exit(f"missing in the results: {what}")


def check_answers(results):
    for kernel_precision, limit in (("bf16", 1e-2), ("fp32", 1e-5)):
        rows = [row for row in results["check"] if row["artefact"] == "reference" and row["kernel_precision"] == kernel_precision]
        expect({row["length"] for row in rows if row["bucket"] == 16} == {1, 2, 15, 16}, f"{kernel_precision}: partial lengths")
        expect({row["items"] for row in rows} == {1, 3, 65}, f"{kernel_precision}: several items")
        expect(all(row["right"] and row["repeatable"] and row["limit"] == limit for row in rows), f"{kernel_precision}: right")


def check_latency(results):
    for length in LENGTHS:
        sides = {row["side"] for row in results["latency"] if row["length"] == length}
        expect({"mdot", "mdot on the CPU, one thread"} <= sides, f"latency at {length}")
        for row in results["latency"]:
            expect(row["p50_us"] <= row["p99_us"] <= row["p999_us"], f"ascending percentiles in {row}")
        expect(any(row["length"] == length for row in results["kernel"]), f"the kernel's time at {length}")
        items = [row["items"] for row in results["batch"] if row["length"] == length and row["artefact"] == "reference"]
        expect(items == [1, 2, 4, 8, 16, 32, 64], f"batches at {length}")


def check_peers(results):
    """If Python has numpy. The peers fail to find the fake library, so each must report why it is absent."""
    step = next(row for row in results["step"] if row["name"] == "peers")
    if "note" in step:
        return
    rows = results["peer"]
    expect([row["length"] for row in rows if row["side"] == "mdot"] == LENGTHS, "mdot among its peers")
    for name in PEERS:
        expect(any(row["side"].startswith(name) and "absent" in row for row in rows), f"why {name} is absent")


def main():
    folder = sys.argv[1]
    with open(os.path.join(folder, "results.json"), encoding="utf-8") as stream:
        results = json.load(stream)
    with open(os.path.join(folder, "table.md"), encoding="utf-8") as stream:
        table = stream.read()
    expect("fake driver library" in table, "that this was no GPU")
    steps = [row["name"] for row in results["step"]]
    expect([name for name in steps if "shipped" not in name] == STEPS, f"every step: {steps}")
    expect(all(row["status"] == 0 or "note" in row for row in results["step"]), "that every step went well")
    check_answers(results)
    check_latency(results)
    check_peers(results)
    plot = xml.parse(os.path.join(folder, "plot.svg")).getroot()
    lines = plot.findall("{http://www.w3.org/2000/svg}polyline")
    expect(len(lines) >= 3, "mdot, its kernel and the CPU in the plot")


if __name__ == "__main__":
    main()
