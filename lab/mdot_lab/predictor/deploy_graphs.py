"""The predictor in the form that the runtime calls. These modules are exported to ONNX:

    Encode   rows of a job → features that are independent of the configuration
    Evaluate these features and configurations of one batch → times
    Whole    both, for one configuration
    Explain  the same, but returns each operator's part of the time

They compute the same as training.predict in another order. At a batch, every phase of an operator takes

    max((max(f, m) + overlap * min(f, m)) * correction, bound) + tail
    f = min(dense, apart) + fallback, dense = max(on vector units, on tensor cores)

times the count. These terms depend only on the following parts of a configuration: three rates, a bandwidth, the layout,
autocast, the mode, and conditions, in which the logarithm of a correction is linear. Therefore all values that depend only on
the job are computed once.

Rows lie along the last dimension, so that a vector of rows is contiguous in memory. Operands of matmuls are the exception.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from mdot_lab.predictor import conditions, features, decode_inputs, normalisation, tables
from mdot_lab.predictor.features import Work
from mdot_lab.predictor.decode_inputs import DecodedInputs
from mdot_lab.predictor.interval import Interval, interval_features, unmeasured_software
from mdot_lab.predictor.embedding_distance import DIRECTIONS, EmbeddingDistance
from mdot_lab.predictor.batches import FORWARD, NORM_IN_EVALUATION
from mdot_lab.predictor.model import PARTS, PHASES, Predictor, Roofline, Step, with_software
from mdot_lab.predictor.operators import FP32_BYTES, HALF_BYTES, Operators
from mdot_lab.predictor.domain_check import TrainingRange
from mdot_lab.predictor import familiarity as familiarities
from mdot_lab.predictor.familiarity import Familiarity

ROWS = ("operator_type", "operator_setting", "operator_load", "operator_count")
CONFIGURATION = ("configuration", "gpu")
ENCODING = ("encoding_rows", "encoding_work", "encoding_cost", "encoding_job")
ANSWER = ("step_ms", "outside_training", "part_ms")
EXPLANATION = ("operator_ms", "other_ms")

CONFIGURATIONS = 32
"""Configurations evaluated at once: two vectors with 16 each. Common work at a batch costs more than all of them,
therefore fewer configurations cost almost as much."""

NEVER = 1e8
"""Factor by which the unused compute unit is slower than the used one."""
KNOWN_HOST_SAVES = 0.5
"""Widening by the wait for the host, as the part that disappears when a launch cost is given."""
MOST = 1e30
"""Upper limit on FLOPs and bytes, so that all values stay finite."""
LEAST_MS = 1e-30
COSTS = 4
"""Costs of each phase in a layout."""
LAUNCH_KINDS = len(features.Launches._fields)
LAYOUTS = ((0.0, 110.0), (1.0, 110.0), (1.0, float(conditions.PACKS_MORE)))
"""Layouts with different costs: whether it is NHWC, and the first PyTorch version."""


class Shipped(nn.Module):
    """Member predictors, whose mean logarithm is the prediction, and the uncertainty models."""

    def __init__(self, members: list[Predictor], interval: Interval, trained_on: TrainingRange,
                 distance_model: EmbeddingDistance, familiarity: Familiarity | None = None) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.familiarity = familiarity
        self.interval, self.trained_on, self.distance_model = interval, trained_on, distance_model
        if len({m.options.clip for m in members}) > 1:
            raise ValueError("members whose corrections are clipped differently")


class Rows(NamedTuple):
    """Parts of encoding_work, [k, L] each: FLOPs, bytes and scores per sample and per step, and constant values."""

    flops: Tensor
    step_flops: Tensor
    bytes: Tensor
    step_bytes: Tensor
    scores: Tensor
    step_scores: Tensor
    converted: Tensor       # bytes that conversions in NHWC move
    serial: Tensor          # sequential steps of recurrences
    padding: Tensor         # tile padding factor on dense-matmul FLOPs
    tails: Tensor           # fixed kernel time per phase and member
    norm_elements: Tensor
    norm_per_plane: Tensor  # inverse channels on feature maps
    is_convolution: Tensor
    is_matmul: Tensor
    is_winograd: Tensor
    is_kernel: Tensor       # moves its operands at least once forward
    is_kept_in_fp32: Tensor
    cast: Tensor            # parameters that autocast converts
    summed_rows: Tensor     # rows of a LayerNormalization with parameters
    count: Tensor
    kinds: Tensor           # 0 or 1: operator kinds whose time fraction the interval and the range check read
    profile: Tensor         # from EmbeddingDistance; may be negative

    @staticmethod
    def read(encoding_work: Tensor) -> Rows:
        rows = encoding_work[:-DIRECTIONS].clamp(min=0)
        members = (len(rows) - sum(ROW_WIDTHS)) // PHASES       # tails
        widths = (*ROW_WIDTHS[:TAILS_AT], members * PHASES, *ROW_WIDTHS[TAILS_AT:])
        return Rows(*rows.split(widths), encoding_work[-DIRECTIONS:])


TAILS_AT = Rows._fields.index("tails")
KINDS = 6
ROW_WIDTHS = (PHASES, PHASES, PHASES, PHASES, 1, 1, PHASES, PHASES, PHASES, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, KINDS)
"""Widths of all parts except the tails and the profile."""


def _work_at(operators: Operators, per_sample: float, per_step: float, has_maps: Tensor) -> Work:
    """The work of `per_sample` samples and `per_step` steps."""
    half = tables.PHASE_LOAD_COUNT
    load = torch.cat([operators.load[:, :half] * per_sample, operators.load[:, half:2 * half] * per_step,
                      operators.load[:, 2 * half:]], dim=1)
    bare, norm = normalisation.split(operators._replace(load=load))
    return features.work(bare, norm, torch.ones(1, 1), has_maps)


class Encode(nn.Module):
    def __init__(self, shipped: Shipped) -> None:
        super().__init__()
        self.shipped = shipped

    @staticmethod
    def _cost(roofline: Roofline, work: Work, is_nhwc: float, torch_version: float) -> list[Tensor]:
        """[L, 3] each: cost per FLOP in dense matmuls on tensor cores, in other work, and in the fallback kernel, and
        per byte. The first two exclude the fallback's share."""
        in_nhwc = is_nhwc * work.has_layout
        share = in_nhwc * with_software(roofline.shares(work.grouping, work.lacks_kernel), torch.tensor([[torch_version]]))
        dense = torch.exp(roofline.flop_cost[Roofline.DENSE] + in_nhwc * roofline.flop_cost_nhwc[Roofline.DENSE])
        grouped = torch.exp(roofline.flop_cost[Roofline.GROUPED]) * torch.ones_like(dense)
        fallback = torch.exp(roofline.flop_cost[Roofline.GROUPED] + roofline.flop_cost_nhwc[Roofline.GROUPED])
        fallback = fallback * work.idle**roofline.idle_power * share * work.is_matmul
        depthwise = torch.exp(roofline.flop_cost[Roofline.DEPTHWISE] + in_nhwc * roofline.flop_cost_nhwc[Roofline.DEPTHWISE])
        others = torch.exp(roofline.flop_cost[Roofline.ELEMENTWISE]) * torch.ones_like(dense)
        is_dense = work.is_matmul * (1 - work.is_grouped)
        is_depthwise = work.is_matmul * work.is_depthwise
        is_grouped = work.is_matmul * work.is_grouped - is_depthwise
        apart = (is_dense * NEVER * dense + is_grouped * grouped + is_depthwise * depthwise + (1 - work.is_matmul) * others)
        may_be_dense = is_dense + is_grouped
        on_tensors = may_be_dense * dense + (1 - may_be_dense) * NEVER * apart
        byte = torch.exp(roofline.byte_cost + work.is_depthwise
                         * (roofline.depthwise_byte_cost + in_nhwc * roofline.depthwise_byte_cost_nhwc))
        return [on_tensors * (1 - share), apart * (1 - share), fallback, byte]

    @staticmethod
    def _on_vectors(roofline: Roofline, work: Work) -> Tensor:
        """[L, 3]: cost of a FLOP of a dense matmul on vector units, relative to tensor cores. All layouts have the same
        cost."""
        return torch.exp(roofline.vector_cost + roofline.winograd_cost * work.is_winograd - roofline.flop_cost[Roofline.DENSE])

    @staticmethod
    def _corrections(of_part: Tensor, parts: int, matters: Tensor) -> Tensor:
        """[L, parts * conditions]: logarithms, part after part. `of_part`: from a head; `matters`: [L, conditions]"""
        return (of_part.reshape(-1, conditions.COUNT, parts) * matters[:, :, None]).transpose(1, 2).flatten(1)

    def forward(self, operator_type: Tensor, operator_setting: Tensor, operator_load: Tensor,
                operator_count: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        input_operators = Operators(operator_type, operator_setting.clamp(min=0), operator_load.clamp(min=0))
        operators, count = features.with_states_read(input_operators), operator_count[:, None].clamp(min=0)
        bare, norm = normalisation.split(operators)
        has_maps = features.has_maps(input_operators)
        work, sample, step = (_work_at(operators, *of, has_maps) for of in ((1, 1), (1, 0), (0, 1)))
        members = self.shipped.members
        encoded = [member.encode(bare) for member in members]
        strength = 1.0
        if self.shipped.familiarity is not None:
            strength = self.shipped.familiarity(encoded[0], familiarities.weights(operators.load, count))
        heads = [member.head(x, strength) for member, x in zip(members, encoded)]
        trained_on = self.shipped.trained_on
        runs = (work.launches > 0).to(torch.float32)
        kinds = torch.cat([work.is_grouped * (1 - work.is_depthwise), work.is_depthwise, 1 - work.is_matmul,
                           work.is_convolution, 1 - trained_on.is_seen_type[bare.type],
                           trained_on.is_new_group(bare.setting) * work.has_layout], dim=1)
        is_kernel = features.is_kernel(bare.type)
        rows = Rows(sample.flops, step.flops, sample.bytes, step.bytes, sample.scores, step.scores, sample.converted, work.serial,
                    features.padding(bare.setting), torch.cat([tails * runs for _, tails in heads], dim=1), norm.elements,
                    work.norm_per_plane, work.is_convolution, work.is_matmul, work.is_winograd, is_kernel, work.is_kept_in_fp32,
                    work.cast, sample.summed_rows, count, kinds, self.shipped.distance_model.profiles(encoded[0]))
        costs = [cost for member in members
                 for cost in (*(x for layout in LAYOUTS for x in self._cost(member.roofline, work, *layout)),
                              self._on_vectors(member.roofline, work))]
        matters, norm_matters = conditions.mattering(work), conditions.mattering_to_norms(work.has_layout)
        norm_features = normalisation.features(norm)
        corrections = [x for member, (of_phases, _) in zip(members, heads)
                       for x in (self._corrections(of_phases, PHASES, matters),
                                 self._corrections(member.norm_head(norm_features, strength), PARTS - PHASES, norm_matters))]
        parameters, load = (operators.load[:, -1:] * count).sum(dim=0), trained_on.load(input_operators)
        return (torch.cat(corrections, dim=1), torch.cat(rows, dim=1).T, torch.cat(costs, dim=1).T,
                torch.cat([parameters, self._launches(work, count), load[0]]))

    @staticmethod
    def _launches(work: Work, count: Tensor) -> Tensor:
        """[2 * LAUNCH_KINDS]: launches by kind in a forward pass, and in the rest of a step."""
        by_kind = torch.stack([(of_phase * count).sum(dim=0) for of_phase in features.launches(work)])
        optimizer = features.OPTIMIZER_LAUNCHES * (work.learns * count).sum(dim=0)
        rest = by_kind[:, 1:].sum(dim=1)
        return torch.cat([by_kind[:, 0], rest[:1] + optimizer, rest[1:]])


class Times(NamedTuple):
    """Times of a member, in ms."""

    parts: list[Tensor]     # [L, C] per phase: matmuls and memory-bound work with normalisation
    operators: Tensor       # [C], their sum, followed by the step's other terms:
    optimizer: Tensor
    host: Tensor


class Evaluate(nn.Module):
    def __init__(self, shipped: Shipped) -> None:
        super().__init__()
        self.shipped = shipped

    def times(self, encoding_rows: Tensor, rows: Rows, encoding_cost: Tensor, encoding_job: Tensor,
              c: DecodedInputs) -> list[Times]:
        """The times of each member."""
        members = self.shipped.members
        flops, moved = rows.flops * c.batch + rows.step_flops, rows.bytes * c.batch + rows.step_bytes
        flops, moved = flops.clamp(max=MOST), moved.clamp(max=MOST)
        scores = rows.scores * c.batch + rows.step_scores
        norm_elements = (rows.norm_elements[0] * c.batch)[:, None]
        costs = encoding_cost.clamp(min=0).chunk(len(members))
        parameters, *launches, _ = encoding_job.clamp(min=0).split((1, LAUNCH_KINDS, LAUNCH_KINDS, 1))
        ms_apart, gbps = 1 / (c.rates.vector_tflops * 1e9), c.rates.gbps * 1e6
        ms_per_byte = (c.halves_bytes * (HALF_BYTES / FP32_BYTES - 1) + 1) / gbps
        packs_more = conditions.at_least(c.torch, conditions.PACKS_MORE)
        # products, because differences would lose their digits beside NEVER
        in_layout = (1 - c.is_nhwc, c.is_nhwc * (1 - packs_more), c.is_nhwc * packs_more)
        tiles = 1 + c.is_nhwc * (1 - c.is_inference) * (normalisation.tiles(rows.norm_per_plane[0, :, None]) - 1)
        converting = c.is_nhwc * c.halves_bytes * ms_per_byte * c.batch
        is_unfused, is_train = (1 - c.is_fused) * ms_per_byte, 1 - c.is_inference
        is_window, is_matmul = rows.is_convolution[0, :, None], rows.is_matmul[0, :, None]
        cast_ms = rows.cast[0, :, None] * (c.is_autocast * (1 - c.is_compiled) * Roofline.CAST_BYTES / gbps)
        is_alone = 1 - c.is_compiled * (1 - is_matmul)
        compulsory = (rows.is_kernel[0, :, None] * is_alone * ms_per_byte, is_matmul * ms_per_byte)
        in_planes = (1 - c.is_nhwc) * is_train * (1 - c.is_compiled)
        saved = Roofline.WINOGRAD_SAVES * rows.is_winograd[0, :, None]

        def under(x: Tensor) -> Tensor:
            """[layouts, L] → [L, C]"""
            return sum(x[i, :, None] * share for i, share in enumerate(in_layout))

        found = []
        for i, (member, corrections, cost) in enumerate(zip(members, encoding_rows.chunk(len(members), dim=1), costs)):
            of_layouts, of_vectors = cost[:-PHASES].reshape(len(LAYOUTS), COSTS, PHASES, -1), cost[-PHASES:]
            roofline, clip = member.roofline, member.options.clip
            of_matmuls, of_windows = (roofline.units(x, c.rates) for x in (c.matmuls, c.windows))
            ms_on_vectors, ms_on_tensors, bound, least_bound = (x + is_window * (y - x) for x, y in zip(of_matmuls, of_windows))
            is_vector = (of_windows[0] * NEVER * NEVER).clamp(0, 1)
            bound = torch.maximum(bound * (1 - saved * is_vector), least_bound)
            bound = ms_apart + is_matmul * (bound - ms_apart)
            under_conditions = [c.conditions] * PHASES + [c.norm_conditions] * (PARTS - PHASES)
            logs = [part @ x for part, x in zip(corrections.chunk(PARTS, dim=1), under_conditions)]
            factor = [torch.exp(clip * torch.tanh(log / clip) + c.is_inference * roofline.inference_cost) for log in logs]
            on_tensors = (of_layouts[:, 0] * (flops * rows.padding)).clamp(max=MOST)
            apart, fallback, byte = of_layouts[:, 1] * flops, of_layouts[:, 2] * flops, of_layouts[:, 3] * moved
            apart, fallback = apart.clamp(max=MOST), fallback.clamp(max=MOST)
            widened = byte * ((Roofline.WIDENED - 1) * rows.is_kept_in_fp32)
            tails, passes = rows.tails[i * PHASES:(i + 1) * PHASES], roofline.score_passes(c.is_autocast)
            overlap, parts = torch.sigmoid(roofline.overlap), []
            per_block = roofline.per_block(rows.norm_per_plane[0, :, None], c.sm_count)
            for phase in range(PHASES):
                ms_per_flop = torch.maximum(ms_on_tensors, of_vectors[phase, :, None] * ms_on_vectors)
                flops_ms = torch.minimum(under(on_tensors[:, phase]) * ms_per_flop, under(apart[:, phase]) * ms_apart)
                flops_ms = flops_ms + under(fallback[:, phase]) * ms_apart
                bytes_ms = (under(byte[:, phase]) + c.is_autocast * under(widened[:, phase])) * ms_per_byte
                if phase < 2:
                    bytes_ms = bytes_ms + scores[0, :, None] * (passes[phase] * is_unfused)
                part = torch.maximum(flops_ms, bytes_ms) + overlap * torch.minimum(flops_ms, bytes_ms)
                part = (part + rows.converted[phase, :, None] * converting) * factor[phase]
                least = flops[phase, :, None] * bound
                if phase < len(compulsory):
                    least = torch.maximum(least, moved[phase, :, None] * compulsory[phase])
                part = torch.maximum(part, least) + (Roofline.SERIAL_MS * rows.serial[phase] + tails[phase])[:, None]
                if phase != 1:
                    part = part + cast_ms
                if phase == PHASES - 1:
                    part = part + roofline.summing_ms(rows.summed_rows[0, :, None] * c.batch, c.torch, c.boost_mhz)
                is_run = 1.0 if phase == FORWARD else is_train
                if phase < PARTS - PHASES:
                    norm_bytes = normalisation.MOVED[phase] * norm_elements
                    of_block = in_planes * torch.exp(-roofline.norm_rate[phase]) / (c.boost_mhz * 1e3 * FP32_BYTES)
                    of_byte = torch.maximum(torch.exp(roofline.norm_cost[phase]) * ms_per_byte * tiles, per_block * of_block)
                    cost_ms = norm_bytes * of_byte * factor[PHASES + phase]
                    is_folded = c.is_compiled * c.is_inference
                    norm_ms = torch.maximum(cost_ms, norm_bytes * (Roofline.NORM_COMPULSORY * (1 - is_folded) * ms_per_byte))
                    norm_is_run = is_train + c.is_inference * NORM_IN_EVALUATION if phase == FORWARD else is_train
                    parts.append((part * is_run + norm_ms * norm_is_run) * rows.count[0, :, None])
                else:
                    parts.append(part * is_run * rows.count[0, :, None])
            found.append(Times(parts, sum(parts).sum(dim=0), *self._else(member.step, launches, parameters, gbps, c)))
        return found

    @staticmethod
    def _else(step: Step, launches: list[Tensor], parameters: Tensor, gbps: Tensor,
              c: DecodedInputs) -> tuple[Tensor, Tensor]:
        is_train = 1 - c.is_inference
        traffic = (step.SGD_BYTES + (step.ADAM_BYTES - step.SGD_BYTES) * c.is_adam) * is_train
        optimizer_ms = parameters * step.optimizer_passes() * traffic / gbps
        forward, rest = (x[:, None] for x in launches)
        always, compiled, composed, cast = (forward + rest * is_train).unbind(0)
        count = (always - compiled * c.is_compiled + composed * (1 - c.is_fused)
                 + cast * (c.is_autocast * (1 - c.is_compiled)))
        usual_ms = step.launch_ms(c.is_inference)
        return optimizer_ms, count * (usual_ms + c.is_known_host * (c.launch_ms - usual_ms))

    @staticmethod
    def fourths(times: Times) -> tuple[Tensor, list[Tensor]]:
        """The step, and the fourth powers of GPU time and host time relative to the longer one: smooth_maximum."""
        both = (times.operators + times.optimizer, times.host)
        longest = torch.maximum(*both) + 1e-6
        powers = [((t / longest) ** 2) ** 2 for t in both]
        return longest * torch.sqrt(torch.sqrt(sum(powers))), powers

    def parts(self, rows: Rows, times: list[Times]) -> Tensor:
        """[10, C]: the GPU's time forward and backward by kind of work (matmuls, attention, convolutions, others), the
        optimizer's and the host's. Members are averaged as fractions of steps."""
        matmul, convolution = rows.is_matmul[0], rows.is_convolution[0]
        attention = ((rows.scores[0] + rows.step_scores[0]) * MOST).clamp(0, 1) * (1 - convolution)
        kinds = torch.stack([matmul * (1 - convolution) * (1 - attention), matmul * attention, matmul * convolution, 1 - matmul])
        fractions, logs = [], []
        for of_member in times:
            step_ms, _ = self.fourths(of_member)
            forward, *backward = of_member.parts
            found = torch.cat([kinds @ forward, kinds @ sum(backward), of_member.optimizer[None], of_member.host[None]])
            fractions.append(found / step_ms)
            logs.append(torch.log(step_ms))
        return sum(fractions) / len(logs) * torch.exp(sum(logs) / len(logs))

    def answer(self, rows: Rows, encoding_job: Tensor, c: DecodedInputs, times: list[Times]) -> tuple[Tensor, Tensor, Tensor]:
        """[3, C], [causes, C] and parts()"""
        fractions, logs, waits = [], [], []
        for of_member in times:
            sums = torch.cat([rows.kinds, rows.profile]) @ sum(of_member.parts)
            fractions.append(sums / of_member.operators.clamp(min=LEAST_MS))
            step_ms, powers = self.fourths(of_member)
            logs.append(torch.log(step_ms))
            waits.append(powers[1] / sum(powers).clamp(min=LEAST_MS))
        middle, fraction, waiting = (sum(x) / len(x) for x in (logs, fractions, waits))
        _, forward, rest, load = encoding_job.clamp(min=0).split((1, LAUNCH_KINDS, LAUNCH_KINDS, 1))
        flops = ((rows.flops * c.batch + rows.step_flops) * rows.count).sum()
        trained_on = self.shipped.trained_on
        outside = trained_on(fraction[4], load, flops / (forward[:1] + rest[:1]).clamp(min=1), c)
        distance, unlike = self.shipped.distance_model.distances(fraction[len(rows.kinds):])
        is_elsewhere = torch.maximum(trained_on.is_elsewhere(c), unlike)
        software = (unmeasured_software(c.torch, c.is_compiled, unlike) + fraction[5] * c.is_nhwc
                    + c.is_inference * (1 - c.is_autocast))
        waiting = waiting * (1 - KNOWN_HOST_SAVES * c.is_known_host)
        x = interval_features(fraction[:4], c.is_nhwc, software, is_elsewhere, trained_on.is_new_gpu(c), waiting, distance)
        low, high = self.shipped.interval(x, outside)
        return torch.exp(torch.stack([middle - low, middle, middle + high])), outside, self.parts(rows, times)

    def forward(self, encoding_rows: Tensor, encoding_work: Tensor, encoding_cost: Tensor, encoding_job: Tensor,
                configuration: Tensor, gpu: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        rows, c = Rows.read(encoding_work), decode_inputs.read(configuration, gpu)
        return self.answer(rows, encoding_job, c, self.times(encoding_rows, rows, encoding_cost, encoding_job, c))


class Whole(nn.Module):
    def __init__(self, shipped: Shipped) -> None:
        super().__init__()
        self.encode, self.evaluate = Encode(shipped), Evaluate(shipped)

    def forward(self, operator_type: Tensor, operator_setting: Tensor, operator_load: Tensor, operator_count: Tensor,
                configuration: Tensor, gpu: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        encoding = self.encode(operator_type, operator_setting, operator_load, operator_count)
        step_ms, outside, part_ms = self.evaluate(*encoding, configuration[:, None], gpu[:, None])
        return step_ms[:, 0], outside[:, 0], part_ms[:, 0]


class Explain(Whole):
    """Divides a step among operators: each one's GPU time, the GPU's wait for the host, and the host's time, which
    overlaps in part. All but the last add up to the median step_ms. The runtime estimates waiting for other GPUs.
    Several members are averaged as fractions of steps."""

    def forward(self, operator_type: Tensor, operator_setting: Tensor, operator_load: Tensor, operator_count: Tensor,
                configuration: Tensor, gpu: Tensor) -> tuple[Tensor, Tensor]:
        encoding = self.encode(operator_type, operator_setting, operator_load, operator_count)
        rows, c = Rows.read(encoding[1]), decode_inputs.read(configuration[:, None], gpu[:, None])
        logs, of_phases, of_others = [], [], []
        for times in self.evaluate.times(encoding[0], rows, *encoding[2:], c):
            step_ms, _ = self.evaluate.fourths(times)
            waiting_ms = (step_ms - times.operators - times.optimizer).clamp(min=0)
            logs.append(torch.log(step_ms))
            of_phases.append(torch.cat(times.parts, dim=1) / step_ms)
            of_others.append(torch.cat([times.optimizer, waiting_ms, torch.zeros_like(step_ms), times.host]) / step_ms)
        median_ms = torch.exp(sum(logs) / len(logs))
        return sum(of_phases) / len(logs) * median_ms, sum(of_others) / len(logs) * median_ms
