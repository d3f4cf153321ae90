"""Results from measure.py → table.md and a plot for each precision.

    cpu_report.py RESULTS.json FOLDER

The exit status is 1 if a side's output differs too much from the expected output. Standard library only.
"""

import argparse
import json
import os
import sys

import chart

PRECISIONS = ["fp32", "bf16"]


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def us(value):
    return "–" if value is None else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def sides_of(rows):
    """{side: {length: row}}, in the order of the rows."""
    sides = {}
    for row in rows:
        sides.setdefault(row["side"], {})[row["length"]] = row
    return sides


# ---- Sections ----------------------------------------------------------------------------------------------------------


def heading(results):
    processor = results["machine"]["processor"]
    text = (f"# {os.path.basename(results['model'])} on one thread\n\n{processor['name']} (family {processor['family']}, model "
            f"{processor['model']}, {' '.join(processor['bf16']) or 'no bf16 instructions'}, {processor['cores']} cores), "
            f"{results['machine']['system']}; ")
    text += ", ".join(f"{key} {value}" for key, value in results["versions"].items()) + ".\n\n"
    quiet, samples = (sum(row[key] for row in results["rows"]) for key in ("quiet", "samples"))
    text += (f"Medians of quiet samples, {results['sample_ms']:g} ms each, interleaved in one process in {results['rounds']} "
             f"rounds: {quiet} of {samples} samples were quiet. A time with * had no quiet one: it is the median of all.\n")
    return text


def ceilings_table(results):
    names = {"x86-64-v3": "fp32, 8 lanes (vfmadd231ps ymm)", "x86-64-v4": "fp32, 16 lanes (vfmadd231ps zmm)",
             "x86-64-bf16": "bf16, pairs (vdpbf16ps zmm)", "x86-64-amx": "bf16, tiles (tdpbf16ps)"}
    rows = [[name, level, f"{found['gflops']:.1f}" if "gflops" in found else "absent: " + found["absent"]]
            for level, name in names.items() for found in [results["ceilings"][level]]]
    return "## What this core can do\n\n" + table(["multiply-adds", "level", "GFLOP/s"], rows)


def precision_table(results, precision):
    sides = sides_of(row for row in results["rows"] if row["precision"] == precision)
    lengths = sorted({row["length"] for row in results["rows"]})
    ours = sides.get("mdot", {})
    rows = []
    for side, by_length in sides.items():
        marks = {n: "" if row["quiet"] else "*" for n, row in by_length.items()}
        times = [us(by_length[n]["us"]) + marks[n] if n in by_length else "–" for n in lengths]
        worst = max(by_length.values(), key=lambda row: row["difference"])
        counts = [sum(row[key] for row in by_length.values()) for key in ("quiet", "samples")]
        rows.append([f"{side}, µs", *times, f"{counts[0]} of {counts[1]}",
                     f"{worst['difference']:.0e}" + ("" if all(r["agrees"] for r in by_length.values()) else " **differs**")])
    rows += [ratios(f"mdot / {side}", ours, by_length, lengths) for side, by_length in sides.items() if side != "mdot"]
    if precision == "bf16":
        whole = sides_of(row for row in results["rows"] if row["precision"] == "fp32").get("mdot", {})
        rows.append(ratios("mdot / mdot in fp32", ours, whole, lengths))
    if any("peak_share" in row for row in ours.values()):
        shares = [f"{100 * ours[n]['peak_share']:.0f}" if "peak_share" in ours.get(n, {}) else "–" for n in lengths]
        rows.append(["mdot's utilisation of the ceiling, %", *shares, "", ""])
    level = results["levels"].get(precision, "absent")
    return (f"## {precision}, mdot's {level}\n\n" + table(["length", *lengths, "quiet samples", "greatest difference"], rows)
            + f"\nA difference is from ONNX Runtime in fp32, as a fraction of the greatest of sixteen outputs; up to "
            f"{results['bounds'][precision]:g} agrees.\n")


def ratios(name, ours, theirs, lengths):
    def one(n):
        times = [side.get(n, {}).get("us") for side in (ours, theirs)]
        return f"{times[0] / times[1]:.2f}".lstrip("0") if all(times) else "–"

    return [name, *(one(n) for n in lengths), "", ""]


def absences(results):
    lines = []
    for note in results["notes"]:
        where = f"{note['side']}, {note['precision']}" + (f", length {note['length']}" if "length" in note else "")
        lines.append(f"- {where}: " + ("absent: " + note["absent"] if "absent" in note else "**failed**: " + note["failed"]))
    return "## Not measured\n\n" + ("\n".join(lines) if lines else "Nothing is missing.") + "\n"


# ---- Plots -------------------------------------------------------------------------------------------------------------


def plot(results, precision):
    sides = sides_of(row for row in results["rows"] if row["precision"] == precision and row["us"] and row["length"])
    curves = {side: {n: row["us"] for n, row in by_length.items()} for side, by_length in sides.items()}
    return chart.draw(f"Latency of one call in {precision}, one thread, median of quiet samples", "sequence length", "µs", curves)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("results")
    parser.add_argument("folder")
    args = parser.parse_args()
    with open(args.results, encoding="utf-8") as stream:
        results = json.load(stream)
    parts = [heading(results), ceilings_table(results), *(precision_table(results, p) for p in PRECISIONS), absences(results)]
    with open(os.path.join(args.folder, "table.md"), "w", encoding="utf-8") as stream:
        stream.write("\n".join(parts))
    for precision in PRECISIONS:
        with open(os.path.join(args.folder, precision + ".svg"), "w", encoding="utf-8") as stream:
            stream.write(plot(results, precision))
    wrong = [row for row in results["rows"] if not row["agrees"]]
    for row in wrong:
        print(f"cpu.sh: {row['side']} in {row['precision']} differs at length {row['length']}: {row['difference']:.1e} of the "
              "greatest output", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
