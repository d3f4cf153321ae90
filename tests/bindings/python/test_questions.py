"""Random questions: the command, the plan and the package agree, and answers change in the direction that they must."""

from __future__ import annotations

import json
import os
import random
import tempfile
import unittest
from pathlib import Path
from typing import Any

import support

import mdot

JOBS = ["resnet50", "gpt2", "qwen2.5-0.5b", "bert-large", "vit_b_16", "t5-small", "llama-3.2-1b", "olmoe-1b-7b"]
GPUS = ["T4", "L4", "RTX-4090", "A100", "A100-80GB", "H100", "H200", "B200", "MI300X", "A100:3g.20gb"]
QUESTIONS = int(os.environ.get("MDOT_QUESTIONS", "12"))
SAME = 1e-6
HOURS = {"1h": 1, "10h": 10, "5d": 120}


def answer(*words: str) -> Any:
    return json.loads(support.run(os.environ["MDOT_CLI"], *words, "--json", "-q"))


def random_training(draw: random.Random) -> dict[str, str]:
    options = {
        "precision": draw.choice(["fp32", "tf32", "amp", "amp-bf16", "bf16", "mixed-bf16"]),
        "optimizer": draw.choice(["sgd", "adam", "adamw", "adamw8bit", "lion"]),
    }
    if draw.random() < 0.3:
        options["checkpoint"] = draw.choice(["blocks", "selective"])
    if draw.random() < 0.3:
        options["accumulate"] = str(draw.choice([2, 4, 8]))
    if draw.random() < 0.2:
        options["attention"] = draw.choice(["eager", "flash"])
    return options


def as_words(options: dict[str, str]) -> list[str]:
    return [f"--{name}={value}" for name, value in options.items()]


class QuestionsTest(support.TestCase):
    def assertSame(self, one: float, other: float, place: Any) -> None:
        self.assertAlmostEqual(one, other, delta=SAME * max(abs(one), abs(other)), msg=str(place))

    def test_the_command_and_the_package_agree(self) -> None:
        draw, predictor = random.Random(48), mdot.Predictor()
        for _ in range(QUESTIONS):
            name, gpu, batch = draw.choice(JOBS), draw.choice(GPUS), draw.choice([1, 2, 7, 16, 64])
            options = random_training(draw)
            parallel = {}
            if ":" not in gpu and draw.random() < 0.4:
                degree = draw.choice([2, 4, 8])
                parallel = {"gpus": degree, **draw.choice([{}, {"zero": 2}, {"zero": 3}])}
            words = [name, "--gpu", gpu, "--batch", str(batch), *as_words(options)]
            if parallel:
                words += ["--gpus", str(parallel["gpus"])]
                if "zero" in parallel:
                    words += ["--parallel", f"zero={parallel['zero']}"]
            row = answer("predict", *words)["predictions"][0]
            keywords: dict[str, Any] = {key: int(value) if value.isdigit() else value for key, value in options.items()}
            keywords = {key: value for key, value in keywords.items()}
            one = predictor.predict(mdot.Job.read(name), gpu=gpu, batch=batch, **keywords, **parallel)
            self.assertSame(one.step_ms, row["step_ms"], words)
            self.assertEqual(one.reserved_bytes, row["reserved_bytes"], words)
            self.assertEqual(one.fits, row["fits"], words)

    def random_plan(self, draw: random.Random) -> dict[str, str]:
        name = draw.choice(JOBS[1:4] + JOBS[5:])
        goal = draw.choice(["tokens", "samples"]) if name not in ("vit_b_16", "resnet50") else "samples"
        return {
            "job": name,
            "gpu": ",".join(draw.sample(GPUS[:-1], draw.choice([1, 2]))),
            "gpus": draw.choice(["1..4", "8", "2,8"]),
            goal: draw.choice(["1e8", "1e9", "3e9"]),
            "deadline": draw.choice(list(HOURS)),
            "price": draw.choice(["1", "2.5"]),
            **({"global-batch": draw.choice(["64", "256"])} if draw.random() < 0.5 else {}),
            **{key: value for key, value in random_training(draw).items() if key in ("precision", "optimizer")},
        }

    def ask(self, question: dict[str, str], **changed: str) -> Any:
        words = {**question, **changed}
        return answer("plan", words.pop("job"), *as_words(words))

    def test_a_plan_answers_in_the_direction_of_its_question(self) -> None:
        draw = random.Random(49)
        for _ in range(max(QUESTIONS // 3, 5)):
            question = self.random_plan(draw)
            plan = self.ask(question)
            rows = plan["layouts"]
            if not rows:
                continue
            fastest, cheapest = min(row["hours"] for row in rows), min(row["cost"] for row in rows)
            goal = "tokens" if "tokens" in question else "samples"
            more = self.ask(question, **{goal: str(2 * float(question[goal]))})["layouts"]
            self.assertGreaterEqual(min(row["hours"] for row in more), fastest, question)
            self.assertGreaterEqual(min(row["cost"] for row in more), cheapest, question)
            dear = self.ask(question, price=str(2 * float(question["price"])))["layouts"]
            self.assertSame(min(row["cost"] for row in dear), 2 * cheapest, question)
            late = self.ask(question, deadline="90d")["layouts"]
            for one, other in zip(rows, late):
                self.assertGreaterEqual(other["in_time"], one["in_time"], question)
            wide = self.ask(question, gpu=question["gpu"] + ",V100-SXM-16GB")
            self.assertLessEqual(min(row["hours"] for row in wide["layouts"]), fastest * (1 + SAME), question)
            self.assertLessEqual(min(row["cost"] for row in wide["layouts"]), cheapest * (1 + SAME), question)
            self.assertFixedOptionsKeep(question, rows)

    def assertFixedOptionsKeep(self, question: dict[str, str], rows: Any) -> None:
        best = next((row for row in rows if row["is_recommended"]), rows[0])
        kept = {"gpu": best["gpu"], "gpus": str(best["gpus"])}
        if best["gpus"] > 1:
            kept["parallel"] = ",".join(
                f"{kind}={best[key]}"
                for kind, key in (("dp", "data_parallel"), ("tp", "tensor_parallel"), ("pp", "pipeline_parallel"), ("zero", "zero_stage"))
            )
        if best["recompute"] != "nothing":
            kept["checkpoint"] = best["recompute"]
        again = [row for row in self.ask(question, **kept)["layouts"] if row["gpu"] == best["gpu"]]
        self.assertEqual(len(again), 1, (question, kept))
        self.assertSame(again[0]["hours"], best["hours"], (question, kept))
        self.assertSame(again[0]["reserved_bytes"], best["reserved_bytes"], (question, kept))

    def test_a_plan_of_the_package_equals_the_command_s(self) -> None:
        draw = random.Random(50)
        for _ in range(max(QUESTIONS // 6, 4)):
            question = self.random_plan(draw)
            found = self.ask(question, gpus="2,8")
            samples = float(question.get("tokens") or question["samples"])
            samples /= found["tokens_of_a_sample"] if "tokens" in question else 1
            training = mdot.Training(samples=samples, deadline_hours=HOURS[question["deadline"]])
            fixed = {key: question[key] for key in ("precision", "optimizer") if key in question}
            plan = mdot.plan(
                mdot.Job.read(question["job"]),
                question["gpu"].split(","),
                [2, 8],
                global_batch=int(question.get("global-batch", 0)),
                training=training,
                price=float(question["price"]),
                **{"optimizer": "adamw", **fixed},
            )
            self.assertEqual(len(plan), len(found["layouts"]), question)
            for one, row in zip(plan, found["layouts"]):
                self.assertSame(one.prediction.step_ms, row["step_ms"], question)
                self.assertAlmostEqual(one.cost.hours, row["hours"], delta=1e-3 * row["hours"], msg=str(question))
                self.assertSame(row["cost"], row["gpu_hours"] * float(question["price"]), question)
                self.assertSame(row["gpu_hours"], row["hours"] * row["gpus"], question)

    def test_a_report_shows_the_command_s_numbers(self) -> None:
        draw = random.Random(51)
        for _ in range(max(QUESTIONS // 6, 4)):
            words = [draw.choice(JOBS), "--gpu", draw.choice(GPUS[:-1]), "--batch", "4", *as_words(random_training(draw))]
            row = answer("predict", *words)["predictions"][0]
            with tempfile.TemporaryDirectory() as folder:
                page = Path(folder, "page.html")
                support.run(os.environ["MDOT_CLI"], "report", *words, "-o", str(page), "-q")
                text = page.read_text()
            shown = f"{float(format(row['step_ms'], '.3g')):,g}"
            self.assertTrue(f">{shown}<" in text, (words, shown))

    def test_no_positive_number_is_shown_as_zero(self) -> None:
        for name, length in (("llama-3.1-70b", "65536"), ("bloom-176b", "8192"), ("dlrm-kaggle", "")):
            words = [name, "--gpu=T4,B200", "--price=0.001", *([f"--length={length}"] if length else [])]
            table = support.run(os.environ["MDOT_CLI"], "predict", *words, "-q")
            self.assertNotRegex(table, r"\n(T4|B200)[^\n]* 0\.0+( |\n)")


if __name__ == "__main__":
    unittest.main()
