"""Peaks of Megatron's functional tests (megatron_golden.csv). `notes` has each row's arguments.

Megatron writes memory to TensorBoard on the last rank, which has the last stage of a pipeline. The allocator also counts
workspaces that the tensors of a prediction leave out: cuBLAS's for the forward and for the backward pass, and Transformer
Engine's. Its local attention has a buffer for scores.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from mdot_lab.checks.memory.published.megatron_networks import Network
from mdot_lab.checks.memory.published.point import GIB, Point

SOURCE = "Megatron"
WORDS = {"bert": 30522, "gpt": 50257}
MIB = 2**20
WORKSPACES = {"A100": (2 * 8.125 * MIB, 4 * MIB), "H100": (2 * 32 * MIB, 32 * MIB)}
"""Of cuBLAS (CublasHandlePool.cpp) and of Transformer Engine (get_cublas_workspace_size_bytes)."""
CONFIGURED_WORKSPACES = 2 * 32 * MIB
"""With CUBLAS_WORKSPACE_CONFIG=:4096:8."""
ON_H100 = re.compile(r"dgx_?h100|Megatron-Core 0\.1[6-9]\.0, NGC PyTorch (25\.11|26)")
"""Names of golden values and software of runs on H100, which some rows place on A100."""
STREAMS = 4
"""On which grouped products run. On an A100, one test of experts has 16.2 MiB more at rest in a container of 2025 than in one of
2024, and 140 MiB more on an H100 than on an A100: four and five workspaces."""
GPUS = 8
LACKS_GROUPED_PRODUCTS = re.compile(r"NGC PyTorch 24\.")
LACKS_FUSED_ATTENTION = re.compile(r"NGC PyTorch 24\.|Megatron-Core 0\.(9|10)")
"""Software whose fused attention is not deterministic, so that deterministic runs compose it."""
KINDS_LEFT_OUT = {"mimo": "a vision-language network whose images the row does not state",
                  "multimodal-llava": "an encoder with its own parallelism"}


def _number(a: dict[str, Any], name: str, default: int = 0) -> int:
    return int(a.get(name, default))


def _is_composed(row: dict[str, str], a: dict[str, Any], environment: str) -> bool:
    """Attention as matmuls and a softmax."""
    backend = a.get("attention-backend", "auto")
    if a.get("transformer-impl") == "local" or backend in ("unfused", "local"):
        return True
    is_deterministic = "NVTE_ALLOW_NONDETERMINISTIC_ALGO=0" in environment
    return backend == "auto" and is_deterministic and LACKS_FUSED_ATTENTION.search(row["software"]) is not None


def _latent(a: dict[str, Any]) -> tuple[int, int, int, int, int] | None:
    if not a.get("multi-latent-attention"):
        return None
    return tuple(_number(a, name) for name in ("q-lora-rank", "kv-lora-rank", "qk-head-dim", "qk-pos-emb-head-dim", "v-head-dim"))


def _dense_layers(a: dict[str, Any]) -> int:
    found = re.match(r"\(\[0\]\*(\d+)\+", str(a.get("moe-layer-freq", "")))
    return int(found[1]) if found else 0


def network(row: dict[str, str], a: dict[str, Any], environment: str) -> Network:
    kind = "bert" if row["model"].startswith("bert") else "gpt"
    step = _number(a, "make-vocab-size-divisible-by", 128) * _number(a, "tensor-model-parallel-size", 1)
    words = _number(a, "vocab-size", WORDS[kind])
    has_experts = _number(a, "num-experts") > 0
    activation = "swiglu" if a.get("swiglu") else "squared-relu" if a.get("squared-relu") else "gelu"
    return Network(
        kind=kind, layers=_number(a, "num-layers"), hidden=_number(a, "hidden-size"), heads=_number(a, "num-attention-heads"),
        sequence=_number(a, "seq-length"), vocabulary=-(-words // step) * step, groups=_number(a, "num-query-groups"),
        head_size=_number(a, "kv-channels"), ffn=_number(a, "ffn-hidden-size"), activation=activation,
        norm="rms" if a.get("normalization") == "RMSNorm" else "layer", has_bias=not a.get("disable-bias-linear"),
        is_tied=not a.get("untie-embeddings-and-output-weights"), has_positions=a.get("position-embedding-type") != "rope",
        flash=not _is_composed(row, a, environment), dropout=float(a.get("hidden-dropout", 0.1)),
        attention_dropout=float(a.get("attention-dropout", 0.1)), normalises_heads=bool(a.get("qk-layernorm")),
        experts=_number(a, "num-experts"), top=_number(a, "moe-router-topk", 2) if has_experts else 1,
        expert_ffn=_number(a, "moe-ffn-hidden-size"), shared_ffn=_number(a, "moe-shared-expert-intermediate-size"),
        dense_layers=_dense_layers(a), latent=_latent(a))


def _virtual(a: dict[str, Any], layers: int, stages: int) -> int:
    by_layers = _number(a, "num-layers-per-virtual-pipeline-stage")
    return layers // stages // by_layers if by_layers else _number(a, "num-virtual-stages-per-pipeline-rank", 1)


def _end_blocks(a: dict[str, Any], end: str, stages: int, virtual: int) -> int:
    """Layers in the first or the last stage, or 0 for an equal share. Embedding and head count as layers if the number of layers
    without them does not divide (account-for-embedding-in-pipeline-split)."""
    layers = _number(a, "num-layers")
    if stages > 1 and layers % (stages * virtual) and (layers + 2) % (stages * virtual) == 0:
        return (layers + 2) // stages - 1
    return _number(a, f"decoder-{end}-pipeline-num-layers")


def options(row: dict[str, str], a: dict[str, Any]) -> dict[str, Any]:
    tp, pp, cp = (_number(a, f"{name}-parallel-size", 1) for name in ("tensor-model", "pipeline-model", "context"))
    gpus = int(row["gpus"] or max(GPUS, tp * pp * cp))
    dp = gpus // (tp * pp * cp)
    micro = _number(a, "micro-batch-size")
    passes = max(1, int(row["global_batch"] or micro * dp) // (dp * micro))
    ep, etp = _number(a, "expert-model-parallel-size", 1), _number(a, "expert-tensor-parallel-size", tp)
    if _number(a, "num-experts"):
        ep = max(ep * etp // tp, 1)
    is_fp8 = "fp8-format" in a
    made: dict[str, Any] = {
        "precision": "fp8" if is_fp8 else "mixed-fp16" if a.get("fp16") else "mixed-bf16",
        "gradient_type": "half" if a.get("fp16") else "fp32", "optimizer": "adam-fused", "zero": 1 if a.get("use-distributed-optimizer") else 0,
        "batch": micro * passes if pp > 1 else micro, "gpus": gpus, "tensor_parallel": tp, "pipeline_parallel": pp,
        "context_parallel": cp, "expert_parallel": ep}
    made["micro_batches" if pp > 1 else "accumulate"] = passes
    if a.get("sequence-parallel") and tp > 1:
        made["sequence_parallel"] = 1
    if _virtual(a, _number(a, "num-layers"), pp) > 1:
        made["virtual_stages"] = _virtual(a, _number(a, "num-layers"), pp)
    if a.get("recompute-granularity") == "full":
        made["checkpoint"] = "blocks"
    if a.get("use-megatron-fsdp") or a.get("use-custom-fsdp"):
        made["zero"] = 3
    for end in ("first", "last"):
        if (blocks := _end_blocks(a, end, pp, made.get("virtual_stages", 1))) > 0:
            made[f"{end}_stage_blocks"] = blocks
    return made


def _missing(row: dict[str, str], a: dict[str, Any]) -> str:
    kind = row["model"].split(":")[0]
    if kind in KINDS_LEFT_OUT:
        return KINDS_LEFT_OUT[kind]
    if a.get("optimizer", "adam") != "adam":
        return "Muon in Megatron's layer-wise form"
    if "mtp-num-layers" in a or "pipeline-model-parallel-layout" in a:
        return "a layout with the prediction of further tokens"
    if not row["gpus"] and ("rampup-batch-size" in a or "step-batch-size-schedule" in a):
        return "the number of GPUs is not stated"
    return ""


def _logits(row: dict[str, str], a: dict[str, Any], words: int) -> float:
    """Elements on one GPU."""
    parts = _number(a, "tensor-model-parallel-size", 1) * _number(a, "context-parallel-size", 1)
    return _number(a, "micro-batch-size") * _number(a, "seq-length") * words / parts


def _kept_in_experts(row: dict[str, str], a: dict[str, Any], network: Network) -> float:
    """Bytes that Transformer Engine's experts keep on the last stage: the result of an activation that is not fused with the
    product by the router's probability. The product is differentiated, so that its operand stays."""
    if network.activation == "swiglu" or a.get("recompute-granularity") == "full":
        return 0
    parts = [_number(a, f"{name}-parallel-size", 1) for name in ("tensor-model", "pipeline-model", "context")]
    width = network.expert_ffn or network.ffn or 4 * network.hidden
    elements = _number(a, "micro-batch-size") * network.sequence * network.top * width
    return 2 * elements * (network.layers - network.dense_layers) / math.prod(parts)


def beside(row: dict[str, str], a: dict[str, Any], environment: str, gpu: str, network: Network) -> float:
    """Bytes of workspaces and of the tensors by which Megatron's options extend the loss: the fused one works out of place in fp32,
    and a postponed gradient of the head keeps half-precision gradients of logits. Grouped products of Transformer Engine run on
    four streams, each with a workspace. Containers of 2024 lack them, and Megatron then compiles its own experts."""
    cublas, engine = WORKSPACES[gpu]
    words = network.vocabulary
    size = CONFIGURED_WORKSPACES if "CUBLAS_WORKSPACE_CONFIG=:4096:8" in environment else cublas
    if a.get("transformer-impl") == "local":
        heads = _number(a, "num-attention-heads") // _number(a, "tensor-model-parallel-size", 1)
        size += 2 * _number(a, "micro-batch-size") * heads * _number(a, "seq-length") ** 2
    else:
        size += engine
        if a.get("moe-grouped-gemm") and network.experts and not LACKS_GROUPED_PRODUCTS.search(row["software"]):
            size += STREAMS * engine + _kept_in_experts(row, a, network)
    if a.get("cross-entropy-loss-fusion") and a.get("cross-entropy-fusion-impl", "native") == "native":
        size += 4 * _logits(row, a, words)
    if "no_create_attention_mask" not in row["source"]:
        size += _number(a, "micro-batch-size") * _number(a, "seq-length") ** 2
    return size + 2 * _number(a, "wgrad-deferral-limit") * _logits(row, a, words)


def read(row: dict[str, str]) -> Point | None:
    if not row["peak_memory_gib"]:
        return None
    notes = json.loads(row["notes"])
    a, environment = notes["args"], notes["env"]
    test = row["source"].split("test_cases/")[-1]
    name = f"{row['model']}; {row['parallel']}; {row['software']}; {test}"
    measured = float(row["peak_memory_gib"]) * GIB
    gpu = "H100" if "H100" in row["gpu"] or ON_H100.search(f"{test.split('/')[-1]} {row['software']}") else "A100"
    missing = _missing(row, a)
    if missing:
        return Point(SOURCE, name, measured, "last stage", row["gpu"], missing=missing)
    made = network(row, a, environment)
    made_options, instances = options(row, a), _number(a, "num-distributed-optimizer-instances", 1)
    shards = {"gpus": made_options["gpus"] // instances} if made_options["zero"] == 1 else {}  # of an instance's GPUs
    return Point(SOURCE, name, measured, "last stage", f"{gpu}-SXM 80GB", made, made_options, optional={"framework": "megatron"},
                 for_memory=shards, beside=beside(row, a, environment, gpu, made))
