"""One round of a scheduler: which waiting jobs start, on which GPUs, with which time limit.

  python3 round.py QUEUE.csv --free A100=4,T4=8

QUEUE.csv has one line for each waiting job: job_id,path,steps,gpus,batch and, optionally, precision and other options of
mdot.Configuration. The order is shortest remaining service first (predicted time × GPUs), and each job gets the fastest type
that is free. Jobs that lack an estimate come last, first come, first served, and have no limit. The program prints job_id,
type, GPUs, seconds and limit.
"""

from __future__ import annotations

import argparse
import ast
import csv
import sys
from typing import Any, Sequence

from estimates import Estimates, Request

COLUMNS = ("job_id", "path", "steps", "gpus")


def read_queue(path: str) -> list[tuple[Request, int]]:
    """Requests in the order of their submission, each with its number of GPUs."""
    with open(path, newline="") as file:
        reader = csv.DictReader(file)
        missing = [name for name in COLUMNS if name not in (reader.fieldnames or [])]
        if missing:
            raise ValueError(f"{path}: no column {missing[0]!r}")
        queue = []
        for number, row in enumerate(reader, 2):
            try:
                options = {name: _value(text) for name, text in row.items() if name not in COLUMNS and text}
                gpus = int(row["gpus"])
                queue.append((Request(row["job_id"], row["path"], int(row["steps"]), {**options, "gpus": gpus}), gpus))
            except (TypeError, ValueError) as fault:
                raise ValueError(f"{path}:{number}: {fault}") from fault
    return queue


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def decide(
    queue: Sequence[tuple[Request, int]], free: dict[str, int], estimates: Estimates
) -> list[tuple[str, str, int, float | None, float | None]]:
    """Jobs that start: (job_id, type, GPUs, predicted seconds, limit in seconds). Afterwards, `free` holds the free GPUs."""

    def service(place: int) -> tuple[float, int]:
        request, gpus = queue[place]
        times = [estimates.remaining_s(request.job_id, gpu) for gpu in estimates.types(request.job_id)[:1]]
        return (times[0] * gpus, place) if times and times[0] is not None else (float("inf"), place)

    started = []
    for place in sorted(range(len(queue)), key=service):
        request, gpus = queue[place]
        wanted = estimates.types(request.job_id) or list(free)
        gpu = next((gpu for gpu in wanted if free.get(gpu, 0) >= gpus), None)
        if gpu is None:
            continue
        free[gpu] -= gpus
        seconds, limit = (ask(request.job_id, gpu) for ask in (estimates.remaining_s, estimates.limit_s))
        started.append((request.job_id, gpu, gpus, seconds, limit))
    return started


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queue", metavar="QUEUE.csv")
    parser.add_argument("--free", required=True, metavar="TYPE=N,…", help="GPUs that are free")
    options = parser.parse_args(arguments)
    try:
        free = {name: int(count) for name, count in (item.split("=") for item in options.free.split(","))}
        queue = read_queue(options.queue)
    except (OSError, ValueError) as fault:
        print(f"round.py: {fault}", file=sys.stderr)
        return 2
    estimates = Estimates(free)
    for request, _ in queue:
        if not estimates.submit(request):
            print(f"round.py: {request.job_id} has no estimate: {estimates.refused[request.job_id]}", file=sys.stderr)
    for job_id, gpu, gpus, seconds, limit in decide(queue, free, estimates):
        shown = ["-" if number is None else f"{number:.0f}" for number in (seconds, limit)]
        print(job_id, gpu, gpus, *shown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
