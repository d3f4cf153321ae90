"""cluster/ray with the real Ray: a cluster of three nodes on this machine, whose GPUs exist on paper."""

from __future__ import annotations

import math
import os
import random
import tempfile
import unittest
import warnings
from pathlib import Path

os.environ.update(
    RAY_DEDUP_LOGS="0", RAY_AIR_NEW_OUTPUT="0", RAY_CHDIR_TO_TRIAL_DIR="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0"
)

import mdot  # noqa: E402 - Ray reads the environment when it is imported
import mdot_ray  # noqa: E402
import ray  # noqa: E402
from mdot_ray import TrialResources, actor_options, cluster_gpus  # noqa: E402
from mdot_schedulers import Site, Unpredictable  # noqa: E402
from mdot_schedulers.request import InvalidRequest  # noqa: E402
from ray import tune  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

JOBS = Path(os.environ["MDOT_EXAMPLE_JOBS"])
AVAILABLE = {"A100": 2, "T4": 4}


def options(config):  # type: ignore[no-untyped-def]
    return f"batch={config['batch']},precision=amp,epochs={config.get('epochs', 1)},dataset=1281167"


class Case(unittest.TestCase):
    def setUp(self) -> None:
        warnings.simplefilter("ignore", mdot.Warning)
        self.job = mdot.Job.from_onnx(JOBS / "resnet50.onnx")


class Placement(Case):
    """Laws of the placement, without a cluster."""

    def test_trials_are_spread_so_that_they_end_early(self) -> None:
        """Law: trials end earlier than on one type, than in turns, and within the bound of list scheduling."""
        source = random.Random(2)
        configs = [{"batch": source.choice([8, 16, 32, 64, 96])} for _ in range(24)]
        resources = TrialResources(self.job, options, available=AVAILABLE)
        for config in configs:
            resources(config)
        times = [
            {
                name: mdot.predict(self.job, name, c["batch"], precision="amp").hours(epochs=1, dataset=1281167) * 3600
                for name in AVAILABLE
            }
            for c in configs
        ]
        load = {
            name: sum(c.seconds for c in resources.choices if c.accelerator == name) / AVAILABLE[name] for name in AVAILABLE
        }
        for choice, row in zip(resources.choices, times):
            self.assertAlmostEqual(choice.seconds / row[choice.accelerator or ""], 1, places=6)
        others = [{name: sum(row[name] for row in times) / AVAILABLE[name]} for name in AVAILABLE]
        turns = {name: sum(row[name] for row in times[k::2]) / AVAILABLE[name] for k, name in enumerate(AVAILABLE)}
        for other in (*others, turns):
            self.assertLess(max(load.values()), max(other.values()))
        self.assertEqual({choice.accelerator for choice in resources.choices}, {"A100", "T4"})

    def test_a_trial_is_never_placed_where_it_does_not_fit(self) -> None:
        batch = mdot.largest_batch(self.job, "T4", precision="amp") + 8
        resources = TrialResources(self.job, options, available={"T4": 100, "A100": 1})
        for _ in range(5):
            self.assertIn("accelerator_type:A100", resources({"batch": batch}))
        found = TrialResources(self.job, options, available={"T4": 100})({"batch": batch})
        self.assertEqual(found, {"CPU": 1, "GPU": 1})

    def test_gpus_of_a_trial_count(self) -> None:
        resources = TrialResources(self.job, "batch=32,steps=10", gpus=4, available=AVAILABLE)
        self.assertEqual(resources({}), {"CPU": 1, "GPU": 4, "accelerator_type:T4": 0.001})  # two A100 are too few
        self.assertIn("gpus=4", resources.choices[0].words)
        resources = TrialResources(self.job, "batch=32,steps=10", available={"X1": 1})
        self.assertEqual(resources({}), {"CPU": 1, "GPU": 1})
        self.assertIn("no prediction", resources.choices[0].words)
        site = Site.from_mapping({"places": [{"name": "X1", "gpu": "H100"}]})
        resources = TrialResources(self.job, "batch=32,steps=10", available={"X1": 1}, site=site)
        self.assertIn("accelerator_type:X1", resources({}))

    def test_faults_are_named(self) -> None:
        for text, words in (("batch=32", "requires steps"), ("batch=0,steps=1", "batch"), ("gpus=2,steps=1", "gpus")):
            with self.assertRaisesRegex(InvalidRequest, words):
                TrialResources(self.job, text, available=AVAILABLE)({})
        for gpus in (0, -1, 0.5, "2", True, None):
            with self.assertRaisesRegex(InvalidRequest, "gpus must be an integer from 1"):
                TrialResources(self.job, "batch=32,steps=1", gpus=gpus, available=AVAILABLE)  # type: ignore[arg-type]
        for cpus in (-1, "2", math.nan, math.inf):
            with self.assertRaisesRegex(InvalidRequest, "cpus must be a number"):
                TrialResources(self.job, "batch=32,steps=1", cpus=cpus, available=AVAILABLE)  # type: ignore[arg-type]
        for options in (None, 64, {"batch": 64}):
            with self.assertRaisesRegex(InvalidRequest, "options must be text"):
                TrialResources(self.job, lambda config: options, available=AVAILABLE)({})  # type: ignore[arg-type, return-value]
        with self.assertRaisesRegex(InvalidRequest, "must be an mdot.Job"):
            TrialResources(lambda config: "x.job", "steps=1", available=AVAILABLE)({})  # type: ignore[arg-type, return-value]
        with self.assertRaisesRegex(Unpredictable, "no node states"):
            actor_options(self.job, "batch=8,mode=inference", available={})

    def test_parts_of_a_gpu_hold_as_many_actors_as_fit(self) -> None:
        for count in range(1, 300):
            units = int(mdot_ray._part(count) * 10000)  # as Ray counts
            self.assertLessEqual(10000 // units, count)
            self.assertGreaterEqual(10000 // units, min(count - 1, 0.9 * count) or 1)

    def test_actors_get_the_memory_that_they_need(self) -> None:
        """Law: actors on one GPU fit its memory together, and one more would not."""
        bert = mdot.Job.from_onnx(JOBS / "bert_base.onnx", dims={"sequence": 128})
        for job in (self.job, bert):
            for batch in (1, 16, 128, 1024):
                for gpu in AVAILABLE:
                    try:
                        found = actor_options(job, f"batch={batch},mode=inference", available={gpu: 1})
                    except Unpredictable:
                        self.assertFalse(mdot.predict(job, gpu, batch, mode="inference").reserved_gib * 1.5 < 4)
                        continue
                    answer = mdot.predict(job, gpu, batch, mode="inference")
                    need = answer.reserved_bytes + answer.memory_upper_bytes - answer.peak_memory_bytes
                    count = math.floor(1 / found["num_gpus"] + 1e-9)
                    self.assertLessEqual(count * need, answer.usable_bytes)
                    if count < 50:
                        self.assertGreater((count + 1) * need, answer.usable_bytes)
        with self.assertRaisesRegex(Unpredictable, "exceeds the memory"):
            actor_options(self.job, "batch=1000000,mode=inference", available=AVAILABLE)
        with self.assertRaisesRegex(Unpredictable, "X1"):
            actor_options(self.job, available={"X1": 1})
        self.assertEqual(actor_options(self.job, "batch=1,mode=inference", available=AVAILABLE)["accelerator_type"], "A100")


class RealCluster(Case):
    @classmethod
    def setUpClass(cls) -> None:
        cls.cluster = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 << 20}
        )
        for name, count in (("A100", 2), ("T4", 2)):
            cls.cluster.add_node(
                num_cpus=2, num_gpus=count, resources={f"accelerator_type:{name}": 1}, object_store_memory=80 << 20
            )
        ray.init(address=cls.cluster.address, log_to_driver=False, logging_level="ERROR")
        cls.cluster.wait_for_nodes(120)

    @classmethod
    def tearDownClass(cls) -> None:
        ray.shutdown()
        cls.cluster.shutdown()

    def type_of(self, node_id: str) -> str:
        node = next(node for node in ray.nodes() if node["NodeID"] == node_id)
        return next((name.partition(":")[2] for name in node["Resources"] if name.startswith("accelerator_type:")), "")

    def test_gpus_are_found(self) -> None:
        self.assertEqual(cluster_gpus(), {"A100": 2, "T4": 2})

    def test_tune_runs_trials_where_they_are_placed(self) -> None:
        def train(config):  # type: ignore[no-untyped-def]
            import ray

            tune.report({"node": ray.get_runtime_context().get_node_id(), "gpus": len(ray.get_gpu_ids())})

        large = mdot.largest_batch(self.job, "T4", precision="amp") + 8

        def epochs(config):  # type: ignore[no-untyped-def]
            return 90 if config["batch"] == large else 1  # the long trial leaves the T4 to the others

        resources = TrialResources(self.job, options)
        with tempfile.TemporaryDirectory() as folder:
            tuner = tune.Tuner(
                tune.with_resources(train, resources),
                param_space={"batch": tune.grid_search([large, 16, 32, 48]), "epochs": tune.sample_from(epochs)},
                run_config=tune.RunConfig(storage_path=folder, verbose=0),
            )
            results = tuner.fit()
        self.assertEqual(results.num_errors, 0, results.errors)
        placed = {result.config["batch"]: self.type_of(result.metrics["node"]) for result in results}
        self.assertEqual({result.metrics["gpus"] for result in results}, {1})
        self.assertEqual(placed[large], "A100")
        self.assertEqual([choice.accelerator for choice in resources.choices[-4:]], [placed[b] for b in (large, 16, 32, 48)])
        self.assertEqual(set(placed.values()), {"A100", "T4"})

    def test_actors_share_a_gpu_as_far_as_memory_permits(self) -> None:
        @ray.remote(num_cpus=0)
        class Server:
            def node(self):  # type: ignore[no-untyped-def]
                return ray.get_runtime_context().get_node_id()

        batch = next(b for b in range(64, 4096, 64) if actor_options(self.job, f"batch={b},mode=inference")["num_gpus"] > 0.26)
        found = actor_options(self.job, f"batch={batch},mode=inference")
        per_gpu = math.floor(1 / found["num_gpus"] + 1e-9)
        gpus = cluster_gpus()[found["accelerator_type"]]
        servers = [Server.options(**found).remote() for _ in range(per_gpu * gpus + 1)]
        nodes = [server.node.remote() for server in servers]
        ready, waiting = ray.wait(nodes, num_returns=per_gpu * gpus, timeout=120)
        self.assertEqual((len(ready), len(waiting)), (per_gpu * gpus, 1))
        self.assertEqual({self.type_of(ray.get(node)) for node in ready}, {found["accelerator_type"]})
        ready, waiting = ray.wait(waiting, timeout=2)
        self.assertEqual([ray.get(node) for node in ready], [])  # one more would exceed the memory
        for server in servers:
            ray.kill(server)


if __name__ == "__main__":
    unittest.main()
