"""diffusers: U-Nets, Transformers and an autoencoder, with the mean square error of the noise as loss."""

from __future__ import annotations

from typing import Any, Callable, Iterator

import torch

from mdot_lab.checks.memory.networks.case import Case, NoiseLoss, images, integers
from mdot_lab.checks.memory.step import Step


def _model(name: str, **values: Any):
    import diffusers

    return getattr(diffusers, name)(**values)


def _unet(is_checkpointed: bool) -> Callable[[int], Step]:
    def make(batch: int) -> Step:
        model = _model("UNet2DModel", sample_size=64, in_channels=3, out_channels=3, layers_per_block=2,
                       block_out_channels=(128, 128, 256, 256),
                       down_block_types=("DownBlock2D", "DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
                       up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D", "UpBlock2D"))
        if is_checkpointed:
            model.enable_gradient_checkpointing()
        return Step(NoiseLoss(model), (images(batch, 64), images(batch, 64), integers(batch)), {})

    return make


def _conditional(batch: int) -> Step:
    model = _model("UNet2DConditionModel", sample_size=64, block_out_channels=(160, 320, 640, 640), layers_per_block=1,
                   cross_attention_dim=768, attention_head_dim=8)
    return Step(NoiseLoss(model), (images(batch, 64, 4), images(batch, 64, 4), integers(batch)),
                {"encoder_hidden_states": torch.randn(batch, 77, 768)})


def _dit(batch: int) -> Step:
    model = _model("DiTTransformer2DModel", sample_size=32, num_layers=6, num_attention_heads=16, attention_head_dim=72,
                   in_channels=4, out_channels=4, norm_type="ada_norm_zero")
    return Step(NoiseLoss(model), (images(batch, 32, 4), images(batch, 32, 4)),
                {"timestep": integers(batch), "class_labels": integers(batch)})


def _stable_diffusion_3(batch: int) -> Step:
    model = _model("SD3Transformer2DModel", sample_size=64, num_layers=4, num_attention_heads=12, attention_head_dim=64,
                   caption_projection_dim=768, joint_attention_dim=2048, pooled_projection_dim=1024)
    return Step(NoiseLoss(model), (images(batch, 64, 16), images(batch, 64, 16)),
                {"encoder_hidden_states": torch.randn(batch, 154, 2048), "pooled_projections": torch.randn(batch, 1024),
                 "timestep": integers(batch)})


def _pixart(batch: int) -> Step:
    model = _model("PixArtTransformer2DModel", sample_size=32, num_layers=4, out_channels=4, caption_channels=768,
                   cross_attention_dim=1152, use_additional_conditions=False)
    return Step(NoiseLoss(model), (images(batch, 32, 4), images(batch, 32, 4)),
                {"encoder_hidden_states": torch.randn(batch, 120, 768), "timestep": integers(batch),
                 "added_cond_kwargs": {"resolution": None, "aspect_ratio": None}})


def _autoencoder(batch: int) -> Step:
    kinds = 4
    model = _model("AutoencoderKL", block_out_channels=(64, 128, 256, 256), layers_per_block=1, latent_channels=4,
                   down_block_types=("DownEncoderBlock2D",) * kinds, up_block_types=("UpDecoderBlock2D",) * kinds)
    return Step(NoiseLoss(model), (images(batch, 256), images(batch, 256)), {})


def cases() -> Iterator[Case]:
    yield Case("diffusers/UNet2D", _unet(is_checkpointed=False), 8, 2)
    yield Case("diffusers/UNet2D checkpointing", _unet(is_checkpointed=True), 8, 2)
    yield Case("diffusers/UNet2DCondition", _conditional, 4, 2)
    yield Case("diffusers/DiT", _dit, 8, 2)
    yield Case("diffusers/SD3", _stable_diffusion_3, 4, 2)
    yield Case("diffusers/PixArt", _pixart, 8, 2)
    yield Case("diffusers/AutoencoderKL", _autoencoder, 4, 2)
