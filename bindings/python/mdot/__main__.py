"""`python -m mdot`, which the wheel also installs as `mdot`. The subcommands in this file need Python. The executable `mdot`,
which the wheel contains without the compiler, runs all others (command.py).

    python -m mdot export resnet50 -o resnet50.job
    python -m mdot export transformers:GPT2LMHeadModel --set n_layer=48 --set n_embd=1600 --set n_head=25 --length 1024
    python -m mdot predict resnet50.job --gpu A100,H100 --batch 64,128 --precision amp
    python -m mdot predict trace.json.gz --gpu H100 --config deepspeed.json
    python -m mdot predict timm:resnet50d --gpu H100
    python -m mdot record-trace trace.json.gz --job resnet50.job --batch 64 --precision amp --table measured.csv
"""

from __future__ import annotations

import argparse
import ast
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, Callable, Sequence

import mdot
from mdot import command
from mdot.command_words import as_jobs, programs_among, with_options
from mdot.quantities import read_count
from mdot.recording.overhead import measure
from mdot.recording.traced_row import record_trace
from mdot.training_arguments import add_training, argument, training_of

EXIT_FAILED = 1  # argparse exits with 2 after a usage error
MOST_OVERHEAD = 0.001
"""Largest part of a step for recording."""


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, not {text!r}")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(prog="python -m mdot" if Path(sys.argv[0]).name == "__main__.py" else "mdot")
    commands = whole.add_subparsers(dest="command", required=True)

    export = commands.add_parser(
        "export",
        description="MODEL is the name of a torchvision network, timm:NAME, transformers:CLASS, diffusers:CLASS, hf:ORG/NAME "
        "(its config.json is downloaded), or a trace of torch.profiler (record_shapes=True) or Chakra.",
    )
    export.add_argument("model", metavar="MODEL")
    export.add_argument("-o", "--output", metavar="FILE", help="output file; the suffix .onnx selects ONNX (default MODEL.job)")
    export.add_argument("--batch", type=int, metavar="N",
                        help="samples of the example inputs (default 2), or of the trace (default: its first dimension)")  # fmt: skip
    export.add_argument("--length", type=int, metavar="N", help="number of tokens or frames of a sample")
    export.add_argument("--size", type=int, metavar="N", help="side of an image in pixels")
    export.add_argument("--set", dest="settings", action="append", type=_setting, default=[], metavar="NAME=VALUE",
                        help="a value of the network's configuration, or an argument of its function; repeatable")  # fmt: skip

    traced = commands.add_parser(
        "record-trace",
        description="TRACE is a file in Chrome's format (.json, .json.gz) that marks steps by profiler.step(). State how the "
        "job trained by the options, because a trace contains neither precision nor optimizer.",
    )
    traced.add_argument("trace", metavar="TRACE")
    traced.add_argument("-j", "--job", required=True, metavar="FILE", help="a .job or ONNX file")
    traced.add_argument("-t", "--table", default="measured.csv", metavar="FILE.csv", help="table (default measured.csv)")
    _add_step(traced, "the batch of the job")

    explained = commands.add_parser(
        "explain-trace",
        description="Prints predicted and measured GPU times by operator. TRACE is a file of torch.profiler, with "
        "record_shapes=True and steps on a GPU. State how the job trained by the options.",
    )
    explained.add_argument("trace", metavar="TRACE")
    explained.add_argument("--to", metavar="NAME", help="another GPU model: its GPU time, from the traced kernels and without "
                           "them, with the errors of each answer")  # fmt: skip
    _add_step(explained, "the first dimension")

    overhead = commands.add_parser(
        "record-overhead",
        description=f"Fails if recording takes more than {MOST_OVERHEAD:.1%} of a step. Uses CUDA events if PyTorch finds a "
        "GPU.",
    )
    overhead.add_argument("--step-ms", type=float, default=10, metavar="MS", help="time of the recorded steps (default 10)")
    overhead.add_argument("--steps", type=argument(read_count), default=20000, metavar="N",
                          help="number of steps (default 20000)")  # fmt: skip
    return whole


def _add_step(traced: argparse.ArgumentParser, batch: str) -> None:
    """Adds the options of a traced step. `batch` names the default."""
    traced.add_argument("-b", "--batch", type=int, metavar="N", help=f"samples of a pass (default: {batch})")
    traced.add_argument("-g", "--gpu", metavar="NAME", help="GPU model (default: the trace's)")
    add_training(traced)


def _export(parsed: argparse.Namespace) -> None:
    from mdot.trace.models import build
    from mdot.trace.onnx_file import serialise
    from mdot.trace.tracer import trace

    if Path(parsed.model).is_file() and ".json" in parsed.model:
        output = Path(parsed.output or parsed.model.partition(".json")[0] + ".job")
        job = mdot.Job.from_trace(parsed.model, batch=parsed.batch)
        job.save(output)
        print(f"{output}: {len(job)} operators, {job.parameters} parameters, batch {job.batch}")
        return
    batch = 2 if parsed.batch is None else parsed.batch
    network = build(parsed.model, batch=batch, length=parsed.length, size=parsed.size, settings=dict(parsed.settings))
    output = Path(parsed.output or parsed.model.replace(":", "-") + ".job")
    if output.suffix == ".onnx":
        kwargs, loss, targets = {**network.kwargs, **network.labels}, network.loss, network.targets
        traced = trace(
            network.model, network.args, kwargs, loss=loss, targets=targets, batch=batch, name=network.name
        )
        output.write_bytes(serialise(traced.graph, traced.batch))
        print(f"{output}: {output.stat().st_size} bytes, batch {traced.batch}; {_assumed(network)}")
        return
    job = mdot.Job.from_network(network, batch=batch)
    job.save(output)
    print(f"{output}: {len(job)} operators, {job.parameters} parameters, batch {job.batch}; {_assumed(network)}")


def _assumed(network: Any) -> str:
    """The shapes of the example inputs, whose lengths and sides the job keeps."""
    inputs = [*((f"input {i + 1}", one) for i, one in enumerate(network.args)), *network.kwargs.items()]
    shapes = [f"{name} {list(one.shape)}" for name, one in inputs if hasattr(one, "shape")]
    return f"assumed inputs: {', '.join(shapes) or 'a list of images'}; --batch, --length and --size change them"


def _record_trace(parsed: argparse.Namespace) -> None:
    options = training_of(vars(parsed))
    recorded = record_trace(parsed.trace, parsed.job, parsed.table, batch=parsed.batch, gpu=parsed.gpu, **options)
    at = recorded.configuration
    print(f"{parsed.table}: {at.gpu_name}, batch {at.batch}: {recorded.step_ms:.3f} ms per step, {recorded.note}")


def _explain_trace(parsed: argparse.Namespace) -> None:
    from mdot.recording.trace_file import gpu_of_trace
    from mdot.trace.replay import compare, network_of
    from mdot.trace.transfer import answers_ms, table

    found = network_of(parsed.trace, parsed.batch)
    if not found.kernels_ms:
        raise mdot.InvalidArgumentError(f"{parsed.trace}: the trace has no kernels of a GPU to compare with")
    name = parsed.gpu or gpu_of_trace(parsed.trace)
    if name is None:
        raise mdot.InvalidArgumentError(f"{parsed.trace}: the trace names no GPU; name it with --gpu")
    for note in found.notes:
        warnings.warn(note)
    job = mdot.Job.from_network(found.network, batch=found.batch)
    options = {**({} if found.has_backward else {"mode": "inference"}), **training_of(vars(parsed))}
    here, there = (
        None if gpu is None else mdot.Predictor().explain(job, gpu=gpu, batch=found.batch, **options)
        for gpu in (name, parsed.to)
    )
    print(compare(found, job, here))
    if there is not None:
        print("\n" + table(answers_ms(found, job, here, there, (mdot.gpu(name), mdot.gpu(parsed.to))), parsed.to))


def _record_overhead(parsed: argparse.Namespace) -> None:
    found = measure(parsed.step_ms, parsed.steps)
    print(f"{found.clock}: {1e3 * found.cost_ms:.2f} us per step, {100 * found.share:.4f} % of {found.step_ms:g} ms")
    if found.share > MOST_OVERHEAD:
        raise mdot.Error(f"recording takes more than {MOST_OVERHEAD:.1%} of a step")


COMMANDS: dict[str, tuple[str, Callable[[argparse.Namespace], None]]] = {
    "export": ("write a network of PyTorch, by its name, as a job without weights", _export),
    "record-trace": ("append the step of a torch.profiler trace to a table of measured steps", _record_trace),
    "explain-trace": ("set predicted GPU times beside those of a torch.profiler trace", _explain_trace),
    "record-overhead": ("measure the cost of recording a step", _record_overhead),
}
"""The subcommands in Python, with summaries."""


def _summaries() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}} {text}" for name, (text, _) in COMMANDS.items()]
    return "\n".join(["Commands in Python:", *lines, _MORE])


_MORE = """\nThe other commands read a trace of torch.profiler, or a network's name as in `mdot export`, in place of JOB, and --config
FILE: the options of a configuration of torchtune, axolotl, torchtitan, transformers (Trainer, TRL, LLaMA-Factory), Megatron-LM,
DeepSpeed, Accelerate or Lightning (.json, .toml, .yaml, or a script's arguments in .sh). The first four state the network,
too, so that they may stand in place of JOB."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a subcommand. Those of the executable replace the process. Returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["help"] and words[1:2] and words[1] in COMMANDS:
        words = [words[1], "--help"]
    warnings.showwarning = lambda text, *_: print(f"mdot: warning: {text}", file=sys.stderr)
    try:
        if not words or words in (["--help"], ["-h"], ["help"]):
            return command.show_help(words, _summaries(), sys.stdout if words else sys.stderr)
        if words[0] not in COMMANDS:
            programs = programs_among(words)
            if programs:
                with tempfile.TemporaryDirectory(prefix="mdot-") as folder:  # has to outlive the command
                    return command.run(with_options(as_jobs(words, programs, folder)))
            command.become(with_options(words))
        parsed = parser().parse_args(words)
        COMMANDS[parsed.command][1](parsed)
    except (mdot.Error, OSError) as fault:
        print(f"mdot: {fault}", file=sys.stderr)
        return EXIT_FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
