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
import json
import random
import re
import secrets
import socket
import ssl
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
    """The service refused a request, or its answer is not mdotd's. `status` is that of HTTP, or 0 without a valid answer.
    `detail` names the member, the reason and the remedy."""

    def __init__(self, status: int, detail: str):
        super().__init__(f"{detail} (HTTP {status})" if status else detail)
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


MAX_HEAD_BYTES = 1 << 16
MAX_ANSWER_BYTES = 1 << 28


def _read_head(head: bytes) -> Tuple[int, int, bool]:
    """Status, bytes of the body, and whether the connection stays open. ValueError for another protocol."""
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = dict(line.lower().split(":", 1) for line in lines if ":" in line)
    found = re.fullmatch("HTTP/1[.]([01]) ([1-5][0-9][0-9])( .*)?", first)
    length = fields.get("content-length", "").strip()
    if found is None:
        raise ValueError(f"it begins with {first[:40]!r} instead of HTTP/1.1")
    if re.fullmatch("[0-9]{1,12}", length) is None:
        raise ValueError("it has no valid Content-Length")
    if int(length) > MAX_ANSWER_BYTES:
        raise ValueError(f"it has {length} bytes; the limit is {MAX_ANSWER_BYTES}")
    return int(found[2]), int(length), found[1] == "1" and fields.get("connection", "").strip() != "close"


def _members(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("it repeats a member")
    return found


def _refuse_number(text: str) -> float:
    raise ValueError(f"it has the number {text}")


def _parse(content: bytes, *names: str) -> Any:
    """The object in an answer, which has these members."""
    try:
        value = json.loads(content, object_pairs_hook=_members, parse_constant=_refuse_number)
        missing = [name for name in names if not isinstance(value, dict) or name not in value]
        if missing:
            raise ValueError(f"it lacks the member {missing[0]}")
    except (ValueError, RecursionError) as fault:
        raise MdotError(200, f"the answer is not mdotd's: {fault}") from None
    return value


def _json(value: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(value, allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as fault:
        raise MdotError(0, f"the request cannot be written as JSON: {fault}") from None


def _raise(status: int, body: bytes) -> None:
    try:
        detail = str(json.loads(body)["detail"])
    except (ValueError, KeyError, TypeError, RecursionError):
        detail = body[:200].decode("utf-8", "replace") or "the service gave no reason"
    raise (Unavailable if status in AGAIN else MdotError)(status, detail)


class _Common:
    def __init__(self, address: str = "/run/mdotd.sock", token: Optional[str] = None, timeout: float = 60.0,
                 attempts: int = 6, pause: float = 0.1):
        """`address` is the path of the Unix socket, http://127.0.0.1:PORT with a token, or https://HOST of a proxy. An answer
        takes at most `timeout` seconds. `attempts` are all requests for one answer; the n-th pause is about `pause` * 2^n
        seconds."""
        self.address = address
        self.timeout = timeout
        self.attempts = max(1, attempts)
        self.pause = pause
        self._tls = ssl.create_default_context() if address.startswith("https://") else None
        self._is_tcp = address.startswith(("http://", "https://"))
        if self._is_tcp:
            parts = urlsplit(address)
            self._host, self._port = parts.hostname or "127.0.0.1", parts.port or (443 if self._tls else 80)
        fields = ["Host: " + (self._host if self._tls else "mdotd"), "User-Agent: mdot-client/0.4"]
        if token is not None:
            fields.append("Authorization: Bearer " + token)
        self._fields = "".join(field + "\r\n" for field in fields)

    def _message(self, method: str, target: str, body: bytes) -> bytes:
        return f"{method} {target} HTTP/1.1\r\n{self._fields}Content-Length: {len(body)}\r\n\r\n".encode() + body

    def _failed(self, fault: BaseException) -> Unavailable:
        return Unavailable(0, f"{self.address}: {str(fault) or type(fault).__name__}")

    def _foreign(self, fault: ValueError) -> MdotError:
        return MdotError(0, f"{self.address}: the answer is not mdotd's: {fault}")

    def _pause_of(self, attempt: int) -> float:
        return self.pause * 2 ** attempt * (0.5 + random.random())


class Client(_Common):
    """A client that keeps one connection. Use it in `with`, or close it."""
    _connection: Optional[socket.socket] = None

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> socket.socket:
        if not self._is_tcp:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        else:
            connection = socket.create_connection((self._host, self._port), self.timeout)
        try:
            connection.settimeout(self.timeout)
            if not self._is_tcp:
                connection.connect(self.address)
            return self._tls.wrap_socket(connection, server_hostname=self._host) if self._tls else connection
        except BaseException:
            connection.close()
            raise

    def _once(self, method: str, target: str, body: bytes) -> Tuple[int, bytes]:
        end = time.monotonic() + self.timeout
        if self._connection is None:
            self._connection = self._connect()
        connection, found = self._connection, bytearray()
        connection.sendall(self._message(method, target, body))

        def receive() -> None:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            connection.settimeout(left)
            part = connection.recv(1 << 16)
            if not part:
                raise ConnectionError("the connection was closed before the end of the answer")
            found.extend(part)

        while b"\r\n\r\n" not in found:
            if len(found) > MAX_HEAD_BYTES:
                raise ValueError(f"its head has more than {MAX_HEAD_BYTES} bytes")
            receive()
        begin = found.index(b"\r\n\r\n") + 4
        status, length, is_kept = _read_head(bytes(found[:begin - 4]))
        while len(found) < begin + length:
            receive()
        if not is_kept or len(found) > begin + length:
            self.close()
        return status, bytes(found[begin:begin + length])

    def request(self, method: str, target: str, body: Optional[bytes] = None) -> bytes:
        """Sends a request as often as allowed, and returns the body of the answer. Raises MdotError."""
        reason: Exception = Unavailable(0, "no attempt")
        for attempt in range(self.attempts):
            if attempt > 0:
                time.sleep(self._pause_of(attempt - 1))
            try:
                status, content = self._once(method, target, body or b"")
            except OSError as fault:
                self.close()
                reason = self._failed(fault)
                continue
            except ValueError as fault:
                self.close()
                raise self._foreign(fault) from None
            if status == 200:
                return content
            try:
                _raise(status, content)
            except Unavailable as refused:
                reason = refused
        raise reason

    def _post(self, path: str, value: Mapping[str, Any], *names: str) -> Any:
        return _parse(self.request("POST", path, _json(value)), *names)

    def _ask(self, path: str, job: Job, value: Mapping[str, Any], *names: str) -> Any:
        try:
            return self._post(path, value, *names)
        except MdotError as refused:
            if refused.status != 404 or not isinstance(job, AddedJob):
                raise
        self.request("POST", "/v1/jobs?" + job.query, job.body)
        return self._post(path, value, *names)

    def add_job(self, job: Union[str, bytes], dims: Mapping[str, Union[int, str]] = {}, frozen: Sequence[str] = (),
                trained: Sequence[str] = ()) -> AddedJob:
        """Sends a job, an ONNX or `.job` file or its bytes. The result is its digest."""
        body, query = _read_job(job), _job_query(dims, frozen, trained)
        return _added(_parse(self.request("POST", "/v1/jobs?" + query, body), "job", "network", "warnings"), body, query)

    def predict(self, job: Job, configurations: Optional[Sequence[Mapping[str, Any]]] = None, **options: Any) -> PredictAnswer:
        """Predicts configurations, or all combinations of the options' lists."""
        return self._ask("/v1/predict", job, _predict_body(job, configurations, options), "predictions")

    def plan(self, job: Job, gpus: Sequence[Union[str, Mapping[str, Any]]], **more: Any) -> PlanAnswer:
        """Searches layouts; `more` are the other members of the request, for example sizes=[8, 16]."""
        return self._ask("/v1/plan", job, {"job": str(job), "gpus": list(gpus), **more}, "layouts")

    def observe(self, steps: Sequence[Mapping[str, Any]] = (), outcomes: Sequence[Mapping[str, Any]] = ()) -> ObservationsAnswer:
        """Keeps measured steps and outcomes; they are on the disk when it returns."""
        job = next((step["job"] for step in steps if isinstance(step["job"], AddedJob)), "")
        return self._ask("/v1/observations", job, _steps_body(steps, outcomes), "steps", "outcomes")

    def durations(self, jobs: Sequence[Mapping[str, Any]], quantiles: Sequence[float] = ()) -> DurationAnswer:
        return self._post("/v1/durations", {"jobs": list(jobs), "quantiles": list(quantiles)}, "estimates")

    def gpus(self) -> List[Dict[str, Any]]:
        return _parse(self.request("GET", "/v1/gpus"), "gpus")["gpus"]


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
        writer.write(self._message(method, target, body))
        await writer.drain()
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            raise ValueError(f"its head has more than {MAX_HEAD_BYTES} bytes") from None
        status, length, is_kept = _read_head(head[:-4])
        return status, await reader.readexactly(length), is_kept

    async def _connect(self) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._is_tcp:
            return await asyncio.open_connection(self._host, self._port, ssl=self._tls)
        return await asyncio.open_unix_connection(self.address)

    async def _once(self, method: str, target: str, body: bytes) -> Tuple[int, bytes]:
        reader, writer = self._idle.pop() if self._idle else await asyncio.wait_for(self._connect(), self.timeout)
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
            except (OSError, EOFError, asyncio.TimeoutError) as fault:
                await self.close()  # the other idle connections are of the same age
                reason = self._failed(fault)
                continue
            except ValueError as fault:
                raise self._foreign(fault) from None
            if status == 200:
                return content
            try:
                _raise(status, content)
            except Unavailable as refused:
                reason = refused
        raise reason

    async def _post(self, path: str, value: Mapping[str, Any], *names: str) -> Any:
        return _parse(await self.request("POST", path, _json(value)), *names)

    async def _ask(self, path: str, job: Job, value: Mapping[str, Any], *names: str) -> Any:
        try:
            return await self._post(path, value, *names)
        except MdotError as refused:
            if refused.status != 404 or not isinstance(job, AddedJob):
                raise
        await self.request("POST", "/v1/jobs?" + job.query, job.body)
        return await self._post(path, value, *names)

    async def add_job(self, job: Union[str, bytes], dims: Mapping[str, Union[int, str]] = {}, frozen: Sequence[str] = (),
                      trained: Sequence[str] = ()) -> AddedJob:
        body, query = _read_job(job), _job_query(dims, frozen, trained)
        return _added(_parse(await self.request("POST", "/v1/jobs?" + query, body), "job", "network", "warnings"), body, query)

    async def predict(self, job: Job, configurations: Optional[Sequence[Mapping[str, Any]]] = None,
                      **options: Any) -> PredictAnswer:
        return await self._ask("/v1/predict", job, _predict_body(job, configurations, options), "predictions")

    async def plan(self, job: Job, gpus: Sequence[Union[str, Mapping[str, Any]]], **more: Any) -> PlanAnswer:
        return await self._ask("/v1/plan", job, {"job": str(job), "gpus": list(gpus), **more}, "layouts")

    async def observe(self, steps: Sequence[Mapping[str, Any]] = (),
                      outcomes: Sequence[Mapping[str, Any]] = ()) -> ObservationsAnswer:
        job = next((step["job"] for step in steps if isinstance(step["job"], AddedJob)), "")
        return await self._ask("/v1/observations", job, _steps_body(steps, outcomes), "steps", "outcomes")

    async def durations(self, jobs: Sequence[Mapping[str, Any]], quantiles: Sequence[float] = ()) -> DurationAnswer:
        return await self._post("/v1/durations", {"jobs": list(jobs), "quantiles": list(quantiles)}, "estimates")

    async def gpus(self) -> List[Dict[str, Any]]:
        return _parse(await self.request("GET", "/v1/gpus"), "gpus")["gpus"]
