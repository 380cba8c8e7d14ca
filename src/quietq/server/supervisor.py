"""Keeps workers alive: one that dies is replaced at once, and all end when the parent is told to stop."""

import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess

from quietq.privacy.errors import QuietqError
from quietq.server.handover import Handover
from quietq.server.worker import CANNOT_START, LOGGER, SECONDS_TO_END, work

_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_SHORT_LIFE = 5.0  # seconds; after less than that, the next worker has to wait
_PAUSE = 1.0


def supervise(listener: socket.socket, count: int, handover: Handover) -> None:
    """Runs so many workers on one open port until a signal to stop comes."""
    with _told_to_stop() as told:
        workers = [_started(listener, handover) for _ in range(count)]
        try:
            while told not in wait([told, *(worker.sentinel for worker, _ in workers)]):
                for i, (worker, since) in enumerate(workers):
                    if worker.is_alive():
                        continue
                    if worker.exitcode == CANNOT_START:
                        raise QuietqError("A worker could not start, so the server has stopped; the log says why.")
                    LOGGER.warning("Worker [%s] ended with code %s; another one starts.", worker.pid, worker.exitcode)
                    if time.monotonic() - since < _SHORT_LIFE and wait([told], _PAUSE):
                        return
                    workers[i] = _started(listener, handover)
        finally:
            _end([worker for worker, _ in workers])


def _started(listener: socket.socket, handover: Handover) -> tuple[BaseProcess, float]:
    """A new worker, and when it started. It is a fresh process, so nothing of the parent's is in it."""
    worker = multiprocessing.get_context("spawn").Process(target=work, args=(listener, handover))
    worker.start()
    return worker, time.monotonic()


def _end(workers: list[BaseProcess]) -> None:
    """Asks all to end after the requests in hand, and does not wait for ever."""
    for worker in workers:
        worker.terminate()
    end = time.monotonic() + SECONDS_TO_END + 5
    for worker in workers:
        worker.join(max(0.0, end - time.monotonic()))
        worker.kill()
        worker.join()


@contextmanager
def _told_to_stop() -> Iterator[int]:
    """A file descriptor that can be read from once a signal came."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    # What is ignored stays ignored: nohup asks for that.
    heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, lambda *_: _note(writer)) for number in heard}
    try:
        yield reader
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reader)
        os.close(writer)


def _note(writer: int) -> None:
    with suppress(BlockingIOError):  # noted more than often enough
        os.write(writer, b"!")
