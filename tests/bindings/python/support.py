"""Shared by the tests of the package: paths, the command to compare with, small ONNX files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unittest
import warnings
from pathlib import Path
from typing import Any, Iterator
import contextlib

import mdot

SOURCE = Path(__file__).resolve().parents[3]
JOBS = SOURCE / "examples" / "jobs"
INCLUDE = SOURCE / "include" / "mdot"
RESNET = JOBS / "resnet50.onnx"
BERT = JOBS / "bert_base.onnx"
DIMS = {"sequence": 128}


def run(*command: str) -> str:
    """Returns a program's standard output. It runs without this process's sanitizer library, unless it is Python, which
    loads mdot's libraries."""
    keep = command[0] == sys.executable
    environment = {name: value for name, value in os.environ.items() if keep or name != "LD_PRELOAD"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def ask_command(*arguments: str) -> Any:
    """Returns the JSON output of `mdot predict` with these arguments."""
    return json.loads(run(os.environ["MDOT_CLI"], "predict", *arguments, "--json", "--quiet"))


def inspect(path: str) -> Any:
    """Returns the JSON output of `mdot inspect` for an artefact."""
    return json.loads(run(os.environ["MDOT_CLI"], "inspect", path, "--json"))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdot.Warning)
        yield


class TestCase(unittest.TestCase):
    """mdot's warnings are ignored unless a test checks them."""

    def setUp(self) -> None:
        silence = quiet()
        silence.__enter__()
        self.addCleanup(silence.__exit__, None, None, None)

    @classmethod
    def bert(cls) -> mdot.Job:
        return mdot.Job.from_onnx(BERT, dims=DIMS)
