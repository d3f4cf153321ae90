"""Measurement rows (result_rows.h) → results.json, table.md and plot.svg.

    gpu_report.py ROWS.jsonl FOLDER

The report contains all existing rows, so an interrupted run has a table, too. Standard library only.
"""

import argparse
import json
import os

import chart


def read_rows(path):
    """Rows by section. The last line may be incomplete if the program that wrote it was interrupted."""
    sections = {}
    with open(path, encoding="utf-8") as stream:
        for line in stream:
            try:
                row = json.loads(line)
            except ValueError:
                continue
            sections.setdefault(row.pop("section"), []).append(row)
    return sections


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def us(value):
    if value is None:
        return "–"
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def outcome(row):
    """The text in place of a missing number: the reason why it is missing."""
    return "absent: " + row["absent"] if "absent" in row else "**failed**: " + row["failed"]


# ---- Sections of the table ---------------------------------------------------------------------------------------------


def heading(sections):
    text = "# A run of gpu.sh\n\n"
    for row in sections.get("machine", []):
        text += (f"{row['device']}, compute capability {row['compute_capability']}, {row['multiprocessors']} "
                 f"multiprocessors, driver for CUDA {row['driver_cuda']}; mdot {row['mdot']}.\n")
        if is_fake(row):
            text += ("\n**This run used the fake driver library of the tests instead of a GPU. It shows that "
                     "everything runs; all numbers are meaningless.**\n")
    for row in sections.get("pack", []):
        text += "\n" + ", ".join(f"{key} {value}" for key, value in row.items()) + ".\n"
    for row in sections.get("peers", []):
        text += "\nPeers: " + ", ".join(f"{key} {value}" for key, value in row.items()) + ".\n"
    return text


def is_fake(machine):
    return "fake" in machine["device"].lower()


def steps_table(sections):
    def status(row):
        return row["note"] if "note" in row else "done" if row["status"] == 0 else f"**exit status {row['status']}**"

    rows = [[row["name"], status(row), f"{row['seconds']:.0f}"] for row in sections.get("step", [])]
    return "## Steps\n\n" + table(["step", "outcome", "s"], rows)


def checks_table(sections):
    groups = {}
    for row in sections.get("check", []):
        groups.setdefault((row["artefact"], row["kernel_precision"], row["entry"], int(row["bucket"])), []).append(row)
    rows = []
    for (artefact, kernel_precision, entry, bucket), cases in groups.items():
        errors = [case["error"] for case in cases]
        worst = "not finite" if None in errors else f"{max(errors):.1e}"
        spreads = [case["of_spread"] for case in cases]
        share = "not finite" if None in spreads else f"{max(spreads):.1%}"
        wrong = sum(not case["right"] for case in cases)
        lengths = sorted({int(case["length"]) for case in cases})
        rows.append([artefact, kernel_precision, entry, bucket, " ".join(map(str, lengths)),
                     max(int(case["items"]) for case in cases), len(cases), worst, f"{cases[0]['limit']:.0e}", share,
                     "all" if wrong == 0 else f"**{wrong} wrong**"])
    return "## Results of the GPU against the CPU\n\n" + table(
        ["artefact", "kernel_precision", "entry", "bucket", "lengths", "items to", "cases", "worst error", "limit", "of the spread",
         "right"], rows)


def latency_table(sections):
    rows = []
    for section in ("latency", "kernel"):
        for row in sections.get(section, []):
            side = "mdot, the kernel alone" if section == "kernel" else f"{row['side']}, {row['kernel_precision']}"
            rows.append([row["artefact"], row["entry"], int(row["length"]), side, us(row["p50_us"]), us(row["p99_us"]),
                         us(row["p999_us"]), int(row["count"])])
    rows.sort(key=lambda row: row[:3])
    return "## Latency, host call to host result\n\n" + table(
        ["artefact", "entry", "length", "side", "p50 µs", "p99 µs", "p99.9 µs", "calls"], rows)


def peers_table(sections):
    rows, ours = [], {}
    for row in sections.get("peer", []):
        length = int(row["length"]) if "length" in row else "all"
        if "p50_us" not in row:
            rows.append([length, row["side"], outcome(row), "", "", "", ""])
            continue
        if row["side"] == "mdot":
            ours[length] = row["p50_us"]
        ratio = f"{row['p50_us'] / ours[length]:.2f}" if length in ours else ""
        rows.append([length, row["side"], us(row["p50_us"]), us(row["p99_us"]), us(row["p999_us"]), ratio,
                     f"{row['error']:.1e}"])
    return ("## Peers, interleaved in one Python process\n\nEvery side gets its inputs in the host's memory and leaves "
            "its result there. mdot is called through ctypes here. `difference` is from mdot's CPU code in fp32, as a "
            "fraction of the greatest of sixteen outputs.\n\n") + table(
        ["length", "side", "p50 µs", "p99 µs", "p99.9 µs", "p50 / mdot's", "difference"], rows)


def batch_table(sections):
    groups, counts = {}, []
    for row in sections.get("batch", []):
        groups.setdefault((row["artefact"], row["entry"], int(row["length"])), {})[int(row["items"])] = row["per_second"]
        counts.append(int(row["items"]))
    counts = sorted(set(counts))
    rows = [[*key, *(f"{rates[n]:,.0f}" if n in rates else "–" for n in counts)] for key, rates in groups.items()]
    return "## Predictions per second, by items of a launch\n\n" + table(
        ["artefact", "entry", "length", *map(str, counts)], rows)


# ---- The plot ----------------------------------------------------------------------------------------------------------


def curves(sections):
    """{side: {length: p50}} for the first artefact, with the peers from the same run."""
    out = {}
    first = next((row["artefact"] for row in sections.get("latency", [])), None)
    for section, name in (("latency", None), ("kernel", "mdot, the kernel alone")):
        for row in sections.get(section, []):
            if row["artefact"] == first and row["length"] > 0:
                out.setdefault(name or row["side"], {})[row["length"]] = row["p50_us"]
    for row in sections.get("peer", []):
        if "p50_us" in row and row["side"] != "mdot" and row["length"] > 0:
            out.setdefault(row["side"], {})[row["length"]] = row["p50_us"]
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("rows")
    parser.add_argument("folder")
    args = parser.parse_args()
    sections = read_rows(args.rows)
    with open(os.path.join(args.folder, "results.json"), "w", encoding="utf-8") as stream:
        json.dump(sections, stream, indent=1)
        stream.write("\n")
    parts = [heading, steps_table, checks_table, latency_table, peers_table, batch_table]
    with open(os.path.join(args.folder, "table.md"), "w", encoding="utf-8") as stream:
        stream.write("\n".join(part(sections) for part in parts))
    title = "Latency of one prediction, host call to host result, median"
    if any(is_fake(row) for row in sections.get("machine", [])):
        title += " (of the fake driver: no measurement)"
    with open(os.path.join(args.folder, "plot.svg"), "w", encoding="utf-8") as stream:
        stream.write(chart.draw(title, "sequence length", "µs", curves(sections)))


if __name__ == "__main__":
    main()
