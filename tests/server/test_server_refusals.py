"""What cannot be answered gets a status of 4xx and one sentence that says what would be right."""

import json
import struct

import pytest

from quietq.server import bodies
from quietq.server.limits import MOST_BYTES, MOST_STATES

SENT = {"Content-Type": "application/json"}
RAW = {"Content-Type": "application/octet-stream"}


def refused(answer, status, *words):
    assert answer.status_code == status, answer.text
    record = answer.json()
    assert set(record) == {"detail"}
    assert record["detail"].endswith(".")
    assert len(record["detail"]) < 300
    for word in words:
        assert word in record["detail"]


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        (b"", 400, "JSON"),
        (b"{", 400, "JSON"),
        (b"\xff\xfe", 400, "JSON"),
        (b'{"states": [NaN]}', 400, "NaN"),
        (b'{"states": [-Infinity]}', 400, "Infinity"),
        (b'{"states": [0.1], "states": [0.2]}', 400, "JSON"),
        (b'{"states": ' + b"[" * 60_000 + b"]" * 60_000 + b"}", 400, "nested"),
        (b"[0.5]", 422, "like"),
        (b"null", 422, "like"),
        (b'{"states": 0.5}', 422, "like"),
        (b'{"states": [0.5], "more": 1}', 422, "like"),
        (b'{"state": [0.5]}', 422, "like"),
        (b'{"states": []}', 422, "at least one"),
        (b'{"states": [[]]}', 422, "1 coordinate"),
        (b'{"states": [[0.1, 0.2]]}', 422, "1 coordinate"),
        (b'{"states": [[[0.1]]]}', 422, "numbers"),
        (b'{"states": [true]}', 422, "numbers"),
        (b'{"states": ["0.5"]}', 422, "numbers"),
        (b'{"states": [null]}', 422, "numbers"),
        (b'{"states": [{"x": 1}]}', 422, "like"),
        (b'{"states": [1.0000001]}', 422, "within [0, 1]"),
        (b'{"states": [-1e-300]}', 422, "within [0, 1]"),
        (b'{"states": [1e999]}', 422, "within [0, 1]"),
        (b'{"states": [' + b"9" * 10_000 + b"]}", 422, "within [0, 1]"),
    ],
)
def test_json_that_is_not_states(ask, body, status, word):
    refused(ask.post(ask.url("agent"), content=body, headers=SENT), status, word)


@pytest.mark.parametrize("states", [[0.5, 3.0], [[0.5]], [[0.5, 3.0, 1.0]], [[0.5, 3.0], [0.5]]])
def test_states_of_the_wrong_dimension(ask, states):
    refused(ask.post(ask.url("plane"), json={"states": states}), 422, "2 coordinates each", "[[0.0, 2.0]]")


def test_a_coordinate_outside_of_its_side(ask):
    refused(ask.post(ask.url("plane"), json={"states": [[0.5, 0.5]]}), 422, "[0, 1] x [2, 5]", "0.5")


@pytest.mark.parametrize("body", [b"", b"1234567", b"123456789", struct.pack("<d", 0.5) * 3])
def test_bytes_that_are_not_whole_states(ask, body):
    refused(ask.post(ask.url("plane"), content=body, headers=RAW), 422, "multiple of 16 bytes")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 1.5])
def test_bytes_of_numbers_outside_of_the_box(ask, number):
    refused(ask.post(ask.url("agent"), content=struct.pack("<d", number), headers=RAW), 422, "within [0, 1]")


@pytest.mark.parametrize(
    "query",
    [
        "", "state=", "state=nan", "state=inf", "state=0.5&state=0.5", "state=1_0", "state=%200.5", "state=0x1",
        "state=½", "state=%ff%fe", "state=1e999", "state=" + "9" * 1000, "states=0.5", "state=1.5",
    ],
)  # fmt: skip
def test_addresses_that_hold_no_state(ask, query):
    answer = ask.get(f"{ask.url('agent')}?{query}")
    refused(answer, 422, "state")
    assert "9" * 100 not in answer.text


def test_a_state_of_the_wrong_dimension_in_the_address(ask):
    answer = ask.get(ask.url("plane"), params={"state": 0.5})
    refused(answer, 422, "state must be given 2 times, once for each coordinate, not once.")


def test_too_many_states(ask):
    many = [0.5] * (MOST_STATES + 1)
    refused(ask.post(ask.url("agent"), json={"states": many}), 413, str(MOST_STATES))
    refused(ask.post(ask.url("agent"), json={"states": [[x] for x in many]}), 413, str(MOST_STATES))
    refused(ask.post(ask.url("agent"), content=struct.pack("<d", 0.5) * len(many), headers=RAW), 413, str(MOST_STATES))


def test_too_many_bytes_stated_or_not(ask):
    too_many = b" " * (MOST_BYTES + 1)
    refused(ask.post(ask.url("agent"), content=too_many, headers=SENT), 413, str(MOST_BYTES))
    sent = []

    async def endless():
        while True:
            sent.append(1)
            yield b" " * 65_536

    refused(ask.post(ask.url("agent"), content=endless(), headers=SENT), 413, str(MOST_BYTES))
    assert len(sent) <= MOST_BYTES // 65_536 + 2  # no more was read than is allowed
    stated = SENT | {"Content-Length": "9" * 30}
    refused(ask.post(ask.url("agent"), content=b"{}", headers=stated), 413)


def test_a_body_that_does_not_arrive(ask, monkeypatch):
    import asyncio

    monkeypatch.setattr(bodies, "SECONDS_TO_SEND", 0.05)

    async def slow():
        yield b"{"
        await asyncio.sleep(60)

    answer = ask.post(ask.url("agent"), content=slow(), headers=SENT)
    refused(answer, 408, "seconds")
    assert answer.headers["Connection"] == "close"


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1", "nonsense"]
)
def test_other_types_of_body(ask, kind):
    headers = {} if kind is None else {"Content-Type": kind}
    refused(ask.post(ask.url("agent"), content=b'{"states": [0.5]}', headers=headers), 415, "Content-Type must be")


def test_packed_bodies(ask):
    headers = SENT | {"Content-Encoding": "gzip"}
    refused(ask.post(ask.url("agent"), content=b"{}", headers=headers), 415, "Content-Encoding")


@pytest.mark.parametrize("accept", ["text/html", "application/json;q=0", "application/json;q=x", "a," * 400])
def test_other_types_of_answer(ask, accept):
    refused(ask.get(ask.url("agent"), params={"state": 0.5}, headers={"Accept": accept}), 406, "Accept must allow")


@pytest.mark.parametrize("what", ["", "/values", "/policy", "/certificate"])
def test_releases_that_are_not_there(ask, what):
    for name in ("0" * 16, "x", "%2e%2e", "é", "a" * 5000):
        refused(ask.get(f"/v1/releases/{name}{what}", params={"state": 0.5}), 404, "/v1/releases")


def test_a_function_has_no_policy(ask):
    refused(ask.get(ask.url("function", "policy"), params={"state": 0.5}), 409, "ask for its values")
    refused(ask.post(ask.url("function", "policy"), json={"states": [0.5]}), 409, "ask for its values")


@pytest.mark.parametrize("path", ["/nowhere", "/v1", "/v1/", "/v1/releases/", "/page", "/page/page.js", "/../app.py"])
def test_addresses_that_lead_nowhere(ask, path):
    refused(ask.get(path), 404)


def test_other_methods(ask):
    answer = ask("DELETE", ask.url("agent"))
    refused(answer, 405, "GET, POST")
    assert answer.headers["Allow"] == "GET, POST"
    answer = ask.post("/v1/releases", content=json.dumps({}))
    refused(answer, 405)
    assert answer.headers["Allow"] == "GET"


def test_answers_that_would_be_too_large(ask, monkeypatch):
    monkeypatch.setattr("quietq.server.states.MOST_VALUES", 8)
    refused(ask.post(ask.url("agent"), json={"states": [0.5] * 3}), 413, "at most 8 values")
    assert ask.post(ask.url("agent"), json={"states": [0.5] * 2}).status_code == 200
