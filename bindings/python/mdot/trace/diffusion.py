"""Networks of diffusers by name, with example inputs and the loss of their training.

A name is a class in its default configuration, for example FluxTransformer2DModel, or one of `KNOWN`, for example
flux.1-dev. Inputs are found by the names of the forward function's parameters, and sizes by those of the configuration.
"""

from __future__ import annotations

import difflib
import inspect
from typing import Any, Mapping

import torch
from torch import nn

from mdot.library.errors import InvalidArgumentError, NotFoundError

_XL = {
    "sample_size": 128, "cross_attention_dim": 2048, "attention_head_dim": (5, 10, 20), "block_out_channels": (320, 640, 1280),
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"), "use_linear_projection": True,
    "transformer_layers_per_block": (1, 2, 10), "addition_embed_type": "text_time", "addition_time_embed_dim": 256,
    "projection_class_embeddings_input_dim": 2816,
}  # fmt: skip
_SD3 = {"num_layers": 24, "num_attention_heads": 24, "caption_projection_dim": 1536}

KNOWN: dict[str, tuple[str, dict[str, Any]]] = {
    "stable-diffusion-1.5": ("UNet2DConditionModel", {"sample_size": 64, "cross_attention_dim": 768}),
    "stable-diffusion-2.1": ("UNet2DConditionModel", {
        "sample_size": 96, "cross_attention_dim": 1024, "attention_head_dim": (5, 10, 20, 20), "use_linear_projection": True}),
    "sdxl": ("UNet2DConditionModel", {**_XL, "up_block_types": ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D")}),
    "controlnet": ("ControlNetModel", {"cross_attention_dim": 768}),
    "controlnet-sdxl": ("ControlNetModel", {key: value for key, value in _XL.items() if key != "sample_size"}),
    "sd3-medium": ("SD3Transformer2DModel", {**_SD3, "pos_embed_max_size": 192}),
    "sd3.5-medium": ("SD3Transformer2DModel", {
        **_SD3, "pos_embed_max_size": 384, "qk_norm": "rms_norm", "dual_attention_layers": tuple(range(13))}),
    "sd3.5-large": ("SD3Transformer2DModel", {
        "num_layers": 38, "num_attention_heads": 38, "caption_projection_dim": 2432, "pos_embed_max_size": 192,
        "qk_norm": "rms_norm"}),
    "flux.1-dev": ("FluxTransformer2DModel", {"guidance_embeds": True}),
    "flux.1-schnell": ("FluxTransformer2DModel", {}),
    "flux.2-dev": ("Flux2Transformer2DModel", {}),
    "qwen-image": ("QwenImageTransformer2DModel", {}),
    "wan2.1-t2v-1.3b": ("WanTransformer3DModel", {"num_attention_heads": 12, "ffn_dim": 8960, "num_layers": 30}),
    "wan2.1-t2v-14b": ("WanTransformer3DModel", {}),
    "wan2.2-ti2v-5b": ("WanTransformer3DModel", {
        "in_channels": 48, "out_channels": 48, "num_attention_heads": 24, "ffn_dim": 14336, "num_layers": 30}),
    "sana-0.6b": ("SanaTransformer2DModel", {
        "num_attention_heads": 36, "num_layers": 28, "num_cross_attention_heads": 16, "cross_attention_head_dim": 72,
        "cross_attention_dim": 1152}),
    "sana-1.6b": ("SanaTransformer2DModel", {}),
    "pixart-alpha": ("PixArtTransformer2DModel", {"caption_channels": 4096}),
    "pixart-sigma": ("PixArtTransformer2DModel", {"caption_channels": 4096, "use_additional_conditions": False}),
    "cogvideox-2b": ("CogVideoXTransformer3DModel", {}),
    "cogvideox-5b": ("CogVideoXTransformer3DModel", {
        "num_attention_heads": 48, "num_layers": 42, "use_rotary_positional_embeddings": True}),
    "hunyuandit-1.2": ("HunyuanDiT2DModel", {
        "hidden_size": 1408, "in_channels": 4, "mlp_ratio": 4.3637, "num_layers": 40, "patch_size": 2, "sample_size": 128,
        "use_style_cond_and_image_meta_size": False}),
    "hunyuanvideo": ("HunyuanVideoTransformer3DModel", {}),
    "ltx-video": ("LTXVideoTransformer3DModel", {}),
    "dit-xl-2": ("DiTTransformer2DModel", {"out_channels": 8}),
}  # fmt: skip
"""Published networks: a class, and the values of its configuration that differ from the defaults."""

_DEFAULTS = {
    "PixArtTransformer2DModel": {"caption_channels": 4096},
    "HunyuanDiT2DModel": KNOWN["hunyuandit-1.2"][1],
    "DiTTransformer2DModel": {"out_channels": 8},
}
"""Values for classes whose defaults are no usable network."""
_FRAMES = {"CogVideoX": (13, 60, 90), "Wan": (21, 60, 104), "HunyuanVideo": (33, 90, 160), "LTXVideo": (21, 16, 24), "Mochi": (28, 60, 106)}
"""Latent frames, height and width of a published video: by the first word of a class."""
_TOKENS = {"Flux2": 512, "Flux": 512, "SD3": 333, "QwenImage": 256, "Wan": 512, "Sana": 300, "PixArt": 120, "CogVideoX": 226,
           "HunyuanVideo": 256, "LTXVideo": 128, "Mochi": 256, "AuraFlow": 256, "Lumina2": 256}  # fmt: skip
"""Text tokens: by the first word of a class; 77 for the others."""
_WIDTHS = ("joint_attention_dim", "caption_channels", "text_embed_dim", "text_dim", "cap_feat_dim", "cross_attention_dim")
"""Names of the width of text embeddings, the first that a configuration has."""


def class_of_diffusers(diffusers: Any, kind: str) -> tuple[Any, dict[str, Any]]:
    """A class, and values of its configuration."""
    name, values = KNOWN.get(kind.lower(), (kind, _DEFAULTS.get(kind, {})))
    made = getattr(diffusers, name, None)
    if not inspect.isclass(made) or not issubclass(made, nn.Module):
        classes = [one for one in dir(diffusers) if one.endswith(("Model", "2D", "3D", "KL"))]
        lower = {one.lower(): one for one in [*KNOWN, *classes]}
        near = [lower[one] for one in difflib.get_close_matches(kind.lower(), lower, 4, 0.5)]
        near += [one for one in KNOWN if kind.lower() in one and one not in near]
        raise NotFoundError(
            f"diffusers has no network class {kind!r}; the nearest names are {', '.join(near) or ', '.join(KNOWN)}; "
            "for a class, give its whole name, for example UNet2DConditionModel"
        )
    return made, dict(values)


class ControlledUNet(nn.Module):
    """A training step of a ControlNet: the frozen U-Net reads the ControlNet's results."""

    def __init__(self, unet: nn.Module, controlnet: nn.Module) -> None:
        super().__init__()
        self.unet, self.controlnet = unet.requires_grad_(False), controlnet

    def forward(self, controlnet_cond: torch.Tensor, **inputs: Any) -> Any:
        down, middle = self.controlnet(controlnet_cond=controlnet_cond, return_dict=False, **inputs)
        return self.unet(**inputs, down_block_additional_residuals=down, mid_block_additional_residual=middle)


def controlled(diffusers: Any, controlnet: Any) -> nn.Module:
    """A ControlNet with the U-Net of its configuration."""
    made, config = diffusers.UNet2DConditionModel, controlnet.config
    known = set(inspect.signature(made.__init__).parameters) & set(config)
    ups = tuple(one.replace("Down", "Up") for one in reversed(config["down_block_types"]))
    with torch.device("meta"):
        return ControlledUNet(made(**{key: config[key] for key in known}, up_block_types=ups), controlnet)


class Inputs:
    """Example inputs for a network."""

    def __init__(self, model: Any, kind: str, batch: int, length: int | None, size: int | None) -> None:
        self.config: Mapping[str, Any] = model.config
        self.kind, self.batch = kind, batch
        self.taken = inspect.signature(model.forward).parameters
        first = [one for one in _TOKENS if kind.startswith(one)]
        self.tokens = length or (_TOKENS[first[0]] if first else 77)
        self.video = next((one for name, one in _FRAMES.items() if kind.startswith(name)), None)
        if self.video and size:
            self.video = (self.video[0], size, size)
        sample = self.config.get("sample_size")
        self.side = size or (max(sample) if isinstance(sample, (list, tuple)) else sample) or (128 if self._is_packed() else 64)

    def made(self) -> dict[str, Any]:
        """Those for all required parameters, and for the optional ones that the configuration needs. The first is the sample."""
        found: dict[str, Any] = {}
        for name, one in self.taken.items():
            make = getattr(self, f"_{name}", None)
            value = self._sample() if not found else make() if make is not None else None
            if value is not None:
                found[name] = value
            elif one.default is one.empty and "VAR_" not in one.kind.name and name in self._needed():
                raise InvalidArgumentError(
                    f"diffusers:{self.kind}: mdot has no example input for {name}; build the network, and pass it with inputs "
                    "to Job.from_torch"
                )
        return found

    def _needed(self) -> set[str]:
        return {name for name, one in self.taken.items() if one.default is one.empty}

    def _is_packed(self) -> bool:
        """The network reads a sequence of patches, which the pipeline makes of 2x2 latents."""
        return "img_ids" in self.taken or "img_shapes" in self.taken

    def _text(self, width: Any) -> torch.Tensor:
        return torch.zeros(self.batch, self.tokens, width[0] if isinstance(width, (list, tuple)) else width)

    def _ones(self, *shape: int) -> torch.Tensor:
        return torch.ones(self.batch, *shape)

    def _sample(self) -> torch.Tensor:
        channels = self.config.get("in_channels") or 4
        if self._is_packed():
            return torch.zeros(self.batch, (self.side // 2) ** 2, channels)
        if "num_frames" in self.taken and self.video:  # LTX: a sequence, too
            return torch.zeros(self.batch, self.video[0] * self.video[1] * self.video[2], channels)
        if self.video:
            shape = (self.video[0], channels) if self.kind.startswith("CogVideoX") else (channels, self.video[0])
            return torch.zeros(self.batch, *shape, *self.video[1:])
        return torch.zeros(self.batch, channels, self.side, self.side)

    def _timestep(self) -> torch.Tensor:
        times = torch.arange(1, self.batch + 1)
        return times.float() if self.kind.startswith("HunyuanDiT") else times  # its type is the type of the embeddings

    def _encoder_hidden_states(self) -> torch.Tensor | None:
        width = next((self.config[name] for name in _WIDTHS if self.config.get(name)), None)
        return None if width is None else self._text(width)

    def _class_labels(self) -> torch.Tensor | None:
        is_needed = "encoder_hidden_states" not in self.taken or self.config.get("num_class_embeds")
        return torch.zeros(self.batch, dtype=torch.int64) if is_needed else None

    def _pooled_projections(self) -> torch.Tensor:
        return torch.zeros(self.batch, self.config["pooled_projection_dim"])

    def _guidance(self) -> torch.Tensor | None:
        return self._ones() if self.config.get("guidance_embeds") else None

    def _axes(self) -> int:
        return len(self.config["axes_dims_rope"])

    def _img_ids(self) -> torch.Tensor:
        return torch.zeros((self.side // 2) ** 2, self._axes())

    def _txt_ids(self) -> torch.Tensor:
        return torch.zeros(self.tokens, self._axes())

    def _img_shapes(self) -> Any:
        return [[(1, self.side // 2, self.side // 2)]] * self.batch

    def _txt_seq_lens(self) -> Any:
        return [self.tokens] * self.batch

    def _encoder_hidden_states_mask(self) -> torch.Tensor:
        return self._ones(self.tokens).bool()

    def _encoder_attention_mask(self) -> torch.Tensor | None:
        return self._ones(self.tokens).bool() if "encoder_attention_mask" in self._needed() else None

    def _controlnet_cond(self) -> torch.Tensor:
        return torch.zeros(self.batch, self.config["conditioning_channels"], 8 * self.side, 8 * self.side)

    def _added_cond_kwargs(self) -> Any:
        if self.config.get("addition_embed_type") == "text_time":
            width = self.config["projection_class_embeddings_input_dim"] - 6 * self.config["addition_time_embed_dim"]
            return {"text_embeds": torch.zeros(self.batch, width), "time_ids": torch.zeros(self.batch, 6)}
        if not self.kind.startswith("PixArt"):
            return None
        given = self.config.get("use_additional_conditions")
        has_sizes = self.config.get("sample_size") == 128 if given is None else given
        return {"resolution": self._ones(2), "aspect_ratio": self._ones(1)} if has_sizes else {"resolution": None, "aspect_ratio": None}

    def _num_frames(self) -> int | None:
        return self.video[0] if self.video else None

    def _height(self) -> int | None:
        return self.video[1] if self.video else None

    def _width(self) -> int | None:
        return self.video[2] if self.video else None

    # HunyuanDiT reads two texts.

    def _text_embedding_mask(self) -> torch.Tensor:
        return self._ones(self.config["text_len"])

    def _text_embedding_mask_t5(self) -> torch.Tensor:
        return self._ones(self.config["text_len_t5"])

    def _encoder_hidden_states_t5(self) -> torch.Tensor:
        return torch.zeros(self.batch, self.config["text_len_t5"], self.config["cross_attention_dim_t5"])

    def _image_meta_size(self) -> torch.Tensor | None:
        return self._ones(6) if self.config.get("use_style_cond_and_image_meta_size") else None

    def _style(self) -> torch.Tensor | None:
        return torch.zeros(self.batch, dtype=torch.int64) if self.config.get("use_style_cond_and_image_meta_size") else None

    def _image_rotary_emb(self) -> Any:
        if self.kind.startswith("HunyuanDiT"):
            tokens = (self.side // self.config["patch_size"]) ** 2
        elif self.config.get("use_rotary_positional_embeddings") and self.video:
            tokens = self.video[0] * self.video[1] * self.video[2] // self.config["patch_size"] ** 2
        else:
            return None
        return (torch.zeros(tokens, self.config["attention_head_dim"]),) * 2
