"""What of a configuration moves corrections, as numbers: layout, arithmetic and software. A correction is linear in them, so that
one evaluation of an operator prices every configuration.

Software is a staircase: a step for each version of PyTorch that was measured, taken by it and by all later ones. A version between
two steps is as the earlier one; one beyond the last is as the last.
"""

from __future__ import annotations

import torch
from torch import Tensor

VERSIONS = (110, 111, 112, 113, 200, 204, 209)
"""100 · major + minor. Measured are 1.10 to 1.13, 2.1, 2.4 and 2.9; what is older is measured once, on other cards (labels.py)."""
NEWEST = VERSIONS[-1]
NHWC_VERSIONS = (111, 112, 113, 200, 204)
"""Those of them that were measured in NHWC, too."""
PACKS_MORE = 112
"""Its cuDNN has other kernels for groups in NHWC (features.lacks_kernel)."""

NAMES = ("always", "nhwc", "not_half", "fp32", "half_throughout", "fused_attention", *(f"torch_{v}" for v in VERSIONS), "compiled",
         *(f"nhwc_torch_{v}" for v in NHWC_VERSIONS))
COUNT = len(NAMES)

OF_LAYOUT = tuple(name.startswith("nhwc") for name in NAMES)
OF_SOFTWARE = tuple("torch_" in name or name == "compiled" for name in NAMES)


def version(software: str) -> float:
    """ "pt112" → 112, "pt240" → 204: benchmarks leave the dots out, and 2.x's last digit is the patch level."""
    digits = software.removeprefix("pt")
    return float(f"{digits[0]}0{digits[1]}") if digits[0] == "2" or len(digits) < 3 else float(digits)


SIGN = tuple(1.0 if name in ("not_half", "fp32") else -1.0 if name == "half_throughout" else 0.0 for name in NAMES)
"""Of logarithms that have one: a step gets no shorter with slower arithmetic, and no longer where nothing is converted to and from
fp32."""


def bounded(x: Tensor) -> Tensor:
    """[…, COUNT]: nothing where a logarithm has the other sign."""
    sign = torch.tensor(SIGN)
    return x + sign.abs() * (sign * torch.relu(sign * x) - x)


def at_least(torch_version: Tensor, version: int) -> Tensor:
    """0 or 1"""
    return (torch_version - (version - 1)).clamp(0, 1)


def columns(is_nhwc: Tensor, is_fp32: Tensor, is_tf32: Tensor, is_half: Tensor, is_fused: Tensor, torch_version: Tensor,
            is_compiled: Tensor) -> list[Tensor]:
    """NAMES' columns, each in the shape of what is given. `is_half`: half precision throughout, without autocast."""
    is_since = {v: at_least(torch_version, v) for v in VERSIONS}
    return [torch.ones_like(is_nhwc), is_nhwc, is_fp32 + is_tf32, is_fp32, is_half, is_fused, *is_since.values(), is_compiled,
            *(is_nhwc * is_since[v] for v in NHWC_VERSIONS)]


def mattering(has_layout: Tensor, has_scores: Tensor) -> Tensor:
    """[P, COUNT], 0 or 1: which conditions reach an operator. `has_layout`, `has_scores`: [P, 1]. Layouts reach what works on maps, how
    attention is computed reaches attention alone, and what torch.compile fuses is what lies around it."""
    of_layout, of_attention, of_compiler = (torch.tensor(x, dtype=torch.float32) for x in (
        OF_LAYOUT, [name == "fused_attention" for name in NAMES], [name == "compiled" for name in NAMES]))
    return 1 - of_layout * (1 - has_layout) - of_attention * (1 - has_scores) - of_compiler * has_scores
