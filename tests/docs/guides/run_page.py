#!/usr/bin/env python3
"""Runs the commands of a page of the manual literally and compares their output with the page.

    run_page.py [--without-modules] SOURCE BUILD PAGE.md

A page marks commands in two forms: fenced blocks of the language `console`, which may be indented as part of a list,
and blocks that are indented by four spaces. Lines that begin with
"$ " are commands, lines that begin with "> " continue the command above, and the other lines are its output, standard
error included. All commands of a page run in one shell, in an empty folder that links to the files of the clone, because
a reader runs them in the clone. An HTML comment in the line above a block states what is special about the block:

    <!-- numbers vary -->            numbers are not compared, for example times
    <!-- output varies -->           the output is not compared
    <!-- exit status 1 -->           the last command ends with this status; the others end with 0
    <!-- needs Python: torch -->     the block needs these modules. In the first lines of a page: the whole page does
    <!-- needs the store -->         in the first lines of a page: it needs mdot-store of the companion cluster

MDOT_UPDATE_GOLDEN=1 rewrites the page instead of failing. The script runs programs that a page includes
(`literalinclude`) only through commands; it fails if no command names an included file. Python is MDOT_TORCH_PYTHON,
build/torch or python3, the first one that has the modules. The exit status is 77 if they are missing. With
--without-modules, blocks that need modules are left out, and the script prints their lines.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

SKIPPED = 77
SEPARATOR = "\x1e"
NEEDS = re.compile(r"needs Python: ([\w, ]+)")
FENCE = re.compile(r"^( *)```(\S*)")
INCLUDED = re.compile(r"^```\{literalinclude\} (\S+)", re.M)


@dataclass
class Command:
    text: str
    line: int
    wanted: list[str] = field(default_factory=list)
    first: int = 0
    """Lines first to first + len(wanted) of the page hold the output."""


@dataclass
class Block:
    note: str
    indent: str
    commands: list[Command]

    @property
    def modules(self) -> list[str]:
        found = NEEDS.search(self.note)
        return re.split(r",\s*", found[1].strip()) if found else []


def notes_above(lines: list[str], number: int) -> str:
    """Returns the comments above a line. Empty lines may follow them."""
    notes = []
    for line in reversed(lines[:number]):
        if line and not line.startswith("<!--"):
            break
        notes.append(line)
    return " ".join(notes)


def read_blocks(lines: list[str]) -> list[Block]:
    blocks: list[Block] = []
    inside: Block | None = None
    fence: str | None = None  # the indentation of the fence around this line
    for number, line in enumerate(lines):
        opens = FENCE.match(line)
        if fence is not None:
            if line.rstrip() == fence + "```":
                inside = fence = None
                continue
        elif opens:
            fence = opens[1]
            if opens[2] == "console":
                inside = Block(notes_above(lines, number), fence, [])
                blocks.append(inside)
            continue
        elif inside is None and line.startswith("    $ "):
            inside = Block(notes_above(lines, number), "    ", [])
            blocks.append(inside)
        elif inside is not None and line and not line.startswith("    "):
            inside = None
        if inside is not None:
            add_line(inside, line[len(inside.indent) :], number)
    for block in blocks:
        for command in block.commands:
            while command.wanted and not command.wanted[-1]:
                command.wanted.pop()  # empty lines behind an indented block belong to the page
    return [block for block in blocks if block.commands]


def add_line(block: Block, text: str, number: int) -> None:
    if text.startswith("$ "):
        block.commands.append(Command(text[2:], number + 1, first=number + 1))
    elif text.startswith("> ") and block.commands and not block.commands[-1].wanted:
        block.commands[-1].text += "\n" + text[2:]
        block.commands[-1].first = number + 1
    elif block.commands:
        block.commands[-1].wanted.append(text)


def find_python(source: Path, modules: list[str]) -> str | None:
    candidates = [os.environ.get("MDOT_TORCH_PYTHON", ""), str(source / "build/torch/bin/python"), sys.executable]
    for python in candidates:
        if python and shutil.which(python):
            test = subprocess.run([python, "-c", "import " + ", ".join(modules)], capture_output=True)
            if test.returncode == 0:
                return python
    return None


def link_clone(source: Path, build: Path, folder: Path) -> None:
    for entry in source.iterdir():
        if entry.name not in ("build", ".git"):
            (folder / entry.name).symlink_to(entry)
    (folder / "build").mkdir()
    (folder / "build" / "release").symlink_to(build)


def run(commands: list[Command], folder: Path, environment: dict[str, str]) -> list[tuple[str, int]]:
    """Returns the output and the exit status of each command."""
    script = folder.parent / "page.sh"
    with script.open("w") as file:
        for command in commands:
            file.write(f"{command.text}\nprintf '{SEPARATOR}%d{SEPARATOR}' $?\n")
    done = subprocess.run(["bash", str(script)], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")  # fmt: skip
    parts = done.stdout.replace(str(folder), "~/mdot").split(SEPARATOR)
    if len(parts) != 2 * len(commands) + 1:
        sys.exit(f"the shell ended early, after: {done.stdout[-2000:]}")
    return [(parts[2 * i], int(parts[2 * i + 1])) for i in range(len(commands))]


def without_numbers(lines: list[str]) -> list[str]:
    """Numbers, column widths and table rules are left out."""
    return [re.sub(r"[\s-]+", " ", re.sub(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?", "0", line)).strip() for line in lines]


def is_equal(note: str, wanted: list[str], found: list[str]) -> bool:
    if "output varies" in note:
        return True
    if "numbers vary" in note:
        return without_numbers(wanted) == without_numbers(found)
    return wanted == found


def missing_includes(page: Path, text: str, commands: list[Command]) -> list[str]:
    every = "\n".join(command.text for command in commands)
    names = [Path(name) for name in INCLUDED.findall(text)]
    return [f"{page}: no command runs {name}" for name in names if name.stem not in every]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--without-modules", action="store_true")
    parser.add_argument("source", type=Path)
    parser.add_argument("build", type=Path)
    parser.add_argument("page", type=Path)
    options = parser.parse_args()
    source, build = options.source.resolve(), options.build.resolve()
    text = options.page.read_text()
    lines = text.split("\n")
    blocks = read_blocks(lines)
    if not blocks:
        return print(f"{options.page} has no commands") or 1
    head = "\n".join(lines[:5])
    modules = sorted({name for block in blocks for name in block.modules}
                     | set(re.split(r",\s*", NEEDS.search(head)[1].strip()) if NEEDS.search(head) else ()))  # fmt: skip
    if "<!-- needs the store -->" in head and not (build / "bin/mdot-store").exists():
        print("skipped: the build has no mdot-store")
        return SKIPPED
    skipped = [block for block in blocks if block.modules] if options.without_modules else []
    for block in skipped:
        print(f"left out: line {block.commands[0].line} needs Python with {', '.join(block.modules)}")
    programs = f"{build / 'cli'}:{build / 'bin'}"
    environment = dict(os.environ, LC_ALL="C.UTF-8", PATH=f"{programs}:{os.environ['PATH']}", PYTHONDONTWRITEBYTECODE="1")
    if modules and not options.without_modules:
        python = find_python(source, modules)
        if python is None:
            print(f"skipped: no Python has {', '.join(modules)}; scripts/test-torch.sh installs them")
            return SKIPPED
        environment["PATH"] = f"{Path(python).parent}:{environment['PATH']}"

    chosen = [block for block in blocks if block not in skipped]
    commands = [command for block in chosen for command in block.commands]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "clone"
        folder.mkdir()
        link_clone(source, build, folder)
        results = iter(run(commands, folder, environment))

    faults = missing_includes(options.page, text, [command for block in blocks for command in block.commands])
    rewritten: list[tuple[Command, list[str]]] = []
    for block in chosen:
        status = re.search(r"exit status (\d+)", block.note)
        for command in block.commands:
            output, ended = next(results)
            found = [line.rstrip() for line in output.rstrip("\n").split("\n")] if output.strip() else []
            expected = int(status[1]) if status and command is block.commands[-1] else 0
            where = f"{options.page}:{command.line}: {command.text.splitlines()[0]}"
            if ended != expected:
                faults.append(f"{where}\nexit status {ended} instead of {expected}:\n" + "\n".join(found[-30:]))
            elif not is_equal(block.note, [line.rstrip() for line in command.wanted], found):
                if os.environ.get("MDOT_UPDATE_GOLDEN"):
                    rewritten.append((command, [(block.indent + line).rstrip() for line in found]))
                else:
                    difference = difflib.unified_diff(command.wanted, found, "page", "output", lineterm="")
                    faults.append(f"{where}\n" + "\n".join(difference))
    for command, found in reversed(rewritten):
        lines[command.first : command.first + len(command.wanted)] = found
        print(f"rewritten: {options.page}:{command.line}")
    if rewritten:
        options.page.write_text("\n".join(lines))
    for fault in faults:
        print(fault)
    print(f"{len(commands)} commands of {options.page.name} ran" + (", with faults" if faults else " and print what the page shows"))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
