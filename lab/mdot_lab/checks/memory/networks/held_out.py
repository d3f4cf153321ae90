"""Kinds of networks with which mdot's memory was not developed: detection, pairs of image and text, and torch.nn.RMSNorm.

Matching predictions with objects needs data, which fake tensors lack. Detectors therefore train on the mean squares of their
outputs: backbone, pyramid, encoder, decoder and heads are those of the training."""

from __future__ import annotations

from typing import Any, Callable, Iterator

import torch
from torch import nn
from torch.utils import _pytree

from mdot_lab.checks.memory.networks.case import Case, LabelLoss, images, integers
from mdot_lab.checks.memory.networks.language import build
from mdot_lab.checks.memory.step import Step



class AllOutputs(nn.Module):
    """Mean squares of all floating-point results."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: Any, **named: Any) -> torch.Tensor:
        out = self.model(*inputs, **named)
        out = dict(out) if hasattr(out, "keys") else out
        return sum(x.square().mean() for x in _pytree.tree_leaves(out) if isinstance(x, torch.Tensor) and x.is_floating_point())


class Heads(nn.Module):
    """A torchvision detector up to its heads."""

    def __init__(self, detector: nn.Module) -> None:
        super().__init__()
        self.backbone, self.head = detector.backbone, detector.head

    def forward(self, images: torch.Tensor) -> Any:
        return self.head(list(self.backbone(images).values()))


def _heads(name: str, size: int) -> Callable[[int], Step]:
    def make(batch: int) -> Step:
        import torchvision

        detector = getattr(torchvision.models.detection, name)(weights=None, weights_backbone=None)
        return Step(AllOutputs(Heads(detector)), (images(batch, size),), {})

    return make


def _yolos(batch: int) -> Step:
    network = build("YolosForObjectDetection", "YolosConfig", {"image_size": [320, 320], "num_hidden_layers": 4}, None)
    return Step(AllOutputs(network), (), {"pixel_values": images(batch, 320)})


def _pair(model: str, config: str, size: int, labels: bool = True, length: int = 64, **values: Any) -> Callable[[int], Step]:
    def make(batch: int) -> Step:
        named = {"input_ids": integers(batch, length), "pixel_values": images(batch, size)}
        network = build(model, config, values, None)
        if labels:
            return Step(LabelLoss(network), (), {**named, "labels": integers(batch, length)})
        return Step(AllOutputs(network), (), named)

    return make


class _Normed(nn.Module):
    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.RMSNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))
                                    for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + layer(x)
        return x


def _normed(batch: int) -> Step:
    return Step(AllOutputs(_Normed(512, 6)), (torch.randn(batch, 256, 512),), {})


def _flux(batch: int) -> Step:
    import diffusers

    network = diffusers.FluxTransformer2DModel(num_layers=2, num_single_layers=4, attention_head_dim=64, num_attention_heads=8,
                                               joint_attention_dim=512, pooled_projection_dim=512, axes_dims_rope=(8, 28, 28))
    named = {"hidden_states": torch.randn(batch, 1024, 64), "encoder_hidden_states": torch.randn(batch, 128, 512),
             "pooled_projections": torch.randn(batch, 512), "timestep": torch.ones(batch), "guidance": None,
             "img_ids": torch.zeros(1024, 3), "txt_ids": torch.zeros(128, 3), "return_dict": False}
    return Step(AllOutputs(network), (), named)


def _wan(batch: int) -> Step:
    import diffusers

    network = diffusers.WanTransformer3DModel(num_attention_heads=4, attention_head_dim=128, ffn_dim=2048, num_layers=4, text_dim=512)
    named = {"hidden_states": torch.randn(batch, 16, 4, 32, 32), "timestep": torch.ones(batch),
             "encoder_hidden_states": torch.randn(batch, 128, 512), "return_dict": False}
    return Step(AllOutputs(network), (), named)


def _llava(batch: int) -> Step:
    """Image features take the place of all words, because inputs are zeros, and LLaVA compares the numbers of both."""
    import transformers

    text = transformers.LlamaConfig(hidden_size=512, intermediate_size=1408, num_hidden_layers=4, num_attention_heads=8,
                                    num_key_value_heads=8, vocab_size=32000)
    vision = transformers.CLIPVisionConfig(hidden_size=384, intermediate_size=1536, num_hidden_layers=4, num_attention_heads=6,
                                           image_size=224, patch_size=16)
    network = transformers.LlavaForConditionalGeneration(transformers.LlavaConfig(vision_config=vision, text_config=text, image_token_id=0, vision_feature_layer=-1))
    words = (224 // 16) ** 2
    named = {"input_ids": integers(batch, words), "pixel_values": images(batch, 224), "labels": integers(batch, words)}
    return Step(LabelLoss(network), (), named)


def cases() -> Iterator[Case]:
    for name, size in (("retinanet_resnet50_fpn", 320), ("fcos_resnet50_fpn", 320), ("ssd300_vgg16", 300),
                       ("ssdlite320_mobilenet_v3_large", 320)):
        yield Case(f"held out/{name} heads", _heads(name, size), 8, 2, "sgd")
    yield Case("held out/yolos", _yolos, 8, 2)
    yield Case("held out/siglip", _pair("SiglipModel", "SiglipConfig", 224, False, text_config={"num_hidden_layers": 4},
                                        vision_config={"num_hidden_layers": 4}), 8, 2)
    yield Case("held out/git", _pair("GitForCausalLM", "GitConfig", 224, num_hidden_layers=3, vision_config={"num_hidden_layers": 3}), 8, 2)
    yield Case("held out/blip", _pair("BlipForConditionalGeneration", "BlipConfig", 224, text_config={"num_hidden_layers": 3},
                                      vision_config={"num_hidden_layers": 3, "image_size": 224}), 8, 2)
    yield Case("held out/layers with nn.RMSNorm", _normed, 32, 8)
    yield Case("held out/flux", _flux, 4, 2)
    yield Case("held out/wan", _wan, 4, 2)
    yield Case("held out/llava", _llava, 8, 2)
