"""Makes the library of ready jobs (library.csv): library.json, and a packed `.job` file for each traced network:

    python -m mdot_lab.ready_jobs.library weights/jobs [NAME…]

A row of library.csv has the network's name, a title, a default length, aliases, and a configuration as KEY=VALUE words,
which begin with model_type, or a network to trace: of `Job.from_name`, or dlrm:DATA (recommenders.py). `except` names a
library whose network of this name differs, as timm's vit_huge_patch14_224 has no head. Without names, networks with a
file stay.
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
import warnings
from pathlib import Path
from typing import Any

from torch.nn import functional

from mdot_lab.ready_jobs import recommenders


def trace(source: str) -> Any:
    import mdot

    if source.startswith("dlrm:"):
        model, inputs, targets = recommenders.dlrm(source.removeprefix("dlrm:"))
        loss = functional.binary_cross_entropy_with_logits
        return mdot.Job.from_torch(model, inputs, loss=loss, targets=targets, name="dlrm")
    name, *settings = source.split()
    given = {key: json.loads(value) for key, value in (word.split("=", 1) for word in settings)}
    return mdot.Job.from_name(name, **given)


def main() -> None:
    import mdot

    warnings.simplefilter("ignore")
    folder, wanted = Path(sys.argv[1]), sys.argv[2:]
    library: dict[str, dict[str, Any]] = {}
    rows = list(csv.DictReader(Path(__file__).with_name("library.csv").open()))
    for row in rows:
        entry: dict[str, Any] = {"aliases": row["aliases"].split()} if row["aliases"] else {}
        if row["except"]:
            entry["except"] = row["except"]
        entry["title"] = row["title"]
        if row["length"]:
            entry["length"] = int(row["length"])
        try:
            if "=" in row["source"].split()[0]:
                words = [word.split("=", 1) for word in row["source"].split()]
                entry["config"] = {key: _value(value) for key, value in words}
                job = mdot.Job.from_onnx(json.dumps(entry["config"]).encode(), name=row["name"])
            else:
                path = folder / f"{row['name']}.job.gz"
                if row["name"] in wanted or not path.exists():
                    path.write_bytes(gzip.compress(trace(row["source"]).to_bytes(), 9, mtime=0))
                job = mdot.Job.from_bytes(gzip.decompress(path.read_bytes()))
                entry["file"] = path.name
        except Exception as fault:  # the other networks follow
            print(f"{row['name']}: {type(fault).__name__}: {str(fault)[:200]}", flush=True)
            continue
        entry["parameters"] = int(job.parameters)
        library[row["name"]] = entry
        print(row["name"], entry["parameters"], flush=True)
    lines = ",\n".join(f"{json.dumps(name)}:{json.dumps(entry, separators=(',', ':'))}" for name, entry in library.items())
    (folder / "library.json").write_text("{\n" + lines + "\n}\n")


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


if __name__ == "__main__":
    main()
