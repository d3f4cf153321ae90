"""Runs every Python example in the package's README, the root folder's README and the manual as written. Examples with
PyTorch are in torch/."""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
import unittest

import support

import mdot

READMES = (support.SOURCE / "README.md",
           support.SOURCE / "bindings" / "python" / "README.md")


def examples(with_torch: bool) -> dict[str, list[str]]:
    """Returns each file's blocks in order: those that import mdot, and those that continue such a block."""
    found: dict[str, list[str]] = {}
    for path in READMES:
        blocks = re.findall(r"^```python\n(.*?)^```", path.read_text(), re.M | re.S)
        mine = [block for block in blocks if "torch.onnx.export" not in block]
        found[str(path)] = [block for block in mine if with_torch or "import torch" not in block]
    return found


def run(blocks: list[str]) -> str:
    """Returns the blocks' output. Each block continues with the previous names."""
    names: dict[str, object] = {"__name__": "example"}
    reported = io.StringIO()
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:  # they may write here, beside the files that they read
        for name in ("examples", "weights"):
            os.symlink(support.SOURCE / name, os.path.join(folder, name))
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(reported):
                for block in blocks:
                    exec(compile(block, "README.md", "exec"), names)
        finally:
            os.chdir(before)
    return reported.getvalue()


class Readme(support.TestCase):
    def test_examples_run_as_written(self) -> None:
        for path, blocks in examples(with_torch=False).items():
            with self.subTest(path):
                self.assertGreater(len(blocks), 0)
                self.assertIn("A100", run(blocks))


if __name__ == "__main__":
    unittest.main()
