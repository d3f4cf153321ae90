"""cluster/kueue: the webhook, its certificates, the processes with leader election, and the manifests."""

from __future__ import annotations

import base64
import contextlib
import copy
import http.client
import json
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import kubernetes_validate
import yaml
from fake_api import Object, apply_json_patch
from mdot_kueue import decide
from mdot_kueue.objects import ERROR, GATE, GATES, JOB, KINDS, OPTIONS, PREDICTION, gates, is_owned, kind_of
from mdot_kueue.webhook import MAX_CONNECTIONS, Server, Webhook
from mdot_schedulers import Answer, Site
from support import FILES, SITE, ApiCase, read, wait_for

KUEUE = Path(__file__).resolve().parents[2] / "kueue"
LABELLED = {
    **SITE,
    "places": [
        {**place, "labels": {"nvidia.com/gpu.product": label}}
        for place, label in zip(SITE["places"], ("NVIDIA-A100-SXM4-40GB", "Tesla-T4"))  # type: ignore[call-overload]
    ],
}


def review(job: object, operation: str = "CREATE") -> Object:
    request = {"uid": "u1", "operation": operation, "namespace": "team-a", "object": job}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def patched(job: Object, answer: Object) -> Object:
    response = answer["response"]
    operations = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
    changed: Object = apply_json_patch(job, operations)
    return changed


def certificates(folder: str) -> tuple[str, str, str]:
    """Files of certificate and key by certificates.sh, and the authority in PEM."""
    text = subprocess.run([KUEUE / "certificates.sh", "team-x"], capture_output=True, text=True, check=True).stdout
    secret, configuration = yaml.safe_load_all(text)
    kubernetes_validate.validate(secret, "1.31", strict=True)
    kubernetes_validate.validate(configuration, "1.31", strict=True)
    for name, value in secret["data"].items():
        (Path(folder) / name).write_bytes(base64.b64decode(value))
    service = configuration["webhooks"][0]["clientConfig"]
    assert service["service"]["namespace"] == secret["metadata"]["namespace"] == "team-x"
    return str(Path(folder) / "tls.crt"), str(Path(folder) / "tls.key"), base64.b64decode(service["caBundle"]).decode()


class Reviews(ApiCase):
    def setUp(self) -> None:
        super().setUp()
        self.gating = Webhook(lambda: self.site)
        self.site = Site.from_mapping(LABELLED)
        self.alone = Webhook(lambda: self.site, self.cluster)

    def test_new_jobs_get_the_gate(self) -> None:
        for name in FILES.values():
            job = read(name)
            changed = patched(job, self.gating.review(review(copy.deepcopy(job))))
            self.assertEqual(changed["metadata"]["annotations"].pop(GATES), GATE)
            self.assertEqual(changed, job)
        job = read("job")
        job["metadata"]["annotations"][GATES] = f"example.com/a,{GATE}"
        self.assertNotIn("patch", self.gating.review(review(job))["response"])
        job["metadata"]["annotations"][GATES] = "example.com/a"
        changed = patched(job, self.gating.review(review(copy.deepcopy(job))))
        self.assertEqual(changed["metadata"]["annotations"][GATES], f"example.com/a,{GATE}")

    def test_other_objects_stay_as_they_are(self) -> None:
        plain, owned, other = read("job"), read("job"), read("job")
        del plain["metadata"]["annotations"][JOB]
        owned["metadata"]["ownerReferences"] = [{"kind": "JobSet", "name": "a", "controller": True}]
        other["kind"] = "CronJob"
        for job, operation in (
            (plain, "CREATE"),
            (owned, "CREATE"),
            (other, "CREATE"),
            (read("job"), "UPDATE"),
            (None, "CREATE"),
        ):
            for webhook in (self.gating, self.alone):
                self.assertEqual(webhook.review(review(job, operation))["response"], {"uid": "u1", "allowed": True})

    def test_without_kueue_jobs_get_a_deadline_and_a_preference(self) -> None:
        for name, policy in [*((name, {}) for name in FILES.values()), ("pytorchjob", None), ("pytorchjob", "absent")]:
            job = read(name)
            job["metadata"]["annotations"][OPTIONS] += ",choose=cost"
            for pods in next(kind for kind in KINDS if kind.kind == job["kind"]).pods(job):
                pods.spec.update(affinity=None)  # by a chart's empty value
            if name == "pytorchjob":
                job["spec"]["runPolicy"] = policy
            if policy == "absent":
                del job["spec"]["runPolicy"]
            answer = self.alone.review(review(copy.deepcopy(job)))
            self.assertNotIn("warnings", answer["response"])
            changed = patched(job, answer)
            self.assertIn("gpu=T4 ", changed["metadata"]["annotations"][PREDICTION])
            self.assertNotIn(GATES, changed["metadata"]["annotations"])
            kind = kind_of(changed)
            assert kind is not None
            limits = {part.get("activeDeadlineSeconds") for part in kind.deadlines(changed)}
            self.assertEqual(len(limits), 1)
            self.assertIn(f"limit_s={limits.pop()}", changed["metadata"]["annotations"][PREDICTION])
            for pods in kind.pods(changed):
                affinity = pods.spec.get("affinity")
                self.assertEqual(affinity is not None, "nvidia.com/gpu" in str(pods.spec["containers"]))
                if affinity is not None:
                    terms = affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
                    self.assertEqual([(t["weight"], t["preference"]["matchExpressions"][0]["values"]) for t in terms],
                                     [(100, ["Tesla-T4"]), (50, ["NVIDIA-A100-SXM4-40GB"])])  # fmt: skip
            if name == "job":
                kubernetes_validate.validate(changed, "1.31", strict=True)

    def test_without_kueue_faults_are_warnings(self) -> None:
        for annotation, value, words in ((JOB, "nothing", "no ConfigMap"), (OPTIONS, "batch=0", "batch must")):
            job = read("job")
            job["metadata"]["annotations"][annotation] = value
            answer = self.alone.review(review(copy.deepcopy(job)))
            self.assertRegex(answer["response"]["warnings"][0], words)
            changed = patched(job, answer)
            self.assertRegex(changed["metadata"]["annotations"].pop(ERROR), words)
            self.assertEqual(changed, job)

    def test_many_requests_at_once_are_admitted_without_predictions(self) -> None:
        begun, release = threading.Semaphore(0), threading.Event()

        def wait(data: bytes, request: object, names: list[str], *rest: object) -> list[Answer]:
            begun.release()
            release.wait(60)
            return [Answer("T4", 100, 80, 130, 1 << 30, True, 64)] * len(names)

        with mock.patch.object(decide, "predict_apart", side_effect=wait):
            threads = [threading.Thread(target=self.alone.review, args=(review(read("job")),)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for _ in threads:
                begun.acquire()
            answer = self.alone.review(review(read("job")))
            release.set()
            for thread in threads:
                thread.join()
        self.assertRegex(answer["response"]["warnings"][0], "too many requests")

    def test_any_review_is_admitted_or_refused_as_a_review(self) -> None:
        source = random.Random(3)
        values = [None, 1, "x", [], {}, [1], {"a": {}}, True, float("nan"), "\ud800", -1, 10**40]

        def damage(item: object) -> object:
            if isinstance(item, dict) and item and source.random() < 0.8:
                name = source.choice(list(item))
                return {**item, name: damage(item[name])}
            return source.choice(values)

        def needs_gate(job: object) -> bool:
            if not isinstance(job, dict) or kind_of(job) is None or JOB not in (job["metadata"].get("annotations") or {}):
                return False
            return not is_owned(job) and GATE not in gates(job)

        gated = reasons = 0
        with mock.patch.object(decide, "predict_apart", side_effect=ValueError), mock.patch("mdot_kueue.webhook.log"):
            for _ in range(1200):
                body: Any = review(read(source.choice(list(FILES.values()))))
                if source.random() < 0.5:
                    body = damage(body)
                else:
                    body["request"]["object"]["metadata"] = damage(body["request"]["object"]["metadata"])
                sent = copy.deepcopy(body)
                webhook = source.choice([self.gating, self.alone])
                try:
                    response = webhook.review(body)["response"]
                except ValueError:
                    continue
                self.assertTrue(response["allowed"])
                json.dumps(response)
                request = sent["request"]
                if webhook is self.alone or request.get("operation") != "CREATE":
                    continue
                job = request.get("object")
                if "patch" in response:  # nothing but the gate is added
                    changed = patched(job, {"response": response})
                    self.assertIn(GATE, changed["metadata"]["annotations"].pop(GATES).split(","))
                    (job["metadata"].get("annotations") or {}).pop(GATES, None)
                    job["metadata"]["annotations"] = job["metadata"].get("annotations") or {}
                    self.assertEqual(json.dumps(changed, sort_keys=True), json.dumps(job, sort_keys=True))
                    gated += 1
                    continue
                try:
                    is_wanted = needs_gate(job)
                except (TypeError, AttributeError, KeyError):
                    is_wanted = True
                if is_wanted:  # the reason is given
                    self.assertRegex(response["warnings"][0], "no prediction: .*(Error|form)")
                    reasons += 1
        self.assertGreater(gated, 100)
        self.assertGreater(reasons, 30)


class Tls(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.certificate, self.key, self.authority = certificates(folder.name)
        self.server = Server(("127.0.0.1", 0), Webhook(lambda: Site()), self.certificate, self.key)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def post(self, body: bytes, authority: str, path: str = "/", **headers: str) -> tuple[int, bytes]:
        context = ssl.create_default_context(cadata=authority)
        context.check_hostname = False  # the address is not the service's name
        connection = http.client.HTTPSConnection("127.0.0.1", self.server.server_port, context=context, timeout=30)
        connection.request("POST" if body else "GET", path, body or None, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        found = answer.status, answer.read()
        connection.close()
        return found

    def test_reviews_travel_by_tls(self) -> None:
        status, body = self.post(json.dumps(review(read("job"))).encode(), self.authority)
        self.assertEqual((status, json.loads(body)["response"]["patchType"]), (200, "JSONPatch"))
        self.assertEqual(self.post(b"", self.authority, "/healthz")[0], 200)
        bodies = [b"no json", b"[]", b"{}", b"[" * 100000, b'{"request": {"uid": 1}}', b"\xff", b'{"a":' * 100000, b"null",
                  b'{"request": {"uid": "a", "object": NaN}}', b'{"request": {"uid": "a"}, "request": {"uid": "a"}}',
                  b'{"request": {"uid": "a", "uid": "b"}}', b"9" * 5000]  # fmt: skip
        for bad in bodies:
            status, reason = self.post(bad, self.authority)
            self.assertEqual((status, reason[:41]), (400, b"mdot: the body is not an AdmissionReview:"), bad[:40])

    def exchange(self, data: bytes) -> bytes:
        """All that the server sends until it closes the connection."""
        context = ssl.create_default_context(cadata=self.authority)
        context.check_hostname = False
        with context.wrap_socket(socket.create_connection(("127.0.0.1", self.server.server_port), 60)) as connection:
            connection.sendall(data)
            found = b""
            with contextlib.suppress(OSError):
                while part := connection.recv(1 << 16):
                    found += part
        return found

    def test_any_request_is_answered_in_plain_words(self) -> None:
        good = json.dumps(review(read("job"))).encode()
        lines = [b"POST / HTTP/1.1", b"PUT / HTTP/1.1", b"GET /x HTTP/1.1", b"POST / HTTP/9.9", b"POST /", b"\x00\xff", b"POST  HTTP/1.1",
                 b"POST /" + b"x" * 70000 + b" HTTP/1.1"]  # fmt: skip
        types = [b"application/json", b"text/html", b"application/json; charset=x", b"multipart/form-data", b"\xff", b""]
        lengths = [b"%d" % len(good), b"-1", b"1e3", b"\xb2", b"99999999", b"9" * 30, b"", b"%d\r\nContent-Length: 7" % len(good)]
        source = random.Random(5)
        answered = 0
        with mock.patch("mdot_kueue.webhook.log"):
            for i in range(160):
                line, kind, length = (source.choice(found[: 99 if i % 4 == k else 1]) for k, found in enumerate((lines, types, lengths)))
                extra = b"X: y\r\n" * source.choice((0, 0, 0, 200))
                head = line + b"\r\nContent-Type: " + kind + b"\r\nContent-Length: " + length + b"\r\n" + extra
                answer = self.exchange(head + b"Connection: close\r\n\r\n" + good)
                start, _, body = answer.partition(b"\r\n\r\n") if answer.startswith(b"HTTP/") else (b"", b"", answer)
                if start.startswith(b"HTTP/1.1 200"):
                    self.assertTrue(json.loads(body)["response"]["allowed"])
                    answered += 1
                elif start:
                    self.assertIn(b"Content-Type: text/plain", start)
                if start:
                    self.assertRegex(body.decode(), "^[^<>]{4,}\n$", (head[:200], answer[:200])) if b" 200 " not in start else None
            self.assertGreater(answered, 3)
            self.assertEqual(self.post(b"", self.authority, "/healthz")[0], 200)

    def test_a_body_that_ends_too_early_or_never_is_cut_off(self) -> None:
        good = json.dumps(review(read("job"))).encode()
        head = b"POST / HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(good)
        with mock.patch("mdot_kueue.webhook.REQUEST_S", 0.3):  # whoever waits is cut off after any time
            for cut in (1, 20, len(head) - 1, len(head), len(head) + 1, len(head) + len(good) - 1):
                self.assertNotIn(b"HTTP/1.1 200", self.exchange((head + good)[:cut] if cut != 20 else head[:20] + b"\n"))
        self.assertEqual(self.post(good, self.authority)[0], 200)

    def test_more_connections_than_allowed_are_closed(self) -> None:
        with mock.patch("mdot_kueue.webhook.log"):
            self.assertEqual(self.server._free._value, MAX_CONNECTIONS)  # type: ignore[attr-defined]
            self.server._free = threading.BoundedSemaphore(8)
            held = [socket.create_connection(("127.0.0.1", self.server.server_port), 30) for _ in range(8)]
            wait_for(lambda: self.server._free._value == 0)  # type: ignore[attr-defined]
            with self.assertRaises(OSError):
                self.post(b"", self.authority, "/healthz")
            for connection in held:
                connection.close()
            wait_for(lambda: self.server._free._value == 8)  # type: ignore[attr-defined]
        self.assertEqual(self.post(b"", self.authority, "/healthz")[0], 200)

    def test_the_certificate_names_the_service(self) -> None:
        context = ssl.create_default_context(cadata=self.authority)
        raw = socket.create_connection(("127.0.0.1", self.server.server_port), 30)
        with context.wrap_socket(raw, server_hostname="mdot-kueue.team-x.svc") as found:
            self.assertGreaterEqual(found.version() or "", "TLSv1.2")
        raw = socket.create_connection(("127.0.0.1", self.server.server_port), 30)
        with self.assertRaises(ssl.SSLCertVerificationError):
            context.wrap_socket(raw, server_hostname="other.team-x.svc")

    def test_a_renewed_certificate_and_silent_clients(self) -> None:
        silent = [socket.create_connection(("127.0.0.1", self.server.server_port), 30) for _ in range(20)]
        with tempfile.TemporaryDirectory() as folder:
            certificate, key, authority = certificates(folder)
            for new, old in ((certificate, self.certificate), (key, self.key)):
                os.replace(new, old)
        self.assertEqual(self.post(b"", authority, "/healthz")[0], 200)
        with self.assertRaises(ssl.SSLError):
            self.post(b"", self.authority, "/healthz")
        for client in silent:
            client.close()


class Processes(ApiCase):
    def start(self, *options: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "mdot_kueue", "--site", str(self.folder / "site.yaml"), "--lease-seconds", "9", *options],
            env={**os.environ, "KUBECONFIG": str(self.folder / "config")},
            stderr=subprocess.PIPE,
        )

        def end() -> None:
            process.kill()
            process.communicate()

        self.addCleanup(end)
        return process

    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "site.yaml").write_text(json.dumps(SITE))
        configuration = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {"server": f"http://127.0.0.1:{self.api.port}"}}],
            "users": [{"name": "u", "user": {}}],
        }
        (self.folder / "config").write_text(json.dumps(configuration))

    def holder(self) -> str:
        leases = self.api.find("coordination.k8s.io", "leases")
        return leases[0]["spec"]["holderIdentity"] if leases else ""

    def test_from_creation_to_prediction_with_a_killed_leader(self) -> None:
        certificate, key, authority = certificates(str(self.folder))
        processes = [self.start("--certificates", str(self.folder), "--port", "0"), self.start()]
        stderr = processes[0].stderr
        assert stderr is not None
        line = next(line for line in stderr if b"webhook on port" in line)
        self.api.webhook = ("mdot-kueue.team-x.svc", int(line.rsplit(b" ", 1)[1]), authority)

        def submit(name: str) -> tuple[str, str, str, str]:
            job = read("job")
            job["metadata"]["name"] = name
            made = self.api.create("batch", "jobs", job, calls_webhook=True)
            self.assertEqual(made["metadata"]["annotations"][GATES], GATE)
            return "batch", "jobs", "team-a", name

        def is_predicted(path: tuple[str, str, str, str]) -> bool:
            found = self.api.objects[path]["metadata"]["annotations"]
            return GATES not in found and PREDICTION in found

        first = submit("first")
        wait_for(lambda: is_predicted(first), 120)
        leader = next(p for p in processes if self.holder().endswith(f"-{p.pid}"))
        others = [p for p in processes if p is not leader]
        leader.send_signal(signal.SIGSTOP)  # a leader that hangs
        second = ("batch", "jobs", "team-a", "second")
        job = read("job")
        job["metadata"]["name"] = "second"
        job["metadata"]["annotations"][GATES] = GATE
        self.api.create("batch", "jobs", job)
        wait_for(lambda: is_predicted(second), 120)
        self.assertTrue(self.holder().endswith(f"-{others[0].pid}"))
        leader.send_signal(signal.SIGCONT)
        leader.wait(60)  # it lost its lease
        self.assertEqual(leader.returncode, 1)
        state = json.loads(self.api.find("", "configmaps", "mdot-system", "mdot-outcomes")[0]["data"]["state.json"])
        self.assertEqual({entry["namespace"] for entry in state["open"].values()}, {"team-a"})
        rights = {
            (verb, resource, name) for verb, _, resource, namespace, name in self.api.rights if namespace == "mdot-system"
        }
        self.assertLessEqual({right for right in rights if right[1] == "leases"},
                             {("create", "leases", ""), ("get", "leases", "mdot-kueue"), ("update", "leases", "mdot-kueue")})  # fmt: skip

    def test_without_kueue_the_webhook_predicts(self) -> None:
        authority = certificates(str(self.folder))[2]
        (self.folder / "site.yaml").write_text(json.dumps(LABELLED))
        process = self.start("--without-kueue", "--certificates", str(self.folder), "--port", "0")
        assert process.stderr is not None
        line = next(line for line in process.stderr if b"webhook on port" in line)
        self.api.webhook = ("mdot-kueue.team-x.svc", int(line.rsplit(b" ", 1)[1]), authority)
        made = self.api.create("batch", "jobs", read("job"), calls_webhook=True)
        self.assertGreater(made["spec"]["activeDeadlineSeconds"], 600)
        self.assertEqual(self.api.warnings, [])
        process.kill()
        process.wait()
        job = read("job")
        job["metadata"]["name"] = "later"
        self.assertNotIn("activeDeadlineSeconds", self.api.create("batch", "jobs", job, calls_webhook=True)["spec"])

    def test_faulty_arguments_are_named(self) -> None:
        (self.folder / "site.yaml").write_text("quantile: 7\n")
        process = self.start()
        _, stderr = process.communicate(timeout=60)
        self.assertEqual((process.returncode, b"site.yaml: quantile must be" in stderr), (2, True), stderr)


class Manifests(unittest.TestCase):
    def test_core_types_are_valid(self) -> None:
        count = 0
        for path in sorted((KUEUE / "manifests").glob("*.yaml")):
            for item in yaml.safe_load_all(path.read_text()):
                kubernetes_validate.validate(item, "1.31", strict=True)
                count += 1
        self.assertGreaterEqual(count, 12)

    def test_an_invalid_manifest_would_be_found(self) -> None:
        (deployment, _) = yaml.safe_load_all((KUEUE / "manifests" / "deployment.yaml").read_text())
        deployment["spec"]["template"]["spec"]["containers"][0]["imagge"] = "x"
        with self.assertRaises(Exception):
            kubernetes_validate.validate(deployment, "1.31", strict=True)

    def test_the_configuration_and_the_webhook_fit_the_code(self) -> None:
        (site,) = yaml.safe_load_all((KUEUE / "manifests" / "site.yaml").read_text())
        self.assertEqual(len(Site.from_mapping(yaml.safe_load(site["data"]["site.yaml"])).places), 2)
        (webhook,) = yaml.safe_load_all((KUEUE / "manifests" / "webhook.yaml").read_text())
        rules = {(r["apiGroups"][0], r["apiVersions"][0], r["resources"][0]) for r in webhook["webhooks"][0]["rules"]}
        self.assertEqual(rules, {(kind.group, kind.version, kind.plural) for kind in KINDS})
        self.assertLess(Site().prediction_s, webhook["webhooks"][0]["timeoutSeconds"])
        self.assertEqual(webhook["webhooks"][0]["failurePolicy"], "Ignore")


if __name__ == "__main__":
    unittest.main()
