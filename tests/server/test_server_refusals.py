"""What cannot be answered gets a status of 4xx and one sentence that says what would be right."""

import asyncio
import json

import pytest
from serving import Asked

from quietq.publishing.server.application import MOST_STATES
from quietq.publishing.server.guard import MOST_BYTES
from quietq.publishing.server.run import trusted_hosts

SENT = {"Content-Type": "application/json"}


def refused(answer, status, *words):
    assert answer.status_code == status, answer.text
    record = answer.json()
    assert set(record) == {"detail"}
    assert record["detail"].endswith(".")
    assert len(record["detail"]) < 300
    for word in words:
        assert word in record["detail"]


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"", "Invalid JSON"),
        (b"{", "Invalid JSON"),
        (b"\xff\xfe", "Invalid JSON"),
        (b'{"states": [NaN]}', "states.0"),
        (b'{"states": [-Infinity]}', "states.0"),
        (b'{"states": ' + b"[" * 60_000 + b"]" * 60_000 + b"}", "Invalid JSON"),
        (b"[0.5]", "like"),
        (b"null", "like"),
        (b'{"states": 0.5}', "valid array"),
        (b'{"states": [0.5], "more": 1}', "not permitted"),
        (b'{"states": [0.5], "' + b"x" * 1000 + b'": 1}', "not permitted"),
        (b'{"states": [0.5], "\\ud800": 1}', "like"),
        (b'{"state": [0.5]}', "like"),
        (b'{"states": []}', "at least 1 item"),
        (b'{"states": [[]]}', "1 coordinate"),
        (b'{"states": [[0.1, 0.2]]}', "1 coordinate"),
        (b'{"states": [[[0.1]]]}', "number"),
        (b'{"states": [true]}', "number"),
        (b'{"states": ["0.5"]}', "number"),
        (b'{"states": [null]}', "number"),
        (b'{"states": [{"x": 1}]}', "like"),
        (b'{"states": [1.0000001]}', "within [0, 1]"),
        (b'{"states": [-1e-300]}', "within [0, 1]"),
        (b'{"states": [1e999]}', "finite"),
        (b'{"states": [' + b"9" * 10_000 + b"]}", "out of range"),
    ],
)
def test_json_that_is_not_states(ask, body, word):
    refused(ask.post(ask.url("agent"), content=body, headers=SENT), 422, word)


@pytest.mark.parametrize("states", [[0.5, 3.0], [[0.5]], [[0.5, 3.0, 1.0]], [[0.5, 3.0], [0.5]]])
def test_states_of_the_wrong_dimension(ask, states):
    refused(ask.post(ask.url("plane"), json={"states": states}), 422, "[[0.0, 2.0]]")


def test_a_coordinate_outside_of_its_side(ask):
    refused(ask.post(ask.url("plane"), json={"states": [[0.5, 0.5]]}), 422, "[0, 1] x [2, 5]", "0.5")


@pytest.mark.parametrize(
    "query",
    [
        "", "state=", "state=nan", "state=inf", "state=0.5&state=0.5", "state=0x1", "state=true",
        "state=½", "state=%ff%fe", "state=1e999", "state=" + "9" * 1000, "states=0.5", "state=1.5",
    ],
)  # fmt: skip
def test_addresses_that_hold_no_state(ask, query):
    answer = ask.get(f"{ask.url('agent')}?{query}")
    refused(answer, 422, "state")
    assert "9" * 100 not in answer.text


def test_a_state_of_the_wrong_dimension_in_the_address(ask):
    answer = ask.get(ask.url("plane"), params={"state": 0.5})
    refused(answer, 422, "state must be given 2 times, once for each coordinate.")


def test_too_many_states(ask):
    many = [0.5] * (MOST_STATES + 1)
    refused(ask.post(ask.url("agent"), json={"states": many}), 413, str(MOST_STATES))
    refused(ask.post(ask.url("agent"), json={"states": [[x] for x in many]}), 413, str(MOST_STATES))


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


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/octet-stream", "nonsense"]
)
def test_other_types_of_body(ask, kind):
    headers = {} if kind is None else {"Content-Type": kind}
    refused(ask.post(ask.url("agent"), content=b'{"states": [0.5]}', headers=headers), 415, "Content-Type must be")


@pytest.mark.parametrize("what", ["/values", "/policy", "/certificate"])
def test_releases_that_are_not_there(ask, what):
    for name in ("0" * 16, "x", "%2e%2e", "é", "a" * 5000):
        refused(ask.get(f"/v1/releases/{name}{what}", params={"state": 0.5}), 404, "/v1/releases")


def test_a_function_has_no_policy(ask):
    refused(ask.get(ask.url("function", "policy"), params={"state": 0.5}), 409, "ask for its values")
    refused(ask.post(ask.url("function", "policy"), json={"states": [0.5]}), 409, "ask for its values")


@pytest.mark.parametrize(
    "path", ["/nowhere", "/v1", "/v1/", "/v1/releases/", "/v1/releases/0000", "/page", "/page/page.js", "/../app.py"]
)
def test_addresses_that_lead_nowhere(ask, path):
    refused(ask.get(path), 404)


def test_other_methods(ask):
    answer = ask("DELETE", ask.url("agent"))
    refused(answer, 405, "GET, POST")
    assert answer.headers["Allow"] == "GET, POST"
    answer = ask.post("/v1/releases", content=json.dumps({}))
    refused(answer, 405)
    assert answer.headers["Allow"] == "GET"
    assert ask("DELETE", "/page.js").headers["Allow"] == "GET, HEAD"
    assert ask("HEAD", "/v1/releases").status_code == 405


def test_answers_that_would_be_too_large(ask, monkeypatch):
    monkeypatch.setattr("quietq.publishing.server.application.MOST_VALUES", 8)
    refused(ask.post(ask.url("agent"), json={"states": [0.5] * 3}), 413, "at most 2 states")
    assert ask.post(ask.url("agent"), json={"states": [0.5] * 2}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.org:80", "10.0.0.1", "", "a" * 5000])
def test_other_names_are_refused_in_the_same_shape(files, host):
    here = Asked({"agent": files["agent"]}, hosts=trusted_hosts("127.0.0.1", ["mine.example"]))
    answer = here.get("/v1/releases", headers={"Host": host})
    refused(answer, 400, "--allow-host")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    for name in ("localhost", "LOCALHOST:80", "a.localhost", "127.0.0.1:8080", "[::1]:80", "mine.example"):
        assert here.get("/v1/releases", headers={"Host": name}).status_code == 200


def test_a_failure_of_the_server_says_nothing_of_the_request(files, monkeypatch):
    def fail(*_):
        raise RuntimeError("0.123456")

    here = Asked({"agent": files["agent"]}, raised=False)
    monkeypatch.setattr("quietq.publishing.server.application.answer", fail)
    answer = here.get(here.url("agent"), params={"state": 0.123456})
    refused(answer, 500, "its log says why")
    assert "0.123456" not in answer.text


def test_a_body_that_is_cut_off(ask):
    async def receive():
        return {"type": "http.disconnect"}

    sent = []

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http", "method": "POST", "path": ask.url("agent"), "query_string": b"", "root_path": "",
        "headers": [(b"host", b"test"), (b"content-type", b"application/json")],
    }  # fmt: skip
    asyncio.run(ask.app(scope, receive, send))  # type: ignore[arg-type]
    assert sent[0]["status"] == 400
