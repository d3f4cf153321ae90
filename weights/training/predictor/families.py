"""Which network belongs to which family: families are left out of training together.

A family is a set of networks that share what is hard to predict about them, so that leaving it out asks what happens when
somebody brings an architecture that nobody measured.
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
    # changed blocks: other normalisations, split attention, blur pooling, selective kernels
    ("resnet variants", r"resnest|res2ne|skresne|ecares|resnetrs|resnetv2|resnetblur|resnetaa|tresnet|eca_res"
                        r"|res(net|next)\w*ts|resnet\d+q|_gn$"),
    ("resnet", r"res(net|next)|senet"),
)
"""The first that fits: name, pattern. Patterns are searched anywhere in the network's name."""


OTHER = "other"
"""Of networks whose training nobody measured, only their inference: or that fit no pattern."""


def family(network: str) -> str:
    """Of timm's name, or of torchvision's with its prefix."""
    name = network.removeprefix("torchvision.")
    return next((family for family, pattern in FAMILIES if re.search(pattern, name)), OTHER)
