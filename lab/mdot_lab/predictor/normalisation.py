"""Separates BatchNormalization from the operator before it.

The tokeniser counts it with the convolution before it, because exports for inference fold it into the convolution.
As a separate kernel, it is evaluated by its own shape. Therefore convolutions without normalisation are learned
from those with it, and separate normalisations from fused ones.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from mdot_lab.predictor import tables
from mdot_lab.predictor.operators import FP32_BYTES, Operators, column, log1p, odd, where_type

FLOPS = (5.0, 5.0, 3.0)
MAPS_READ, MAPS_WRITTEN = (2.0, 2.0, 2.0), (1.0, 1.0, 0.0)
"""For each element and phase, as the tokeniser counts them."""


class Normalisation(NamedTuple):
    """[P, 1] each; zeros if the operator has no normalisation."""

    follows: Tensor     # 0 or 1: follows the operator, rather than being the operator
    channels: Tensor
    elements: Tensor    # elements of one sample


def split(operators: Operators) -> tuple[Operators, Normalisation]:
    """Operators without their normalisation, and the normalisation."""
    setting, load = operators.setting, operators.load
    follows = column(setting, "normalised").clamp(max=1)
    alone = where_type(operators.type, ("BatchNormalization",)) * (1 - follows)
    channels = column(setting, "channels_out") * (follows + alone)
    written = load[:, tables.LOADS.index("bytes_written"):][:, :1]      # forward
    elements = follows * channels * column(setting, "size_out") + alone * written / FP32_BYTES
    taken = [elements * amount for flops, read, write in zip(FLOPS, MAPS_READ, MAPS_WRITTEN)
             for amount in (flops, FP32_BYTES * read, FP32_BYTES * write)]
    per_sample = (load[:, :tables.PHASE_LOAD_COUNT] - torch.cat(taken, dim=1)).clamp(min=0)
    at = tables.settings().index("normalised")
    return (Operators(operators.type, torch.cat([setting[:, :at], 0 * follows, setting[:, at + 1:]], dim=1),
                      torch.cat([per_sample, load[:, tables.PHASE_LOAD_COUNT:]], dim=1)),
            Normalisation(follows, channels, elements))


MOVED = tuple(FP32_BYTES * maps for maps in (MAPS_READ[0] + MAPS_WRITTEN[0], sum(MAPS_READ[1:]) + sum(MAPS_WRITTEN[1:])))
"""Bytes for each element, forward and backward, fp32."""


def moved(norm: Normalisation, batch: Tensor) -> Tensor:
    """[P, 2]: bytes forward and backward, fp32."""
    return torch.cat([norm.elements * batch * of_element for of_element in MOVED], dim=1)


CHANNELS_OF_TILE = 64
"""Channels of a block of the kernels in NHWC, one line of the cache in half precision. Fewer cost as much: with 16 channels, four
times the traffic."""
MOST_CHANNELS = 1e6
"""More channels than any BatchNormalization has."""


def tiles(per_plane: Tensor) -> Tensor:
    """The factor of whole tiles on the traffic in NHWC. `per_plane`: inverse channels; 0 without feature maps."""
    channels = 1 / per_plane.clamp(min=1 / MOST_CHANNELS)
    return torch.ceil(channels / CHANNELS_OF_TILE - 1e-3) * CHANNELS_OF_TILE / channels


FEATURES = 3


def features(norm: Normalisation) -> Tensor:
    """[P, FEATURES]: channels, elements per channel, and whether 8 divides the channels (0 if it does)."""
    size = norm.elements / norm.channels.clamp(min=1)
    return torch.cat([log1p(norm.channels), log1p(size), odd(norm.channels, 8)], dim=1)
