"""torchvision: classification, segmentation, video, and feature pyramids for detection."""

from __future__ import annotations

from typing import Iterator

import torch

from mdot_lab.checks.memory.networks.case import Case, ClassLoss, PyramidLoss, classifier, images, integers
from mdot_lab.checks.memory.step import Step

CLASSIFIERS = (
    "alexnet", "vgg16_bn", "squeezenet1_1", "resnet18", "resnet50", "wide_resnet50_2", "resnext50_32x4d", "densenet121",
    "mobilenet_v2", "mobilenet_v3_large", "mnasnet1_0", "shufflenet_v2_x1_0", "efficientnet_b0", "efficientnet_v2_s",
    "regnet_y_3_2gf", "convnext_tiny", "vit_b_16", "swin_t", "swin_v2_t", "maxvit_t",
)
OPTIMIZERS = {"alexnet": "sgd", "vgg16_bn": "sgd-fused", "resnet18": "sgd", "resnet50": "sgd", "densenet121": "sgd-fused",
              "vit_b_16": "adamw-fused", "swin_t": "adamw-fused"}
SEGMENTERS = ("deeplabv3_resnet50", "fcn_resnet50", "lraspp_mobilenet_v3_large")
VIDEO = ("r3d_18", "r2plus1d_18", "swin3d_t", "mvit_v2_s")


def _segmenter(name: str):
    def make(batch: int) -> Step:
        import torchvision

        build = getattr(torchvision.models.segmentation, name)
        return Step(ClassLoss(build(weights=None, weights_backbone=None)), (images(batch, 256), integers(batch, 256, 256)), {})

    return make


def _video(name: str):
    def make(batch: int) -> Step:
        import torchvision

        frames = 16 if name.startswith("mvit") else 8
        size = 224 if name.startswith("mvit") else 112
        clip = torch.randn(batch, 3, frames, size, size)
        return Step(ClassLoss(getattr(torchvision.models.video, name)()), (clip, integers(batch)), {})

    return make


def _pyramid(batch: int) -> Step:
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

    return Step(PyramidLoss(resnet_fpn_backbone(backbone_name="resnet50", weights=None, trainable_layers=3)),
                (images(batch, 320),), {})


def _frozen_backbone(batch: int) -> Step:
    import torchvision

    model = torchvision.models.resnet50()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.startswith("fc"))
    return Step(ClassLoss(model), (images(batch, 224), integers(batch)), {})


def cases() -> Iterator[Case]:
    def build(name: str):
        import torchvision

        return getattr(torchvision.models, name)()

    for name in CLASSIFIERS:
        yield Case(f"torchvision/{name}", classifier(lambda name=name: build(name)), 32, 8, OPTIMIZERS.get(name, "adamw"))
    for name in SEGMENTERS:
        yield Case(f"torchvision/{name}", _segmenter(name), 8, 4, "sgd")
    for name in VIDEO:
        yield Case(f"torchvision/{name}", _video(name), 8, 2)
    yield Case("torchvision/resnet50_fpn", _pyramid, 8, 2, "sgd")
    yield Case("torchvision/resnet50 frozen backbone", _frozen_backbone, 32, 8)
