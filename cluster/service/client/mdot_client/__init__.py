"""A client of mdotd, predictions over HTTP, on the standard library alone.

    client = Client("/run/mdotd.sock")
    job = client.add_job("bert.onnx", dims={"sequence": 128})
    answer = client.predict(job, gpu=["A100", "H100"], batch=[16, 32], precision="bf16")
    for p in answer["predictions"]:
        print(p["gpu"], p["batch"], p["step_ms"])

AsyncClient has the same methods as coroutines. Both send a request again, after growing pauses, if the service is busy,
is restarting or closed an idle connection. That is safe: questions change nothing, a job has its digest as a name, and
each observed step gets a random identity before it is first sent. A job that the service has forgotten is sent again.

A client belongs to one thread; an AsyncClient to one event loop, where any number of tasks may share it.
"""
import asyncio
import http.client
import json
import random
import secrets
import socket
import time
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, TypedDict, Union
from urllib.parse import quote, urlsplit

__all__ = ["AsyncClient", "Client", "DurationAnswer", "Estimate", "MdotError", "ObservationsAnswer", "PlanAnswer",
           "PredictAnswer", "Prediction", "Unavailable"]


class _Prediction(TypedDict):
    gpu: str
    batch: int
    precision: str
    gpus: int
    step_ms: float
    lower_ms: float
    upper_ms: float
    samples_per_second: float
    peak_memory_bytes: int
    reserved_bytes: int
    usable_bytes: int
    fits: bool
    warnings: List[str]


class Prediction(_Prediction, total=False):
    """One configuration's answer, in the form of `mdot predict --json`; openapi.json lists all members. A refused
    configuration among several has `error` alone."""
    tokens_per_second: float
    energy_joules: float
    average_watts: float
    error: Dict[str, str]


class PredictAnswer(TypedDict, total=False):
    mdot: str
    predictor: str
    compiler: str
    calibration: str
    calibrated_by: int
    job: str
    predictions: List[Prediction]


class PlanAnswer(TypedDict, total=False):
    mdot: str
    predictor: str
    job: str
    priced: int
    cancelled: bool
    layouts: List[Dict[str, Any]]


class ObservationsAnswer(TypedDict):
    mdot: str
    steps: Dict[str, int]
    outcomes: Dict[str, int]


class Estimate(TypedDict):
    median_s: float
    early_failure: float
    failure_s: float
    key: str
    weight: float
    quantiles: List[Dict[str, float]]


class DurationAnswer(TypedDict):
    mdot: str
    estimates: List[Estimate]


class MdotError(Exception):
    """The service refused a request. `status` is that of HTTP, and `detail` names the member, the reason and the remedy."""

    def __init__(self, status: int, detail: str):
        super().__init__(f"{detail} (HTTP {status})")
        self.status = status
        self.detail = detail


class Unavailable(MdotError):
    """The service did not answer, or was busy, at every attempt."""


AGAIN = (429, 502, 503)  # a later attempt may succeed
Job = Union[str, "AddedJob"]


class AddedJob(str):
    """The digest of a job, with the file's bytes, which are sent again if the service has forgotten the job."""
    body: bytes
    query: str
    network: str
    warnings: List[str]


def _job_query(dims: Mapping[str, Union[int, str]], frozen: Sequence[str], trained: Sequence[str]) -> str:
    pairs = [("dim", f"{name}={value}") for name, value in dims.items()]
    pairs += [("frozen", name) for name in frozen] + [("trained", name) for name in trained]
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in pairs)


def _read_job(job: Union[str, bytes]) -> bytes:
    if isinstance(job, bytes):
        return job
    with open(job, "rb") as file:
        return file.read()


def _added(answer: Mapping[str, Any], body: bytes, query: str) -> AddedJob:
    job = AddedJob(answer["job"])
    job.body, job.query = body, query
    job.network, job.warnings = answer["network"], answer["warnings"]
    return job


def _predict_body(job: Job, configurations: Optional[Sequence[Mapping[str, Any]]], options: Mapping[str, Any]) -> Dict[str, Any]:
    if (configurations is None) == (not options):
        raise ValueError("give either configurations or options of one, for example gpu='A100'")
    if configurations is None:
        return {"job": str(job), "configuration": dict(options)}
    return {"job": str(job), "configurations": list(configurations)}


def _steps_body(steps: Sequence[Mapping[str, Any]], outcomes: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    named = [{"uid": secrets.token_hex(8), **step, "job": str(step["job"])} for step in steps]
    return {"steps": named, "outcomes": list(outcomes)}


def _result(status: int, body: bytes) -> Any:
    if status == 200:
        return json.loads(body)
    try:
        detail = json.loads(body)["detail"]
    except (ValueError, KeyError, TypeError):
        detail = body[:200].decode("utf-8", "replace")
    raise (Unavailable if status in AGAIN else MdotError)(status, detail)


class _Common:
    def __init__(self, address: str = "/run/mdotd.sock", token: Optional[str] = None, timeout: float = 60.0,
                 attempts: int = 6, pause: float = 0.1):
        """`address` is the path of the Unix socket, or http://127.0.0.1:PORT with a token. `attempts` are all requests for one
        answer; the n-th pause is about `pause` * 2^n seconds."""
        self.address = address
        self.timeout = timeout
        self.attempts = max(1, attempts)
        self.pause = pause
        self._headers = {"Host": "mdotd", "User-Agent": "mdot-client/0.4"}
        if token is not None:
            self._headers["Authorization"] = "Bearer " + token
        self._is_tcp = address.startswith("http://")
        if self._is_tcp:
            parts = urlsplit(address)
            self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80

    def _pause_of(self, attempt: int) -> float:
        return self.pause * 2 ** attempt * (0.5 + random.random())


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float):
        super().__init__("mdotd", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Client(_Common):
    """A client that keeps one connection. Use it in `with`, or close it."""
    _connection: Optional[http.client.HTTPConnection] = None

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _once(self, method: str, target: str, body: Optional[bytes]) -> Tuple[int, bytes]:
        if self._connection is None:
            self._connection = (http.client.HTTPConnection(self._host, self._port, timeout=self.timeout) if self._is_tcp
                                else _UnixConnection(self.address, self.timeout))
        self._connection.request(method, target, body, self._headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.will_close:
            self.close()
        return answer.status, content

    def request(self, method: str, target: str, body: Optional[bytes] = None) -> bytes:
        """Sends a request as often as allowed, and returns the body of the answer. Raises MdotError."""
        reason: Exception = Unavailable(0, "no attempt")
        for attempt in range(self.attempts):
            if attempt > 0:
                time.sleep(self._pause_of(attempt - 1))
            try:
                status, content = self._once(method, target, body)
            except (OSError, http.client.HTTPException) as fault:
                self.close()
                reason = Unavailable(0, f"{self.address}: {fault or type(fault).__name__}")
                continue
            if status == 200:
                return content
            try:
                _result(status, content)
            except Unavailable as refused:
                reason = refused
        raise reason

    def _post(self, path: str, value: Mapping[str, Any]) -> Any:
        return json.loads(self.request("POST", path, json.dumps(value).encode()))

    def _ask(self, path: str, job: Job, value: Mapping[str, Any]) -> Any:
        try:
            return self._post(path, value)
        except MdotError as refused:
            if refused.status != 404 or not isinstance(job, AddedJob):
                raise
        self.request("POST", "/v1/jobs?" + job.query, job.body)
        return self._post(path, value)

    def add_job(self, job: Union[str, bytes], dims: Mapping[str, Union[int, str]] = {}, frozen: Sequence[str] = (),
                trained: Sequence[str] = ()) -> AddedJob:
        """Sends a job, an ONNX or `.job` file or its bytes. The result is its digest."""
        body, query = _read_job(job), _job_query(dims, frozen, trained)
        return _added(json.loads(self.request("POST", "/v1/jobs?" + query, body)), body, query)

    def predict(self, job: Job, configurations: Optional[Sequence[Mapping[str, Any]]] = None, **options: Any) -> PredictAnswer:
        """Predicts configurations, or all combinations of the options' lists."""
        return self._ask("/v1/predict", job, _predict_body(job, configurations, options))

    def plan(self, job: Job, gpus: Sequence[Union[str, Mapping[str, Any]]], **more: Any) -> PlanAnswer:
        """Searches layouts; `more` are the other members of the request, for example sizes=[8, 16]."""
        return self._ask("/v1/plan", job, {"job": str(job), "gpus": list(gpus), **more})

    def observe(self, steps: Sequence[Mapping[str, Any]] = (), outcomes: Sequence[Mapping[str, Any]] = ()) -> ObservationsAnswer:
        """Keeps measured steps and outcomes; they are on the disk when it returns."""
        job = next((step["job"] for step in steps if isinstance(step["job"], AddedJob)), "")
        return self._ask("/v1/observations", job, _steps_body(steps, outcomes))

    def durations(self, jobs: Sequence[Mapping[str, Any]], quantiles: Sequence[float] = ()) -> DurationAnswer:
        return self._post("/v1/durations", {"jobs": list(jobs), "quantiles": list(quantiles)})

    def gpus(self) -> List[Dict[str, Any]]:
        return json.loads(self.request("GET", "/v1/gpus"))["gpus"]


class AsyncClient(_Common):
    """The same with coroutines; each request in flight has a connection, and idle ones are kept."""

    def __init__(self, *arguments: Any, **named: Any):
        super().__init__(*arguments, **named)
        self._idle: List[Tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *unused: object) -> None:
        await self.close()

    async def close(self) -> None:
        for _, writer in self._idle:
            writer.close()
        self._idle.clear()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, method: str, target: str,
                        body: bytes) -> Tuple[int, bytes, bool]:
        lines = [f"{method} {target} HTTP/1.1", *(f"{k}: {v}" for k, v in self._headers.items()), f"Content-Length: {len(body)}"]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode() + body)
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
        content = await reader.readexactly(int(fields["content-length"]))
        return int(head[0].split(" ")[1]), content, fields.get("connection") != "close"

    async def _once(self, method: str, target: str, body: bytes) -> Tuple[int, bytes]:
        if self._idle:
            reader, writer = self._idle.pop()
        elif self._is_tcp:
            reader, writer = await asyncio.open_connection(self._host, self._port)
        else:
            reader, writer = await asyncio.open_unix_connection(self.address)
        try:
            status, content, is_kept = await asyncio.wait_for(self._exchange(reader, writer, method, target, body), self.timeout)
        except BaseException:
            writer.close()
            raise
        if is_kept:
            self._idle.append((reader, writer))
        else:
            writer.close()
        return status, content

    async def request(self, method: str, target: str, body: Optional[bytes] = None) -> bytes:
        reason: Exception = Unavailable(0, "no attempt")
        for attempt in range(self.attempts):
            if attempt > 0:
                await asyncio.sleep(self._pause_of(attempt - 1))
            try:
                status, content = await self._once(method, target, body or b"")
            except (OSError, EOFError, asyncio.TimeoutError, KeyError, ValueError) as fault:
                await self.close()  # the other idle connections are of the same age
                reason = Unavailable(0, f"{self.address}: {fault or type(fault).__name__}")
                continue
            if status == 200:
                return content
            try:
                _result(status, content)
            except Unavailable as refused:
                reason = refused
        raise reason

    async def _post(self, path: str, value: Mapping[str, Any]) -> Any:
        return json.loads(await self.request("POST", path, json.dumps(value).encode()))

    async def _ask(self, path: str, job: Job, value: Mapping[str, Any]) -> Any:
        try:
            return await self._post(path, value)
        except MdotError as refused:
            if refused.status != 404 or not isinstance(job, AddedJob):
                raise
        await self.request("POST", "/v1/jobs?" + job.query, job.body)
        return await self._post(path, value)

    async def add_job(self, job: Union[str, bytes], dims: Mapping[str, Union[int, str]] = {}, frozen: Sequence[str] = (),
                      trained: Sequence[str] = ()) -> AddedJob:
        body, query = _read_job(job), _job_query(dims, frozen, trained)
        return _added(json.loads(await self.request("POST", "/v1/jobs?" + query, body)), body, query)

    async def predict(self, job: Job, configurations: Optional[Sequence[Mapping[str, Any]]] = None,
                      **options: Any) -> PredictAnswer:
        return await self._ask("/v1/predict", job, _predict_body(job, configurations, options))

    async def plan(self, job: Job, gpus: Sequence[Union[str, Mapping[str, Any]]], **more: Any) -> PlanAnswer:
        return await self._ask("/v1/plan", job, {"job": str(job), "gpus": list(gpus), **more})

    async def observe(self, steps: Sequence[Mapping[str, Any]] = (),
                      outcomes: Sequence[Mapping[str, Any]] = ()) -> ObservationsAnswer:
        job = next((step["job"] for step in steps if isinstance(step["job"], AddedJob)), "")
        return await self._ask("/v1/observations", job, _steps_body(steps, outcomes))

    async def durations(self, jobs: Sequence[Mapping[str, Any]], quantiles: Sequence[float] = ()) -> DurationAnswer:
        return await self._post("/v1/durations", {"jobs": list(jobs), "quantiles": list(quantiles)})

    async def gpus(self) -> List[Dict[str, Any]]:
        return json.loads(await self.request("GET", "/v1/gpus"))["gpus"]
