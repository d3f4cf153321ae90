"""The predictor in the form that the runtime calls. These modules are exported to ONNX:

    Encode   rows of a job → features that are independent of the configuration
    Evaluate these features and configurations of one batch → their times
    Whole    both, for one configuration
    Explain  the same, but returns each operator's part of the time

They compute the same as training.predict in another order. At a batch, every part of an operator takes max(f, m) + overlap *
min(f, m), f = min(dense, apart), dense = max(on vector units, on tensor cores), times its count and its correction. These
terms depend only on the following parts of a configuration: three rates, a bandwidth, the layout, autocast, and conditions,
in which the logarithm of a correction is linear. Therefore all values that depend only on the job and the batch are computed
once.

Rows lie along the last dimension, so that a vector of rows is contiguous in memory. Operands of matmuls are the exception.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from mdot_training.predictor import conditions, features, decode_inputs, normalisation, tables
from mdot_training.predictor.features import Work
from mdot_training.predictor.decode_inputs import DecodedInputs
from mdot_training.predictor.interval import Interval, interval_features, unmeasured_software
from mdot_training.predictor.embedding_distance import DIRECTIONS, EmbeddingDistance
from mdot_training.predictor.model import PARTS, PHASES, Correction, Predictor, Roofline, Step, with_software
from mdot_training.predictor.operators import FP32_BYTES, HALF_BYTES, Operators, log1p
from mdot_training.predictor.domain_check import TrainingRange

ROWS = ("operator_type", "operator_setting", "operator_load", "operator_count")
CONFIGURATION = ("configuration", "gpu")
ENCODING = ("encoding_rows", "encoding_work", "encoding_cost", "encoding_job")
ANSWER = ("step_ms", "outside_training")
EXPLANATION = ("operator_ms", "other_ms")

CONFIGURATIONS = 32
"""Configurations evaluated at once: two vectors of 16. Their common work at a batch costs more than the work of all of them,
therefore a smaller number costs almost as much."""

NEVER = 1e8
"""Factor by which the unused kind of compute unit is slower than the used one."""
MOST = 1e30
"""Upper limit of FLOPs and bytes, so that all values stay finite."""
LEAST_MS = 1e-30
COSTS = 3
"""Costs of each phase in a layout."""
LAYOUTS = ((0.0, 110.0), (1.0, 110.0), (1.0, float(conditions.PACKS_MORE)))
"""Layouts with different costs: whether it is NHWC, and the first PyTorch version."""


class Shipped(nn.Module):
    """Member predictors, whose mean logarithm is the prediction, and the models of its uncertainty."""

    def __init__(self, members: list[Predictor], interval: Interval, trained_on: TrainingRange,
                 distance_model: EmbeddingDistance) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.interval, self.trained_on, self.distance_model = interval, trained_on, distance_model
        if len({m.options.clip for m in members}) > 1:
            raise ValueError("members whose corrections are clipped differently")


class Rows(NamedTuple):
    """The parts of encoding_work, [k, L] each: FLOPs, bytes and scores of one sample and of one step, and values that are
    independent of both."""

    flops: Tensor
    step_flops: Tensor
    bytes: Tensor
    step_bytes: Tensor
    scores: Tensor
    step_scores: Tensor
    serial: Tensor          # sequential steps of recurrences
    padding: Tensor         # factor of tile padding on the FLOPs of dense matmuls
    norm_elements: Tensor
    norm_features: Tensor   # except for the feature that grows with the batch
    has_layout: Tensor
    has_scores: Tensor
    is_convolution: Tensor
    is_kept_in_fp32: Tensor
    count: Tensor
    kinds: Tensor           # 0 or 1: kinds of operators whose fraction of the time the interval and the range check read
    profile: Tensor         # from EmbeddingDistance; may be negative

    @staticmethod
    def read(encoding_work: Tensor) -> Rows:
        return Rows(*encoding_work[:-DIRECTIONS].clamp(min=0).split(ROW_WIDTHS), encoding_work[-DIRECTIONS:])


ROW_WIDTHS = (PHASES, PHASES, PHASES, PHASES, 1, 1, PHASES, PHASES, 1, 3, 1, 1, 1, 1, 1, 5)
"""Widths of all parts except the profile."""


def _work_at(operators: Operators, per_sample: float, per_step: float) -> Work:
    """The work of `per_sample` samples and `per_step` steps."""
    half = tables.PHASE_LOAD_COUNT
    load = torch.cat([operators.load[:, :half] * per_sample, operators.load[:, half:2 * half] * per_step,
                      operators.load[:, 2 * half:]], dim=1)
    bare, norm = normalisation.split(operators._replace(load=load))
    return features.work(bare, norm, torch.ones(1, 1))


class Encode(nn.Module):
    def __init__(self, shipped: Shipped) -> None:
        super().__init__()
        self.shipped = shipped

    @staticmethod
    def _cost(roofline: Roofline, work: Work, is_nhwc: float, torch_version: float) -> list[Tensor]:
        """[L, 3] each: costs of a FLOP of a dense matmul on tensor cores, of another FLOP, and of a byte."""
        lacks_kernel = is_nhwc * with_software(work.lacks_kernel, torch.tensor([[torch_version]]))
        layout = is_nhwc * work.has_layout * roofline.flop_cost_nhwc[Roofline.DENSE]
        dense = torch.exp(roofline.flop_cost[Roofline.DENSE] + layout)
        grouped = torch.exp(roofline.flop_cost[Roofline.GROUPED] + lacks_kernel * roofline.flop_cost_nhwc[Roofline.GROUPED])
        grouped = grouped * (1 + lacks_kernel * (work.idle - 1))
        depthwise = torch.exp(roofline.flop_cost[Roofline.DEPTHWISE] + is_nhwc * roofline.flop_cost_nhwc[Roofline.DEPTHWISE])
        others = torch.exp(roofline.flop_cost[Roofline.ELEMENTWISE]) * torch.ones_like(dense)
        is_dense = work.is_matmul * (1 - work.is_grouped)
        is_depthwise = work.is_matmul * work.is_depthwise * (1 - lacks_kernel)
        is_grouped = work.is_matmul * work.is_grouped - is_depthwise
        apart = (is_dense * NEVER * dense + is_grouped * grouped + is_depthwise * depthwise + (1 - work.is_matmul) * others)
        may_be_dense = is_dense + is_grouped * (1 - lacks_kernel)
        on_tensors = may_be_dense * dense + (1 - may_be_dense) * NEVER * apart
        byte = torch.exp(roofline.byte_cost + work.is_depthwise
                         * (roofline.depthwise_byte_cost + is_nhwc * roofline.depthwise_byte_cost_nhwc))
        return [on_tensors, apart, byte]

    @staticmethod
    def _on_vectors(roofline: Roofline, work: Work) -> Tensor:
        """[L, 3]: cost of a FLOP of a dense matmul on vector units, relative to tensor cores. All layouts have the same
        cost."""
        return torch.exp(roofline.vector_cost + roofline.winograd_cost * work.is_winograd - roofline.flop_cost[Roofline.DENSE])

    def forward(self, operator_type: Tensor, operator_setting: Tensor, operator_load: Tensor,
                operator_count: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        input_operators = Operators(operator_type, operator_setting.clamp(min=0), operator_load.clamp(min=0))
        operators, count = features.with_states_read(input_operators), operator_count[:, None].clamp(min=0)
        bare, norm = normalisation.split(operators)
        work, sample, step = _work_at(operators, 1, 1), _work_at(operators, 1, 0), _work_at(operators, 0, 1)
        members = self.shipped.members
        encoded = [member.encode(bare) for member in members]
        trained_on = self.shipped.trained_on
        kinds = torch.cat([work.is_grouped * (1 - work.is_depthwise), work.is_depthwise, 1 - work.is_matmul,
                           work.is_convolution, 1 - trained_on.is_seen_type[bare.type]], dim=1)
        padding = features.padding(bare.setting)
        rows = Rows(sample.flops, step.flops, sample.bytes, step.bytes, sample.scores, step.scores, work.serial, padding,
                    norm.elements, normalisation.features(norm, torch.ones(1, 1))[:, (0, 1, 3)], work.has_layout,
                    work.has_scores, work.is_convolution, work.is_kept_in_fp32, count, kinds,
                    self.shipped.distance_model.profiles(encoded[0]))
        costs = [cost for member in members
                 for cost in (*(x for layout in LAYOUTS for x in self._cost(member.roofline, work, *layout)),
                              self._on_vectors(member.roofline, work))]
        parameters = (operators.load[:, -1:] * count).sum(dim=0)
        launches, compiled_away = ((x * count).sum(dim=0) for x in (
            features.step_launches(work), features.compiled_away(work).sum(dim=1, keepdim=True)))
        load = trained_on.load(input_operators)
        behind = [member.head.from_encoding(x) for member, x in zip(members, encoded)]
        return (torch.cat(behind, dim=1), torch.cat(rows, dim=1).T, torch.cat(costs, dim=1).T,
                torch.cat([parameters, launches, compiled_away, load[0]]))


class Times(NamedTuple):
    """Times of a member, in ms."""

    parts: list[Tensor]     # [L, C] of each phase: matmuls and memory-bound work with their normalisation
    operators: Tensor       # [C], their sum, followed by the other terms of a step:
    optimizer: Tensor
    host: Tensor


class Evaluate(nn.Module):
    def __init__(self, shipped: Shipped) -> None:
        super().__init__()
        self.shipped = shipped

    @staticmethod
    def _corrections(correction: Correction, x: Tensor, matters: Tensor, c: DecodedInputs) -> list[Tensor]:
        """exp of the corrections, [L, C] for each part. `x`: [L, width]; `matters`: [L, conditions]"""
        weight, bias = (x.transpose(0, 1).flatten(0, 1) for x in correction.merged())      # rows by part, then by condition
        found = []
        for part in nn.functional.linear(x, weight, bias).chunk(correction.parts, dim=1):
            logarithm = (conditions.bounded(part) * matters) @ c.conditions
            found.append(torch.exp(correction.clip * torch.tanh(logarithm / correction.clip)))
        return found

    @staticmethod
    def _hidden(member: Predictor, encoded: Tensor, rows: Rows, flops: Tensor, moved: Tensor,
                batch: Tensor) -> tuple[Tensor, Tensor]:
        """[L, hidden] and [L, norm_hidden]: the inputs in which corrections are linear."""
        moved_log = log1p(moved)
        x = torch.cat([log1p(flops), moved_log, log1p(flops * rows.padding) - moved_log]).T
        x = nn.functional.gelu(encoded + member.head.from_work(member.head.scale(x)), approximate="tanh")
        x = nn.functional.gelu(member.head.middle(x), approximate="tanh")
        shape, size, odd = rows.norm_features.unbind(0)
        norm = torch.stack([shape, size, log1p(rows.norm_elements[0] * batch), odd], dim=1)
        norm = nn.functional.gelu(member.norm_head.middle(member.norm_head.scale(norm)), approximate="tanh")
        return x, norm

    def times(self, encoding_rows: Tensor, rows: Rows, encoding_cost: Tensor, encoding_job: Tensor,
              c: DecodedInputs) -> list[Times]:
        """The times of each member."""
        members = self.shipped.members
        flops, moved = rows.flops * c.batch + rows.step_flops, rows.bytes * c.batch + rows.step_bytes
        scores = rows.scores * c.batch + rows.step_scores
        costs = encoding_cost.clamp(min=0).chunk(len(members))
        parameters, launches, compiled_away, _ = encoding_job.clamp(min=0).split(1)
        launches = launches - c.is_compiled * compiled_away
        ms_apart, gbps = 1 / (c.rates.vector_tflops * 1e9), c.rates.gbps * 1e6
        ms_per_byte = (c.halves_bytes * (HALF_BYTES / FP32_BYTES - 1) + 1) / gbps
        packs_more = conditions.at_least(c.torch, conditions.PACKS_MORE)
        # products, because differences would lose their digits beside NEVER
        in_layout = (1 - c.is_nhwc, c.is_nhwc * (1 - packs_more), c.is_nhwc * packs_more)
        is_unfused = (1 - c.is_fused) * ms_per_byte

        matters = conditions.mattering(rows.has_layout.T, rows.has_scores.T)

        def under(x: Tensor) -> Tensor:
            """[layouts, L] → [L, C]"""
            return sum(x[i, :, None] * share for i, share in enumerate(in_layout))

        found = []
        for member, encoded, cost in zip(members, encoding_rows.chunk(len(members), dim=1), costs):
            of_layouts, of_vectors = cost[:-PHASES].reshape(len(LAYOUTS), COSTS, PHASES, -1), cost[-PHASES:]
            of_matmuls, of_windows = (member.roofline.units(x, c.rates) for x in (c.matmuls, c.windows))
            is_window = rows.is_convolution[0, :, None]
            ms_on_vectors, ms_on_tensors = (x + is_window * (y - x) for x, y in zip(of_matmuls, of_windows))
            hidden, norm_hidden = self._hidden(member, encoded, rows, flops, moved, c.batch)
            factor = self._corrections(member.head.correction, hidden, matters, c)
            norm_factor = self._corrections(member.norm_head.correction, norm_hidden, matters, c)
            on_tensors = (of_layouts[:, 0] * (flops * rows.padding)).clamp(max=MOST)
            apart, byte = (of_layouts[:, 1] * flops).clamp(max=MOST), of_layouts[:, 2] * moved
            widened = byte * ((Roofline.WIDENED - 1) * rows.is_kept_in_fp32)
            overlap, parts = torch.sigmoid(member.roofline.overlap), []
            for phase in range(PHASES):
                ms_per_flop = torch.maximum(ms_on_tensors, of_vectors[phase, :, None] * ms_on_vectors)
                flops_ms = torch.minimum(under(on_tensors[:, phase]) * ms_per_flop, under(apart[:, phase]) * ms_apart)
                bytes_ms = (under(byte[:, phase]) + c.is_autocast * under(widened[:, phase])) * ms_per_byte
                if phase < 2:
                    bytes_ms = bytes_ms + (torch.exp(member.roofline.score_cost[phase]) * scores[0])[:, None] * is_unfused
                part = (torch.maximum(flops_ms, bytes_ms) + overlap * torch.minimum(flops_ms, bytes_ms)) * factor[phase]
                part = part + Roofline.SERIAL_MS * rows.serial[phase, :, None]
                if phase < PARTS - PHASES:
                    norm_cost = torch.exp(member.roofline.norm_cost[phase]) * normalisation.MOVED[phase]
                    norm_bytes = norm_cost * (rows.norm_elements[0] * c.batch)
                    part = part + norm_bytes[:, None] * ms_per_byte * norm_factor[phase]
                parts.append(part * rows.count[0, :, None])
            found.append(Times(parts, sum(parts).sum(dim=0), *self._else(member.step, launches, parameters, gbps, c)))
        return found

    @staticmethod
    def _else(step: Step, launches: Tensor, parameters: Tensor, gbps: Tensor, c: DecodedInputs) -> tuple[Tensor, Tensor]:
        traffic = step.SGD_BYTES + (step.ADAM_BYTES - step.SGD_BYTES) * c.is_adam
        optimizer_ms = parameters * step.optimizer_passes() * traffic / gbps
        host_ms = launches * torch.exp(step.launch_cost) * torch.ones_like(gbps)
        return optimizer_ms, host_ms

    @staticmethod
    def fourths(times: Times) -> tuple[Tensor, list[Tensor]]:
        """The step, and the fourth powers of GPU time and host time relative to the longer one: smooth_maximum."""
        both = (times.operators + times.optimizer, times.host)
        longest = torch.maximum(*both) + 1e-6
        powers = [((t / longest) ** 2) ** 2 for t in both]
        return longest * torch.sqrt(torch.sqrt(sum(powers))), powers

    def answer(self, rows: Rows, encoding_job: Tensor, c: DecodedInputs, times: list[Times]) -> tuple[Tensor, Tensor]:
        """[3, C] and [causes, C]"""
        fractions, logs, waits = [], [], []
        for of_member in times:
            sums = torch.cat([rows.kinds, rows.profile]) @ sum(of_member.parts)
            fractions.append(sums / of_member.operators.clamp(min=LEAST_MS))
            step_ms, powers = self.fourths(of_member)
            logs.append(torch.log(step_ms))
            waits.append(powers[1] / sum(powers).clamp(min=LEAST_MS))
        middle, fraction, waiting = (sum(x) / len(x) for x in (logs, fractions, waits))
        _, launches, _, load = encoding_job.clamp(min=0).split(1)
        flops = ((rows.flops * c.batch + rows.step_flops) * rows.count).sum()
        outside = self.shipped.trained_on(fraction[4], load, flops / launches.clamp(min=1), c)
        distance, unlike = self.shipped.distance_model.distances(fraction[len(rows.kinds):])
        is_elsewhere = torch.maximum(self.shipped.trained_on.is_elsewhere(c), unlike)
        software = unmeasured_software(c.torch, c.is_compiled, unlike)
        x = interval_features(fraction[:4], c.is_nhwc, software, is_elsewhere, self.shipped.trained_on.is_new_gpu(c),
                              waiting, distance)
        low, high = self.shipped.interval(x, outside)
        return torch.exp(torch.stack([middle - low, middle, middle + high])), outside

    def forward(self, encoding_rows: Tensor, encoding_work: Tensor, encoding_cost: Tensor, encoding_job: Tensor,
                configuration: Tensor, gpu: Tensor) -> tuple[Tensor, Tensor]:
        rows, c = Rows.read(encoding_work), decode_inputs.read(configuration, gpu)
        return self.answer(rows, encoding_job, c, self.times(encoding_rows, rows, encoding_cost, encoding_job, c))


class Whole(nn.Module):
    def __init__(self, shipped: Shipped) -> None:
        super().__init__()
        self.encode, self.evaluate = Encode(shipped), Evaluate(shipped)

    def forward(self, operator_type: Tensor, operator_setting: Tensor, operator_load: Tensor, operator_count: Tensor,
                configuration: Tensor, gpu: Tensor) -> tuple[Tensor, Tensor]:
        encoding = self.encode(operator_type, operator_setting, operator_load, operator_count)
        step_ms, outside = self.evaluate(*encoding, configuration[:, None], gpu[:, None])
        return step_ms[:, 0], outside[:, 0]


class Explain(Whole):
    """Divides a step among its operators. A member's step is (Σ t^4)^(1/4) of two times. This function is homogeneous, so
    that by Euler's theorem its parts are t · d step / d t = step · t^4 / Σ t^4. The GPU's part divides in proportion to GPU
    times. Members are averaged as logarithms, therefore their fractions are averaged directly. The result adds up to the median
    of step_ms. It excludes waiting for other GPUs, which the runtime estimates analytically."""

    def forward(self, operator_type: Tensor, operator_setting: Tensor, operator_load: Tensor, operator_count: Tensor,
                configuration: Tensor, gpu: Tensor) -> tuple[Tensor, Tensor]:
        encoding = self.encode(operator_type, operator_setting, operator_load, operator_count)
        rows, c = Rows.read(encoding[1]), decode_inputs.read(configuration[:, None], gpu[:, None])
        logs, of_phases, of_others = [], [], []
        for times in self.evaluate.times(encoding[0], rows, *encoding[2:], c):
            step_ms, powers = self.evaluate.fourths(times)
            total = sum(powers)
            per_ms = powers[0] / total / (times.operators + times.optimizer).clamp(min=LEAST_MS)
            logs.append(torch.log(step_ms))
            of_phases.append(torch.cat([part * per_ms for part in times.parts], dim=1))
            of_others.append(torch.cat([times.optimizer * per_ms, powers[1] / total, torch.zeros_like(total)]))
        median_ms = torch.exp(sum(logs) / len(logs))
        return sum(of_phases) / len(logs) * median_ms, sum(of_others) / len(logs) * median_ms
