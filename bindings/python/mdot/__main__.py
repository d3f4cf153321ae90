"""`python -m mdot`: makes jobs from networks by name, and predicts their training steps, from the shell.

    python -m mdot export resnet50 -o resnet50.job
    python -m mdot export transformers:GPT2LMHeadModel --set n_layer=48 --set n_embd=1600 --set n_head=25 --length 1024
    python -m mdot predict resnet50.job --gpu A100,H100 --batch 64,128 --precision amp
"""

from __future__ import annotations

import argparse
import ast
import sys
import warnings
from pathlib import Path
from typing import Any, Sequence

import mdot
from mdot.configuration import Options

EXIT_FAILED = 1  # argparse exits with 2 after a usage error


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
        prog="python -m mdot", description="Makes jobs from networks and predicts the time of their training steps."
    )
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

    predict = commands.add_parser(
        "predict",
        help="print a table of predicted steps of a job",
        description="The other options are the fields of mdot.Configuration.",
    )
    predict.add_argument("job", metavar="JOB", help="a .job or ONNX file")
    predict.add_argument("--gpu", type=_words, required=True, metavar="NAME,…", help="GPU models")
    predict.add_argument("--batch", type=_numbers, metavar="N,…", help="batch sizes (default: the batch of the job)")
    predict.add_argument("--dim", action="append", type=_setting, default=[], metavar="NAME=N",
                         help="bind a symbolic dimension of an ONNX file; repeatable")  # fmt: skip
    for name in Options.__annotations__:
        predict.add_argument("--" + name.replace("_", "-"), type=_value, metavar="X", default=None)
    return parser


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text.capitalize() if text in ("true", "false") else text)
    except (SyntaxError, ValueError):
        return text


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


def _predict(parsed: argparse.Namespace) -> None:
    options = {name: getattr(parsed, name) for name in Options.__annotations__ if getattr(parsed, name) is not None}
    job = mdot.Job.read(parsed.job, dims=dict(parsed.dim))
    print(mdot.sweep(job, parsed.gpu, parsed.batch, **options))


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = _parser().parse_args(arguments)
    warnings.showwarning = lambda text, *_: print(f"mdot: warning: {text}", file=sys.stderr)
    try:
        {"export": _export, "predict": _predict}[parsed.command](parsed)
    except mdot.Error as fault:
        print(f"mdot: {fault}", file=sys.stderr)
        return EXIT_FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
