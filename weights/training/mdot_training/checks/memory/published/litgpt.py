"""litgpt_finetuning.csv: bf16 parameters, eager attention by flash kernels, max_memory_allocated in GB.

Alpaca2k's rows are taken at their maximum length, 512, and with the rank 32 of their configurations. Alpaca's rows are taken
at the longest sample, 1304 tokens by Llama's tokenizer and 1034 by phi's, and with the rank 8. Both adapt queries and values.
"""

from __future__ import annotations

from typing import Any

from mdot_training.checks.memory.published.point import GB, Model, Point, model


def _llama(hidden: int, inner: int, layers: int, heads: int, words: int = 32000, groups: int | None = None, **more: Any) -> dict[str, Any]:
    return {"hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": groups or heads, "vocab_size": words, **more}


MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama-2-7b": ("Llama", _llama(4096, 11008, 32, 32)),
    "Llama 2 7 B": ("Llama", _llama(4096, 11008, 32, 32)),
    "Llama 2 13 B": ("Llama", _llama(5120, 13824, 40, 40)),
    "llama-3-8b": ("Llama", _llama(4096, 14336, 32, 32, 128256, 8)),
    "llama-3.1-8b": ("Llama", _llama(4096, 14336, 32, 32, 128256, 8)),
    "llama-3.2-1b": ("Llama", _llama(2048, 8192, 16, 32, 128256, 8, tie_word_embeddings=True)),
    "llama-3.2-3b": ("Llama", _llama(3072, 8192, 28, 24, 128256, 8, tie_word_embeddings=True)),
    "tiny-llama": ("Llama", _llama(2048, 5632, 22, 32, 32000, 4)),
    "gemma-2b": ("Gemma", _llama(2048, 16384, 18, 8, 256000, 1, head_dim=256)),
    "gemma-7b": ("Gemma", _llama(3072, 24576, 28, 16, 256000, 16, head_dim=256)),
    "gemma-2-9b": ("Gemma2", _llama(3584, 14336, 42, 16, 256000, 8, head_dim=256)),
    "phi-2": ("Phi", _llama(2560, 10240, 32, 32, 51200, partial_rotary_factor=0.4)),
    "phi-1.5 1.3 B": ("Phi", _llama(2048, 8192, 24, 32, 51200, partial_rotary_factor=0.5)),
    "Phi-3-mini-4k-instruct": ("Phi3", _llama(3072, 8192, 32, 32, 32064, pad_token_id=0)),
    "falcon-7b": ("Falcon", {"hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71, "vocab_size": 65024}),
}
MODULES = {"Phi3": ("qkv_proj",), "Falcon": ("query_key_value",)}


def _model(name: str, sequence: int, rank: int) -> Model:
    kind, values = MODELS[name]
    return model(kind, sequence, rank, MODULES.get(kind, ("q_proj", "v_proj")) if rank else (), **values)


def read(row: dict[str, str]) -> Point | None:
    method, name = row["method"], row["model"]
    try:
        measured = float(row["peak_memory_gb"]) * GB
    except ValueError:      # out of memory, or no run
        return None
    if "Inference" in method:
        return None
    is_alpaca2k = row["data"] == "alpaca2k"
    title = f"{name} {method}, {row['gpus']} x {row['gpu']}, batch {row['micro_batch']}, {row['data']}"
    gpu = "A10G" if is_alpaca2k else "A100-SXM-40GB"
    missing = ""
    if "Adapter" in method:
        missing = "adapters are not rebuilt"
    elif "Multiple GPUs" in method:
        missing = "the source does not state the number of GPUs"
    elif name not in MODELS:
        missing = "the widths of the network are not listed"
    if missing:
        return Point("litgpt", title, measured, "allocated", gpu, missing=missing)
    is_full = method == "full"
    sequence = 512 if is_alpaca2k else 1034 if name.startswith("phi") else 1304
    rank = 0 if is_full else 32 if is_alpaca2k else 8
    options: dict[str, Any] = {"batch": int(row["micro_batch"]), "precision": "bf16", "optimizer": "adamw"}
    if "qlora" in method or "nf4" in method:
        options["frozen_weights"] = "nf4"
    gpus = int(row["gpus"])
    if gpus > 1:
        # Full fine-tuning shards with FSDP and recomputes its blocks. LoRA's rows are equal for one GPU and four.
        options.update({"gpus": gpus, "zero": 3, "checkpoint": "blocks"} if is_full else {"gpus": gpus})
    return Point("litgpt", title, measured, "allocated", gpu, _model(name, sequence, rank), options)
