"""vTrain's GPT and llm-foundry's MPT, on one GPU and on hundreds. Assumptions where the points leave the setting open: fp16
throughout is treated as bf16, Adam, tensor parallelism within a node, 25 GB/s per GPU between nodes. vTrain ran the Megatron-LM
of 2022: PyTorch's modules with fused kernels for softmax, bias and GELU, bias and dropout. mdot's name for such launches and
kernels is liger; its megatron means the modules of Megatron Core."""

from __future__ import annotations

from mdot_lab.checks.points import NODE, Point, on_nodes
from mdot_lab.predictor import published


def vtrain(row: dict[str, str]) -> Point:
    note = published.vtrain_settings(row)
    tensor, stages, workers = (int(note[name]) for name in ("tp", "pp", "dp"))
    batch = int(float(row["batch_per_gpu"]))
    passes = int(note["global_batch"]) // (workers * batch)
    way = {"batch": batch * passes, "micro_batches": passes} if stages > 1 else {"batch": batch, "accumulate": passes}
    options = {**way, **on_nodes(tensor * stages * workers), "data_parallel": workers, "tensor_parallel": tensor,
               "pipeline_parallel": stages, "precision": "bf16", "attention": "eager", "checkpoint": "blocks",
               "optimizer": "adam", "torch": "1.11", "framework": "megatron", "host_launch_us": 50}
    return Point("vTrain: GPT", published.network(row), "A100-SXM-80GB", options, note["iteration_ms"],
                 tensor == 1 and stages == 1)


def foundry(row: dict[str, str]) -> Point:
    passes, precision, recomputes, step_ms = published.foundry_settings(row)
    gpus = int(float(row["gpus"]))
    options = {"batch": int(float(row["batch_per_gpu"])), "accumulate": passes, **on_nodes(gpus), "zero": 3,
               "precision": precision,
               "attention": "flash", "checkpoint": "blocks" if recomputes else None, "optimizer": "adamw", "torch": "2.0"}
    return Point("llm-foundry: MPT", published.network(row), published.FOUNDRY_GPUS[row["gpu"]], options, step_ms, gpus <= NODE)


READERS = {"VIA-Research/vTrain": vtrain, "mosaicml/llm-foundry": foundry}
