"""Tests the comparison between predictions and published labels. They also run without mdot."""

import sys
from types import ModuleType

import numpy as np
import pytest


@pytest.fixture
def check(monkeypatch):
    monkeypatch.setitem(sys.modules, "mdot", ModuleType("mdot"))
    from mdot_lab.checks import labels_by_source

    return labels_by_source


def test_a_label_is_asked_as_it_was_measured(check, make_label):
    label = make_label("language.llama3_8b", 2, 10.0, kind="backward", run="torchtitan", software="pt260", precision="bf16",
                       is_compiled=True, recomputes=0.5)
    assert check.settings(label) == {"batch": 2, "layout": "nchw", "precision": "bf16", "torch": "2.6", "attention": "eager",
                                     "compiled": True, "checkpoint": "selective", "optimizer": "sgd-plain"}
    for gpu, precision in (("A100-SXM-40GB", "bf16"), ("TITAN-V", "mixed-fp16")):      # which emulates bf16
        older = make_label("torchvision.vgg", 12, 1.0, kind="backward", software="pt17", precision="fp16", run="multigpu", gpu=gpu)
        assert (check.settings(older)["torch"], check.settings(older)["precision"]) == ("1.7", precision)


def test_boards_that_differ_from_their_model_are_described(check, make_label, monkeypatch):
    class Described(dict):
        def replace(self, **specs):
            return Described(self, **specs)

    monkeypatch.setattr(check.mdot, "gpu", lambda name: Described(model=name), raising=False)
    slower = check.board(make_label("language.a", 1, 10.0, kind="backward", run="torchtitan", gpu="H100-SXM-80GB"))
    assert (slower["model"], slower["watts"], slower["memory_gbps"]) == ("H100-SXM-80GB", 500, 2400)
    assert check.board(make_label("language.a", 1, 10.0, kind="backward", run="simumax", gpu="B200")) == "B200"


def test_rows_have_bias_errors_and_coverage_by_publisher(check, make_label):
    labels = [make_label("language.a", 1, 10.0, kind="backward", run="gavel", gpu=gpu) for gpu in ("T4", "K80")]
    labels.append(make_label("torchvision.vgg", 12, 10.0, kind="backward", run="multigpu", gpu="T4"))
    lines = check.table(labels, np.array([12.0, 9.0, 10.0]), np.array([True, False, True]), check.GROUPS["gpu"])
    assert "| gavel | 2 | +3.9 | 15.0 | 15.0 | 20 | 50 |" in lines
    assert "| gavel, K80 | 1 | -10.0 | 10.0 | 10.0 | 10 | 0 |" in lines
    assert "| pytorch-gpu-benchmark | 1 | +0.0 | 0.0 | 0.0 | 0 | 100 |" in lines
