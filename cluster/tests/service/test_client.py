"""The Python client against mdotd: answers, refusals, restarts, forgotten jobs, and many tasks at once."""
import asyncio
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from mdot_client import AsyncClient, Client, MdotError, Unavailable

MDOTD, PREDICTOR, JOBS = (os.environ[name] for name in ("MDOTD", "MDOT_PREDICTOR", "MDOT_JOBS"))
RESNET, BERT = JOBS + "/resnet50.onnx", JOBS + "/bert_base.onnx"


class TestClient(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.socket = self.folder.name + "/s"
        self.process = None
        self.start()

    def tearDown(self):
        self.stop(signal.SIGKILL)
        self.folder.cleanup()

    def start(self, *options):
        self.process = subprocess.Popen([MDOTD, "--socket", self.socket, "--model", PREDICTOR, "--folder", self.folder.name,
                                         "--store", self.folder.name + "/steps.store", *options])

    def stop(self, number):
        self.process.send_signal(number)
        self.process.wait()

    def client(self, **named):
        return Client(self.socket, attempts=10, pause=0.05, **named)

    def test_answers(self):
        with self.client() as client:
            job = client.add_job(BERT, dims={"sequence": 128})
            answer = client.predict(job, gpu=["A100", "T4"], batch=[8, 16])
            self.assertEqual([(p["gpu"][:2], p["batch"]) for p in answer["predictions"]],
                             [("A1", 8), ("A1", 16), ("T4", 8), ("T4", 16)])
            several = client.predict(job, [{"gpu": "T4", "batch": 8}, {"gpu": "T4", "precision": "fp8"}])["predictions"]
            self.assertEqual(several[0], answer["predictions"][2])
            self.assertIn("fp8", several[1]["error"]["detail"])
            self.assertTrue(client.plan(job, ["A100"], sizes=[1, 2])["layouts"])
            self.assertEqual(client.observe([{"job": job, "gpu": "T4", "batch": 8, "step_ms": 100}])["steps"]["added"], 1)
            self.assertEqual(len(client.durations([{"user": "anna"}], [.5])["estimates"][0]["quantiles"]), 1)
            self.assertIn("T4", [gpu["name"] for gpu in client.gpus()])

    def test_refusals_are_not_repeated(self):
        with self.client() as client:
            job = client.add_job(RESNET)
            begin = time.monotonic()
            with self.assertRaises(MdotError) as refused:
                client.predict(job, gpu="T4", precision="no such")
            self.assertEqual(refused.exception.status, 422)
            self.assertLess(time.monotonic() - begin, 20)
            with self.assertRaises(MdotError) as refused:
                client.predict("0" * 64, gpu="T4")
            self.assertEqual(refused.exception.status, 404)
            with self.assertRaises(ValueError):
                client.predict(job)

    def test_a_restart_is_not_noticed(self):
        with self.client() as client:
            job = client.add_job(RESNET)
            expected = client.predict(job, gpu="T4")
            for number in (signal.SIGKILL, signal.SIGTERM):
                self.stop(number)
                later = threading.Timer(0.3, self.start)
                later.start()
                self.assertEqual(client.predict(job, gpu="T4"), expected)  # the job is sent again
                later.join()
            self.stop(signal.SIGTERM)
            with self.assertRaises(Unavailable):
                Client(self.socket, attempts=2, pause=0.01).gpus()
            self.start()

    def test_steps_are_kept_once(self):
        with self.client() as client:
            job = client.add_job(RESNET)
            once = client._once

            def twice(*arguments):  # the answer of the first attempt is lost
                once(*arguments)
                client._once = once
                raise ConnectionResetError("lost")

            client._once = twice
            self.assertEqual(client.observe([{"job": job, "gpu": "T4", "batch": 8, "step_ms": 100}])["steps"],
                             {"added": 0, "known": 1})

    def test_many_tasks(self):
        async def run():
            async with AsyncClient(self.socket, attempts=10, pause=0.05) as client:
                job = await client.add_job(pathlib.Path(RESNET).read_bytes())
                answers = await asyncio.gather(*(client.predict(job, gpu="A100", batch=1 + i) for i in range(50)))
                self.assertEqual([a["predictions"][0]["batch"] for a in answers], list(range(1, 51)))
                with self.assertRaises(MdotError):
                    await client.predict(job, gpu="none")
                self.assertEqual((await client.observe([{"job": job, "gpu": "T4", "batch": 8, "step_ms": 9}]))["steps"]["added"], 1)
                self.stop(signal.SIGTERM)
                self.start()
                self.assertTrue((await client.predict(job, gpu="T4"))["predictions"])

        asyncio.run(run())


if __name__ == "__main__":
    unittest.main()
