"""Tests reading `mdot extract`, with a fake program in the same format."""

import stat
import sys

import numpy as np
import pytest

from mdot_lab.predictor import sequences, tables

FAKE = """#!{python}
import json, sys
arguments = sys.argv[1:]
batch = int(arguments[arguments.index("--batch") + 1])
graph = arguments[1]
open({log!r}, "a").write("read\\n")
if "broken" in graph:
    sys.exit("mdot: broken.onnx: no graph")
loads = {{"flops": 100 * batch + 7, "bytes_read": 8 * batch, "bytes_written": 4 * batch}}
operator = {{"type": "Conv", "known": True, "configuration": {{"kernel_h": 3}}, "forward": loads, "data_gradient": loads,
            "weight_gradient": loads, "parameters": 11, "depth": 0, "height": 1, "out_degree": 1, "inputs": []}}
unknown = operator | {{"type": "Strange", "known": False, "depth": 1, "height": 0, "out_degree": 0, "inputs": [0]}}
print(json.dumps({{"operators": [operator, unknown]}}))
"""


@pytest.fixture
def mdot(tmp_path):
    path = tmp_path / "mdot"
    path.write_text(FAKE.format(python=sys.executable, log=str(tmp_path / "log")))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def _graph(folder, name):
    path = folder / f"{name}.onnx"
    path.write_text(name)
    return path


def test_flops_and_bytes_are_split_into_per_sample_and_per_step(mdot, tmp_path):
    sequence = sequences.read_sequence(mdot, _graph(tmp_path, "net"))
    assert sequence.load[0, :3].tolist() == [100, 8, 4]
    assert sequence.load[0, 9:12].tolist() == [7, 0, 0]
    assert sequence.load[0, -1] == 11


def test_types_settings_and_positions_have_their_columns(mdot, tmp_path):
    sequence = sequences.read_sequence(mdot, _graph(tmp_path, "net"))
    assert sequence.type.tolist() == [tables.operator_type_row("Conv"), tables.UNKNOWN_TYPE]
    assert sequence.setting[0, tables.settings().index("kernel_h")] == 3
    assert sequence.position[1].tolist() == [1, 1, 0, 1, 0]


def test_cached_sequences_are_not_read_again(mdot, tmp_path):
    graph = _graph(tmp_path, "net")
    first = sequences.read_all(mdot, [graph], tmp_path / "cache", 1)
    runs = (tmp_path / "log").read_text()
    again = sequences.read_all(mdot, [graph], tmp_path / "cache", 1)
    assert (tmp_path / "log").read_text() == runs
    assert np.array_equal(first["net.onnx"].load, again["net.onnx"].load)


def test_another_binary_reads_again(mdot, tmp_path):
    graph = _graph(tmp_path, "net")
    sequences.read_all(mdot, [graph], tmp_path / "cache", 1)
    runs = (tmp_path / "log").read_text()
    mdot.write_text(mdot.read_text() + "# changed\n")
    sequences.read_all(mdot, [graph], tmp_path / "cache", 1)
    assert len((tmp_path / "log").read_text()) > len(runs)


def test_a_refused_graph_gives_its_reason(mdot, tmp_path):
    read = sequences.read_all(mdot, [_graph(tmp_path, "broken")], tmp_path / "cache", 1)
    assert "no graph" in read["broken.onnx"]
