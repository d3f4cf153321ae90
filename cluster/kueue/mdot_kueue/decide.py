"""What an object becomes: the decision for a job, written into a copy of the object."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import re
from typing import Any, Callable, Protocol

from mdot_kueue.flavors import Candidates
from mdot_kueue.objects import (
    GATE,
    JOB,
    MAX_SECONDS,
    OPTIONS,
    PREBUILT,
    Gpus,
    JobObject,
    Kind,
    annotate,
    annotations_of,
    count_gpus,
    gates,
    labels_of,
    member,
    own_limit_s,
    set_gates,
    set_limit,
)
from mdot_schedulers import Decision, Request, Site, Unpredictable, decide, predict_apart

MAX_WORDS = 1000


class Bytes(Protocol):
    def config_map_bytes(self, namespace: str, name: str, key: str | None) -> bytes:
        """The value of a ConfigMap. Raises Unpredictable with the reason."""


def printable(text: str) -> str:
    """One line without control characters, because messages may repeat text of users."""
    return "".join(c if c.isprintable() else "?" for c in text)[:MAX_WORDS]


def read_job(job: JobObject, reader: Bytes) -> bytes:
    """The bytes of the `.job` that the object names, from its own namespace."""
    text = annotations_of(job).get(JOB, "")
    found = re.fullmatch(r"([a-z0-9][a-z0-9.-]{0,252})(?:/([A-Za-z0-9._-]{1,253}))?", text, re.ASCII)
    if found is None:
        raise Unpredictable(f"the annotation {JOB} must be NAME or NAME/KEY of a ConfigMap, not {text[:60]!r}")
    return reader.config_map_bytes(job["metadata"]["namespace"], found[1], found[2])


def decide_for(
    job: JobObject,
    kind: Kind,
    site: Site,
    reader: Bytes,
    candidates_of: Callable[[Gpus], Candidates],
    understatement: float,
    now: datetime.datetime,
) -> tuple[Decision, Gpus]:
    """Predicts the job and decides. Raises Unpredictable or InvalidRequest with the reason."""
    request = Request.parse(annotations_of(job).get(OPTIONS, ""))
    gpus = count_gpus(job, kind, site.gpu_resources)
    candidates = candidates_of(gpus)
    if not candidates.places:
        raise Unpredictable("none of its flavors is a place of the configuration with enough quota")
    names = [place.gpu for place in candidates.places]
    answers = predict_apart(read_job(job, reader), request, names, gpus.count, gpus.nodes, site)
    # a place outside the configuration may be slower, so a limit could end the job too early
    limited = site if candidates.is_complete else dataclasses.replace(site, limits=False)
    if PREBUILT in labels_of(job):  # Kueue ends a job that differs from the Workload that its user made
        limited, candidates = dataclasses.replace(site, limits=False), dataclasses.replace(candidates, may_choose=False)
    decision = decide(
        limited,
        request,
        candidates.places,
        answers,
        gpus=gpus.count,
        own_limit_s=own_limit_s(job, kind),
        may_choose=candidates.may_choose,
        understatement=understatement,
        seconds_left=request.seconds_left(now),
    )
    return decision, gpus


def for_kueue(job: JobObject, kind: Kind, decision: Decision, site: Site) -> JobObject:
    """The object with Kueue's limit and the chosen flavor, without this controller's gate."""
    changed = copy.deepcopy(job)
    if decision.limit_s > 0 and MAX_SECONDS not in labels_of(job):
        set_limit(changed, decision.limit_s, decision.limit_s)
    if decision.is_chosen:
        for spec in count_gpus(changed, kind, site.gpu_resources).specs:
            member(spec, "nodeSelector").update(decision.place.labels)
    annotate(changed, prediction=printable(decision.words), error=None)
    return open_gate(changed)


def for_kubernetes(job: JobObject, kind: Kind, decision: Decision, site: Site) -> JobObject:
    """The object with a deadline, and with a preference for nodes of the best places. A preference excludes no node."""
    changed = copy.deepcopy(job)
    if decision.limit_s > 0:
        for part in kind.deadlines(changed):
            part["activeDeadlineSeconds"] = decision.limit_s
    ranked = [place.labels for place in decision.ranked if place.labels]
    if ranked:
        preferences = [
            {
                "weight": max(100 // (1 + place), 1),
                "preference": {
                    "matchExpressions": [{"key": k, "operator": "In", "values": [v]} for k, v in sorted(nodes.items())]
                },
            }
            for place, nodes in enumerate(ranked)
        ]
        for spec in count_gpus(changed, kind, site.gpu_resources).specs:
            node = member(member(spec, "affinity"), "nodeAffinity")
            preferred = "preferredDuringSchedulingIgnoredDuringExecution"
            node[preferred] = [*(node.get(preferred) or ()), *preferences]
    annotate(changed, prediction=printable(decision.words), error=None)
    return changed


def without_prediction(job: JobObject, reason: str) -> JobObject:
    """The object without this controller's gate, with the reason why there is no prediction."""
    changed = copy.deepcopy(job)
    annotate(changed, prediction=None, error=printable(reason))
    return open_gate(changed)


def open_gate(job: JobObject) -> JobObject:
    set_gates(job, [gate for gate in gates(job) if gate != GATE])
    return job


def json_patch(old: Any, new: Any, path: str = "") -> list[dict[str, Any]]:
    """Operations of RFC 6902 that turn `old` into `new`. A changed list is replaced as a whole."""
    if old == new:
        return []
    if not isinstance(old, dict) or not isinstance(new, dict):
        return [{"op": "replace", "path": path, "value": new}]
    operations = []
    for key in [*old, *(key for key in new if key not in old)]:
        pointer = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        if key not in new:
            operations.append({"op": "remove", "path": pointer})
        elif key not in old:
            operations.append({"op": "add", "path": pointer, "value": new[key]})
        else:
            operations += json_patch(old[key], new[key], pointer)
    return operations
