"""BLOOM's search (bigscience_steps.csv) and SimuMax's slices of Llama-3-70B (simumax_b200.csv): Megatron's mixed
precision, with fp32 master weights and the optimizer's state sharded over the data-parallel workers (ZeRO-1).

BLOOM's search recomputes each block, has 250,880 words, GELU, and attention as matmuls and a fused softmax, and runs
on PyTorch 1.11. Memory is by nvidia-smi, on the GPU with the table. A gigabyte is taken as 1000 of nvidia-smi's MiB,
because a row has 80 of them, and the card offers 79.2 GiB. A row counts if size, width and depth agree. Gradients in
the first runs are fp16. From the section "Rebalancing layers" on, DeepSpeed's BF16_Optimizer adds bf16 gradients to
fp32 ones, which it does not shard.

SimuMax's fullest GPU, max_memory_allocated, uses flash attention, a fused loss and sequence parallelism.
"""

from __future__ import annotations

import re
from typing import Any

from mdot_lab.checks.memory.published.point import GIB, Point, llama_3, model

WORDS, HEADS = 250880, 64
BLOOM_GB = 1000 * 2**20
FIRST_BF16_LINE = 893
"""Of the source's text: the section "Rebalancing layers"."""
WITHOUT_ZERO = ("667", "72GB")
"""Line and memory of the row whose column ZS is 0. The table lacks the column."""


def _parameters(hidden: int, layers: int) -> float:
    return 12 * layers * hidden**2 + WORDS * hidden


def widths(row: dict[str, str]) -> tuple[int, int] | None:
    """Width and depth from the columns or from the section, if they give the row's size, a whole number of billions, within 1 %."""
    size = float(re.fullmatch(r"([\d.]+)B", row["size"])[1]) * 1e9
    text = f"{row['section']} / {row['near']}"
    hidden = [int(row["hidden"])] if row["hidden"] else [int(n) for n in re.findall(r"N?HIDDEN=(\d+)", text)]
    layers = [int(row["layers"])] if row["layers"] else [int(n) for n in re.findall(r"NLAYERS=(\d+)", text)]
    found = {(h, n): abs(_parameters(h, n) - size) for h in hidden for n in layers}
    best = min(found, key=found.__getitem__, default=None)
    return best if best is not None and found[best] <= 0.5e9 + 0.01 * size else None


def bigscience(row: dict[str, str]) -> Point | None:
    memory = re.fullmatch(r"(\d+)GB", row["memory"])
    if not memory or not row["gpu"].startswith("A100"):
        return None
    dp, tp, pp, micro = (int(row[name] or 1) for name in ("dp", "tp", "pp", "micro_batch"))
    title = f"{row['size']} dp {dp} tp {tp} pp {pp}, micro-batch {micro}, heads {row['heads'] or HEADS}, {row['place'].split(':')[-1]}"
    measured = int(memory[1]) * BLOOM_GB
    found = widths(row)
    if found is None:
        return Point("bigscience", title, measured, "nvidia-smi", row["gpu"],
                     missing="no width and depth near the row give its size")
    hidden, layers = found
    heads = int(row["heads"] or HEADS)
    if hidden % heads:
        return Point("bigscience", title, measured, "nvidia-smi", row["gpu"], missing=f"{heads} heads do not divide {hidden}")
    gpus, passes = int(row["gpus"]), max(1, int(row["global_batch"]) // (dp * micro))
    line = row["place"].split(":")[-1]
    gradients = {"precision": "mixed-fp16"} if int(line) < FIRST_BF16_LINE else {
        "precision": "mixed-bf16", "gradient_type": "fp32", "reduce_type": "half"}
    options: dict[str, Any] = {"batch": micro * passes if pp > 1 else micro, **gradients, "optimizer": "adam-fused",
                               "attention": "eager", "checkpoint": "blocks", "zero": 1, "gpus": gpus, "nodes": max(1, gpus // 8),
                               "tensor_parallel": tp, "pipeline_parallel": pp, "data_parallel": dp, "torch": "1.11"}
    options["micro_batches" if pp > 1 else "accumulate"] = passes
    if (line, row["memory"]) == WITHOUT_ZERO:
        options["zero"] = 0
    network = model("GPT2", 2048, type="float32", n_embd=hidden, n_layer=layers, n_head=heads, vocab_size=WORDS, n_positions=2048,
                    attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0)
    return Point("bigscience", title, measured, "nvidia-smi", row["gpu"], network, options)


def simumax(row: dict[str, str]) -> Point:
    tp, pp, dp, passes = (int(row[name] or 1) for name in ("tp", "pp", "dp", "micro_batches"))
    options: dict[str, Any] = {"batch": passes if pp > 1 else 1, "precision": "mixed-bf16", "gradient_type": "fp32",
                               "optimizer": "adam-fused", "zero": 1, "gpus": 8, "tensor_parallel": tp, "pipeline_parallel": pp,
                               "data_parallel": dp}
    options["micro_batches" if pp > 1 else "accumulate"] = passes
    if tp > 1:
        options["sequence_parallel"] = 1
    if row["cp"]:
        options["context_parallel"] = int(row["cp"])
    sequence = int(row["sequence_if_said"] or 4096)
    network = llama_3("70B", sequence, type="float32", num_hidden_layers=int(row["layers"]))
    return Point("SimuMax", row["case"], float(row["measured_alloc_gib"]) * GIB, "allocated", "B200", network, options,
                 optional={"loss": "fused"})
