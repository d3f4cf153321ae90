"""A predictor's ONNX file → the module that it was exported from.

PyTorch's exporter keeps the names of parameters, but for matrices that it transposes and constants that it folds: those are
found by the order in which the graph reads them. split.py holds what is made of it to the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Iterator

import numpy as np
import torch
from torch import Tensor

from predictor.exported import Exported
from predictor.forms import FUSION
from predictor.interval import Interval
from predictor.model import Predictor
from predictor.range import TrainingRange

TRANSPOSED = ("encoder.fusion.attention_in.weight", "encoder.fusion.attention_out.weight", "encoder.fusion.feed.0.weight",
              "encoder.fusion.feed.2.weight", "head.from_work.weight")
"""Of each member, in the order in which the graph multiplies by them."""

COST_CLASSES = 3
"""Of the roofline's flop_cost: so many have a cost of their own in NHWC; a fourth, elementwise work, has none."""


def _folded(constants: dict[str, np.ndarray]) -> Iterator[Tensor]:
    """Those without a name of their own, by number, which is the graph's order."""
    numbered = {int(name.rsplit("_", 1)[1]): name for name in constants if name.startswith("onnx::")}
    return (torch.tensor(constants[numbered[number]]) for number in sorted(numbered))


def _member_state(folded: Iterator[Tensor]) -> dict[str, Tensor]:
    state = {name: next(folded).T.contiguous() for name in TRANSPOSED}
    costs, nhwc = [], []
    for _ in range(COST_CLASSES):
        costs.append(next(folded))
        nhwc.append(next(folded))
    costs.append(next(folded))
    return state | {"roofline.flop_cost": torch.stack(costs), "roofline.flop_cost_nhwc": torch.stack(nhwc)}


def load(path: Path) -> Exported:
    import onnx

    graph = onnx.load(str(path)).graph
    constants = {c.name: onnx.numpy_helper.to_array(c).copy() for c in graph.initializer}
    member_count = 1 + max(int(name.split(".")[1]) for name in constants if name.startswith("members."))
    model = Exported([Predictor(FUSION) for _ in range(member_count)], Interval(), TrainingRange())
    folded, state = _folded(constants), {}
    for i in range(member_count):
        state |= {f"members.{i}.{name}": value for name, value in _member_state(folded).items()}
    largest, smallest = next(folded), next(folded)
    state["trained_on.log_batch"] = torch.stack([smallest, largest])
    state |= {name: torch.tensor(value) for name, value in constants.items() if not name.startswith("onnx::")}
    for name, value in model.state_dict().items():      # equal in all members, and so in the file once
        if name not in state:
            state[name] = state["members.0." + name.split(".", 2)[2]]
        if state[name].shape != value.shape:
            raise ValueError(f"{path}: {name} has the shape {tuple(state[name].shape)}, not {tuple(value.shape)}")
    model.load_state_dict(state)
    return model.eval()
