"""Laws of words and messages: words of other frameworks are accepted or suggested, and each refusal names the option, the
value and a remedy, and no member of a C struct."""

from __future__ import annotations

import enum
import os
import re
import subprocess
import unittest
from typing import Any, Callable

from support import RESNET, TestCase

import mdot
from mdot.configuration import DEGREES, OPTIONS, read_options
from mdot.library.libraries import in_python
from mdot.option_words import NEAREST, OPTION_WORDS, WORDS
from mdot.options import CHOICES, COMMANDS, CONFIGURATION_FIELDS, ROWS

MEMBERS = {name for name, _ in CONFIGURATION_FIELDS} - set(OPTIONS)
"""Members of mdot_configuration whose names are no keywords."""


def message_of(function: Callable[[], Any]) -> str:
    try:
        function()
    except mdot.Error as fault:
        return str(fault)
    return ""


class Words(TestCase):
    job: mdot.Job

    @classmethod
    def setUpClass(cls) -> None:
        cls.job = mdot.Job.from_onnx(RESNET)

    def filled(self, option: str, value: Any) -> Any:
        from mdot.configuration import fill
        from mdot.library import structs as c

        out = c.mdot_configuration()
        fill(out, mdot.Configuration("A100", **{option: value}), [])
        return getattr(out, next(row.field for row in ROWS if row.keyword == option))

    def test_each_word_is_accepted_in_each_form(self) -> None:
        for option, words in WORDS.items():
            for word, choice in words.items() if option != "link" else ():
                meant = CHOICES[option].index(choice)
                for form in (word, word.upper(), word.replace("-", "_"), f"torch.optim.{word}"):
                    self.assertEqual(self.filled(option, form), meant, (option, form))

    def test_objects_with_a_name_are_words(self) -> None:
        class AdamW:
            pass

        class Kernels(enum.Enum):
            FLASH_ATTENTION = 1

        self.assertEqual(self.filled("optimizer", AdamW), CHOICES["optimizer"].index("adamw"))
        self.assertEqual(self.filled("attention", Kernels.FLASH_ATTENTION), CHOICES["attention"].index("flash"))

    def test_each_nearest_word_is_refused_with_the_choice(self) -> None:
        for option, words in NEAREST.items():
            for word, choice in words.items() if option != "link" else ():
                message = message_of(lambda: self.filled(option, word))
                self.assertIn(f"{option} must be", message)
                self.assertIn(f"{word!r} (did you mean {choice}?)", message)

    def test_a_word_with_several_parts_is_suggested(self) -> None:
        for option, word, choice in (("precision", "fp8_e4m3", "fp8"), ("attention", "paged|sdpa", "flash"), ("precision", "fp8+e5m2", "fp8")):
            self.assertIn(f"(did you mean {choice}?)", message_of(lambda: self.filled(option, word)))

    def test_words_of_one_other_option_name_it(self) -> None:
        for word, text in (("nf4", "frozen_weights='nf4'"), ("int8wo", "frozen_weights='int8'")):
            self.assertIn(f"(did you mean {text}?)", message_of(lambda: self.filled("precision", word)))

    def test_words_like_another_options_words_do_not_name_it(self) -> None:
        for option, word in (("attention", "ring"), ("checkpoint", "offload"), ("loss", "parallel"), ("framework", "maxtext")):
            message = message_of(lambda: self.filled(option, word))
            self.assertTrue(message.startswith(f"{option} must be"))
            self.assertNotRegex(message, r"did you mean \w+=")

    def test_options_that_change_no_step_name_their_place(self) -> None:
        for names, remedy in (
            (("lr", "learning_rate", "weight_decay", "warmup_ratio", "warmup_steps", "seed", "max_grad_norm", "lora_alpha"), "leave it out"),
            (("lora_r", "r", "peft_config"), "make it of the module that has them"),
            (("epochs", "num_train_epochs", "max_steps"), "prediction.hours()"),
            (("packing", "sample_packing"), "the packed length"),
        ):
            for name in names:
                self.assertIn(remedy, message_of(lambda: read_options({name: 1})))

    def test_lengths_and_shards_name_their_place(self) -> None:
        for name in ("length", "max_seq_length", "seq_len", "max_length", "block_size", "context_length"):
            self.assertIn("job.with_length(N)", message_of(lambda: read_options({name: 512})))
        for word in ("full_shard", "full_shard auto_wrap", "shard_grad_op"):
            self.assertIn("pass fsdp=N for full_shard", message_of(lambda: read_options({"fsdp": word})))

    def test_a_misspelt_choice_is_suggested(self) -> None:
        for option, choices in CHOICES.items():
            for choice in choices if option != "link" else ():
                if len(choice) > 4:
                    message = message_of(lambda: self.filled(option, choice[:-1] + "_" + choice[-1]))
                    self.assertTrue("did you mean" in message or not message, (option, choice, message))

    def test_the_command_takes_the_same_words(self) -> None:
        commands = {keyword: command for command, keyword in COMMANDS.items()}
        pairs = [(commands[row.keyword], w) for row in ROWS if row.kind == "choice" for w in list(WORDS[row.keyword])[:4]]
        for command, word in pairs:
            done = subprocess.run([os.environ["MDOT_CLI"], "predict", RESNET, "--gpu", "H100", f"--{command}={word}", "-q"],
                                  capture_output=True, text=True)  # fmt: skip
            self.assertNotIn("unknown value", done.stderr, (command, word))

    def test_each_foreign_option_names_the_keyword(self) -> None:
        for word, keyword in OPTION_WORDS.items():
            name = word.replace("-", "_")
            if name in OPTIONS:
                continue
            self.assertIn(f"unknown option {name!r} (did you mean {keyword}?)", message_of(lambda: read_options({name: 1})))

    def test_keys_of_parallel_are_keywords(self) -> None:
        for key, keyword in DEGREES.items():
            self.assertEqual(read_options({key: 2}), {keyword: 2})
        self.assertEqual(read_options({"fsdp": 8}), {"data_parallel": 8, "zero": 3})
        self.assertEqual(mdot.predict(self.job, "A100", 4, fsdp=8), mdot.predict(self.job, "A100", 4, data_parallel=8, zero=3))
        for wrong in (
            {"fsdp": 8, "zero": 2},
            {"fsdp": 8, "dp": 4},
            {"fsdp": "full_shard"},
            {"fsdp": True},
            {"tp": 2, "tensor_parallel": 2},
        ):
            self.assertTrue(message_of(lambda: read_options(wrong)), wrong)

    def test_every_wrong_value_names_option_and_value(self) -> None:
        wrong: dict[str, list[Any]] = {
            "whole": [-1, 1 << 40, 1.5, "x", None, True, float("nan"), float("inf"), object, [1, 2]],
            "choice": ["nonsense", 3, 1.5, object(), ["fp32", "bf16"], {}],
            "rate": [-1, float("nan"), "fast", True, [1.0], {}],
            "version": ["2", 2.4, "two", 24],
        }
        for row in ROWS:
            for value in wrong.get(row.kind, []):
                message = message_of(lambda: self.filled(row.keyword, value))
                self.assertTrue(message.startswith(f"{row.keyword} "), (row.keyword, value, message))
                self.assertIn(repr(value), message)
                self.expect_no_member(message)

    def test_a_flag_takes_truth_values(self) -> None:
        self.assertEqual(self.filled("checkpoint", True), CHOICES["checkpoint"].index("blocks"))
        self.assertEqual(self.filled("checkpoint", False), 0)

    def expect_no_member(self, message: str) -> None:
        for member in MEMBERS:
            self.assertIsNone(re.search(rf"\b{member}\b", message), message)
        self.assertNotRegex(message, r"(^|\s)--\w", message)

    def test_messages_of_the_library_have_keywords(self) -> None:
        for options in (
            {"gpus": 3, "tensor_parallel": 2},
            {"gpus": 8, "nodes": 3},
            {"mode": "inference", "checkpoint": "blocks"},
            {"mode": "inference", "gpus": 2},
            {"mode": "inference", "zero": 1},
            {"gpus": 2, "link": "nvlink"},
            {"gradient_type": "half"},
            {"step_in_backward": True, "accumulate": 2},
            {"offload": "parameters"},
            {"offload": "pages", "optimizer": "sgd"},
            {"keep_gathered": True},
            {"whole_gradients": True},
            {"optimizer": "adamw-fused", "optimizer_kernels": "foreach"},
            {"compiled": True, "torch": "1.12"},
            {"sequence_parallel": 1},
            {"virtual_stages": 2},
            {"schedule": "zero-bubble"},
            {"micro_batches": 2},
            {"expert_parallel": 2},
            {"context_parallel": 2},
            {"pipeline_parallel": 64},
            {"tensor_parallel": 7},
            {"power_limit": 1},
            {"precision": "fp8"},
            {"loss": "fused"},
            {"fsdp": 2, "micro_batches": 2},
        ):
            for ask in (mdot.predict, mdot.explain, mdot.largest_batch):
                if ask is mdot.largest_batch and "mode" in options:
                    continue
                arguments = (self.job, "RTX-3090") if ask is mdot.largest_batch else (self.job, "RTX-3090", 8)
                message = message_of(lambda: ask(*arguments, **options))  # type: ignore[operator]
                named = [name for name in OPTIONS if re.search(rf"\b{name}\b", message)]
                self.assertTrue(named, (options, message))
                self.expect_no_member(message)

    def test_translation_leaves_other_words(self) -> None:
        self.assertEqual(in_python("--parallel tp=2 and --gpus: --gpu-spec power, --offload to --nothing"),
                         "tensor_parallel=2 and gpus: the GPU's watts, offload to --nothing")  # fmt: skip

    def test_lists_belong_to_sweeps(self) -> None:
        for option, value in (("gpu", ["A100", "H100"]), ("batch", [4, 8]), ("precision", ("fp32", "bf16")), ("link", ["pcie"])):
            asked: dict[str, Any] = {"gpu": "A100", "batch": 4, option: value}
            self.assertIn("sweep", message_of(lambda: mdot.predict(self.job, **asked)))
        self.assertEqual(len(mdot.sweep(self.job, "all", 4)), len(mdot.gpus()))
        self.assertEqual(len(mdot.sweep(self.job, ("A100", "H100"), range(1, 4), precision=iter(["fp32", "bf16"]))), 12)

    def test_jobs_of_another_kind_are_refused_with_the_remedy(self) -> None:
        class Module:
            pass

        Module.__module__ = "torch.nn.modules.module"
        net: Any = type("Net", (Module,), {})()
        self.assertIn("mdot.Job.from_torch(", message_of(lambda: mdot.predict(net, "A100", 4)))
        for wrong in (None, 3, [self.job], {}):
            self.assertIn("an mdot.Job or a file", message_of(lambda: mdot.predict(wrong, "A100", 4)))  # type: ignore[arg-type]

    def test_options_without_effect_are_named(self) -> None:
        for options in ({"zero": 3}, {"zero": 3, "keep_gathered": True}, {"link": "nvlink"}, {"network": 12.5}):
            row = mdot.predict(self.job, "A100", 4, **options)  # type: ignore[arg-type]
            self.assertIn("no effect on one GPU: pass gpus=N", str(row))
            self.assertNotIn("no effect", str(mdot.predict(self.job, "A100", 4, gpus=2, **options)))  # type: ignore[arg-type]
        self.assertNotIn("no effect", str(mdot.predict(self.job, "A100", 4, gpus=1, nodes=1, data_parallel=1)))

    def test_sorting_ranks_steps_that_fit_first(self) -> None:
        table = mdot.sweep(self.job, ["T4", "H100"], [8, 4096])
        for by in ("step_ms", "samples_per_second", "peak_memory_bytes"):
            fits = [row.fits for row in table.sorted(by)]
            self.assertEqual(fits, sorted(fits, reverse=True))
            values = [getattr(row, by) for row in table.sorted(by) if row.fits]
            self.assertEqual(values, sorted(values, reverse=by == "samples_per_second"))


if __name__ == "__main__":
    unittest.main()
