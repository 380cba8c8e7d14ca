"""The parent process: reads the files, opens the port, and keeps the workers alive."""

import json
import os
import socket
from collections.abc import Sequence
from pathlib import Path

from quietq.privacy.checks import count, shown
from quietq.privacy.errors import InvalidInput, MissingExtra
from quietq.privacy.words import plural
from quietq.release.loading import NOT_PRIVATE
from quietq.server.catalogue import Catalogue
from quietq.server.handover import Handover, handed_on
from quietq.server.hosts import allowed_hosts
from quietq.server.supervisor import supervise
from quietq.server.worker import LOGGER, WAITING, log_to_stderr

MOST_WORKERS = 256


def serve(
    files: list[Path],
    host: str,
    port: int,
    workers: int,
    token: str | None,
    allowed: Sequence[str] = (),
    as_json: bool = False,
    key: bytes | None = None,
) -> None:
    """Serves the files until it is told to stop (SIGTERM or SIGINT); with a public `key`, only what it signed."""
    _require()
    count("--workers", workers, most=MOST_WORKERS)
    with handed_on(files, key) as (catalogue, folder), _listening(host, count("--port", port, 0, 65535)) as listener:
        hosts = allowed_hosts(listener.getsockname()[0], allowed)
        log_to_stderr()
        _warn(catalogue, listener, token)
        _announce(catalogue, _url(listener), as_json)
        supervise(listener, workers, Handover(folder, token, hosts, key))


def _listening(host: str, port: int) -> socket.socket:
    """The port, open: connections wait from now on, so none is refused while workers start or are replaced."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise InvalidInput(f"--host must be an address of this machine, not {shown(host)}.") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(WAITING)
    except OSError as error:
        listener.close()
        reason = error.strerror or type(error).__name__
        raise InvalidInput(f"Port {port} of {shown(host)} cannot be opened: {reason}.") from error
    return listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _warn(catalogue: Catalogue, listener: socket.socket, token: str | None) -> None:
    """What whoever starts it should know."""
    for entry in catalogue:
        if not entry.release.private:
            LOGGER.warning("%s (%s) is %s.", shown(entry.name), entry.id, NOT_PRIVATE)
        elif entry.key is None:
            LOGGER.warning("%s (%s) says that it is certified; %s (--key).", shown(entry.name), entry.id, entry.signed)
    host = listener.getsockname()[0]
    if token is None and not (host == "::1" or host.startswith("127.")):
        LOGGER.warning("Anybody who can reach %s may ask: there is no token (--token-file).", shown(host))


def _announce(catalogue: Catalogue, url: str, as_json: bool) -> None:
    if as_json:
        record = {"url": url, "pid": os.getpid(), "releases": [entry.describe() for entry in catalogue]}
        print(json.dumps(record), flush=True)
    else:
        open_ones = ", ".join(shown(entry.name) for entry in catalogue if not entry.release.private)
        mark = f" ({NOT_PRIVATE}: {open_ones})" if open_ones else ""
        print(f"quietq: serving {plural(len(catalogue), 'release')} on {url}{mark}", flush=True)


def _require() -> None:
    try:
        import fastapi as fastapi
        import prometheus_client as prometheus_client
        import uvicorn as uvicorn
    except ImportError as error:
        raise MissingExtra.of("serve", "Serving needs FastAPI and uvicorn") from error
