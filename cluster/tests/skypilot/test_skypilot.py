"""cluster/skypilot with the real SkyPilot: its optimizer over a catalogue of this test, without a cloud account."""

from __future__ import annotations

import base64
import math
import os
import re
import tempfile
import unittest
import warnings
import zlib
from pathlib import Path
from unittest import mock

HOME = tempfile.TemporaryDirectory()
os.environ.update(HOME=HOME.name, SKYPILOT_DISABLE_USAGE_COLLECTION="1", SKYPILOT_DEBUG="0")

CATALOG = """InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region
gpu_1x_t4,T4,1,8,32,"{'Gpus': [{'Name': 'T4', 'Count': 1, 'MemoryInfo': {'SizeInMiB': 16384}}]}",0.5,,us-east-1
gpu_1x_v100,V100,1,8,64,"{'Gpus': [{'Name': 'V100', 'Count': 1, 'MemoryInfo': {'SizeInMiB': 16384}}]}",1.2,,us-east-1
gpu_1x_a100,A100,1,30,200,"{'Gpus': [{'Name': 'A100', 'Count': 1, 'MemoryInfo': {'SizeInMiB': 40960}}]}",1.3,,us-east-1
gpu_1x_a100,A100,1,30,200,"{'Gpus': [{'Name': 'A100', 'Count': 1, 'MemoryInfo': {'SizeInMiB': 40960}}]}",1.3,,us-west-1
gpu_8x_a100,A100,8,240,1800,"{'Gpus': [{'Name': 'A100', 'Count': 8, 'MemoryInfo': {'SizeInMiB': 40960}}]}",10.4,,us-east-1
gpu_1x_h100,H100,1,26,225,"{'Gpus': [{'Name': 'H100', 'Count': 1, 'MemoryInfo': {'SizeInMiB': 81920}}]}",9.0,,us-east-1
gpu_1x_x1,X1,1,26,225,"{'Gpus': [{'Name': 'X1', 'Count': 1, 'MemoryInfo': {'SizeInMiB': 81920}}]}",9.5,,us-east-1
"""

ACCELERATORS = "AcceleratorName,Clouds\n" + "".join(f"{name},\"['Lambda']\"\n" for name in ("T4", "V100", "A100", "H100", "X1"))

import mdot  # noqa: E402 - the home directory must be known first
import sky  # noqa: E402
from mdot_schedulers import Request, Site, Unpredictable  # noqa: E402
from mdot_schedulers.request import InvalidRequest  # noqa: E402
from sky import check, skypilot_config  # noqa: E402
from sky.catalog import common as catalog_common  # noqa: E402
from sky.server.requests import request_names  # noqa: E402
from sky.utils import admin_policy_utils  # noqa: E402

import mdot_skypilot  # noqa: E402
from mdot_skypilot import ERROR, JOB, OPTIONS, PREDICTION, MdotPolicy, attach, estimate  # noqa: E402

LENGTH = "batch=64,precision=amp,steps=100000"


def task_of(*accelerators: str, nodes: int = 1, ordered: bool = False) -> sky.Task:
    task = sky.Task(run="python train.py", num_nodes=nodes)
    resources = [sky.Resources(accelerators=name) for name in accelerators]
    return task.set_resources(resources if ordered else set(resources))


def chosen(task: sky.Task, target: str = "COST") -> str:
    """The accelerator that SkyPilot's optimizer chooses."""
    with sky.Dag() as dag:
        dag.add(task)
    sky.Optimizer.optimize(dag, minimize=sky.OptimizeTarget[target], quiet=True)
    return next(iter(task.best_resources.accelerators))


def names(task: sky.Task) -> list[str]:
    return [next(iter(resources.accelerators)) for resources in task.resources]


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        for name, text in (("lambda/vms.csv", CATALOG), ("common/accelerators.csv", ACCELERATORS)):
            path = Path(catalog_common.get_catalog_path(name))
            assert HOME.name in str(path), path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        cls.job = mdot.Job.from_onnx(Path(os.environ["MDOT_EXAMPLE_JOBS"]) / "resnet50.onnx")
        cls.path = Path(HOME.name) / "resnet50.job"
        cls.job.save(cls.path)

    def setUp(self) -> None:
        warnings.simplefilter("ignore", mdot.Warning)
        patch = mock.patch.object(check, "get_cached_enabled_clouds_or_refresh", return_value=[sky.Lambda()])
        patch.start()
        self.addCleanup(patch.stop)


class Page(Case):
    def test_the_programs_of_the_page_run(self) -> None:
        """docs/run-in-skypilot.md: the task that is launched, and the optimizer's choice in the same process."""
        page = (Path(__file__).resolve().parents[2] / "docs" / "run-in-skypilot.md").read_text()
        launch, optimize = re.findall(r"```python\n(.*?)```", page, re.S)[:2]
        folder, found = os.getcwd(), {}  # type: tuple[str, dict[str, object]]
        os.chdir(self.path.parent)
        self.addCleanup(os.chdir, folder)
        with mock.patch.object(sky, "launch") as launched, mock.patch("builtins.print") as printed:
            exec(launch, found)
            (task,), named = launched.call_args
            self.assertEqual(named, {"cluster_name": "train"})
            self.assertIn("steps=100000", task.envs[OPTIONS])
            exec(optimize, found)
        resources, words = printed.call_args.args
        self.assertEqual(list(resources.accelerators), ["A100"])
        self.assertRegex(words, "steps=100000")


class InProcess(Case):
    def test_the_optimizer_chooses_another_gpu_than_for_one_hour(self) -> None:
        task = task_of("T4", "A100", "H100")
        self.assertEqual(chosen(task), "T4")  # the cheapest for an hour
        task = task_of("T4", "A100", "H100")
        estimator = estimate(task, self.job, LENGTH)
        self.assertEqual(chosen(task), "A100")
        self.assertEqual(chosen(task, "TIME"), "H100")
        answer = mdot.predict(self.job, "A100", 64, precision="amp")
        self.assertEqual(estimator(sky.Resources(accelerators="A100")), math.ceil(100 * answer.step_ms))
        self.assertIn("steps=100000", estimator.words(task.best_resources))

    def test_nodes_and_gpus_of_a_node_count(self) -> None:
        one, four = task_of("A100:8"), task_of("A100:8", nodes=4)
        resources = sky.Resources(accelerators="A100:8")
        length = "batch=64,precision=amp,epochs=1,dataset=1281167"
        times = [estimate(task, self.job, length)(resources) for task in (one, four)]
        for nodes, time in zip((1, 4), times):
            answer = mdot.predict(self.job, "A100", 64, precision="amp", gpus=8 * nodes, nodes=nodes)
            self.assertEqual(time, math.ceil(answer.step_ms / 1000 * -(-1281167 // (64 * 8 * nodes))))
        self.assertLess(times[1], times[0])

    def test_the_case_of_a_name_changes_nothing(self) -> None:
        """Law: SkyPilot compares names without their case, so times are those of the catalogue's spelling."""
        expected = estimate(task_of("T4", "A100", "H100"), self.job, LENGTH)
        for spellings in (("t4", "a100", "h100"), ("T4", "a100", "H100"), ("t4", "A100", "h100")):
            task = task_of(*spellings)
            estimator = estimate(task, self.job, LENGTH)
            self.assertEqual(chosen(task).upper(), "A100")
            self.assertRegex(estimator.words(task.best_resources), "gpu=A100")
            for name in ("T4", "A100", "H100"):
                for written in (name, name.lower()):
                    resources = sky.Resources(accelerators=written)
                    self.assertEqual(estimator(resources), expected(sky.Resources(accelerators=name)))
                    self.assertEqual(estimator.words(resources).lower(), estimator.words(sky.Resources(accelerators=name)).lower())
        with self.assertRaisesRegex(Unpredictable, "^Gaudi HL-205: unknown GPU"):
            estimate(task_of("Gaudi HL-205:8"), self.job, LENGTH)

    def test_gpus_where_the_job_does_not_fit_are_left_out(self) -> None:
        batch = mdot.largest_batch(self.job, "T4", precision="amp") + 64
        task = task_of("T4", "A100")
        estimate(task, self.job, f"batch={batch},precision=amp,steps=1")
        self.assertEqual(names(task), ["A100"])
        task = task_of("T4")
        estimate(task, self.job, f"batch={batch},precision=amp,steps=1")
        self.assertEqual(names(task), ["T4"])  # nothing else remains
        task = task_of("H100", "T4", "A100", ordered=True)
        estimate(task, self.job, f"batch={batch},precision=amp,steps=1")
        self.assertEqual(names(task), ["H100", "A100"])

    def test_unknown_accelerators_count_as_the_slowest(self) -> None:
        task = task_of("X1", "T4", "A100")
        estimator = estimate(task, self.job, LENGTH)
        self.assertEqual(estimator(sky.Resources(accelerators="X1")), estimator(sky.Resources(accelerators="T4")))
        self.assertEqual(estimator(sky.Resources(cpus=8)), estimator(sky.Resources(accelerators="T4")))
        self.assertEqual(chosen(task), "A100")
        site = Site.from_mapping({"places": [{"name": "x1", "gpu": "H100"}]})
        known = estimate(task_of("X1", "H100"), self.job, LENGTH, site=site)
        self.assertEqual(known(sky.Resources(accelerators="X1")), known(sky.Resources(accelerators="H100")))

    def test_faults_are_named(self) -> None:
        for task, options, kind, words in (
            (task_of("T4"), "batch=64", InvalidRequest, "requires steps"),
            (task_of("T4"), "batch=0,steps=1", InvalidRequest, "batch"),
            (task_of("X1"), LENGTH, Unpredictable, "X1"),
            (task_of("T4:0.5"), LENGTH, Unpredictable, "whole number"),
            (sky.Task(run="x").set_resources(sky.Resources(cpus=8)), LENGTH, Unpredictable, "no accelerator"),
        ):
            before = set(task.resources)
            with self.assertRaisesRegex(kind, words):
                estimate(task, self.job, options)
            self.assertEqual((set(task.resources), task.time_estimator_func), (before, None))


class Policy(Case):
    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.site = Path(folder.name) / "site.yaml"
        self.site.write_text("max_job_bytes: 100000\n")
        patch = mock.patch.dict(os.environ, {mdot_skypilot.SITE: str(self.site)})
        patch.start()
        self.addCleanup(patch.stop)

    def apply(self, task: sky.Task) -> sky.Task:
        """Sends the task through SkyPilot's own code: to YAML and back, as to a server, and through the registered policy."""
        sent = sky.Task.from_yaml_config(task.to_yaml_config())
        with skypilot_config.override_skypilot_config({"admin_policy": "mdot_skypilot.MdotPolicy"}):
            dag, _ = admin_policy_utils.apply(sent, request_names.AdminPolicyRequestName.CLUSTER_LAUNCH)
        return dag.tasks[0]

    def test_a_function_is_lost_and_the_policy_replaces_it(self) -> None:
        task = task_of("T4", "A100", "H100")
        estimate(task, self.job, LENGTH)
        self.assertEqual(chosen(sky.Task.from_yaml_config(task.to_yaml_config())), "T4")
        applied = self.apply(attach(task_of("T4", "A100", "H100"), self.path, LENGTH))
        self.assertEqual(names(applied), ["A100"])
        self.assertNotIn(JOB, applied.envs)
        self.assertIn("gpu=A100-SXM-40GB", applied.envs[PREDICTION])
        self.assertEqual(chosen(sky.Task.from_yaml_config(applied.to_yaml_config())), "A100")
        self.assertEqual(names(self.apply(applied)), ["A100"])  # a second request

    def test_the_fastest_and_an_order_of_the_user(self) -> None:
        applied = self.apply(attach(task_of("T4", "A100", "H100"), self.path, LENGTH + ",choose=time"))
        self.assertEqual(names(applied), ["H100"])
        applied = self.apply(attach(task_of("H100", "T4", ordered=True), self.path, LENGTH))
        self.assertEqual(names(applied), ["H100", "T4"])
        self.assertIn("gpu=H100", applied.envs[PREDICTION])

    def test_tasks_without_a_job_stay_as_they_are(self) -> None:
        task = task_of("T4", "A100")
        applied = self.apply(task)
        self.assertEqual((set(names(applied)), applied.envs), ({"T4", "A100"}, {}))
        task = attach(task_of("T4"), self.path, LENGTH)
        request = sky.UserRequest(
            task, skypilot_config.to_dict(), request_names.AdminPolicyRequestName.CLUSTER_LAUNCH, at_client_side=True
        )
        self.assertIn(JOB, MdotPolicy.validate_and_mutate(request).task.envs)

    def test_faults_leave_the_task_and_give_a_reason(self) -> None:
        bomb = base64.b64encode(zlib.compress(b"0" * (50 << 20), 9)).decode()
        hostile = base64.b64encode(zlib.compress(b"\x7fELF" * 1000)).decode()
        good = attach(task_of("T4"), self.path, LENGTH).envs[JOB]
        for text, options, words in (
            ("no base64!", LENGTH, "not a job"),
            (base64.b64encode(b"x").decode(), LENGTH, "cut off"),
            (base64.b64encode(b"xyz").decode(), LENGTH, "not a job"),
            (bomb, LENGTH, "more than 100000 bytes"),
            (hostile, LENGTH, "the .job file"),
            (good, "batch=64", "requires steps"),
            (good, "gpus=4,steps=1", "gpus follows"),
            (good, "tp=3,steps=1", "T4|A100"),
        ):
            task = task_of("T4", "A100")
            task.update_envs({JOB: text, OPTIONS: options})
            applied = self.apply(task)
            self.assertEqual(sorted(names(applied)), ["A100", "T4"])
            self.assertRegex(applied.envs[ERROR], words)
            self.assertNotIn(JOB, applied.envs)
        self.site.write_text("colour: red\n")
        os.utime(self.site, (1, 1))
        with self.assertLogs("mdot-skypilot", "ERROR"):
            applied = self.apply(attach(task_of("T4"), self.path, LENGTH))
        self.assertIn("ValueError", applied.envs[ERROR])

    def test_tasks_of_any_shape_keep_their_resources_or_some(self) -> None:
        """Law: whatever a task's file states, the policy returns some of its resources, with a prediction or a reason."""
        shapes = (
            ({"any_of": [{"accelerators": "T4:1"}, {"accelerators": "a100:1"}]}, "gpu=A100"),
            ({"any_of": [{"accelerators": "A100", "infra": f"lambda/us-{side}-1"} for side in ("east", "west")]}, "gpu=A100"),
            ({"any_of": [{"accelerators": "A100", "use_spot": spot} for spot in (True, False)]}, "gpu=A100"),
            ({"accelerators": {"T4": 1, "A100": 1}, "job_recovery": {"max_restarts_on_errors": 3}}, "gpu=A100"),
            ({"ordered": [{"accelerators": "t4"}, {"accelerators": "A100"}]}, "gpu=T4"),
            ({"any_of": [{"accelerators": "tpu-v5litepod-8"}, {"accelerators": "A100"}]}, "gpu=A100"),
            ({"accelerators": {"B200": 1, "A100": 1}}, "gpu=A100"),
            ({"any_of": [{"cpus": "4+"}, {"accelerators": "A100"}]}, "mdot: "),
            ({"cpus": "4+"}, "name no accelerator"),
            ({"accelerators": "A100:0.5"}, "A100:0.5 is not a whole number"),
            ({"accelerators": "A100", "use_spot": True}, "ResourcesUnavailableError"),
        )
        for resources, words in shapes:
            task = sky.Task.from_yaml_config({"run": "true", "envs": {"A": "b"}, "secrets": {"TOKEN": "c"}, "resources": resources})
            before = [repr(r) for r in task.resources]
            attach(task, self.path, LENGTH)
            request = sky.UserRequest(
                task, skypilot_config.to_dict(), request_names.AdminPolicyRequestName.CLUSTER_LAUNCH, at_client_side=False
            )
            with self.assertLogs("mdot-skypilot", "DEBUG") as logs:
                logs.records.append(None)  # type: ignore[arg-type] # no message is required
                task = MdotPolicy.validate_and_mutate(request).task
            self.assertTrue({repr(r) for r in task.resources} <= set(before))
            self.assertRegex(task.envs.get(PREDICTION, "") + task.envs.get(ERROR, ""), words)
            self.assertEqual((task.envs["A"], JOB in task.envs), ("b", False))

    def test_attach_checks_before_sending(self) -> None:
        with self.assertRaises(InvalidRequest):
            attach(task_of("T4"), self.path, "batch=0")
        large = Path(HOME.name) / "large.job"
        large.write_bytes(os.urandom(1 << 17))
        with self.assertRaisesRegex(InvalidRequest, "at most"):
            attach(task_of("T4"), large, LENGTH)
        self.assertIsNotNone(Request.parse(LENGTH))


if __name__ == "__main__":
    unittest.main()
