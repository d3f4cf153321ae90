"""Builds networks by name, without weights, for `python -m mdot export` and `Job.from_transformers`.

    resnet50, vit_b_16              torchvision, if it has a network of that name
    timm:resnet50d                  timm
    transformers:GPT2LMHeadModel    transformers, a class in its default configuration; settings change it
    diffusers:UNet2DConditionModel  diffusers, a class in its default configuration; settings change it

Nothing is downloaded. Networks are made on the meta device, where their weights take no memory.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from typing import Any, Mapping

import torch
from torch import nn

from mdot.library.errors import InvalidArgumentError, NotFoundError


@dataclasses.dataclass
class Network:
    name: str
    model: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def build(
    name: str, *, batch: int = 2, length: int | None = None, size: int | None = None, settings: Mapping[str, Any] = {}
) -> Network:
    """Builds a network and example inputs for it. `length` is the number of tokens or frames, and `size` the side of an
    image in pixels. The defaults depend on the network."""
    library, _, kind = name.rpartition(":")
    makers = {
        "": _torchvision, "torchvision": _torchvision, "timm": _timm, "transformers": _transformers, "diffusers": _diffusers,
    }  # fmt: skip
    if library not in makers:
        raise InvalidArgumentError(f"{name}: unknown prefix {library!r}; use torchvision:, timm:, transformers: or diffusers:")
    return makers[library](kind, batch, length, size, settings)


def _import(library: str) -> Any:
    try:
        return importlib.import_module(library)
    except ImportError as fault:
        raise NotFoundError(f"the package {library} is not installed; the requested network requires it") from fault


def _on_meta(make: Any, *args: Any, **kwargs: Any) -> nn.Module:
    with torch.device("meta"):
        model: nn.Module = make(*args, **kwargs)
    return model


# ---- Images ----------------------------------------------------------------------------------------------------------


def _torchvision(kind: str, batch: int, length: int | None, size: int | None, settings: Mapping[str, Any]) -> Network:
    models = _import("torchvision.models")
    if kind not in models.list_models():
        raise NotFoundError(f"torchvision has no network {kind!r}; torchvision.models.list_models() lists its networks")
    make = models.get_model_builder(kind)
    arguments: dict[str, Any] = {"weights": None, **settings}
    if "weights_backbone" in inspect.signature(make).parameters:
        arguments.setdefault("weights_backbone", None)
    module = make.__module__
    if ".detection" in module:  # its operators depend on computed values: weights are needed
        model, args = make(**arguments), _detection_inputs(batch, size or 800)
    elif ".video" in module:
        side = size or 112
        model, args = _on_meta(make, **arguments), (torch.zeros(batch, 3, length or 16, side, side),)
    else:
        side = size or _default_side(models, kind)
        model, args = _built(make, arguments), (torch.zeros(batch, 3, side, side),)
    return Network(kind, model, args, {})


def _built(make: Any, arguments: Mapping[str, Any]) -> nn.Module:
    """Builds on the meta device, unless the network's constructor computes with values."""
    try:
        return _on_meta(make, **arguments)
    except (NotImplementedError, RuntimeError):
        model: nn.Module = make(**arguments)
        return model


def _default_side(models: Any, kind: str) -> int:
    """The image side that its weights were trained with."""
    weights = list(models.get_model_weights(kind))
    crop = weights[0].transforms.keywords.get("crop_size", 224) if weights else 224
    return int(crop[0] if isinstance(crop, (list, tuple)) else crop)


def _detection_inputs(batch: int, side: int) -> tuple[Any, ...]:
    torch.manual_seed(0)
    images = [torch.rand(3, side, side) for _ in range(batch)]
    corners = torch.tensor([[0.1, 0.1, 0.4, 0.5], [0.3, 0.2, 0.9, 0.8]]) * side
    target = {"boxes": corners, "labels": torch.tensor([1, 2]), "masks": torch.zeros(2, side, side, dtype=torch.uint8)}
    target["keypoints"] = torch.ones(2, 17, 3) * side / 4
    return images, [target] * batch


def _timm(kind: str, batch: int, length: int | None, size: int | None, settings: Mapping[str, Any]) -> Network:
    timm = _import("timm")
    if not timm.is_model(kind):
        raise NotFoundError(f"timm has no network {kind!r}; timm.list_models() lists its networks")
    arguments = dict(settings)
    model = _built(lambda **options: timm.create_model(kind, pretrained=False, **options), arguments)
    channels, side, _ = model.pretrained_cfg.get("input_size", (3, 224, 224))  # type: ignore[union-attr, operator]
    return Network(kind, model, (torch.zeros(batch, channels, size or side, size or side),), {})


# ---- Text, sound, both -----------------------------------------------------------------------------------------------


def _transformers(kind: str, batch: int, length: int | None, size: int | None, settings: Mapping[str, Any]) -> Network:
    transformers = _import("transformers")
    made = getattr(transformers, kind, None)
    configuration = getattr(made, "config_class", None)
    if not inspect.isclass(made) or configuration is None:
        raise NotFoundError(f"transformers has no network class {kind!r}; an example of a class is GPT2LMHeadModel")
    return of_transformers(made, configuration(**settings), batch, length, size)


def of_transformers(made: Any, config: Any, batch: int, length: int | None, size: int | None) -> Network:
    """Builds a class of transformers with a configuration."""
    config.use_cache = False
    model = _on_meta(made._from_config if hasattr(made, "_from_config") else made, config)
    return Network(made.__name__, model, (), _transformers_inputs(model, config, batch, length, size))


def _find(config: Any, *names: str) -> Any:
    """The first setting that has one of the names, in the configuration or in a part of it, for example vision_config."""
    parts = [config, *[v for k, v in vars(config).items() if k.endswith("_config") and hasattr(v, "to_dict")]]
    for part in parts:
        for name in names:
            value = getattr(part, name, None)
            if value is not None:
                return value
    return None


def _transformers_inputs(model: nn.Module, config: Any, batch: int, length: int | None, size: int | None) -> dict[str, Any]:
    """Example inputs for the parameters of the model's forward function."""
    taken = inspect.signature(model.forward).parameters
    positions = _find(config, "max_position_embeddings", "n_positions") or 128
    tokens = torch.zeros(batch, length or min(128, positions), dtype=torch.int64)
    inputs: dict[str, Any] = {}
    if "pixel_values" in taken:
        side = size or _find(config, "image_size") or 224
        height, width = side if isinstance(side, (list, tuple)) else (side, side)
        inputs["pixel_values"] = torch.zeros(batch, _find(config, "num_channels") or 3, height, width)
    if "input_features" in taken:  # Whisper: twice as many frames as positions
        frames = length or 2 * (_find(config, "max_source_positions") or 1500)
        inputs["input_features"] = torch.zeros(batch, _find(config, "num_mel_bins") or 80, frames)
        tokens = tokens[:, :128]
    if "input_values" in taken:
        inputs["input_values"] = torch.zeros(batch, length or 16000)
    if "input_ids" in taken and "input_features" not in taken:
        inputs["input_ids"] = tokens
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in taken:
        inputs["decoder_input_ids"] = tokens
    if not inputs:
        raise InvalidArgumentError(
            f"{type(model).__name__}: mdot has no example inputs for {', '.join(taken)}; pass them to Job.from_torch"
        )
    return inputs


# ---- Diffusion -------------------------------------------------------------------------------------------------------


def _diffusers(kind: str, batch: int, length: int | None, size: int | None, settings: Mapping[str, Any]) -> Network:
    diffusers = _import("diffusers")
    made = getattr(diffusers, kind, None)
    if not inspect.isclass(made) or not issubclass(made, nn.Module):
        raise NotFoundError(f"diffusers has no network class {kind!r}; an example of a class is UNet2DConditionModel")
    model = _on_meta(made, **settings)
    config: Any = model.config
    taken = inspect.signature(model.forward).parameters
    side = size or config.get("sample_size") or 64
    channels = config.get("in_channels") or 4
    kwargs: dict[str, Any] = {}
    first = next(iter(taken))
    kwargs[first] = torch.zeros(batch, channels, side, side)
    if "timestep" in taken:
        kwargs["timestep"] = torch.arange(1, batch + 1)
    if "class_labels" in taken and "encoder_hidden_states" not in list(taken)[:3]:
        kwargs["class_labels"] = torch.zeros(batch, dtype=torch.int64)
    width = config.get("cross_attention_dim") or config.get("caption_channels")
    if "encoder_hidden_states" in taken and width is not None:
        width = width[0] if isinstance(width, (list, tuple)) else width
        kwargs["encoder_hidden_states"] = torch.zeros(batch, length or 77, width)
    return Network(kind, model, (), kwargs)
