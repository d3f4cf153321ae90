"""Assigns networks to families, which are left out together.

A family is a set of networks with common, hard-to-predict properties. Leaving it out tests a user's architecture
without any measured relative.
"""

from __future__ import annotations

import re

FAMILIES: tuple[tuple[str, str], ...] = (
    # attention or another mixing of positions in a convolutional frame
    ("byob with attention", r"botne|halone|halo2bot|lambda|lamhalo|bat_res|gcres|gc_efficientnetv2"),
    ("convit-like", r"^(convit|coat|crossvit|cait|tnt|pit|levit|twins|visformer|jx_nest|nest|poolformer)"),
    ("swin", r"^swin"),
    ("vit", r"^(vit|deit|beit|eva|flexivit|samvit|hiera|naflexvit|aimv2)"),
    ("mlp", r"^(mixer|resmlp|gmixer|gmlp)"),
    ("convnext", r"^(convnext|convmixer|inception_next|caformer|convformer)"),
    ("csp", r"^(csp|darknet)"),
    ("efficientnet", r"efficientnet|mobilenet|mnasnet|mixnet|fbnet|lcnet|tinynet|ghostnet|hardcorenas|rexnet|spnasnet"
                     r"|semnasnet|shufflenet|squeezenet|repghost"),
    ("inception-like", r"inception|xception|nasnet|selecsls|googlenet"),
    ("dense", r"densenet|^dpn|vovnet|hgnet"),
    ("plain", r"^(repvgg|gernet|vgg|alexnet)"),
    # modified blocks: other normalisations, split attention, blur pooling, selective kernels
    ("resnet variants", r"resnest|res2ne|skresne|ecares|resnetrs|resnetv2|resnetblur|resnetaa|tresnet|eca_res"
                        r"|res(net|next)\w*ts|resnet\d+q|_gn$"),
    ("resnet", r"res(net|next)|senet"),
)
"""Name and pattern; the first match counts. Patterns are searched anywhere in the network's name."""


OTHER = "other"
"""The family for networks with inference alone, or without a matching pattern."""


def family(network: str) -> str:
    """The family for a timm name, a prefixed torchvision name, or a name from collected.py."""
    name = re.sub(r"^(collected\.timm\.|(collected\.)?torchvision\.)", "", network)
    return next((family for family, pattern in FAMILIES if re.search(pattern, name)), OTHER)
