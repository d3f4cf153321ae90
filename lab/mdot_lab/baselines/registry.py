"""The baselines by name. Each is a module with the tuned SETTINGS, the settings TRIED, and `predict`; networks have a `form`
instead."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np

from mdot_lab.baselines import (boosting, dnnabacus, dnnperf, driple, ets, habitat, horus, li, mdot_as_published, network_fitting,
                                     neusight, pei, perfnet, seer, seer_analytic, trees)
from mdot_lab.baselines.training_folds import SPLITS
from mdot_lab.predictor import splits
from mdot_lab.predictor.dataset import Dataset


@dataclass(frozen=True)
class Baseline:
    name: str
    title: str
    module: ModuleType | type
    splits: tuple[str, ...] = SPLITS
    """The splits that the baseline runs on."""

    def settings(self, seed: int) -> Any:
        """The tuned settings with this seed. Methods without chance have none."""
        own = self.module.SETTINGS
        if hasattr(own, "schedule"):
            return replace(own, schedule=replace(own.schedule, seed=seed))
        return replace(own, seed=seed) if isinstance(own, boosting.Settings) else own

    def predict(self, data: Dataset, train: np.ndarray, test: np.ndarray, settings: Any) -> np.ndarray:
        """Milliseconds of `test`, by the method fitted to `train`."""
        if hasattr(self.module, "form"):
            return network_fitting.predict(self.module.form(data, train, settings), data, train, test)
        return self.module.predict(data, train, test, settings)


BASELINES = (
    Baseline("horus", "after Horus: boosted trees on sums over the graph", horus),
    Baseline("dnnabacus", "DNNAbacus: boosted trees on counts of successive types", dnnabacus),
    Baseline("dnnabacus searched", "DNNAbacus: the same inputs and a searched model", dnnabacus.Searched),
    Baseline("pei", "after Pei et al.: a linear model of layers", pei),
    Baseline("li", "after Li, Sun and Jog: linear models by kind of kernel", li),
    Baseline("seer analytic", "after SEER: three classes of kernels", seer_analytic),
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
