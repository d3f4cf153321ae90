"""cluster/kueue: limits of evicted jobs, against an API server that stands in for a real one."""

from __future__ import annotations

import datetime
import math
import unittest
from random import Random
from unittest import mock

from fake_api import Object, Path as ApiPath, is_true, set_condition
from kubernetes.client.exceptions import ApiException
from mdot_kueue import decide
from mdot_kueue.fair_queue import Key
from mdot_kueue.objects import BOOST, MAX_SECONDS, OPTIONS, PREBUILT, PREDICTION
from mdot_schedulers import Answer
from urllib3.exceptions import HTTPError
from support import FILES, Case


class Evictions(Case):
    """Kueue subtracts the time of a Workload's earlier admissions from its limit."""

    def status(self, key: Key, **conditions: bool) -> None:
        path = self.api.workload_path(self.get(key))
        assert path is not None
        for name, value in conditions.items():
            self.api.change(path, lambda workload: set_condition(workload, name, value))

    def start(self, key: Key) -> float:
        """Admits the Workload and returns the seconds after which Kueue would end it."""
        self.status(key, QuotaReserved=True, Evicted=False, Admitted=True)
        at = datetime.datetime.fromtimestamp(self.now_s, datetime.timezone.utc)
        self.suspend(key, False, {"startTime": at.isoformat().replace("+00:00", "Z")})
        workload = self.workload(key)
        past_s = sum(workload["status"].get(name, 0) for name in self.NAMES)
        limit = workload["spec"]["maximumExecutionTimeSeconds"]
        return math.inf if limit is None else int(limit) - past_s

    def begin_eviction(self, key: Key) -> None:
        self.status(key, Evicted=True)
        self.suspend(key, True, {})

    def suspend(self, key: Key, value: bool, status: Object) -> None:
        def change(job: Object) -> None:
            (job["spec"]["runPolicy"] if key.kind == "PyTorchJob" else job["spec"])["suspend"] = value
            job["status"] = status

        self.api.change(self.path(key), change)

    def end_eviction(self, key: Key, name: str, admitted_s: int) -> None:
        path = self.api.workload_path(self.get(key))
        assert path is not None
        add = lambda workload: workload["status"].update({name: workload["status"].get(name, 0) + admitted_s})  # noqa: E731
        self.api.change(path, add)
        self.status(key, Admitted=False, QuotaReserved=False)

    NAMES = ("accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds")  # v1beta2 and v1beta1

    def settle(self, key: Key) -> None:
        """Lets the controller see the object until it asks for no more time."""
        for _ in range(20):
            try:
                if self.reconcile(key) is None:
                    return
            except (ApiException, HTTPError):
                pass  # the queue tries again
        self.fail("the controller never ends")

    def test_no_run_is_ended_before_the_limit_that_was_predicted(self) -> None:
        """Law: whatever the history of admissions and evictions, Kueue ends no run sooner than the first limit, unless the user wrote
        another one. The Workload keeps its place in the queue, and the job its boost. It holds with restarts, conflicts, outages,
        changes of users, and quota that is reserved again before the controller acts."""
        random, answer = Random(52), Answer("T4", 100, 80, 130, 1 << 30, True, 64)
        raised = renewed = 0
        faked = mock.patch.object(decide, "predict_apart", side_effect=lambda data, request, names, *rest: [answer] * len(names))
        with faked:
            for number in range(24):
                resource, name = random.choice(list(FILES)), random.choice(self.NAMES)
                key = self.submit(resource, lambda job: job["metadata"].update(name=f"{resource}-{number}"))
                self.settle(key)
                first, boost = int(self.get(key)["metadata"]["labels"][MAX_SECONDS]), self.workload(key)["metadata"]["annotations"][BOOST]
                past_s, uid = 0, self.workload(key)["metadata"]["uid"]
                for _ in range(random.randrange(1, 5)):
                    left_s = self.start(key)
                    self.assertGreaterEqual(left_s, first)
                    if random.random() < 0.7:
                        self.settle(key)
                    run_s = random.choice((0, 1, random.randrange(first), first - 1))
                    self.now_s += run_s
                    if random.random() < 0.3:
                        self.api.change(self.path(key), lambda job: job["metadata"]["labels"].update(team=str(random.random())))
                    self.begin_eviction(key)
                    for _ in range(random.randrange(3)):
                        self.assertEqual(self.reconcile(key), 1.0)  # its pods are ending
                        self.assertEqual(self.workload(key)["metadata"]["uid"], uid)
                    ending_s = random.randrange(30)
                    self.now_s += ending_s
                    past_s += run_s + ending_s
                    self.end_eviction(key, name, run_s + ending_s)
                    if random.random() < 0.4:
                        self.controller = self.new_controller()
                    late, fault = random.random() < 0.2, random.choice((None, None, 409, 500, -1))
                    if late:
                        self.status(key, QuotaReserved=True, Evicted=False)
                    failures = [fault] if fault is not None else []
                    self.api.refuse = lambda verb, path, body: failures.pop() if failures and verb == "update" else 0
                    self.settle(key)
                    self.api.refuse = None
                    label = int(self.get(key)["metadata"]["labels"][MAX_SECONDS])
                    self.assertGreaterEqual(label, first)
                    raised += label > first
                    if self.workload(key)["metadata"]["uid"] != uid:
                        self.assertTrue(late)
                        renewed += 1
                        uid, past_s, boost = self.workload(key)["metadata"]["uid"], 0, None
                    else:
                        self.assertGreaterEqual(label, first + past_s)
                        self.assertEqual(self.workload(key)["metadata"]["annotations"].get(BOOST), boost)
        self.assertGreater(raised, 12)
        self.assertGreater(renewed, 0)

    def test_limits_of_users_stay(self) -> None:
        """Their own ones, and those that they write over the controller's."""
        for number, own in enumerate(("900", None, None)):

            def change(job: Object, own: str | None = own, number: int = number) -> None:
                job["metadata"]["name"] = f"job-{number}"
                job["metadata"]["labels"] |= {MAX_SECONDS: own} if own is not None else {}

            key = self.submit(change=change)
            self.settle(key)
            if own is None:
                wanted = str(int(self.get(key)["metadata"]["labels"][MAX_SECONDS]) + (1 if number == 1 else -1))
                self.api.change(self.path(key), lambda job: job["metadata"]["labels"].update({MAX_SECONDS: wanted}))
            else:
                wanted = own
            self.start(key)
            self.settle(key)
            self.begin_eviction(key)
            self.end_eviction(key, self.NAMES[0], 800)
            self.settle(key)
            self.assertEqual(self.get(key)["metadata"]["labels"][MAX_SECONDS], wanted)

    def test_a_limit_that_cannot_be_raised_is_removed(self) -> None:
        """The Workload may not be read, its time is no number, or the server refuses the new label."""

        def unread(verb: str, path: ApiPath, body: Object | None) -> int:
            return 403 if path[1] == "workloads" else 0

        def refused(verb: str, path: ApiPath, body: Object | None) -> int:
            return 422 if verb == "update" and path[0] == "batch" and MAX_SECONDS in (body or {})["metadata"]["labels"] else 0

        for number, (refuse, value) in enumerate(((unread, 100), (None, "100"), (None, -1), (refused, 100), (None, 2**31 - 1))):
            key = self.submit(change=lambda job, n=number: job["metadata"].update(name=f"job-{n}"))  # type: ignore[misc]
            self.settle(key)
            self.start(key)
            self.settle(key)
            self.begin_eviction(key)
            self.end_eviction(key, self.NAMES[0], 0)
            path = self.api.workload_path(self.get(key))
            assert path is not None
            self.api.change(path, lambda workload: workload["status"].update({self.NAMES[0]: value}))
            self.api.refuse = refuse
            self.settle(key)
            self.api.refuse = None
            self.assertNotIn(MAX_SECONDS, self.get(key)["metadata"]["labels"])
            self.assertEqual(self.events()[-1]["reason"], "LimitRemoved")
            self.settle(key)

    def test_a_workload_of_the_user_stays(self) -> None:
        """Kueue ends a job that differs from it, so neither limit nor flavor is written."""

        def prebuilt(job: Object) -> None:
            job["metadata"]["labels"][PREBUILT] = "job-of-user"
            job["metadata"]["annotations"][OPTIONS] += ",choose=cost"

        key = self.submit(change=prebuilt)
        before = self.get(key)["spec"]
        self.settle(key)
        self.assertIsNotNone(self.annotation(key, PREDICTION))
        self.assertFalse(is_true(self.workload(key), "Finished"))
        self.assertEqual(self.get(key)["spec"], before)


if __name__ == "__main__":
    unittest.main()
