"""Builds networks by name, without weights, for `python -m mdot export` and `Job.from_transformers`.

  resnet50, vit_b_16              torchvision, if it has a network with this name
  timm:resnet50d                  timm
  transformers:GPT2LMHeadModel    transformers, a class in its default configuration; settings change it
  diffusers:UNet2DConditionModel  diffusers, a class in its default configuration; settings change it
  diffusers:sdxl                  a published network of diffusion.py

Nothing is downloaded. Networks are made on the meta device, where weights take no memory. A network comes with a
loss: transformers' classes compute it from labels, and losses.py has those for the other libraries.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import importlib
import inspect
import os
import re
import sys
from typing import Any, Callable, Collection, Mapping

import torch
from torch import nn

from mdot.library.errors import Error, InvalidArgumentError, NotFoundError, UnknownOptionError
from mdot.trace import diffusion, losses


@dataclasses.dataclass
class Network:
    name: str
    model: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    loss: Callable[..., torch.Tensor] | None = None
    """Called with the network's output and the targets. None: the network itself computes the loss from labels."""
    targets: tuple[torch.Tensor, ...] = ()
    labels: dict[str, Any] = dataclasses.field(default_factory=dict)
    """More keyword arguments, for the network's loss."""


def build(
    name: str, *, batch: int = 2, length: int | None = None, size: int | None = None, settings: Mapping[str, Any] = {}
) -> Network:
    """Builds a network and example inputs for it. `length` is the number of tokens or frames, and `size` the side of an
    image in pixels. The defaults depend on the network."""
    library, _, kind = name.rpartition(":")
    loading = sorted({"weights", "weights_backbone", "pretrained", "checkpoint_path"} & {k for k, v in settings.items() if v})
    if loading:
        raise InvalidArgumentError(f"{name}: {loading[0]} would load weights, which a job does not need; leave it out")
    makers = {
        "": _torchvision, "torchvision": _torchvision, "timm": _timm, "transformers": _transformers, "diffusers": _diffusers,
        "hf": _hub,
    }  # fmt: skip
    if library not in makers:
        raise InvalidArgumentError(f"{name}: unknown prefix {library!r}; use torchvision:, timm:, transformers:, diffusers: or hf:")
    return makers[library](kind, batch, length, size, settings)


def _import(library: str) -> Any:
    try:
        return importlib.import_module(library)
    except ImportError as fault:
        package = library.partition(".")[0]
        raise NotFoundError(f"the network requires {package}, which cannot be imported ({fault}): pip install {package}") from fault


def _on_meta(make: Any, *args: Any, **kwargs: Any) -> nn.Module:
    with torch.device("meta"):
        model: nn.Module = make(*args, **kwargs)
    return model


def built(name: str, make: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls a constructor of a library. A fault becomes an InvalidArgumentError that names the network, and for an unknown
    argument the nearest ones."""
    try:
        return make(*args, **kwargs)
    except Error:
        raise
    except Exception as fault:  # noqa: BLE001 (a library may raise anything)
        unknown = re.search(r"(\w+)(?:\.__init__)?\(\) got an unexpected keyword argument '(\w+)'", str(fault))
        if unknown is not None:
            kinds = [vars(module).get(unknown[1]) for module in list(sys.modules.values()) if hasattr(module, "__dict__")]
            known = {key for kind in kinds if callable(kind) for key in inspect.signature(kind).parameters}
            refuse_unknown({unknown[2]: None}, known, name)
        first = (str(fault).strip().splitlines() or [""])[0]
        raise InvalidArgumentError(f"{name}: {type(fault).__name__}: {first}; check the settings") from fault


def refuse_unknown(settings: Mapping[str, Any], known: Collection[str], name: str) -> None:
    """Raises UnknownOptionError with the nearest names for a setting that is unknown."""
    for unknown in sorted(set(settings) - set(known)):
        near = difflib.get_close_matches(unknown, sorted(known), 3, 0.6)
        near += [one for one in sorted(known) if (unknown in one or one in unknown) and one not in near]
        hint = f"; the nearest are {', '.join(near[:5])}" if near else f"; the settings are {', '.join(sorted(known))}"
        raise UnknownOptionError(f"{name} has no setting {unknown!r}{hint}")


# ---- Images ----------------------------------------------------------------------------------------------------------


def _torchvision(kind: str, batch: int, length: int | None, size: int | None, settings: Mapping[str, Any]) -> Network:
    models = _import("torchvision.models")
    if kind not in models.list_models():
        raise NotFoundError(f"torchvision has no network {kind!r}; {_elsewhere(kind, models.list_models(), settings)}")
    make = models.get_model_builder(kind)
    refuse_unknown(settings, _parameters_in(sys.modules[make.__module__]), kind)
    arguments: dict[str, Any] = {"weights": None, **settings}
    if "weights_backbone" in inspect.signature(make).parameters:
        arguments.setdefault("weights_backbone", None)
    module = make.__module__
    if ".detection" in module:  # its operators depend on computed values: weights are needed
        return Network(kind, built(kind, make, **arguments), _detection_inputs(batch, size or 800), {})
    if ".optical_flow" in module:
        side = size or 512
        image = torch.zeros(batch, 3, side, side)
        return Network(kind, _made(kind, make, arguments), (image, image), {}, losses.optical_flow, (image[:, :2],))
    if ".video" in module:
        side = size or _default_side(models, kind)
        video = torch.zeros(batch, 3, length or 16, side, side)
        return Network(kind, _made(kind, make, arguments), (video,), {}, losses.classification, (_classes(batch),))
    side = size or _default_side(models, kind)
    args, model = (torch.zeros(batch, 3, side, side),), _made(kind, make, arguments)
    if ".segmentation" in module:
        return Network(kind, model, args, {}, losses.segmentation, (_classes(batch, side, side),))
    return Network(kind, model, args, {}, losses.classification, (_classes(batch),))


def _parameters_in(module: Any) -> set[str]:
    """The parameters of a module's networks and functions. Some networks ignore all others in silence."""
    kinds = [one for one in vars(module).values() if inspect.isfunction(one) or (inspect.isclass(one) and issubclass(one, nn.Module))]
    return {key for one in kinds for key in inspect.signature(one).parameters} - {"args", "kwargs"}


def _elsewhere(kind: str, names: Collection[str], settings: Mapping[str, Any]) -> str:
    """The network of another library with this name. Raises UnknownOptionError if it lacks one of the settings."""
    if (made := _kind_of_transformers(kind)) is not None:
        configuration_of(made, settings or None)
        return f"for the one of transformers, pass {'transformers:' + made.__name__!r}"
    for library, make in (("diffusers", _diffusers), ("timm", _timm)):
        name = kind.lower() if library == "diffusers" else kind
        with contextlib.suppress(NotFoundError):
            if name in diffusion.KNOWN if library == "diffusers" else _import(library).is_model(name):
                if settings:
                    make(name, 1, None, None, settings)  # refuses unknown ones
                return f"for the one of {library}, pass {f'{library}:{name}'!r}"
    near = difflib.get_close_matches(kind, names, 3, 0.6)
    return f"the nearest are {', '.join(near)}" if near else "torchvision.models.list_models() lists its networks"


def _kind_of_transformers(kind: str) -> Any:
    """The class that is trained first for a model type of transformers, for example GPT2LMHeadModel for gpt2; or None."""
    kind = kind.lower()
    with contextlib.suppress(NotFoundError):
        auto = _import("transformers.models.auto.modeling_auto")
        for task in ("MASKED_LM", "CAUSAL_LM", "SEQ_TO_SEQ_CAUSAL_LM", "SPEECH_SEQ_2_SEQ", "IMAGE_CLASSIFICATION", "CTC", ""):
            names = getattr(auto, f"MODEL_FOR_{task}_MAPPING_NAMES" if task else "MODEL_MAPPING_NAMES", {})
            found = names.get(kind, names.get(kind.replace("-", "_")))
            if isinstance(found, str):
                return class_of_transformers(found)
    return None


def _classes(*shape: int) -> torch.Tensor:
    return torch.zeros(*shape, dtype=torch.int64)


def _built(make: Any, arguments: Mapping[str, Any]) -> nn.Module:
    """Builds on the meta device, unless the network's constructor computes with values."""
    try:
        return _on_meta(make, **arguments)
    except (NotImplementedError, RuntimeError):
        model: nn.Module = make(**arguments)
        return model


def _made(name: str, make: Any, arguments: Mapping[str, Any]) -> nn.Module:
    model: nn.Module = built(name, _built, make, arguments)
    return model


def _default_side(models: Any, kind: str) -> int:
    """The image side in the weights' training."""
    weights = list(models.get_model_weights(kind))
    crop = weights[0].transforms.keywords.get("crop_size", 224) if weights else 224
    return int(crop[0] if isinstance(crop, (list, tuple)) else crop)


def _detection_inputs(batch: int, side: int) -> tuple[Any, ...]:
    torch.manual_seed(0)
    images = [torch.rand(3, side, side) for _ in range(batch)]
    corners = torch.tensor([[0.1, 0.1, 0.4, 0.5], [0.3, 0.2, 0.9, 0.8]]) * side
    target = {"boxes": corners, "labels": torch.tensor([1, 1]), "masks": torch.zeros(2, side, side, dtype=torch.uint8)}
    target["keypoints"] = torch.ones(2, 17, 3) * side / 4
    return images, [target] * batch


def _timm(kind: str, batch: int, length: int | None, size: int | None, settings: Mapping[str, Any]) -> Network:
    timm = _import("timm")
    if not timm.is_model(kind):
        raise NotFoundError(f"timm has no network {kind!r}; timm.list_models() lists its networks")
    arguments = dict(settings)
    model = _made(f"timm:{kind}", lambda **options: timm.create_model(kind, pretrained=False, **options), arguments)
    channels, side, _ = model.pretrained_cfg.get("input_size", (3, 224, 224))  # type: ignore[union-attr, operator]
    image = torch.zeros(batch, channels, size or side, size or side)
    return Network(kind, model, (image,), {}, losses.classification, (_classes(batch),))


# ---- Text, sound, both -----------------------------------------------------------------------------------------------


def class_of_transformers(kind: str) -> Any:
    made = getattr(_import("transformers"), kind, None)
    if not inspect.isclass(made) or getattr(made, "config_class", None) is None:
        raise NotFoundError(f"transformers has no network class {kind!r}; an example of a class is GPT2LMHeadModel")
    return made


def configuration_of(made: Any, config: Any) -> Any:
    """A configuration from a dictionary of settings, a folder or a file config.json; the class's own if it is None."""
    if config is None or isinstance(config, Mapping):
        settings = dict(config or {})
        if isinstance(config, Mapping):
            _check_dictionary(config, made)
        check_settings(settings, made.config_class(), made.config_class.__name__)
        return built(made.config_class.__name__, made.config_class, **settings)
    if not isinstance(config, (str, os.PathLike)):
        return config
    path = os.fspath(config)
    if not os.path.exists(path):
        raise NotFoundError(
            f"config {path!r} is no folder or file; for a model of the hub, pass transformers.AutoConfig.from_pretrained({path!r})"
        )
    return built(path, _import("transformers").AutoConfig.from_pretrained, path)


def _check_dictionary(config: Mapping[str, Any], made: Any) -> None:
    """Refuses a dictionary that says nothing about the network, or that is another kind's."""
    own, stated = made.config_class.model_type, config.get("model_type")
    if stated not in (None, own):
        raise InvalidArgumentError(f"config has the model_type {stated!r}, but {made.__name__} takes {own!r}: pass the class of {stated!r}, or drop model_type")
    if not set(config) - {"model_type"}:
        raise InvalidArgumentError(f"config holds no settings: leave it out for the defaults of {made.config_class.__name__}")


def check_settings(settings: Mapping[str, Any], example: Any, name: str) -> None:
    """Refuses settings that a configuration lacks, because a library would ignore them in silence."""
    known = {key for key in vars(example) if not key.startswith("_")} | set(getattr(type(example), "attribute_map", {}))
    known |= set(inspect.signature(type(example).__init__).parameters) - {"self", "kwargs"}
    known |= set(getattr(type(example), "sub_configs", {}) or {}) | _GENERAL_SETTINGS
    refuse_unknown(settings, known, name)


_GENERAL_SETTINGS = {"model_type", "architectures", "transformers_version", "torch_dtype", "dtype", "use_cache", "num_labels",
                     "id2label", "label2id", "attn_implementation", "pad_token_id", "bos_token_id", "eos_token_id",
                     "tie_word_embeddings", "is_decoder", "is_encoder_decoder", "auto_map"}  # fmt: skip
"""Settings of every transformers configuration, by argument or in its file."""


def _transformers(kind: str, batch: int, length: int | None, size: int | None, settings: Mapping[str, Any]) -> Network:
    made = class_of_transformers(kind)
    return of_transformers(made, configuration_of(made, settings or None), batch, length, size)


def of_transformers(made: Any, config: Any, batch: int, length: int | None, size: int | None) -> Network:
    """Builds a class of transformers with a configuration."""
    config.use_cache = False
    if getattr(config, "pad_token_id", 0) is None and made.__name__.endswith("ForSequenceClassification"):
        config.pad_token_id = 0  # needed to find the last token of a sample
    model = built(made.__name__, _on_meta, made._from_config if hasattr(made, "_from_config") else made, config)
    inputs = _transformers_inputs(model, config, batch, length, size)
    return Network(made.__name__, model, (), inputs, labels=_labels(model, config, inputs, batch))


def hub_config(name: str) -> str:
    """The path of a model's config.json, which is downloaded unless the hub's cache has it."""
    try:
        found = _import("transformers.utils.hub").cached_file(name, "config.json")
    except NotFoundError:
        raise
    except Exception as fault:  # noqa: BLE001 (the library raises many kinds)
        first = (str(fault).strip().splitlines() or [""])[0]
        raise NotFoundError(
            f"hf:{name}: its config.json can neither be downloaded nor read from the cache ({first}); pass a config.json or its folder as the job"
        ) from fault
    return str(found)


def _hub(name: str, batch: int, length: int | None, size: int | None, settings: Mapping[str, Any]) -> Network:
    path = hub_config(name)
    config = built(f"hf:{name}", _import("transformers").AutoConfig.from_pretrained, os.path.dirname(path))
    check_settings(settings, config, f"hf:{name}")
    for key, value in settings.items():
        setattr(config, key, value)
    classes = config.architectures or []
    if not classes:
        raise NotFoundError(f"hf:{name}: its config.json names no class (architectures); use transformers:CLASS")
    return of_transformers(class_of_transformers(classes[0]), config, batch, length, size)


def _find(config: Any, *names: str) -> Any:
    """The first setting with one of the names, in the configuration or in a part of it, for example vision_config."""
    parts = [config, *[v for k, v in vars(config).items() if k.endswith("_config") and hasattr(v, "to_dict")]]
    for part in parts:
        for name in names:
            value = getattr(part, name, None)
            if value is not None:
                return value
    return None


def _transformers_inputs(model: Any, config: Any, batch: int, length: int | None, size: int | None) -> dict[str, Any]:
    """Example inputs for the parameters of the model's forward function."""
    taken = inspect.signature(model.forward).parameters
    positions = _find(config, "max_position_embeddings", "n_positions") or 128
    tokens = _classes(batch, length or (min(128, positions) if positions > 0 else 128))
    inputs: dict[str, Any] = {}
    if "pixel_values" in taken:
        side = size or _find(config, "image_size") or 224
        height, width = side if isinstance(side, (list, tuple)) else (side, side)
        image = (_find(config, "num_channels") or 3, height, width)
        is_video = "Video" in type(model).__name__ and hasattr(config, "num_frames")
        inputs["pixel_values"] = torch.zeros(batch, config.num_frames, *image) if is_video else torch.zeros(batch, *image)
    if "input_features" in taken:  # Whisper: twice as many frames as positions
        frames = length or 2 * (_find(config, "max_source_positions") or 1500)
        inputs["input_features"] = torch.zeros(batch, _find(config, "num_mel_bins") or 80, frames, dtype=model.dtype)
        tokens = tokens[:, :128]
    if "input_values" in taken:
        is_spectrogram = hasattr(config, "num_mel_bins") and hasattr(config, "max_length")
        sound = (config.max_length, config.num_mel_bins) if is_spectrogram else (length or 16000,)
        inputs["input_values"] = torch.zeros(batch, *sound, dtype=model.dtype)
    if "input_ids" in taken and "input_features" not in taken:
        choices = (2,) if type(model).__name__.endswith("ForMultipleChoice") else ()
        inputs["input_ids"] = _classes(batch, *choices, tokens.shape[1])
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in taken:
        inputs["decoder_input_ids"] = tokens
    if not inputs:
        raise InvalidArgumentError(
            f"{type(model).__name__}: mdot has no example inputs for {', '.join(taken)}; pass them to Job.from_torch"
        )
    return inputs


def _labels(model: nn.Module, config: Any, inputs: Mapping[str, Any], batch: int) -> dict[str, Any]:
    """The arguments for the model's loss. Only models with such arguments have a loss of their own."""
    taken = inspect.signature(model.forward).parameters
    made: dict[str, Any] = {}
    if {"start_positions", "end_positions"} <= set(taken):
        made = {"start_positions": _classes(batch), "end_positions": _classes(batch)}
        if "cls_index" in taken:
            made["is_impossible"] = torch.zeros(batch)
    elif "labels" in taken:
        made["labels"] = _label(type(model).__name__, config, inputs, batch)
    made.update((name, _classes(batch)) for name in ("next_sentence_label", "sentence_order_label") if name in taken)
    if "return_loss" in taken:
        made["return_loss"] = True
    return {key: value for key, value in made.items() if value is not None}


def _label(name: str, config: Any, inputs: Mapping[str, Any], batch: int) -> Any:
    """Labels in the type for a class by name; None if the class computes no loss from them."""
    if name.endswith(_PER_SAMPLE):
        return _classes(batch)
    if "Segmentation" in name:
        height, width = inputs["pixel_values"].shape[-2:]
        return _classes(batch, height, width)
    if name.endswith("ForObjectDetection"):
        one = {"class_labels": _classes(2), "boxes": torch.tensor([[0.3, 0.3, 0.2, 0.4], [0.6, 0.5, 0.6, 0.6]])}
        return [one] * batch
    if name.endswith("ForQuestionAnswering"):  # about an image: a score for each answer
        return torch.zeros(batch, config.num_labels)
    if name.endswith("ForCTC"):  # one label for about eight frames
        return torch.ones(batch, 16, dtype=torch.int64)
    words = inputs.get("decoder_input_ids", inputs.get("input_ids"))
    return words.clone() if words is not None else None


_PER_SAMPLE = (
    "ForSequenceClassification", "ForImageClassification", "ForImageClassificationWithTeacher", "ForVideoClassification",
    "ForAudioClassification", "ForNextSentencePrediction", "ForMultipleChoice",
)  # fmt: skip
"""Name endings of transformers' classes with one label per sample."""


# ---- Diffusion -------------------------------------------------------------------------------------------------------


def _diffusers(kind: str, batch: int, length: int | None, size: int | None, settings: Mapping[str, Any]) -> Network:
    library = _import("diffusers")
    made, values = diffusion.class_of_diffusers(library, kind)
    refuse_unknown(settings, set(inspect.signature(made.__init__).parameters) - {"self"}, kind)
    model: Any = built(kind, _on_meta, made, **{**values, **settings})
    inputs = diffusion.Inputs(model, made.__name__, batch, length, size).made()
    sample = next(iter(inputs.values()))
    if made.__name__ == "ControlNetModel":
        model = diffusion.controlled(library, model)
    return Network(kind, model, (), inputs, losses.denoising, (torch.zeros_like(sample),))
