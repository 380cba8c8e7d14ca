"""What one client can make the server hold is bounded: heads, bodies that nobody waits for, answers nobody takes."""

import json
import socket
import struct
import time

import httpx
import pytest
from browser import serving_here
from serving import WAIT, until

from quietq.server import connection
from quietq.server.connection import Connection

HEAD = b"Host: localhost\r\n"


@pytest.fixture(scope="module")
def url(files):
    with serving_here(files["agent"], hosts=frozenset(), idle=1, buffer=2**16) as address:
        yield address


def dialled(url: str) -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=WAIT)


def told(caller: socket.socket) -> bytes:
    """All that is answered until the server hangs up."""
    found = b""
    try:
        while piece := caller.recv(65_536):
            found += piece
    except ConnectionError:
        pass  # it hung up while something was on its way to it
    return found


def sent(caller: socket.socket, first: bytes, piece: bytes, most: int) -> int:
    """How many bytes of an endless request are taken."""
    caller.sendall(first)
    for count in range(0, most, len(piece)):
        try:
            caller.sendall(piece)
        except ConnectionError:
            return count
    return most


@pytest.mark.parametrize(
    ("first", "piece"),
    [
        (b"GET /", b"a" * 65_536),
        (b"GET / HTTP/1.1\r\n" + HEAD + b"X: ", b"a" * 65_536),
        (b"GET / HTTP/1.1\r\n" + HEAD, b"X: a\r\n" * 10_000),
        (b"POST / HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n5;", b"a" * 65_536),
        (b"POST / HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: a\r\n" * 10_000),
    ],
)
def test_heads_and_trailers_without_an_end(url, first, piece):
    with dialled(url) as caller:
        assert sent(caller, first, piece, most=2**28) < 2**28
        assert b"HTTP/1.1 431 " in told(caller)


def test_a_head_that_is_too_large_at_once(url):
    for size, status in ((70_000, b"431"), (60_000, b"200")):
        with dialled(url) as caller:
            caller.sendall(
                b"GET /healthz HTTP/1.1\r\n" + HEAD + b"Connection: close\r\nX: " + b"a" * size + b"\r\n\r\n"
            )
            head, _, body = told(caller).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 " + status)
        assert ("detail" in json.loads(body)) == (status == b"431")


def test_what_is_no_request_gets_a_sentence_too(url):
    with dialled(url) as caller:
        caller.sendall(b"nonsense\r\n\r\n")
        assert told(caller).endswith(b'{"detail": "This is not a request in HTTP/1.1."}')


def test_requests_one_after_another_are_not_one_head(url):
    name = httpx.get(f"{url}/v1/releases").json()["releases"][0]["id"].encode()
    body = struct.pack("<d", 0.5) * 20_000
    kind = b"Content-Type: application/octet-stream\r\nAccept: application/octet-stream\r\nContent-Length: %d\r\n\r\n"
    request = b"POST /v1/releases/" + name + b"/values HTTP/1.1\r\n" + HEAD + kind % len(body) + body
    last = b"GET /healthz HTTP/1.1\r\n" + HEAD + b"Connection: close\r\n\r\n"
    with dialled(url) as caller:
        caller.sendall(request + last.replace(b"Connection: close\r\n", b"") * 2000 + last)
        assert told(caller).count(b"HTTP/1.1 200 OK") == 2002


def test_a_refused_body_is_not_waited_for(url):
    with dialled(url) as caller:
        caller.sendall(b"POST /nowhere HTTP/1.1\r\n" + HEAD + b"Content-Length: 1000000\r\n\r\n")
        assert b" 404 " in caller.recv(65_536)

        def dropped() -> bool:
            time.sleep(0.1)
            try:
                caller.sendall(b"x")  # a little now and then, so that it is never idle
            except ConnectionError:
                return True
            return False

        until(dropped)


def asked(url: str) -> bytes:
    name = httpx.get(f"{url}/v1/releases").json()["releases"][0]["id"].encode()
    body = struct.pack("<d", 0.5) * 65_536
    head = b"Content-Type: application/octet-stream\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    return b"POST /v1/releases/" + name + b"/values HTTP/1.1\r\n" + HEAD + head + body


def narrow(url: str) -> socket.socket:
    """A caller that takes little at a time."""
    host, port = url.removeprefix("http://").split(":")
    caller = socket.socket()
    caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    caller.settimeout(WAIT)
    caller.connect((host, int(port)))
    return caller


def length(found: bytes) -> tuple[int, int]:
    """What the head of an answer says of its length, and what came."""
    head, _, body = found.partition(b"\r\n\r\n")
    return int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]), len(body)


def test_an_answer_that_nobody_takes_is_dropped(url, monkeypatch):
    request = asked(url)
    monkeypatch.setattr(connection, "SECONDS_TO_TAKE", 0.5)
    with narrow(url) as stalled:
        stalled.sendall(request)
        until(lambda: Connection._slow)
        until(lambda: not Connection._slow)
        stated, came = length(told(stalled))
        assert came < stated


def test_an_answer_that_is_taken_slowly_is_not_dropped(url, monkeypatch):
    request = asked(url)
    monkeypatch.setattr(connection, "SECONDS_TO_TAKE", 1.5)
    monkeypatch.setattr(connection, "LEAST_TAKEN", 1)
    with narrow(url) as slow:
        slow.sendall(request)
        found = slow.recv(4096)
        end = time.monotonic() + 4  # longer than a client that takes nothing has
        while time.monotonic() < end:
            found += slow.recv(8192)
            time.sleep(0.01)
        stated, came = length(found + told(slow))
        assert came == stated


def test_all_answers_that_nobody_takes_are_bounded_together(url, monkeypatch):
    request = asked(url)
    monkeypatch.setattr(connection, "MOST_UNTAKEN", 2**20)  # less than one such answer
    with narrow(url) as stalled:
        stalled.sendall(request)
        stated, came = length(told(stalled))
        assert came < stated
    assert not Connection._slow


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (b"localhost", b"200"), (b"LOCALHOST.:80", b"200"), (b"a.localhost", b"200"), (b"127.0.0.1:8080", b"200"),
        (b"127.3.2.1", b"200"), (b"[::1]:80", b"200"), (b"evil.example", b"421"), (b"localhost.evil.org:80", b"421"),
        (b"10.0.0.1", b"421"), (b"", b"421"), (b"localhost\r\nHost: evil.example", b"421"), (b"a" * 5000, b"421"),
    ],
)  # fmt: skip
def test_only_this_machines_names_are_answered(url, host, status):
    with dialled(url) as caller:
        caller.sendall(b"GET /v1/releases HTTP/1.1\r\nConnection: close\r\nHost: " + host + b"\r\n\r\n")
        assert told(caller).startswith(b"HTTP/1.1 " + status)
