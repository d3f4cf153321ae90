"""Predicted times and memory in Ray: trials of Tune on the GPU type where they end first, and actors on the part of a GPU that
they need (README.md)."""

from __future__ import annotations

import dataclasses
import math
import threading
import uuid
import weakref
from typing import Any, Callable, Mapping, Union

import mdot
import ray
from mdot_schedulers import Answer, Place, Request, Site, Unpredictable, decide, predict_here
from mdot_schedulers.request import InvalidRequest, whole

Configured = Union[str, Callable[[Mapping[str, Any]], str]]
"""Options as text, `batch=64,steps=1000`, or a function that makes the text from a trial's config."""

LABEL = "accelerator_type:"
NO_TYPES = "no node states an accelerator type with enough GPUs"
SHARE = 0.001
"""Amount of a node's accelerator label that a trial takes, as Ray's own `accelerator_type` does."""


def cluster_gpus() -> dict[str, int]:
    """GPUs of the running cluster by Ray's accelerator types."""
    found: dict[str, int] = {}
    for node in ray.nodes():  # type: ignore[no-untyped-call]
        resources = node.get("Resources", {}) if node.get("Alive") else {}
        for name in resources:
            if name.startswith(LABEL) and resources.get("GPU", 0) >= 1:
                found[name[len(LABEL) :]] = found.get(name[len(LABEL) :], 0) + int(resources["GPU"])
    return found


def _gpu(site: Site, accelerator: str) -> str:
    place = next((place for place in site.places if place.name == accelerator), None)
    return place.gpu if place is not None else accelerator


@dataclasses.dataclass(frozen=True)
class Choice:
    """Where a trial runs. `accelerator` is None if there is no prediction, and `words` then has the reason."""

    accelerator: str | None
    seconds: float
    words: str


class TrialResources:
    """Resources of Tune's trials: `tune.with_resources(train, TrialResources(job, options, gpus=1))`.

    Tune calls the object with each trial's config. It predicts the trial on each GPU type where it fits, and chooses the type
    on which the trial ends first behind the trials that were placed there. A trial without a prediction may run anywhere.
    """

    def __init__(
        self,
        job: mdot.Job | Callable[[Mapping[str, Any]], mdot.Job],
        options: Configured,
        *,
        gpus: int = 1,
        cpus: float = 1,
        available: Mapping[str, int] | None = None,
        site: Site | None = None,
        predictor: mdot.Predictor | None = None,
    ) -> None:
        """`available` are GPUs by Ray's accelerator types; by default those of the running cluster. Raises InvalidRequest for
        another number of GPUs or CPUs of a trial."""
        whole("gpus", gpus, 1 << 16)
        if isinstance(cpus, bool) or not isinstance(cpus, (int, float)) or not 0 <= cpus < math.inf:
            raise InvalidRequest(f"cpus must be a number from 0 on, not {str(cpus)[:40]!r}")
        self._job = job
        self._options = options
        self._gpus = gpus
        self._cpus = cpus
        self._available = available
        self._site = site or Site()
        self._predictor = predictor
        self._lock = threading.Lock()
        self._token = uuid.uuid4().hex
        _live[self._token] = self
        self._load_s: dict[str, float] = {}
        self.choices: list[Choice] = []
        """The choices in the order of the trials."""

    def __call__(self, config: Mapping[str, Any]) -> dict[str, float]:
        choice = self.choose(config)
        resources: dict[str, float] = {"CPU": self._cpus, "GPU": self._gpus}
        if choice.accelerator is not None:
            resources[LABEL + choice.accelerator] = SHARE
        return resources

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        """Tune copies trainables within its process, and the copy is the same object. Elsewhere it has no use."""
        return _find, (self._token,)

    def choose(self, config: Mapping[str, Any]) -> Choice:
        """Places a trial, and counts its time. Raises InvalidRequest for invalid options."""
        request = Request.parse(self._options(config) if callable(self._options) else self._options)
        if request.steps == 0 and request.epochs == 0:
            raise InvalidRequest("a time requires steps, or epochs and dataset")
        job = self._job if isinstance(self._job, mdot.Job) else self._job(config)
        available = self._available if self._available is not None else cluster_gpus()
        slots = {name: count // self._gpus for name, count in available.items() if count >= self._gpus}
        answers = predict_here(job, request, [_gpu(self._site, name) for name in slots], self._gpus, 1, self._predictor)
        with self._lock:
            choice = self._place(request, slots, dict(zip(slots, answers)))
            self.choices.append(choice)
            return choice

    def _place(self, request: Request, slots: Mapping[str, int], answers: Mapping[str, Answer | str]) -> Choice:
        fitting = {name: a for name, a in answers.items() if isinstance(a, Answer) and a.fits}
        if not fitting:
            reasons = [a if isinstance(a, str) else f"the job exceeds the memory of {name}" for name, a in answers.items()]
            return Choice(None, 0, f"mdot: no prediction: {reasons[0] if reasons else NO_TYPES}")
        seconds = {name: 1e-3 * request.step_count(a.samples) * a.step_ms for name, a in fitting.items()}
        best = min(fitting, key=lambda name: (self._load_s.get(name, 0) / slots[name] + seconds[name], seconds[name]))
        self._load_s[best] = self._load_s.get(best, 0) + seconds[best]
        decision = decide(
            self._site, request, [Place(best, fitting[best].gpu)], [fitting[best]], gpus=self._gpus, may_choose=False
        )
        return Choice(best, seconds[best], decision.words)


_live: weakref.WeakValueDictionary[str, TrialResources] = weakref.WeakValueDictionary()


def _find(token: str) -> TrialResources | None:
    return _live.get(token)


def actor_options(
    job: mdot.Job,
    options: str = "mode=inference",
    *,
    available: Mapping[str, int] | None = None,
    site: Site | None = None,
    predictor: mdot.Predictor | None = None,
) -> dict[str, Any]:
    """Options of an actor by its predicted memory: `Actor.options(**actor_options(job, "batch=8,mode=inference"))`.

    The actor gets the smallest part of a GPU such that all actors of this kind on a GPU fit its memory, at the upper end of the
    interval, and the GPU type with the most actors per GPU; of several such types, the fastest. Raises Unpredictable if it
    fits no type.
    """
    request = Request.parse(options)
    used = site or Site()
    names = list(available if available is not None else cluster_gpus())
    answers = predict_here(job, request, [_gpu(used, name) for name in names], 1, 1, predictor)
    faults = [answer for answer in answers if isinstance(answer, str)]
    counts = {
        name: (math.floor(a.usable_bytes / a.reserved_bytes), -a.step_ms)
        for name, a in zip(names, answers)
        if isinstance(a, Answer) and 0 < a.reserved_bytes <= a.usable_bytes
    }
    if not counts:
        reason = "the actor exceeds the memory of every GPU of the cluster" if names else NO_TYPES
        raise Unpredictable(faults[0] if faults else reason)
    best = max(counts, key=lambda name: counts[name])
    return {"num_gpus": _part(counts[best][0]), "accelerator_type": best}


def _part(count: int) -> float:
    """The smallest part of a GPU, in Ray's unit of 0.0001, of which at most `count` fit, and at least as many as possible.

    Ray cuts off `part * 10000`: 0.3334 becomes 3333 units, of which three fit. Such parts are passed over.
    """
    for fitting in range(min(count, 10000), 0, -1):
        for units in range(10000 // (fitting + 1) + 1, 10000 // fitting + 1):
            if int(units / 10000 * 10000) == units:
                return units / 10000
    raise AssertionError("a whole GPU is a part")
