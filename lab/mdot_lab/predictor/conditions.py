"""The configuration's conditions that change corrections, as numbers: layout, precision and software. A correction is
linear in them, so one operator evaluation serves every configuration.

Software is a step function with a step at each measured PyTorch version, for this version and all later ones. A
version between two steps equals the earlier one, and a version after the last step equals the last.
"""

from __future__ import annotations

from typing import Callable

import torch
from torch import Tensor

from mdot_lab.predictor.features import Work

VERSIONS = (110, 111, 112, 113, 200, 204, 209)
"""100 · major + minor. Versions 1.10 to 1.13, 2.1, 2.4 and 2.9 were measured. Older ones were measured once, on other GPUs
(labels.py)."""
NEWEST = VERSIONS[-1]
NHWC_VERSIONS = (111, 112, 113, 200, 204)
"""The versions that were also measured in NHWC."""
SUMS_FAST = 111
"""The version with another kernel for the parameters' gradients of LayerNormalization (Roofline.SUMMING_CYCLES)."""
PACKS_MORE = 112
"""The version whose cuDNN has other NHWC kernels for grouped convolutions (features.group_features)."""
NEW_COMPILER = 200
"""The first version with torch.compile. From it on, matmuls keep their time, because extrapolated to other GPUs the effect on them
once exceeded the hardware."""

NEWEST_TRAINED = 112
"""The last version with measured training steps for image networks. Labels for later versions are inference, on GPUs
without other labels, so that a fit would mix version and GPU. Therefore later versions change inference alone. With
weights that applied them to training, ResNet-50 on an A100 took 127 instead of 108 ms; NVIDIA published 107.8 ms."""

NAMES = ("always", "nhwc", "not_half", "fp32", "half_throughout", "fused_attention", "inference",
         *(f"torch_{v}" for v in VERSIONS), "compiled", *(f"nhwc_torch_{v}" for v in NHWC_VERSIONS))
COUNT = len(NAMES)

OF_LAYOUT = tuple(name.startswith("nhwc") for name in NAMES)
OF_SOFTWARE = tuple("torch_" in name or name == "compiled" for name in NAMES)


def version(software: str) -> float:
    """Converts "pt112" to 112, "pt240" to 204 and "pt2110" to 211: benchmarks omit the dots, and the last digit of 2.x is the
    patch level."""
    digits = software.removeprefix("pt")
    if digits[0] == "2":
        return float(100 * 2 + int(digits[1:-1]))
    return float(f"{digits[0]}0{digits[1]}") if len(digits) < 3 else float(digits)


SIGN = tuple(1.0 if name in ("not_half", "fp32") else -1.0 if name == "half_throughout" else 0.0 for name in NAMES)
"""Signs of the logarithms with a known sign: a slower precision does not make a step shorter, and a step without conversions
to and from fp32 is at most as long as one with them."""


def bounded(x: Tensor) -> Tensor:
    """[…, COUNT]: replaces logarithms that have the wrong sign by zero."""
    sign = torch.tensor(SIGN)
    return x + sign.abs() * (sign * torch.relu(sign * x) - x)


def at_least(torch_version: Tensor, version: int) -> Tensor:
    """0 or 1"""
    return (torch_version - (version - 1)).clamp(0, 1)


def columns(is_nhwc: Tensor, is_fp32: Tensor, is_tf32: Tensor, is_half: Tensor, is_fused: Tensor, is_inference: Tensor,
            torch_version: Tensor, is_compiled: Tensor) -> list[Tensor]:
    """The columns in NAMES, each shaped as the arguments. `is_half`: half precision throughout, without autocast."""
    is_since = {v: at_least(torch_version, v) * (is_inference if v > NEWEST_TRAINED else 1) for v in VERSIONS}
    return [torch.ones_like(is_nhwc), is_nhwc, is_fp32 + is_tf32, is_fp32, is_half, is_fused, is_inference,
            *is_since.values(), is_compiled, *(is_nhwc * is_since[v] for v in NHWC_VERSIONS)]


def _named(is_so: Callable[[str], bool]) -> Tensor:
    return torch.tensor([float(is_so(name)) for name in NAMES])


def _version_of(name: str) -> int:
    """The version of a software condition; 0 for others."""
    return int(name.rsplit("_", 1)[1]) if "torch_" in name else 0


def mattering(work: Work) -> Tensor:
    """[P, COUNT], 0 or 1: the conditions that affect an operator. The layout affects operators on feature maps. The
    attention kernel affects attention only. torch.compile affects fusible operators: all but matmuls, convolutions,
    attention and cuDNN's recurrences. Versions from NEW_COMPILER on affect memory-bound operators (the same ones and
    depthwise convolutions); earlier ones also affect all convolutions, because each came with another cuDNN."""
    of_layout, of_attention = torch.tensor(OF_LAYOUT, dtype=torch.float32), _named(lambda name: name == "fused_attention")
    of_fusible, of_new = _named(lambda name: name == "compiled"), _named(lambda name: _version_of(name) >= NEW_COMPILER)
    of_old = _named(lambda name: 0 < _version_of(name) < NEW_COMPILER)
    kept_by_new, kept_by_old = work.is_matmul * (1 - work.is_depthwise), work.is_matmul - work.is_convolution
    return (1 - of_layout * (1 - work.has_layout)) * (1 - of_attention * (1 - work.has_scores)) * (
        1 - of_fusible * work.is_matmul - of_new * kept_by_new - of_old * kept_by_old)


def of_normalisations(conditions: Tensor, is_inference: Tensor, dim: int) -> Tensor:
    """BatchNormalization's conditions; `dim` is the dimension. The effect of torch.compile is known from inference,
    where the compiler folds it into other kernels. In training it needs the mean over all samples first, and reads
    the input twice, as in eager mode."""
    shape = [COUNT if i == dim else 1 for i in range(2)]
    return conditions * (1 - _named(lambda name: name == "compiled").reshape(shape) * (1 - is_inference))


def mattering_to_norms(has_layout: Tensor) -> Tensor:
    """[P, COUNT]: the same for the normalisation behind an operator, which is memory-bound."""
    of_layout, of_attention = torch.tensor(OF_LAYOUT, dtype=torch.float32), _named(lambda name: name == "fused_attention")
    return (1 - of_layout * (1 - has_layout)) * (1 - of_attention)
