"""Predicts published peaks, and summarises the errors by source."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import re
import sys
import warnings
from pathlib import Path
from typing import Any, Mapping, Sequence

from mdot_lab.checks.memory import published, table
from mdot_lab.checks.memory.published.megatron_networks import Language, Network
from mdot_lab.checks.memory.published.point import GIB, Model, Point

TRACED_BATCH = 2


@dataclasses.dataclass
class Row:
    point: Point
    predicted_bytes: int = 0
    note: str = ""
    """The reason, if there is no prediction."""
    fits: bool | None = None
    """The answer for the GPU; None: no prediction."""

    @property
    def ratio(self) -> float | None:
        return self.predicted_bytes / self.point.measured_bytes if self.predicted_bytes and self.point.measured_bytes else None


def _has(name: str, value: Any) -> bool:
    from mdot.option_words import WORDS
    from mdot.options import CHOICES, Options

    if name != "batch" and name not in Options.__annotations__:
        return False
    return name not in CHOICES or value in CHOICES[name] or value in WORDS[name]


def expressible(options: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The options for this mdot, and those that it lacks. A fused optimizer becomes the plain one if
    this mdot treats implementations alike."""
    known, lacking = {}, []
    for name, value in options.items():
        if name == "optimizer" and not _has(name, value):
            value = value.removesuffix("-fused")
        if _has(name, value):
            known[name] = value
        else:
            lacking.append(f"{name}={value}")
    return known, lacking


def _read(model: Model | Network):
    import mdot

    from mdot_lab.checks.memory import building
    from mdot_lab.checks.memory.networks.case import LabelLoss, integers
    from mdot_lab.checks.memory.networks.language import build
    from mdot_lab.checks.memory.published import programs
    from mdot_lab.checks.memory.step import Step

    def make() -> Step:
        if isinstance(model, Network):
            tokens = integers(TRACED_BATCH, model.sequence)
            return Step(Language(model), (tokens, tokens), {})
        network = build(f"{model.kind}{'LMHeadModel' if model.kind == 'GPT2' else 'ForCausalLM'}", f"{model.kind}Config",
                        {"max_position_embeddings": model.sequence, **dict(model.values)}, None)
        if model.loss.startswith("shifted") and model.type == "float32":
            programs.attend_in_half(network)
        if model.lora_rank:
            import peft

            network = peft.get_peft_model(network, peft.LoraConfig(
                r=model.lora_rank, lora_dropout=model.lora_dropout, target_modules=list(model.lora_modules)))
        if model.keeps_operands:
            programs.keep_operands(network)
        if model.saves_every_second_product:
            programs.save_every_second_product(network.model.layers)
        base = network.get_base_model() if model.lora_rank else network
        if model.loss in programs.LOSSES:
            base.loss_function = programs.LOSSES[model.loss]
        tokens = integers(TRACED_BATCH, model.sequence)
        return Step(programs.Autocast(LabelLoss(network)) if model.is_prepared or model.has_autocast else LabelLoss(network), (), {"input_ids": tokens, "labels": tokens})

    is_half = isinstance(model, Model) and model.type == "bfloat16"
    step = building.on_meta(make, "bf16" if is_half else "fp32")
    if isinstance(model, Model) and model.is_prepared:
        programs.prepare(step.module)
    if isinstance(model, Model) and model.has_full_adapters:
        programs.widen_adapters(step.module)
    return mdot.Job.from_torch(step.module, step.arguments, step.keywords, batch=TRACED_BATCH)


class Jobs:
    """The jobs of models, kept in memory, and in a folder if there is one."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.known: dict[Model | Network, Any] = {}

    def get(self, model: Model | Network):
        import mdot

        if model not in self.known:
            path = None
            if self.folder is not None:
                self.folder.mkdir(parents=True, exist_ok=True)
                named = repr(model) + "fp32" * getattr(model, "has_full_adapters", False)
                path = self.folder / f"{hashlib.sha256(named.encode()).hexdigest()[:16]}.job"
            if path is not None and path.exists():
                self.known[model] = mdot.Job.load(path)
            else:
                self.known[model] = _read(model)
                if path is not None:
                    self.known[model].save(path)
        return self.known[model]


def predict(point: Point, jobs: Jobs) -> Row:
    """The predicted counterpart of the point's count."""
    import mdot

    if point.missing or point.model is None:
        return Row(point, note=point.missing)
    options, lacking = expressible({**point.options, **point.for_memory})
    if lacking:
        return Row(point, note=f"not expressible: {', '.join(lacking)}")
    options.update({name: value for name, value in point.optional.items() if _has(name, value)})
    try:
        answer = mdot.predict(jobs.get(point.model), point.gpu, **options)
    except Exception as error:  # A refusal by mdot or a reader's failure is a table row.
        return Row(point, note=f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
    return Row(point, int(counted(answer, point.counted) + point.beside), fits=answer.fits)


def counted(answer, way: str) -> float:
    """Bytes as the source counts them. The context and NCCL's buffers are outside of PyTorch's allocator, and nvidia-smi shows
    them."""
    if way == "last stage":
        return answer.last_stage_bytes
    if way == "nvidia-smi":
        return answer.reserved_bytes
    if way == "reserved":
        return answer.reserved_bytes - answer.context_bytes - answer.collective_bytes
    return answer.peak_memory_bytes


def run(folder: Path, only: str, jobs_folder: Path | None) -> list[Row]:
    """The rows of the points whose "source: name" matches."""
    points = [point for point in published.read(folder) if re.search(only, f"{point.source}: {point.name}")]
    jobs, rows = Jobs(jobs_folder), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for count, point in enumerate(points, 1):
            row = predict(point, jobs)
            rows.append(row)
            result = f"{row.ratio:.3f}" if row.ratio is not None else row.note or f"fits: {row.fits}"
            print(f"{count}/{len(points)} {point.source}: {point.name}: {result}", file=sys.stderr, flush=True)
    return rows


def write(path: Path, rows: Sequence[Row]) -> None:
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(["source", "row", "counted", "measured_gib", "predicted_gib", "ratio", "fits", "note"])
        for row in rows:
            predicted = f"{row.predicted_bytes / GIB:.3f}" if row.predicted_bytes else ""
            ratio = "" if row.ratio is None else f"{row.ratio:.4f}"
            writer.writerow([row.point.source, row.point.name, row.point.counted, f"{row.point.measured_bytes / GIB:.3f}",
                             predicted, ratio, "" if row.fits is None else row.fits, row.note])


def summary(rows: Sequence[Row]) -> str:
    """Errors by source and way of counting, reasons for rows without a prediction, and every row's ratio."""
    known = [(row, ratio) for row in rows if (ratio := row.ratio) is not None]
    asked = [row for row in rows if row.fits is not None]
    sources = dict.fromkeys((row.point.source, row.point.counted) for row in rows)
    lines = [table.HEADING, table.line("all", [ratio for _, ratio in known])]
    for source, counted in sources:
        lines.append(table.line(f"{source}, {counted}", [ratio for row, ratio in known
                                                         if (row.point.source, row.point.counted) == (source, counted)]))
    right = [row.fits != row.point.is_out_of_memory for row in asked]
    lines.append(f"\n\"fits\" is right in {sum(right)} of {len(right)} rows, {sum(row.point.is_out_of_memory for row in asked)} of them out of memory.")
    reasons: dict[str, int] = {}
    for row in rows:
        if row.fits is None:
            reason = f"{row.point.source}: {row.note}"
            reasons[reason] = reasons.get(reason, 0) + 1
    if reasons:
        lines += ["", f"{sum(reasons.values())} rows without a prediction:"]
        lines += [f"  {count:3} x {reason}" for reason, count in reasons.items()]
    lines += ["", "Predicted / measured:"]
    for row, ratio in known:
        lines.append(f"  {ratio:5.2f}  {row.point.source}: {row.point.name}: {row.predicted_bytes / GIB:.1f} / "
                     f"{row.point.measured_bytes / GIB:.1f} GiB")
    return "\n".join(lines)
