"""A real `quietq serve`: it starts, answers alike from all workers, outlives a killed one, and stops when told."""

import os
import signal
import threading
import time
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import httpx
import numpy as np
import pytest
from serving import TOKEN, WAIT, Running, running, until

from quietq.release import open_release

BYTES = {"Content-Type": "application/octet-stream", "Accept": "application/octet-stream"}
pytestmark = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds workers in /proc")


def batch(server: Running, count: int, of: int = 700) -> list[bytes]:
    """The answers to one batch on so many new connections."""
    x = np.random.default_rng(3).uniform(size=of).tobytes()
    url = f"{server.url}/v1/releases/{server.ids['agent']}/values"
    return [httpx.post(url, content=x, headers=BYTES, timeout=WAIT).content for _ in range(count)]


def test_every_worker_gives_the_same_bits(pair, files, tmp_path):
    with running(files["agent"], log=tmp_path / "log") as single:
        alone = batch(single, 1)
        assert single.stop() == 0
    both = batch(pair, 20)
    assert set(both) == set(alone)
    x = np.random.default_rng(3).uniform(size=700)
    assert np.frombuffer(alone[0], "<f8").tolist() == open_release(files["agent"]).values(x[:, None]).ravel().tolist()


def test_no_process_of_it_holds_jax(pair):
    for process in (pair.process.pid, *pair.workers()):
        held = Path(f"/proc/{process}/maps").read_text()
        assert "numpy" in held
        assert "jax" not in held


def test_what_is_asked_is_not_written_down(pair):
    httpx.get(f"{pair.url}/v1/releases/{pair.ids['agent']}/values?state=0.31415926", timeout=WAIT)
    httpx.get(f"{pair.url}/v1/releases/{pair.ids['agent']}/values?state=31415926", timeout=WAIT)
    log = pair.log.read_text()
    assert "31415926" not in log
    assert f"'open.qq' ({pair.ids['open']}) is NOT PRIVATE" in log


def test_workers_count_together(pair):
    def counted() -> float:
        name = f'quietq_states_total{{question="values",release="{pair.ids["plane"]}"}}'
        lines = httpx.get(f"{pair.url}/metrics", timeout=WAIT).text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    url = f"{pair.url}/v1/releases/{pair.ids['plane']}/values"
    before = counted()
    for _ in range(12):
        assert httpx.post(url, json={"states": [[0.5, 3.0]] * 2}, timeout=WAIT).status_code == 200
    assert counted() == before + 24


def test_a_body_without_a_stated_length_is_bounded(pair):
    def endless():
        for _ in range(10_000):
            yield b" " * 65_536

    url = f"{pair.url}/v1/releases/{pair.ids['agent']}/values"
    try:
        answer = httpx.post(url, content=endless(), headers={"Content-Type": "application/json"}, timeout=WAIT)
        assert answer.status_code == 413
    except (httpx.WriteError, httpx.ReadError):
        pass  # the connection was closed while the client still sent
    assert httpx.get(f"{pair.url}/healthz", timeout=WAIT).status_code == 200


def test_a_killed_worker_takes_nothing_else_with_it(pair):
    threads, stop = 6, threading.Event()
    answered, failed = [0] * threads, [0] * threads
    host, port = pair.url.removeprefix("http://").split(":")

    def answer() -> bytes:
        connection = HTTPConnection(host, int(port), timeout=WAIT)  # a new one each time
        try:
            connection.request("GET", f"/v1/releases/{pair.ids['agent']}/values?state=0.5")
            return connection.getresponse().read()
        finally:
            connection.close()

    def ask(i: int) -> None:
        while not stop.is_set():
            try:
                answered[i] += answer() == right
            except (OSError, HTTPException):
                failed[i] += 1
            time.sleep(0.002)

    right = answer()

    askers = [threading.Thread(target=ask, args=(i,)) for i in range(threads)]
    for asker in askers:
        asker.start()
    try:
        until(lambda: min(answered) > 5)
        before = pair.workers()
        os.kill(before[0], signal.SIGKILL)
        killed = list(answered)
        until(lambda: len(pair.workers()) == 2 and before[0] not in pair.workers())
        until(lambda: min(now - then for now, then in zip(answered, killed, strict=True)) > 20)
    finally:
        stop.set()
        for asker in askers:
            asker.join(WAIT)
    assert sum(failed) <= threads  # what the killed worker had in hand, at most one for each who asks
    assert before[1] in pair.workers()
    assert {answer() for _ in range(20)} == {right}


@pytest.mark.slow
def test_a_replaced_file_changes_no_answer(files, tmp_path):
    copy = tmp_path / "agent.qq"
    copy.write_bytes(files["agent"].read_bytes())
    with running(copy, log=tmp_path / "log") as server:
        before = batch(server, 1)
        copy.write_bytes(files["plane"].read_bytes())
        until(server.workers)
        (worker,) = server.workers()
        os.kill(worker, signal.SIGKILL)
        assert batch(server, 3) == before * 3  # asked of the worker that follows


@pytest.mark.slow
def test_workers_that_cannot_start_stop_the_server(files, tmp_path):
    with running(files["agent"], environment={"TMPDIR": str(tmp_path)}, log=tmp_path / "log") as server:
        (folder,) = tmp_path.glob("quietq-serve-*")
        (folder / "0.qq").write_bytes(files["plane"].read_bytes())
        (worker,) = server.workers()
        os.kill(worker, signal.SIGKILL)
        assert server.process.wait(WAIT) == 2
    log = server.log.read_text()
    assert f"Worker [{worker}] ended with code -9; another one starts." in log
    assert "cannot start: The copy of 'agent.qq' is not what was read when the server started." in log
    assert "quietq: A worker could not start, so the server has stopped; the log says why." in log
    assert not folder.exists()


def test_the_token_the_warning_and_ctrl_c(files, tmp_path):
    (tmp_path / "token").write_text(TOKEN)
    options = ("--token-file", str(tmp_path / "token"))
    with running(files["agent"], options=options, log=tmp_path / "log") as server:
        assert httpx.get(server.url + "/v1/releases", timeout=WAIT).status_code == 401
        headers = {"Authorization": f"Bearer {TOKEN}"}
        assert httpx.get(server.url + "/v1/releases", headers=headers, timeout=WAIT).status_code == 200
        for process in (server.process.pid, *server.workers()):
            for what in ("cmdline", "environ"):
                assert TOKEN.encode() not in Path(f"/proc/{process}/{what}").read_bytes()
        assert server.stop(signal.SIGINT) in (0, 130)
    assert "may ask" not in server.log.read_text()


def test_anybody_may_ask_is_said(files, tmp_path):
    own = {"TMPDIR": str(tmp_path)}  # for what a server leaves that is killed
    with running(files["agent"], options=("--host", "0.0.0.0"), environment=own, log=tmp_path / "log") as server:
        assert server.url.startswith("http://0.0.0.0:")
        assert "WARNING Anybody who can reach '0.0.0.0' may ask" in server.log.read_text()
        (worker,) = server.workers()
        server.process.kill()  # without a word, and its worker goes too
        server.process.wait(WAIT)
        until(lambda: not Path(f"/proc/{worker}").exists() or "zombie" in Path(f"/proc/{worker}/status").read_text())
