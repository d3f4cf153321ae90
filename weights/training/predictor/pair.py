"""The predictor in two pieces, so that a job is encoded once and priced for many configurations.

    Encode: a job's rows → what is known of them without a configuration
    Price: that, and CONFIGURATIONS configurations of one batch → their times

Both compute what exported.Exported does, in another order. At a batch every part of an operator takes
max(f, m) + overlap * min(f, m), f = min(on tensor cores, on vector units), times how many there are and its correction. None
of these depends on more of a configuration than two rates, a bandwidth, the layout and whether there is autocast. So what is
one job's at one batch becomes factors, and a configuration multiplies them by its own numbers.

Rows lie along the last dimension, but for what matrices are multiplied with: then a vector of rows is a run in memory.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from predictor import features, normalisation, tables
from predictor.exported import SMALLEST_GPU_NUMBER, Exported
from predictor.features import Work
from predictor.interval import OUTSIDE_WIDTH
from predictor.model import PARTS, Roofline
from predictor.operators import FP32_BYTES, HALF_BYTES, Operators, log1p
from predictor.range import GPU_MARGIN, LOAD_MARGIN, UNKNOWN_SHARE

ROWS = ("operator_type", "operator_setting", "operator_load", "operator_count")
ENCODING = ("encoding_rows", "encoding_work", "encoding_cost", "encoding_job")
OUTPUTS = ("step_ms", "outside_training")

CONFIGURATIONS = 32
"""Priced at once: two vectors of 16. What they share at their batch costs more than all of them, so that few cost as much."""

NEVER = 1e8
"""How many times slower a way is that an operator does not take than the one that it takes."""
MOST = 1e30
"""FLOPs and bytes stay below it, so that nothing becomes infinite."""

LEAST_MS = 1e-30

PHASES = len(tables.PHASES)
LAYOUTS = 2


class Rows(NamedTuple):
    """Of encoding_work, [k, L] each: FLOPs, bytes and scores of one sample, and those of a step; the rest once."""

    flops: Tensor
    step_flops: Tensor
    bytes: Tensor
    step_bytes: Tensor
    scores: Tensor
    step_scores: Tensor
    padding: Tensor         # by which tensor cores multiply FLOPs
    norm_elements: Tensor
    norm_features: Tensor   # but for the one that grows with the batch
    has_layout: Tensor
    is_kept_in_fp32: Tensor
    count: Tensor
    shares: Tensor          # which rows interval and range ask the share of


ROW_WIDTHS = Rows(PHASES, PHASES, PHASES, PHASES, 1, 1, PHASES, 1, 3, 1, 1, 1, 4)


def _work_at(operators: Operators, per_sample: float, per_step: float) -> Work:
    """Of so many samples and so many steps."""
    half = tables.PHASE_LOAD_COUNT
    load = torch.cat([operators.load[:, :half] * per_sample, operators.load[:, half:2 * half] * per_step,
                      operators.load[:, 2 * half:]], dim=1)
    bare, norm = normalisation.split(operators._replace(load=load))
    return features.work(bare, norm, torch.ones(1, 1))


class Encode(nn.Module):
    def __init__(self, whole: Exported) -> None:
        super().__init__()
        self.whole = whole

    @staticmethod
    def _cost(roofline: Roofline, work: Work, is_nhwc: float) -> list[Tensor]:
        """[L, 3] each: of a FLOP on tensor cores, of one on vector units, of a byte."""
        in_layout = roofline.flop_cost[:3, None] + is_nhwc * roofline.flop_cost_nhwc[:, None] * torch.ones_like(work.has_layout)
        dense = torch.exp(roofline.flop_cost[Roofline.DENSE]
                          + is_nhwc * work.has_layout * roofline.flop_cost_nhwc[Roofline.DENSE])
        grouped, depthwise = torch.exp(in_layout[Roofline.GROUPED]), torch.exp(in_layout[Roofline.DEPTHWISE])
        others = torch.exp(roofline.flop_cost[Roofline.ELEMENTWISE]) * torch.ones_like(dense)
        is_dense = work.is_product * (1 - work.is_grouped)
        is_grouped = work.is_product * work.is_grouped * (1 - work.is_depthwise)
        is_depthwise = work.is_product * work.is_depthwise
        on_vectors = (is_dense * NEVER * dense + is_grouped * grouped + is_depthwise * depthwise
                      + (1 - work.is_product) * others)
        uses_tensors = is_dense + is_grouped * (1 - is_nhwc)
        on_tensors = uses_tensors * dense + (1 - uses_tensors) * NEVER * on_vectors
        byte = torch.exp(roofline.byte_cost + work.is_depthwise
                         * (roofline.depthwise_byte_cost + is_nhwc * roofline.depthwise_byte_cost_nhwc))
        return [on_tensors, on_vectors, byte]

    def forward(self, operator_type: Tensor, operator_setting: Tensor, operator_load: Tensor,
                operator_count: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        operators = Operators(operator_type, operator_setting.clamp(min=0), operator_load.clamp(min=0))
        count = operator_count[:, None].clamp(min=0)
        bare, norm = normalisation.split(operators)
        work, sample, step = _work_at(operators, 1, 1), _work_at(operators, 1, 0), _work_at(operators, 0, 1)
        members = self.whole.members
        encoded = [member.head.from_encoding(member.encoder(bare._replace(type=member.row_of_type[bare.type])))
                   for member in members]
        trained_on = self.whole.trained_on
        shares = torch.cat([work.is_grouped * (1 - work.is_depthwise), work.is_depthwise, 1 - work.is_product,
                            1 - trained_on.is_seen_type[bare.type]], dim=1)
        rows = Rows(sample.flops, step.flops, sample.bytes, step.bytes, sample.scores, step.scores,
                    features.padding(bare.setting), norm.elements,
                    normalisation.features(norm, torch.ones(1, 1))[:, (0, 1, 3)], work.has_layout, work.is_kept_in_fp32, count,
                    shares)
        costs = [cost for member in members for is_nhwc in range(LAYOUTS)
                 for cost in self._cost(member.roofline, work, float(is_nhwc))]
        parameters = (operators.load[:, -1:] * count).sum(dim=0)
        launches = (work.launches * count).sum(dim=0)
        load = trained_on.load(operators)
        return (torch.cat(encoded, dim=1), torch.cat(rows, dim=1).T, torch.cat(costs, dim=1).T,
                torch.cat([parameters, launches, load[0]]))


class Given(NamedTuple):
    """Of configurations. [C] each, but for the batch, which is theirs together: [1]"""

    batch: Tensor
    gpu_count: Tensor
    is_fp32: Tensor
    is_tf32: Tensor
    is_amp: Tensor
    is_nhwc: Tensor
    is_adam: Tensor
    gpu: Tensor         # [columns, C]

    def gpu_column(self, name: str) -> Tensor:
        return self.gpu[tables.gpu_columns().index(name)]


class Price(nn.Module):
    """Inputs that no job has are taken for the nearest possible ones, as in Exported."""

    def __init__(self, whole: Exported) -> None:
        super().__init__()
        self.whole = whole
        heads, norm_heads = [m.head for m in whole.members], [m.norm_head for m in whole.members]
        self.from_work = nn.Parameter(torch.cat([h.from_work.weight for h in heads]))
        self.norm_in = nn.Parameter(torch.cat([h.middle.weight for h in norm_heads]))
        self.norm_bias = nn.Parameter(torch.cat([h.middle.bias for h in norm_heads]))
        out = [self._layouts(h.correction.out.weight) for h in heads + norm_heads]
        bias = [self._layouts(h.correction.out.bias[:, None])[:, :, 0] for h in heads + norm_heads]
        # rows: both layouts' of the first member's phases, of the second's … of the first's normalisation …
        self.out = nn.Parameter(torch.block_diag(*(o.flatten(0, 1) for o in out)))
        self.out_bias = nn.Parameter(torch.cat([b.flatten() for b in bias]))
        clips = [h.correction.clip for h in heads + norm_heads]
        if len(set(clips)) > 1:
            raise ValueError("members whose corrections are clipped differently")
        self.clip = clips[0]
        if any(not torch.equal(a.scale.mean, b.scale.mean) for hs in (heads, norm_heads) for a, b in zip(hs, hs[1:])):
            raise ValueError("members that scale their inputs differently")

    @staticmethod
    def _layouts(x: Tensor) -> Tensor:
        """[conditions * parts, k] → [layouts, parts, k] under the newest software: of NCHW, and what NHWC adds."""
        always, nhwc, software, both = x.chunk(4, dim=0)
        return torch.stack([always + software, nhwc + both])

    @staticmethod
    def _given(configuration: Tensor, gpu: Tensor) -> Given:
        column = dict(zip(tables.CONFIGURATION, configuration.unbind(0), strict=True))
        flag = {name: value.clamp(0, 1) for name, value in column.items() if name.startswith("is_")}
        return Given(batch=column["batch"][:1].clamp(min=1), gpu_count=column["gpu_count"].clamp(min=1), is_fp32=flag["is_fp32"],
                     is_tf32=flag["is_tf32"], is_amp=flag["is_amp"], is_nhwc=flag["is_nhwc"],
                     is_adam=flag["is_adam"] + flag["is_adamw"], gpu=gpu.clamp(min=SMALLEST_GPU_NUMBER))

    def _factors(self, encoded: Tensor, rows: Rows, flops: Tensor, moved: Tensor, batch: Tensor) -> Tensor:
        """[members, layouts, PARTS, L]: how many there are of an operator, times its correction."""
        heads, norm_heads = [m.head for m in self.whole.members], [m.norm_head for m in self.whole.members]
        moved_log = log1p(moved)
        x = torch.cat([log1p(flops), moved_log, log1p(flops * rows.padding) - moved_log]).T
        x = nn.functional.gelu(encoded + heads[0].scale(x) @ self.from_work.T, approximate="tanh")
        x = [nn.functional.gelu(h.middle(part), approximate="tanh") for h, part in zip(heads, x.chunk(len(heads), dim=1))]
        shape, size, odd = rows.norm_features.unbind(0)
        norm = torch.stack([shape, size, log1p(rows.norm_elements[0] * batch), odd], dim=1)
        norm = nn.functional.linear(norm_heads[0].scale(norm), self.norm_in, self.norm_bias)
        x = torch.cat([*x, nn.functional.gelu(norm, approximate="tanh")], dim=1)
        x = nn.functional.linear(x, self.out, self.out_bias).T
        members, parts = len(heads), PARTS - PHASES
        of_phases, of_norm = x[:members * LAYOUTS * PHASES], x[members * LAYOUTS * PHASES:]
        of_phases = of_phases.reshape(members, LAYOUTS, PHASES, -1)
        of_norm = of_norm.reshape(members, LAYOUTS, parts, -1)
        x = torch.cat([of_phases, of_norm], dim=2)
        nchw, added = x[:, :1], x[:, 1:]
        x = torch.cat([nchw, nchw + added * rows.has_layout], dim=1)
        return rows.count * torch.exp(self.clip * torch.tanh(x / self.clip))

    def forward(self, encoding_rows: Tensor, encoding_work: Tensor, encoding_cost: Tensor, encoding_job: Tensor,
                configuration: Tensor, gpu: Tensor) -> tuple[Tensor, Tensor]:
        rows, c = Rows(*encoding_work.clamp(min=0).split(ROW_WIDTHS)), self._given(configuration, gpu)
        members = self.whole.members
        flops, moved = rows.flops * c.batch + rows.step_flops, rows.bytes * c.batch + rows.step_bytes
        scores = rows.scores * c.batch + rows.step_scores
        factor = self._factors(encoding_rows, rows, flops, moved, c.batch)
        cost = encoding_cost.clamp(min=0).reshape(len(members), LAYOUTS, 3, PHASES, -1)
        on_tensors = (cost[:, :, 0] * (flops * rows.padding) * factor[:, :, :PHASES]).clamp(max=MOST)
        on_vectors = (cost[:, :, 1] * flops * factor[:, :, :PHASES]).clamp(max=MOST)
        byte = cost[:, :, 2] * moved * factor[:, :, :PHASES]
        widened = byte * ((Roofline.WIDENED - 1) * rows.is_kept_in_fp32)

        # of each configuration
        vector_tflops = c.gpu_column("fp32_tflops")
        matrix_tflops = (c.is_fp32 * vector_tflops + c.is_tf32 * c.gpu_column("tf32_tflops")
                         + c.is_amp * c.gpu_column("fp16_tflops")).clamp(min=SMALLEST_GPU_NUMBER)
        ms_on_vectors, ms_on_tensors = 1 / (vector_tflops * 1e9), 1 / (matrix_tflops * 1e9)
        gbps = c.gpu_column("memory_gbps") * 1e6
        ms_per_byte = (c.is_amp * (HALF_BYTES / FP32_BYTES - 1) + 1) / gbps
        parameters, launches, load = encoding_job.clamp(min=0).split(1)
        logs, shares = [], []
        for i, member in enumerate(members):
            def under(x: Tensor) -> Tensor:
                """[layouts, L] → [L, C]"""
                return x[0, :, None] + c.is_nhwc * (x[1] - x[0])[:, None]

            overlap, parts = torch.sigmoid(member.roofline.overlap), []
            for phase in range(PHASES):
                flops_ms = torch.minimum(under(on_tensors[i, :, phase]) * ms_on_tensors,
                                         under(on_vectors[i, :, phase]) * ms_on_vectors)
                read = byte[i, :, phase]
                if phase < 2:
                    read = read + torch.exp(member.roofline.score_cost[phase]) * scores * factor[i, :, phase]
                bytes_ms = (under(read) + c.is_amp * under(widened[i, :, phase])) * ms_per_byte
                parts.append(torch.maximum(flops_ms, bytes_ms) + overlap * torch.minimum(flops_ms, bytes_ms))
            norm_cost = torch.exp(member.roofline.norm_cost) * torch.tensor(normalisation.MOVED)
            norm = (norm_cost[:, None] * factor[i, :, PHASES:]).sum(dim=1) * (rows.norm_elements * c.batch)
            operators_ms = sum(parts) + under(norm) * ms_per_byte
            sums = torch.cat([torch.ones_like(rows.count), rows.shares]) @ operators_ms
            shares.append(sums[1:] / sums[0].clamp(min=LEAST_MS))
            logs.append(torch.log(self._step(member.step, sums[0], launches, parameters, gbps, c)))
        middle, share = sum(logs) / len(logs), sum(shares) / len(shares)
        outside = self._outside(share[3], load, c)
        width = self._half_widths(share, outside, c.is_nhwc)
        return torch.exp(torch.stack([middle - width[0], middle, middle + width[1]])), outside

    @staticmethod
    def _step(step: nn.Module, operators_ms: Tensor, launches: Tensor, parameters: Tensor, gbps: Tensor, c: Given) -> Tensor:
        traffic = step.SGD_BYTES + (step.ADAM_BYTES - step.SGD_BYTES) * c.is_adam
        optimizer_ms = parameters * torch.exp(step.optimizer_cost) * traffic / gbps
        host_ms = launches * torch.exp(step.launch_cost)
        reduce_ms = (2 * FP32_BYTES / (step.LINK_GBPS * 1e6)) * parameters * (c.gpu_count - 1) / c.gpu_count
        times = (operators_ms + optimizer_ms, host_ms, reduce_ms)
        largest = torch.maximum(torch.maximum(times[0], times[1]), times[2]) + 1e-6
        fourth = sum(((t / largest) ** 2) ** 2 for t in times)      # smooth_maximum
        return largest * torch.sqrt(torch.sqrt(fourth))

    def _outside(self, unknown: Tensor, load: Tensor, c: Given) -> Tensor:
        trained_on, log_batch = self.whole.trained_on, torch.log(c.batch)
        batch = (log_batch - trained_on.log_batch[1]).clamp(min=0) + (trained_on.log_batch[0] - log_batch).clamp(min=0)
        gpu = (torch.log(c.gpu) - trained_on.log_gpu[:, None]).abs().amax(dim=0)
        other = (1 - c.is_amp) + (c.gpu_count - 1).clamp(0, 1) + c.is_adam
        return batch + (gpu - GPU_MARGIN).clamp(min=0) + (unknown - UNKNOWN_SHARE).clamp(min=0) + load + other

    def _half_widths(self, share: Tensor, outside: Tensor, is_nhwc: Tensor) -> Tensor:
        """[2, C]: interval.Interval over interval_features."""
        interval = self.whole.interval
        grouped, depthwise, others = share[0], share[1], share[2]
        x = (None, grouped, depthwise, grouped * is_nhwc, depthwise * is_nhwc, others)
        wider = OUTSIDE_WIDTH * outside.clamp(0, 1)
        sides = [sum((x[i] * interval.weight[i, side] for i in range(1, len(x))), interval.weight[0, side]) for side in range(2)]
        return torch.stack([torch.exp(s.clamp(-5, 1)) * interval.scale[i] + wider for i, s in enumerate(sides)])
