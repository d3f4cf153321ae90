"""`python -m mdot report`: jobs on GPUs as one self-contained HTML file of tables."""

from __future__ import annotations

import html
from typing import Iterable, Sequence

from mdot.explanation import Explanation
from mdot.prediction import GIB, Prediction, html_table, short

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:960px;margin:0 auto;padding:24px 12px}"
    "div{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "th,td{text-align:right;padding:4px 8px;border-bottom:1px solid #ccc}th:first-child,td:first-child{text-align:left}"
)


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return f"<div>{html_table([heading, *rows])}</div>"


def write_job(name: str, rows: Sequence[tuple[Prediction, Explanation]]) -> str:
    """The section of one job: time and memory on each GPU, and their parts."""
    first = rows[0][0]
    times = ("forward_ms", "data_gradient_ms", "weight_gradient_ms", "optimizer_ms", "host_ms", "communication_ms")
    sizes = ("weight_bytes", "gradient_bytes", "optimizer_bytes", "activation_bytes", "rounding_bytes", "context_bytes",
             "workspace_bytes", "collective_bytes")  # fmt: skip
    parts = [f"<h1>{html.escape(name)}</h1>", f"<p>batch {first.configuration.batch}, {first.configuration.precision}</p>"]
    parts.append("<h2>On each GPU</h2>" + _table(
        ("GPU", "step, ms", "90 % interval", "samples/s", "GiB", "reserved", "usable", "fits"),
        ((p.configuration.gpu_name, short(p.step_ms), f"{short(p.lower_ms)} to {short(p.upper_ms)}",
          short(p.samples_per_second), short(p.memory_gib), short(p.reserved_gib), short(p.usable_gib),
          "yes" if p.fits else "no") for p, _ in rows),
    ))  # fmt: skip
    parts.append("<h2>Time by phase, ms</h2>" + _table(
        ("GPU", *(key[:-3].replace("_", " ") for key in times)),
        ((p.configuration.gpu_name, *(short(getattr(e, key) * p.step_ms / e.step_ms) for key in times)) for p, e in rows),
    ))  # fmt: skip
    parts.append("<h2>Memory, GiB</h2>" + _table(
        ("GPU", *(key[:-6] for key in sizes)),
        ((p.configuration.gpu_name, *(short(getattr(p, key) / GIB) for key in sizes)) for p, _ in rows),
    ))  # fmt: skip
    warnings = sorted({name for p, _ in rows for name in p.warnings})
    if warnings:
        parts.append("<h2>Warnings</h2><p>" + html.escape(", ".join(warnings)) + "</p>")
    return "\n".join(parts)


def write_page(sections: Sequence[str]) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width, initial-scale=1"><title>mdot</title><style>{STYLE}</style></head>\n<body>\n'
        + "\n".join(sections)
        + "\n</body></html>\n"
    )
