"""The Kubernetes API, as far as the controller and the webhook use it."""

from __future__ import annotations

import base64
import binascii
import datetime
import functools
import json
from typing import Any, Iterator

from kubernetes import client, watch
from kubernetes.client.exceptions import ApiException

from mdot_kueue.decide import printable
from mdot_kueue.flavors import KUEUE
from mdot_kueue.objects import BOOST, JOB_UID, JobObject, Kind
from mdot_schedulers import Unpredictable

OLDEST_KUEUE = "v1beta1"
PAGE = 500
STATE = "mdot-outcomes"
STATE_KEY = "state.json"
WATCH_S = 240


class Conflict(Exception):
    """The object changed since it was read."""


class Cluster:
    """One API client; any number of threads may use it."""

    def __init__(self, namespace: str, api: client.ApiClient | None = None, timeout_s: float = 20) -> None:
        """`namespace` holds the controller's state."""
        self._namespace = namespace
        self._objects = client.CustomObjectsApi(api)
        self._core = client.CoreV1Api(api)
        self._timeout_s = timeout_s

    # ---- Jobs ----------------------------------------------------------------------------------------------------

    def list(self, kind: Kind) -> tuple[list[JobObject], str] | None:
        """All objects and the version for a watch. None: the cluster lacks the kind."""
        items: list[JobObject] = []
        page = ""
        while True:
            try:
                found: Any = self._objects.list_cluster_custom_object(
                    kind.group, kind.version, kind.plural, limit=PAGE, _continue=page, _request_timeout=self._timeout_s
                )
            except ApiException as fault:
                if fault.status == 404:
                    return None
                raise
            # items of a list lack these two
            items += [{"kind": kind.kind, "apiVersion": f"{kind.group}/{kind.version}", **item} for item in found["items"]]
            page = found["metadata"].get("continue") or ""
            if not page:
                return items, found["metadata"]["resourceVersion"]

    def watch(self, kind: Kind, version: str) -> Iterator[tuple[str, JobObject]]:
        """Events after `version`, until the server ends the watch. Raises ApiException 410 for a version that is too old."""
        stream: Any = watch.Watch().stream(  # type: ignore[no-untyped-call]
            self._objects.list_cluster_custom_object,
            kind.group,
            kind.version,
            kind.plural,
            resource_version=version,
            timeout_seconds=WATCH_S,
            _request_timeout=WATCH_S + self._timeout_s,
        )
        for event in stream:
            yield event["type"], event["object"]

    def get(self, kind: Kind, namespace: str, name: str) -> JobObject | None:
        found: JobObject | None = self._find(
            self._objects.get_namespaced_custom_object, kind.group, kind.version, namespace, kind.plural, name
        )
        return found

    def replace(self, kind: Kind, job: JobObject) -> None:
        """Writes the object if it is unchanged since it was read. Raises Conflict otherwise."""
        metadata = job["metadata"]
        try:
            self._objects.replace_namespaced_custom_object(
                kind.group,
                kind.version,
                metadata["namespace"],
                kind.plural,
                metadata["name"],
                job,
                _request_timeout=self._timeout_s,
            )
        except ApiException as fault:
            if fault.status in (404, 409):
                raise Conflict(metadata["name"]) from fault
            raise

    def _find(self, call: Any, *arguments: str) -> Any:
        try:
            return call(*arguments, _request_timeout=self._timeout_s)
        except ApiException as fault:
            if fault.status == 404:
                return None
            raise

    # ---- What a job refers to ------------------------------------------------------------------------------------

    def config_map_bytes(self, namespace: str, name: str, key: str | None) -> bytes:
        """The value of a ConfigMap. Without a key, the ConfigMap must have a single one."""
        try:
            found = self._find(self._core.read_namespaced_config_map, name, namespace)
        except ApiException as fault:
            raise Unpredictable(f"the ConfigMap {name} cannot be read: status {fault.status}") from fault
        if found is None:
            raise Unpredictable(f"the namespace has no ConfigMap {name}")
        values = {**(found.data or {}), **(found.binary_data or {})}
        if key is None and len(values) != 1:
            raise Unpredictable(f"the ConfigMap {name} has {len(values)} keys; name one: {name}/KEY")
        key = key or next(iter(values))
        if key not in (found.binary_data or {}):
            raise Unpredictable(f"the ConfigMap {name} has no binary value {printable(key)}; create it with --from-file")
        try:
            return base64.b64decode(values[key], validate=True)
        except (binascii.Error, ValueError):
            raise Unpredictable(f"the ConfigMap {name} has an invalid value") from None

    @functools.cached_property
    def _kueue_version(self) -> str:
        """The preferred version of Kueue's API."""
        groups = client.ApisApi(self._objects.api_client).get_api_versions(_request_timeout=self._timeout_s).groups
        kueue = next((group for group in groups if group.name == KUEUE), None)
        preferred = kueue.preferred_version if kueue is not None else None
        return preferred.version if preferred is not None else OLDEST_KUEUE

    def find_kueue(self, plural: str, name: str, namespace: str | None = None) -> JobObject | None:
        """An object of Kueue's API; None if it is absent or may not be read."""
        call: Any = self._objects.get_cluster_custom_object
        place = [KUEUE, self._kueue_version]
        if namespace is not None:
            call, place = self._objects.get_namespaced_custom_object, [*place, namespace]
        try:
            found: JobObject | None = self._find(call, *place, plural, name)
        except ApiException as fault:
            if fault.status != 403:
                raise
            return None
        return found

    def workload(self, job: JobObject) -> JobObject | None:
        """Kueue's Workload of a job."""
        try:
            found: Any = self._objects.list_namespaced_custom_object(
                KUEUE,
                self._kueue_version,
                job["metadata"]["namespace"],
                "workloads",
                label_selector=f"{JOB_UID}={job['metadata']['uid']}",
                _request_timeout=self._timeout_s,
            )
        except ApiException as fault:
            if fault.status not in (403, 404):
                raise
            return None
        return next(iter(found["items"]), None)

    def set_boost(self, workload: JobObject, boost: int) -> None:
        """Sets the priority boost; 0 removes it."""
        self._objects.patch_namespaced_custom_object(
            KUEUE,
            self._kueue_version,
            workload["metadata"]["namespace"],
            "workloads",
            workload["metadata"]["name"],
            {"metadata": {"annotations": {BOOST: str(boost) if boost != 0 else None}}},
            _request_timeout=self._timeout_s,
        )

    # ---- What the controller writes beside jobs ------------------------------------------------------------------

    def event(self, job: JobObject, reason: str, message: str, is_warning: bool) -> None:
        """Adds an Event to a job. A failure is ignored, because the annotation has the same words."""
        metadata, now = job["metadata"], datetime.datetime.now(datetime.timezone.utc)
        body = client.CoreV1Event(
            metadata=client.V1ObjectMeta(generate_name="mdot-", namespace=metadata["namespace"]),
            involved_object=client.V1ObjectReference(
                api_version=job["apiVersion"],
                kind=job["kind"],
                name=metadata["name"],
                namespace=metadata["namespace"],
                uid=metadata["uid"],
            ),
            reason=reason,
            message=printable(message),
            type="Warning" if is_warning else "Normal",
            first_timestamp=now,
            last_timestamp=now,
            count=1,
            source=client.V1EventSource(component="mdot-kueue"),
        )
        try:
            self._core.create_namespaced_event(metadata["namespace"], body, _request_timeout=self._timeout_s)
        except ApiException:
            pass

    def load_state(self) -> dict[str, Any]:
        found = self._find(self._core.read_namespaced_config_map, STATE, self._namespace)
        try:
            state = json.loads((found.data or {}).get(STATE_KEY, "{}")) if found is not None else {}
        except ValueError:
            state = {}
        return state if isinstance(state, dict) else {}

    def save_state(self, state: dict[str, Any]) -> None:
        """Writes the controller's state; only the leader calls this."""
        body = client.V1ConfigMap(
            metadata=client.V1ObjectMeta(name=STATE, namespace=self._namespace), data={STATE_KEY: json.dumps(state)}
        )
        try:
            self._core.replace_namespaced_config_map(STATE, self._namespace, body, _request_timeout=self._timeout_s)
        except ApiException as fault:
            if fault.status != 404:
                raise
            self._core.create_namespaced_config_map(self._namespace, body, _request_timeout=self._timeout_s)
