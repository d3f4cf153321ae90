"""Tests network families."""

import pytest

from mdot_lab.predictor.families import FAMILIES, OTHER, family


@pytest.mark.parametrize("network, expected", [
    ("resnet50", "resnet"), ("gluon_seresnext101_32x4d", "resnet"), ("legacy_senet154", "resnet"),
    ("ecaresnet50d", "resnet variants"), ("resnest101e", "resnet variants"), ("resnetv2_50x1_bitm", "resnet variants"),
    ("vit_base_resnet50_384", "vit"), ("deit_tiny_patch16_224", "vit"), ("swin_v2_cr_tiny_224", "swin"),
    ("cspresnext50", "csp"), ("lambda_resnet26t", "byob with attention"), ("gcresnext50ts", "byob with attention"),
    ("semnasnet_100", "efficientnet"), ("nasnetalarge", "inception-like"), ("tv_densenet121", "dense"),
    ("repvgg_b1g4", "plain"), ("convmixer_768_32", "convnext"), ("jx_nest_tiny", "convit-like"), ("gmixer_24_224", "mlp"),
])
def test_networks_are_assigned_to_their_families(network, expected):
    assert family(network) == expected


def test_torchvisions_networks_are_in_timms_families():
    assert family("torchvision.resnet50") == family("resnet50")
    assert family("torchvision.mnasnet1_0") == family("mnasnet_100")


def test_networks_without_a_family_form_one_family():
    assert family("teapot") == OTHER


def test_the_number_of_families_suffices():
    assert len({name for name, _ in FAMILIES}) >= 8
