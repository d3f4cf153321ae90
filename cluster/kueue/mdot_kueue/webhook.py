"""The mutating webhook. With Kueue, it sets the gate when a job is created; without Kueue, it predicts at once. It admits
every object: a fault is a warning for the user."""

from __future__ import annotations

import base64
import datetime
import http.server
import json
import logging
import os
import ssl
import threading
from typing import Any, Callable

from mdot_kueue.decide import Bytes, decide_for, for_kubernetes, json_patch, printable, without_prediction
from mdot_kueue.flavors import Candidates, matches
from mdot_kueue.objects import GATE, JOB, Gpus, JobObject, Kind, annotations_of, gates, is_owned, kind_of, set_gates
from mdot_schedulers import Site, Unpredictable
from mdot_schedulers.request import InvalidRequest

log = logging.getLogger("mdot-kueue")

MAX_BODY_BYTES = 4 << 20
CONNECTION_S = 15.0
MAX_PREDICTIONS = 4
"""Predictions at a time; further requests are admitted without one."""


class Webhook:
    """Answers admission reviews. `reader` is None with Kueue, because the controller predicts."""

    def __init__(self, site: Callable[[], Site], reader: Bytes | None = None) -> None:
        self._site = site
        self._reader = reader
        self._slots = threading.BoundedSemaphore(MAX_PREDICTIONS)

    def review(self, body: Any) -> dict[str, Any]:
        """The answer to an AdmissionReview (admission.k8s.io/v1). Raises ValueError for another body."""
        request = body.get("request") if isinstance(body, dict) else None
        if not isinstance(request, dict) or not isinstance(request.get("uid"), str):
            raise ValueError("the body is not an AdmissionReview")
        response: dict[str, Any] = {"uid": request["uid"], "allowed": True}
        try:
            job = request.get("object")
            if request.get("operation") == "CREATE" and isinstance(job, dict) and kind_of(job) is not None:
                job.setdefault("metadata", {}).setdefault("namespace", request.get("namespace", "default"))
                changed, warning = self._changed(job)
                patch = json_patch(job, changed)
                if patch:
                    response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
                if warning is not None:
                    response["warnings"] = [printable(f"mdot: no prediction: {warning}")[:256]]
        except Exception:  # an object must never be refused because of this webhook
            log.exception("admission")
            response = {"uid": request["uid"], "allowed": True, "warnings": ["mdot: no prediction: the webhook failed"]}
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}

    def _changed(self, job: JobObject) -> tuple[JobObject, str | None]:
        kind = kind_of(job)
        assert kind is not None
        if JOB not in annotations_of(job) or is_owned(job):
            return job, None
        if self._reader is None:
            changed: JobObject = json.loads(json.dumps(job))
            set_gates(changed, list(dict.fromkeys([*gates(job), GATE])))
            return changed, None
        try:
            return self._predicted(job, kind, self._reader), None
        except (Unpredictable, InvalidRequest) as fault:
            return without_prediction(job, str(fault)), str(fault)

    def _predicted(self, job: JobObject, kind: Kind, reader: Bytes) -> JobObject:
        site = self._site()

        def candidates(gpus: Gpus) -> Candidates:
            places = [
                p for p in site.places if all(matches(pod.get("nodeSelector") or {}, pod, p.labels) for pod in gpus.specs)
            ]
            return Candidates(tuple(places), True, False)

        if not self._slots.acquire(blocking=False):
            raise Unpredictable("too many requests at the same time")
        try:
            now = datetime.datetime.now(datetime.timezone.utc)
            decision, _ = decide_for(job, kind, site, reader, candidates, 1.0, now)
        finally:
            self._slots.release()
        return for_kubernetes(job, kind, decision, site)


class _Handler(http.server.BaseHTTPRequestHandler):
    webhook: Webhook
    timeout = CONNECTION_S
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:  # noqa: N802 - http.server's name
        self._answer(200 if self.path == "/healthz" else 404, b"")

    def do_POST(self) -> None:  # noqa: N802
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            return self._answer(413, b"")
        try:
            self._answer(200, json.dumps(self.webhook.review(json.loads(self.rfile.read(int(length))))).encode())
        except (ValueError, RecursionError):
            self._answer(400, b"the body is not an AdmissionReview\n")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        log.debug(format, *arguments)


class Server(http.server.ThreadingHTTPServer):
    """Serves a webhook by TLS. A new certificate in the same files is used for the next connection."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], webhook: Webhook, certificate: str, key: str) -> None:
        handler = type("Handler", (_Handler,), {"webhook": webhook})
        super().__init__(address, handler)
        self._files = certificate, key
        self._changed_s = 0.0
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        connection.settimeout(CONNECTION_S)
        changed_s = max(os.stat(path).st_mtime for path in self._files)
        if changed_s != self._changed_s:
            self._context.load_cert_chain(*self._files)
            self._changed_s = changed_s
        # the handshake happens in the connection's own thread, so that a slow client delays no other
        return self._context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("connection of %s failed", client_address, exc_info=True)
