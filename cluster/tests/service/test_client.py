"""The Python client against mdotd: answers, refusals, restarts, forgotten jobs, and many tasks at once."""
import asyncio
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from mdot_client import AsyncClient, Client, MdotError, Unavailable

MDOTD, PREDICTOR, JOBS = (os.environ[name] for name in ("MDOTD", "MDOT_PREDICTOR", "MDOT_EXAMPLE_JOBS"))
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


class HostileServer:
    """Sends the same bytes to every request on a Unix socket, whole or one after another, and then closes or waits."""

    def __init__(self, path, answer, waits=False, drips=False):
        self.answer, self.waits, self.drips, self.ended = answer, waits, drips, threading.Event()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(16)
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while not self.ended.is_set():
            connection, _ = self.listener.accept()
            with connection:
                connection.settimeout(10)
                try:
                    if not self.ended.is_set() and connection.recv(1 << 16):
                        for at in range(0, len(self.answer), 1 if self.drips else max(1, len(self.answer))):
                            connection.sendall(self.answer[at:] if not self.drips else self.answer[at:at + 1])
                            self.ended.wait(0.02 if self.drips else 0)
                    if self.waits:
                        connection.recv(1)  # until the client gives up
                except OSError:
                    pass

    def close(self):
        self.ended.set()
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(self.listener.getsockname())
        self.thread.join()
        self.listener.close()


def framed(body, status="200 OK", *fields):
    return "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *fields, "", ""]).encode() + body


class TestHostileServers(unittest.TestCase):
    """Whatever a server sends, both clients raise MdotError, or Unavailable where another attempt may succeed."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.count = folder.name, 0

    def faults_of(self, answer, call, timeout=5.0, **behaviour):
        self.count += 1
        path = f"{self.folder}/{self.count}"
        server = HostileServer(path, answer, **behaviour)

        async def ask():
            async with AsyncClient(path, attempts=2, pause=0, timeout=timeout) as client:
                return await call(client)

        def ask_once():
            with Client(path, attempts=2, pause=0, timeout=timeout) as client:
                return call(client)

        faults = []
        for run in (ask_once, lambda: asyncio.run(ask())):
            try:
                faults.append(run())
            except MdotError as fault:
                faults.append(fault)
        server.close()
        return faults

    def expect(self, kind, words, answer, call=lambda client: client.gpus(), **behaviour):
        for fault in self.faults_of(answer, call, **behaviour):
            self.assertIs(type(fault), kind, (answer[:80], fault))
            self.assertRegex(str(fault), words)

    def test_a_valid_answer_is_read_in_any_pieces(self):
        answer = framed(b'{"gpus": [{"name": "T4"}]}')
        for behaviour in ({}, {"drips": True}, {"waits": True}):
            self.assertEqual(self.faults_of(answer, lambda client: client.gpus(), **behaviour), [[{"name": "T4"}]] * 2)

    def test_answers_cut_off_anywhere(self):
        answer = framed(b'{"gpus": []}', "200 OK", "Server: x")
        for cut in range(len(answer)):
            self.expect(Unavailable, "closed|[0-9]+ bytes read|reset", answer[:cut])

    def test_answers_of_another_protocol(self):
        for words, answer in (
                ("HTTP/1.1", b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), ("HTTP/1.1", b"\xff\xfe\r\n\r\n"), ("HTTP/1.1", b"\r\n\r\n"),
                ("HTTP/1.1", b"HTTP/2 200\r\n\r\n"), ("HTTP/1.1", b"HTTP/1.1 999 x\r\nContent-Length: 0\r\n\r\n"),
                ("Content-Length", b"HTTP/1.1 200 OK\r\n\r\n{}"), ("limit", framed(b"").replace(b": 0", b": 99999999999")),
                ("Content-Length", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"),
                *(("Content-Length", framed(b"").replace(b": 0", b": " + bad)) for bad in (b"-1", b"1_0", b"\xb2", b"9" * 40, b"x")),
                ("head has more", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200000)):
            self.expect(MdotError, f"the answer is not mdotd's: .*{words}", answer)

    def test_answers_that_are_no_answer_of_mdotd(self):
        calls = {"gpus": lambda c: c.gpus(), "predictions": lambda c: c.predict("0" * 64, gpu="T4"),
                 "layouts": lambda c: c.plan("0" * 64, ["T4"]), "outcomes": lambda c: c.observe(),
                 "estimates": lambda c: c.durations([{}]), "network": lambda c: c.add_job(b"x")}
        bodies = [b"", b"null", b"[]", b"7", b'"gpus"', b"<html>", b"{", b"[" * 100000, b'{"a":' * 100000, b"\xff", b'{"a": 1}',
                  b'{"a": 1, "a": 1}', b'{"a": NaN}', b'{"a": -Infinity}', b'{"a": ' + b"9" * 5000 + b"}"]
        for call in calls.values():
            for body in bodies:
                self.expect(MdotError, "the answer is not mdotd's: ", framed(body), call)
        for member, call in calls.items():
            names = {"gpus", "predictions", "layouts", "steps", "outcomes", "estimates", "job", "network", "warnings"} - {member}
            body = json.dumps({name: "x" for name in names}).encode()
            self.expect(MdotError, f"lacks the member {member}", framed(body), call)

    def test_refusals_of_any_form(self):
        for body, words in ((b'{"detail": "why"}', "why"), (b'{"detail": 5}', "5"), (b"plain", "plain"), (b"", "no reason"),
                            (b"[1]", "1"), (b"\xff\xfe", "HTTP 4"), (b'{"a":' * 100000, "HTTP 4")):
            for status in ("400 Bad", "404 None", "418 Odd", "499"):
                self.expect(MdotError, words, framed(body, status))
            self.expect(Unavailable, "HTTP 503", framed(body, "503 Busy"))

    def test_servers_that_never_end(self):
        slow = framed(b'{"gpus": []}' + b" " * 10000)
        for answer in (b"", slow[:1], slow[:30], slow[:100]):
            self.expect(Unavailable, "timed out|TimeoutError", answer, timeout=0.2, waits=True)
        self.expect(Unavailable, "timed out|TimeoutError", slow, timeout=0.2, drips=True)

    def test_requests_that_are_no_json(self):
        for value in (float("nan"), float("inf"), {1}, b"x"):
            self.expect(MdotError, "the request cannot be written as JSON", b"", lambda c: c.predict("0" * 64, gpu="T4", batch=value))

    def test_wrong_tls(self):
        with socket.create_server(("127.0.0.1", 0)) as plain:
            address = f"https://127.0.0.1:{plain.getsockname()[1]}"

            def serve():
                while True:
                    connection, _ = plain.accept()
                    with connection:
                        if connection.recv(1 << 12) == b"end":
                            return
                        connection.sendall(framed(b'{"gpus": []}'))

            thread = threading.Thread(target=serve)
            thread.start()
            with self.assertRaisesRegex(Unavailable, "(?i)ssl|tls"):
                Client(address, attempts=2, pause=0).gpus()
            with self.assertRaisesRegex(Unavailable, "(?i)ssl|tls"):
                asyncio.run(AsyncClient(address, attempts=2, pause=0).gpus())
            with socket.create_connection(plain.getsockname()) as last:
                last.sendall(b"end")
            thread.join()


if __name__ == "__main__":
    unittest.main()
