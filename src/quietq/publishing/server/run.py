"""`quietq serve`: reads the files, opens the port, and lets uvicorn run the workers."""

import gc
import json
import logging
import os
import re
import socket
import tempfile
from collections.abc import Sequence
from functools import partial
from ipaddress import ip_address
from pathlib import Path

from fastapi import FastAPI
from uvicorn import Config
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from quietq.privacy import InvalidInput, QuietqError
from quietq.privacy.checks import count, plural, shown
from quietq.publishing.server.application import create_app
from quietq.publishing.server.catalogue import Catalogue, ServedFile, open_catalogue, read_served
from quietq.released.release_file import NOT_PRIVATE

LEAST_TOKEN = 16
"""Characters that an access token must have."""
_LOGGER = logging.getLogger("uvicorn.error")


def start_worker(files: Sequence[ServedFile], hosts: Sequence[str], key: bytes | None, token: str | None) -> FastAPI:
    """The application, in a worker process, of the bytes that were checked before the port was opened."""
    app = create_app(open_catalogue(files, key), token, hosts)
    gc.freeze()  # what was loaded stays: a full collection that looked through it would keep everybody waiting
    return app


def serve(
    paths: Sequence[Path],
    host: str,
    port: int,
    workers: int,
    token: str | None,
    allowed: Sequence[str] = (),
    as_json: bool = False,
    key: bytes | None = None,
) -> None:
    """Serves the files until it is stopped (SIGTERM or SIGINT); with a public `key`, only what it signed."""
    count("--workers", workers, most=256)
    files = [read_served(path) for path in paths]
    catalogue = open_catalogue(files, key)
    with (
        _listen(host, count("--port", port, 0, 65535)) as listener,
        tempfile.TemporaryDirectory(prefix="quietq-serve-") as metrics,
    ):
        hosts = trusted_hosts(listener.getsockname()[0], allowed)
        # One thread for each worker's arithmetic: it is one of several, and answers many at once already.
        os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = metrics
        config = Config(
            partial(start_worker, files, hosts, key, token),
            factory=True,
            workers=workers,
            ws="none",
            access_log=False,  # it would hold the states that were asked about
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=10,
            timeout_worker_healthcheck=60,  # a busy machine is slow to start a worker
        )
        _announce(catalogue, listener, as_json, guarded=token is not None)
        supervisor = Multiprocess(config, [listener])
        supervisor.run()
    if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes):
        raise QuietqError("A worker could not start, so the server has stopped; the log says why.")


def read_token(file: Path | None) -> str | None:
    """The access token from a file, or else from the environment; None if there is none."""
    if file is None:
        token, where = os.environ.get("QUIETQ_TOKEN"), "QUIETQ_TOKEN"
    elif file.is_file():
        with file.open("rb") as stream:
            token, where = stream.read(4096).decode("ascii", "replace").rstrip("\r\n"), str(file)
    else:
        raise InvalidInput(f"There is no file {str(file)!r} with a token.")
    if token is not None and not re.fullmatch(f"[!-~]{{{LEAST_TOKEN},}}", token):
        asked = f"at least {LEAST_TOKEN} letters, digits or signs of ASCII without spaces"
        raise InvalidInput(f"The token in {where} must be {asked}.")
    return token


def trusted_hosts(address: str, names: Sequence[str]) -> list[str]:
    """The names that requests may ask for: a site whose name is made to lead here is still asked for by that name.

    >>> trusted_hosts("127.0.0.1", ["Example.org"]), trusted_hosts("0.0.0.0", [])
    (['example.org', 'localhost', '*.localhost', '127.0.0.1', '[::1]'], ['*'])
    """
    for name in names:
        if not re.fullmatch(r"\w([\w.-]*\w)?", name, re.ASCII):
            right = "a name such as quietq.example, without a port"
            raise InvalidInput(f"--allow-host must be {right}, not {shown(name)}.")
    if not names and not ip_address(address).is_loopback:
        return ["*"]
    own = f"[{address}]" if ":" in address else address
    return list(dict.fromkeys([*map(str.lower, names), "localhost", "*.localhost", "127.0.0.1", "[::1]", own]))


def _listen(host: str, port: int) -> socket.socket:
    """The port, open: connections wait from now on, so none is refused while workers start or are replaced."""
    if not host:  # it would mean all addresses
        raise InvalidInput("--host must be an address of this machine, such as 127.0.0.1, not ''.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, UnicodeError) as error:
        reason = str(getattr(error, "strerror", None) or type(error).__name__).partition(" (")[0]
        raise InvalidInput(f"Port {port} of {shown(host)} cannot be opened: {reason}.") from error


def _announce(catalogue: Catalogue, listener: socket.socket, as_json: bool, guarded: bool) -> None:
    records = [entry.record for entry in catalogue.values()]
    for record in records:
        name = f"{shown(record.name)} ({record.id})"
        if record.privacy == NOT_PRIVATE:
            _LOGGER.warning("%s is %s.", name, NOT_PRIVATE)
        elif not record.signer_checked:
            _LOGGER.warning("%s says that it is certified; %s (--key).", name, record.signed)
    host, port = listener.getsockname()[:2]
    if not guarded and not ip_address(host).is_loopback:
        _LOGGER.warning("Anybody who can reach %s may query it: there is no token (--token-file).", host)
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    if as_json:
        listed = [record.model_dump() for record in records]
        print(json.dumps({"url": url, "pid": os.getpid(), "releases": listed}), flush=True)
    else:
        print(f"quietq: serving {plural(len(records), 'release')} on {url}", flush=True)
