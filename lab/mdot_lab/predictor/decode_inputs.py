"""Converts the inputs `configuration` and `gpu` to configuration numbers, side by side. The nearest possible values
replace impossible ones, so every input has a finite answer. This module is part of the exported graph."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from mdot_lab.predictor import conditions, tables
from mdot_lab.predictor.model import MatmulPrecision, Rates

SMALLEST_GPU_NUMBER = 0.01
UNLIMITED_WATTS = 1e5
"""Default power limit in watts."""
KNOWN_HOST = 1e3
"""Factor by which every given launch cost, in µs, becomes at least 1."""
FIRST_WITH_BF16 = 8.0
"""Compute capability of the first GPUs with bf16 multiplication. Earlier GPUs emulate it in fp32."""


class DecodedInputs(NamedTuple):
    """[C] each, except for the batch, which all configurations have in common: [1]"""

    batch: Tensor
    is_half: Tensor         # half precision throughout
    is_autocast: Tensor
    is_nhwc: Tensor
    is_adam: Tensor
    is_fused: Tensor
    is_compiled: Tensor
    is_inference: Tensor    # a forward pass in evaluation
    is_known_host: Tensor   # the cost of a launch is given
    launch_ms: Tensor       # this cost
    is_other_precision: Tensor      # a precision other than fp32, tf32 and fp16 or bf16 matmuls
    torch: Tensor           # version, as conditions.VERSIONS
    conditions: Tensor      # [conditions.COUNT, C]
    norm_conditions: Tensor     # the same for BatchNormalizations
    matmuls: MatmulPrecision    # matmuls except convolutions
    windows: MatmulPrecision     # convolutions
    rates: Rates
    sm_count: Tensor
    boost_mhz: Tensor
    gpu_specs: Tensor       # [MODEL_SPECS, C]

    @property
    def halves_bytes(self) -> Tensor:
        return self.is_half + self.is_autocast


def read(configuration: Tensor, gpu: Tensor) -> DecodedInputs:
    """`configuration`: [READS, C]; `gpu`: [columns, C]."""
    column = dict(zip(tables.READS, configuration.unbind(0), strict=True))
    flag = {name: value.clamp(0, 1) for name, value in column.items() if name.startswith("is_")}
    gpu = gpu.clamp(min=SMALLEST_GPU_NUMBER)
    spec = dict(zip(tables.gpu_columns(), gpu.unbind(0), strict=True))
    has_half = flag["is_amp"]
    is_half = flag["is_bf16"] * has_half
    is_bf16 = (flag["is_amp_bf16"] + flag["is_bf16"]).clamp(max=1)
    is_emulated = is_bf16 * ((FIRST_WITH_BF16 - spec["compute_capability"]) * 10).clamp(0, 1)
    # a difference would lose its digits
    half_tflops = (1 - is_emulated) * spec["fp16_tflops"] + is_emulated * spec["fp32_tflops"]
    as_tf32 = flag["is_pytorch"] * flag["is_fp32"]      # PyTorch's default: fp32, and tf32 in convolutions
    version = column["torch"] + (1 - column["torch"].clamp(0, 1)) * conditions.NEWEST
    is_fused = 1 - flag["is_eager"]
    under = torch.stack(conditions.columns(flag["is_nhwc"], flag["is_fp32"] * (1 - flag["is_pytorch"]),
                               flag["is_tf32"] + flag["is_fp32"] * flag["is_pytorch"], is_half, is_fused,
                               flag["is_inference"], version, flag["is_compiled"]))
    return DecodedInputs(
        batch=column["batch"][:1].clamp(min=1), is_half=is_half,
        is_autocast=has_half - is_half, is_nhwc=flag["is_nhwc"], is_adam=flag["is_adam"] + flag["is_adamw"], is_fused=is_fused,
        is_compiled=flag["is_compiled"], is_inference=flag["is_inference"],
        is_known_host=(column["host_launch_us"] * KNOWN_HOST).clamp(0, 1), launch_ms=column["host_launch_us"].clamp(min=0) / 1e3,
        is_other_precision=is_emulated, torch=version,
        conditions=under, norm_conditions=conditions.of_normalisations(under, flag["is_inference"], 0),
        matmuls=MatmulPrecision(flag["is_fp32"], flag["is_tf32"], has_half),
        windows=MatmulPrecision(flag["is_fp32"] - as_tf32, flag["is_tf32"] + as_tf32, has_half),
        rates=Rates(spec["fp32_tflops"], spec["tf32_tflops"], half_tflops, spec["memory_gbps"], spec["compute_capability"],
                    spec["watts"] + UNLIMITED_WATTS * (1 - spec["watts"]).clamp(0, 1)),
        sm_count=spec["sm_count"], boost_mhz=spec["boost_mhz"],
        gpu_specs=gpu[:len(tables.MODEL_SPECS)])
