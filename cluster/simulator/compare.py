#!/usr/bin/env python3
"""Compares policies on one HTML page: a bar for each policy and measure, and the table of all values.

    mdot-simulate TRACE … --policy fifo,srsf,las --json > results.json
    cluster/simulator/compare.py results.json [MORE.json …] --out page.html

Inputs are outputs of mdot-simulate --json, for example those that many.sh leaves in its folder. Several results of a
policy, for example of other seeds, are one row of means. Needs only the standard library.
"""
import argparse
import html
import json
import sys
from pathlib import Path

# Name in the JSON, its title, unit, divisor, and whether less is better.
MEASURES = (
    ("mean_jct_s", "mean completion time", "h", 3600, True), ("p95_jct_s", "95 % completion time", "h", 3600, True),
    ("mean_wait_s", "mean wait", "h", 3600, True), ("makespan_s", "makespan", "h", 3600, True),
    ("used", "GPUs used", "%", 0.01, False), ("mean_rho", "mean rho", "", 1, True),
    ("max_rho", "largest rho", "", 1, True), ("deadlines_met", "deadlines met", "", 1, False),
    ("energy_kwh", "energy", "kWh", 1, True), ("cost", "cost", "", 1, True), ("preemptions", "preemptions", "", 1, True),
)

STYLE = """body{font:14px sans-serif;margin:2em;max-width:70em}table{border-collapse:collapse}
td,th{padding:.2em .6em;text-align:right;border-bottom:1px solid #ccc}td:first-child,th:first-child{text-align:left}
.best{font-weight:bold}section{display:inline-block;vertical-align:top;margin:0 2em 1.5em 0}h2{font-size:1em}"""


def read(paths):
    """Means by policy and estimate, in the order of the files, and the traces' names."""
    rows, traces = {}, []
    for path in paths:
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            traces.append(f"{Path(data['trace']).name} ({data['jobs']} jobs, {data['gpus']} GPUs)")
            for result in data["results"]:
                name = result["policy"] + ("" if result["estimate"] == "oracle" else ", " + result["estimate"])
                rows.setdefault(name, []).append({key: result[key] / 1 for key, *_ in MEASURES})
        except (OSError, ValueError, KeyError, TypeError) as reason:
            sys.exit(f"compare.py: {path}: not an output of mdot-simulate --json ({reason!r})")
    if not rows:
        sys.exit(f"compare.py: {path}: holds no results")
    means = {name: {key: sum(r[key] for r in results) / len(results) for key, *_ in MEASURES}
             for name, results in rows.items()}
    return means, list(dict.fromkeys(traces))


def text(value, divisor):
    value /= divisor
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def bars(means, key, title, unit, divisor, least_is_best):
    """One chart: horizontal bars from 0."""
    most = max(row[key] for row in means.values())
    best = (min if least_is_best else max)(row[key] for row in means.values())
    lines = [f"<section><h2>{title}{f', {unit}' if unit else ''}</h2>"
             f'<svg width="420" height="{22 * len(means)}" role="img" aria-label="{title}">']
    for i, (name, row) in enumerate(means.items()):
        width, fill = 200 * row[key] / most, "#2b6cb0" if row[key] == best else "#a0aec0"
        lines.append(f'<text x="0" y="{22 * i + 15}" font-size="12">{html.escape(name)}</text>'
                     f'<rect x="150" y="{22 * i + 3}" width="{width:.1f}" height="16" fill="{fill}"/>'
                     f'<text x="{155 + width:.1f}" y="{22 * i + 15}" font-size="12">{text(row[key], divisor)}</text>')
    return "\n".join(lines) + "</svg></section>"


def page(means, traces):
    shown = [m for m in MEASURES if any(row[m[0]] > 0 for row in means.values())]
    head = "".join(f"<th>{title}{f', {unit}' if unit else ''}</th>" for _, title, unit, _, _ in shown)
    body = []
    for name, row in means.items():
        cells = ""
        for key, _, _, divisor, least_is_best in shown:
            best = (min if least_is_best else max)(other[key] for other in means.values())
            cells += f'<td{" class=best" if row[key] == best else ""}>{text(row[key], divisor)}</td>'
        body.append(f"<tr><td>{html.escape(name)}</td>{cells}</tr>")
    charts = "\n".join(bars(means, *measure) for measure in shown)
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Policies</title><style>{STYLE}</style>'
            f"<h1>Policies</h1><p>{html.escape('; '.join(traces))}. The best value of each measure is marked. rho is "
            f"completion time over that on an equal part of the cluster.</p>{charts}"
            f"<table><tr><th>policy</th>{head}</tr>{''.join(body)}</table></html>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("results", nargs="+", metavar="RESULTS.json")
    parser.add_argument("--out", required=True, metavar="PAGE.html")
    arguments = parser.parse_args()
    written = page(*read(arguments.results))
    try:
        Path(arguments.out).write_text(written, encoding="utf-8")
    except OSError as reason:
        sys.exit(f"compare.py: {reason}")


if __name__ == "__main__":
    main()
