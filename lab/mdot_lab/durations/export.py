"""The boosters as one ONNX model: numbers f32 [1, 13] → log seconds f32 [1, 3]."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from mdot_lab.durations.jobs import NUMBERS
from mdot_lab.durations.trees import ENDS, Boosters


def _threshold(value: float) -> float:
    """The largest f32 that is at most the threshold, so that every f32 input takes LightGBM's branch."""
    rounded = np.float32(value)
    return float(rounded if float(rounded) <= value else np.nextafter(rounded, np.float32(-np.inf)))


def _add(node: dict[str, Any], tree: int, target: int, out: dict[str, list[Any]]) -> int:
    """Appends a node and those below it. Returns its number."""
    index = len(out["nodes_nodeids"]) - out["first"][-1]
    is_leaf = "leaf_value" in node
    for name, value in (("treeids", tree), ("nodeids", index), ("featureids", 0 if is_leaf else node["split_feature"]),
                        ("modes", "LEAF" if is_leaf else "BRANCH_LEQ"), ("values", 0.0 if is_leaf else _threshold(node["threshold"])),
                        ("truenodeids", 0), ("falsenodeids", 0), ("missing_value_tracks_true", 0)):
        out[f"nodes_{name}"].append(value)
    if is_leaf:
        for name, value in (("treeids", tree), ("nodeids", index), ("ids", target), ("weights", node["leaf_value"])):
            out[f"target_{name}"].append(value)
        return index
    at = len(out["nodes_nodeids"]) - 1
    out["nodes_truenodeids"][at] = _add(node["left_child"], tree, target, out)
    out["nodes_falsenodeids"][at] = _add(node["right_child"], tree, target, out)
    return index


def to_onnx(boosters: Boosters) -> onnx.ModelProto:
    names = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids", "missing_value_tracks_true")
    out: dict[str, list[Any]] = {f"nodes_{name}": [] for name in names}
    out.update({f"target_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")}, first=[])
    for target, booster in enumerate(boosters):
        for tree in booster.dump_model()["tree_info"]:
            out["first"].append(len(out["nodes_nodeids"]))
            _add(tree["tree_structure"], len(out["first"]) - 1, target, out)
    del out["first"]
    trees = helper.make_node("TreeEnsembleRegressor", ["numbers"], ["change"], domain="ai.onnx.ml", n_targets=len(boosters), **out)
    picks = np.zeros((len(NUMBERS), 3), np.float32)
    picks[ENDS, range(3)] = 1
    constants = [numpy_helper.from_array(picks, "picks")]
    constants += [numpy_helper.from_array(np.eye(3, dtype=np.float32)[:, i:i + 1], f"column{i}") for i in range(3)]
    nodes = [trees, helper.make_node("MatMul", ["numbers", "picks"], ["history"]), helper.make_node("Add", ["change", "history"], ["all"])]
    nodes += [helper.make_node("MatMul", ["all", f"column{i}"], [f"q{i}"]) for i in range(3)]
    nodes += [helper.make_node("Min", ["q0", "q1"], ["lower"]), helper.make_node("Max", ["q2", "q1"], ["upper"]),
              helper.make_node("Concat", ["lower", "q1", "upper"], ["log_s"], axis=1)]
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "durations", [tensor("numbers", TensorProto.FLOAT, [1, len(NUMBERS)])],
                              [tensor("log_s", TensorProto.FLOAT, [1, 3])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8)
    onnx.checker.check_model(model)
    return model
