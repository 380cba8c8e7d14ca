"""`quietq serve`: two workers and wrk on the same machine, single-state requests over 16 connections."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.measuring import Row
from quietq import Box, Budget, GaussianProcessMechanism, people
from quietq.publishing import publish
from quietq.released import PrivateNetwork

NEEDS = ("wrk",)
"""It makes the load on the server (apt install wrk)."""
CONNECTIONS, SECONDS, SOAK, WARM = 16, 15, 60, 3
_SCRIPT = """
wrk.method, wrk.body = METHOD, BODY
if wrk.body then wrk.headers["Content-Type"] = "application/json" end
done = function(summary, latency, requests)
  local e = summary.errors
  local form = '{"requests": %d, "microseconds": %d, "p50": %d, "p99": %d, "broken": %d, "refused": %d}'
  io.write("\\n" .. string.format(form, summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), e.connect + e.read + e.write + e.timeout, e.status) .. "\\n")
end
"""


@dataclass(frozen=True)
class Load:
    """What wrk saw."""

    requests: int
    microseconds: int
    p50: int
    p99: int
    broken: int
    """Connections that failed."""
    refused: int
    """Answers with a status of 400 and more."""

    @property
    def a_second(self) -> float:
        return self.requests / self.microseconds * 1e6

    def rows(self, name: str, soak: bool = False) -> list[Row]:
        """At least 2,000 a second, better 5,000, is at most 0.5 and better 0.2 seconds a thousand."""
        rate = Row(f"{name}: 1,000 requests", 1000 / self.a_second, "s", limit=0.5, aim=0.2)
        return [
            Row(f"{name}: requests a second", self.a_second, "/s"),
            *([] if soak else [rate, Row(f"{name}: median", self.p50 / 1000, "ms")]),
            Row(f"{name}: 99th percentile", self.p99 / 1000, "ms", limit=50),
            Row(f"{name}: errors", self.broken + self.refused, "", limit=0),
        ]


def rows() -> list[Row]:
    """Every measurement of this module."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        publish(agent(1), folder / "agent.qq")
        publish(agent(10), folder / "mean.qq")
        publish(table(), folder / "table.qq")
        with server(folder, workers=2) as (process, url, ids):
            where = {kind: f"{url}/v1/releases/{ids[kind]}/values" for kind in ids}
            load(folder, where["agent"] + "?state=0.3", WARM)
            return [
                *load(folder, where["agent"] + "?state=0.3", SECONDS).rows("GET, agent"),
                *load(folder, where["mean"] + "?state=0.3", SECONDS).rows("GET, mean of ten agents"),
                *load(folder, where["table"] + "?state=0.3", SECONDS).rows("GET, table"),
                *load(folder, where["table"], SECONDS, '{"states": [0.3]}').rows("POST, table"),
                *load(folder, where["agent"] + "?state=0.3", SOAK).rows(f"{SOAK} seconds, agent", soak=True),
                *killed(folder, where["agent"] + "?state=0.3", process),
            ]


def killed(folder: Path, url: str, process: int) -> list[Row]:
    """A worker is killed by SIGKILL in the middle: its connections break once each, and nothing else does."""
    alive, own = workers(process), []

    def kill() -> None:
        own.append(connections(alive[0]))
        os.kill(alive[0], signal.SIGKILL)

    timer = threading.Timer(SECONDS / 3, kill)
    timer.start()
    seen = load(folder, url, SECONDS)
    timer.join()
    _until(lambda: len(workers(process)) == len(alive))
    after = load(folder, url, WARM)
    return [
        Row(f"a worker is killed: its own of {CONNECTIONS} connections", own[0], ""),
        Row("a worker is killed: other connections that broke", max(seen.broken - own[0], 0), "", limit=0),
        Row("a worker is killed: refused requests", seen.refused, "", limit=0),
        Row("a worker is killed: requests a second meanwhile", seen.a_second, "/s"),
        Row("a worker is killed: errors once it was replaced", after.broken + after.refused, "", limit=0),
    ]


def load(folder: Path, url: str, seconds: int, body: str | None = None) -> Load:
    """Asks as fast as answers come."""
    script = folder / "script.lua"
    method = "POST" if body else "GET"
    script.write_text(
        _SCRIPT.replace("METHOD", json.dumps(method)).replace("BODY", json.dumps(body) if body else "nil")
    )
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", str(script), url]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Load(**json.loads(done.stdout.strip().splitlines()[-1]))


@contextmanager
def server(folder: Path, workers: int) -> Iterator[tuple[int, str, dict[str, str]]]:
    """A running server: its process, its address, and the ids by file name."""
    files = sorted(map(str, folder.glob("*.qq")))
    command = [sys.executable, "-m", "quietq.cli", "serve", *files, "--port", "0", "--json", "--workers", str(workers)]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        record = json.loads(process.stdout.readline())
        _until(lambda: (folder / "log").read_text().count("startup complete") == workers)
        yield process.pid, record["url"], {each["name"].removesuffix(".qq"): each["id"] for each in record["releases"]}
    finally:
        process.terminate()
        process.communicate(timeout=60)


def workers(process: int) -> list[int]:
    """The workers of a server's process."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def connections(process: int) -> int:
    """How many established TCP connections a process holds."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    established = {f"socket:[{row[9]}]" for row in rows if row[3] == "01"}
    return sum(os.readlink(entry) in established for entry in Path(f"/proc/{process}/fd").iterdir())


def agent(runs: int) -> PrivateNetwork:
    """So many networks of the size that is trained by default; what their weights are makes no difference here."""
    generator = np.random.default_rng(0)
    sizes = ((1, 32), (32, 32), (32, 2))
    weights = tuple(generator.normal(size=(runs, after, before)) for before, after in sizes)
    biases = tuple(generator.normal(size=(runs, after)) for _, after in sizes)
    return PrivateNetwork("mlp", 0, weights, biases, "values", Box.of((0, 1)), table().certificate).issued()


def table():
    """A released reward."""
    relation = people(50, low=0, high=0.5, slope=1)
    return GaussianProcessMechanism.for_relation(relation, Budget(0.9, 1e-4)).apply(lambda s: 0.5 - abs(s - 0.5))


def _until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not true():
        if time.monotonic() > end:
            raise RuntimeError("The server was not ready within a minute.")
        time.sleep(0.1)
