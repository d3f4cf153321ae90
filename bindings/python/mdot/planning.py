"""Plans: which GPUs, how many, and which parallelism a training needs, and what it costs (mdot_plan.h)."""

from __future__ import annotations

import ctypes
import dataclasses
import os
from typing import TYPE_CHECKING, Any, Mapping, Sequence, Union

from mdot.calibration import Calibration
from mdot.configuration import OPTIONS, Configuration, _number, fill
from mdot.gpus import GPU, gpu as find_gpu
from mdot.library import structs as c
from mdot.library.errors import InvalidArgumentError, require
from mdot.library.libraries import call, encode_text, runtime
from mdot.options import CHOICES, ROWS
from mdot.prediction import Prediction, of_struct
from mdot.predictor import JobLike, Predictor, _Context, _shipped, as_job, configure

if TYPE_CHECKING:
    import pandas

Price = Union[float, Mapping[str, float]]
"""The price of a GPU for an hour, in any currency: one number, or one for each GPU model."""

_DERIVED = ("gpus", "nodes", "micro_batches", "data_parallel")


@dataclasses.dataclass(frozen=True)
class Training:
    """A whole training (mdot_plan.h, mdot_training_run). 0 means "none"."""

    samples: float
    evaluation_samples: float = 0
    evaluation_steps: float = 0
    checkpoint_bytes: float = 0
    storage_gbps: float = 0
    checkpoint_minutes: float = 0
    gpu_failure_hours: float = 0
    interruptions_per_hour: float = 0
    restart_minutes: float = 0
    startup_minutes: float = 0
    grid_grams_per_kwh: float = 0
    deadline_hours: float = 0
    budget: float = 0


@dataclasses.dataclass(frozen=True)
class TrainingCost:
    """Time and cost of a whole training (mdot_plan.h, mdot_training_cost)."""

    steps: float
    hours: float
    lower_hours: float
    upper_hours: float
    gpu_hours: float
    cost: float
    lower_cost: float
    upper_cost: float
    kwh: float
    co2_kg: float
    step_hours: float
    evaluation_hours: float
    checkpoint_hours: float
    failure_hours: float
    startup_hours: float
    checkpoint_minutes: float
    in_time: float
    in_budget: float


def cost_of_struct(total: c.mdot_training_cost) -> TrainingCost:
    return TrainingCost(**{f.name: getattr(total, f.name) for f in dataclasses.fields(TrainingCost)})


@dataclasses.dataclass(frozen=True)
class Layout:
    """A way to train the job, with its prediction and, for a whole training, its cost."""

    prediction: Prediction
    samples: float
    """Samples of an optimizer step over all GPUs."""
    pipeline_share: float
    """Part of the step in which a pipeline stage waits for others."""
    cost: TrainingCost | None

    @property
    def configuration(self) -> Configuration:
        """How the layout trains."""
        return self.prediction.configuration

    @property
    def money(self) -> float:
        """The cost, or GPU-hours without a price. It takes a whole training."""
        assert self.cost is not None
        return self.cost.cost or self.cost.gpu_hours


class Plan(Sequence[Layout]):
    """The fastest layouts of each GPU model and number of GPUs, in this order."""

    def __init__(self, layouts: Sequence[Layout], info: c.mdot_plan_info, confidence: float) -> None:
        self._layouts = list(layouts)
        self.confidence = confidence
        self.priced, self.too_large = int(info.priced), int(info.too_large)
        """Layouts that fit the memory, and layouts that exceed it."""
        self.indivisible, self.refused = int(info.indivisible), int(info.refused)
        """Layouts that do not divide the global batch, and layouts that the job or the GPU cannot run."""

    def __getitem__(self, index: Any) -> Any:
        return self._layouts[index]

    def __len__(self) -> int:
        return len(self._layouts)

    @property
    def front(self) -> list[Layout]:
        """The layouts that no other beats in both time and cost."""

        def is_beaten(one: Layout) -> bool:
            assert one.cost is not None
            return any(
                other.cost is not None
                and (other.cost.hours, other.money) != (one.cost.hours, one.money)
                and other.cost.hours <= one.cost.hours
                and other.money <= one.money
                for other in self._layouts
            )

        return [one for one in self._layouts if one.cost is not None and not is_beaten(one)]

    @property
    def recommended(self) -> Layout | None:
        """The cheapest layout that meets deadline and budget with `confidence`, or else the one that most likely meets
        them. None without a whole training, or if no layout fits."""

        def chance(one: Layout) -> float:
            return min(one.cost.in_time, one.cost.in_budget) if one.cost is not None else 0

        priced = [one for one in self._layouts if one.cost is not None]
        eligible = [one for one in priced if chance(one) >= self.confidence]
        if eligible:
            return min(eligible, key=lambda one: one.money)
        return max(priced, key=chance, default=None)

    def records(self) -> list[dict[str, Any]]:
        """A flat dictionary for each layout: options, prediction, time and cost."""
        rows = []
        for one in self._layouts:
            row: dict[str, Any] = {name: getattr(one.configuration, name) for name in OPTIONS}
            row["gpu"] = one.configuration.gpu_name
            row.update({f.name: getattr(one.prediction, f.name) for f in dataclasses.fields(Prediction) if f.name != "beside"})
            del row["configuration"]
            row.update(samples=one.samples, pipeline_share=one.pipeline_share)
            row.update(dataclasses.asdict(one.cost) if one.cost is not None else {})
            rows.append(row)
        return rows

    def to_pandas(self) -> pandas.DataFrame:
        """The records as a DataFrame. Requires pandas."""
        frame: pandas.DataFrame = require("pandas").DataFrame.from_records(self.records())
        return frame


def _axes(tried: Mapping[str, Sequence[Any]]) -> tuple[Any, list[Any]]:
    rows = {row.keyword: row for row in ROWS}
    axes, keep = (c.mdot_plan_axis * max(len(tried), 1))(), []
    for i, (name, values) in enumerate(tried.items()):
        if name not in rows or name in _DERIVED:
            known = ", ".join(row for row in rows if row not in _DERIVED)
            raise InvalidArgumentError(f"an option to try is {name!r}; accepted: {known}")
        numbers = [_number(rows[name], value) for value in values]
        array = (ctypes.c_double * max(len(numbers), 1))(*numbers)
        keep.append(array)
        axes[i] = c.mdot_plan_axis(encode_text(rows[name].field), array, len(numbers))
    return axes, keep


def _configuration(gpu: str | GPU, found: c.mdot_configuration) -> Configuration:
    options: dict[str, Any] = {}
    for row in ROWS:
        value = getattr(found, row.field)
        if row.kind == "choice":
            value = CHOICES[row.keyword][value]
        elif row.kind == "version":
            value = f"{value // 100}.{value % 100}" if value else None
        elif row.kind == "flag":
            value = bool(value)
        options[row.keyword] = value
    options["link"] = found.link_gbps or CHOICES["link"][found.link] if found.link or found.link_gbps else None
    return Configuration(gpu=gpu, **options)


def _price_of(price: Price, gpu: str) -> float:
    if isinstance(price, Mapping):
        named = {find_gpu(name).name: value for name, value in price.items()}
        if gpu not in named:
            raise InvalidArgumentError(f"there is no price of {gpu}: add it to price")
        return named[gpu]
    return price


def search(
    predictor: Predictor,
    job: JobLike,
    gpu: str | GPU | Sequence[str | GPU],
    gpus: int | Sequence[int],
    *,
    global_batch: int = 0,
    node_gpus: int = 8,
    kept: int = 1,
    tried: Mapping[str, Sequence[Any]] | None = None,
    training: Training | None = None,
    price: Price = 0,
    confidence: float = 0.8,
    threads: int | None = None,
    calibration: Calibration | None = None,
    **options: Any,
) -> Plan:
    """Searches layouts. `plan` describes the arguments."""
    read = as_job(job)
    models: list[Any] = list(gpu) if isinstance(gpu, (list, tuple)) else [gpu]
    sizes = [gpus] if isinstance(gpus, int) else list(gpus)
    names = [model if isinstance(model, GPU) else find_gpu(model) for model in models]
    keep: list[Any] = []
    base = c.mdot_configuration()
    fill(base, configure(read, models[0] if models else "", 1, options), keep)
    base.gpu, base.gpu_spec = None, None
    array = (c.mdot_gpu * max(len(names), 1))(*[name._as_struct() for name in names])
    axes, values = _axes(tried or {})
    keep += values
    counts = (ctypes.c_uint32 * max(len(sizes), 1))(*sizes)
    space = c.new(
        c.mdot_plan_space,
        base=ctypes.pointer(base),
        gpus=array,
        gpu_model_count=len(names),
        sizes=counts,
        size_count=len(sizes),
        node_gpus=node_gpus,
        global_batch=global_batch,
        axes=axes,
        axis_count=len(tried or {}),
        kept=kept,
        calibration=None if calibration is None else calibration._handle,
    )
    count = threads or len(os.sched_getaffinity(0))
    contexts = [_Context(predictor._handle, 1) for _ in range(count)]
    handles = (ctypes.c_void_p * count)(*[context.handle for context in contexts])
    plan = ctypes.c_void_p()
    call(runtime().mdot_plan_create, handles, count, read._handle, ctypes.byref(space), ctypes.byref(plan))
    try:
        return _read_plan(plan, models, training, price, confidence)
    finally:
        runtime().mdot_plan_destroy(plan)


def _read_plan(
    plan: ctypes.c_void_p, models: Sequence[str | GPU], training: Training | None, price: Price, confidence: float
) -> Plan:
    info = c.new(c.mdot_plan_info)
    runtime().mdot_plan_get_info(plan, ctypes.byref(info))
    layouts: list[Layout] = []
    refused: list[InvalidArgumentError] = []
    for i in range(info.layout_count):
        found = c.new(c.mdot_plan_layout)
        runtime().mdot_plan_get_layout(plan, i, ctypes.byref(found))
        prediction = of_struct(_configuration(models[found.gpu_model], found.configuration), found.prediction)
        cost = None
        if training is not None:
            name = prediction.configuration.gpu_name
            name = find_gpu(name).name if isinstance(models[found.gpu_model], str) else name
            run = c.new(c.mdot_training_run, price=_price_of(price, name), **dataclasses.asdict(training))
            total = c.new(c.mdot_training_cost)
            try:
                call(runtime().mdot_training_cost_of, ctypes.byref(run), ctypes.byref(found), ctypes.byref(total))
            except InvalidArgumentError as fault:  # failures leave no time for progress
                refused.append(fault)
                continue
            cost = cost_of_struct(total)
        layouts.append(Layout(prediction, found.samples, found.pipeline_share, cost))
    if refused and not layouts:
        raise refused[0]
    info.refused += len(refused)
    return Plan(layouts, info, confidence)


def plan(
    job: JobLike,
    gpu: str | GPU | Sequence[str | GPU],
    gpus: int | Sequence[int],
    **arguments: Any,
) -> Plan:
    """Searches layouts with the package's predictor, which is opened once: `plan(job, ["H100", "A100-80GB"], [8, 16, 32],
    global_batch=512, training=mdot.Training(samples=4e6, deadline_hours=168), price={"H100": 2.5, "A100-80GB": 1.6})`.

    `gpu` are GPU models and `gpus` numbers of GPUs. `global_batch` are the samples of an optimizer step; 0 leaves them
    to each layout. `tried` lists values of options to try, for example {"precision": ["mixed-bf16", "fp8"]}; other
    options are those of `Configuration`, and those left out that concern parallelism, ZeRO, recomputation and
    micro-batch are searched. `calibration` corrects each prediction. `kept` is the number of layouts to keep for each model and size.
    """
    return search(_shipped(), job, gpu, gpus, **arguments)
