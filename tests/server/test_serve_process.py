"""A real `quietq serve`: workers answer alike, a killed one is replaced, and all stop when told."""

import json
import os
import signal
from pathlib import Path

import httpx
import numpy as np
import pytest
from serving import TOKEN, WAIT, Running, running, until

from quietq.released import open_release

GUARDED = {"Authorization": f"Bearer {TOKEN}"}
pytestmark = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds workers in /proc")


@pytest.fixture(scope="module")
def pair(files, tmp_path_factory):
    """Two workers; in the end they are told to stop as by Ctrl-C, and nothing may be left."""
    folder = tmp_path_factory.mktemp("serve")
    (folder / "token").write_text(TOKEN)
    (folder / "temporary").mkdir()
    options = ("--token-file", str(folder / "token"))
    own = {"TMPDIR": str(folder / "temporary")}
    with running(*files.values(), workers=2, options=options, environment=own, log=folder / "log") as server:
        until(lambda: server.log.read_text().count("startup complete") == 2)
        yield server
        assert server.stop(signal.SIGINT) == 0
        assert not list((folder / "temporary").iterdir())
        assert "Traceback" not in server.log.read_text()


def values(server: Running, count: int) -> set[bytes]:
    """The answers to one batch on so many new connections."""
    states = {"states": np.random.default_rng(3).uniform(size=700).tolist()}
    url = f"{server.url}/v1/releases/{server.ids['agent']}/values"
    return {httpx.post(url, json=states, headers=GUARDED, timeout=WAIT).content for _ in range(count)}


def counted(server: Running) -> float:
    name = f'quietq_states_total{{question="values",release="{server.ids["agent"]}"}}'
    lines = httpx.get(f"{server.url}/metrics", headers=GUARDED, timeout=WAIT).text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


def test_every_worker_gives_the_bits_of_the_release_and_counts_with_the_others(pair, files):
    before = counted(pair)
    (answer,) = values(pair, 12)
    x = np.random.default_rng(3).uniform(size=700)
    assert json.loads(answer)["values"] == open_release(files["agent"]).values(x[:, None]).tolist()
    assert counted(pair) == before + 12 * 700


def test_no_process_of_it_holds_jax_or_shows_the_token(pair):
    assert httpx.get(f"{pair.url}/v1/releases", timeout=WAIT).status_code == 401
    for process in (pair.process.pid, *pair.workers()):
        held = Path(f"/proc/{process}/maps").read_text()
        assert "numpy" in held
        assert "jax" not in held
        for what in ("cmdline", "environ"):
            assert TOKEN.encode() not in Path(f"/proc/{process}/{what}").read_bytes()


def test_what_is_asked_is_not_written_down(pair):
    url = f"{pair.url}/v1/releases/{pair.ids['agent']}/values"
    for state, status in (("0.31415926", 200), ("31415926", 422), ("x31415926", 422)):
        assert httpx.get(f"{url}?state={state}", headers=GUARDED, timeout=WAIT).status_code == status
    log = pair.log.read_text()
    assert "31415926" not in log
    assert f"'open.qq' ({pair.ids['open']}) is NOT PRIVATE" in log
    assert "may ask" not in log


def test_other_hosts_and_endless_bodies_are_refused(pair):
    assert httpx.get(f"{pair.url}/", headers={"Host": "evil.example"}, timeout=WAIT).status_code == 400

    def endless():
        for _ in range(10_000):
            yield b" " * 65_536

    url = f"{pair.url}/v1/releases/{pair.ids['agent']}/values"
    try:
        sent = GUARDED | {"Content-Type": "application/json"}
        assert httpx.post(url, content=endless(), headers=sent, timeout=WAIT).status_code == 413
    except (httpx.WriteError, httpx.ReadError):
        pass  # the connection was closed while the client still sent
    assert httpx.get(f"{pair.url}/healthz", timeout=WAIT).status_code == 200


def test_a_killed_worker_is_replaced_by_one_that_says_the_same(pair, files):
    before, answers = pair.workers(), values(pair, 2)
    content = files["agent"].read_bytes()
    try:
        files["agent"].write_bytes(files["plane"].read_bytes())  # the new worker is given what was checked, not this
        os.kill(before[0], signal.SIGKILL)
        until(lambda: pair.log.read_text().count("startup complete") == 3)
        after = pair.workers()
        assert len(after) == 2
        assert before[0] not in after
        assert before[1] in after
        os.kill(before[1], signal.SIGSTOP)  # so that only the new one answers
        assert values(pair, 3) == answers
    finally:
        os.kill(before[1], signal.SIGCONT)
        files["agent"].write_bytes(content)


@pytest.mark.slow
def test_anybody_may_ask_is_said_and_sigterm_ends_it(files, tmp_path):
    with running(files["agent"], options=("--host", "0.0.0.0"), log=tmp_path / "log") as server:
        assert server.url.startswith("http://0.0.0.0:")
        assert "Anybody who can reach 0.0.0.0 may ask" in server.log.read_text()
        assert httpx.get(server.url + "/healthz", headers={"Host": "any.example"}, timeout=WAIT).status_code == 200
        assert server.stop(signal.SIGTERM) == 0
