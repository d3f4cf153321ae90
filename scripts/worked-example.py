#!/usr/bin/env python3
"""Writes the tables in docs/explanation/worked-example.md from the answers of `mdot extract` and `mdot predict`.

    worked-example.py MDOT [PAGE]             rewrites the tables. Run it after the predictor was trained again
    worked-example.py --check MDOT [PAGE]     compares the tables with the answers, and checks the page's formulas

A table stands between the lines <!-- begin NAME --> and <!-- end NAME -->. The comparison accepts numbers that
differ by 1 %, because the last digit may depend on the processor.
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "explanation" / "worked-example.md"
JOB, GPU, BATCH = "examples/jobs/resnet50.onnx", "A100-SXM-40GB", 256
QUESTION = ["predict", JOB, "--gpu", "A100", "--batch", str(BATCH), "--precision", "amp"]
PHASES = ("forward", "data_gradient", "weight_gradient")
ON_TENSOR_CORES = ("Conv", "Linear")
HALF = 0.5  # autocast moves half the bytes that `mdot extract` counts in fp32
SGD_BYTES = 20  # of the optimizer, for each parameter
TOLERANCE = 0.01
LEAST_SHARE = 0.05  # of all operators' time; the table adds up smaller rows


def ask(mdot, *arguments):
    return json.loads(subprocess.run([mdot, *arguments, "--json", "--quiet"], cwd=ROOT, check=True, text=True,
                                     capture_output=True).stdout)


def data_sheet():
    """The spec values of the GPU by column, from gpus.def."""
    text = (ROOT / "runtime" / "job" / "gpus.def").read_text(encoding="utf-8")
    columns = re.findall(r"^COLUMN\((\w+),", text, re.M)
    row = re.search(rf'^GPU\("{GPU}", +"[^"]*",(.*)\)$', text, re.M).group(1)
    return dict(zip(columns, map(float, row.split(","))))


def name_of(operator):
    """For example "Conv 3x3 /2, 128 to 128, 28x28"."""
    c = operator["configuration"]
    if "channels_out" not in c:
        return operator["type"]
    side = round(c.get("size_out", 1) ** 0.5)
    window = f" {c['kernel_h']}x{c['kernel_w']}" if "kernel_h" in c else ""
    stride = f" /{c['stride_h']}" if c.get("stride_h", 1) > 1 else ""
    size = f", {side}x{side}" if side > 1 else ""
    return f"{operator['type']}{window}{stride}, {c['channels_in']} to {c['channels_out']}{size}"


def roofline_ms(operator, phase, gpu):
    """The larger time, computation or memory traffic, at data sheet rates. The counts are for a batch."""
    load = operator[phase]
    tflops = gpu["fp16_tflops"] if operator["type"] in ON_TENSOR_CORES else gpu["fp32_tflops"]
    moved = (load["bytes_read"] + load["bytes_written"]) * HALF
    return max(load["flops"] / (tflops * 1e9), moved / (gpu["memory_gbps"] * 1e6))


def rows_of(operators, of_batch, times, gpu):
    """One row for each distinct operator, in network order. `of_batch` has the counts for a whole batch."""
    rows = {}
    assert len(operators) == len(of_batch) == len(times), "the answers have different numbers of operators"
    for operator, batched, time in zip(operators, of_batch, times):
        forward, *backward = (roofline_ms(batched, phase, gpu) for phase in PHASES)
        answer = [time["forward_ms"], time["data_gradient_ms"] + time["weight_gradient_ms"]]
        load = operator["forward"]
        name = name_of(operator)
        if "channels_out" not in operator["configuration"]:
            name += f", {load['bytes_written'] / 4000:.0f}k elements"
        key = (name, round(forward, 9), *(round(x, 9) for x in answer))
        row = rows.setdefault(key, {"name": name, "count": 0, "flops": load["flops"],
                                    "bytes": load["bytes_read"] + load["bytes_written"], "roofline": (forward, sum(backward)),
                                    "answer": answer})
        row["count"] += 1
    return list(rows.values())


def digits(x):
    """Three significant digits."""
    return f"{x:#.3g}".rstrip(".") if 0.001 <= x < 1000 else f"{x:.0f}" if x >= 1000 else f"{x:.5f}"


def ratio(answer, roofline):
    return f"{answer / roofline:.2f}" if roofline > 0 else ""


def with_others(rows):
    """The rows that take most of the time, and the sum of the others."""
    time = {id(row): row["count"] * sum(row["answer"]) for row in rows}
    small = [row for row in rows if time[id(row)] < LEAST_SHARE * sum(time.values())]
    total = {"name": f"{len(small)} others, together", "count": sum(row["count"] for row in small)}
    for name in ("flops", "bytes"):
        total[name] = sum(row["count"] * row[name] for row in small)
    for name in ("roofline", "answer"):
        total[name] = [sum(row["count"] * row[name][i] for row in small) for i in (0, 1)]
    return [row for row in rows if row not in small] + [total]


def operator_table(rows):
    lines = ["| operator | times | MFLOP | MB | forward: roofline, ms | predicted, ms | ratio | backward: roofline, ms | predicted, ms "
             "| ratio |", "| --- " * 10 + "|"]
    for row in rows:
        (forward, backward), (answer, answer_back) = row["roofline"], row["answer"]
        cells = [row["name"], str(row["count"]), digits(row["flops"] / 1e6), digits(row["bytes"] / 1e6), digits(forward),
                 digits(answer), ratio(answer, forward), digits(backward) if backward else "0",
                 digits(answer_back) if backward else "0", ratio(answer_back, backward)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def sum_table(rows, prediction, parameters, gpu):
    explanation = prediction["explanation"]
    rooflines = [sum(row["count"] * row["roofline"][i] for row in rows) for i in (0, 1)]
    optimizer = parameters * SGD_BYTES / (gpu["memory_gbps"] * 1e6)
    backward = explanation["data_gradient_ms"] + explanation["weight_gradient_ms"]
    lines = ["| part | roofline, ms | predicted, ms | ratio |", "| --- | --- | --- | --- |"]
    for name, roofline, answer in (("forward, all operators", rooflines[0], explanation["forward_ms"]),
                                ("backward, all operators", rooflines[1], backward),
                                ("optimizer", optimizer, explanation["optimizer_ms"])):
        lines.append(f"| {name} | {digits(roofline)} | {digits(answer)} | {answer / roofline:.2f} |")
    lines.append(f"| waiting for kernel launches by the host | | {digits(explanation['host_ms'])} | |")
    lines.append(f"| **step** | {digits(sum(rooflines) + optimizer)} | **{digits(prediction['step_ms'])}** | "
                 f"{prediction['step_ms'] / (sum(rooflines) + optimizer):.2f} |")
    lines += ["", f"The 90 % interval is {digits(prediction['lower_ms'])} to {digits(prediction['upper_ms'])} ms."]
    return lines


def check_formulas(operators, rows, prediction):
    """The page's formulas, for every operator that they cover."""
    for operator in operators:
        c, flops = operator["configuration"], operator["forward"]["flops"]
        if operator["type"] == "Conv":
            multiplied = 2 * c["channels_in"] // c["groups"] * c["kernel_h"] * c["kernel_w"] * c["channels_out"] * c["size_out"]
            normalised = 5 * c["channels_out"] * c["size_out"] * c.get("normalised", 0)
            assert flops == multiplied + normalised, (name_of(operator), flops, multiplied, normalised)
    first = operators[0]["forward"]
    assert first["bytes_read"] + first["bytes_written"] == 4 * (150528 + 9408 + 802816) + 4 * (3 * 802816 + 6 * 64)
    e = prediction["explanation"]
    whole = sum(e[name] for name in ("forward_ms", "data_gradient_ms", "weight_gradient_ms", "optimizer_ms", "host_ms"))
    assert abs(whole / prediction["step_ms"] - 1) < 1e-4, "the parts do not add up to the step"
    forward = sum(row["count"] * row["answer"][0] for row in rows)
    assert abs(forward / e["forward_ms"] - 1) < 1e-4, "the operators do not add up to the forward pass"
    assert prediction["lower_ms"] < prediction["step_ms"] < prediction["upper_ms"]


def cells_of(text):
    return re.findall(r"-?\d+(?:\.\d+)?|[^\d\s|]+", text)


def differs(old, new):
    a, b = cells_of(old), cells_of(new)
    if len(a) != len(b):
        return True
    for x, y in zip(a, b):
        try:
            far = abs(float(x) - float(y)) > max(TOLERANCE * abs(float(y)), 0.0101)
        except ValueError:
            far = x != y
        if far:
            return True
    return False


def main(arguments):
    is_check = arguments[:1] == ["--check"]
    if len(arguments) - is_check not in (1, 2):
        sys.exit(__doc__)
    mdot, page_path = arguments[is_check], pathlib.Path((arguments[is_check + 1:] or [PAGE])[0])
    mdot, gpu = str(pathlib.Path(mdot).resolve()), data_sheet()
    job, of_batch = ask(mdot, "extract", JOB), ask(mdot, "extract", JOB, "--batch", str(BATCH))
    prediction = ask(mdot, *QUESTION, "--explain")["predictions"][0]
    rows = rows_of(job["operators"], of_batch["operators"], prediction["explanation"]["operators"], gpu)
    check_formulas(job["operators"], rows, prediction)
    page = page_path.read_text(encoding="utf-8")
    for name, lines in (("operators", operator_table(with_others(rows))), ("sums", sum_table(rows, prediction, job["parameters"], gpu))):
        pattern = re.compile(rf"(<!-- begin {name} -->\n\n).*?(\n\n<!-- end {name} -->)", re.S)
        found = pattern.search(page)
        if found is None:
            sys.exit(f"{page_path} has no table {name}")
        old, new = found.group(0).split("\n")[2:-2], lines
        if is_check:
            for a, b in zip(old, new):
                if differs(a, b):
                    sys.exit(f"{page_path}: the answer differs from the table; run scripts/worked-example.py MDOT\n  {a}\n  {b}")
            if len(old) != len(new):
                sys.exit(f"{page_path}: table {name} has {len(old)} lines instead of {len(new)}; run scripts/worked-example.py MDOT")
        page = pattern.sub(lambda m: m.group(1) + "\n".join(lines) + m.group(2), page)
    if is_check:
        print(f"{len(rows)} operators and the sums of the worked example agree with the answers")
    else:
        page_path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
