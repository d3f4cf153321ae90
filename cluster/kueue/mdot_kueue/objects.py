"""Jobs, RayJobs, PyTorchJobs and JobSets as JSON objects: where each has its pods, limits and times."""

from __future__ import annotations

import dataclasses
import datetime
import re
from typing import Any, Callable, Iterator, Mapping, Sequence

from mdot_schedulers import Unpredictable

JobObject = dict[str, Any]

JOB = "mdot.dev/job"
"""Annotation: NAME or NAME/KEY of the ConfigMap with the `.job`."""
OPTIONS = "mdot.dev/options"
PREDICTION = "mdot.dev/prediction"
ERROR = "mdot.dev/error"
LIMIT = "mdot.dev/limit"
"""The seconds that each run may take, "/", and the label that this controller wrote. Another label is the user's."""
GATE = "mdot.dev/predict"
"""This controller's name among Kueue's gates."""

GATES = "kueue.x-k8s.io/admission-gated-by"
QUEUE = "kueue.x-k8s.io/queue-name"
MAX_SECONDS = "kueue.x-k8s.io/max-exec-time-seconds"
MIN_PARALLELISM = "kueue.x-k8s.io/job-min-parallelism"
PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"
ELASTIC = "kueue.x-k8s.io/elastic-job"
BOOST = "kueue.x-k8s.io/priority-boost"
JOB_UID = "kueue.x-k8s.io/job-uid"

MAX_PODS = 1 << 16
MAX_LIMIT_S = (1 << 31) - 1
"""Kueue ignores a label above."""


@dataclasses.dataclass(frozen=True)
class Pods:
    """Equal pods of an object: how many, and the pod's spec, which belongs to the object."""

    count: int
    spec: dict[str, Any]


def _number(value: Any, default: int) -> int:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_PODS:
        raise Unpredictable(f"a number of pods must be an integer from 0 to {MAX_PODS}, not {str(value)[:20]!r}")
    return value


def _spec(template: Any) -> dict[str, Any]:
    spec = template.get("spec") if isinstance(template, dict) else None
    if not isinstance(spec, dict):
        raise Unpredictable("the object lacks a pod template")
    return spec


def _of_job(spec: Mapping[str, Any]) -> Pods:
    parallel = _number(spec.get("parallelism"), 1)
    if _number(spec.get("completions"), parallel) > parallel:
        raise Unpredictable("completions exceed parallelism, so pods run one after the other")
    return Pods(parallel, _spec(spec.get("template")))


def _job_pods(job: JobObject) -> Iterator[Pods]:
    yield _of_job(job["spec"])


def _pytorch_pods(job: JobObject) -> Iterator[Pods]:
    for replica in job["spec"].get("pytorchReplicaSpecs", {}).values():
        yield Pods(_number(replica.get("replicas"), 1), _spec(replica.get("template")))


def _ray_pods(job: JobObject) -> Iterator[Pods]:
    cluster = job["spec"].get("rayClusterSpec")
    if not isinstance(cluster, dict):
        raise Unpredictable("the RayJob uses an existing cluster")
    yield Pods(1, _spec(cluster.get("headGroupSpec", {}).get("template")))
    for group in cluster.get("workerGroupSpecs") or ():
        yield Pods(_number(group.get("replicas"), 1) * _number(group.get("numOfHosts"), 1), _spec(group.get("template")))


def _jobset_pods(job: JobObject) -> Iterator[Pods]:
    for replicated in job["spec"].get("replicatedJobs", ()):
        pods = _of_job(replicated["template"]["spec"])
        yield Pods(_number(replicated.get("replicas"), 1) * pods.count, pods.spec)


def member(item: dict[str, Any], name: str) -> dict[str, Any]:
    """The member, which is made if it is absent or null."""
    found: dict[str, Any] = item.get(name) or {}
    item[name] = found
    return found


def _own_spec(job: JobObject) -> list[dict[str, Any]]:
    return [job["spec"]]


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of object in the Kubernetes API."""

    kind: str
    group: str
    version: str
    plural: str
    pods: Callable[[JobObject], Iterator[Pods]]
    deadlines: Callable[[JobObject], list[dict[str, Any]]]
    """The parts of the object that hold activeDeadlineSeconds."""
    suspend: tuple[str, ...] = ("spec", "suspend")


KINDS = (
    Kind("Job", "batch", "v1", "jobs", _job_pods, _own_spec),
    Kind("RayJob", "ray.io", "v1", "rayjobs", _ray_pods, _own_spec),
    Kind(
        "PyTorchJob",
        "kubeflow.org",
        "v1",
        "pytorchjobs",
        _pytorch_pods,
        lambda job: [member(job["spec"], "runPolicy")],
        ("spec", "runPolicy", "suspend"),
    ),
    Kind(
        "JobSet",
        "jobset.x-k8s.io",
        "v1alpha2",
        "jobsets",
        _jobset_pods,
        lambda job: [replicated["template"]["spec"] for replicated in job["spec"].get("replicatedJobs", ())],
    ),
)


def kind_of(job: JobObject) -> Kind | None:
    group = str(job.get("apiVersion", "")).rpartition("/")[0]
    return next((kind for kind in KINDS if (kind.kind, kind.group) == (job.get("kind"), group)), None)


# ---- Metadata --------------------------------------------------------------------------------------------------------


def annotations_of(job: JobObject) -> dict[str, str]:
    return job["metadata"].get("annotations") or {}


def labels_of(job: JobObject) -> dict[str, str]:
    return job["metadata"].get("labels") or {}


def annotate(job: JobObject, **values: str | None) -> None:
    """Sets the annotations PREDICTION, ERROR and LIMIT (keywords `prediction`, `error`, `limit`). None removes one."""
    found = member(job["metadata"], "annotations")
    for name, value in values.items():
        found.pop(f"mdot.dev/{name}", None)
        if value is not None:
            found[f"mdot.dev/{name}"] = value


def gates(job: JobObject) -> list[str]:
    return [gate.strip() for gate in annotations_of(job).get(GATES, "").split(",") if gate.strip()]


def set_gates(job: JobObject, names: Sequence[str]) -> None:
    found = member(job["metadata"], "annotations")
    if names:
        found[GATES] = ",".join(names)
    else:
        found.pop(GATES, None)


def is_owned(job: JobObject) -> bool:
    """Whether another object made this one, for example a JobSet its Jobs."""
    return any(owner.get("controller") for owner in job["metadata"].get("ownerReferences") or ())


# ---- Resources, limits and times -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Gpus:
    count: int
    """On all nodes."""
    nodes: int
    """Pods with GPUs, each assumed on a node of its own."""
    specs: tuple[dict[str, Any], ...]
    """Specs of these pods; they belong to the object."""


def _container_gpus(container: Mapping[str, Any], resources: Sequence[str]) -> int:
    requested = container.get("resources") or {}
    total = 0
    for resource in resources:
        text = str((requested.get("limits") or {}).get(resource, (requested.get("requests") or {}).get(resource, 0)))
        if re.fullmatch("[0-9]{1,6}", text, re.ASCII) is None:
            raise Unpredictable(f"{resource} must be a whole number, not {text[:20]!r}")
        total += int(text)
    return total


def _pod_gpus(spec: Mapping[str, Any], resources: Sequence[str]) -> int:
    """GPUs of the pod's containers. Raises Unpredictable if the pod holds more, for containers that run before or beside them."""
    total = sum(_container_gpus(container, resources) for container in spec.get("containers") or ())
    for container in spec.get("initContainers") or ():
        gpus = _container_gpus(container, resources)
        if gpus > 0 and (container.get("restartPolicy") == "Always" or gpus > total):
            raise Unpredictable("its init containers request more GPUs than its containers")
    return total


def _others(spec: Mapping[str, Any]) -> set[str]:
    """Resources of the pod's containers that only some nodes have, for example nvidia.com/mig-1g.10gb."""
    requested = [c.get("resources") or {} for c in spec.get("containers") or ()]
    names = {name for r in requested for part in ("limits", "requests") for name in r.get(part) or ()}
    return {name for name in names if "/" in name} | ({"resourceClaims"} if spec.get("resourceClaims") else set())


def _is_elastic(job: JobObject) -> bool:
    """Whether another controller may change the number of pods, which changes the time."""
    spec, annotations = job["spec"], annotations_of(job)
    cluster = spec.get("rayClusterSpec") or {}
    return bool(
        cluster.get("enableInTreeAutoscaling")
        or spec.get("elasticPolicy")
        or annotations.get(MIN_PARALLELISM) is not None
        or annotations.get(ELASTIC) == "true"
    )


def count_gpus(job: JobObject, kind: Kind, resources: Sequence[str]) -> Gpus:
    """The GPUs that the object's pods request. Raises Unpredictable if there are none, or if the pods differ."""
    try:
        if _is_elastic(job):
            raise Unpredictable("its number of pods may change")
        found = [(pods, _pod_gpus(pods.spec, resources)) for pods in kind.pods(job)]
    except (KeyError, TypeError, AttributeError) as fault:
        raise Unpredictable(f"the {kind.kind} has an unknown form: {type(fault).__name__} {str(fault)[:60]}") from fault
    with_gpus = [(pods, gpus) for pods, gpus in found if gpus > 0 and pods.count > 0]
    if not with_gpus:
        others = sorted(set().union(*(_others(pods.spec) for pods, _ in found)))
        suffix = f"; gpu_resources lacks {', '.join(others)}" if others else ""
        raise Unpredictable(f"no pod requests GPUs ({', '.join(resources)}){suffix}"[:400])
    if len({gpus for _, gpus in with_gpus}) > 1:
        raise Unpredictable("its pods request different numbers of GPUs")
    nodes = sum(pods.count for pods, _ in with_gpus)
    count = nodes * with_gpus[0][1]
    if count > 1 << 16:
        raise Unpredictable("it requests more than 65536 GPUs")
    return Gpus(count, nodes, tuple(pods.spec for pods, _ in with_gpus))


def own_limit_s(job: JobObject, kind: Kind) -> int:
    """The user's limit in seconds, the shortest of several; 0: none."""
    texts = [labels_of(job).get(MAX_SECONDS), *(part.get("activeDeadlineSeconds") for part in kind.deadlines(job))]
    found = [int(str(text)) for text in texts if re.fullmatch("[0-9]{1,10}", str(text), re.ASCII) is not None]
    return min((limit for limit in found if limit > 0), default=0)


def set_limit(job: JobObject, run_s: int, label_s: int) -> None:
    member(job["metadata"], "labels")[MAX_SECONDS] = str(label_s)
    annotate(job, limit=f"{run_s}/{label_s}")


def written_limit_s(job: JobObject) -> tuple[int, int] | None:
    """The seconds that each run may take, and the label, if this controller wrote it."""
    found = re.fullmatch("([0-9]{1,10})/([0-9]{1,10})", annotations_of(job).get(LIMIT, ""), re.ASCII)
    return (int(found[1]), int(found[2])) if found is not None and labels_of(job).get(MAX_SECONDS) == found[2] else None


def is_suspended(job: JobObject, kind: Kind) -> bool:
    found: Any = job
    for name in kind.suspend:
        found = (found or {}).get(name)
    return bool(found)


def _time_s(text: Any) -> float | None:
    try:
        return datetime.datetime.fromisoformat(re.sub("Z$", "+00:00", str(text))).timestamp()
    except ValueError:
        return None


@dataclasses.dataclass(frozen=True)
class Run:
    """How an object ran: seconds since 1970; None: not yet."""

    start_s: float | None
    end_s: float | None
    is_complete: bool


def run_of(job: JobObject) -> Run:
    status = job.get("status") or {}
    conditions = {c.get("type"): c for c in status.get("conditions") or () if isinstance(c, dict)}
    true = {name for name, condition in conditions.items() if condition.get("status") == "True"}
    is_complete = bool(true & {"Complete", "Completed", "Succeeded"}) or status.get("jobStatus") == "SUCCEEDED"
    is_failed = (
        "Failed" in true or status.get("jobStatus") in ("FAILED", "STOPPED") or status.get("jobDeploymentStatus") == "Failed"
    )
    start_s = _time_s(status.get("startTime"))
    resumed = conditions.get("Suspended", {})
    if start_s is None and resumed.get("status") == "False":  # a JobSet has no start time
        start_s = _time_s(resumed.get("lastTransitionTime"))
    end_s = None
    if is_complete or is_failed:
        ends = [status.get("completionTime"), status.get("endTime")]
        ends += [
            conditions[name].get("lastTransitionTime")
            for name in ("Complete", "Completed", "Succeeded", "Failed")
            if name in true
        ]
        end_s = next((found for found in map(_time_s, ends) if found is not None), None)
    return Run(start_s, end_s, is_complete)


def admitted_s(workload: JobObject) -> int | None:
    """Seconds for which a Workload was admitted before its last admission ended or began: Kueue subtracts them from its limit.
    None: unknown."""
    status = workload.get("status") or {}
    # v1beta1 misspells the name
    found = status.get("accumulatedPastExecutionTimeSeconds", status.get("accumulatedPastExexcutionTimeSeconds"))
    return 0 if found is None else found if type(found) is int and found >= 0 else None


def is_true(workload: JobObject, condition: str) -> bool:
    found = (workload.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == condition and c.get("status") == "True" for c in found)


def is_cut_off(job: JobObject) -> bool:
    """Whether a limit ended the object."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Failed" and c.get("reason") == "DeadlineExceeded" for c in conditions)
