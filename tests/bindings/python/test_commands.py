"""__main__.py and command.py: `python -m mdot` prints the same as the build's command `mdot`, for every subcommand
without the compiler, and has subcommands of its own."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import support

import mdot
from mdot import command
from mdot.__main__ import COMMANDS
from mdot.quantities import read_count, read_rate

COMPILER = {"compile", "verify", "check"}
NUMBER = re.compile(r"\d+(\.\d+)?(e[+-]?\d+)?")


def run(*words: str, folder: Path | None = None, **variables: str) -> tuple[int, str, str]:
    environment = {**os.environ, **variables}
    if words[0] != sys.executable:
        environment.pop("LD_PRELOAD", None)
    done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=folder)
    return done.returncode, done.stdout, done.stderr


def ask(*arguments: str) -> tuple[int, str, str]:
    return run(sys.executable, "-m", "mdot", *arguments)


class TheSame(unittest.TestCase):
    """Each subcommand prints the same, whichever of the two commands runs it."""

    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folders = [Path(holder.name, name) for name in ("executable", "python")]
        steps = [f"{support.RESNET},T4,{batch},{3.1 * batch}" for batch in (16, 32, 64, 128)]
        for folder in self.folders:
            folder.mkdir()
            (folder / "steps.csv").write_text("\n".join(["job,gpu,batch,ms", *steps]) + "\n")

    def expect_same(self, *arguments: object, status: int = 0, output: str | None = None) -> str:
        """Runs both commands, each in its own folder. Returns stdout. Both write the file `output`."""
        words, programs = [str(argument) for argument in arguments], ([os.environ["MDOT_CLI"]], [sys.executable, "-m", "mdot"])
        answers = [run(*program, *words, folder=folder) for program, folder in zip(programs, self.folders)]
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(answers[0][0], status, answers[0][2])
        if output is not None:
            self.assertEqual(*((folder / output).read_bytes() for folder in self.folders))
        return answers[0][1]

    def test_every_command_without_compiler_is_there(self) -> None:
        def listed(*program: str) -> set[str]:
            commands = run(*program, "--help")[1].partition("Options:")[0]
            return set(re.findall(r"^  ([a-z-]+) ", commands, re.M))

        whole = listed(os.environ["MDOT_CLI"])
        self.assertLess(COMPILER, whole)
        self.assertEqual(listed(sys.executable, "-m", "mdot"), whole - COMPILER)
        for name in sorted(whole - COMPILER):
            with self.subTest(name):
                self.assertIn("Usage: mdot", self.expect_same("help", name))

    def test_predictions_are_the_same(self) -> None:
        options = ("--gpu", "A100", "--batch", "64", "--gpus", "8", "--parallel", "dp=4,tp=2", "--checkpoint", "--compile",
                   "--torch", "2.4", "--link", "600GB/s", "--network", "100Gb/s")  # fmt: skip
        self.assertIn("A100", self.expect_same("predict", support.BERT, *options, "--dim", "sequence=128"))
        self.assertIn("step_ms", self.expect_same("predict", support.RESNET, "--gpu", "T4,A100", "--batch", "32,64", "--json"))
        self.assertIn("forward", self.expect_same("predict", support.RESNET, "--gpu", "A100", "--explain"))
        self.expect_same("predict", support.RESNET, "--gpu", "T4", "--fit", "--price", "$2.5/h", "--steps", "1e5")
        self.expect_same("predict", support.RESNET, "--gpu", "A1000", status=2)
        self.expect_same("predict", support.RESNET, "--colour", "red", status=2)

    def test_gpus_are_the_same(self) -> None:
        listed = self.expect_same("gpus")
        for gpu in mdot.gpus():
            self.assertIn(gpu.name, listed)
        self.assertIn('"name": "A100', self.expect_same("gpus", "--json"))

    def test_reports_are_the_same(self) -> None:
        self.expect_same("report", support.RESNET, "--gpu", "T4,A100", "--batch", "32", "-o", "page.html", output="page.html")

    def test_calibrations_are_the_same(self) -> None:
        self.expect_same("calibrate", "steps.csv", "-o", "site.cal", output="site.cal")
        self.assertIn("T4", self.expect_same("predict", support.RESNET, "--gpu", "T4", "-b", "32", "-c", "site.cal"))

    def test_operator_sequences_are_the_same(self) -> None:
        self.assertIn("Conv", self.expect_same("extract", support.RESNET, "--batch", "8"))
        self.assertIn('"operators"', self.expect_same("extract", support.BERT, "-d", "sequence=128", "--json", "--keep-names"))
        self.expect_same("extract", support.RESNET, "-o", "resnet.job", output="resnet.job")
        self.expect_same("extract", "nothing.onnx", status=1)

    def test_contents_of_artefacts_are_the_same(self) -> None:
        path = mdot.Predictor().path
        self.assertIn("encode", self.expect_same("inspect", path))
        self.assertIn('"images"', self.expect_same("inspect", path, "--json", "--kernels"))
        self.expect_same("inspect", support.RESNET, status=1)

    def test_benchmarks_differ_in_numbers_alone(self) -> None:
        arguments = ("bench", str(mdot.Predictor().path), "--entry", "encode", "--bucket", "64", "--seconds", "0.01")
        for extra in ((), ("--json",)):
            texts = []
            for answer in (run(os.environ["MDOT_CLI"], *arguments, *extra), ask(*arguments, *extra)):
                self.assertEqual(answer[0], 0, answer[2])
                texts.append([NUMBER.sub("N", line).split() for line in answer[1].splitlines()])
            self.assertEqual(*texts)
        self.expect_same("bench", "nothing.mdot", status=1)

    def test_completion_and_version_are_the_same(self) -> None:
        self.assertIn(mdot.__version__, self.expect_same("--version"))
        self.expect_same("predcit", status=2)

    def test_options_in_place_of_commands_have_a_remedy(self) -> None:
        for name in ("explain", "fit", "price"):
            with self.subTest(name):
                self.expect_same(name, support.RESNET, status=2)
                self.assertIn(f"use `mdot predict --{name}`", ask(name, support.RESNET)[2])
                self.assertIn(f"--{name}", ask("help", "predict")[1])


class Other(unittest.TestCase):
    def test_help_adds_the_commands_in_python(self) -> None:
        listed = run(str(command.find()), "--help")[1]
        for words in (("--help",), ("-h",), ("help",)):
            status, out, err = ask(*words)
            self.assertEqual((status, err), (0, ""))
            self.assertTrue(out.startswith(listed))
            for name, (summary, _) in COMMANDS.items():
                self.assertIn(f"  {name} ", out)
                self.assertIn(summary, out)
        status, out, err = run(sys.executable, "-m", "mdot")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("record-trace", err)

    def test_commands_in_python_have_help(self) -> None:
        for name in COMMANDS:
            self.assertIn(f"usage: python -m mdot {name}", ask(name, "--help")[1])
            self.assertEqual(ask("help", name), ask(name, "--help"))

    def test_commands_of_the_compiler_name_the_remedy(self) -> None:
        for name in sorted(COMPILER):
            status, out, err = run(str(command.find()), name, "model.onnx", MDOT_PREDICTOR="")
            if status == 2 and "needs the compiler" in err:
                self.assertIn("mdot-predict[compiler]", err)
                self.assertIn(f"mdot.{name}", err)
            else:
                self.fail(f"{command.find()} has the compiler: {err}")

    def test_executables_are_found_in_order(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            script, other = Path(folder, "scripts"), Path(folder, "other")
            for path in (script, other):
                path.mkdir()
            (script / "mdot").write_text("#!/bin/sh\n")
            (script / "mdot").chmod(0o755)
            (other / "mdot").symlink_to(command.find())
            probe = "from mdot import command; print(command.find())"
            libraries = os.environ.get("MDOT_LIBRARIES", "")
            first = run(sys.executable, "-c", probe, MDOT_LIBRARIES=f"{script}:{other}:{libraries}")
            self.assertEqual(first[1].strip(), str(other / "mdot"), first[2])
            rest = ":".join(name for name in libraries.split(":") if not Path(name, "mdot").exists())
            last = run(sys.executable, "-c", probe, MDOT_LIBRARIES=rest, PATH=f"{script}:{other}")
            packaged = command.PACKAGE / "bin" / "mdot"
            self.assertEqual(last[1].strip(), str(packaged if packaged.exists() else other / "mdot"), last[2])
            if not packaged.exists():
                status, _, err = run(sys.executable, "-m", "mdot", "gpus", MDOT_LIBRARIES=rest, PATH=str(script))
                self.assertEqual(status, 1)
                self.assertIn("install the wheel mdot-predict", err)

    def test_quantities_take_units(self) -> None:
        for text, value in (("1e5", 100000), ("1_000_000", 1000000), ("1M", 1000000), ("1.5k", 1500), ("30B", 30000000000), ("7", 7)):
            self.assertEqual(read_count(text), value)
        for text, rate in (("12.5", 12.5), ("12.5GB/s", 12.5), ("100Gb/s", 12.5), ("400Gbps", 50.0), ("1.8TB/s", 1800.0)):
            self.assertAlmostEqual(read_rate(text), rate)
        for read, wrong in ((read_count, "1.5"), (read_count, "0"), (read_count, "1x"), (read_rate, "100Gb"), (read_rate, "0"),
                            (read_rate, "100GB/h")):  # fmt: skip
            self.assertRaises(mdot.InvalidArgumentError, read, wrong)



class ConfigurationFiles(unittest.TestCase):
    """`--config FILE`: the prediction is that of the same options in words, and each key is an option or is listed."""

    FILES = {
        "ds.json": ('{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8, "bf16": {"enabled": true}, "steps_per_print": 10, "zero_optimization": {"stage": 2}}', "--batch 4 --accumulate 8 --precision mixed-bf16 --parallel zero=2", "steps_per_print"),
        "megatron.json": ('{"micro-batch-size": 2, "bf16": true, "num-attention-heads": 8, "optimizer": "adam", "pipeline-model-parallel-size": 2}', "--framework megatron --batch 2 --precision mixed-bf16 --optimizer adamw --parallel pp=2", "num_attention_heads"),
        "accelerate.json": ('{"distributed_type": "MULTI_GPU", "mixed_precision": "bf16", "num_processes": 4, "debug": false}', "--precision amp-bf16 --gpus 4", "debug"),
        "titan.json": ('{"training": {"local_batch_size": 2}, "activation_checkpoint": {"mode": "full"}, "parallelism": {"tensor_parallel_degree": 2}, "optimizer": {"name": "AdamW"}, "metrics": {"log_freq": 1}}', "--batch 2 --checkpoint=blocks --parallel tp=2 --optimizer adamw", "metrics.log_freq"),
        "tune.json": ('{"model": {"x": 1}, "tokenizer": {"y": 2}, "batch_size": 2, "compile": true, "dtype": "bf16"}', "--batch 2 --compile --precision bf16", "tokenizer.y"),
        "axolotl.json": ('{"base_model": "m", "datasets": [], "micro_batch_size": 2, "gradient_checkpointing": true, "optimizer": "adamw_torch"}', "--batch 2 --checkpoint=blocks --optimizer adamw", "base_model"),
    }  # fmt: skip

    def test_the_prediction_is_that_of_the_options(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name, (text, words, ignored) in self.FILES.items():
                path = Path(folder, name)
                path.write_text(text)
                more = ["--gpus", "4"] if "--gpus" not in words and "parallel" in words else []
                with self.subTest(name):
                    status, out, messages = ask("predict", "gpt2", "--gpu", "A100", *more, "--config", str(path))
                    self.assertEqual(status, 0, messages)
                    wanted = ask("predict", "gpt2", "--gpu", "A100", *more, *words.split())
                    self.assertEqual(out, wanted[1])
                    self.assertIn(ignored, next(line for line in messages.splitlines() if "ignored keys" in line))

    WHOLE = {
        "axolotl.yaml": ('{"base_model": "NousResearch/Meta-Llama-3-8B", "adapter": "qlora", "lora_r": 32, "lora_target_modules": ["q_proj", "v_proj"], "load_in_4bit": true, "sequence_len": 1024, "micro_batch_size": 2, "optimizer": "paged_adamw_8bit", "datasets": []}', "llama-3-8b", "--lora r=32,targets=q_proj,v_proj --frozen-weights nf4 --length 1024 --batch 2 --optimizer adamw8bit --offload pages"),
        "tune.yml": ('{"model": {"_component_": "torchtune.models.llama3_1.qlora_llama3_1_8b", "lora_attn_modules": ["q_proj", "output_proj"], "lora_rank": 4}, "tokenizer": {"max_seq_len": 512}, "batch_size": 3}', "llama-3.1-8b", "--lora r=4,targets=q_proj,o_proj --frozen-weights nf4 --length 512 --batch 3"),
        "titan.yaml": ('{"model": {"name": "llama3", "flavor": "8B"}, "training": {"seq_len": 4096, "local_batch_size": 1}, "parallelism": {"tensor_parallel_degree": 2}}', "llama-3-8b", "--length 4096 --batch 1 --parallel tp=2"),
    }  # fmt: skip
    """Files that state the network, too. JSON is YAML."""

    def test_a_file_is_a_job(self) -> None:
        if importlib.util.find_spec("yaml") is None:
            self.skipTest("pyyaml is missing")
        with tempfile.TemporaryDirectory() as folder:
            for name, (text, job, words) in self.WHOLE.items():
                path = Path(folder, name)
                path.write_text(text)
                more = ["--gpu", "H100", "--gpus", "2"] if "parallel" in words else ["--gpu", "H100"]
                wanted = ask("predict", job, *more, *words.split())[1].partition("\n")[2]
                with self.subTest(name):
                    for given in ([str(path)], ["--config", str(path)], [job, "--config", str(path)]):
                        status, out, messages = ask("predict", *given, *more)
                        self.assertEqual(status, 0, messages)
                        self.assertEqual(out.partition("\n")[2], wanted)

    def test_words_hold_instead_of_the_file(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "ds.json")
            path.write_text(self.FILES["ds.json"][0])
            given = ["predict", "gpt2", "--gpu", "A100", "--gpus", "4", "-b", "16", "--parallel", "dp=4,tp=1"]
            out = ask(*given, f"--config={path}")[1]
            wanted = ask(*given[:-1], "dp=4,tp=1,zero=2", "--accumulate", "8", "--precision", "mixed-bf16")[1]
            self.assertEqual(out, wanted)
            self.assertIn("no options of mdot extract: ", ask("extract", "gpt2", f"--config={path}")[2])

    def test_invalid_files_are_refused(self) -> None:
        for words, reason in ((["--config"], "requires a file"), (["--config", "absent.json"], "absent.json: no such file")):
            status, _, messages = ask("predict", "gpt2", "--gpu", "A100", *words)
            self.assertEqual(status, 1)
            self.assertIn(reason, messages)


if __name__ == "__main__":
    unittest.main()
