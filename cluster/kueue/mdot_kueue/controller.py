"""The controller: it predicts jobs behind its gate, writes limit, flavor, boost and words, and opens the gate. Whatever
fails, the gate opens, and an annotation says why. After an eviction it raises the limit that it wrote."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import logging
import threading
import time
from typing import Callable

from kubernetes.client.exceptions import ApiException

from mdot_kueue.cluster import Cluster, Conflict
from mdot_kueue.decide import decide_for, for_kueue, without_prediction
from mdot_kueue.fair_queue import FairQueue, Key
from mdot_kueue.flavors import find_candidates
from mdot_kueue.objects import (
    GATE,
    KINDS,
    LIMIT,
    MAX_LIMIT_S,
    MAX_SECONDS,
    JobObject,
    Kind,
    admitted_s,
    annotate,
    annotations_of,
    count_gpus,
    gates,
    is_cut_off,
    is_suspended,
    is_true,
    own_limit_s,
    run_of,
    set_limit,
    written_limit_s,
)
from mdot_kueue.records import Open, Records
from mdot_schedulers import Decision, Site, Unpredictable
from mdot_schedulers.request import InvalidRequest

log = logging.getLogger("mdot-kueue")

KIND_OF = {kind.kind: kind for kind in KINDS}
WORKLOAD_TRIES = 10
RETRY_S = 1.0
MAX_RETRY_S = 60.0
ABSENT_S = 60.0


class Controller:
    """`reconcile` handles one object. `run` watches all kinds with threads, until `stop`."""

    def __init__(
        self, cluster: Cluster, site: Callable[[], Site], now: Callable[[], float] = time.time, workers: int = 4
    ) -> None:
        """`site` returns today's configuration."""
        self._cluster = cluster
        self._site = site
        self._now = now
        self._workers = workers
        self._queue = FairQueue()
        self._tries: dict[Key, int] = {}
        self._stopping = threading.Event()
        self._loading = threading.Lock()
        self._records: Records | None = None

    @property
    def records(self) -> Records:
        """Loaded at the first use, because only the leader may use the state."""
        with self._loading:
            if self._records is None:
                self._records = Records(self._cluster.load_state(), self._save)
            return self._records

    def _save(self, state: dict[str, object]) -> None:
        try:
            self._cluster.save_state(state)
        except ApiException as fault:
            log.warning("the state cannot be saved: status %s", fault.status)

    # ---- One object ------------------------------------------------------------------------------------------------

    def reconcile(self, key: Key) -> float | None:
        """Handles one object. Returns seconds until it must be handled again; None: at its next change."""
        kind = KIND_OF[key.kind]
        job = self._cluster.get(kind, key.namespace, key.name)
        if job is None:
            self._tries.pop(key, None)
            return None
        if GATE in gates(job):
            return self._predict(key, kind, job)
        tries = self._tries.pop(key, 0)
        self._follow(kind, job)
        return self._keep_limit(key, kind, job, tries)

    def _predict(self, key: Key, kind: Kind, job: JobObject) -> float | None:
        uid = job["metadata"]["uid"]
        self._tries[key] = tries = self._tries.get(key, 0) + 1
        site = self._site()
        boosted: JobObject | None = None
        decision: Decision | None = None
        try:
            decision, gpus = decide_for(
                job,
                kind,
                site,
                self._cluster,
                lambda found: find_candidates(job, found, site, self._cluster),
                self.records.understatement(key.namespace, self._now()),
                datetime.datetime.fromtimestamp(self._now(), datetime.timezone.utc),
            )
            if decision.priority > 0:
                boosted = self._cluster.workload(job)
                if boosted is None and tries < WORKLOAD_TRIES:
                    return RETRY_S  # Kueue makes the Workload soon
                if boosted is not None:
                    self._cluster.set_boost(boosted, decision.priority)
            changed, reason = for_kueue(job, kind, decision, site), None
            limit_s = own_limit_s(changed, kind)
            entry = Open(key.namespace, decision.total_s, gpus.count, limit_s, decision.priority if boosted else 0)
            if decision.total_s > 0:
                self.records.put(uid, entry)
        except (Unpredictable, InvalidRequest) as fault:
            changed, reason = without_prediction(job, str(fault)), str(fault)
        except Exception as fault:  # whatever fails, the job must not wait for this controller
            log.exception("%s", key)
            reason = f"{type(fault).__name__}: the controller's log has more"
            changed = without_prediction(job, reason)
        try:
            self._cluster.replace(kind, changed)
        except Conflict:
            return 0  # predict the changed object
        except ApiException as fault:
            if fault.status == 429 or fault.status >= 500:
                raise  # the server is busy or ill, and the prediction may be accepted later
            log.warning("%s: the prediction is refused with status %s", key, fault.status)
            self._withdraw(uid, boosted)
            reason = f"the API server refused the prediction with status {fault.status}"
            try:
                self._cluster.replace(kind, without_prediction(job, reason))
            except Conflict:
                return 0
        self._tries.pop(key, None)
        if reason is None and decision is not None:
            self._cluster.event(changed, "Predicted", decision.words, is_warning=False)
        else:
            self._cluster.event(changed, "NotPredicted", f"mdot: no prediction: {reason}", is_warning=True)
        return None

    def _withdraw(self, uid: str, workload: JobObject | None) -> None:
        self.records.drop(uid)
        if workload is not None:
            self._cluster.set_boost(workload, 0)

    def _follow(self, kind: Kind, job: JobObject) -> None:
        """Watches a predicted job: changes after the prediction take the boost, and its end is an outcome."""
        uid = job["metadata"]["uid"]
        entry = self.records.find(uid)
        if entry is None:
            return
        run, now_s = run_of(job), self._now()
        if run.end_s is not None and run.start_s is not None:
            actual_s = (run.end_s - run.start_s) * (2 if is_cut_off(job) else 1)
            self.records.end(uid, actual_s, run.is_complete, now_s)
        elif run.end_s is not None:
            self.records.drop(uid)
        elif entry.start_s is not None and is_suspended(job, kind) and self._is_out_of_time(job):
            self.records.end(uid, 2 * entry.limit_s, False, now_s)
        else:
            if run.start_s is not None and run.start_s != entry.start_s:
                entry = dataclasses.replace(entry, start_s=run.start_s)
                self.records.put(uid, entry)
            if entry.boost > 0 and self._is_changed(kind, job, entry, 0):
                workload = self._cluster.workload(job)
                if workload is not None and self._is_changed(kind, job, entry, admitted_s(workload) or 0):
                    self._cluster.set_boost(workload, 0)
                    self.records.put(uid, dataclasses.replace(entry, boost=0))
                    self._cluster.event(job, "BoostRemoved", "mdot: the job changed after its prediction", is_warning=True)

    def _keep_limit(self, key: Key, kind: Kind, job: JobObject, tries: int) -> float | None:
        """Gives an evicted job its whole limit again: Kueue subtracts the time of earlier admissions. The label can change while
        the job is suspended only, and Kueue makes the Workload anew if its quota is still reserved, so it waits for the
        eviction's end. Returns seconds until it must try again."""
        entry, written = self.records.find(job["metadata"]["uid"]), written_limit_s(job)
        if written is None or not is_suspended(job, kind):
            return None
        workload = self._cluster.workload(job)
        if workload is None and (entry is None or entry.start_s is None):
            return None  # it has not run
        if workload is None and tries < WORKLOAD_TRIES:
            self._tries[key] = tries + 1
            return RETRY_S
        if workload is not None and is_true(workload, "Admitted") and is_true(workload, "Evicted"):
            return RETRY_S
        past_s = admitted_s(workload) if workload is not None else None
        if past_s is not None:
            run_s, label_s = written
            wanted_s = run_s + past_s
            if wanted_s <= label_s:
                return None
            if wanted_s <= MAX_LIMIT_S:
                words = f"mdot: the limit is {wanted_s} s, because the job ran for {past_s} s before it was evicted"
                try:
                    return self._relabel(kind, job, run_s, wanted_s, "LimitRaised", words)
                except ApiException as fault:
                    if fault.status == 429 or fault.status >= 500:
                        raise
        words = "mdot: the limit is removed, because it cannot be raised by the time before the eviction"
        return self._relabel(kind, job, 0, 0, "LimitRemoved", words)

    def _relabel(self, kind: Kind, job: JobObject, run_s: int, label_s: int, reason: str, words: str) -> float | None:
        changed = copy.deepcopy(job)
        if label_s > 0:
            set_limit(changed, run_s, label_s)
        else:
            del changed["metadata"]["labels"][MAX_SECONDS]
            annotate(changed, limit=None)
        try:
            self._cluster.replace(kind, changed)
        except Conflict:
            return 0
        self._cluster.event(changed, reason, words, is_warning=False)
        return None

    def _is_out_of_time(self, job: JobObject) -> bool:
        workload = self._cluster.workload(job)
        conditions = ((workload or {}).get("status") or {}).get("conditions") or ()
        return any(c.get("status") == "True" and "MaximumExecutionTimeExceeded" in str(c.get("reason")) for c in conditions)

    def _is_changed(self, kind: Kind, job: JobObject, entry: Open, past_s: int) -> bool:
        """Whether the job got more GPUs or time than its priority is for, beside `past_s` of earlier admissions."""
        try:
            gpus = count_gpus(job, kind, self._site().gpu_resources).count
        except Unpredictable:
            return True
        limit_s = own_limit_s(job, kind)
        return gpus > entry.gpus or limit_s == 0 or limit_s > entry.limit_s + past_s

    def deleted(self, job: JobObject) -> None:
        """A deleted job counts if it ran longer than predicted."""
        entry, run = self.records.find(job["metadata"]["uid"]), run_of(job)
        if entry is None:
            return
        if run.start_s is None or run.end_s is not None:
            self.records.drop(job["metadata"]["uid"])
        else:
            self.records.end(job["metadata"]["uid"], self._now() - run.start_s, False, self._now())

    # ---- All objects -----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Watches until `stop`, and returns when its threads have ended: a watch may wait for its server's end. Raises nothing: a
        fault of the API delays the next attempt."""
        threads = [threading.Thread(target=self._watch, args=(kind,), daemon=True) for kind in KINDS]
        threads += [threading.Thread(target=self._work, daemon=True) for _ in range(self._workers)]
        for thread in threads:
            thread.start()
        self._stopping.wait()
        self._queue.close()
        for thread in threads:  # one that is alive at the interpreter's end can abort the process
            thread.join()

    def stop(self) -> None:
        self._stopping.set()

    def _watch(self, kind: Kind) -> None:
        while not self._stopping.is_set():
            try:
                found = self._cluster.list(kind)
                if found is None:
                    self._stopping.wait(ABSENT_S)
                    continue
                jobs, version = found
                for job in jobs:
                    self._notice(kind, job)
                for event, job in self._cluster.watch(kind, version):
                    if self._stopping.is_set():
                        return
                    if event == "DELETED":
                        self.deleted(job)
                    elif event in ("ADDED", "MODIFIED"):
                        self._notice(kind, job)
            except Exception as fault:  # the connection, or a version that is too old: list again
                log.info("watching %s: %s", kind.plural, fault)
                self._stopping.wait(RETRY_S)

    def _notice(self, kind: Kind, job: JobObject) -> None:
        metadata = job["metadata"]
        if GATE in gates(job) or LIMIT in annotations_of(job) or self.records.find(metadata["uid"]) is not None:
            self._queue.put(Key(kind.kind, metadata["namespace"], metadata["name"]))

    def _work(self) -> None:
        failures: dict[Key, int] = {}
        while (key := self._queue.get()) is not None:
            try:
                delay_s = self.reconcile(key)
                failures.pop(key, None)
            except Exception as fault:  # the API is away or refuses: try again, later each time
                failures[key] = failures.get(key, 0) + 1
                delay_s = min(RETRY_S * 2 ** (failures[key] - 1), MAX_RETRY_S)
                log.warning("%s: %s; next attempt in %.0f s", key, fault, delay_s)
            self._queue.done(key)
            if delay_s is not None:
                self._queue.put(key, delay_s)
