"""The command line: python -m mdot_lab.collect plan | run | repeat | operators | merge | export | table. See README.md."""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import time
from pathlib import Path

import mdot_lab.collect
from mdot_lab.collect import plan, records
from mdot_lab.collect.catalogue import BY_NAME, CATALOGUE

REPEAT_SHARE = 0.05


def _shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not int(match[1]) < int(match[2]):
        raise argparse.ArgumentTypeError(f"'{text}': expected INDEX/COUNT with INDEX from 0, below COUNT")
    return int(match[1]), int(match[2])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mdot_lab.collect", description=mdot_lab.collect.__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    choosing = argparse.ArgumentParser(add_help=False)
    choosing.add_argument("--only", default="", metavar="REGEX", help="only architectures whose name contains a match")
    choosing.add_argument("--max-batch", type=int, metavar="N", help="skip larger batches")
    choosing.add_argument("--shard", type=_shard, default=(0, 1), metavar="I/N", help="every N-th visit from the I-th")

    show = commands.add_parser("plan", parents=[choosing], help="print the keys in their order, without measuring")
    show.add_argument("--count", type=int, help="number of keys (default: all)")

    measuring = argparse.ArgumentParser(add_help=False)
    measuring.add_argument("--out", type=Path, required=True, help="folder of the part file, which is appended to")
    measuring.add_argument("--done", type=Path, nargs="*", default=[],
                           help="further record files, or folders of them, whose configurations are skipped")
    measuring.add_argument("--device", default="cuda")
    ending = measuring.add_mutually_exclusive_group()
    ending.add_argument("--seconds", type=float, default=540.0, help="stop this long after the start (default 540)")
    ending.add_argument("--deadline", type=float, help="stop at this time (seconds since 1970)")
    measuring.add_argument("--cap-seconds", type=float, default=8.0, help="maximum time of a configuration (default 8)")
    measuring.add_argument("--cudnn-benchmark", action="store_true", help="let cuDNN try its algorithms (PyTorch: off)")
    commands.add_parser("run", parents=[choosing, measuring], help="measure the missing configurations")
    commands.add_parser("repeat", parents=[choosing, measuring],
                        help="measure 5 %% of the measured configurations a second time")

    timing = commands.add_parser("operators", help="time single operators, forward and backward")
    timing.add_argument("--out", type=Path, required=True, metavar="FILE.csv", help="table, which is appended to")
    timing.add_argument("--device", default="cuda")
    timing.add_argument("--seconds", type=float, default=120.0, help="stop this long after the start (default 120)")

    merging = commands.add_parser("merge", help="merge part files into one sorted file, and summarise them")
    merging.add_argument("parts", type=Path, nargs="+", help="record files, or folders of them")
    merging.add_argument("--out", type=Path, required=True, help="FILE.jsonl.gz")
    merging.add_argument("--summary", type=Path, help="also write the summary to this file")

    exporting = commands.add_parser("export", help="rebuild ONNX graphs without weights, on a machine without a GPU")
    selection = exporting.add_mutually_exclusive_group(required=True)
    selection.add_argument("--key", help="export the graph of one configuration")
    selection.add_argument("--records", type=Path, help="export the graphs of all records of a file")
    exporting.add_argument("--out", type=Path, required=True, help="folder for the .onnx files")
    exporting.add_argument("--batch", type=int, default=2, help="examples to trace with (default 2)")
    exporting.add_argument("--dynamic-batch", action="store_true", help="leave the first dimension open, as 'batch'")
    exporting.add_argument("--opset", type=int, default=17)

    tabling = commands.add_parser("table", help="write measured steps as a table for mdot, with the paths of their graphs")
    tabling.add_argument("records", type=Path, nargs="+", help="record files, or folders of them")
    tabling.add_argument("--graphs", type=Path, required=True, help="folder that export wrote")
    tabling.add_argument("--batch", default="2", help="batch of the traced graphs, or N for an open batch (default 2)")
    tabling.add_argument("--out", type=Path, required=True, help="MEASURED.csv")
    return parser


def _chosen(options) -> list:
    return [row for row in CATALOGUE if re.search(options.only, row.name)]


def _visits(options, all_visits):
    """The shard's visits, restricted to the requested batches."""
    for visit in plan.shard(all_visits, *options.shard):
        kept = tuple(c for c in visit.configurations if not options.max_batch or c.batch <= options.max_batch)
        yield plan.Visit(visit.architecture, visit.size, kept)


def _plan(options) -> int:
    keys = (c.key for visit in _visits(options, plan.visits(_chosen(options))) for c in visit.configurations)
    for key in itertools.islice(keys, options.count):
        print(key)
    return 0


def _has_device(device: str) -> bool:
    import torch

    if torch.device(device).type != "cuda" or torch.cuda.is_available():
        return True
    print("collect: PyTorch sees no CUDA device here (--device cpu tries the collector without one)", file=sys.stderr)
    return False


def _operators(options, started: float) -> int:
    if not _has_device(options.device):
        return 1
    from mdot_lab.collect import operators

    failed = operators.run(options.out, options.device, started + options.seconds, lambda line: print(line, file=sys.stderr))
    return 1 if failed else 0


def _measure(options, started: float) -> int:
    if not _has_device(options.device):
        return 1
    import torch

    from mdot_lab.collect.architecture import build, missing_libraries
    from mdot_lab.collect.gpu_monitor import GpuMonitor, environment
    from mdot_lab.collect.forecast import Forecast
    from mdot_lab.collect.measurer import Measurer, free_memory
    from mdot_lab.collect.runner import Runner, part_path
    from mdot_lab.collect.timing import CudaClock, HostClock

    is_cuda = torch.device(options.device).type == "cuda"
    torch.backends.cudnn.benchmark = options.cudnn_benchmark
    repeat = int(options.command == "repeat")
    path = part_path(options.out, *options.shard)
    writer, attempt = records.Writer(path), records.Attempt(path)
    died = attempt.left()
    if died:
        writer.write(died)
        attempt.end()
    earlier = list(records.read_all([options.out, *options.done]))
    if repeat:
        measured = (r["key"] for r in earlier if r["repeat"] == 0 and r["status"] == "ok")
        all_visits = plan.visits_of(_chosen(options), plan.to_repeat(measured, REPEAT_SHARE))
    else:
        all_visits = plan.visits(_chosen(options))
    absent = missing_libraries()
    for library in absent:
        count = sum(row.library == library for row in _chosen(options))
        print(f"collect: {library} is not installed: {count} architectures are skipped", file=sys.stderr)

    def device_works() -> bool:
        try:
            if is_cuda:
                torch.cuda.synchronize()
            return True
        except RuntimeError:
            return False

    monitor = GpuMonitor(options.device)
    runner = Runner(
        writer=writer, attempt=attempt,
        forecast=Forecast(repeat, options.cap_seconds).learn_all(earlier),
        measurer=Measurer(options.device, CudaClock() if is_cuda else HostClock(), monitor, options.cap_seconds),
        build=lambda row, size: build(row, size, options.device), release=lambda: free_memory(options.device),
        device_works=device_works, environment=environment(monitor, options.device), repeat=repeat,
        cap_seconds=options.cap_seconds, deadline=options.deadline or started + options.seconds)
    tally = runner.run(v for v in _visits(options, all_visits) if v.architecture.library not in absent)
    for line in tally.lines():
        print(line, file=sys.stderr)
    return tally.exit_status


def _merge(options) -> int:
    from mdot_lab.collect.merge_records import merge, summary

    merged, faults = merge(records.read_all(options.parts), options.out)
    text = summary(merged)
    print(text)
    if options.summary:
        options.summary.write_text(text + "\n", encoding="utf-8")
    for fault in faults[:20]:
        print(f"collect: left out: {fault}", file=sys.stderr)
    return 1 if faults else 0


def _export(options) -> int:
    from mdot_lab.collect.export_graphs import export_all

    keys = [options.key] if options.key else [r["key"] for r in records.read(options.records) if r["status"] == "ok"]
    return export_all(keys, BY_NAME, options.out, options.batch, options.opset, options.dynamic_batch)


def _table(options) -> int:
    from mdot_lab.collect import measurements_csv

    found, missing = measurements_csv.rows(records.read_all(options.records), options.graphs, options.out, options.batch)
    for reason in missing:
        print(f"collect: left out: {reason}", file=sys.stderr)
    if not found:
        print("collect: the table is empty: no record has a measurement and a graph", file=sys.stderr)
        return 1
    measurements_csv.write(found, options.out)
    return 0


def main(arguments: list[str] | None = None) -> int:
    started = time.time()
    options = _parser().parse_args(arguments)
    if options.command in ("run", "repeat"):
        return _measure(options, started)
    if options.command == "operators":
        return _operators(options, started)
    return {"plan": _plan, "merge": _merge, "export": _export, "table": _table}[options.command](options)


if __name__ == "__main__":
    sys.exit(main())
