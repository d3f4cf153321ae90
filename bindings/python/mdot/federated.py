"""Time of a federated round from its clients' predictions, links and shares of the data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from mdot.job import _warn
from mdot.library.errors import InvalidArgumentError
from mdot.prediction import Prediction


MOST = 1e15
"""Samples, epochs, bytes and seconds beyond this are mistakes."""


@dataclasses.dataclass(frozen=True)
class Client:
    """A participant of a federated training."""

    name: str
    prediction: Prediction
    """Its step: `mdot.predict` with its job, device and batch."""
    samples: int
    """Its data, which it trains on in each round."""
    up_mbps: float
    """Its link to the server, in 10^6 bits per second."""
    down_mbps: float
    epochs: int = 1
    """Passes over its data in a round."""


@dataclasses.dataclass(frozen=True)
class ClientTime:
    """A client's part of a round, in seconds."""

    name: str
    download_s: float
    train_s: float
    upload_s: float
    seconds: float
    lower_s: float
    upper_s: float


@dataclasses.dataclass(frozen=True)
class Round:
    """A round, from the server's model to its next one."""

    seconds: float
    lower_s: float
    upper_s: float
    """Bounds from the 90 % intervals of the clients' steps, as if all of them lay at one end."""
    straggler: str
    """The last client that the server waits for."""
    waiting_share: float
    """Part of the counted clients' time that they wait for the straggler."""
    clients: tuple[ClientTime, ...]
    """By the end of their parts; the server aggregates the first `wait_for`."""


def federated_round(
    clients: Sequence[Client], *, model_bytes: float | None = None, server_mbps: float = math.inf, wait_for: int | None = None
) -> Round:
    """The time of a synchronous round: each client gets the model, trains on its data, and sends its update:

        phone = mdot.Client("phone", mdot.predict("mobilenet_v2", "T4", 16), samples=600, up_mbps=5, down_mbps=20)
        mdot.federated_round([phone, …]).straggler

    `model_bytes` are sent each way (default: the trained parameters in fp32). All clients use the server's link of
    `server_mbps` at once, in fair shares. The server goes on after the first `wait_for` updates (default: all).
    """
    if not isinstance(clients, Sequence) or not all(isinstance(client, Client) for client in clients):
        raise InvalidArgumentError(f"federated_round takes a list of mdot.Client, not {clients!r:.60}")
    names = {client.name for client in clients if isinstance(client.name, str)}
    if not clients or len(names) < len(clients):
        raise InvalidArgumentError("a round needs clients with different names")
    for client in clients:
        if not isinstance(client.prediction, Prediction):
            raise InvalidArgumentError(f"{client.name}: prediction must be an answer of mdot.predict, not {client.prediction!r:.60}")
        if client.prediction.configuration.mode == "inference":
            raise InvalidArgumentError(f"{client.name}: the prediction is an inference; a client trains: mode=\"train\"")
        if not client.prediction.fits:
            _warn(f"{client.name}: the training does not fit its device's memory")
        amounts, links = (client.samples, client.epochs), (client.up_mbps, client.down_mbps)
        if not all(_is_number(number) and number > 0 for number in (*amounts, *links)) or max(amounts) > MOST:
            raise InvalidArgumentError(f"{client.name}: samples and epochs must be above 0 and at most {MOST:g}, and links above 0")
    count = len(clients) if wait_for is None else wait_for
    if not isinstance(count, int) or not 1 <= count <= len(clients) or not _is_number(server_mbps) or not server_mbps > 0:
        raise InvalidArgumentError(f"wait_for must be a whole number from 1 to {len(clients)}, and server_mbps above 0")
    if model_bytes is not None and not (_is_number(model_bytes) and 0 <= model_bytes <= MOST):
        raise InvalidArgumentError(f"model_bytes must be from 0 to {MOST:g}")
    down, up = (_fair_rates([getattr(client, link) for client in clients], server_mbps) for link in ("down_mbps", "up_mbps"))
    times = []
    for client, down_mbps, up_mbps in zip(clients, down, up):
        p = client.prediction
        megabits = 8e-6 * (4 * p.parameters if model_bytes is None else model_bytes)
        steps = client.epochs * math.ceil(client.samples / p.configuration.samples)
        link = megabits / down_mbps + megabits / up_mbps
        train, lower, upper = (steps * ms / 1000 for ms in (p.step_ms, p.lower_ms, p.upper_ms))
        times.append(ClientTime(client.name, megabits / down_mbps, train, megabits / up_mbps, link + train, link + lower, link + upper))
    times.sort(key=lambda time: time.seconds)
    if not times[-1].upper_s <= MOST:
        raise InvalidArgumentError(f"{times[-1].name}: the round takes {times[-1].upper_s:.3g} s; check its links, samples and epochs")
    counted = times[:count]
    seconds = counted[-1].seconds
    lower_s, upper_s = (sorted(getattr(time, bound) for time in times)[count - 1] for bound in ("lower_s", "upper_s"))
    waiting = 1 - sum(time.seconds for time in counted) / (count * seconds)
    return Round(seconds, lower_s, upper_s, counted[-1].name, waiting, tuple(times))


def _is_number(value: object) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MOST)


def _fair_rates(wanted: Sequence[float], whole: float) -> list[float]:
    """Max-min fair shares of a link: small wishes are met, and the others share the rest equally."""
    rates = [0.0] * len(wanted)
    for left, i in zip(range(len(wanted), 0, -1), sorted(range(len(wanted)), key=lambda i: wanted[i])):
        rates[i] = min(wanted[i], whole / left)
        whole -= rates[i]
    return rates
