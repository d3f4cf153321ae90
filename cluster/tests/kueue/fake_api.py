"""A stand-in for the Kubernetes API server: objects, versions, conflicts, watches, merge patches, admission webhooks, and the
rules of Kueue that the controller relies on. It records each request as a right in the words of RBAC."""

from __future__ import annotations

import base64
import copy
import http.client
import http.server
import json
import re
import ssl
import threading
import time
import urllib.parse
from typing import Any, Callable

GATES = "kueue.x-k8s.io/admission-gated-by"
MAX_SECONDS = "kueue.x-k8s.io/max-exec-time-seconds"
PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"
Object = dict[str, Any]
Path = tuple[str, str, str, str]
"""Group, resource, namespace ("" if none), name."""


def apply_json_patch(target: Any, operations: list[dict[str, Any]]) -> Any:
    """RFC 6902's add, replace and remove on objects, as a webhook's answer uses them."""
    root = {"": copy.deepcopy(target)}
    for operation in operations:
        parts = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")]
        parent: Any = root
        for part in parts[:-1]:
            parent = parent[int(part)] if isinstance(parent, list) else parent[part]
        if operation["op"] == "remove" or operation["op"] == "replace":
            assert parts[-1] in parent, f"{operation} changes an absent value"
        if operation["op"] == "remove":
            del parent[parts[-1]]
        else:
            parent[parts[-1]] = operation["value"]
    return root[""]


def merge(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def is_true(workload: Object, condition: str) -> bool:
    return any(c["type"] == condition and c["status"] == "True" for c in workload["status"].get("conditions", ()))


def set_condition(workload: Object, condition: str, value: bool) -> None:
    others = [c for c in workload["status"].get("conditions", ()) if c["type"] != condition]
    workload["status"]["conditions"] = [*others, {"type": condition, "status": str(value), "reason": "Test"}]


class Refused(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class FakeApi:
    """`start` listens; `stop` ends all connections and keeps the objects, as a restart does."""

    def __init__(self) -> None:
        self.objects: dict[Path, Object] = {}
        self.rights: set[tuple[str, str, str, str, str]] = set()
        """(verb, group, resource, namespace, name) of each request."""
        self.webhook: tuple[str, int, str] | None = None
        """Host, port and PEM of the authority of a mutating webhook for jobs."""
        self.before_write: Callable[[Path], None] | None = None
        """Runs before each PUT, for example to change the object meanwhile."""
        self.refuse: Callable[[str, Path, Object | None], int] | None = None
        """Returns a status for a request that shall fail; 0: none."""
        self.kinds = {"jobs": "batch", "rayjobs": "ray.io", "pytorchjobs": "kubeflow.org", "jobsets": "jobset.x-k8s.io"}
        self.warnings: list[str] = []
        self.watch_count = 0
        self._version = 0
        self._log: list[tuple[int, str, Path, Object]] = []
        self._oldest = 0
        self._condition = threading.Condition(threading.RLock())
        self._server: http.server.ThreadingHTTPServer | None = None
        self.port = 0

    # ---- Objects -----------------------------------------------------------------------------------------------------

    def create(self, group: str, resource: str, item: Object, calls_webhook: bool = False) -> Object:
        item = copy.deepcopy(item)
        metadata = item.setdefault("metadata", {})
        if "name" not in metadata:
            metadata["name"] = f"{metadata.get('generateName', 'x-')}{self._version}"
        path = (group, resource, metadata.get("namespace", ""), metadata["name"])
        if calls_webhook and self.webhook is not None and group in self.kinds.values():
            item = self._admit(item)
        with self._condition:
            if path in self.objects:
                raise Refused(409, f"{path} exists")
            metadata = item["metadata"]
            metadata["uid"] = f"uid-{self._version + 1}-{metadata['name']}"
            self._store("ADDED", path, item)
            if group in self.kinds.values() and "kueue.x-k8s.io/queue-name" in metadata.get("labels", {}):
                self._make_workload(item)
            return copy.deepcopy(item)

    def update(self, path: Path, item: Object, checks_version: bool = True) -> Object:
        item = copy.deepcopy(item)
        with self._condition:
            old = self.objects.get(path)
            if old is None:
                raise Refused(404, f"no {path}")
            wanted = item["metadata"].get("resourceVersion")
            if checks_version and wanted is not None and wanted != old["metadata"]["resourceVersion"]:
                raise Refused(409, "the object has been modified")
            if path[0] in self.kinds.values():
                self._check_by_kueue(old, item)
            item["metadata"]["uid"] = old["metadata"]["uid"]
            self._store("MODIFIED", path, item)
            if path[0] in self.kinds.values():
                self._copy_gate(item)
                self._copy_limit(item)
            return copy.deepcopy(item)

    def change(self, path: Path, function: Callable[[Object], None]) -> None:
        """A change by somebody else."""
        with self._condition:
            item = copy.deepcopy(self.objects[path])
            function(item)
            self.update(path, item, checks_version=False)

    def delete(self, path: Path) -> None:
        with self._condition:
            item = self.objects.pop(path)
            self._version += 1
            self._log.append((self._version, "DELETED", path, item))
            self._condition.notify_all()

    def find(self, group: str, resource: str, namespace: str = "", name: str = "") -> list[Object]:
        with self._condition:
            return [
                copy.deepcopy(item)
                for path, item in sorted(self.objects.items())
                if path[:2] == (group, resource) and namespace in ("", path[2]) and name in ("", path[3])
            ]

    def forget_log(self) -> None:
        """Versions before now are too old for a watch, as after a compaction."""
        with self._condition:
            self._oldest = self._version

    def _store(self, event: str, path: Path, item: Object) -> None:
        self._version += 1
        item["metadata"]["resourceVersion"] = str(self._version)
        self.objects[path] = item
        self._log.append((self._version, event, path, copy.deepcopy(item)))
        self._condition.notify_all()

    # ---- Kueue's part --------------------------------------------------------------------------------------------------

    def _make_workload(self, job: Object) -> None:
        metadata = job["metadata"]
        workload = {
            "apiVersion": "kueue.x-k8s.io/v1beta1",
            "kind": "Workload",
            "metadata": {
                "name": f"{job['kind'].lower()}-{metadata['name']}",
                "namespace": metadata["namespace"],
                "labels": {"kueue.x-k8s.io/job-uid": metadata["uid"]},
                "annotations": {GATES: metadata["annotations"][GATES]} if GATES in metadata.get("annotations", {}) else {},
            },
            "spec": {"maximumExecutionTimeSeconds": metadata["labels"].get(MAX_SECONDS)},
            "status": {},
        }
        self.create("kueue.x-k8s.io", "workloads", workload)

    def workload_path(self, job: Object) -> Path | None:
        for path, workload in self.objects.items():
            if path[1] == "workloads" and workload["metadata"]["labels"]["kueue.x-k8s.io/job-uid"] == job["metadata"]["uid"]:
                return path
        return None

    def _copy_limit(self, job: Object) -> None:
        """Kueue's rule for a suspended job that differs from its Workload: the Workload's spec follows; but if quota is reserved,
        the Workload is made anew, without its times. A Workload of the user's is finished."""
        limit, path = (job["metadata"].get("labels") or {}).get(MAX_SECONDS), self.workload_path(job)
        if path is None or self.objects[path].get("spec", {}).get("maximumExecutionTimeSeconds") == limit:
            return
        if PREBUILT in job["metadata"]["labels"]:
            self.change(path, lambda workload: set_condition(workload, "Finished", True))
        elif is_true(self.objects[path], "QuotaReserved"):
            self.delete(path)
            self._make_workload(job)
        else:
            self.change(path, lambda workload: workload["spec"].update(maximumExecutionTimeSeconds=limit))

    def _copy_gate(self, job: Object) -> None:
        for path, workload in list(self.objects.items()):
            if path[1] == "workloads" and workload["metadata"]["labels"]["kueue.x-k8s.io/job-uid"] == job["metadata"]["uid"]:
                gate = job["metadata"].get("annotations", {}).get(GATES)
                found = dict(workload["metadata"].get("annotations", {}))
                found.pop(GATES, None)
                if gate is not None:
                    found[GATES] = gate
                changed = copy.deepcopy(workload)
                changed["metadata"]["annotations"] = found
                self._store("MODIFIED", path, changed)

    @staticmethod
    def _check_by_kueue(old: Object, new: Object) -> None:
        """KEP-6915: gates can only be removed. The limit is fixed once the job runs, and is a whole number above 0."""
        gates = [set(filter(None, job["metadata"].get("annotations", {}).get(GATES, "").split(","))) for job in (old, new)]
        if not gates[1] <= gates[0]:
            raise Refused(422, "a gate cannot be added after creation")
        limits = [(job["metadata"].get("labels") or {}).get(MAX_SECONDS) for job in (old, new)]
        if limits[1] is not None and re.fullmatch("[1-9][0-9]*", str(limits[1])) is None:
            raise Refused(422, "the limit must be above 0")
        suspended = [job["spec"].get("suspend", (job["spec"].get("runPolicy") or {}).get("suspend")) for job in (old, new)]
        if limits[0] != limits[1] and not all(suspended):
            raise Refused(422, "the limit of a running job is immutable")

    def _admit(self, item: Object) -> Object:
        assert self.webhook is not None
        host, port, authority = self.webhook
        context = ssl.create_default_context(cadata=authority)
        context.check_hostname = False  # the address is not the service's name
        connection = http.client.HTTPSConnection("localhost", port, context=context, timeout=60)
        review = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": f"review-{self._version}",
                "operation": "CREATE",
                "namespace": item["metadata"].get("namespace"),
                "object": item,
            },
        }
        try:
            connection.request("POST", "/", json.dumps(review), {"Content-Type": "application/json", "Host": host})
            answer = json.loads(connection.getresponse().read())["response"]
        except OSError:
            return item  # failurePolicy: Ignore
        finally:
            connection.close()
        assert answer["uid"] == review["request"]["uid"] and answer["allowed"] is True
        self.warnings += answer.get("warnings", [])
        return apply_json_patch(item, json.loads(base64.b64decode(answer["patch"]))) if "patch" in answer else item

    # ---- HTTP ----------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        handler = type("Handler", (_Handler,), {"api": self})
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), handler)
        self._server.daemon_threads = False  # `stop` waits for them
        self._server.connections = []  # type: ignore[attr-defined]
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        server, self._server = self._server, None
        assert server is not None
        server.shutdown()
        for connection in server.connections:  # type: ignore[attr-defined]
            try:
                connection.shutdown(2)
            except OSError:
                pass
        with self._condition:
            self._condition.notify_all()
        server.server_close()

    def events_after(self, version: int, group: str, resource: str, is_alive: Callable[[], bool], seconds: float) -> Any:
        """Yields the events of a watch."""
        with self._condition:
            self.watch_count += 1
            if version < self._oldest:
                status = {
                    "kind": "Status",
                    "code": 410,
                    "status": "Failure",
                    "message": "too old resource version",
                    "reason": "Expired",
                }
                yield {"type": "ERROR", "object": status}
                return
        end, position = time.monotonic() + seconds, 0
        while is_alive() and time.monotonic() < end:
            with self._condition:
                if position == len(self._log):
                    self._condition.wait(0.2)
                found, position = self._log[position:], len(self._log)
            for at, event, path, item in found:
                if at > version and path[:2] == (group, resource):
                    yield {"type": event, "object": item}


class _Handler(http.server.BaseHTTPRequestHandler):
    api: FakeApi
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.server.connections.append(self.connection)  # type: ignore[attr-defined]

    def log_message(self, *arguments: object) -> None:
        pass

    def _answer(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _serve(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        parts = url.path.strip("/").split("/")
        if parts == ["apis"]:
            groups = [
                {
                    "name": "kueue.x-k8s.io",
                    "versions": [],
                    "preferredVersion": {"groupVersion": "kueue.x-k8s.io/v1beta1", "version": "v1beta1"},
                }
            ]
            return self._answer(200, {"kind": "APIGroupList", "groups": groups})
        group = "" if parts[0] == "api" else parts[1]
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        namespace = ""
        if rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        resource, name = rest[0], rest[1] if len(rest) > 1 else ""
        path = (group, resource, namespace, name)
        verbs = {
            "GET": "get" if name else "watch" if "watch" in query else "list",
            "PUT": "update",
            "PATCH": "patch",
            "POST": "create",
        }
        verb = verbs[self.command]
        self.api.rights.add((verb, group, resource, namespace, name))
        try:
            status = self.api.refuse(verb, path, body) if self.api.refuse is not None else 0
            if status == -1:
                self.close_connection = True
                self.connection.shutdown(2)
                return None
            if status:
                raise Refused(status, "refused by the test")
            if group in self.api.kinds.values() and self.api.kinds.get(resource) != group:
                raise Refused(404, "no such resource")
            return self._act(verb, path, query, body)
        except Refused as fault:
            return self._answer(
                fault.status, {"kind": "Status", "status": "Failure", "code": fault.status, "message": str(fault)}
            )

    def _act(self, verb: str, path: Path, query: dict[str, str], body: Any) -> None:
        api = self.api
        group, resource, namespace, name = path
        if verb == "watch":
            return self._watch(path, query)
        if verb == "list":
            items = api.find(group, resource, namespace)
            wanted = query.get("labelSelector", "")
            if wanted:
                key, _, value = wanted.partition("=")
                items = [item for item in items if item["metadata"].get("labels", {}).get(key) == value]
            for item in items:
                item.pop("kind", None), item.pop("apiVersion", None)
            limit, begin = int(query.get("limit", 0)) or len(items), int(query.get("continue", 0) or 0)
            metadata: Object = {"resourceVersion": str(api._version)}
            if begin + limit < len(items):
                metadata["continue"] = str(begin + limit)
            return self._answer(
                200, {"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items[begin : begin + limit]}
            )
        if verb == "get":
            found = api.objects.get(path)
            if found is None:
                raise Refused(404, f"no {path}")
            return self._answer(200, found)
        if verb == "create":
            body["metadata"].setdefault("namespace", namespace) if namespace else None
            return self._answer(201, api.create(group, resource, body, calls_webhook=True))
        if verb == "update":
            if api.before_write is not None:
                api.before_write(path)
            return self._answer(200, api.update(path, body))
        with api._condition:
            if path not in api.objects:
                raise Refused(404, f"no {path}")
            return self._answer(200, api.update(path, merge(api.objects[path], body), checks_version=False))

    def _watch(self, path: Path, query: dict[str, str]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        server = self.api._server
        events = self.api.events_after(
            int(query.get("resourceVersion") or 0),
            path[0],
            path[1],
            lambda: self.api._server is server,
            float(query.get("timeoutSeconds", 60)),
        )
        try:
            for event in events:
                data = json.dumps(event).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True

    do_GET = do_PUT = do_PATCH = do_POST = _serve  # noqa: N815 - http.server's names
