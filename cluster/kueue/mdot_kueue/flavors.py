"""Kueue's ResourceFlavors that a job may get, by its queue, node selectors, taints and quotas."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Mapping, Protocol, Sequence

from mdot_kueue.objects import QUEUE, Gpus, JobObject, labels_of
from mdot_schedulers import Place, Site

KUEUE = "kueue.x-k8s.io"


class Reader(Protocol):
    def find_kueue(self, plural: str, name: str, namespace: str | None = None) -> JobObject | None:
        """An object of Kueue's API, or None."""


@dataclasses.dataclass(frozen=True)
class Candidates:
    places: tuple[Place, ...]
    """Known places where the job may run, with the labels of their nodes."""
    is_complete: bool
    """Every flavor is a known place, so that the slowest place bounds the time."""
    may_choose: bool
    """A node selector restricts the job to one place."""


def matches(selector: Mapping[str, str], spec: Mapping[str, Any], nodes: Mapping[str, str]) -> bool:
    """Whether nodes with these labels match, by the keys that the labels have, as in Kueue."""
    if any(nodes.get(key, value) != value for key, value in selector.items()):
        return False
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = (affinity or {}).get("nodeSelectorTerms") or ()
    return not terms or any(all(_holds(e, nodes) for e in term.get("matchExpressions") or ()) for term in terms)


def _holds(expression: Mapping[str, Any], nodes: Mapping[str, str]) -> bool:
    value, values = nodes.get(expression.get("key", "")), expression.get("values") or ()
    operator = expression.get("operator")
    if value is None:
        return True
    return {"In": value in values, "NotIn": value not in values, "DoesNotExist": False}.get(str(operator), True)


def _tolerates(taint: Mapping[str, Any], tolerations: Sequence[Mapping[str, Any]]) -> bool:
    def is_for(t: Mapping[str, Any]) -> bool:
        same_key = t.get("key") in (None, "", taint.get("key"))
        same_value = t.get("operator") == "Exists" or t.get("value", "") == taint.get("value", "")
        return same_key and same_value and t.get("effect") in (None, "", taint.get("effect"))

    return taint.get("effect") == "PreferNoSchedule" or any(is_for(t) for t in tolerations)


def _quota(flavor: Mapping[str, Any], resources: Sequence[str], has_cohort: bool) -> float:
    """GPUs that the queue may get in a flavor."""
    for resource in flavor.get("resources") or ():
        if resource.get("name") in resources:
            nominal, borrowed = (str(resource.get(name, "")) for name in ("nominalQuota", "borrowingLimit"))
            base = int(nominal) if re.fullmatch("[0-9]{1,9}", nominal) else 0
            if not has_cohort:
                return base
            return base + int(borrowed) if re.fullmatch("[0-9]{1,9}", borrowed) else float("inf")
    return 0


def find_candidates(job: JobObject, gpus: Gpus, site: Site, reader: Reader) -> Candidates:
    """Without a queue that can be read, every place of the site is a candidate, and there is no choice."""
    every = Candidates(site.places, False, False)
    namespace, queue = job["metadata"]["namespace"], labels_of(job).get(QUEUE)
    local = reader.find_kueue("localqueues", queue, namespace) if queue else None
    cluster = reader.find_kueue("clusterqueues", local["spec"]["clusterQueue"]) if local else None
    if cluster is None:
        return every
    spec = cluster.get("spec") or {}
    has_cohort = bool(spec.get("cohort") or spec.get("cohortName"))
    known = {place.name: place for place in site.places}
    places, is_complete, has_labels = [], True, True
    for group in spec.get("resourceGroups") or ():
        if not set(group.get("coveredResources") or ()) & set(site.gpu_resources):
            continue
        for row in group.get("flavors") or ():
            flavor = reader.find_kueue("resourceflavors", str(row.get("name")))
            details = (flavor or {}).get("spec") or {}
            nodes = details.get("nodeLabels") or {}
            tolerations = [*(details.get("tolerations") or ())]
            is_possible = _quota(row, site.gpu_resources, has_cohort) >= gpus.count and all(
                matches(pod.get("nodeSelector") or {}, pod, nodes)
                and all(_tolerates(t, [*tolerations, *(pod.get("tolerations") or ())]) for t in details.get("nodeTaints") or ())
                for pod in gpus.specs
            )
            if not is_possible:
                continue
            place = known.get(str(row.get("name")))
            if flavor is None or place is None:
                is_complete = False
                continue
            has_labels = has_labels and bool(nodes)
            places.append(dataclasses.replace(place, labels=dict(nodes)))
    return Candidates(tuple(places), is_complete, is_complete and has_labels)
