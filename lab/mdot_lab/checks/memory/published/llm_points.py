"""torchtune's and torchtitan's rows of llm_points.csv.

torchtitan keeps fp32 parameters and Adam states, sharded by FSDP2, computes in bf16, sums gradients in fp32, and
reports the reserved memory of the fullest GPU. The program is recorded in bf16, the computation's type. Selective
checkpointing keeps attention and every second product, and recomputes all other operators. Pipeline stages keep
gathered weights. A step has as many micro-batches as the pipeline has parts, the default of
`pipeline_parallel_microbatches`. torchtune's parameters are bf16. The 8B runs on a 4090 page the 8-bit Adam's state,
and update in the backward pass. The README leaves the A6000's optimizer open. The recipes' LoRA has rank 8 on q, v,
the output and the MLP, and chunks the loss.
"""

from __future__ import annotations

import re
from typing import Any

from mdot_lab.checks.memory.published.point import GIB, Point, llama_3

TORCHTUNE_LORA = ("q_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def _degrees(text: str) -> dict[str, int]:
    return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", text)}


def torchtitan(row: dict[str, str]) -> Point:
    degrees, gpus = _degrees(row["parallel"]), int(row["gpus"])
    size, is_selective = row["model"].split()[-1], row["checkpointing"] == "selective"
    sequence, batch = int(row["sequence"]), int(row["micro_batch"])
    options: dict[str, Any] = {"precision": "fp8" if row["precision"] == "fp8" else "mixed-bf16", "optimizer": "adamw-fused",
                               "reduce_type": "fp32", "gpus": gpus, "nodes": max(1, gpus // 8), "zero": 3,
                               "compiled": row["compile"] == "compile",
                               "checkpoint": "nothing" if is_selective else "blocks"}
    for name, option in (("tp", "tensor_parallel"), ("pp", "pipeline_parallel"), ("cp", "context_parallel")):
        if degrees.get(name, 1) > 1:
            options[option] = degrees[name]
    if degrees.get("tp", 1) > 1:
        options["sequence_parallel"] = 1
    if degrees.get("pp", 1) > 1:
        parts = 2 if "interleaved" in row["notes"] else 1
        options.update(micro_batches=degrees["pp"] * parts, virtual_stages=parts, keep_gathered=True)
    name = f"{size} {row['precision']} {sequence} x {batch}, {row['parallel']}, {row['compile']} {row['notes']}".strip()
    return Point("torchtitan", name, float(row["peak_memory_gib"]) * GIB, "reserved", "H100-SXM-80GB",
                 llama_3(size, sequence, saves_every_second_product=is_selective), {"batch": batch, **options})


def torchtune(row: dict[str, str]) -> Point:
    size, method, gpus = row["model"].split()[-1], row["notes"].split(",")[0], int(row["gpus"])
    options: dict[str, Any] = {"batch": 2, "precision": "bf16", "compiled": True, "checkpoint": "blocks", "optimizer": "adamw-fused",
                               "loss": "chunked"}
    if gpus > 1:
        options.update(gpus=gpus, zero=3)
    if method == "full" and gpus == 1:
        options.update(optimizer="adamw8bit", step_in_backward=True)
        if row["gpu"] == "RTX-4090":
            options["offload"] = "pages"
    if "offload" in row["notes"]:
        options["offload"] = "parameters"
    if method == "qlora":
        options["frozen_weights"] = "nf4"
    if method == "lora" and gpus == 1:
        if row["gpu"] == "RTX-A6000":
            options["checkpoint"] = "nothing"
        else:
            options["offload_activations"] = True
    rank, modules = (0, ()) if method == "full" else (16 if size == "70B" else 8, TORCHTUNE_LORA)
    gpu = "A100-SXM-80GB" if row["gpu"] == "A100" else row["gpu"]
    return Point("torchtune", f"{size} {method}, {gpus} x {row['gpu']}", float(row["peak_memory_gib"]) * GIB, "allocated", gpu,
                 llama_3(size, 2048, lora_rank=rank, lora_modules=modules), options)


def read(row: dict[str, str]) -> Point | None:
    if not row["peak_memory_gib"]:
        return None
    if row["source"].startswith("pytorch/torchtitan"):
        return torchtitan(row)
    return torchtune(row) if row["source"].startswith("pytorch/torchtune") else None
