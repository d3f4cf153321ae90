"""The mutating webhook. With Kueue, it sets the gate when a job is created; without Kueue, it predicts at once. It admits
every object: a fault is a warning for the user."""

from __future__ import annotations

import base64
import contextlib
import copy
import datetime
import http.server
import json
import logging
import os
import re
import socket
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
"""Without a byte from the client."""
REQUEST_S = 60.0
"""From the first wait for a request to the end of its answer."""
MAX_CONNECTIONS = 256
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
            raise ValueError("it has no request with a uid")
        response: dict[str, Any] = {"uid": request["uid"], "allowed": True}
        try:
            job = request.get("object")
            if isinstance(job, dict) and not isinstance(job.get("metadata", {}), dict):
                raise TypeError("its metadata is no object")
            if request.get("operation") == "CREATE" and isinstance(job, dict) and kind_of(job) is not None:
                job.setdefault("metadata", {}).setdefault("namespace", request.get("namespace", "default"))
                changed, warning = self._changed(copy.deepcopy(job))  # the patch is for the object as it came
                patch = json_patch(job, changed)
                if patch:
                    response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
                if warning is not None:
                    response["warnings"] = [printable(f"mdot: no prediction: {warning}")[:256]]
        except Exception as fault:  # an object must never be refused because of this webhook
            log.exception("admission")
            reason = f"the object has an unknown form, or the webhook failed: {type(fault).__name__} {fault}"
            response = {"uid": request["uid"], "allowed": True, "warnings": [printable(f"mdot: no prediction: {reason}")[:256]]}
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


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("it repeats a member of an object")
    return found


def _refuse_number(text: str) -> float:
    raise ValueError(f"it has the number {text}")


class _Handler(http.server.BaseHTTPRequestHandler):
    webhook: Webhook
    timeout = CONNECTION_S
    protocol_version = "HTTP/1.1"
    error_content_type = "text/plain; charset=utf-8"
    error_message_format = "%(message)s\n"

    def handle_one_request(self) -> None:
        # a client that sends a byte now and then must not hold the thread for ever
        deadline = threading.Timer(REQUEST_S, self._cut_off)
        deadline.daemon = True
        deadline.start()
        try:
            super().handle_one_request()
        finally:
            deadline.cancel()

    def _cut_off(self) -> None:
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self.connection, socket.SHUT_RDWR)

    def do_GET(self) -> None:  # noqa: N802 - http.server's name
        if self.path == "/healthz":
            self._answer(200, b"")
        else:
            self._refuse(404, "there is only /healthz")

    def do_POST(self) -> None:  # noqa: N802
        lengths = self.headers.get_all("Content-Length") or [""]
        if len(lengths) != 1 or re.fullmatch("[0-9]{1,12}", lengths[0].strip(), re.ASCII) is None:
            return self._refuse(411, "the request requires one Content-Length in bytes")
        length = int(lengths[0])
        if length > MAX_BODY_BYTES:
            return self._refuse(413, f"the body has {length} bytes; the limit is {MAX_BODY_BYTES}")
        if self.headers.get_content_type() != "application/json":
            return self._refuse(415, f"Content-Type must be application/json, not {self.headers.get_content_type()[:80]}")
        body = self.rfile.read(length)
        if len(body) < length:
            return self._refuse(400, f"the body ends after {len(body)} of {length} bytes")
        try:
            found = json.loads(body, object_pairs_hook=_members, parse_constant=_refuse_number)
            answer = json.dumps(self.webhook.review(found)).encode()
        except (ValueError, RecursionError) as fault:
            return self._refuse(400, f"the body is not an AdmissionReview: {str(fault)[:200]}")
        self._answer(200, answer)

    def _refuse(self, status: int, reason: str) -> None:
        """The API server admits the object unchanged after such an answer (failurePolicy: Ignore), and logs the reason."""
        log.warning("request of %s refused: %s", self.client_address[0], printable(reason))
        self.close_connection = True
        self._answer(status, f"mdot: {printable(reason)}\n".encode(), "text/plain; charset=utf-8")

    def _answer(self, status: int, body: bytes, content_type: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        log.debug(format, *arguments)


class Server(http.server.ThreadingHTTPServer):
    """Serves a webhook by TLS. A new certificate in the same files is used for the next connection."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], webhook: Webhook, certificate: str, key: str) -> None:
        handler = type("Handler", (_Handler,), {"webhook": webhook})
        super().__init__(address, handler)
        self._files = certificate, key
        self._changed_s = 0.0
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        connection.settimeout(CONNECTION_S)
        changed_s = max(os.stat(path).st_mtime for path in self._files)
        if changed_s != self._changed_s:
            self._context.load_cert_chain(*self._files)
            self._changed_s = changed_s
        # the handshake happens in the connection's own thread, so that a slow client delays no other
        return self._context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            log.warning("connection of %s refused: %d are open", client_address[0], MAX_CONNECTIONS)
            return self.shutdown_request(request)
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread was started
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("connection of %s failed", client_address, exc_info=True)
