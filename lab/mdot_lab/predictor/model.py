"""The predictor: a roofline prior for each operator, corrected by a small Transformer that reads the operator, bounded by the
hardware, and summed.

    step = smooth maximum of  Σ count · Σ parts (max(prior · exp(correction), bound) + tail) + optimizer   (GPU time)
                              Σ count · launches · cost                                                    (host time)

The correction depends on the operator alone. It is linear in the conditions that conditions.py derives from the configuration:
layout, precision, software. The batch acts through the prior, the bound and the tail, the fixed time of a kernel. Therefore a
step grows with the batch, and the time of a sample falls. Operators interact only in the sum. Position and attention over the
operator sequence are experiments (context.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from mdot_lab.operator_benchmarks.gpu_rates import PROCESS, VOLTAGE, at_most, process_nm
from mdot_lab.predictor import conditions, features, normalisation, tables
from mdot_lab.predictor.context import Context
from mdot_lab.predictor.features import Work
from mdot_lab.predictor.operators import FP32_BYTES, HALF_BYTES, Operators


@dataclass(frozen=True)
class Options:
    """Hyperparameters, and the parts that an ablation leaves out."""

    width: int = 48
    heads: int = 2
    hidden: int = 64
    norm_hidden: int = 16
    clip: float = 2.0           # largest absolute correction, as a logarithm
    type_dropout: float = 0.1
    use_padding: bool = True
    use_correction: bool = True
    use_fusion: bool = True     # False: one token, a perceptron over all concatenated inputs
    use_position: bool = False
    use_encoder: bool = False   # attention over the sequence, after position

    @property
    def reads_places(self) -> bool:
        return self.use_position or self.use_encoder


class Configurations(NamedTuple):
    """The inputs of R rows apart from the operator. Each is [R, 1]; the exported graph has one row."""

    batch: Tensor
    is_fp32: Tensor
    is_tf32: Tensor
    is_amp: Tensor          # half-precision matmuls, with autocast or throughout
    is_half: Tensor         # half precision throughout
    is_default: Tensor      # PyTorch's default: fp32, with tf32 in convolutions
    is_nhwc: Tensor
    is_adam: Tensor         # Adam or AdamW: one input for both flags
    is_fused: Tensor        # attention in a kernel that keeps scores on the chip
    is_compiled: Tensor
    is_inference: Tensor    # a forward pass in evaluation
    torch: Tensor           # version, as in conditions.VERSIONS
    gpu: Tensor             # [R, columns]

    def gpu_column(self, name: str) -> Tensor:
        i = tables.gpu_columns().index(name)
        return self.gpu[:, i:i + 1]

    def conditions(self) -> Tensor:
        """[R, conditions.COUNT]"""
        return torch.cat(conditions.columns(self.is_nhwc, self.is_fp32, self.is_tf32, self.is_half, self.is_fused,
                                            self.is_inference, self.torch, self.is_compiled), dim=1)


PHASES = len(tables.PHASES)
PARTS = PHASES + 2
"""Separately timed parts: phases, and normalisation forward and backward."""


def with_software(of_versions: Tensor, torch_version: Tensor) -> Tensor:
    """Selects the column of the software version: [P, 2] → [P, 1]."""
    before, since = of_versions.split(1, dim=1)
    return before + conditions.at_least(torch_version, conditions.PACKS_MORE) * (since - before)


class MatmulPrecision(NamedTuple):
    """Precision of matmuls, one-hot: 0 or 1 each."""

    fp32: Tensor
    tf32: Tensor
    half: Tensor


class Rates(NamedTuple):
    """Rates of a GPU."""

    vector_tflops: Tensor
    tf32_tflops: Tensor
    half_tflops: Tensor
    gbps: Tensor
    compute_capability: Tensor
    watts: Tensor


FIRST_WITH_HALF, FIRST_WITH_TF32 = 7.0, 8.0
"""Compute capabilities from which on the tensor cores have a type. The ratio of two rates would let a higher fp32 rate take them
away."""


class Roofline(nn.Module):
    """Milliseconds of each part from FLOPs and bytes, with fitted efficiencies. The time is the larger of compute and
    memory time plus a fraction of the smaller one, because kernels overlap computation and memory traffic
    imperfectly.

    Dense matmuls run on tensor cores, or on vector units if the precision or the GPU lacks them. Convolutions with
    one channel per group always run on vector units. Other grouped convolutions take the faster way, except in NHWC.
    There, cuDNN 8 has kernels for some groups only, and otherwise falls back to a kernel that is mostly idle where
    groups are narrow. A fitted share of the time is that of the fallback kernel (features.group_features).

    No operator takes less time than the bound: the FLOPs at the sustained rate of the fastest unit in reach, and
    compulsory bytes at the full memory bandwidth."""

    DENSE, GROUPED, DEPTHWISE, ELEMENTWISE = range(4)

    SERIAL_MS = 0.03
    """Milliseconds of a step of a recurrence in addition to computation and memory traffic: a matmul and a pointwise
    kernel, each of which waits for the previous one. LSTMs of 256 units and 16 samples take 30 µs a step on V100, 27
    in half precision, 29 on P100 and 25 on GTX 1080 Ti, according to baidu-research/DeepBench, results/train."""

    WIDENED = 4.0
    """Bytes moved by autocast for one half-precision byte in operators kept in fp32: twice the width, and as much again
    for the conversion."""

    WINOGRAD_SAVES = 1 - 1 / 2.25
    """Fraction of multiplications saved by Winograd with 2x2 result tiles."""
    NORM_COMPULSORY = 0.6
    """Fraction of a BatchNormalization's bytes moved when the input is read once."""
    CAST_BYTES = 6.0
    """Bytes that autocast moves for each parameter: it reads fp32 and writes half precision, and the reverse for gradients."""
    SUMMING_CYCLES = 42.0
    """Cycles for a row of LayerNormalization before conditions.SUMS_FAST, where one thread block adds up 32 columns of the
    gradients of scale and shift, row after row, however wide a row is: 25 ns on an RTX 3090 for rows up to 128, 384 and 768 wide,
    by non-negative least squares on 589 networks in NCHW (22 to 24 in NHWC), and 24 to 27 without any family."""
    SHARE_AT_FIRST = ((-3.0, 0.05, 3.0, 3.0, 3.0, 1.0, 1.0, 1.5, 0.05, 0.05), (-3.0, 0.05, 2.0, 1.0, 3.0, 1.0, 1.0, 0.05, 3.0, 3.0))
    """Logit and slopes of the share at first, in the order of features.group_features, before PACKS_MORE and from it on: 8
    channels in 32 groups have a kernel, 64 channels or 2 groups do not. Slopes are positive: more channels, fewer groups, changed
    channels and dilation have a kernel less often. Before, wider groups have one if there are more of them."""

    def __init__(self) -> None:
        super().__init__()
        phases = len(tables.PHASES)
        start = torch.tensor([0.3, 1.0, 1.0, 1.0])[:, None].repeat(1, phases)
        self.flop_cost = nn.Parameter(start)                                # logarithms of 1 / efficiency, by class and phase
        self.flop_cost_nhwc = nn.Parameter(torch.zeros(3, phases))          # added in NHWC, except for elementwise work
        self.vector_cost = nn.Parameter(torch.full((phases,), 0.3))         # the same for dense matmuls on vector units
        self.winograd_cost = nn.Parameter(torch.full((phases,), -0.3))      # the reduction by Winograd's algorithm
        self.byte_cost = nn.Parameter(torch.full((phases,), 0.2))
        self.depthwise_byte_cost = nn.Parameter(torch.full((phases,), 0.5))     # added for depthwise kernels
        self.depthwise_byte_cost_nhwc = nn.Parameter(torch.zeros(phases))
        self.score_cost = nn.Parameter(torch.tensor([4.0, 6.0]).log())      # passes over an attention's scores
        self.score_autocast = nn.Parameter(torch.tensor(0.3))              # added in autocast, which keeps the softmax in fp32
        self.share = nn.Parameter(self._first_share())                      # before PACKS_MORE, and from it on
        self.idle_power = nn.Parameter(torch.ones(()))                      # how much of features.idle the fallback takes
        self.norm_cost = nn.Parameter(torch.zeros(2))
        self.norm_rate = nn.Parameter(torch.tensor([1.6, 1.6]).log())       # elements of a block in a cycle
        self.norm_blocks = nn.Parameter(torch.tensor(1.5).log())            # blocks that a multiprocessor runs at full speed
        self.inference_cost = nn.Parameter(torch.zeros(()))                 # of a forward pass in evaluation
        self.overlap = nn.Parameter(torch.tensor(-2.0))                     # a logit
        self.tflops_per_gbps = nn.Parameter(torch.tensor(0.5))              # a logarithm: compute rate that memory can supply
        # logarithms at 12 nm: fp32, TF32, half precision
        self.tflops_per_watt = nn.Parameter(torch.tensor([-2.6, -1.2, 0.2]))

    def _first_share(self) -> Tensor:
        first = torch.tensor(self.SHARE_AT_FIRST)
        return torch.cat([first[:, :1], torch.log(torch.expm1(first[:, 1:]))], dim=1)

    def sustained(self, tflops: Tensor, per_watt: Tensor, rates: Rates) -> Tensor:
        """The sustained rate for a data sheet's rate: the clock falls if computing at the full rate exceeds the power limit."""
        carried = per_watt + PROCESS * torch.log(12 / process_nm(rates.compute_capability)) + torch.log(rates.watts / tflops)
        return tflops * at_most(torch.exp((VOLTAGE * carried).clamp(-6, 6)), torch.ones_like(carried))

    def peak_ms(self, tflops: Tensor, per_watt: Tensor, rates: Rates) -> Tensor:
        """Milliseconds per FLOP at the compute units' sustained rate."""
        return 1 / (self.sustained(tflops, per_watt, rates) * 1e9)

    def units(self, matmul_precision: MatmulPrecision, rates: Rates) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Milliseconds per FLOP in a dense matmul on vector units and on tensor cores, and two bounds: one that
        Winograd may undercut, and one that nothing may. Idle units have 0. The slower unit decides. fp32 uses vector
        units, and takes at least the time in TF32. Caches, whose rate grows with memory bandwidth, add time."""
        has_half, has_tf32 = ((2 * (rates.compute_capability - first) + 1).clamp(0, 1) for first in (FIRST_WITH_HALF, FIRST_WITH_TF32))
        all_tflops = (rates.vector_tflops, rates.tf32_tflops, rates.half_tflops)
        peaks = [self.peak_ms(*of_unit, rates) for of_unit in zip(all_tflops, self.tflops_per_watt)]
        supply = 1 / (rates.gbps * 1e9 * torch.exp(self.tflops_per_gbps))
        on_vectors, tf32, half = (peak + supply for peak in peaks)
        tf32, half = torch.maximum(has_tf32 * tf32, has_half * half), has_half * half
        lacks_half, lacks_tf32 = 1 - has_half, 1 - torch.minimum(has_half, has_tf32)
        of_vectors = matmul_precision.fp32 + matmul_precision.tf32 * lacks_tf32 + matmul_precision.half * lacks_half
        has_cores = torch.stack([1 - lacks_tf32, 1 - lacks_half])
        bound = (of_vectors * peaks[0] + matmul_precision.tf32 * has_cores[0] * torch.minimum(peaks[0], peaks[1])
                 + matmul_precision.half * has_cores[1] * torch.minimum(peaks[0], peaks[2]))
        least = matmul_precision.fp32 * has_cores[0] * torch.minimum(peaks[0], peaks[1])
        return (on_vectors * of_vectors, (matmul_precision.fp32 + matmul_precision.tf32) * tf32 + matmul_precision.half * half,
                bound, least)

    def shares(self, grouping: Tensor, lacks_kernel: Tensor) -> Tensor:
        """[P, 2], 0 to 1: the part of a grouped convolution without a dedicated NHWC kernel, before PACKS_MORE and from
        it on."""
        signs = torch.tensor([1.0] * len(features.GROUP_WIDTHS) + [-1.0, -1.0, 1.0, 1.0])
        weight = torch.cat([self.share[:, :1], nn.functional.softplus(self.share[:, 1:]) * signs], dim=1)
        return torch.sigmoid(grouping @ weight.T) * grouping[:, :1] * (1 - lacks_kernel) + lacks_kernel

    def implausibility(self) -> Tensor:
        """How far the shares are from the start, so that several networks rather than one change a width; and inference
        from the forward pass of a step."""
        return ((self.share - self._first_share()) ** 2).sum() + (self.idle_power - 1) ** 2 + self.inference_cost**2

    def score_passes(self, is_autocast: Tensor) -> list[Tensor]:
        """Passes over the scores of decomposed attention in half precision or fp32, forward and backward. Autocast widens the
        scores for the softmax and narrows the result."""
        wider = 1 + is_autocast * (torch.exp(self.score_autocast).clamp(1, self.WIDENED) - 1)
        return [torch.exp(cost) * wider for cost in self.score_cost]

    def _cost(self, kind: int, is_nhwc: Tensor) -> Tensor:
        return torch.exp(self.flop_cost[kind] + self.flop_cost_nhwc[kind] * is_nhwc)

    def _dense(self, work: Work, c: Configurations) -> tuple[Tensor, Tensor]:
        """Milliseconds per phase as a dense matmul, and the bound per FLOP."""
        as_tf32, in_nhwc = c.is_default * work.is_convolution, c.is_nhwc * work.has_layout
        rates = Rates(*(c.gpu_column(name) for name in ("fp32_tflops", "tf32_tflops", "fp16_tflops", "memory_gbps",
                                                        "compute_capability", "watts")))
        vector_ms, tensor_ms, bound, least = self.units(MatmulPrecision(c.is_fp32 - as_tf32, c.is_tf32 + as_tf32, c.is_amp), rates)
        layout = self.flop_cost_nhwc[self.DENSE] * in_nhwc
        on_vectors = vector_ms * torch.exp(self.vector_cost + self.winograd_cost * work.is_winograd + layout)
        dense = work.padded * torch.maximum(on_vectors, tensor_ms * torch.exp(self.flop_cost[self.DENSE] + layout))
        is_vector = (vector_ms > 0).to(bound.dtype)
        return dense, torch.maximum(bound * (1 - is_vector * work.is_winograd * self.WINOGRAD_SAVES), least)

    def _flops_ms(self, work: Work, c: Configurations) -> tuple[Tensor, Tensor]:
        """Milliseconds per phase, and the bound."""
        (dense, bound), of_vectors = self._dense(work, c), 1 / (c.gpu_column("fp32_tflops") * 1e9)
        on_vectors, in_nhwc = work.flops * of_vectors, c.is_nhwc * work.has_layout
        share = in_nhwc * with_software(self.shares(work.grouping, work.lacks_kernel), c.torch)
        fallback = on_vectors * work.idle**self.idle_power * self._cost(self.GROUPED, torch.ones_like(share))
        grouped = torch.minimum(dense, on_vectors * self._cost(self.GROUPED, torch.zeros_like(share)))
        depthwise = on_vectors * self._cost(self.DEPTHWISE, in_nhwc)
        apart = grouped + work.is_depthwise * (depthwise - grouped)
        apart = apart + share * (fallback - apart)
        matmul = dense + work.is_grouped * (apart - dense)
        others = on_vectors * torch.exp(self.flop_cost[self.ELEMENTWISE])
        bound = of_vectors + work.is_matmul * (bound - of_vectors)
        return others + work.is_matmul * (matmul - others), work.flops * bound

    def _bytes_ms(self, work: Work, ms_per_byte: Tensor, c: Configurations) -> Tensor:
        depthwise = self.depthwise_byte_cost + self.depthwise_byte_cost_nhwc * c.is_nhwc * work.has_layout
        is_autocast = c.is_amp * (1 - c.is_half)
        widened = 1 + work.is_kept_in_fp32 * is_autocast * (self.WIDENED - 1)
        moved = work.bytes * widened * torch.exp(self.byte_cost + work.is_depthwise * depthwise)
        scores = [work.scores * (1 - c.is_fused) * passes for passes in self.score_passes(is_autocast)]
        return (moved + torch.cat([*scores, torch.zeros_like(work.scores)], dim=1)) * ms_per_byte

    def cast_ms(self, work: Work, c: Configurations) -> Tensor:
        """[P, 1]: autocast's time to convert matmul weights, equal to that for gradients. It is added behind correction
        and bound. torch.compile converts in neighbouring kernels."""
        is_eager_autocast = c.is_amp * (1 - c.is_half) * (1 - c.is_compiled)
        return work.cast * is_eager_autocast * self.CAST_BYTES / (c.gpu_column("memory_gbps") * 1e6)

    def per_block(self, per_plane: Tensor, sm_count: Tensor) -> Tensor:
        """Elements per thread block in an NCHW BatchNormalization, as a fraction. One block reads one channel, so that
        few channels leave multiprocessors idle."""
        is_plane = (per_plane * normalisation.MOST_CHANNELS).clamp(0, 1)
        return torch.maximum(per_plane, is_plane / (sm_count * torch.exp(self.norm_blocks)))

    def summing_ms(self, rows: Tensor, torch_version: Tensor, boost_mhz: Tensor) -> Tensor:
        """Time of the weight gradient behind correction and bound, for Work.summed_rows."""
        return rows * ((1 - conditions.at_least(torch_version, conditions.SUMS_FAST)) * self.SUMMING_CYCLES / (boost_mhz * 1e3))

    def waiting(self, work: Work) -> Tensor:
        """[P, PARTS]: wait between recurrence steps, without a correction."""
        return self.SERIAL_MS * torch.cat([work.serial, torch.zeros_like(work.norm_bytes)], dim=1)

    def forward(self, work: Work, c: Configurations) -> tuple[Tensor, Tensor]:
        """[P, PARTS] twice, the prior and the bound; `c` has one row for each operator, or a single row."""
        bytes_per_fp32 = c.is_amp * (HALF_BYTES / FP32_BYTES - 1) + 1
        ms_per_byte = bytes_per_fp32 / (c.gpu_column("memory_gbps") * 1e6)
        (flops_ms, flops_bound), bytes_ms = self._flops_ms(work, c), self._bytes_ms(work, ms_per_byte, c)
        phases = torch.maximum(flops_ms, bytes_ms) + torch.sigmoid(self.overlap) * torch.minimum(flops_ms, bytes_ms)
        in_planes = (1 - c.is_nhwc) * (1 - c.is_inference) * (1 - c.is_compiled)
        tiles = 1 + c.is_nhwc * (1 - c.is_inference) * (normalisation.tiles(work.norm_per_plane) - 1)
        of_block = in_planes * torch.exp(-self.norm_rate) / (c.gpu_column("boost_mhz") * 1e3 * FP32_BYTES)
        phases = phases + c.is_amp * c.is_nhwc * work.converted * ms_per_byte
        norm_ms = work.norm_bytes * torch.maximum(
            torch.exp(self.norm_cost) * ms_per_byte * tiles,
            self.per_block(work.norm_per_plane, c.gpu_column("sm_count")) * of_block)
        # torch.compile fuses all but matmuls, and BatchNormalizations in training, into kernels whose bytes are unknown
        alone = 1 - c.is_compiled * (1 - work.is_matmul)
        bound = torch.maximum(flops_bound, work.compulsory * alone * ms_per_byte)
        norm_bound = work.norm_bytes * self.NORM_COMPULSORY * (1 - c.is_compiled * c.is_inference) * ms_per_byte
        prior = torch.cat([phases, norm_ms], dim=1) * torch.exp(c.is_inference * self.inference_cost)
        return prior, torch.cat([bound, norm_bound], dim=1)


class Scale(nn.Module):
    """Centres and scales features with the mean and the deviation of the training set."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("inverse_deviation", torch.ones(width))

    def fit(self, x: Tensor) -> None:
        deviation = x.std(dim=0)
        self.mean.copy_(x.mean(dim=0))
        self.inverse_deviation.copy_(torch.where(deviation > 1e-3, 1 / deviation.clamp(min=1e-3), torch.zeros(())))

    def forward(self, x: Tensor) -> Tensor:
        return ((x - self.mean) * self.inverse_deviation).clamp(-4, 4)


class Fusion(nn.Module):
    """Type, attributes, and FLOPs and bytes of an operator as three tokens that attend to each other and are then merged into
    one."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.width, self.heads = width, heads
        self.norm_attention, self.norm_feed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention_in, self.attention_out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(approximate="tanh"), nn.Linear(2 * width, width))

    def forward(self, tokens: Tensor) -> Tensor:
        """[P, 3, width] → [P, width]"""
        count, size = tokens.shape[1], self.width // self.heads
        parts = self.attention_in(self.norm_attention(tokens)).reshape(-1, count, 3, self.heads, size)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        weight = torch.softmax(query @ key.transpose(-1, -2) / size**0.5, dim=-1)
        seen = (weight @ value).transpose(1, 2).reshape(-1, count, self.width)
        tokens = tokens + self.attention_out(seen)
        first, gelu, second = self.feed
        hidden = gelu(first(self.norm_feed(tokens)))
        return tokens.mean(dim=1) + second(hidden.mean(dim=1))      # averaging first saves two thirds of the last matmul


class Encoder(nn.Module):
    """Encodes an operator from all inputs except the configuration."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        width = options.width
        sample = Operators(torch.zeros(1, dtype=torch.int64), torch.ones(1, len(tables.settings())),
                           torch.ones(1, tables.LOAD_COUNT))
        configuration = features.configuration_features(sample.setting).shape[1]
        load = features.load_features(sample.load).shape[1]
        self.type_embedding = nn.Embedding(len(tables.operator_types()), width)
        nn.init.normal_(self.type_embedding.weight, std=0.3)
        self.scale_configuration, self.scale_load = Scale(configuration), Scale(load)
        self.configuration_token, self.load_token = nn.Linear(configuration, width), nn.Linear(load, width)
        self.fusion = Fusion(width, options.heads) if options.use_fusion else None
        self.merge = None if options.use_fusion else nn.Linear(3 * width, width)

    def fit_scales(self, operators: Operators) -> None:
        self.scale_configuration.fit(features.configuration_features(operators.setting))
        self.scale_load.fit(features.load_features(operators.load))

    def forward(self, operators: Operators) -> Tensor:
        tokens = [self.type_embedding(operators.type),
                  self.configuration_token(self.scale_configuration(features.configuration_features(operators.setting))),
                  self.load_token(self.scale_load(features.load_features(operators.load)))]
        if self.fusion is not None:
            return self.fusion(torch.stack(tokens, dim=1))
        return self.merge(torch.cat(tokens, dim=1))


SPECIFIC = 0.3
"""Scale for the phase-specific part of software corrections. Software mostly changes all phases together; it is small
because inference was measured on more software versions than training."""


class Correction(nn.Module):
    """The logarithm of the prior's error, for each condition. Starts at zero."""

    FIRST_WITH_SIGN = 0.05

    def __init__(self, width: int, parts: int, clip: float) -> None:
        super().__init__()
        self.clip, self.parts = clip, parts
        self.out = nn.Linear(width, conditions.COUNT * parts)
        self.common = nn.Linear(width, conditions.COUNT)
        for layer in (self.out, self.common):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
        with torch.no_grad():       # conditions with a sign, which could not grow from zero
            self.out.bias.view(conditions.COUNT, parts).copy_(self.FIRST_WITH_SIGN * torch.tensor(conditions.SIGN)[:, None])
        is_software = torch.tensor(conditions.OF_SOFTWARE, dtype=torch.float32)
        self.register_buffer("is_common", is_software, persistent=False)
        self.register_buffer("specific", 1 - (1 - SPECIFIC) * is_software, persistent=False)

    def merged(self) -> tuple[Tensor, Tensor]:
        """Weight [conditions, parts, width] and bias [conditions, parts] of both layers combined."""
        weight = self.out.weight.reshape(conditions.COUNT, self.parts, -1) * self.specific[:, None, None]
        bias = self.out.bias.reshape(conditions.COUNT, self.parts) * self.specific[:, None]
        return (weight + (self.common.weight * self.is_common[:, None])[:, None],
                bias + (self.common.bias * self.is_common)[:, None])

    def forward(self, x: Tensor) -> Tensor:
        """[P, width] → [P, conditions * parts]"""
        weight, bias = self.merged()
        x = nn.functional.linear(x, weight.flatten(0, 1), bias.flatten())
        of_parts = x.reshape(-1, conditions.COUNT, self.parts).transpose(1, 2)
        return conditions.bounded(of_parts).transpose(1, 2).flatten(1)

    def under(self, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """[P, parts] twice: forward's result under given conditions, and the layout-dependent part. `weight`: [P,
        conditions]"""
        each = x.reshape(-1, conditions.COUNT, self.parts) * weight[:, :, None]
        of_layout = sum(each[:, i] for i, is_layout in enumerate(conditions.OF_LAYOUT) if is_layout)
        return each.sum(dim=1), of_layout


def _gelu(x: Tensor) -> Tensor:
    return nn.functional.gelu(x, approximate="tanh")


class Head(nn.Module):
    """Computes each phase's correction from the encoding, and the fixed kernel time."""

    TAIL_MS = 0.003
    MOST_TAIL_MS = 0.05

    def __init__(self, options: Options) -> None:
        super().__init__()
        self.first = nn.Linear(options.width, options.hidden)
        self.middle = nn.Linear(options.hidden, options.hidden)
        self.correction = Correction(options.hidden, PHASES, options.clip)
        self.tail = nn.Linear(options.hidden, PHASES)
        nn.init.zeros_(self.tail.weight)
        nn.init.constant_(self.tail.bias, math.log(self.TAIL_MS / (self.MOST_TAIL_MS - self.TAIL_MS)))

    def forward(self, encoded: Tensor, strength: Tensor | float = 1.0) -> tuple[Tensor, Tensor]:
        """[P, conditions * PHASES], and [P, PHASES] milliseconds between 0 and MOST_TAIL_MS. `strength`: from
        familiarity.Familiarity, a factor on what the operator adds to the corrections of all operators."""
        x = _gelu(self.middle(_gelu(self.first(encoded))))
        return self.correction(x * strength), self.MOST_TAIL_MS * torch.sigmoid(self.tail(x))


class NormHead(nn.Module):
    """Computes the normalisation's correction from the shape alone."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        self.scale = Scale(normalisation.FEATURES)
        self.middle = nn.Linear(normalisation.FEATURES, options.norm_hidden)
        self.correction = Correction(options.norm_hidden, PARTS - PHASES, options.clip)

    def forward(self, norm: Tensor, strength: Tensor | float = 1.0) -> Tensor:
        return self.correction(_gelu(self.middle(self.scale(norm))) * strength)


SMOOTHNESS = 4.0


def smooth_maximum(*times: Tensor) -> Tensor:
    """(Σ t^4)^(1/4), in a form that does not overflow and has a finite slope at zero."""
    largest = torch.stack(times).amax(dim=0) + 1e-6
    return largest * sum((t / largest) ** SMOOTHNESS for t in times) ** (1 / SMOOTHNESS)


class Step(nn.Module):
    """Computes a training step from operator phases."""

    SGD_BYTES, ADAM_BYTES = 20.0, 28.0
    """Bytes for each parameter in an fp32 optimizer step: gradient, parameter and state read, parameter and state written."""
    MOST_PASSES = 2.2
    """Upper bound of the factor on the optimizer's traffic if it is not a fused kernel. For example, PyTorch's SGD with
    momentum is three operations on lists of tensors, which move 36 bytes, and gradients are cleared. The bound is needed
    because the fit otherwise attributed other costs that grow with the parameters to the optimizer: 107 bytes."""
    LAUNCHES_AT_FIRST_MS = 0.05
    """Initial host time of a launch, which is a phase of an operator in a framework. The batches of timm's labels hide this time;
    torchvision's labels at batch 12 show it. It is one time for every host, because hosts of new GPUs are no faster where they
    were measured: 45 to 80 µs with A100 (three publishers), 45 with H100, 60 with GH200 and 38 to 47 with H200."""
    INFERENCE_LAUNCHES = 0.6
    """An evaluation launch (no gradients recorded) as a part of a training launch: 30 of 47 to 50 µs on an H200 host
    (weights/data/h200.jsonl.gz), the only one where inference waits for the host."""

    def __init__(self) -> None:
        super().__init__()
        self.launch_cost = nn.Parameter(torch.tensor(self.LAUNCHES_AT_FIRST_MS).log())
        self.optimizer_cost = nn.Parameter(torch.zeros(()))

    def implausibility(self) -> Tensor:
        """How far the launch cost is from the start, so that a fit whose networks hide it keeps it."""
        return (self.launch_cost - math.log(self.LAUNCHES_AT_FIRST_MS)) ** 2

    def optimizer_passes(self) -> Tensor:
        return torch.exp(self.optimizer_cost).clamp(1, self.MOST_PASSES)

    def times(self, operators_ms: Tensor, launches: Tensor, parameters: Tensor, c: Configurations,
              host: Tensor | float = 0.0) -> tuple[Tensor, Tensor]:
        """GPU time and host time, [R, 1] each. `host`: the difference in launch cost on another host, as a logarithm."""
        gbps = c.gpu_column("memory_gbps")
        traffic = self.SGD_BYTES + (self.ADAM_BYTES - self.SGD_BYTES) * c.is_adam
        optimizer_ms = parameters * traffic / (gbps * 1e6) * self.optimizer_passes()
        launch_ms = self.launch_ms(c.is_inference) * torch.exp(torch.as_tensor(host))
        return operators_ms + optimizer_ms, launches * launch_ms

    def launch_ms(self, is_inference: Tensor) -> Tensor:
        """Milliseconds of a launch on an unknown host."""
        return torch.exp(self.launch_cost) * (1 + is_inference * (self.INFERENCE_LAUNCHES - 1))


class Predictor(nn.Module):
    def __init__(self, options: Options) -> None:
        super().__init__()
        self.options = options
        self.roofline = Roofline()
        self.encoder = Encoder(options)
        self.context = Context(options.width, options.heads, options.use_encoder) if options.reads_places else None
        self.head = Head(options)
        self.norm_head = NormHead(options)
        self.step = Step()
        self.register_buffer("row_of_type", torch.arange(len(tables.operator_types())))
        """Types in too few networks use a related type's row, or the unknown row."""

    def encode(self, operators: Operators) -> Tensor:
        """[P, width]"""
        return self.encoder(operators._replace(type=self.row_of_type[operators.type]))

    def correction(self, of_phases: Tensor, of_norms: Tensor, weight: Tensor, norm_weight: Tensor) -> tuple[Tensor, Tensor]:
        """[P, PARTS] twice from the head outputs: correction logarithms, and the layout's part. `weight`,
        `norm_weight`: [P, conditions]; conditions are zero where they have no effect."""
        of_both = zip(self.head.correction.under(of_phases, weight), self.norm_head.correction.under(of_norms, norm_weight))
        clip = self.options.clip
        all_of_it, of_layout = (clip * torch.tanh(torch.cat(x, dim=1) / clip) for x in of_both)
        return all_of_it, of_layout
