"""Predictions for a request: in this process for a trusted job, or in a child with limits for a stranger's bytes."""

from __future__ import annotations

import dataclasses
import json
import logging
import resource
import subprocess
import sys
from typing import Any, Sequence

import mdot
from mdot.predictor import configure
from mdot_schedulers.decision import Answer, Unpredictable
from mdot_schedulers.request import InvalidRequest, Request
from mdot_schedulers.site import Site

log = logging.getLogger("mdot-schedulers")

MAX_ANSWER_BYTES = 1 << 20


def predict_here(
    job: mdot.Job,
    request: Request,
    gpus: Sequence[str],
    gpu_count: int,
    node_count: int = 1,
    predictor: mdot.Predictor | None = None,
) -> list[Answer | str]:
    """One answer per GPU name, or the reason why there is none. `gpu_count` is the number of GPUs on all nodes. Raises
    InvalidRequest for another object than a job."""
    if not isinstance(job, mdot.Job):
        raise InvalidRequest(f"the job must be an mdot.Job, for example Job.load(path), not {type(job).__name__}")
    options = {**request.options, "gpus": gpu_count, "nodes": node_count}
    batch = options.pop("batch", None)
    configurations = [configure(job, gpu, batch, options) for gpu in gpus]
    found = (predictor or mdot.Predictor()).predict_many([(job, configuration) for configuration in configurations])
    return [
        str(answer) if isinstance(answer, mdot.Error) else Answer(
            gpu=mdot.gpu(answer.configuration.gpu_name).name,
            step_ms=answer.step_ms,
            lower_ms=answer.lower_ms,
            upper_ms=answer.upper_ms,
            memory_bytes=answer.peak_memory_bytes,
            fits=answer.fits,
            samples=answer.configuration.samples,
            warnings=answer.warnings,
            reserved_bytes=answer.reserved_bytes + max(answer.memory_upper_bytes - answer.peak_memory_bytes, 0),
            usable_bytes=answer.usable_bytes,
        )
        for answer in found
    ]  # fmt: skip


def open_predictor(site: Site) -> mdot.Predictor:
    """The site's predictor with its calibration."""
    calibration = mdot.Calibration.load(site.calibration) if site.calibration else None
    return mdot.Predictor(site.predictor or None, calibration=calibration)


def predict_apart(
    data: bytes, request: Request, gpus: Sequence[str], gpu_count: int, node_count: int, site: Site
) -> list[Answer | str]:
    """The same for the bytes of a `.job` file, in a child with limits of time and memory. Raises Unpredictable with the
    reason, whatever the bytes are."""
    if len(data) > site.max_job_bytes:
        raise Unpredictable(f"the job has {len(data)} bytes; at most {site.max_job_bytes} are accepted")
    header = json.dumps(
        {
            "options": dict(request.options),
            "gpus": list(gpus),
            "gpu_count": gpu_count,
            "node_count": node_count,
            "predictor": site.predictor,
            "calibration": site.calibration,
            "max_operators": site.max_operators,
            "seconds": site.prediction_s,
            "mib": site.prediction_mib,
        }
    )
    child = subprocess.Popen(
        [sys.executable, "-m", "mdot_schedulers.prediction"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        output, errors = child.communicate(header.encode() + b"\n" + data, timeout=site.prediction_s)
    except subprocess.TimeoutExpired:
        raise Unpredictable(f"the prediction took longer than {site.prediction_s:g} s") from None
    finally:
        child.kill()
        child.communicate()
    if child.returncode != 0 or len(output) > MAX_ANSWER_BYTES:
        log.warning("a prediction ended with status %d: %s", child.returncode, ascii(errors[-500:].decode(errors="replace")))
        raise Unpredictable(f"the prediction ended with status {child.returncode}; the job may be too large")
    answer = json.loads(output)
    if "fault" in answer:
        raise Unpredictable(answer["fault"])
    return [row if isinstance(row, str) else Answer(**{**row, "warnings": tuple(row["warnings"])}) for row in answer["rows"]]


def _limit(seconds: float, mib: int) -> None:
    """Limits this process before it reads a stranger's bytes."""
    bound = int(seconds) + 1
    resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))
    resource.setrlimit(resource.RLIMIT_CPU, (bound, bound))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _serve(header: dict[str, Any], data: bytes) -> dict[str, Any]:
    try:
        predictor = open_predictor(Site(predictor=header["predictor"], calibration=header["calibration"]))
    except mdot.Error as fault:
        return {"fault": f"the site's predictor or calibration: {fault}"}
    try:
        job = mdot.Job.from_bytes(data)
    except mdot.Error as fault:
        return {"fault": f"the .job file: {fault}"}
    work = len(job) * len(header["gpus"])
    if work > header["max_operators"]:
        return {"fault": f"{len(job)} operators in {len(header['gpus'])} places exceed max_operators={header['max_operators']}"}
    request = Request(header["options"])
    try:
        rows = predict_here(job, request, header["gpus"], header["gpu_count"], header["node_count"], predictor)
    except (mdot.Error, TypeError, ValueError) as fault:
        return {"fault": str(fault)}
    return {"rows": [row if isinstance(row, str) else dataclasses.asdict(row) for row in rows]}


def main() -> int:
    header = json.loads(sys.stdin.buffer.readline())
    _limit(header["seconds"], header["mib"])
    json.dump(_serve(header, sys.stdin.buffer.read()), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
