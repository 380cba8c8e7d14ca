"""A worker process: takes over what the parent read, and answers until it is told to stop or the parent is gone."""

import gc
import logging
import logging.config
import multiprocessing
import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from multiprocessing.process import BaseProcess
from typing import Any

from quietq.privacy.errors import QuietqError
from quietq.server.handover import Handover, taken_over

CANNOT_START = 3
"""The exit code of a worker that no other worker could replace."""
WAITING = 2048
"""Connections that wait until a worker takes them."""
SECONDS_TO_END = 10
"""For requests in hand, once it is told to stop."""
LOGGER = logging.getLogger("quietq.server")
_TO_STDERR = {"handlers": ["stderr"], "propagate": False}
_LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "stream": "ext://sys.stderr"}},
    "loggers": {
        "quietq.server": {**_TO_STDERR, "level": "INFO"},
        "uvicorn": {**_TO_STDERR, "level": "WARNING"},
    },
}


def log_to_stderr() -> None:
    """A line for whatever an operator should know; never what was asked."""
    logging.config.dictConfig(_LOGGING)


def work(listener: socket.socket, handover: Handover) -> None:
    """What a worker does, in a process of its own."""
    from uvicorn import Config, Server  # not in the parent, which does not need them

    from quietq.server.app import application
    from quietq.server.connection import Connection

    log_to_stderr()
    try:
        app = application(taken_over(handover), handover.token, handover.hosts)
    except (QuietqError, OSError, LookupError, ValueError) as error:
        LOGGER.error("Worker [%d] cannot start: %s", os.getpid(), error)
        sys.exit(CANNOT_START)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_leave_after, args=(parent,), daemon=True).start()
    config = Config(
        app,
        http=Connection,
        log_config=None,
        access_log=False,  # it would hold the states that were asked about
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="off",
        backlog=WAITING,
        timeout_graceful_shutdown=SECONDS_TO_END,
    )
    gc.collect()
    gc.freeze()  # what was loaded stays: a full collection that looked through it would keep everybody waiting
    LOGGER.info("Worker [%d] answers.", os.getpid())
    with suppress(KeyboardInterrupt):
        Server(config).run([listener])


def _leave_after(parent: BaseProcess) -> None:
    """Ends this worker once its parent has died without saying so, for else it would hold the port for ever."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
