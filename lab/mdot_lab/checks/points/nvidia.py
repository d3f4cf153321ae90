"""NVIDIA's DeepLearningExamples: Transformers and image networks on V100 and A100, tuned examples in five frameworks.

Assumptions where a point leaves the setting open: PyTorch 1.11 for every framework, Adam for LAMB, length 384 for
SQuAD, and the examples' own batches for image networks (`BATCHES`). The layout is NHWC with half precision and NCHW
otherwise. If a point gives two micro-step counts, half precision has the smaller one, because batches are larger.
Multi-node points that give the GPUs of one node are skipped. fp32 on A100 is TF32, which is the default of these
frameworks.
"""

from __future__ import annotations

import re

from mdot_lab.checks.points import Point, number, on_nodes
from mdot_lab.predictor.labels import Network
from mdot_lab.predictor.language import LANGUAGE

SQUAD_LENGTH, NER_LENGTH, SENTENCE = 384, 128, 32
"""Lengths in fine-tuning, and in a WMT14 sentence, because Transformer's batches are counted in tokens."""
SENTENCE_MODEL = "Transformer"

LANGUAGE_MODELS = {"BERT": "bert_large", "biobert": "bert_base", "BART": "bart_large", "ELECTRA": "electra_base",
                   SENTENCE_MODEL: "transformer_big"}

PASSES = 64
"""Micro-steps of pre-training if a point does not state them. After so many, the optimizer's time is negligible."""

MOST_BATCH = 1024
"""Maximum batch of a GPU. Larger values are totals over all GPUs and micro-steps, or misprints."""

BATCHES = {"resnet50": 256, "resnext101_32x4d": 128, "seresnext101_32x4d": 128, "efficientnet_b0": 256, "efficientnet_b4": 64}
"""Batch per GPU in half precision and TF32; half of it in fp32."""
SIZES = {"efficientnet_b4": 380}


def _image_network(model: str) -> str | None:
    name = model.lower().removeprefix("convnets ")
    if re.fullmatch(r"(rn|resnet)50(v1\.5)?", name):
        return "resnet50"
    return {"resnext101-32x4d": "resnext101_32x4d", "se-resnext101-32x4d": "seresnext101_32x4d",
            "efficientnet-b0": "efficientnet_b0", "efficientnet-b4": "efficientnet_b4"}.get(name)


def _efficientnet(row: dict[str, str]) -> str | None:
    found = re.search(r"EfficientNet v1-(B0|B4)", row["notes"])
    return f"efficientnet_{found[1].lower()}" if found else None


def _gpu_model(row: dict[str, str]) -> str | None:
    ampere = {"A100-40": "A100-SXM-40GB", "A100-80": "A100-SXM-80GB"}.get(row["gpu_canonical"])
    if ampere or row["gpu_canonical"] != "V100":
        return ampere
    memory = re.search(r"(?:V100-|\b)(16|32)(?: ?GB?\b|$)", f"{row['gpu']} {row['notes']}")
    return f"V100-SXM-{memory[1] if memory else 16}GB"


def _precision(row: dict[str, str], gpu_model: str) -> str:
    if row["precision"] == "fp32" and gpu_model.startswith("A100"):
        return "tf32"
    return "amp" if row["precision"] in ("amp-fp16", "bf16") else row["precision"]


def _passes(row: dict[str, str], precision: str) -> int:
    found = re.match(r"grad_accum=(\d+)(?: ?,| and) (\d+)", row["notes"])
    if found:
        return (min if precision == "amp" else max)(int(found[1]), int(found[2]))
    return PASSES if row["seq_or_resolution"] and "re-training" in row["notes"] else 1


def _nodes(row: dict[str, str], gpus: int) -> dict:
    in_a_box = 16 if "DGX-2" in row["notes"] else 8
    return {"gpus": gpus} if gpus <= in_a_box else on_nodes(gpus)


def _language(row: dict[str, str], gpu_model: str, gpus: int, batch: int) -> Point | None:
    model, precision = row["model"], _precision(row, gpu_model)
    is_several_of_one = "ulti-node" in row["notes"] and row["framework"] == "TensorFlow2"
    is_pretraining = "re-training" in row["notes"]
    # ELECTRA's generator and BART's summarisation are left out.
    is_missing = is_pretraining and model == "ELECTRA" or "ine-tuning" in row["notes"] and model == "BART"
    if is_several_of_one or is_missing or batch > MOST_BATCH:
        return None
    length = number(row, "seq_or_resolution") or (NER_LENGTH if model == "biobert" else SQUAD_LENGTH)
    passes = _passes(row, precision)
    options = {"batch": batch, **_nodes(row, gpus), "accumulate": passes, "precision": precision, "attention": "eager",
               "optimizer": "adam", "torch": "1.11"}
    way = "pre-training" if is_pretraining else "fine-tuning"
    return Point(f"NVIDIA: {model}, {row['framework']}, {way}", Network(LANGUAGE + LANGUAGE_MODELS[model], length), gpu_model,
                 options, 1e3 * batch * passes * gpus / float(row["throughput"]))


def _translation(row: dict[str, str], gpu_model: str, gpus: int, tokens: int) -> Point:
    """The throughput of this model counts output tokens."""
    options = {"batch": tokens // SENTENCE, **_nodes(row, gpus), "precision": _precision(row, gpu_model), "attention": "eager",
               "optimizer": "adam", "torch": "1.11"}
    return Point(f"NVIDIA: {SENTENCE_MODEL}, {row['framework']}", Network(LANGUAGE + LANGUAGE_MODELS[SENTENCE_MODEL], SENTENCE),
                 gpu_model, options, 1e3 * tokens * gpus / float(row["throughput"]))


def _image(row: dict[str, str], gpu_model: str, gpus: int, network: str) -> Point:
    precision = _precision(row, gpu_model)
    batch = number(row, "batch_per_gpu") or BATCHES[network] // (2 if precision == "fp32" else 1)
    options = {"batch": batch, **_nodes(row, gpus), "precision": precision, "layout": "nhwc" if precision == "amp" else "nchw",
               "optimizer": "sgd", "torch": "1.11"}
    size = SIZES.get(network, 224)
    return Point(f"NVIDIA: {network}, {row['framework']}", Network(network, size), gpu_model, options,
                 1e3 * batch * gpus / float(row["throughput"]))


def read(row: dict[str, str]) -> Point | None:
    gpu_model, gpus, batch = _gpu_model(row), number(row, "gpus"), number(row, "batch_per_gpu")
    if gpu_model is None or gpus is None or "SParsity" in row["notes"]:
        return None
    network = _image_network(row["model"]) or (_efficientnet(row) if row["model"] == "efficientnet_v1" else None)
    if network:
        return _image(row, gpu_model, gpus, network)
    if row["model"] == SENTENCE_MODEL and row["framework"] == "PyTorch" and batch:
        return _translation(row, gpu_model, gpus, batch)
    return _language(row, gpu_model, gpus, batch) if row["model"] in LANGUAGE_MODELS and batch else None


READERS = {"NVIDIA/DeepLearningExamples": read}
