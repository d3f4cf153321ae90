"""cluster/kueue: the controller against an API server that stands in for a real one."""

from __future__ import annotations

import base64
import copy
import re
import textwrap
import threading
import unittest
from pathlib import Path
from random import Random
from unittest import mock

import kubernetes_validate
import yaml
from fake_api import Object, Path as ApiPath
from mdot_kueue import decide
from mdot_kueue.fair_queue import FairQueue, Key
from mdot_kueue.objects import BOOST, ERROR, GATE, GATES, JOB, LIMIT, MAX_SECONDS, OPTIONS, PREDICTION, count_gpus, kind_of
from mdot_schedulers import Answer, Site, Unpredictable
from support import FILES, SITE, USED_RIGHTS, Case, read, resnet, wait_for

MANIFESTS = Path(__file__).resolve().parents[2] / "kueue" / "manifests"


class Page(Case):
    def test_the_objects_of_the_page_are_predicted(self) -> None:
        """docs/run-in-kueue.md, with the manifests' site.yaml, in the namespace `default`."""
        page = (MANIFESTS.parents[1] / "docs" / "run-in-kueue.md").read_text()
        found = [item for text in re.findall(r"```yaml\n(.*?)```", page, re.S) for item in yaml.safe_load_all(textwrap.dedent(text))]
        self.assertEqual([item["kind"] for item in found], ["ResourceFlavor", "ClusterQueue", "LocalQueue", "Job"])
        for path in [path for path in self.api.objects if path[0] == "kueue.x-k8s.io"]:
            self.api.delete(path)
        for item in found[:3]:
            self.api.create("kueue.x-k8s.io", f"{item['kind'].lower()}s", item)
        binary = {"resnet50.job": base64.b64encode(resnet()).decode()}
        names = {"name": "resnet50-job", "namespace": "default"}
        self.api.create("", "configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": names, "binaryData": binary})
        (manifest,) = yaml.safe_load_all((MANIFESTS / "site.yaml").read_text())
        self.site = Site.from_mapping(yaml.safe_load(manifest["data"]["site.yaml"]))
        job = found[3]
        kubernetes_validate.validate(job, "1.31", strict=True)
        job["metadata"] |= {"name": job["metadata"].pop("generateName") + "x7k2p", "namespace": "default"}
        job["metadata"]["annotations"][GATES] = GATE  # by the webhook
        job["spec"]["suspend"] = True  # by Kueue's webhook
        self.api.create("batch", "jobs", job)
        key = Key("Job", "default", job["metadata"]["name"])
        self.assertIsNone(self.reconcile(key))
        self.assertNotIn(GATES, self.get(key)["metadata"]["annotations"])
        self.assertRegex(self.annotation(key, PREDICTION) or "", "^mdot: gpu=A100-SXM-40GB gpus=1 step_ms=52.* steps=10000 ")
        self.assertGreater(int(self.get(key)["metadata"]["labels"][MAX_SECONDS]), 10000 * 0.05)
        self.assertEqual(self.events()[-1]["reason"], "Predicted")


class Predictions(Case):
    def test_each_kind_gets_limit_words_and_an_open_gate(self) -> None:
        counts = {"jobs": (2, 1), "jobsets": (16, 4), "pytorchjobs": (4, 4), "rayjobs": (4, 2)}
        for resource in FILES:
            key = self.submit(resource)
            before = copy.deepcopy(self.get(key))
            kind = kind_of(before)
            assert kind is not None
            gpus = count_gpus(before, kind, self.site.gpu_resources)
            self.assertEqual((gpus.count, gpus.nodes), counts[resource])
            self.assertEqual(self.workload(key)["metadata"]["annotations"][GATES], GATE)
            self.assertIsNone(self.reconcile(key))
            after = self.get(key)
            self.assertNotIn(GATES, after["metadata"]["annotations"])
            self.assertNotIn(GATES, self.workload(key)["metadata"]["annotations"])
            words = self.annotation(key, PREDICTION) or ""
            self.assertRegex(words, rf"^mdot: gpu=T4 gpus={gpus.count} step_ms=\S+ interval_ms=\S+\.\.\S+ steps=10000 total_s=")
            limit = after["metadata"]["labels"][MAX_SECONDS]
            self.assertIn(f"limit_s={limit} ", words)
            self.assertEqual(self.workload(key)["metadata"]["annotations"][BOOST], words.split("priority=")[1].split()[0])
            self.assertEqual(after["spec"], before["spec"])
            event = self.events()[-1]
            self.assertEqual((event["reason"], event["type"], event["message"]), ("Predicted", "Normal", words))
            self.assertEqual(event["involvedObject"]["uid"], after["metadata"]["uid"])

    def test_other_gates_and_own_limits_stay(self) -> None:
        def own(job: Object) -> None:
            job["metadata"]["labels"][MAX_SECONDS] = "900"

        key = self.submit(change=own, gates=f"example.com/quota,{GATE}")
        self.reconcile(key)
        self.assertEqual(self.annotation(key, GATES), "example.com/quota")
        self.assertEqual(self.get(key)["metadata"]["labels"][MAX_SECONDS], "900")
        self.assertNotIn("limit_s", self.annotation(key, PREDICTION) or "")
        self.assertIn("binding_s=900", self.annotation(key, PREDICTION) or "")

    def test_a_flavor_is_chosen_by_cost_within_the_deadline(self) -> None:
        def options(text: str):  # type: ignore[no-untyped-def]
            return lambda job: job["metadata"]["annotations"].update({OPTIONS: "batch=64,precision=amp,steps=100000," + text})

        for resource, text, product in (
            ("jobs", "choose=cost", "Tesla-T4"),
            ("jobsets", "choose=time", "NVIDIA-A100-SXM4-40GB"),
            ("rayjobs", "deadline=2027-01-15T16:00:00Z", "NVIDIA-A100-SXM4-40GB"),  # 8 hours, as now_s is 08:00
            ("pytorchjobs", "choose=cost,deadline=2027-03-15T00:00:00Z", "Tesla-T4"),
        ):
            key = self.submit(resource, options(text))
            self.reconcile(key)
            job = self.get(key)
            kind = kind_of(job)
            assert kind is not None
            self.assertIsNone(self.annotation(key, ERROR))
            for pods in kind.pods(job):
                has_gpus = "nvidia.com/gpu" in str(pods.spec["containers"])
                expected = {"nvidia.com/gpu.product": product} if has_gpus else None
                self.assertEqual(pods.spec.get("nodeSelector"), expected, (resource, self.annotation(key, PREDICTION)))

    def test_flavors_that_a_job_cannot_get_are_left_out(self) -> None:
        """Quota, node selector, affinity and taints decide, as in Kueue."""

        def gpus(job: Object) -> None:
            job["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 20}}
            job["metadata"]["annotations"][OPTIONS] += ",choose=time"  # the queue has 16 A100

        def selector(job: Object) -> None:
            job["spec"]["template"]["spec"]["nodeSelector"] = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}

        def affinity(job: Object) -> None:
            term = {"matchExpressions": [{"key": "nvidia.com/gpu.product", "operator": "NotIn", "values": ["Tesla-T4"]}]}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
            job["spec"]["template"]["spec"]["affinity"] = {"nodeAffinity": required}

        for change, gpu in ((gpus, "T4"), (selector, "A100-SXM-40GB"), (affinity, "A100-SXM-40GB")):

            def named(job: Object, change=change) -> None:  # type: ignore[no-untyped-def]
                change(job)
                job["metadata"]["name"] = change.__name__

            key = self.submit(change=named)
            self.reconcile(key)
            self.assertIn(f"gpu={gpu} ", self.annotation(key, PREDICTION) or "")

    def test_a_flavor_outside_the_configuration_prevents_limit_and_choice(self) -> None:
        def spot(job: Object) -> None:
            job["spec"]["template"]["spec"]["tolerations"] = [{"key": "spot", "operator": "Exists"}]
            job["metadata"]["annotations"][OPTIONS] += ",choose=cost"

        key = self.submit(change=spot)
        self.reconcile(key)
        self.assertIsNotNone(self.annotation(key, PREDICTION))
        self.assertNotIn(MAX_SECONDS, self.get(key)["metadata"]["labels"])
        self.assertNotIn("nodeSelector", self.get(key)["spec"]["template"]["spec"])

    def test_without_a_queue_there_is_a_prediction_only(self) -> None:
        key = self.submit(change=lambda job: job["metadata"]["labels"].pop("kueue.x-k8s.io/queue-name"))
        self.controller._tries[key] = 100  # its Workload will never come
        self.reconcile(key)
        self.assertIsNotNone(self.annotation(key, PREDICTION))
        self.assertEqual(self.get(key)["metadata"]["labels"], {})


class Faults(Case):
    def test_faults_of_users_open_the_gate(self) -> None:
        self.config_map("hostile", {"a.job": b"\x7fELF" * 1000, "b.job": b""})
        self.config_map("large", {"a.job": b"0" * (1 << 20)})

        def annotate(name: str, value: str | None):  # type: ignore[no-untyped-def]
            def change(job: Object) -> None:
                job["metadata"]["annotations"].pop(name, None)
                if value is not None:
                    job["metadata"]["annotations"][name] = value

            return change

        def template(**spec: object):  # type: ignore[no-untyped-def]
            return lambda job: job["spec"].update(spec)

        def resources(**limits: object):  # type: ignore[no-untyped-def]
            found = {name.replace("_", ".com/"): value for name, value in limits.items()}
            return lambda job: job["spec"]["template"]["spec"]["containers"][0].update(resources={"limits": found})

        cases = (
            (annotate(JOB, None), "must be NAME"),
            (annotate(JOB, "../secret"), "must be NAME"),
            (annotate(JOB, "nothing"), "no ConfigMap nothing"),
            (annotate(JOB, "hostile"), "2 keys"),
            (annotate(JOB, "hostile/c.job"), "no binary value"),
            (annotate(JOB, "hostile/a.job"), "the .job file"),
            (annotate(JOB, "hostile/b.job"), "the .job file"),
            (annotate(JOB, "large/a.job"), "at most"),
            (annotate(OPTIONS, "batch=0"), "batch must be"),
            (annotate(OPTIONS, "gpus=8"), "gpus follows"),
            (annotate(OPTIONS, "tp=3"), "T4|A100"),
            (annotate(OPTIONS, "precision=fp7\x1b[31m"), "control character"),
            (template(completions=4), "completions exceed"),
            (template(parallelism=10**9), "number of pods"),
            (template(parallelism="many"), "number of pods"),
            (template(template=None), "pod template"),
            (template(template={"spec": {"containers": "none"}}), "unknown form"),
            (resources(cpu=1), "no pod requests GPUs"),
            (resources(nvidia_gpu="1.5"), "whole number"),
            (resources(nvidia_gpu="999"), "enough quota"),
        )
        for number, (change, words) in enumerate(cases):

            def named(job: Object, change=change, number=number) -> None:  # type: ignore[no-untyped-def]
                change(job)
                job["metadata"]["name"] = f"job-{number}"

            self.assert_refused(self.submit(change=named), words)

    def test_the_gpus_of_a_pod_are_those_that_it_holds(self) -> None:
        """Law: by Kubernetes' rule, a pod holds the maximum of the sum of its containers and each init container, and init containers
        that restart run beside all later ones. A pod that holds more than its containers request is refused."""
        random = Random(8)
        counted = 0
        for _ in range(400):
            pod: Object = {"containers": [], "initContainers": []}
            main = beside = largest = 0
            for name in random.choices(list(pod), k=random.randrange(1, 5)):
                gpus, restarts = random.choice((0, 0, 1, 2)), name == "initContainers" and random.random() < 0.3
                part = random.choice(("limits", "requests"))
                container: Object = {"resources": {part: {"nvidia.com/gpu": random.choice((gpus, str(gpus)))}} if gpus else None}
                pod[name].append(container | ({"restartPolicy": "Always"} if restarts else {}))
                if name == "containers":
                    main += gpus
                elif restarts:
                    beside += gpus
                else:
                    largest = max(largest, beside + gpus)
            job = read("job")
            job["spec"]["template"]["spec"] = pod
            kind = kind_of(job)
            assert kind is not None
            if max(main + beside, largest) == main > 0:
                self.assertEqual(count_gpus(job, kind, self.site.gpu_resources).count, main)
                counted += 1
            else:
                with self.assertRaisesRegex(Unpredictable, "init containers request more" if main + beside + largest else "no pod"):
                    count_gpus(job, kind, self.site.gpu_resources)
        self.assertGreater(counted, 100)

    def test_resources_that_are_no_gpus_here_are_named(self) -> None:
        for resource in ("nvidia.com/mig-1g.10gb", "nvidia.com/gpu.shared", "habana.ai/gaudi"):

            def other(job: Object, resource: str = resource) -> None:
                limits = {resource: 1, "cpu": "4"}
                job["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": limits}
                job["metadata"]["name"] = re.sub("[^a-z]", "-", resource)

            self.assert_refused(self.submit(change=other), f"no pod requests GPUs .*; gpu_resources lacks {resource}$")

    def test_jobs_whose_number_of_pods_may_change_get_no_limit(self) -> None:
        """A limit is for one number of pods; with fewer of them, it would end the job too early."""
        cases = (
            ("jobs", lambda job: job["metadata"]["annotations"].update({"kueue.x-k8s.io/job-min-parallelism": "1"})),
            ("jobs", lambda job: job["metadata"]["annotations"].update({"kueue.x-k8s.io/elastic-job": "true"})),
            ("rayjobs", lambda job: job["spec"]["rayClusterSpec"].update(enableInTreeAutoscaling=True)),
            ("pytorchjobs", lambda job: job["spec"].update(elasticPolicy={"minReplicas": 1, "maxReplicas": 8})),
        )
        for number, (resource, elastic) in enumerate(cases):

            def change(job: Object, elastic=elastic, number=number) -> None:  # type: ignore[no-untyped-def]
                elastic(job)
                job["metadata"]["name"] = f"elastic-{number}"

            self.assert_refused(self.submit(resource, change), "number of pods may change")

    def test_null_members_are_absent_ones(self) -> None:
        """Law: templates of charts leave members empty, which is no fault."""
        for resource in FILES:
            key = self.submit(resource)
            kind = kind_of(self.get(key))
            assert kind is not None

            def empty(job: Object) -> None:
                job["metadata"]["annotations"][OPTIONS] += ",choose=cost"
                job["metadata"]["name"] += "-null"
                for pods in kind.pods(job):
                    pods.spec.update(nodeSelector=None, affinity=None, initContainers=None, tolerations=None, resourceClaims=None)

            key = self.submit(resource, empty)
            self.reconcile(key)
            self.assertIsNone(self.annotation(key, ERROR))
            self.assertIn("Tesla-T4", str(self.get(key)["spec"]))

    def test_a_fault_of_the_controller_opens_the_gate(self) -> None:
        with mock.patch.object(decide, "predict_apart", side_effect=RuntimeError("secret detail")):
            with self.assertLogs("mdot-kueue", "ERROR"):
                key = self.submit()
                self.assert_refused(key, "RuntimeError: the controller's log")
        self.assertNotIn("secret", str(self.get(key)))

    def test_a_refused_prediction_is_withdrawn(self) -> None:
        """The API server accepts the open gate, but not the limit."""

        def refuse(verb: str, path: ApiPath, body: Object | None) -> int:
            return 422 if verb == "update" and path[0] == "batch" and MAX_SECONDS in (body or {})["metadata"]["labels"] else 0

        self.api.refuse = refuse
        key = self.submit()
        with self.assertLogs("mdot-kueue", "WARNING"):
            self.assert_refused(key, "status 422")
        self.assertNotIn(BOOST, self.workload(key)["metadata"]["annotations"])
        self.assertIsNone(self.controller.records.find(self.get(key)["metadata"]["uid"]))

    def test_a_change_between_reading_and_writing_survives(self) -> None:
        key, changes = self.submit(), []

        def change(path: ApiPath) -> None:
            if path[1] == "jobs" and len(changes) < 3:
                changes.append(path)
                self.api.change(path, lambda job: job["metadata"]["labels"].update({"team": str(len(changes))}))

        self.api.before_write = change
        delays = [self.reconcile(key) for _ in range(4)]
        self.assertEqual(delays, [0, 0, 0, None])
        self.assertEqual(self.get(key)["metadata"]["labels"]["team"], "3")
        self.assertIn(MAX_SECONDS, self.get(key)["metadata"]["labels"])
        self.assertEqual(len(self.events()), 1)

    def test_random_objects_lose_the_gate_and_nothing_else(self) -> None:
        """Law: whatever the object is, the gate opens in one call, and only the documented fields change."""
        random = Random(5)
        answer = Answer("T4", 100, 80, 130, 1 << 30, True, 64)
        values = [None, 0, 1, -1, 3, "x", "", [], {}, [{}], True, {"spec": {}}, 10**12]

        def damage(item: object, depth: int = 0) -> object:
            if isinstance(item, dict) and item:
                name = random.choice(list(item))
                return {**item, name: damage(item[name], depth + 1)}
            if isinstance(item, list) and item:
                index = random.randrange(len(item))
                return [*item[:index], damage(item[index], depth + 1), *item[index + 1 :]]
            return random.choice(values)

        with mock.patch.object(decide, "predict_apart", side_effect=lambda data, request, names, *rest: [answer] * len(names)):
            with self.assertLogs("mdot-kueue", "DEBUG") as logs:
                logs.records.append(None)  # type: ignore[arg-type] # no message is required
                for number in range(150):
                    resource = random.choice(list(FILES))

                    def change(job: Object, number: int = number) -> None:
                        for _ in range(random.randrange(3)):
                            job["spec"] = (
                                {**job["spec"], **damage({"spec": job["spec"]})["spec"]}
                                if random.random() < 0.9
                                else job["spec"]
                            )  # type: ignore[index]
                        job["metadata"]["name"] = f"{resource}-{number}"

                    try:
                        key = self.submit(resource, change)
                    except (TypeError, AttributeError):
                        continue  # the fake API server cannot hold it
                    before = copy.deepcopy(self.get(key))
                    self.reconcile(key)
                    after = copy.deepcopy(self.get(key))
                    self.assertNotIn(GATES, after["metadata"]["annotations"])
                    self.assertTrue({PREDICTION, ERROR} & set(after["metadata"]["annotations"]), after)
                    for job in (before, after):
                        for name in (GATES, PREDICTION, ERROR, LIMIT):
                            job["metadata"]["annotations"].pop(name, None)
                        job["metadata"]["labels"].pop(MAX_SECONDS, None)
                        job["metadata"].pop("resourceVersion")
                    self.assertEqual(before, after)


class Fairness(Case):
    def boost(self, key: Key) -> int:
        return int(self.workload(key)["metadata"]["annotations"].get(BOOST, 0))

    def finish(self, key: Key, seconds: float, kind: str = "Complete", reason: str = "") -> None:
        def end(job: Object) -> None:
            job["spec"]["suspend"] = False
            condition = {"type": kind, "status": "True", "reason": reason, "lastTransitionTime": "2027-01-15T10:00:00Z"}
            job["status"] = {"startTime": self.time(10 * 3600 - seconds), "conditions": [condition]}

        self.api.change(self.path(key), end)
        self.reconcile(key)

    @staticmethod
    def time(second: float) -> str:
        return f"2027-01-15T{int(second // 3600):02}:{int(second % 3600 // 60):02}:{int(second % 60):02}Z"

    def named(self, name: str):  # type: ignore[no-untyped-def]
        return lambda job: job["metadata"].update(name=name)

    def test_jobs_that_ran_longer_cost_priority(self) -> None:
        first = self.submit(change=self.named("first"))
        self.reconcile(first)
        honest = self.boost(first)
        self.assertGreater(honest, 0)
        self.finish(first, 9 * 3600)
        again = self.submit(change=self.named("again"))
        self.controller = self.new_controller()  # a restart keeps the records
        self.reconcile(again)
        self.assertLess(self.boost(again), honest)
        self.assertEqual(self.controller.records.find("uid"), None)

    def test_a_job_that_its_limit_ended_counts_twice(self) -> None:
        for reason, expected in (("", 1), ("DeadlineExceeded", 2)):
            key = self.submit(change=self.named(f"job{expected}"))
            with mock.patch.object(self.controller.records, "end") as end:
                self.reconcile(key)
                self.finish(key, 3600, "Failed", reason)
            self.assertEqual(end.call_args[0][1], expected * 3600)

    def test_a_workload_out_of_time_counts_twice_its_limit(self) -> None:
        key = self.submit()
        self.reconcile(key)
        self.api.change(
            self.path(key), lambda job: (job["spec"].update(suspend=False), job.update(status={"startTime": self.time(0)}))
        )
        self.reconcile(key)
        uid = self.get(key)["metadata"]["uid"]
        entry = self.controller.records.find(uid)
        assert entry is not None and entry.start_s is not None
        workload = ("kueue.x-k8s.io", "workloads", "team-a", self.workload(key)["metadata"]["name"])
        condition = {"type": "Evicted", "status": "True", "reason": "DeactivatedDueToMaximumExecutionTimeExceeded"}
        self.api.change(workload, lambda item: item.update(status={"conditions": [condition]}))
        self.api.change(self.path(key), lambda job: job["spec"].update(suspend=True))
        with mock.patch.object(self.controller.records, "end") as end:
            self.reconcile(key)
        self.assertEqual(end.call_args[0][:3], (uid, 2 * entry.limit_s, False))

    def test_a_change_after_the_prediction_takes_the_boost(self) -> None:
        def more_gpus(job: Object) -> None:
            job["spec"]["parallelism"] = 2
            job["spec"]["completions"] = 2

        def no_limit(job: Object) -> None:
            job["metadata"]["labels"].pop(MAX_SECONDS)

        def longer(job: Object) -> None:
            job["metadata"]["labels"][MAX_SECONDS] = "99999999"

        def other(job: Object) -> None:
            job["metadata"]["labels"]["team"] = "b"

        for change in (more_gpus, no_limit, longer, other):
            key = self.submit(change=self.named(change.__name__.replace("_", "-")))
            self.reconcile(key)
            self.assertGreater(self.boost(key), 0)
            self.api.change(self.path(key), change)
            self.reconcile(key)
            self.assertEqual(self.boost(key) > 0, change is other, change.__name__)

    def test_statements_without_a_reason_get_no_boost(self) -> None:
        def options(text: str):  # type: ignore[no-untyped-def]
            return lambda job: (
                job["metadata"]["annotations"].update({OPTIONS: text})
                or job["metadata"].update(name=text[:5].replace("=", "-"))
            )

        key = self.submit(change=options("batch=64"))
        self.reconcile(key)
        self.assertEqual(self.boost(key), 0)
        self.site = Site.from_mapping({**SITE, "limits": False})
        key = self.submit(change=options("steps=10"))
        self.reconcile(key)
        self.assertEqual(self.boost(key), 0)

    def test_a_missing_workload_delays_the_job_only_a_while(self) -> None:
        key = self.submit()
        workload = self.workload(key)
        path = ("kueue.x-k8s.io", "workloads", "team-a", workload["metadata"]["name"])
        self.api.delete(path)
        answer = Answer("T4", 100, 80, 130, 1 << 30, True, 64)
        with mock.patch.object(decide, "predict_apart", side_effect=lambda data, request, names, *rest: [answer] * len(names)):
            delays = [self.reconcile(key) for _ in range(10)]
        self.assertEqual(delays, [1.0] * 9 + [None])
        self.assertIsNotNone(self.annotation(key, PREDICTION))

    def test_a_deleted_job_counts_if_it_ran_longer_than_predicted(self) -> None:
        key = self.submit()
        self.reconcile(key)
        job = copy.deepcopy(self.get(key))
        job["status"] = {"startTime": "2027-01-15T00:00:00Z"}
        self.controller.deleted(job)
        self.assertGreater(self.controller.records.understatement("team-a", self.now_s), 1.5)

    def test_namespaces_take_turns(self) -> None:
        queue = FairQueue()
        for number in range(100):
            queue.put(Key("Job", "crowd", str(number)))
        queue.put(Key("Job", "single", "0"))
        queue.put(Key("Job", "single", "0"))
        found = [queue.get() for _ in range(3)]
        self.assertIn(Key("Job", "single", "0"), found)
        self.assertEqual(len(set(found)), 3)
        busy = found[0]
        assert busy is not None
        queue.put(busy)
        rest = [queue.get() for _ in range(98)]
        self.assertNotIn(busy, rest)
        queue.done(busy)
        self.assertEqual(queue.get(), busy)
        threading.Timer(0.05, queue.close).start()
        self.assertIsNone(queue.get())


class Watching(Case):
    def is_open(self, key: Key) -> bool:
        return GATES not in self.get(key)["metadata"]["annotations"]

    def test_jobs_before_and_after_the_start_are_predicted(self) -> None:
        before = self.submit()
        self.run_controller()
        wait_for(lambda: self.is_open(before))
        after = self.submit("rayjobs")
        wait_for(lambda: self.is_open(after))
        self.assertIsNotNone(self.annotation(after, PREDICTION))

    def test_the_api_may_end_watches_fail_restart_and_forget_versions(self) -> None:
        self.run_controller()
        wait_for(lambda: self.api.watch_count >= 4)
        self.api.stop()
        key = self.submit()  # somebody creates it while this client is disconnected
        self.api.forget_log()
        failures = [500, 503, 429, -1, 500, -1]
        self.api.refuse = lambda verb, path, body: failures.pop() if failures else 0
        self.api.start()
        wait_for(lambda: self.is_open(key))
        self.assertFalse(failures)

    def test_a_kind_that_the_cluster_lacks_is_left_out(self) -> None:
        self.api.kinds = {"jobs": "batch"}
        self.run_controller()
        key = self.submit()
        wait_for(lambda: self.is_open(key))

    def test_outages_while_writing_delay_a_job_only(self) -> None:
        failures = [500, -1, 409, 500]
        self.api.refuse = lambda verb, path, body: failures.pop() if failures and verb == "update" and path[1] == "jobs" else 0
        self.run_controller()
        key = self.submit()
        wait_for(lambda: self.is_open(key))
        self.assertFalse(failures)
        self.assertIsNotNone(self.annotation(key, PREDICTION))

    def test_many_pages_are_read(self) -> None:
        with mock.patch("mdot_kueue.cluster.PAGE", 2):
            keys = [self.submit(change=lambda job, n=n: job["metadata"].update(name=f"job-{n}")) for n in range(5)]  # type: ignore[misc]
            self.run_controller()
            wait_for(lambda: all(self.is_open(key) for key in keys))


class Rights(unittest.TestCase):
    """Runs last: rbac.yaml has each right that the tests used, and no other."""

    def test_rights_are_necessary_and_sufficient(self) -> None:
        if not USED_RIGHTS:
            self.skipTest("the other tests did not run")
        granted: set[tuple[str, str, str]] = set()
        for item in yaml.safe_load_all((MANIFESTS / "rbac.yaml").read_text()):
            if item["kind"] in ("ClusterRole", "Role"):
                for rule in item["rules"]:
                    granted |= {(v, g, r) for v in rule["verbs"] for g in rule["apiGroups"] for r in rule["resources"]}
        used = {(verb, group, resource) for verb, group, resource, _, _ in USED_RIGHTS}
        lease = {
            (verb, "coordination.k8s.io", "leases") for verb in ("create", "get", "update")
        }  # test_processes.py uses these
        self.assertEqual(used | lease, granted)
        for verb, _, resource, namespace, name in USED_RIGHTS:
            if resource == "configmaps" and verb != "get":
                self.assertIn((namespace, name), {("mdot-system", "mdot-outcomes"), ("mdot-system", "")})


def load_tests(loader: unittest.TestLoader, tests: unittest.TestSuite, pattern: str | None) -> unittest.TestSuite:
    classes = (Page, Predictions, Faults, Fairness, Watching, Rights)
    return unittest.TestSuite(loader.loadTestsFromTestCase(kind) for kind in classes)


if __name__ == "__main__":
    unittest.main()
