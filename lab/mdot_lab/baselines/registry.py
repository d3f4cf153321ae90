"""The baselines by name. Each is a module with `predict`, the tuned SETTINGS, and the settings TRIED."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

from mdot_lab.baselines import (dnnabacus, dnnperf, driple, ets, habitat, horus, li, mdot_as_published, neusight, pei,
                                     perfnet, seer, seer_analytic, trees)
from mdot_lab.baselines.training_folds import SPLITS
from mdot_lab.predictor import splits


@dataclass(frozen=True)
class Baseline:
    name: str
    title: str
    module: ModuleType | type
    splits: tuple[str, ...] = SPLITS
    """The splits that the baseline runs on."""


BASELINES = (
    Baseline("horus", "Horus: boosted trees on sums over the graph", horus),
    Baseline("dnnabacus", "DNNAbacus: boosted trees on counts of successive types", dnnabacus),
    Baseline("pei", "after Pei et al.: a linear model of layers", pei),
    Baseline("li", "after Li, Sun and Jog: linear models by kind of kernel", li),
    Baseline("seer analytic", "SEER: three classes of kernels", seer_analytic),
    Baseline("seer", "after SEER: boosted trees on sums by kind of kernel", seer),
    Baseline("trees", "boosted trees on sums by kind and counts by type", trees),
    Baseline("perfnet", "PerfNet: one perceptron per operator, summed", perfnet),
    Baseline("perfnet 2", "PerfNetV2: convolutions over an operator's numbers, summed", perfnet.Version2),
    Baseline("neusight", "NeuSight: tiles, waves and their utilisation", neusight),
    Baseline("habitat", "Habitat: scaled from other GPU models", habitat, (splits.GPUS,)),
    Baseline("ets", "ETS: an LSTM over windows of operators", ets),
    Baseline("dnnperf", "DNNPerf: attention over nodes and edges", dnnperf),
    Baseline("driple", "Driple: graph convolutions, set-to-set pooling", driple),
    Baseline("mdot as published", "MDOT as published: a Transformer over the sequence", mdot_as_published),
)


def by_name(names: list[str] | None) -> list[Baseline]:
    """All baselines, or those with these names."""
    unknown = set(names or ()) - {baseline.name for baseline in BASELINES}
    if unknown:
        raise ValueError(f"no baseline is called {', '.join(sorted(unknown))}; there are "
                         f"{', '.join(baseline.name for baseline in BASELINES)}")
    return [baseline for baseline in BASELINES if not names or baseline.name in names]
