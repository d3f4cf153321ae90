"""timm: convolutional networks, vision Transformers, MLPs and hybrids."""

from __future__ import annotations

from typing import Iterator

from mdot_lab.checks.memory.networks.case import Case, classifier

NAMES = (
    "deit_small_patch16_224", "beit_base_patch16_224", "mixer_b16_224", "resmlp_12_224", "gmlp_s16_224", "convmixer_768_32",
    "convnext_small", "coat_lite_mini", "tf_efficientnet_b3", "dm_nfnet_f0", "resnetv2_50", "seresnet50", "res2net50_26w_4s",
    "hrnet_w18", "dla34", "ghostnet_100", "repvgg_b0", "rexnet_100", "xception", "levit_256", "cait_xxs24_224",
    "xcit_tiny_12_p16_224", "pit_s_224", "poolformer_s12", "twins_svt_small", "mobilevit_s", "edgenext_small", "volo_d1_224",
    "swinv2_cr_tiny_224", "coatnet_0_rw_224", "maxvit_rmlp_tiny_rw_256",
)
SIZES = {"tf_efficientnet_b3": 300, "xception": 299, "mobilevit_s": 256, "maxvit_rmlp_tiny_rw_256": 256}
SGD = ("resnetv2_50", "seresnet50", "dla34", "repvgg_b0")


def _is_known(name: str) -> bool:
    import timm

    return timm.is_model(name)


def cases() -> Iterator[Case]:
    def build(name: str):
        import timm

        return timm.create_model(name)

    for name in filter(_is_known, NAMES):
        make = classifier(lambda name=name: build(name), SIZES.get(name, 224))
        yield Case(f"timm/{name}", make, 16, 4, "sgd" if name in SGD else "adamw")
