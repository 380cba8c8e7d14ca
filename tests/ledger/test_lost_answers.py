"""A connection that breaks at a COMMIT: what was booked is found again, and nothing is booked twice."""

import socket
import threading
from contextlib import suppress

import pytest
from ledger_cases import BUDGET, FIFTY
from postgresql_server import Server

from quietq.ledger import Ledger, LedgerUnavailable
from quietq.privacy import Cost


def _received(one: socket.socket) -> bytes:
    try:
        return one.recv(65536)
    except OSError:
        return b""


class Proxy:
    """Stands between a client and the server, and cuts the connection at the next so many COMMITs."""

    def __init__(self, port: int, cuts: int, passes_on: bool) -> None:
        self._server, self._cuts, self._passes_on = port, cuts, passes_on
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client = self._listening.accept()[0]
            except OSError:
                return
            upstream = socket.create_connection(("127.0.0.1", self._server))
            threading.Thread(target=self._requests, args=(client, upstream), daemon=True).start()

    def _requests(self, client: socket.socket, upstream: socket.socket) -> None:
        answers = threading.Thread(target=self._answers, args=(client, upstream), daemon=True)
        answers.start()
        with client, upstream:
            while data := _received(client):
                cut = b"COMMIT\0" in data and self._cuts > 0
                if cut:
                    self._cuts -= 1
                    client.shutdown(socket.SHUT_RDWR)  # no answer will get through
                if self._passes_on or not cut:
                    upstream.sendall(data)
                if cut:
                    break
            upstream.shutdown(socket.SHUT_WR)
            answers.join()  # the server has answered and closed

    def _answers(self, client: socket.socket, upstream: socket.socket) -> None:
        while data := _received(upstream):
            with suppress(OSError):
                client.sendall(data)

    def close(self) -> None:
        self._listening.close()


@pytest.mark.parametrize("passes_on", [True, False], ids=["after", "before"])
@pytest.mark.parametrize("cuts", [1, 2])
def test_an_answer_that_got_lost(postgresql: str, server: Server, cuts: int, passes_on: bool):
    ledger = Ledger.create(postgresql)
    ledger.open("ratings", BUDGET)
    proxy = Proxy(server.port, cuts, passes_on)
    try:
        account = Ledger(postgresql.replace(str(server.port), str(proxy.port))).account("ratings")
        if cuts == 2 and not passes_on:
            with pytest.raises(
                LedgerUnavailable, match=r"may or may not have been booked. It is entry [0-9a-f]{32} of"
            ):
                account.charge(Cost.gaussian(0.2), FIFTY)
        else:
            account.charge(Cost.gaussian(0.2), FIFTY).commit("ab" * 32)
    finally:
        proxy.close()
    charges = ledger.balance("ratings").bookings
    assert len(charges) == (0 if cuts == 2 and not passes_on else 1)
    ledger.verify()
