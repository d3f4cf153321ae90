"""Networks for tests of Job.from_torch. Each is a function with the module and the call's arguments as results."""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import nn

Called = tuple[nn.Module, tuple[Any, ...], dict[str, Any]]


def meta(make: Callable[..., nn.Module], *args: Any, **kwargs: Any) -> nn.Module:
    try:
        with torch.device("meta"):
            return make(*args, **kwargs)
    except NotImplementedError:  # the constructor computes with values
        return make(*args, **kwargs)


def image(side: int = 224, batch: int = 2) -> torch.Tensor:
    return torch.zeros(batch, 3, side, side)


def tokens(batch: int = 2, length: int = 64) -> torch.Tensor:
    return torch.zeros(batch, length, dtype=torch.int64)


# ---- Libraries -------------------------------------------------------------------------------------------------------


def tv(kind: str, *shape: int, on_meta: bool = True, **options: Any) -> Callable[[], Called]:
    def make() -> Called:
        from torchvision import models

        build = models.get_model_builder(kind)
        model = meta(build, **options) if on_meta else build(**options)
        return model, (torch.zeros(*shape) if shape else image(),), {}

    return make


def tm(kind: str, side: int = 224, on_meta: bool = True, **options: Any) -> Callable[[], Called]:
    def make() -> Called:
        import timm

        build = lambda: timm.create_model(kind, **options)  # noqa: E731
        return (meta(build) if on_meta else build()), (image(side),), {}

    return make


def hf(kind: str, inputs: dict[str, Any] | None = None, **options: Any) -> Callable[[], Called]:
    def make() -> Called:
        import transformers

        made = getattr(transformers, kind)
        config = made.config_class(**options)
        config.use_cache = False
        return meta(made, config), (), inputs or {"input_ids": tokens()}

    return make


def df(kind: str, *inputs: Any, **options: Any) -> Callable[[], Called]:
    def make() -> Called:
        import diffusers

        return meta(getattr(diffusers, kind), **options), inputs, {}

    return make


def detection(kind: str) -> Callable[[], Called]:
    def make() -> Called:
        from mdot.trace.models import build

        network = build(kind, size=320)
        return network.model, network.args, network.kwargs

    return make


# ---- Written for the tests -----------------------------------------------------------------------------------------------


class LanguageModel(nn.Module):
    """An LSTM with dropout between layers. The embedding may be tied to the output."""

    def __init__(self, tied: bool) -> None:
        super().__init__()
        self.embed, self.out = nn.Embedding(10000, 200), nn.Linear(200, 10000)
        self.lstm, self.dropout = nn.LSTM(200, 200, 2, dropout=0.5), nn.Dropout(0.5)
        if tied:
            self.out.weight = self.embed.weight

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.lstm(self.dropout(self.embed(words)))
        out: torch.Tensor = self.out(self.dropout(hidden))
        return out


class DLRM(nn.Module):
    """Naumov et al. 2019: bags of embeddings and a perceptron, pairwise products, another perceptron."""

    def __init__(self, tables: int = 4, rows: int = 1000, width: int = 16) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, width), nn.ReLU())
        pairs = tables * (tables + 1) // 2
        self.top = nn.Sequential(nn.Linear(width + pairs, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())

    def forward(self, dense: torch.Tensor, places: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        x = self.bottom(dense)
        parts = torch.stack([x, *[t(places[i], offsets[i]) for i, t in enumerate(self.tables)]], 1)
        products = torch.bmm(parts, parts.transpose(1, 2))
        rows, columns = torch.tril_indices(parts.shape[1], parts.shape[1], -1)
        out: torch.Tensor = self.top(torch.cat([x, products[:, rows, columns]], 1))
        return out


class Writes(nn.Module):
    """Operations in place, into views, and by masks."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.inner(x)
        y[:, 0] = 0
        y[:, 1:3] += x[:, 1:3]
        y.view(-1, 16).mul_(2)
        y[x > 1] = 0
        out: torch.Tensor = y.relu_()
        return out


def encoder() -> nn.Module:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2)


def bags() -> tuple[torch.Tensor, ...]:
    return torch.zeros(8, 13), torch.zeros(4, 24, dtype=torch.int64), torch.arange(0, 24, 3).repeat(4, 1)


SMALL = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 1000}
_IMAGES = {"pixel_values": image()}
_LABELLED = {"input_ids": tokens(), "labels": tokens()}
_TEXT_PAIR = {"decoder_input_ids": tokens(), **_LABELLED}

NETWORKS: dict[str, Callable[[], Called]] = {
    "resnet50": tv("resnet50"),
    "vgg16": tv("vgg16"),
    "mobilenet_v3_small": tv("mobilenet_v3_small", on_meta=False),
    "densenet121": tv("densenet121"),
    "vit_b_16": tv("vit_b_16"),
    "swin_t": tv("swin_t"),
    "swin_v2_t": tv("swin_v2_t", on_meta=False),
    "efficientnet_b0": tv("efficientnet_b0"),
    "deeplabv3_resnet50": tv("deeplabv3_resnet50", weights=None, weights_backbone=None),
    "r3d_18": tv("r3d_18", 2, 3, 8, 112, 112),
    "convnextv2_nano": tm("convnextv2_nano"),
    "vit_small": tm("vit_small_patch16_224", drop_path_rate=0.1),
    "efficientnetv2_s": tm("tf_efficientnetv2_s"),
    "maxvit_tiny": tm("maxvit_tiny_tf_224"),
    "mixer_b16": tm("mixer_b16_224"),
    "eva02_tiny": tm("eva02_tiny_patch14_224"),
    "bert": hf("BertForSequenceClassification", {"input_ids": tokens(), "attention_mask": torch.ones_like(tokens())}),
    "bert_mlm": hf("BertForMaskedLM", _LABELLED),
    "deberta": hf("DebertaV2ForSequenceClassification", num_hidden_layers=2),
    "gpt2": hf("GPT2LMHeadModel", _LABELLED),
    "opt": hf("OPTForCausalLM", _LABELLED, num_hidden_layers=2),
    "llama": hf("LlamaForCausalLM", num_key_value_heads=2, **SMALL),
    "qwen2": hf("Qwen2ForCausalLM", num_key_value_heads=2, **SMALL),
    "gemma2": hf("Gemma2ForCausalLM", _LABELLED, num_hidden_layers=2),
    "mixtral": hf("MixtralForCausalLM", num_key_value_heads=2, **SMALL),
    "qwen3_moe": hf("Qwen3MoeForCausalLM", _LABELLED, num_hidden_layers=2),
    "t5": hf("T5ForConditionalGeneration", _TEXT_PAIR),
    "bart": hf("BartForConditionalGeneration", _TEXT_PAIR, encoder_layers=2, decoder_layers=2),
    "whisper": hf("WhisperForConditionalGeneration",
                  {"input_features": torch.zeros(2, 80, 3000), "decoder_input_ids": tokens(), "labels": tokens()}),
    "wav2vec2": hf("Wav2Vec2ForCTC", {"input_values": torch.zeros(2, 16000)}),
    "vit": hf("ViTForImageClassification", _IMAGES),
    "clip": hf("CLIPModel", {"input_ids": tokens(), **_IMAGES}),
    "segformer": hf("SegformerForSemanticSegmentation", {"pixel_values": image(128)}),
    "mamba": hf("MambaForCausalLM", _LABELLED, num_hidden_layers=2),
    "unet": df("UNet2DConditionModel", torch.zeros(2, 4, 64, 64), torch.tensor([1, 2]), torch.zeros(2, 77, 768),
               cross_attention_dim=768),
    "dit": df("DiTTransformer2DModel", torch.zeros(2, 4, 32, 32), torch.tensor([1, 2]), torch.tensor([1, 2]), num_layers=2),
    "lstm": lambda: (meta(LanguageModel, True), (tokens(35, 20),), {}),
    "gru": lambda: (nn.GRU(8, 16, 2, bidirectional=True, batch_first=True), (torch.zeros(2, 5, 8),), {}),
    "dlrm": lambda: (meta(DLRM), bags(), {}),
    "encoder": lambda: (encoder(), (torch.zeros(2, 10, 64),), {}),
    "writes": lambda: (Writes(), (torch.zeros(2, 8, 16),), {}),
    "fasterrcnn": detection("fasterrcnn_mobilenet_v3_large_320_fpn"),
    "ssdlite": detection("ssdlite320_mobilenet_v3_large"),
}  # fmt: skip
BATCH = {"lstm": 20}
DECIDE_BY_DATA = ("fasterrcnn", "ssdlite")
"""Networks whose proposals are selected by operators that mdot does not know."""

# Networks that PyTorch's TorchScript exporter supports, too.
EXPORTED: dict[str, Callable[[], Called]] = {
    "resnet18": tv("resnet18", on_meta=False),
    "mobilenet_v3_small": tv("mobilenet_v3_small", on_meta=False),
    "densenet121": tv("densenet121", on_meta=False),
    "efficientnet_b0": tv("efficientnet_b0", on_meta=False),
    "convnext_atto": tm("convnext_atto", on_meta=False),
    "regnety_002": tm("regnety_002", on_meta=False),
    "vit_tiny": tm("vit_tiny_patch16_224", on_meta=False),
    "swin_tiny": tm("swin_tiny_patch4_window7_224", on_meta=False),
    "encoder": NETWORKS["encoder"],
    "bert": lambda: (OnlyHidden("BertModel"), (tokens(),), {}),
}
WITH_TABLES = ("vit_tiny", "swin_tiny", "bert")
"""Networks of EXPORTED that compute tables from parameters alone."""


class OnlyHidden(nn.Module):
    """Returns only the hidden state, because TorchScript does not support dictionaries. It has no pooling layer, which a
    trace counts though nothing reads its result, and a file lacks."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        import transformers

        made = getattr(transformers, kind)
        self.body = made(made.config_class(**SMALL), add_pooling_layer=False)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.body(input_ids=words, use_cache=False, return_dict=False)[0]
        return out
