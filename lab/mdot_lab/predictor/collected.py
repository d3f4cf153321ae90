"""Steps measured by mdot_lab.collect, as labels.

A record gives two labels: forward and backward pass in training, without the update, and the forward pass in
evaluation. Jobs are those in mdot_lab.checks.collected, with another prefix, because library versions differ in
networks with equal names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Iterator

from mdot_lab.collect import records
from mdot_lab.predictor import tables
from mdot_lab.predictor.labels import BACKWARD, INFER, Label, Network

RUN = "collected"
PREFIX = "collected."
PRECISIONS = {"fp32": "fp32", "tf32": "tf32", "bf16": "amp_bf16", "fp16": "amp"}


def network(record: records.Record) -> Network:
    return Network(PREFIX + record["architecture"].replace("/", "."), record["size"])


def _software(torch_version: str) -> str:
    """"2.11.0+cu130" becomes "pt2110", and "2.4.1" becomes "pt241", as in timm's tables."""
    return "pt" + torch_version.split("+")[0].replace(".", "")


def read(path: Path) -> Iterator[Label]:
    for record in records.read(path):
        if record["status"] != "ok" or record["repeat"]:
            continue
        gpu = tables.gpu(record["environment"]["gpu"].removeprefix("NVIDIA ")).names[0]
        common = (network(record), record["batch"], "nhwc" if record["channels_last"] else "nchw",
                  _software(record["environment"]["torch"]), RUN)
        kinds = [(BACKWARD, record["forward_ms"]["median"] + record["backward_ms"]["median"])]
        if "inference_ms" in record:
            kinds.append((INFER, record["inference_ms"]["median"]))
        for kind, milliseconds in kinds:
            yield Label(*common, milliseconds, record["parameters"] / 1e6, gpu, PRECISIONS[record["precision"]], kind,
                        is_compiled=False, is_fused=True)
