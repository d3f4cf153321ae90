"""`python -m mdot`, which the wheel also installs as `mdot`: makes jobs from networks by name, and predicts their training
steps, from the shell. Commands and options have the names of the command `mdot`.

    python -m mdot export resnet50 -o resnet50.job
    python -m mdot export transformers:GPT2LMHeadModel --set n_layer=48 --set n_embd=1600 --set n_head=25 --length 1024
    python -m mdot predict resnet50.job --gpu A100,H100 --batch 64,128 --precision amp
    python -m mdot fit resnet50.job --gpu all
    python -m mdot price resnet50.job --gpu A100,H100 --price $2.5/h --steps 1e5
    python -m mdot record-trace trace.json.gz --job resnet50.job --batch 64 --precision amp --table measured.csv
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import json
import sys
import warnings
from pathlib import Path
from typing import Any, Callable, Sequence

import mdot
from mdot.calibration import Calibration
from mdot.html_report import write_job, write_page
from mdot.library.errors import InvalidArgumentError
from mdot.measured_table import read_measured
from mdot.prediction import aligned, short
from mdot.predictor import Predictor
from mdot.quantities import read_count, read_price
from mdot.recording.overhead import measure
from mdot.recording.traced_row import record_trace
from mdot.training_arguments import add_training, argument, training_of
from mdot.version import VERSION

EXIT_FAILED = 1  # argparse exits with 2 after a usage error
MOST_OVERHEAD = 0.001
"""Largest part of a step that recording may take."""


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, not {text!r}")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value


def _words(text: str) -> list[str]:
    return text.split(",")


def _numbers(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected whole numbers, not {text!r}") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m mdot" if Path(sys.argv[0]).name == "__main__.py" else "mdot",
        description="Makes jobs from networks and predicts the time of their training steps.",
    )
    parser.add_argument("--version", action="version", version=f"mdot {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True)

    export = commands.add_parser(
        "export",
        help="write a network as a job without weights",
        description="MODEL is the name of a torchvision network, timm:NAME, transformers:CLASS or diffusers:CLASS.",
    )
    export.add_argument("model", metavar="MODEL")
    export.add_argument("-o", "--output", metavar="FILE", help="output file; the suffix .onnx selects ONNX (default MODEL.job)")
    export.add_argument("--batch", type=int, default=2, metavar="N", help="samples of the example inputs (default 2)")
    export.add_argument("--length", type=int, metavar="N", help="number of tokens or frames of a sample")
    export.add_argument("--size", type=int, metavar="N", help="side of an image in pixels")
    export.add_argument("--set", dest="settings", action="append", type=_setting, default=[], metavar="NAME=VALUE",
                        help="a value of the network's configuration, or an argument of its function; repeatable")  # fmt: skip

    gpus = commands.add_parser("gpus", help="list the GPUs that mdot predicts for")
    gpus.add_argument("--json", action="store_true", help="print the spec values as JSON")

    predict = _predicting(commands, "predict", "print a table of predicted steps of a job")
    predict.add_argument("--explain", action="store_true", help="break down the time of one prediction")
    predict.add_argument("--fit", action="store_true", help="find the largest batch that fits the memory of each GPU")
    _add_price(predict, required=False)
    _predicting(commands, "explain", "break down the time of one step by phase and operator")
    _predicting(commands, "fit", "find the largest batch that fits the memory of each GPU")
    _add_price(_predicting(commands, "price", "print the cost of a training, or of a million samples"), required=True)

    report = _predicting(commands, "report", "write an HTML file: time, memory and their parts on several GPUs", jobs="+")
    report.add_argument("-o", "--output", required=True, metavar="FILE.html", help="output file")

    calibrate = commands.add_parser(
        "calibrate",
        help="fit predictions to measured training steps",
        description="MEASURED.csv has the columns job, gpu, batch and ms, and may have any option of `predict` as a column.",
    )
    calibrate.add_argument("measured", metavar="MEASURED.csv")
    calibrate.add_argument("-o", "--output", required=True, metavar="FILE.cal", help="output file")
    calibrate.add_argument("-m", "--model", metavar="FILE", help="a compiled predictor (default: the package's)")

    traced = commands.add_parser(
        "record-trace",
        help="append the step of a torch.profiler trace to a table of measured steps",
        description="TRACE is a file in Chrome's format (.json, .json.gz) that marks steps by profiler.step(). State how the job "
        "trained by the options, because a trace contains neither precision nor optimizer.",
    )
    traced.add_argument("trace", metavar="TRACE")
    traced.add_argument("-j", "--job", required=True, metavar="FILE", help="a .job or ONNX file")
    traced.add_argument("-t", "--table", default="measured.csv", metavar="FILE.csv", help="table (default measured.csv)")
    traced.add_argument("-b", "--batch", type=int, metavar="N", help="samples of a pass (default: the batch of the job)")
    traced.add_argument("-g", "--gpu", metavar="NAME", help="GPU model (default: the trace's)")
    add_training(traced)

    overhead = commands.add_parser(
        "record-overhead",
        help="measure the cost of recording a step",
        description=f"Fails if recording takes more than {MOST_OVERHEAD:.1%} of a step. Uses CUDA events if PyTorch finds a GPU.",
    )
    overhead.add_argument("--step-ms", type=float, default=10, metavar="MS", help="time of the recorded steps (default 10)")
    overhead.add_argument("--steps", type=argument(read_count), default=20000, metavar="N", help="number of steps (default 20000)")
    return parser


def _predicting(commands: Any, name: str, text: str, jobs: str | None = None) -> argparse.ArgumentParser:
    """Adds a subcommand that predicts a job on GPUs."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.add_argument("job", metavar="JOB", nargs=jobs, help="a .job or ONNX file")
    parser.add_argument("-g", "--gpu", type=_words, required=True, metavar="NAME,…", help="GPU models, or all")
    parser.add_argument("-b", "--batch", type=_numbers, metavar="N,…", help="batch sizes (default: the batch of the job)")
    parser.add_argument("-d", "--dim", action="append", type=_setting, default=[], metavar="NAME=N",
                        help="bind a symbolic dimension of an ONNX file; repeatable")  # fmt: skip
    parser.add_argument("-m", "--model", metavar="FILE", help="a compiled predictor (default: the package's)")
    parser.add_argument("-c", "--calibration", metavar="FILE.cal", help="apply a calibration")
    add_training(parser)
    return parser


def _add_price(parser: argparse.ArgumentParser, required: bool) -> None:
    parser.add_argument("--price", type=argument(read_price), required=required, metavar="X/h",
                        help="price of a GPU per hour, for example 2.5 or $2.5/h")  # fmt: skip
    parser.add_argument("--steps", type=argument(read_count), metavar="N", help="steps of the training")
    parser.add_argument("--epochs", type=argument(read_count), metavar="E", help="epochs over --dataset")
    parser.add_argument("--dataset", type=argument(read_count), metavar="N", help="samples of an epoch")


def _export(parsed: argparse.Namespace) -> None:
    from mdot.trace.models import build
    from mdot.trace.onnx_file import serialise
    from mdot.trace.tracer import trace

    network = build(
        parsed.model, batch=parsed.batch, length=parsed.length, size=parsed.size, settings=dict(parsed.settings)
    )
    output = Path(parsed.output or parsed.model.replace(":", "-") + ".job")
    if output.suffix == ".onnx":
        kwargs, loss, targets = {**network.kwargs, **network.labels}, network.loss, network.targets
        traced = trace(
            network.model, network.args, kwargs, loss=loss, targets=targets, batch=parsed.batch, name=network.name
        )
        output.write_bytes(serialise(traced.graph, traced.batch))
        print(f"{output}: {output.stat().st_size} bytes")
        return
    job = mdot.Job.from_network(network, batch=parsed.batch)
    job.save(output)
    print(f"{output}: {len(job)} operators, {job.parameters} parameters")


# ---- Predicting ------------------------------------------------------------------------------------------------------


def _predictor(parsed: argparse.Namespace) -> Predictor:
    calibration = getattr(parsed, "calibration", None)
    return Predictor(parsed.model, calibration=Calibration.load(calibration) if calibration else None)


def _gpu_names(parsed: argparse.Namespace) -> list[str]:
    return [gpu.name for gpu in mdot.gpus()] if parsed.gpu == ["all"] else parsed.gpu


def _read(parsed: argparse.Namespace, path: str) -> mdot.Job:
    return mdot.Job.read(path, dims=dict(parsed.dim))


def _sweep(parsed: argparse.Namespace) -> mdot.Table:
    job = _read(parsed, parsed.job)
    return _predictor(parsed).sweep(job, _gpu_names(parsed), parsed.batch, **training_of(vars(parsed)))


def _predict(parsed: argparse.Namespace) -> None:
    if parsed.explain:
        _explain(parsed)
    elif parsed.fit:
        _fit(parsed)
    elif parsed.price is not None:
        _price(parsed)
    else:
        print(_sweep(parsed))


def _explain(parsed: argparse.Namespace) -> None:
    names, batches = _gpu_names(parsed), parsed.batch or [None]
    if len(names) > 1 or len(batches) > 1:
        raise InvalidArgumentError("an explanation takes one GPU and one batch")
    job, options, predictor = _read(parsed, parsed.job), training_of(vars(parsed)), _predictor(parsed)
    print(predictor.predict(job, names[0], batches[0], **options))
    print(predictor.explain(job, names[0], batches[0], **options))


def _fit(parsed: argparse.Namespace) -> None:
    """Prints a prediction at the largest batch of each GPU."""
    if parsed.batch is not None:
        raise InvalidArgumentError("fit excludes --batch, because it determines the batch")
    job, options, predictor = _read(parsed, parsed.job), training_of(vars(parsed)), _predictor(parsed)
    rows = []
    for name in _gpu_names(parsed):
        batch = predictor.largest_batch(job, name, **options)
        if batch == 0:
            print(f"{name}: no batch fits", file=sys.stderr)
        rows.append(predictor.predict(job, name, max(batch, 1), **options))
    print(mdot.Table(rows))


def _price(parsed: argparse.Namespace) -> None:
    if parsed.steps is None and (parsed.epochs is None) != (parsed.dataset is None):
        raise InvalidArgumentError("--epochs and --dataset go together")
    cells = [("GPU", "batch", "step, ms", "hours", "cost")]
    for row in _sweep(parsed):
        if parsed.steps is None and parsed.epochs is None:
            hours = 1e6 / row.samples_per_second / 3600
        else:
            hours = row.hours(steps=parsed.steps, epochs=parsed.epochs, dataset=parsed.dataset)
        cost = hours * parsed.price * row.configuration.gpu_total
        configuration = row.configuration
        cells.append(
            (configuration.gpu_name, str(configuration.batch), short(row.step_ms), short(hours), short(cost))
        )
    print(aligned(cells))
    if parsed.steps is None and parsed.epochs is None:
        print("\nHours and cost are those of a million samples. --steps, or --epochs with --dataset, gives the whole training.")


def _report(parsed: argparse.Namespace) -> None:
    options, predictor = training_of(vars(parsed)), _predictor(parsed)
    if parsed.batch is not None and len(parsed.batch) > 1:
        raise InvalidArgumentError("a report takes one batch")
    batch = parsed.batch[0] if parsed.batch else None
    sections = []
    for path in parsed.job:
        job = _read(parsed, path)
        rows = [
            (predictor.predict(job, name, batch, **options), predictor.explain(job, name, batch, **options))
            for name in _gpu_names(parsed)
        ]
        sections.append(write_job(path, rows))
    Path(parsed.output).write_text(write_page(sections), encoding="utf-8")


# ---- Other commands --------------------------------------------------------------------------------------------------


def _gpus(parsed: argparse.Namespace) -> None:
    if parsed.json:
        print(json.dumps({"schema": "mdot-gpus/1", "gpus": [dataclasses.asdict(gpu) for gpu in mdot.gpus()]}, indent=1))
        return
    print(f"{'GPU':<18} {'GiB':>5} {'GB/s':>6} {'fp32':>7} {'tf32':>7} {'fp16':>7} {'SMs':>4}")
    for gpu in mdot.gpus():
        print(f"{gpu.name:<18} {gpu.memory_gib:>5g} {gpu.memory_gbps:>6g} {gpu.fp32_tflops:>7g} {gpu.tf32_tflops:>7g} "
              f"{gpu.fp16_tflops:>7g} {gpu.sm_count:>4g}")  # fmt: skip


def _calibrate(parsed: argparse.Namespace) -> None:
    calibration = Calibration.measured(_predictor(parsed), read_measured(Path(parsed.measured)))
    calibration.save(parsed.output)
    print(f"{'GPU':<24} {'rows':>6} {'factor':>8} {'half':>6} {'factor':>8}")
    for name, at in calibration.gpus.items():
        print(f"{name:<24} {at.row_count:>6} {at.factor:>8.3f} {at.half_row_count:>6} {at.half_factor:>8.3f}")
    print(f"{'others':<24} {'':>6} {calibration.factor:>8.3f}")
    if calibration.memory_row_count > 0:
        print(f"\n{calibration.memory_row_count} rows correct the predicted memory.")


def _record_trace(parsed: argparse.Namespace) -> None:
    options = training_of(vars(parsed))
    recorded = record_trace(parsed.trace, parsed.job, parsed.table, batch=parsed.batch, gpu=parsed.gpu, **options)
    at = recorded.configuration
    print(f"{parsed.table}: {at.gpu_name}, batch {at.batch}: {recorded.step_ms:.3f} ms per step, {recorded.note}")


def _record_overhead(parsed: argparse.Namespace) -> None:
    found = measure(parsed.step_ms, parsed.steps)
    print(f"{found.clock}: {1e3 * found.cost_ms:.2f} us per step, {100 * found.share:.4f} % of {found.step_ms:g} ms")
    if found.share > MOST_OVERHEAD:
        raise mdot.Error(f"recording takes more than {MOST_OVERHEAD:.1%} of a step")


COMMANDS: dict[str, Callable[[argparse.Namespace], None]] = {
    "export": _export,
    "gpus": _gpus,
    "predict": _predict,
    "explain": _explain,
    "fit": _fit,
    "price": _price,
    "report": _report,
    "calibrate": _calibrate,
    "record-trace": _record_trace,
    "record-overhead": _record_overhead,
}


def main(arguments: Sequence[str] | None = None) -> int:
    warnings.showwarning = lambda text, *_: print(f"mdot: warning: {text}", file=sys.stderr)
    try:
        parsed = _parser().parse_args(arguments)
        COMMANDS[parsed.command](parsed)
    except (mdot.Error, OSError) as fault:
        print(f"mdot: {fault}", file=sys.stderr)
        return EXIT_FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
