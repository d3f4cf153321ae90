"""The predictor inputs for operators, and functions that read them.

This module is part of the exported graph. Therefore it uses only operators in both ONNX and mdot, and takes
logarithms early because FLOPs and bytes reach 1e15. Shapes: P operators.
"""

from __future__ import annotations

from typing import Iterable, NamedTuple

import torch
from torch import Tensor

from mdot_lab.predictor import tables

FP32_BYTES, HALF_BYTES = 4.0, 2.0


class Operators(NamedTuple):
    """One row for each operator."""

    type: Tensor        # i64 [P]
    setting: Tensor     # [P, settings]
    load: Tensor        # [P, LOAD_COUNT]


def column(setting: Tensor, name: str) -> Tensor:
    i = tables.settings().index(name)
    return setting[:, i:i + 1]


def where_type(types: Tensor, names: Iterable[str]) -> Tensor:
    """[P, 1]: 1 if the type is one of `names`."""
    table = torch.tensor([[float(name in names)] for name in tables.operator_types()])
    return table[types]


def log1p(x: Tensor) -> Tensor:
    return torch.log(x + 1)


def up_to(x: Tensor, multiple: int) -> Tensor:
    """The ratio of x rounded up to x."""
    return torch.ceil(x / multiple) * multiple / x


def odd(x: Tensor, multiple: int) -> Tensor:
    """0 if `multiple` divides x, 1 otherwise."""
    return (torch.ceil(x / multiple) * multiple - x).clamp(0, 1)
