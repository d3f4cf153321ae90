"""mdot_schedulers: requests, limits, priorities and places by the rules of cluster/slurm. MDOT_SLURM_RULES names a program
that answers by the code for Slurm."""

from __future__ import annotations

import datetime
import os
import re
import subprocess
import tempfile
import unittest
import warnings
from pathlib import Path
from random import Random
from unittest import mock

import mdot
from mdot.options import ROWS
from mdot_schedulers import Answer, Outcomes, Place, Request, Site, Unpredictable, decide, predict_apart, predict_here
from mdot_schedulers.decision import DOUBTFUL, priority, step_quantile_ms
from mdot_schedulers.request import InvalidRequest

JOBS = Path(os.environ["MDOT_EXAMPLE_JOBS"])
PLACES = (Place("a100", "A100-SXM-40GB", 2.0), Place("t4", "T4", 0.3), Place("v100", "V100-SXM2-16GB", 1.0))


def ask_slurm(questions: list[str]) -> list[str]:
    done = subprocess.run(
        [os.environ["MDOT_SLURM_RULES"]], input="\n".join(questions) + "\n", capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def answer(step_ms: float, **fields: object) -> Answer:
    values = {
        "gpu": "A100-SXM-40GB",
        "lower_ms": step_ms / 2,
        "upper_ms": step_ms * 2,
        "memory_bytes": 1 << 30,
        "fits": True,
        "samples": 64,
    }
    return Answer(step_ms=step_ms, **{**values, **fields})  # type: ignore[arg-type]


class RulesOfSlurm(unittest.TestCase):
    """Law: both implementations give the same numbers for random inputs."""

    def test_priorities_are_equal(self) -> None:
        random = Random(7)
        rows = []
        for _ in range(2000):
            order = random.choice(["time", "service"])
            site = Site(
                priority_weight=random.randrange(1, 20000),
                order=order,
                shortest_s=random.uniform(1, 600),
                longest_s=random.uniform(601, 1e7),
            )
            rows.append(
                (
                    site,
                    10 ** random.uniform(0, 7),
                    random.choice([0, 1, 5, 600, 43200]),
                    random.choice([1, 2, 8, 512]),
                    random.uniform(0.5, 9),
                )
            )
        questions = [
            f"priority {site.order} {site.priority_weight} {site.shortest_s!r} {site.longest_s!r} {predicted!r} {minutes} {gpus} {more!r}"
            for site, predicted, minutes, gpus, more in rows
        ]
        for row, found in zip(rows, ask_slurm(questions)):
            site, predicted, minutes, gpus, more = row
            self.assertEqual(priority(site, predicted, 60 * minutes, gpus, more), int(found), row)

    def test_quantiles_are_equal(self) -> None:
        random = Random(8)
        rows = [(answer(10 ** random.uniform(-1, 5), lower_ms=0.05), random.uniform(0.01, 0.99)) for _ in range(500)]
        questions = [f"quantile {a.lower_ms!r} {a.step_ms!r} {a.upper_ms!r} {quantile!r}" for a, quantile in rows]
        for (a, quantile), found in zip(rows, ask_slurm(questions)):
            self.assertAlmostEqual(step_quantile_ms(a, quantile) / float(found), 1, places=6)

    def test_understatements_are_equal(self) -> None:
        random = Random(9)
        outcomes, now_s, rows = Outcomes(), 1e9, []
        for _ in range(1000):
            now_s += random.uniform(0, 2e5)
            values = [random.choice([-1, 0, 10 ** random.uniform(0, 6)]) for _ in range(2)]
            rows.append((random.randrange(5), *values, random.choice([0, 1, 8]), random.randrange(2), now_s))
        for (user, predicted, actual, gpus, is_complete, at_s), found in zip(
            rows, ask_slurm(["add " + " ".join(repr(n) for n in row) for row in rows])
        ):
            outcomes.add(str(user), predicted, actual, gpus, bool(is_complete), at_s)
            outcomes = Outcomes.from_mapping(outcomes.to_mapping())
            self.assertAlmostEqual(outcomes.understatement(str(user), at_s), float(found), places=6)

    def test_doubtful_warnings_are_equal(self) -> None:
        (found,) = ask_slurm(["doubtful"])
        self.assertEqual(set(found.split()), DOUBTFUL)

    def test_what_slurm_accepts_is_accepted(self) -> None:
        """Python accepts more: the options of several GPUs, and choices are checked with the prediction."""
        random = Random(10)
        values = [
            "1",
            "0",
            "8",
            "yes",
            "no",
            "amp",
            "fp32",
            "2.4",
            "10.5",
            "-1",
            "",
            "x",
            "1e3",
            "99999999999999999999",
            "blocks",
            "adamw",
        ]
        keys = [name for row in ROWS for name in (row.keyword, row.command)] + ["steps", "epochs", "dataset", "colour", ""]
        texts = [
            ",".join(f"{random.choice(keys)}={random.choice(values)}" for _ in range(random.randrange(1, 3)))
            for _ in range(9000)
        ]
        accepted = 0
        for text, found in zip(texts, ask_slurm(["accepts x.job," + text for text in texts])):
            if found == "yes":
                Request.parse(text)
                accepted += 1
        self.assertGreater(accepted, 100)


class Requests(unittest.TestCase):
    def test_a_request_is_read(self) -> None:
        request = Request.parse(
            "batch=64, precision=amp,compile=yes,zero=1,tp=2,optimizer-kernels=fused,epochs=90,dataset=1281167"
        )
        self.assertEqual(dict(request.options), {"batch": 64, "precision": "amp", "compiled": True, "zero": 1, "tensor_parallel": 2,
                                                 "optimizer_kernels": "fused"})  # fmt: skip
        self.assertEqual(request.step_count(64), 20019 * 90)
        self.assertEqual(Request.parse("steps=5").step_count(64), 5)
        self.assertEqual(Request.parse("").step_count(64), 0)
        self.assertEqual(
            Request.parse("deadline=2026-12-01T00:00:10Z").seconds_left(
                datetime.datetime.fromisoformat("2026-12-01T00:00:00+00:00")
            ),
            10,
        )

    def test_faults_name_the_key(self) -> None:
        for text, named in (("batch=0", "batch"), ("batch", "KEY=VALUE"), ("gpus=4", "gpus"), ("steps=1,epochs=2,dataset=3", "steps"),
                            ("epochs=2", "epochs"), ("batch=1,batch=2", "batch"), ("compile=1", "compile"), ("colour=red", "colour"),
                            ("choose=best", "choose"), ("deadline=tomorrow", "deadline"), ("deadline=2026-12-01T00:00:00", "deadline"),
                            ("batch=١", "batch"), ("power-limit=inf", "power-limit"), ("a" * 2000, "1024"), ("a\x1b=1", "control")):  # fmt: skip
            with self.assertRaisesRegex(InvalidRequest, named):
                Request.parse(text)

    def test_any_text_is_read_or_refused(self) -> None:
        random = Random(11)
        for _ in range(3000):
            text = "".join(random.choice("batchsep=,0123456789.- é\0\n'\"[]{}") for _ in range(random.randrange(40)))
            try:
                Request.parse(text)
            except InvalidRequest as fault:
                self.assertTrue(str(fault).isprintable(), fault)


class Decisions(unittest.TestCase):
    site = Site(priority_weight=10000)

    def decide(self, answers: list[Answer | str], text: str = "steps=1000", **options: object):  # type: ignore[no-untyped-def]
        site = options.pop("site", self.site)
        return decide(site, Request.parse(text), PLACES[: len(answers)], answers, **{"gpus": 1, **options})  # type: ignore[arg-type]

    def test_the_slowest_place_decides_without_a_choice(self) -> None:
        decision = self.decide([answer(100), answer(400), answer(200)])
        self.assertEqual((decision.place.name, decision.is_chosen), ("t4", False))
        self.assertEqual(decision.limit_s, 1480)  # ceil(1000 * 800 ms * 1.1) + 600
        self.assertIn("limit_s=1480", decision.words)

    def test_choices_by_time_cost_and_deadline(self) -> None:
        answers: list[Answer | str] = [answer(100), answer(400), answer(180)]
        for text, left, name in (("choose=time", None, "a100"), ("choose=cost", None, "t4"), ("choose=cost", 1350, "v100"),
                                 ("choose=cost", 900, "a100"), ("choose=cost", 1, "a100")):  # fmt: skip
            decision = self.decide(answers, "steps=1000," + text, seconds_left=left)
            self.assertEqual((decision.place.name, decision.is_chosen), (name, True), text)
            if left is not None:
                self.assertIn("deadline=missed" if left == 1 else "deadline=met", decision.words)
        self.assertFalse(self.decide(answers, "steps=1000,choose=cost", may_choose=False).is_chosen)
        self.assertTrue(self.decide(answers, "steps=1000,deadline=2999-01-01T00:00:00Z", seconds_left=1e9).is_chosen)

    def test_a_place_where_the_job_does_not_fit_is_never_chosen(self) -> None:
        decision = self.decide([answer(100, fits=False), answer(400)], "steps=1000,choose=time")
        self.assertEqual(decision.place.name, "t4")
        self.assertFalse(self.decide([answer(100, fits=False)], "steps=1000,choose=time").is_chosen)

    def test_no_limit_or_priority_without_a_reason(self) -> None:
        for fields in ({"fits": False}, {"warnings": ("outside-training",)}, {"warnings": ("unknown-operators",)}):
            decision = self.decide([answer(100, **fields)])
            self.assertEqual((decision.limit_s, decision.priority), (0, 0), fields)
        self.assertEqual(self.decide([answer(100)], "").limit_s, 0)
        self.assertEqual(self.decide([answer(100)], "").priority, 0)
        self.assertEqual(self.decide([answer(100)], gpus=0).priority, 0)
        self.assertEqual(self.decide([answer(100)], site=Site(priority_weight=100, limits=False)).priority, 0)
        self.assertGreater(
            self.decide([answer(100, warnings=("outside-training",))], site=Site(limits_doubtful=True)).limit_s, 0
        )
        self.assertEqual(self.decide([answer(100)], own_limit_s=900).limit_s, 0)
        self.assertGreater(self.decide([answer(100)], own_limit_s=900).priority, 0)

    def test_statements_never_raise_the_priority_beyond_the_limit(self) -> None:
        """Law: the priority is at most that of a job that is as long as the limit that ends it."""
        random = Random(12)
        for _ in range(2000):
            steps, own, gpus = random.choice([1, 100, 10**6, 10**9]), random.choice([0, 60, 86400]), random.choice([1, 8])
            decision = self.decide(
                [answer(10 ** random.uniform(-1, 4))],
                f"steps={steps}",
                own_limit_s=own,
                gpus=gpus,
                understatement=random.uniform(0.1, 5),
            )
            self.assertLessEqual(decision.priority, priority(self.site, 0, own or decision.limit_s, gpus, 1))
            self.assertLess(decision.limit_s, 1 << 31)

    def test_a_place_without_a_prediction_is_named(self) -> None:
        with self.assertRaisesRegex(Unpredictable, "T4: unsupported"):
            self.decide([answer(100), "unsupported"])
        self.assertEqual(self.decide([answer(100), "unsupported"], "steps=1,choose=time").place.name, "a100")
        with self.assertRaises(Unpredictable):
            self.decide([])

    def test_configurations_of_a_site_are_checked(self) -> None:
        good = {"places": [{"name": "a", "gpu": "A100", "price": 2}], "quantile": 0.9}
        self.assertEqual(Site.from_mapping(good).places[0].price, 2)
        for bad, named in (({"colour": 1}, "colour"), ({"quantile": 1}, "quantile"), ({"quantile": "x"}, "quantile"), ({"places": 3}, "places"),
                           ({"places": [{"name": "a", "gpu": "X9"}]}, "X9"), ({"places": [{"gpu": "T4"}]}, "name"), ([], "mapping"),
                           ({"places": [{"name": "a", "gpu": "T4"}] * 2}, "twice"), ({"choose": "best"}, "choose"), ({"startup_s": -1}, "startup_s"),
                           ({"limits": 1}, "limits"), ({"priority_weight": True}, "priority_weight"), ({"shortest_s": 1e9}, "shortest_s"),
                           ({"places": [{"name": "a", "gpu": "T4", "labels": {"a": 1}}]}, "labels")):  # fmt: skip
            with self.assertRaisesRegex(ValueError, named):
                Site.from_mapping(bad)


class Package(unittest.TestCase):
    def test_the_wheel_has_each_package(self) -> None:
        cluster = Path(__file__).resolve().parents[2]
        text = (cluster / "pyproject.toml").read_text()
        listed = dict(re.findall(r'^(mdot_\w+) = "([\w/]+)"$', text, re.M))
        folders = {path.parent.name: str(path.parent.relative_to(cluster)) for path in cluster.glob("**/mdot_*/__init__.py")}
        del folders["mdot_store"]  # of its own wheel, with libraries
        self.assertEqual(listed, folders)
        self.assertEqual(sorted(re.findall(r'"(mdot_\w+)"', text)), sorted(folders))


class Children(unittest.TestCase):
    def setUp(self) -> None:
        warnings.simplefilter("ignore", mdot.Warning)
        self.job = mdot.Job.from_onnx(JOBS / "resnet50.onnx")
        path = Path(self.folder()) / "resnet50.job"
        self.job.save(path)
        self.data = path.read_bytes()

    def folder(self) -> str:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return folder.name

    def test_a_child_answers_as_the_library(self) -> None:
        request = Request.parse("batch=32,precision=amp")
        gpus = ["A100", "T4", "nothing"]
        apart = predict_apart(self.data, request, gpus, 2, 1, Site())
        here = predict_here(self.job, request, gpus, 2)
        self.assertEqual(apart, here)
        direct = mdot.predict(self.job, "T4", 32, precision="amp", gpus=2)
        self.assertEqual((apart[1].step_ms, apart[1].fits, apart[1].samples), (direct.step_ms, direct.fits, 64))  # type: ignore[union-attr]
        self.assertIn("nothing", apart[2])

    def test_a_calibration_corrects_a_childs_answers(self) -> None:
        folder = Path(self.folder())
        (folder / "resnet50.job").write_bytes(self.data)
        (folder / "steps.csv").write_text("job,gpu,batch,precision,ms\nresnet50.job,A100,64,amp,77.0\n")
        command = [os.environ["MDOT_CLI"], "calibrate", str(folder / "steps.csv"), "-o", str(folder / "site.cal"), "-q"]
        subprocess.run(command, check=True, capture_output=True)
        site = Site(calibration=str(folder / "site.cal"))
        (found,) = predict_apart(self.data, Request.parse("batch=64,precision=amp"), ["A100"], 1, 1, site)
        (plain,) = predict_apart(self.data, Request.parse("batch=64,precision=amp"), ["A100"], 1, 1, Site())
        assert isinstance(found, Answer) and isinstance(plain, Answer)
        self.assertLess(abs(found.step_ms - 77), abs(plain.step_ms - 77) / 5)
        self.assertLess(found.upper_ms / found.lower_ms, plain.upper_ms / plain.lower_ms)

    def test_hostile_bytes_give_a_reason(self) -> None:
        random = Random(13)
        request = Request.parse("batch=32")
        cases = [b"", b"\x7fELF", self.data[:-9], self.data + b"\0" * 99]
        for _ in range(4):
            changed = bytearray(self.data)
            for _ in range(20):
                changed[random.randrange(len(changed))] = random.randrange(256)
            cases.append(bytes(changed))
        for data in cases:
            with self.assertRaises(Unpredictable) as caught:
                predict_apart(data, request, ["A100"], 1, 1, Site())
            self.assertTrue(str(caught.exception))

    def test_a_fault_of_the_site_is_named(self) -> None:
        for site in (Site(predictor="/nowhere.mdot"), Site(calibration="/nowhere.cal")):
            with self.assertRaisesRegex(Unpredictable, "the site's predictor or calibration: .*nowhere"):
                predict_apart(self.data, Request.parse("batch=32"), ["A100"], 1, 1, site)

    def test_limits_end_a_child(self) -> None:
        request = Request.parse("batch=32")
        for site, named in ((Site(max_job_bytes=100), "at most 100"), (Site(max_operators=10), "max_operators=10"),
                            (Site(prediction_s=0.001), "longer than"), (Site(prediction_mib=16), "ended with status")):  # fmt: skip
            with self.assertRaisesRegex(Unpredictable, named), mock.patch("mdot_schedulers.prediction.log"):
                predict_apart(self.data, request, ["A100"], 1, 1, site)

    def test_invalid_options_give_a_reason(self) -> None:
        for text in ("precision=fp7", "tp=3", "zero=3,tp=2,pp=64"):
            answers: list[Answer | str] = []
            try:
                answers = predict_apart(self.data, Request.parse(text), ["A100"], 2, 1, Site())
            except Unpredictable as fault:
                answers = [str(fault)]
            self.assertIsInstance(answers[0], str, text)


if __name__ == "__main__":
    unittest.main()
