"""What the tests of cluster/kueue share: an API server with Kueue's objects, a configuration, and job files."""

from __future__ import annotations

import base64
import os
import tempfile
import threading
import time
import unittest
import warnings
from pathlib import Path
from typing import Any, Callable

import mdot
import yaml
from fake_api import FakeApi, Object
from kubernetes import client
from mdot_kueue.cluster import Cluster
from mdot_kueue.controller import Controller
from mdot_kueue.fair_queue import Key
from mdot_kueue.objects import ERROR, GATE, GATES, MAX_SECONDS, PREDICTION
from mdot_schedulers import Site

DATA = Path(__file__).parent / "data"
SITE = {
    "places": [
        {"name": "a100", "gpu": "A100-SXM-40GB", "price": 2.1},
        {"name": "t4", "gpu": "T4", "price": 0.35},
    ],
    "priority_weight": 1000,
    "limits_doubtful": True,
}
FILES = {"jobs": "job", "jobsets": "jobset", "pytorchjobs": "pytorchjob", "rayjobs": "rayjob"}
RESNET: bytes = b""
USED_RIGHTS: set[tuple[str, str, str, str, str]] = set()
"""Of all cases of the program."""


def resnet() -> bytes:
    global RESNET
    if not RESNET:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "resnet50.job"
            mdot.Job.from_onnx(Path(os.environ["MDOT_EXAMPLE_JOBS"]) / "resnet50.onnx").save(path)
            RESNET = path.read_bytes()
    return RESNET


def read(name: str) -> Object:
    found: Object = yaml.safe_load((DATA / f"{name}.yaml").read_text())
    return found


def wait_for(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """Waits for a condition; the limit is against hangs only."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError("the condition is not met")
        time.sleep(0.02)
    return found


class ApiCase(unittest.TestCase):
    def setUp(self) -> None:
        warnings.simplefilter("ignore", mdot.Warning)
        self.api = FakeApi()
        self.api.start()
        self._threads: list[threading.Thread] = []
        self.addCleanup(self._end)
        for item in yaml.safe_load_all((DATA / "kueue.yaml").read_text()):
            self.api.create("kueue.x-k8s.io", f"{item['kind'].lower()}s", item)
        self.config_map("resnet50-job", {"resnet50.job": resnet()})
        self.now_s = 1_800_000_000.0
        self.site = Site.from_mapping(SITE)
        configuration = client.Configuration(host=f"http://127.0.0.1:{self.api.port}")
        configuration.retries = False
        self.cluster = Cluster("mdot-system", client.ApiClient(configuration), timeout_s=10)
        self.controller = self.new_controller()

    def new_controller(self) -> Controller:
        return Controller(self.cluster, lambda: self.site, lambda: self.now_s, workers=2)

    def config_map(self, name: str, values: dict[str, bytes]) -> None:
        encoded = {key: base64.b64encode(value).decode() for key, value in values.items()}
        item = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "team-a"},
            "binaryData": encoded,
        }
        self.api.create("", "configmaps", item)

    def submit(self, resource: str = "jobs", change: Callable[[Object], None] | None = None, gates: str = GATE) -> Key:
        """Creates the object of the data file with the gate, as the webhook does."""
        item = read(FILES[resource])
        item["metadata"]["annotations"][GATES] = gates
        if change is not None:
            change(item)
        made = self.api.create(self.api.kinds[resource], resource, item)
        return Key(made["kind"], "team-a", made["metadata"]["name"])

    def path(self, key: Key) -> tuple[str, str, str, str]:
        resource = f"{key.kind.lower()}s"
        return self.api.kinds[resource], resource, key.namespace, key.name

    def get(self, key: Key) -> Object:
        return self.api.objects[self.path(key)]

    def workload(self, key: Key) -> Object:
        uid = self.get(key)["metadata"]["uid"]
        return next(
            w for w in self.api.find("kueue.x-k8s.io", "workloads") if w["metadata"]["labels"]["kueue.x-k8s.io/job-uid"] == uid
        )

    def events(self) -> list[Object]:
        return sorted(self.api.find("", "events"), key=lambda event: int(event["metadata"]["resourceVersion"]))

    def run_controller(self) -> Controller:
        controller = self.new_controller()
        thread = threading.Thread(target=controller.run, daemon=True)
        thread.start()
        self._threads.append(thread)
        self.addCleanup(controller.stop)
        return controller

    def _end(self) -> None:
        """The controllers have been stopped; their watches end with the API server."""
        if self.api._server is not None:
            self.api.stop()
        for thread in self._threads:
            thread.join()


class Case(ApiCase):
    def tearDown(self) -> None:
        USED_RIGHTS.update(self.api.rights)

    def annotation(self, key: Key, name: str) -> str | None:
        return self.get(key)["metadata"]["annotations"].get(name)

    def reconcile(self, key: Key) -> float | None:
        return self.controller.reconcile(key)

    def assert_refused(self, key: Key, words: str) -> None:
        """The gate is open, and annotation and Event say why."""
        self.reconcile(key)
        self.assertNotIn(GATE, self.annotation(key, GATES) or "")
        self.assertRegex(self.annotation(key, ERROR) or "", words)
        self.assertIsNone(self.annotation(key, PREDICTION))
        self.assertNotIn(MAX_SECONDS, self.get(key)["metadata"]["labels"])
        self.assertEqual(self.events()[-1]["reason"], "NotPredicted")
        self.assertRegex(self.events()[-1]["message"], words)
