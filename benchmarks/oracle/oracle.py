#!/usr/bin/env python3
"""Compares mdot with ONNX Runtime on random graphs. scripts/oracle.sh starts it; docs/contributing/testing.md explains
it.

    oracle.py [--build DIR] [--out DIR] [--runs N] [--seconds S] [--seed N] [--only OPERATOR,…] [--replay CASE]

Case K for a seed and --only is the same graph in every run. The folder --out keeps the next case number, so that a
later call continues. Each finding gets a folder with model.onnx, inputs and report.txt. Exit status: 0 if this call
has no findings, 1 if it has some, 2 for wrong usage.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback

import numpy as np
import onnx

import operators_attention  # noqa: F401  it adds its operators to the table
import operators_edges  # noqa: F401
import operators_large  # noqa: F401
import operators_numbers  # noqa: F401
from compare import (TRIALS, Failure, Mdot, Skipped, difference, expected, nudged, save_inputs, session, third_opinion)
from graphs import EPSILON, Graph, Unavailable
from known import known_deviation
from minimise import minimise
from operators import OPERATORS

HAS_AVX512 = "avx512f" in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
LEVELS = ("cpu:x86-64-v3", "cpu:x86-64-v4") if HAS_AVX512 else ("cpu:x86-64-v3",)
NEWEST = 28


def newest_opset():
    """The newest opset that ONNX Runtime accepts."""
    for opset in range(min(NEWEST, onnx.defs.onnx_opset_version()), 7, -1):
        graph = Graph(opset, np.random.default_rng(0))
        graph.node("Identity", [graph.input("f32", [(1, 0)])], [("f32", [(1, 0)])], True)
        graph.finish()
        try:
            session(graph.model())
            return opset
        except Skipped:
            continue
    raise SystemExit("oracle: ONNX Runtime accepts no opset")


def generate(seed, case, newest, only):
    """A case's graph, with one to six nodes; half the cases have one."""
    rng = np.random.default_rng([seed, case])
    graph = Graph(int(rng.integers(7, newest + 1)), rng)
    names = only or list(OPERATORS)
    weights = np.array([OPERATORS[name][1] for name in names])
    count = 1 if rng.random() < 0.4 else graph.whole(2, 6)
    added = 0
    for _ in range(60):
        if added == count:
            break
        before = (list(graph.nodes), list(graph.inputs), list(graph.values), list(graph.initializers), graph.rounding,
                  graph.sums, graph.min_length, graph.functions)
        try:
            OPERATORS[names[int(rng.choice(len(names), p=weights / weights.sum()))]][0](graph)
            added += 1
        except (Unavailable, onnx.defs.SchemaError):
            (graph.nodes, graph.inputs, graph.values, graph.initializers, graph.rounding, graph.sums, graph.min_length,
             graph.functions) = before
    graph.finish()
    types = {v.dtype for v in graph.inputs + graph.values + graph.initializers if v.dtype in EPSILON}
    graph.only_f64 = types == {"f64"}
    return graph


def lengths_of(buckets, least):
    """Both sides of every border."""
    return sorted({n for b in (least, *buckets) for n in (b - 1, b, b + 1) if least <= n <= buckets[-1]})


class Case:
    """One graph in one build: it compiles the model, runs every border and compares."""

    def __init__(self, mdot, graph, folder):
        self.mdot, self.graph, self.folder = mdot, graph, folder
        rng = graph.rng
        self.buckets = [int(b) for b in graph.pick([(8, 24), (7, 16), (16, 33), (5,), (32, 64)])]
        self.level = LEVELS[int(rng.integers(2)) % len(LEVELS)]  # the same draws on every machine
        self.extremes = bool(rng.random() < 0.5)
        self.path, self.artefact = os.path.join(folder, "model.onnx"), os.path.join(folder, "model.mdot")
        self.feeds, self.length, self.index, self.wanted = None, 0, 0, None

    def build(self, graph):
        onnx.save(graph.model(), self.path)
        code, message, line = self.mdot.compile(self.path, self.artefact, self.buckets, graph.min_length, self.level)
        self.line = line
        if code < 0:
            raise Failure(f"mdot compile died of signal {-code}")
        if code != 0:
            raise Skipped("mdot: " + re.sub(r"\"[^\"]*\"|'[^']*'|[0-9]+", "_", message.split(": ", 2)[-1])[:160])

    def compare(self, graph, feeds, length, runner=None):
        """None, or the description of a difference."""
        length = length if graph.varies else 0
        runner = runner or session(graph.model())
        want = expected(runner, feeds)
        rng = np.random.default_rng(1)
        trials = [expected(runner, nudged(feeds, rng)) for _ in range(TRIALS)]
        got = self.mdot.run(self.artefact, graph, feeds, want, length)
        for index, value in enumerate(graph.outputs):
            found = difference(graph, value, got[index], want[index], [t[index] for t in trials])
            if found:
                self.index, self.wanted = index, want[index]
                self.got = got[index]
                return found
        return None

    def search(self):
        graph = self.graph
        if not graph.outputs or not graph.inputs:
            raise Skipped("the graph has no input")
        runner = session(graph.model())
        self.build(graph)
        for length in lengths_of(self.buckets, graph.min_length) if graph.varies else [1]:
            self.feeds, self.length = graph.feeds(length, self.extremes), length
            found = self.compare(graph, self.feeds, length, runner)
            if found:
                return found
        return None

    def fails(self, graph, feeds):
        try:
            self.build(graph)
            return self.compare(graph, feeds, self.length) is not None
        except (Skipped, Failure):
            return False

    def report(self, found):
        """Minimises the failure, names its place, and returns the report."""
        graph, feeds = minimise(self.graph, self.feeds, self.fails)
        self.small, self.small_feeds = graph, feeds
        self.build(graph)
        found = self.compare(graph, feeds, self.length) or found
        inputs = os.path.join(self.folder, "inputs")
        save_inputs(graph, feeds, inputs)
        agrees, text = self.mdot.agrees_with_evaluator(self.artefact, self.path, inputs)
        opinion = third_opinion(graph.model(), feeds, self.index)
        value = graph.outputs[self.index]
        if opinion is None or opinion.shape != self.wanted.shape:
            third = "no third opinion"
        else:
            unmoved = [opinion] * TRIALS
            with_mdot = difference(graph, value, self.got, opinion, unmoved) is None
            with_onnx = difference(graph, value, self.wanted, opinion, unmoved) is None
            third = {(True, False): "onnx's reference agrees with mdot",
                     (False, True): "onnx's reference agrees with ONNX Runtime"}.get(
                (with_mdot, with_onnx), "onnx's reference agrees with both or neither")
        seen = (self.got, self.wanted, self.index)
        unoptimised = self.compare(graph, feeds, self.length, session(graph.model(), optimised=False))
        self.got, self.wanted, self.index = seen
        place = "mdot's evaluator agrees with the compiled code: reader, semantics or ONNX Runtime" if agrees else \
            "mdot's evaluator differs from the compiled code: a pass, the code or the evaluator"
        operators = "+".join(sorted({n.op_type for n in graph.nodes}))
        lines = [f"operators: {operators}", f"opset: {graph.opset}", f"length: {self.length}", f"difference: {found}",
                 f"place: {place}", f"third: {third}",
                 "without ONNX Runtime's optimiser: " + ("the same" if unoptimised else "no difference"),
                 "reproduction: " + " ".join(self.line), f"  mdot verify {self.artefact} {self.path} --inputs {inputs}", "",
                 text, "", onnx.printer.to_text(graph.model())[:6000]]
        return operators, found, agrees, "\n".join(lines)


def kept_folder(options, case):
    return os.path.join(options.out, f"case-{options.seed}{options.suffix}-{case}")


def keep(folder, kept):
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(folder, kept)


def run_case(options, case, folder):
    """Runs in a child: a case's result as a dictionary. `folder` is empty and receives the case's files."""
    result = {"state": "agrees"}
    try:
        graph = generate(options.seed, case, options.newest, options.operators)
        result["operators"] = sorted({n.op_type for n in graph.nodes})
        one = Case(Mdot(options.build), graph, folder)
        try:
            found = one.search()
            if found:
                operators, found, agrees, text = one.report(found)
                reason = known_deviation(set(operators.split("+")), agrees, one)
                result.update(state="known" if reason else "differs", operators=operators.split("+"), text=text,
                              reason=reason or found, agrees=agrees)
        except Skipped as reason:
            result.update(state="skipped", reason=str(reason))
        except Failure as failure:
            result.update(state="differs", text=f"case {case}: {failure}\n{getattr(one, 'line', '')}\n"
                          + onnx.printer.to_text(graph.model())[:6000], reason=str(failure), agrees=False)
        if result["state"] == "differs":
            kept = kept_folder(options, case)
            keep(folder, kept)
            with open(os.path.join(kept, "report.txt"), "w", encoding="utf-8") as file:
                file.write(result["text"].replace(folder, kept) + "\n")
            result["folder"] = kept
    except Exception:
        result = {"state": "fault", "reason": traceback.format_exc()[-1500:]}
    return result


def in_child(options, case):
    """Runs a case in a forked process, because wrong code may end it. Then the model and the inputs are kept all the same."""
    with tempfile.TemporaryDirectory(prefix="oracle-") as folder:
        result = answer_of_child(run_case, options, case, folder)
        if result is None:
            kept = kept_folder(options, case)
            keep(folder, kept)
            result = {"state": "differs", "reason": "the process of the case ended without an answer", "operators": [],
                      "agrees": False, "folder": kept}
    return result


def answer_of_child(function, *arguments):
    """The function's result in a forked process; None if the process ends early."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(600)
        try:
            data = json.dumps(function(*arguments), default=str).encode()
            with os.fdopen(write, "wb") as pipe:
                pipe.write(data)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return json.loads(data) if data else None


def load_state(path, seed):
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            state = json.load(file)
        if state["seed"] == seed:
            return state
    return {"seed": seed, "next": 0, "counts": {}, "skipped": {}, "findings": [], "known": {}, "operators": {}}


def save_state(path, state):
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(state, file, indent=1)
    os.replace(path + ".new", path)


def add_result(state, case, result):
    counts = collections.Counter(state["counts"])
    counts[result["state"]] += 1
    state["counts"] = dict(counts)
    kind = {"skipped": "skipped", "known": "known"}.get(result["state"])
    if kind:
        state[kind][result["reason"]] = state[kind].get(result["reason"], 0) + 1
    elif result["state"] == "agrees":
        for name in result.get("operators", []):
            state["operators"][name] = state["operators"].get(name, 0) + 1
    else:
        state["findings"].append({"case": case, "operators": result.get("operators"), "reason": result["reason"],
                                  "agrees": result.get("agrees"), "folder": result.get("folder")})
        print(f"case {case}: {'+'.join(result.get('operators') or [])}: {result['reason']}", flush=True)
        if "folder" in result:
            print(f"    {result['folder']}", flush=True)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default="build/release", help="the build of mdot")
    parser.add_argument("--out", default="build/oracle", help="findings, and the state from which a later call continues")
    parser.add_argument("--runs", type=int, help="cases of this call (default: 200, or as many as --seconds allows)")
    parser.add_argument("--seconds", type=float, help="stop after this time")
    parser.add_argument("--seed", type=int, default=1, help="another seed gives other graphs")
    parser.add_argument("--only", default="", help="operators of the graphs, separated by commas")
    parser.add_argument("--replay", type=int, help="run this case alone and print its report")
    options = parser.parse_args(arguments)
    if options.runs is None:
        options.runs = 200 if options.seconds is None else sys.maxsize
    options.suffix = ("-" + options.only.replace(",", "-"))[:100] if options.only else ""
    options.operators = [name for name in options.only.split(",") if name]
    unknown = sorted(set(options.operators) - set(OPERATORS))
    if unknown:
        parser.error(f"--only: unknown operators {', '.join(unknown)}; the table has {', '.join(sorted(OPERATORS))}")
    if not os.path.exists(os.path.join(options.build, "cli", "mdot")):
        parser.error(f"--build: {options.build}/cli/mdot does not exist; build the targets mdot_cli and mdot_shared")
    return options


def main(arguments):
    options = parse(arguments)
    options.newest = newest_opset()
    os.makedirs(options.out, exist_ok=True)
    if options.replay is not None:
        result = in_child(options, options.replay)
        print(result.get("text") or result)
        return 1 if result["state"] in ("differs", "fault") else 0
    path = os.path.join(options.out, f"state-{options.seed}{options.suffix}.json")
    state = load_state(path, options.seed)
    known_findings = len(state["findings"])
    end = time.monotonic() + options.seconds if options.seconds is not None else float("inf")
    last = state["next"] + options.runs
    while state["next"] < last and time.monotonic() < end:
        add_result(state, state["next"], in_child(options, state["next"]))
        state["next"] += 1
        save_state(path, state)
    print(f"{state['next']} cases, opsets 7 to {options.newest}: {state['counts']}; "
          f"{len(state['operators'])} operators agreed at least once")
    return 1 if len(state["findings"]) > known_findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
