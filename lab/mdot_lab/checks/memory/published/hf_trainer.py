"""Peaks of Hugging Face Trainer (fms_hf_finetuning.csv): full fine-tuning, LoRA and QLoRA with checkpointed blocks and
FlashAttention 2, in bf16 or fp16 weights, on one GPU or under FSDP. Sequences are at most as long as the table of positions,
as the rows' tokens and samples in a second show.

Peft makes adapters of a half-precision network fp32, and Accelerate the trained parameters of half-precision modules under FSDP
with automatic mixed precision. The baseline of QLoRA calls peft's prepare_model_for_kbit_training, and the accelerated ones do
not. "foak" runs a fused cross-entropy in place. santacoder's QLoRA computes in fp32: with and without autocast, a sample takes
1.94 GiB, and 1.57 with "foak", which is twice the .98 and .79 of full fine-tuning in bf16.
"""

from __future__ import annotations

import json
import re
from typing import Any

from mdot_lab.checks.memory.published.point import GIB, Model, Point, model

SOURCE = "Trainer"
MOST_TOKENS, CARD_MIB = 1 << 20, 80 << 10
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
MISTRAL = ("Mistral", {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
                       "num_key_value_heads": 8, "vocab_size": 32000, "sliding_window": 4096})
LLAMA_70B = ("Llama", {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64,
                       "num_key_value_heads": 8, "vocab_size": 32000})
SANTACODER = ("GPTBigCode", {"n_embd": 2048, "n_layer": 24, "n_head": 16, "n_inner": 8192, "n_positions": 2048,
                             "vocab_size": 49280, "multi_query": True, "activation_function": "gelu_pytorch_tanh"})
MODELS = {"Mistral": MISTRAL, "Llama-2-70": LLAMA_70B, "Llama2-70": LLAMA_70B, "santacoder": SANTACODER}


def _model(row: dict[str, str], method: str, program: str) -> Model | None:
    found = next((values for part, values in MODELS.items() if part in row["model"]), None)
    if found is None:
        return None
    kind, values = found
    rank = re.search(r"r=(\d+)", method)
    modules = ("c_attn",) if kind == "GPTBigCode" else ATTENTION
    is_fused, is_santacoder = "foak" in program, kind == "GPTBigCode"
    loss = ("shifted, in place" if is_fused else "shifted") if is_santacoder else "in place" if is_fused else ""
    widens = "accelerated" in program and not is_santacoder and "amp" not in row["precision"]
    sequence = min(int(row["seq_or_size"]), values.get("n_positions", MOST_TOKENS))
    return model(kind, sequence, int(rank[1]) if rank else 0, modules if rank else (),
                 is_prepared="baseline-peft-bnb" in program and row["gpus"] == "1", loss=loss,
                 has_autocast=is_santacoder and row["gpus"] != "1" and "amp" in row["precision"] and "4-bit" not in method,
                 type="float32" if is_santacoder and "4-bit" in method else "bfloat16",
                 has_full_adapters=rank is not None and row["gpus"] == "1" and ("4-bit" not in method or widens), **values)


def _tables(row: dict[str, str]) -> int:
    """Bytes of the cosines and sines that every block of Llama and Mistral kept for all positions before transformers 4.43
    (MistralRotaryEmbedding.cos_cached), in half precision. The earliest rows state no version."""
    version = re.search(r"transformers 4\.(\d+)", row["software"])
    if "santacoder" in row["model"] or version and int(version[1]) >= 43:
        return 0
    positions, blocks = (32768, 32) if "Mistral" in row["model"] else (4096, 80)
    return 2 * 2 * 128 * positions * blocks


def options(row: dict[str, str], method: str) -> dict[str, Any]:
    gpus, mixed = int(row["gpus"]), "amp" in row["precision"]
    half = "fp16" if "float16" in row["precision"].replace("bfloat16", "") else "bf16"
    precision = "bf16"
    if mixed:
        precision = f"amp-{half}" if gpus == 1 else f"mixed-{half}"
    is_fused = ("foak" in row["compile"] or "liger" in row["compile"]) and "santacoder" not in row["model"]
    made: dict[str, Any] = {"batch": int(row["micro_batch"]), "precision": precision, "optimizer": "adamw", "checkpoint": "blocks",
                            "attention": "flash", "framework": "liger" if is_fused else "hf-trainer"}
    if gpus > 1:
        version = re.search(r"torch (\d+\.\d+)", row["software"])
        made.update(gpus=gpus, zero=3, torch=version[1] if version else "2.2")
    if "4-bit" in method and "santacoder" in row["model"]:
        made["precision"] = "fp32"
    if "4-bit" in method:  # GPTQ has a scale of two bytes and a zero of half a byte for 128 weights, .0035 bytes more than NF4
        made["frozen_weights"] = "nf4"
    return made


def read(row: dict[str, str]) -> Point | None:
    notes = json.loads(row["notes"])
    measured = float(row["peak_memory_gib"] or 0) * GIB
    if not measured and not notes["oom"]:
        return None
    method, program = notes["method"], row["compile"]
    name = f"{row['model']}; {method}; {row['precision']}; {row['gpus']} GPUs, batch {row['micro_batch']}; {program}"
    if row["doubt"]:
        return Point(SOURCE, name, measured, "allocated", row["gpu"], missing="lengths vary")
    if notes["oom"] and float(notes.get("nvidia_smi_mib") or CARD_MIB) < CARD_MIB / 2:
        return Point(SOURCE, name, measured, "allocated", row["gpu"], missing="failed with a mostly empty card")
    network = _model(row, method, program)
    if network is None:
        return Point(SOURCE, name, measured, "allocated", row["gpu"], missing="kernels of ScatterMoE")
    return Point(SOURCE, name, measured, "allocated", "A100-SXM 80GB", network, options(row, method), beside=_tables(row),
                 is_out_of_memory=notes["oom"])
