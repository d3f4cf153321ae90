"""transformers for images, speech and pairs of image and text.

The table has no LSTM or GRU: the memory is mostly cuDNN's reserve space, whose size fake tensors take as zero."""

from __future__ import annotations

from typing import Any, Iterator

import torch

from mdot_lab.checks.memory.networks.case import Case, ClassLoss, LabelLoss, SquareLoss, images, integers
from mdot_lab.checks.memory.networks.language import build
from mdot_lab.checks.memory.step import Step


def _image_classes(model: str, config: str, attention: str | None = None, **values: Any):
    def make(batch: int) -> Step:
        network = build(model, config, values, attention)
        return Step(LabelLoss(network), (), {"pixel_values": images(batch, 224), "labels": integers(batch)})

    return make


def _encoder(model: str, config: str, **values: Any):
    return lambda batch: Step(SquareLoss(build(model, config, values, None)), (images(batch, 224),), {})


def _clip(batch: int) -> Step:
    import transformers

    text, vision = {"num_hidden_layers": 4}, {"num_hidden_layers": 4}
    network = transformers.CLIPModel(transformers.CLIPConfig(text_config=text, vision_config=vision))
    named = {"input_ids": integers(batch, 77), "pixel_values": images(batch, 224), "return_loss": True}
    return Step(LabelLoss(network), (), named)


def _whisper(batch: int) -> Step:
    values = {"d_model": 512, "encoder_layers": 3, "decoder_layers": 3, "encoder_attention_heads": 8,
              "decoder_attention_heads": 8, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048}
    network = build("WhisperForConditionalGeneration", "WhisperConfig", values, None)
    return Step(LabelLoss(network), (), {"input_features": torch.randn(batch, 80, 3000), "labels": integers(batch, 128)})


def _wav2vec2(batch: int) -> Step:
    network = build("Wav2Vec2Model", "Wav2Vec2Config", {"num_hidden_layers": 4, "apply_spec_augment": False, "layerdrop": 0.0}, None)
    return Step(SquareLoss(network), (torch.randn(batch, 32000),), {})


def _segformer(batch: int) -> Step:
    network = build("SegformerForSemanticSegmentation", "SegformerConfig", {"num_labels": 150}, None)
    return Step(ClassLoss(network), (images(batch, 256), integers(batch, 256, 256)), {})


def cases() -> Iterator[Case]:
    yield Case("transformers/vit", _image_classes("ViTForImageClassification", "ViTConfig", num_hidden_layers=6), 16, 4)
    yield Case("transformers/vit eager", _image_classes("ViTForImageClassification", "ViTConfig", "eager", num_hidden_layers=6), 16, 4)
    yield Case("transformers/swin", _image_classes("SwinForImageClassification", "SwinConfig"), 16, 4)
    yield Case("transformers/resnet", _image_classes("ResNetForImageClassification", "ResNetConfig"), 16, 4, "sgd")
    yield Case("transformers/convnextv2", _image_classes("ConvNextV2ForImageClassification", "ConvNextV2Config"), 16, 4)
    yield Case("transformers/dinov2", _encoder("Dinov2Model", "Dinov2Config", num_hidden_layers=6), 16, 4)
    yield Case("transformers/vit_mae encoder", _encoder("ViTMAEModel", "ViTMAEConfig", num_hidden_layers=6), 16, 4)
    yield Case("transformers/clip", _clip, 16, 4)
    yield Case("transformers/whisper", _whisper, 4, 2)
    yield Case("transformers/wav2vec2", _wav2vec2, 8, 2)
    yield Case("transformers/segformer", _segformer, 8, 2)
