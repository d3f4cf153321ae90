#!/usr/bin/env python3
"""Draws the results of mdot-figure4, mdot-cold-start or mdot-backfill, and logs of mdot-simulate:

    cluster/simulator/draw.py PREFIX.json… LOG.csv…

writes PREFIX.svg beside each file. Only the standard library is needed. The form follows from the content:

  errors    figure4: a panel per trace and load. Horizontal: mean error of estimates; vertical, logarithmic: mean
            completion time over exact SRSF. Errors of step times and of totals are curves within bands, predictors are
            points at their own error, and policies without estimates are horizontal lines.
  learning  cold-start: the same ratio in tenths of the window, in order of submission; names have the whole window's.
  limits    backfill: bars of wait, completion time and slowdown over requested limits, by policy and limit.
  gantt     mdot-simulate --log: a bar for each job on each node's GPUs, and the number of waiting jobs. Jobs that share
            GPUs stand below each other.
"""
import csv
import json
import math
import os
import re
import sys
from xml.sax.saxutils import escape

from experiment import MEASURES, ratio_band

CURVES = {"step times": "#1b6ca8", "totals": "#c8501e"}
PREDICTOR, BLIND = "#1a7f37", "#555555"
COLOURS = ["#000000", "#1b6ca8", "#1a7f37", "#c8501e", "#8250df", "#9a6700", "#bf3989", "#555555", "#999999"]
LIMITS = {"maximum": "#b0b0b0", "mdot, binding": "#1a7f37", "mdot, planned": "#1b6ca8", "exact": "#c8501e"}
TITLES = {"mean_wait_s": "mean wait", "mean_jct_s": "mean completion time",
          "mean_bounded_slowdown": "mean bounded slowdown"}


def text(x, y, content, attributes=""):
    return f'<text x="{x:.6g}" y="{y:.6g}"{attributes}>{escape(content)}</text>'


def begin(width, height, left, title):
    return [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
            'font-size="11">\n<rect width="100%" height="100%" fill="white"/>',
            text(left, 24, title, ' font-size="15" font-weight="bold"')]


def unique(values):
    return list(dict.fromkeys(values))


class Panel:
    """The arms of one trace at one load, and a logarithmic axis of ratios from `least` to `most`."""

    def __init__(self, arms, left, top, width, height, least, most, line):
        self.arms, self.left, self.top, self.width, self.height = arms, left, top, width, height
        self.least, self.most, self.line = least, most, line

    def y(self, ratio):
        share = math.log(max(ratio, self.least) / self.least) / math.log(self.most / self.least)
        return self.top + self.height * (1 - share)

    def axes(self, marks):
        out = [f'<rect x="{self.left:g}" y="{self.top:g}" width="{self.width}" height="{self.height}" fill="none" '
               'stroke="#999"/>']
        before = math.inf
        for mark in marks:
            y = self.y(mark)
            if mark >= self.most or before - y < self.line:
                continue  # names would overlap
            before = y
            out.append(f'<path d="M{self.left:g} {y:.6g}h{self.width}" stroke="#ddd"/>' +
                       text(self.left - 6, y + 4, f"{mark:g}", ' text-anchor="end"'))
        load = f"load {self.arms[0]['load']:.2g}" if self.arms[0]["load"] > 0 else "unmodified"
        return out + [text(self.left, self.top - 8, f"{self.arms[0]['trace']}, {load}", ' font-weight="bold"')]


def panels(data, left, top, size, gap):
    """Yields each panel's arms with its corner, loads from top to bottom, traces from left to right."""
    results = [arm for arm in data["results"] if "windows_mean_jct_s" in arm]  # those of all traces have none
    for row, load in enumerate(unique(arm["load"] for arm in results)):
        for column, trace in enumerate(unique(arm["trace"] for arm in results)):
            yield ([arm for arm in results if arm["load"] == load and arm["trace"] == trace],
                   left + column * (size[0] + gap[0]), top + row * (size[1] + gap[1]))


def size_of(data, left, top, size, gap):
    results = [arm for arm in data["results"] if "windows_mean_jct_s" in arm]
    return (left + len(unique(arm["trace"] for arm in results)) * (size[0] + gap[0]),
            top + len(unique(arm["load"] for arm in results)) * (size[1] + gap[1]))


def draw_errors(data):
    size, left, top, gap = (340, 260), 56, 84, (150, 74)
    width, height = size_of(data, left, top, size, gap)
    out = begin(width, height, left, "Cost of mispredicted durations: mean completion time relative to exact SRSF")
    for i, (colour, name) in enumerate(zip(CURVES.values(), [
            "SRSF, step times mispredicted (log-normal, median one)", "SRSF, totals mispredicted, never corrected"])):
        out.append(f'<path d="M{left + i * 400} 46h24" stroke="{colour}" stroke-width="2"/>' +
                   text(left + 30 + i * 400, 50, name))
    for arms, x0, y0 in panels(data, left, top, size, gap):
        # Values far above the others would flatten the plot: it ends above the last value within a factor of 4.
        most_error = max(.8, *(1.05 * arm["error"] for arm in arms))
        most = max([1.2] + [1.1 * arm["ratio"] for arm in arms if arm["ratio"] <= 4])
        p = Panel(arms, x0, y0, *size, .92, most, 13)
        x_of = lambda arm: x0 + size[0] * arm["error"] / most_error
        high_of = lambda arm: p.y(min(arm["ratio_high"], most))
        out += p.axes([1, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500])
        out += [text(x0 + size[0] * percent / 100 / most_error, y0 + size[1] + 16, f"{percent} %",
                     ' text-anchor="middle"') for percent in range(0, math.floor(100 * most_error) + 1, 25)]
        erroneous = {name: [arm for arm in arms if arm["arm"].startswith(f"SRSF, {name} off by ")] for name in CURVES}
        blind = [arm for arm in arms if arm["policy"] != "srsf"]
        curved = arms[:1] + erroneous["totals"] + erroneous["step times"]
        predicted = [arm for arm in arms if arm not in curved and arm not in blind]
        name_y = math.inf
        for i, arm in enumerate(sorted(blind, key=lambda arm: arm["ratio"])):  # from the lowest up
            if arm["ratio"] > most:
                name_y = min(y0 + 6, name_y - 13)
                name = f"↑ {arm['arm']} {arm['ratio']:.1f}"
            else:
                y, high = p.y(arm["ratio"]), high_of(arm)
                name_y = min(y + 4, name_y - 13)
                name = f"{arm['arm']} {arm['ratio']:.2f}"
                out.append(f'<rect x="{x0:g}" y="{high:.1f}" width="{size[0]}" '
                           f'height="{p.y(arm["ratio_low"]) - high:.1f}" fill="{BLIND}" opacity=".08"/><path '
                           f'd="M{x0:g} {y:.1f}h{size[0]}" stroke="{BLIND}" stroke-dasharray="{3 + 4 * i} 3"/>')
            out.append(text(x0 + size[0] + 8, name_y, name, f' fill="{BLIND}"'))
        for name in ("totals", "step times"):
            curve, colour = arms[:1] + erroneous[name], CURVES[name]
            band = [f"{x_of(arm):.1f} {high_of(arm):.1f}" for arm in curve]
            band += [f"{x_of(arm):.1f} {p.y(arm['ratio_low']):.1f}" for arm in reversed(curve)]
            places = [(x_of(arm), p.y(arm["ratio"])) for arm in curve]
            out.append(f'<path d="M{"L".join(band)}Z" fill="{colour}" opacity=".18"/>\n<path fill="none" '
                       f'stroke="{colour}" stroke-width="2" d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in places)}"/>')
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        # From right to left: a name that would overlap the one before moves above it, at the end of a line.
        name_x, name_y = math.inf, 0
        for arm in sorted(predicted, key=lambda arm: -arm["error"]):
            x, y = x_of(arm), p.y(arm["ratio"])
            name_y = min(y - 10, name_y - 13) if name_x - x < 80 else y - 10
            name_x = x
            out.append(f'<path d="M{x:.1f} {high_of(arm):.1f}V{p.y(arm["ratio_low"]):.1f}" stroke="{PREDICTOR}"/>'
                       f'<path d="M{x:.1f} {y:.1f}V{name_y - 8:.1f}" stroke="{PREDICTOR}" stroke-width=".5"/>'
                       f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" fill="{PREDICTOR}"/>' +
                       text(x + 3, name_y, arm["arm"].removeprefix("SRSF, "), f' fill="{PREDICTOR}"'))
    return out + [text(left, height - 12, "Mean error of the estimate. Bands: 95 % confidence of the mean over "
                       f"{data['windows']} windows of {data['jobs']} jobs on {data['gpus']} GPUs; {data['seeds']} "
                       "seeds.")]


def draw_learning(data):
    size, left, top, gap, line = (300, 250), 56, 64, (285, 74), 14
    width, height = size_of(data, left, top, size, gap)
    out = begin(width, height, left,
                "Estimates that start cold and learn: mean completion time relative to exact SRSF")
    for arms, x0, y0 in panels(data, left, top, size, gap):
        tenths = [ratio for arm in arms[1:] for ratio in arm["tenths_ratio"]]
        p = Panel(arms, x0, y0, *size, .92, max([1.3] + [min(1.1 * ratio, 6) for ratio in tenths]), line)
        x_of = lambda part: x0 + size[0] * (part + .5) / 10
        out += p.axes([1, 1.1, 1.2, 1.5, 2, 3, 4, 6])
        out += [text(x_of(part), y0 + size[1] + 16, str(part + 1), ' text-anchor="middle"') for part in range(10)]
        # From the highest last ratio to the lowest, so that the names stand apart.
        name_y = y0 - line
        ordered = sorted(enumerate(arms[1:], 1), key=lambda pair: -pair[1]["tenths_ratio"][-1])
        for i, (arm, colour) in enumerate((arm, COLOURS[place % len(COLOURS)]) for place, arm in ordered):
            ys = [p.y(min(ratio, p.most)) for ratio in arm["tenths_ratio"]]
            path = "L".join(f"{x_of(part):.1f} {y:.1f}" for part, y in enumerate(ys))
            name_y = min(max(ys[-1] + 4, name_y + line), y0 + size[1] - line * (len(ordered) - 1 - i))
            out.append(f'<path fill="none" stroke="{colour}" stroke-width="2" d="M{path}"/>' +
                       text(x0 + size[0] + 8, name_y, f"{arm['arm']} {arm['ratio']:.2f}", f' fill="{colour}"'))
    return out + [text(left, height - 12, f"Tenths of a window of {data['jobs']} jobs on {data['gpus']} GPUs, in order "
                       f"of submission. Means over {data['windows']} windows; numbers at the names: whole windows.")]


def draw_limits(data):
    size, left, top, gap = (300, 220), 60, 96, (40, 80)
    cells = {(c["load"], c["trace"], c["window"], c["policy"], c["limits"]): c for c in data["cells"]}
    loads, traces, windows, policies, _ = (unique(key[i] for key in cells) for i in range(5))
    height = top + len(loads) * (size[1] + gap[1])
    out = begin(left + len(MEASURES) * (size[0] + gap[0]), height, left, "Better time limits under backfill, relative "
                "to the limits that users request (below 1 is better)")
    for i, (name, colour) in enumerate(LIMITS.items()):
        out.append(f'<rect x="{left + i * 150}" y="40" width="12" height="12" fill="{colour}"/>' +
                   text(left + i * 150 + 18, 50, name))
    group = size[0] / len(policies)
    bar = group / (len(LIMITS) + 2)
    for row, load in enumerate(loads):
        for column, (measure, plus) in enumerate(MEASURES.items()):
            x0, y0 = left + column * (size[0] + gap[0]), top + row * (size[1] + gap[1])
            y_of = lambda ratio: y0 + size[1] * (1 - math.log(min(max(ratio, .25), 4) / .25) / math.log(16))
            out.append(text(x0, y0 - 8, f"{TITLES[measure]}, load {load:g}", ' font-weight="bold"'))
            for mark in (.25, .5, .75, 1, 1.5, 2, 4):
                out.append(f'<path d="M{x0:g} {y_of(mark):.1f}h{size[0]}" stroke="{"#888" if mark == 1 else "#ddd"}"/>'
                           + text(x0 - 4, y_of(mark) + 4, f"{mark:g}", ' text-anchor="end"'))
            for place, policy in enumerate(policies):
                for i, (limits, colour) in enumerate(LIMITS.items(), 1):
                    mean, low, high = ratio_band([(cells[load, trace, window, policy, limits][measure] + plus) / (
                        cells[load, trace, window, policy, "requested"][measure] + plus)
                        for trace in traces for window in windows])
                    x, y = x0 + place * group + i * bar, y_of(mean)
                    out.append(f'<rect x="{x:.1f}" y="{min(y, y_of(1)):.1f}" width="{bar - 2:.1f}" '
                               f'height="{max(1, abs(y - y_of(1))):.1f}" fill="{colour}"/><path d="M{x + bar / 2 - 1:.1f} '
                               f'{y_of(high):.1f}V{y_of(low):.1f}" stroke="black"/>')
                out.append(text(x0 + (place + .5) * group, y0 + size[1] + 14 + place % 2 * 12, policy,
                                ' text-anchor="middle" font-size="9"'))
    return out + [text(left, height - 12, f"{', '.join(traces)}: {data['windows']} windows of {data['jobs']} jobs each "
                       f"on {data['gpus']} GPUs; bars are 95 % confidence")]


MOST_RUNS = 20000  # of a chart that a browser still shows


def read_log(rows):
    """Returns runs (start_s, end_s, job, node, GPUs) in order of starts, and steps (time_s, number of waiting jobs)."""
    runs, running, waiting, queue, time_s = [], {}, set(), [(0.0, 0)], 0.0

    def end(job):
        for start_s, part in running.pop(job, []):
            node, _, gpus = part.rpartition(":")
            if time_s > start_s:
                runs.append((start_s, time_s, job, node, int(gpus)))

    for row in rows:
        time_s, decision, job = float(row["time_s"]), row["decision"], row["job_id"]
        if decision in ("batch", "note"):
            continue
        end(job)
        if decision in ("start", "resume", "move"):
            running[job] = [(time_s, part) for part in row["nodes"].split(" ")]
        if decision in ("arrive", "preempt", "cut"):
            waiting.add(job)
        else:
            waiting.discard(job)
        queue.append((time_s, len(waiting)))
    for job in list(running):
        end(job)
    return sorted(runs), queue


def draw_gantt(runs, queue):
    left, top, width, queue_height = 120, 48, 1100, 60
    names = sorted({run[3] for run in runs}, key=lambda name: [int(part) if part.isdigit() else part
                                                               for part in re.split(r"(\d+)", name)])
    ends_s = {name: [] for name in names}  # when each GPU of a node becomes free
    places = []
    for start_s, end_s, job, node, gpus in runs:
        free = [i for i, s in enumerate(ends_s[node]) if s <= start_s][:gpus]
        free += range(len(ends_s[node]), len(ends_s[node]) + gpus - len(free))
        ends_s[node] += [0.0] * (max(free) + 1 - len(ends_s[node]))
        for i in free:
            ends_s[node][i] = end_s
        places.append(free)
    line = max(2.0, min(14.0, 640 / sum(map(len, ends_s.values()))))
    tops, y = {}, float(top)
    for name in names:
        tops[name], y = y, y + line * len(ends_s[name]) + 4
    last_s = max(max(run[1] for run in runs), queue[-1][0])
    x_of = lambda time_s: left + width * time_s / last_s
    out = begin(left + width + 20, math.ceil(y) + queue_height + 56, left, "GPUs of each node by job, and waiting jobs")
    week_s = 7 * 86400
    tick_s = next((s for s in (60, 300, 900, 3600, 4 * 3600, 86400) if last_s / s <= 12),
                  week_s * math.ceil(last_s / 12 / week_s))
    for tick in range(int(last_s / tick_s) + 1):
        x = x_of(tick * tick_s)
        out.append(f'<path d="M{x:.1f} {top}V{y + queue_height:.1f}" stroke="#ddd"/>' +
                   text(x, y + queue_height + 16, f"{tick * tick_s / 3600:g} h", ' text-anchor="middle"'))
    out += [text(left - 6, tops[name] + line * len(ends_s[name]) / 2 + 4, name, ' text-anchor="end"') for name in names]
    colours = {job: COLOURS[1:][i % (len(COLOURS) - 1)] for i, job in enumerate(unique(run[2] for run in runs))}
    for (start_s, end_s, job, node, gpus), place in zip(runs, places):
        x, wide = x_of(start_s), max(.5, x_of(end_s) - x_of(start_s))
        bars = "".join(f"M{x:.1f} {tops[node] + line * i:.1f}h{wide:.1f}v{line - .5:.1f}h{-wide:.1f}Z" for i in place)
        out.append(f'<path d="{bars}" fill="{colours[job]}" opacity=".75"><title>{escape(job)}: {gpus} GPU{"s" * (gpus > 1)} '
                   f"of {escape(node)}, {start_s:g} to {end_s:g} s</title></path>")
        if wide > 7 * len(job) and line >= 10:
            out.append(text(x + 3, tops[node] + line * place[0] + 10, job, ' fill="white"'))
    most = max(1, *(count for _, count in queue))
    steps = "".join(f"H{x_of(time_s):.1f}V{y + queue_height * (1 - count / most):.1f}" for time_s, count in queue)
    return out + [text(left - 6, y + 14, f"waiting, up to {most}", ' text-anchor="end"'),
                  f'<path d="M{left} {y + queue_height:.1f}{steps}V{y + queue_height:.1f}Z" fill="#999"/>']


def draw_log(file):
    runs, queue = read_log(csv.DictReader(file))
    if not runs:
        raise ValueError("no job has run")
    if len(runs) > MOST_RUNS:
        sys.exit(f"draw.py: {file.name}: {len(runs)} runs are more than {MOST_RUNS}; simulate fewer jobs with --window")
    return draw_gantt(runs, queue)


def draw_results(file):
    data = json.load(file)
    learns = any(arm["arm"] == "SRSF, rolling means" for arm in data.get("results", []))
    return (draw_limits if "cells" in data else draw_learning if learns else draw_errors)(data)


def main(paths):
    if not paths or paths[0].startswith("-"):
        sys.exit(__doc__)
    for path in paths:
        try:
            with open(path, encoding="utf-8", errors="replace", newline="") as file:
                out = "\n".join((draw_log if path.endswith(".csv") else draw_results)(file) + ["</svg>", ""])
        except (OSError, ValueError, KeyError, AttributeError, TypeError, IndexError) as error:
            sys.exit(f"draw.py: {path}: {error!r}; give a JSON file of mdot-figure4, mdot-cold-start or mdot-backfill, or a "
                     "log of mdot-simulate --log")
        with open(os.path.splitext(path)[0] + ".svg", "w", encoding="utf-8") as file:
            file.write(out)


if __name__ == "__main__":
    main(sys.argv[1:])
