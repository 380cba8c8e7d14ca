"""What the server's tests share: releases made by hand, an application in this process, a server in another."""

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx
import numpy as np
from fastapi import FastAPI

from quietq import Box, Budget, Exponential, GaussianProcessMechanism
from quietq.privacy import Code
from quietq.publishing import publish
from quietq.publishing.server.application import create_app
from quietq.publishing.server.catalogue import Catalogue, open_catalogue, read_served
from quietq.released import PrivateNetwork
from quietq.released.private_network import PrivatePolicy

BUDGET = Budget(0.9, 1e-4)
TOKEN = "a-token-of-24-characters"
WAIT = 150.0
"""Seconds that nothing here takes: a worker that dies while it is asked for a sign of life is missed after 60."""


def certified(box: Box, simulate: int | None = None):
    """A released table over a box."""
    kernel = Exponential(4.0) if box.dimension == 1 else Exponential((1.0,) * box.dimension)
    mechanism = GaussianProcessMechanism(kernel, 0.02, BUDGET, domain=box, levels=5)

    def f(s: np.ndarray) -> np.ndarray:
        return s if box.dimension == 1 else s.prod(axis=-1)

    return mechanism.apply(f) if simulate is None else mechanism.simulate(f, simulate)


def network(box: Box, actions: int = 3) -> PrivateNetwork:
    """An agent with weights out of the air, under the certificate of a real release."""
    generator = np.random.default_rng(7)
    sizes = [box.dimension, 16, actions]
    pairs = list(itertools.pairwise(sizes))
    weights = tuple(generator.normal(size=(2, b, a)) for a, b in pairs)
    biases = tuple(generator.normal(size=(2, b)) for _, b in pairs)
    return PrivateNetwork("mlp", 0, weights, biases, "values", box, certified(box).certificate).issued()


def moving(box: Box) -> PrivatePolicy:
    """A policy whose actions are two numbers, under the same kind of certificate, of a reward on another box."""
    generator, certificate = np.random.default_rng(7), certified(Box.of((0, 1))).certificate
    certificate = certificate.with_assumption(Code.TRAINED())
    weights, biases = (generator.normal(size=(2, box.dimension)),), (generator.normal(size=2),)
    ends = np.array([[-1.0, 0.0], [1.0, 9.0]])
    return PrivatePolicy("tanh", "squashed", weights, biases, box, certificate, ends).issued()


def make_files(folder: Path) -> dict[str, Path]:
    """Four releases: agents in one and two dimensions, a function, and one that is not private."""
    interval, plane = Box.of((0, 1)), Box.of([(0, 1), (2, 5)])
    things = {
        "agent": network(interval), "plane": network(plane), "function": certified(interval),
        "open": certified(interval, simulate=3),
    }  # fmt: skip
    files = {name: folder / f"{name}.qq" for name in things}
    for name, thing in things.items():
        publish(thing, files[name], not_private=name == "open")
    return files


def catalogue_of(*files: Path, key: bytes | None = None) -> Catalogue:
    return open_catalogue([read_served(file) for file in files], key)


def ask(app: FastAPI, method: str, path: str, raised: bool = True, **request: Any) -> httpx.Response:
    """The answer of an application in this process."""

    async def answer() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=raised)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.request(method, path, **request)

    return asyncio.run(answer())


class Asked:
    """An application in this process, asked over ASGI."""

    def __init__(
        self,
        files: dict[str, Path],
        token: str | None = None,
        key: bytes | None = None,
        hosts: Sequence[str] = ("*",),
        raised: bool = True,
    ) -> None:
        self.catalogue = catalogue_of(*files.values(), key=key)
        self.app: FastAPI = create_app(self.catalogue, token, hosts)
        self.raised = raised  # whether what the application raises is raised here too
        self.entries = dict(zip(files, self.catalogue.values(), strict=True))

    def url(self, name: str, what: str = "values") -> str:
        return f"/v1/releases/{self.entries[name].record.id}/{what}"

    def __call__(self, method: str, path: str, **request: Any) -> httpx.Response:
        return ask(self.app, method, path, self.raised, **request)

    def get(self, path: str, **request: Any) -> httpx.Response:
        return self("GET", path, **request)

    def post(self, path: str, **request: Any) -> httpx.Response:
        return self("POST", path, **request)


@dataclass
class Running:
    """A `quietq serve` in another process."""

    process: "subprocess.Popen[str]"
    url: str
    ids: dict[str, str]
    log: Path

    def workers(self) -> list[int]:
        """The workers' process numbers."""
        own = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(child) for child in own if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.process.wait(WAIT)


@contextmanager
def running(
    *files: Path, workers: int = 1, options: tuple[str, ...] = (), environment: dict[str, str] | None = None, log: Path
) -> Iterator[Running]:
    """Starts the command on a free port and waits until it answers; ends it in any case."""
    command = [sys.executable, "-m", "quietq.cli", "serve", *map(str, files), "--port", "0", "--json"]
    command += ["--workers", str(workers), *options]
    with log.open("w") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=os.environ | (environment or {})
        )
    try:
        record = json.loads(_first_line(process.stdout, log))
        with httpx.Client(timeout=WAIT) as client:  # waits in the queue until a worker is there
            assert client.get(record["url"] + "/healthz").status_code == 200
        ids = {release["name"].removesuffix(".qq"): release["id"] for release in record["releases"]}
        yield Running(process, record["url"], ids, log)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(WAIT)
            except subprocess.TimeoutExpired:
                process.kill()
        process.communicate()


def until(true: Callable[[], object]) -> None:
    """Waits for something to become true."""
    end = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def _first_line(stdout: IO[str] | None, log: Path) -> str:
    assert stdout is not None
    line = stdout.readline()
    assert line, log.read_text()
    return line
