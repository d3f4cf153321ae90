"""The options of `mdot predict` for the subcommands of `python -m mdot`, and for columns in measured tables."""

from __future__ import annotations

import argparse
import ast
import functools
from typing import Any, Callable, Mapping

from mdot.configuration import DEGREES, read_options
from mdot.library.errors import InvalidArgumentError
from mdot.options import COMMANDS, ROWS, Options

KINDS = {row.keyword: row.kind for row in ROWS}
BARE = {
    row.keyword: True if row.kind == "flag" else row.bare
    for row in ROWS
    if row.kind == "flag" or row.bare is not None
}
"""Values for options without one."""


def argument(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """A type for argparse, with the message from `read` for an invalid value."""

    def parse(text: str) -> Any:
        try:
            return read(text)
        except InvalidArgumentError as fault:
            raise argparse.ArgumentTypeError(str(fault)) from None

    return parse


def flag_of(option: str) -> str:
    """The name on the command line: "compile" for the option compiled."""
    return next((command for command, keyword in COMMANDS.items() if keyword == option and " " not in command), option.replace("_", "-"))


def option_value(option: str, text: str) -> Any:
    """The value of an option from text."""
    kind = KINDS.get(option)
    if kind in ("choice", "version", "rate") or option == "link":
        return text
    try:
        return ast.literal_eval(text.capitalize() if text in ("true", "false") else text)
    except (SyntaxError, ValueError):
        return text


def add_training(parser: argparse.ArgumentParser) -> None:
    """Adds one option for each keyword of a Configuration except GPU and batch, and --parallel."""
    group = parser.add_argument_group("training", "The options are those of `mdot predict` and mdot.Configuration.")
    for name in Options.__annotations__:
        names = [f"--{flag_of(name)}", f"--{name.replace('_', '-')}"]
        bare: dict[str, Any] = {"nargs": "?", "const": BARE[name]} if name in BARE else {}
        group.add_argument(*dict.fromkeys(names), dest=name, metavar="X", default=None,
                           type=functools.partial(option_value, name), **bare)  # fmt: skip
    group.add_argument("--parallel", type=argument(read_parallel), default={}, metavar="dp=N,tp=N,…",
                       help=f"degrees of parallelism: {', '.join(DEGREES)}")  # fmt: skip


def read_parallel(text: str) -> dict[str, int]:
    """The options of "dp=2,tp=4"."""
    degrees: dict[str, int] = {}
    for item in text.split(","):
        key, _, value = item.partition("=")
        name = key.strip()
        if name not in {*DEGREES, *DEGREES.values(), "fsdp"} or not value.strip().isdigit():
            raise InvalidArgumentError(
                f"expected KIND=N, as in dp=4,tp=2, with a kind of {', '.join(DEGREES)}, fsdp, not {item!r}"
            )
        degrees[name] = int(value)
    return read_options(degrees)


def training_of(parsed: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given."""
    options = {name: parsed[name] for name in Options.__annotations__ if parsed.get(name) is not None}
    return {**options, **parsed.get("parallel", {})}
