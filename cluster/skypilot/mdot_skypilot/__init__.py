"""Predicted run times for SkyPilot's optimizer: `estimate` in your program, `attach` and MdotPolicy with an API server
(README.md)."""

from __future__ import annotations

import base64
import binascii
import functools
import logging
import math
import os
import pathlib
import zlib
from typing import Callable, Sequence

import mdot
import sky
from mdot_schedulers import Answer, Place, Request, Site, Unpredictable, decide, predict_apart, predict_here
from mdot_schedulers.request import InvalidRequest
from sky.utils import common

log = logging.getLogger("mdot-skypilot")

JOB = "MDOT_JOB"
OPTIONS = "MDOT_OPTIONS"
PREDICTION = "MDOT_PREDICTION"
ERROR = "MDOT_ERROR"
SITE = "MDOT_SITE"
"""Environment variable of the API server: path of the site's configuration. By default /etc/mdot/site.yaml, if it exists."""

NO_WORDS = "mdot: no prediction for the chosen resources"
MAX_TEXT = 96 * 1024
"""Maximum length of MDOT_JOB, because Linux runs no program with a variable of 128 KiB."""

Predict = Callable[[Sequence[str], int, int], "list[Answer | str]"]
"""GPU names, GPUs on all nodes, and nodes; one answer per name."""


def _gpu(site: Site, accelerator: str) -> str:
    """mdot's name of an accelerator: the site's place of this name, or a name or alias in mdot's table."""
    place = next((place for place in site.places if place.name.lower() == accelerator.lower()), None)
    return place.gpu if place is not None else accelerator


class Estimator:
    """Predicted seconds of a task by accelerators. The number of nodes belongs to the task, and SkyPilot passes only
    resources, therefore the object holds it."""

    def __init__(self, task: sky.Task, request: Request, site: Site, predict: Predict) -> None:
        """Predicts all resources of the task. Raises Unpredictable if none of them has a prediction, and InvalidRequest
        without a training length."""
        if request.steps == 0 and request.epochs == 0:
            raise InvalidRequest("a time requires steps, or epochs and dataset")
        self._words: dict[tuple[str, float], str] = {}
        self._seconds: dict[tuple[str, float], int] = {}
        self._unfit: set[tuple[str, float]] = set()
        spelled = {_accelerator(r): next(iter(r.accelerators)) for r in task.resources if r.accelerators}
        keys = list(dict.fromkeys(key for resources in task.resources if (key := _accelerator(resources)) is not None))
        faults = []
        for count in dict.fromkeys(count for _, count in keys):
            names = [name for name, number in keys if number == count]
            written = [str(spelled[name, count]) for name in names]
            gpus = int(count) * task.num_nodes
            if count < 1 or count != int(count):
                faults.append(f"{written[0]}:{count:g} is not a whole number of GPUs")
                continue
            answers = predict([_gpu(site, name) for name in written], gpus, task.num_nodes)
            for name, original, answer in zip(names, written, answers):
                if isinstance(answer, str):
                    faults.append(f"{original}: {answer}")
                    continue
                decision = decide(site, request, [Place(original, answer.gpu)], [answer], gpus=gpus, may_choose=False)
                self._seconds[name, count] = math.ceil(decision.total_s)
                self._words[name, count] = decision.words
                if not answer.fits:
                    self._unfit.add((name, count))
        if not self._seconds:
            raise Unpredictable(faults[0] if faults else "its resources name no accelerator")
        self._slowest_s = max(self._seconds.values())

    def __call__(self, resources: sky.Resources) -> int:
        """Seconds at the median. Resources without a prediction count as the slowest of the others."""
        key = _accelerator(resources)
        return self._seconds.get(key, self._slowest_s) if key is not None else self._slowest_s

    def fits(self, resources: sky.Resources) -> bool:
        """False if the job exceeds the memory of these GPUs."""
        return _accelerator(resources) not in self._unfit

    def words(self, resources: sky.Resources) -> str:
        """The prediction in one line; empty if there is none."""
        key = _accelerator(resources)
        return self._words.get(key, "") if key is not None else ""


def _accelerator(resources: sky.Resources) -> tuple[str, float] | None:
    """Name in small letters, as tasks may write it in any case, and count per node. None without an accelerator."""
    found = resources.accelerators
    return next(iter((str(name).lower(), float(count)) for name, count in found.items()), None) if found else None


def _keep(task: sky.Task, is_kept: Callable[[sky.Resources], bool]) -> None:
    """Leaves out resources, unless none would be left. A list keeps its order."""
    kept = [resources for resources in task.resources if is_kept(resources)]
    if 0 < len(kept) < len(task.resources):
        task.set_resources(type(task.resources)(kept))


def estimate(
    task: sky.Task, job: mdot.Job, options: str, *, site: Site | None = None, predictor: mdot.Predictor | None = None
) -> Estimator:
    """Lets SkyPilot's optimizer choose by predicted times, in this process: `sky.Optimizer.optimize(dag)` then uses them.

    `options` is `batch=64,precision=amp,epochs=90,dataset=1281167`. Resources whose memory the job exceeds are left out, if
    others remain. Raises InvalidRequest or Unpredictable with the reason.
    """
    request = Request.parse(options)
    used = site or Site()

    def predict(names: Sequence[str], gpus: int, nodes: int) -> list[Answer | str]:
        return predict_here(job, request, names, gpus, nodes, predictor)

    estimator = Estimator(task, request, used, predict)
    _keep(task, estimator.fits)
    task.set_time_estimator(estimator)
    return estimator


def attach(task: sky.Task, path: str | os.PathLike[str], options: str) -> sky.Task:
    """Adds a `.job` file to a task, for an API server with MdotPolicy. Functions of a task do not reach a server, so the job
    travels in environment variables, which the policy removes. Raises InvalidRequest for invalid options and too large a
    job."""
    Request.parse(options)
    text = base64.b64encode(zlib.compress(pathlib.Path(path).read_bytes(), 9)).decode()
    if len(text) > MAX_TEXT:
        raise InvalidRequest(f"the job takes {len(text)} characters; at most {MAX_TEXT} fit in a variable")
    task.update_envs({JOB: text, OPTIONS: options})
    return task


# ---- On the API server -----------------------------------------------------------------------------------------------


def _unpack(text: str, maximum: int) -> bytes:
    """The bytes of MDOT_JOB. A small text cannot make many bytes."""
    try:
        decoder = zlib.decompressobj()
        data = decoder.decompress(base64.b64decode(text, validate=True), maximum + 1)
    except (binascii.Error, ValueError, zlib.error):
        raise Unpredictable(f"{JOB} is not a job by mdot_skypilot.attach") from None
    if len(data) > maximum:
        raise Unpredictable(f"the job has more than {maximum} bytes")
    if not decoder.eof:
        raise Unpredictable(f"{JOB} is cut off")
    return data


@functools.lru_cache(maxsize=4)
def _read_site(path: str, changed_s: float) -> Site:
    return Site.read(path)


def _site() -> Site:
    path = os.environ.get(SITE, "/etc/mdot/site.yaml")
    if SITE not in os.environ and not os.path.exists(path):
        return Site()
    return _read_site(path, os.stat(path).st_mtime)


def choose(task: sky.Task, data: bytes, request: Request, site: Site) -> str:
    """Restricts a task to the accelerators that SkyPilot's optimizer chooses by predicted times, and returns the prediction's
    words. The bytes may be a stranger's. Raises Unpredictable or InvalidRequest; the task is then as it was."""

    def predict(names: Sequence[str], gpus: int, nodes: int) -> list[Answer | str]:
        return predict_apart(data, request, names, gpus, nodes, site)

    estimator = Estimator(task, request, site, predict)
    if isinstance(task.resources, list):  # the user's order decides, as it does without mdot
        _keep(task, estimator.fits)
        return estimator.words(task.resources[0]) or NO_WORDS
    trial = sky.Task.from_yaml_config(task.to_yaml_config())
    _keep(trial, estimator.fits)
    trial.set_time_estimator(estimator)
    with sky.Dag() as dag:
        dag.add(trial)
    target = common.OptimizeTarget.TIME if request.choose == "time" else common.OptimizeTarget.COST
    sky.Optimizer.optimize(dag, minimize=target, quiet=True)
    assert trial.best_resources is not None  # optimize raises otherwise
    best = _accelerator(trial.best_resources)
    task.set_time_estimator(estimator)
    _keep(task, lambda resources: _accelerator(resources) == best)
    return estimator.words(trial.best_resources) or NO_WORDS


class MdotPolicy(sky.AdminPolicy):
    """Chooses the accelerators of tasks with a job. Register it in the API server's configuration:

        admin_policy: mdot_skypilot.MdotPolicy

    Tasks are never refused: after an error, the task has MDOT_ERROR with the reason, and is otherwise as without mdot.
    """

    @classmethod
    def validate_and_mutate(cls, user_request: sky.UserRequest) -> sky.MutatedUserRequest:
        task = user_request.task
        unchanged = sky.MutatedUserRequest(task=task, skypilot_config=user_request.skypilot_config)
        if user_request.at_client_side or JOB not in task.envs:
            return unchanged
        text = str(task.envs.pop(JOB))
        try:
            site = _site()
            request = Request.parse(str(task.envs.get(OPTIONS, "")))
            task.update_envs({PREDICTION: choose(task, _unpack(text, site.max_job_bytes), request, site)})
        except (Unpredictable, InvalidRequest) as fault:
            task.update_envs({ERROR: _line(str(fault))})
        except Exception as fault:  # whatever fails, the task must be launched
            log.exception("no prediction")
            task.update_envs({ERROR: f"{type(fault).__name__}: the server's log has more"})
        return unchanged


def _line(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)[:1000]
