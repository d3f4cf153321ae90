"""Wrong arguments to the functions that read networks have one message each, with the remedy, and unknown settings are
refused. Words of transformers and Lightning are accepted or suggested, whatever their version lists."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from typing import Any, Callable

import torch
from torch import nn

import mdot
from mdot.configuration import fill
from mdot.library import structs as c
from mdot.library.errors import UnknownOptionError
from mdot.trace.models import build

NET = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
X = torch.zeros(4, 8)


def library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as reason:
        raise unittest.SkipTest(f"{name} cannot be imported: {reason}") from None


_HUB = """
import json, sys
import mdot
from mdot.command_words import as_jobs, programs_among
found = {}
for name in sys.argv[2:]:
    words = ["predict", "hf:" + name]
    try:
        assert programs_among(words) == [1]
        job = as_jobs(words, [1], sys.argv[1])[1]
        found[name] = [job.endswith("config.json"), mdot.Job.read(job).parameters]
    except mdot.Error as fault:
        found[name] = str(fault)
print(json.dumps(found))
"""


class Hub(unittest.TestCase):
    """hf:ORG/NAME is the config.json in the hub's cache: the executable's, or a traced network of its class."""

    def test_a_model_of_the_hub_is_a_job(self) -> None:
        transformers = library("transformers")
        small = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)
        models = {
            "acme/llama": (transformers.LlamaConfig(**small, vocab_size=1000), "LlamaForCausalLM", True),
            "acme/modern": (transformers.ModernBertConfig(**small), "ModernBertForMaskedLM", False),
            "acme/classless": (transformers.ModernBertConfig(**small), None, False),
        }
        with tempfile.TemporaryDirectory() as folder:
            for name, (config, kind, _) in models.items():
                model = Path(folder, "hub", "models--" + name.replace("/", "--"))
                snapshot = model / "snapshots" / "a"
                snapshot.mkdir(parents=True)
                (model / "refs").mkdir()
                (model / "refs" / "main").write_text("a")
                settings = {**config.to_dict(), "architectures": kind and [kind]}
                (snapshot / "config.json").write_text(json.dumps(settings))
            environment = {**os.environ, "HF_HOME": folder, "HF_HUB_OFFLINE": "1"}
            words = [sys.executable, "-c", _HUB, folder, *models, "acme/absent"]
            found = json.loads(subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout)
        for name in ("acme/llama", "acme/modern"):
            config, kind, is_read = models[name]
            parameters = sum(one.numel() for one in getattr(transformers, str(kind))(config).parameters())
            self.assertEqual(found[name], [is_read, parameters])
        self.assertIn("names no class", found["acme/classless"])
        self.assertIn("hf:acme/absent: its config.json can neither be downloaded", found["acme/absent"])


class Names(unittest.TestCase):
    """A name of another library leads to a ready job only if that is the same network."""

    def test_each_network_of_a_library_has_the_parameters_of_its_ready_job(self) -> None:
        checked = 0
        for name, module in (("timm", "timm"), ("torchvision", "torchvision.models")):
            for kind in library(module).list_models():
                try:
                    job = mdot.Job.read(f"{name}:{kind}")
                except mdot.NotFoundError:
                    continue
                with self.subTest(f"{name} {kind}"):
                    model = build(f"{name}:{kind}").model
                    self.assertEqual(job.parameters, sum(p.numel() for p in model.parameters()))
                    checked += 1
        self.assertGreater(checked, 30)


class Messages(unittest.TestCase):
    def setUp(self) -> None:
        silence = warnings.catch_warnings()
        silence.__enter__()
        self.addCleanup(silence.__exit__, None, None, None)
        warnings.simplefilter("ignore")

    def expect(self, function: Callable[[], Any], *parts: str) -> None:
        with self.assertRaises(mdot.Error) as caught:
            function()
        for part in parts:
            self.assertIn(part, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))

    def test_inputs_that_are_no_tensors(self) -> None:
        numpy = library("numpy")
        array, loader = numpy.zeros((4, 8), "f4"), torch.utils.data.DataLoader([X])  # type: ignore[arg-type]
        read = mdot.Job.from_torch
        self.expect(lambda: read(NET), "example inputs are missing", "torch.zeros")
        self.expect(lambda: read(NET, torch.zeros(0, 8)), "example_inputs[0] is a batch of 0", "at least two samples")
        self.expect(lambda: read(NET, array), "example_inputs[0] is a ndarray", "torch.from_numpy")
        self.expect(lambda: read(NET, [X, {"mask": array}]), "example_inputs[1]['mask'] is a ndarray", "torch.from_numpy")
        self.expect(lambda: read(NET, (), {"input": array}), "example_kwargs['input'] is a ndarray", "torch.from_numpy")
        self.expect(lambda: read(NET, X, loss=nn.MSELoss(), targets=array), "targets[0] is a ndarray", "torch.from_numpy")
        self.expect(lambda: read(NET, loader), "example_inputs[0] is a DataLoader", "next(iter(loader))")
        self.expect(lambda: read(NET, iter(loader)), "next(iter(loader))")
        self.expect(lambda: read(NET, torch.utils.data.TensorDataset(X)), "next(iter(loader))")
        self.expect(lambda: read(NET, "some words"), "example_inputs[0] is 'some words'", "return_tensors")
        self.expect(lambda: read(NET, X, batch=0), "batch must be a whole number from 1", "not 0")
        self.expect(lambda: read(NET, X, batch=2.5), "batch must be a whole number from 1", "not 2.5")  # type: ignore[arg-type]
        self.expect(lambda: read("resnet50", X), "'resnet50'", "Job.from_name")  # type: ignore[arg-type]
        self.expect(lambda: read(nn.Linear, X), "Linear is a class", "pass an instance")  # type: ignore[arg-type]
        self.expect(lambda: read(NET.state_dict(), X), "load_state_dict")  # type: ignore[arg-type]
        self.expect(lambda: mdot.Job.read(None), "path of a file", "NoneType")  # type: ignore[arg-type]
        self.expect(lambda: mdot.Job.load(3), "path of a file", "int")  # type: ignore[arg-type]
        self.expect(lambda: mdot.Job.from_transformers(NET), "Job.from_torch")
        self.expect(lambda: mdot.predict(NET, "A100", 4), "mdot.Job.from_torch(")  # type: ignore[arg-type]
        self.assertEqual(read(NET, X).batch, 4)

    def test_inputs_without_a_tensor(self) -> None:
        read, linear = mdot.Job.from_torch, nn.Linear(8, 8)
        for value in (3, 3.0, True, None, 1j, [3], [[1, 2], [3, 4]], {"x": 3}):
            self.expect(lambda: read(linear, value), "example_inputs[0]", "pass a batch of tensors")
        self.expect(lambda: read(linear, (4, 8)), "pass a batch of tensors", "torch.zeros(4, 8)")
        self.expect(lambda: read(linear, (), {"input": 3}), "example_kwargs['input'] is 3", "pass a batch of tensors")
        self.expect(lambda: read(linear, 3, batch=4), "must be Tensor, not int", "pass a tensor there")
        for value in (range(4), {X}):
            self.expect(lambda: read(linear, value), "example_inputs[0] is", "pass a tensor")
        nested = torch.nested.nested_tensor([torch.zeros(2, 8), torch.zeros(3, 8)])
        self.expect(lambda: read(linear, nested), "a nested tensor", "padding")
        self.expect(lambda: read(linear, (), [X]), "example_kwargs is a list", "dictionary")  # type: ignore[arg-type]
        self.expect(lambda: read(linear, (), {1: X}), "the key 1")  # type: ignore[dict-item]

    def test_inputs_of_another_type_than_the_weights(self) -> None:
        read = mdot.Job.from_torch
        modules: tuple[tuple[nn.Module, torch.Tensor], ...] = (
            (NET, X), (nn.Bilinear(8, 8, 8), X), (nn.Conv1d(8, 8, 1), X[:, :, None]), (nn.LSTM(8, 8), X[:, None]),
            (nn.MultiheadAttention(8, 2, batch_first=True), X[:, None]),
        )  # fmt: skip
        for module, x in modules:
            for dtype in (torch.int64, torch.float64, torch.bool, torch.uint8):
                count = {"Bilinear": 2, "MultiheadAttention": 3}.get(type(module).__name__, 1)
                with self.subTest(type(module).__name__, dtype=dtype):
                    self.expect(lambda: read(module, (x.to(dtype),) * count), "give the example inputs the type")
        self.expect(lambda: read(nn.Embedding(9, 8), X), "float", "give the example inputs the type")

    def test_inputs_in_the_wrong_place(self) -> None:
        class Batch(nn.Linear):
            def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:  # type: ignore[override]
                return super().forward(batch["x"])

        read, module = mdot.Job.from_torch, Batch(8, 8)
        self.assertGreater(read(module, {"x": X}).parameters, 0)
        self.expect(lambda: read(module, {"z": X}), "KeyError: 'x'", "the example inputs hold z")
        self.expect(lambda: read(module, [{"x": X[0]}] * 4), "default_collate")
        self.expect(lambda: read(nn.Linear(8, 8), {"input": X}), "pass it as example_kwargs")
        loader = torch.utils.data.DataLoader([{"x": X[0]}] * 4, 4)  # type: ignore[arg-type]
        self.expect(lambda: read(module, loader), "next(iter(loader))")
        self.expect(lambda: read(module, (row for row in X)), "next(iter(loader))")

        class OnDevice(nn.Linear):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return super().forward(x.to("cuda"))

        class OfArrays(nn.Linear):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return torch.from_numpy(super().forward(x).detach().numpy())

        self.expect(lambda: read(OnDevice(8, 8), X), "same device", "x.device")
        self.expect(lambda: read(OfArrays(8, 8), X), "numpy()", "outside of the module")

    def test_losses_that_are_none(self) -> None:
        read, classes = mdot.Job.from_torch, torch.zeros(4, dtype=torch.int64)
        for kind in (nn.CrossEntropyLoss, nn.MSELoss, nn.Linear):
            self.expect(lambda: read(NET, X, loss=kind, targets=classes), f"the class {kind.__name__}", "pass an instance")
        self.expect(lambda: read(NET, X, loss="mse", targets=X), "loss is 'mse'", "returns a scalar")  # type: ignore[arg-type]
        self.expect(lambda: read(NET, X, loss=torch.optim.SGD(NET.parameters()), targets=X), "returns a scalar")  # type: ignore[arg-type]
        self.expect(lambda: read(NET, X, loss=lambda y: None), "loss returned NoneType", "one element")  # type: ignore[arg-type,return-value]
        self.expect(lambda: read(NET, X, loss=lambda y: y), "shape [4, 8]", "one element")
        for ends in (
            lambda y: y.sum().detach(), lambda y: y.detach().sum(), lambda y: (y.detach() ** 2).mean(), lambda y: y.argmax(-1).float().mean(),
            lambda y: (y > 0).float().mean(), lambda y: y.data.exp().sum(), lambda y: torch.zeros(()) + y.round().long().sum(),
        ):  # fmt: skip
            self.expect(lambda: read(NET, X, loss=ends), "without a gradient", "detach()")
        self.expect(lambda: read(NET, X, loss=nn.CrossEntropyLoss(), targets=3), "must be Tensor, not int", "pass a tensor")

    def test_whole_numbers_of_other_types(self) -> None:
        """A batch from a division or from numpy."""
        numpy = library("numpy")
        for batch in (4.0, numpy.int64(4), numpy.float32(4)):
            self.assertEqual(mdot.Job.from_torch(NET, X, batch=batch).batch, 4)
            self.assertEqual(mdot.Job.from_name("resnet18", batch=batch, size=numpy.int64(32)).batch, 4)

    def test_models_that_are_none(self) -> None:
        read = mdot.Job.from_torch
        for model in (None, 3, [NET], X, torch.optim.SGD(NET.parameters())):
            self.expect(lambda: read(model, X), "pass the module to trace")  # type: ignore[arg-type]
        self.expect(lambda: read(nn.Sequential(nn.LazyLinear(8)), X), "0.weight has no shape", "call the module once")
        self.expect(lambda: read(torch.jit.trace(nn.Linear(8, 8), X), X), "TorchScript", "torch.nn.Module")  # type: ignore[no-untyped-call]
        self.assertEqual(read(torch.compile(NET), X).parameters, read(NET, X).parameters)  # type: ignore[arg-type]
        self.expect(lambda: read(NET, X, name=3), "name is 3")  # type: ignore[arg-type]
        for name in (5, None, nn.Linear):
            self.expect(lambda: mdot.Job.from_name(name), "name is", "pass a name")  # type: ignore[arg-type]
        self.expect(lambda: mdot.Job.from_name(NET), "Job.from_torch")  # type: ignore[arg-type]
        self.expect(lambda: mdot.Job.from_bytes("net.job"), "Job.load")  # type: ignore[arg-type]
        self.expect(lambda: read(NET, X).freeze("0.*"), "['0.*']")

    def test_types_and_classes_of_pytorch_are_words(self) -> None:
        job = mdot.Job.from_torch(NET, X)
        for option, value, word in (
            ("precision", torch.bfloat16, "bf16"),
            ("precision", torch.float32, "fp32"),
            ("optimizer", torch.optim.AdamW, "adamw"),
            ("optimizer", torch.optim.SGD, "sgd"),
            ("attention", torch.nn.attention.SDPBackend.FLASH_ATTENTION, "flash"),
            ("attention", torch.nn.attention.SDPBackend.MATH, "eager"),
            ("layout", torch.channels_last, "nhwc"),
        ):
            given = mdot.predict(job, "A100", 4, **{option: value})
            self.assertEqual(given.step_ms, mdot.predict(job, "A100", 4, **{option: word}).step_ms)
        for optimizer, word in (
            (torch.optim.AdamW(NET.parameters()), "adamw"),
            (torch.optim.AdamW(NET.parameters(), fused=True), "adamw-fused"),
            (torch.optim.SGD(NET.parameters(), lr=0.1), "sgd"),
        ):
            given = mdot.predict(job, "A100", 4, optimizer=optimizer)  # type: ignore[arg-type]
            self.assertEqual(given.step_ms, mdot.predict(job, "A100", 4, optimizer=word).step_ms)
        self.expect(lambda: mdot.predict(job, "A100", 4, optimizer=torch.optim.RMSprop(NET.parameters())), "did you mean sgd?")  # type: ignore[arg-type]
        self.expect(lambda: mdot.predict(job, "A100", 4, precision=torch.float16), "did you mean amp-fp16?")
        self.expect(lambda: mdot.predict(job, "A100", 4, precision=torch.float64), "did you mean fp32?")
        for kind in vars(torch.optim).values():
            if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer) and kind is not torch.optim.Optimizer:
                self.accepts_or_suggests("optimizer", kind)

    def accepts_or_suggests(self, option: str, word: Any) -> None:
        try:
            fill(c.mdot_configuration(), mdot.Configuration("H100", **{option: word}), [])
        except mdot.Error as fault:
            self.assertIn("did you mean", str(fault))

    def test_words_of_transformers(self) -> None:
        for one in library("transformers.training_args").OptimizerNames:
            self.accepts_or_suggests("optimizer", one)
            self.accepts_or_suggests("optimizer", one.value)
        for word in library("transformers.modeling_utils").ALL_ATTENTION_FUNCTIONS.keys():
            if "|" not in word:
                self.accepts_or_suggests("attention", word)

    def test_words_of_lightning(self) -> None:
        import typing

        words = library("lightning.fabric.connector")._PRECISION_INPUT
        for literal in typing.get_args(words):
            for word in typing.get_args(literal):
                self.accepts_or_suggests("precision", word)

    def test_settings_that_a_network_lacks(self) -> None:
        library("transformers")
        read = mdot.Job.from_name
        for settings, near in (
            ({"num_layer": 48}, "n_layer"),
            ({"n_embed": 1600}, "n_embd"),
            ({"n_head": 25, "layers": 3}, "n_layer"),
        ):
            with self.assertRaises(UnknownOptionError) as caught:
                read("transformers:GPT2LMHeadModel", **settings)
            self.assertIn(near, str(caught.exception))
        self.expect(lambda: read("transformers:LlamaForCausalLM", hidden_layers=2), "num_hidden_layers")
        self.expect(lambda: read("transformers:LlamaForCausalLM", vocab=1000), "vocab_size")
        self.expect(lambda: read("transformers:GPT2LMHeadModel", n_embd=30, n_head=7))
        small = read("transformers:GPT2LMHeadModel", n_layer=2, n_embd=64, n_head=2, vocab_size=100, length=16)
        named = read("transformers:GPT2LMHeadModel", num_hidden_layers=2, hidden_size=64, n_head=2, vocab_size=100, length=16)
        self.assertEqual(small.parameters, named.parameters)
        self.expect(lambda: read("transformers:GPT2LMHeadModel", batch=0), "batch must be")
        self.expect(lambda: read("transformers:GPT2LMHeadModel", length="long"), "length must be")

    def test_names_of_other_libraries(self) -> None:
        """A wrong setting is answered with the nearest ones of the family, a name alone with the library that has it."""
        library("torchvision"), library("transformers"), library("timm"), library("diffusers")
        read = mdot.Job.from_name
        for name, wrong, near in (
            ("gpt2", "n_embed", "n_embd"), ("GPT2", "hiden_size", "hidden_size"), ("llama", "num_layer", "num_hidden_layers"),
            ("gpt-neox", "hidden", "hidden_size"), ("t5", "d_mode", "d_model"), ("whisper", "d_mod", "d_model"), ("vit", "imagesize", "image_size"),
        ):  # fmt: skip
            with self.subTest(name), self.assertRaises(UnknownOptionError) as caught:
                read(name, **{wrong: 1})
            self.assertIn(near, str(caught.exception))
        for name, whole in (
            ("gpt2", "transformers:GPT2LMHeadModel"), ("bert", "transformers:BertForMaskedLM"), ("resnet50d", "timm:resnet50d"),
            ("sdxl", "diffusers:sdxl"), ("resnet5", "resnet50"), ("nothing_like_it", "list_models"),
        ):  # fmt: skip
            with self.subTest(name):
                self.expect(lambda: read(name), whole)

    def test_settings_that_no_network_of_a_library_has(self) -> None:
        """Some functions of torchvision ignore them in silence, and some names are those of another library."""
        vision, timm = library("torchvision").models, library("timm")
        library("transformers"), library("diffusers")
        from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

        from mdot.trace import diffusion

        names = [*vision.list_models()[::3], *list(MODEL_MAPPING_NAMES)[::15], *timm.list_models()[::150], *diffusion.KNOWN]
        names += [f"timm:{name}" for name in timm.list_models()[::150]] + [f"diffusers:{name}" for name in diffusion.KNOWN]
        for name, wrong in itertools.product(names, ("num_clases", "hiden_sizes", "nonsense_at_all")):
            with self.subTest(name, wrong=wrong), self.assertRaisesRegex(UnknownOptionError, f"{wrong}.*the (nearest|settings) are"):
                build(name, settings={wrong: 10})

    def test_settings_that_a_function_lacks(self) -> None:
        library("torchvision")
        self.expect(lambda: mdot.Job.from_name("resnet18", num_class=10), "num_class", "num_classes")
        self.expect(lambda: mdot.Job.from_name("resnet18", weights="DEFAULT"), "weights", "leave it out")
        self.expect(lambda: mdot.Job.from_name("timm:resnet18", pretrained=True), "pretrained", "leave it out")
        self.assertGreater(mdot.Job.from_name("resnet18", num_classes=10).parameters, 0)

    def test_configurations_of_transformers(self) -> None:
        library("transformers")
        settings = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 99}
        read = mdot.Job.from_transformers
        by_dict = read("LlamaForCausalLM", settings, length=16)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "config.json").write_text(json.dumps({"model_type": "llama", **settings}))
            by_folder = read("LlamaForCausalLM", folder, length=16)
            by_file = read("LlamaForCausalLM", Path(folder) / "config.json", length=16)
        self.assertEqual({by_dict.parameters}, {by_folder.parameters, by_file.parameters})
        self.expect(lambda: read("LlamaForCausalLM", {"hidden": 64}), "hidden_size")
        self.expect(lambda: read("LlamaForCausalLM", "meta-llama/Llama"), "AutoConfig.from_pretrained('meta-llama/Llama')")
        self.expect(lambda: read("LlamaForCausalML"), "LlamaForCausalML")
        self.expect(lambda: read("LlamaForCausalLM", {}), "no settings", "defaults of LlamaConfig")
        self.expect(lambda: read("LlamaForCausalLM", {"model_type": "gpt2"}), "'gpt2'", "takes 'llama'")

    def test_a_module_that_stops_an_iteration(self) -> None:
        """contextlib replaces an exception by its cause of this kind."""

        class Ends(nn.Linear):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return super().forward(next(iter([])))

        self.expect(lambda: mdot.Job.from_torch(nn.Sequential(Ends(8, 8)), X), "0 raised StopIteration")

    def test_weights_that_accelerate_holds_on_the_host(self) -> None:
        accelerate, model = library("accelerate"), nn.Sequential(nn.Linear(8, 8))
        accelerate.cpu_offload(model, execution_device="cpu")
        self.expect(lambda: mdot.Job.from_torch(model, X), "remove_hook_from_module")


if __name__ == "__main__":
    unittest.main()
