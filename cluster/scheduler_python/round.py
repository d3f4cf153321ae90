"""One round of a scheduler: which waiting jobs start, on which GPUs, with which time limit.

  python3 round.py QUEUE.csv --free A100=4,T4=8

QUEUE.csv has one line for each waiting job: job_id,path,steps,gpus,batch and, optionally, precision and other options of
`mdot predict`. The order is shortest remaining service first (predicted time × GPUs), and each job gets the fastest type
that is free. Jobs that lack an estimate come last, first come, first served, and have no limit. The program prints job_id,
type, GPUs, seconds and limit.

Users write the values of their lines. Therefore a line with an invalid value only costs its own job the round, and the program
prints the reason. A file without the required columns ends the program.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from typing import Mapping, Sequence

from mdot_schedulers.estimates import MAX_GPUS, Estimates, Submission
from mdot_schedulers.request import Request, whole

COLUMNS = ("job_id", "path", "steps", "gpus")


def read_queue(path: str) -> tuple[list[Submission], list[str]]:
    """Submissions in their order, and the reasons for lines left out."""
    queue: list[Submission] = []
    refused: list[str] = []
    known: set[str] = set()
    csv.field_size_limit(1 << 30)  # a long cell is refused with its line instead of ending the program
    with open(path, newline="", errors="replace") as file:
        reader = csv.reader(file)
        try:
            names = next(reader, [])
        except csv.Error as fault:
            raise ValueError(f"{path}: {fault}") from fault
        missing = [name for name in COLUMNS if name not in names]
        if missing or len(set(names)) != len(names):
            raise ValueError(f"{path}: no column {missing[0]!r}" if missing else f"{path}: a column appears twice")
        while True:
            try:
                cells = next(reader, None)
                if cells is None:
                    break
                if not cells:
                    continue
                if len(cells) != len(names):
                    raise ValueError(f"{len(cells)} cells instead of {len(names)}")
                submission = _submission(dict(zip(names, cells)))
                if submission.job_id in known:
                    raise ValueError(f"job {submission.job_id} appears twice")
            except (csv.Error, ValueError) as fault:
                refused.append(f"{path}:{reader.line_num}: {fault}")
                continue
            known.add(submission.job_id)
            queue.append(submission)
    return queue, refused


def _submission(row: Mapping[str, str]) -> Submission:
    if re.fullmatch(r"[\w.:\[\]-]{1,128}", row["job_id"], re.ASCII) is None:
        raise ValueError(f"job_id consists of 1 to 128 letters, digits and . : _ - [ ], not {row['job_id'][:40]!r}")
    if re.fullmatch("[0-9]{1,7}", row["gpus"], re.ASCII) is None:
        raise ValueError(f"gpus must be an integer from 1 to {MAX_GPUS}, not {row['gpus'][:40]!r}")
    options = [f"{name}={text}" for name, text in row.items() if name not in ("job_id", "path", "gpus") and text]
    return Submission(row["job_id"], row["path"], Request.parse(",".join(options)), whole("gpus", int(row["gpus"]), MAX_GPUS))


def read_free(text: str) -> dict[str, int]:
    """Free GPUs of each type, from "A100=4,T4=8"."""
    free: dict[str, int] = {}
    for item in text.split(","):
        name, _, count = item.partition("=")
        if not name or name in free or re.fullmatch("[0-9]{1,7}", count) is None or int(count) > MAX_GPUS:
            raise ValueError(f"--free takes TYPE=N,… with each type once and N from 0 to {MAX_GPUS}, not {item[:40]!r}")
        free[name] = int(count)
    return free


def decide(
    queue: Sequence[Submission], free: dict[str, int], estimates: Estimates
) -> list[tuple[str, str, int, float | None, float | None]]:
    """Jobs that start: (job_id, type, GPUs, predicted seconds, limit in seconds). Afterwards, `free` holds the free GPUs.

    Raises ValueError for a job of less than one GPU, because it would add free GPUs."""
    for submission in queue:
        whole(f"gpus of {submission.job_id}", submission.gpus, MAX_GPUS)

    def service(place: int) -> tuple[float, int]:
        submission = queue[place]
        times = [estimates.remaining_s(submission.job_id, gpu) for gpu in estimates.types(submission.job_id)[:1]]
        return (times[0] * submission.gpus, place) if times and times[0] is not None else (float("inf"), place)

    started = []
    for place in sorted(range(len(queue)), key=service):
        job_id, gpus = queue[place].job_id, queue[place].gpus
        wanted = estimates.types(job_id) or list(free)
        gpu = next((gpu for gpu in wanted if free.get(gpu, 0) >= gpus), None)
        if gpu is None:
            continue
        free[gpu] -= gpus
        seconds, limit = (ask(job_id, gpu) for ask in (estimates.remaining_s, estimates.limit_s))
        started.append((job_id, gpu, gpus, seconds, limit))
    return started


def _report(reason: str) -> None:
    """Prints one line without control characters, because reasons repeat text of users."""
    print("round.py: " + "".join(c if c.isprintable() else "?" for c in reason), file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queue", metavar="QUEUE.csv")
    parser.add_argument("--free", required=True, metavar="TYPE=N,…", help="GPUs that are free")
    options = parser.parse_args(arguments)
    try:
        free = read_free(options.free)
        queue, refused = read_queue(options.queue)
    except (OSError, ValueError, csv.Error) as fault:
        _report(str(fault))
        return 2
    for reason in refused:
        _report(reason)
    estimates = Estimates(free)
    for submission in queue:
        if not estimates.submit(submission):
            _report(f"{submission.job_id} has no estimate: {estimates.refused[submission.job_id]}")
    for job_id, gpu, gpus, seconds, limit in decide(queue, free, estimates):
        shown = ["-" if number is None else f"{number:.0f}" for number in (seconds, limit)]
        print(job_id, gpu, gpus, *shown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
