"""Finds and runs the executable `mdot`, which implements all subcommands except those in Python.

The search order: the folders in the environment variable MDOT_LIBRARIES (for example a build tree's
without_compiler); the package's own folder `bin`, which a wheel fills; and the folders in PATH.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Iterator, NoReturn, Sequence, TextIO

from mdot.library.errors import NotFoundError
from mdot.library.libraries import PACKAGE

ELF = b"\x7fELF"
"""An executable's first bytes. The script `mdot` from pip has others, thus it never calls itself."""


def _candidates() -> Iterator[Path]:
    for folder in filter(None, os.environ.get("MDOT_LIBRARIES", "").split(os.pathsep)):
        yield Path(folder, "mdot")
    yield PACKAGE / "bin" / "mdot"
    for folder in filter(None, os.environ.get("PATH", "").split(os.pathsep)):
        yield Path(folder, "mdot")


def _is_executable(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(ELF)) == ELF and os.access(path, os.X_OK)
    except OSError:
        return False


def find() -> Path:
    """The executable. Raises NotFoundError if there is none."""
    for path in _candidates():
        if _is_executable(path):
            return path
    raise NotFoundError(
        f"there is no executable mdot at {PACKAGE / 'bin' / 'mdot'}; install the wheel mdot-predict, or build mdot and add "
        "build/release/cli to PATH"
    )


def become(arguments: Sequence[str]) -> NoReturn:
    """Replaces this process by the executable."""
    path = find()
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(path, ["mdot", *arguments])


def run(arguments: Sequence[str]) -> int:
    """Runs the executable, and returns the exit status."""
    return subprocess.run([str(find()), *arguments], check=False).returncode


def output(arguments: Sequence[str]) -> str:
    """What the executable prints on stdout."""
    return subprocess.run([str(find()), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, encoding="utf-8", check=False).stdout


def show_help(arguments: Sequence[str], extra: str, stream: TextIO) -> int:
    """Prints the executable's list of subcommands, and then `extra`. Returns the executable's exit status."""
    done = subprocess.run([str(find()), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding="utf-8")  # fmt: skip
    stream.write(f"{done.stdout}\n{extra}\n")
    return done.returncode
