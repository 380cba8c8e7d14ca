"""Answers are the releases' own numbers, bit for bit, and say how private they are."""

import json
from typing import Any

import numpy as np
import pytest
from keys import make_keys
from kinds import ITEMS, STATES
from serving import Asked, make_files, moving

from quietq import Box
from quietq.privacy import Code
from quietq.publishing import publish
from quietq.released import load
from quietq.released.signature import fingerprint, read_public_key

NAMES = ("agent", "plane", "function", "open")


def states(entry, count=9):
    unit = np.random.default_rng(5).uniform(size=(count, entry.release.box.dimension))
    low, high = np.array(entry.release.box.low), np.array(entry.release.box.high)
    return low + unit * (high - low)


@pytest.mark.parametrize("name", NAMES)
def test_values_are_the_releases_own(ask, name):
    entry = ask.entries[name]
    x = states(entry)
    answer = ask.post(ask.url(name), json={"states": x.tolist()})
    assert answer.status_code == 200
    assert np.array_equal(np.array(answer.json()["values"]), entry.release.values(x))
    assert answer.json()["privacy"] == answer.headers["X-Quietq-Privacy"] == entry.record.privacy


@pytest.mark.parametrize("name", ["agent", "plane"])
def test_policy(ask, name):
    entry = ask.entries[name]
    x = states(entry)
    best = entry.release.policy(x)
    answer = ask.post(ask.url(name, "policy"), json={"states": x.tolist()})
    assert answer.json() == {"actions": best.tolist(), "privacy": "certified", "signed": "nobody signed this"}


def test_a_policy_whose_actions_are_numbers(tmp_path):
    policy = moving(Box.of([(0, 1), (2, 5)]))
    publish(policy, tmp_path / "moving.qq")
    ask = Asked({"moving": tmp_path / "moving.qq"})
    x = states(ask.entries["moving"])
    actions = policy(x).tolist()
    asked = ask.post(ask.url("moving", "policy"), json={"states": x.tolist()})
    assert asked.json() == {"actions": actions, "privacy": "certified", "signed": "nobody signed this"}
    (listed,) = ask.get("/v1/releases").json()["releases"]
    assert (listed["what"], listed["outputs"], listed["actions"]) == ("agent", 2, None)
    told = ask.get(ask.url("moving", "certificate")).json()
    assert {"text": Code.TRAINED().text, "enforced": False} in told["assumptions"]
    assert any("trained on a private reward" in sentence for sentence in told["plain"])


def test_one_state_in_the_address(ask):
    entry = ask.entries["plane"]
    x = states(entry, 1)
    asked = [("state", repr(float(end))) for end in x[0]]
    assert ask.get(ask.url("plane"), params=asked).json()["values"] == entry.release.values(x).tolist()
    assert ask.get(ask.url("plane", "policy"), params=asked).json()["actions"] == entry.release.policy(x).tolist()


def test_plain_numbers_in_one_dimension_and_whole_hashes(ask):
    entry = ask.entries["agent"]
    nested = ask.post(ask.url("agent"), json={"states": [[0], [0.5], [1]]})
    plain = ask.post(f"/v1/releases/{entry.release.hash}/values", json={"states": [0, 0.5, 1]})
    assert nested.json() == plain.json()


def test_a_batch_of_the_largest_size(ask):
    entry = ask.entries["agent"]
    x = states(entry, 65_536)
    pieces = [entry.release.values(x[i : i + 1024]) for i in range(0, len(x), 1024)]
    text = ask.post(ask.url("agent"), content=json.dumps({"states": x[:, 0].tolist()}), headers=JSON_SENT)
    assert np.array_equal(np.array(text.json()["values"]), np.concatenate(pieces))


JSON_SENT = {"Content-Type": "application/json; charset=UTF-8"}


@pytest.mark.parametrize("accept", ["", "*/*", "text/html", "application/octet-stream"])
def test_answers_are_json_whatever_is_accepted(ask, accept):
    answer = ask.get(ask.url("agent"), params={"state": 0.5}, headers={"Accept": accept})
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/json")


def test_the_list_says_what_there_is(ask):
    answer = ask.get("/v1/releases")
    assert answer.headers["X-Quietq-Privacy"] == answer.json()["privacy"] == "NOT PRIVATE"
    listed = {release["name"]: release for release in answer.json()["releases"]}
    assert set(listed) == {f"{name}.qq" for name in NAMES}
    plane = listed["plane.qq"]
    assert plane["box"] == {"low": [0.0, 2.0], "high": [1.0, 5.0]}
    assert (plane["what"], plane["outputs"], plane["actions"], plane["signer"]) == ("agent", 3, 3, None)
    assert (plane["epsilon"], plane["delta"]) == (0.9, 1e-4)
    assert (listed["function.qq"]["outputs"], listed["function.qq"]["actions"]) == (1, None)
    assert listed["open.qq"]["privacy"] == "NOT PRIVATE"
    for name in NAMES:
        assert listed[f"{name}.qq"] == ask.entries[name].record.model_dump()


@pytest.mark.parametrize("name", NAMES)
def test_the_certificate_in_full_and_in_words(ask, name):
    entry = ask.entries[name]
    record = ask.get(ask.url(name, "certificate")).json()
    assert record["certificate"] == json.loads(entry.release.certificate.to_json())
    assert record["text"] == str(entry.release.certificate)
    assert record["plain"]
    assert all(isinstance(sentence, str) for sentence in record["plain"])
    assert record["privacy"] == entry.record.privacy
    assert ("NOT PRIVATE" in " ".join(record["plain"])) == (name == "open")


def test_coordinates_items_and_outputs_are_named(kinds):
    ask = Asked(kinds)
    listed = {each["name"]: each for each in ask.get("/v1/releases").json()["releases"]}
    named = {name: (one["names"], one["measure"]) for name, one in listed.items()}
    assert named["driver.qq"] == (["action 0", "action 1"], "log-probability")
    assert named["five.qq"] == (["value"], "released value")
    assert named["pushed.qq"][0][0] == "next place after the middle action"
    assert len(named["cart.qq"][0]) == 8
    assert named["cart.qq"][0][-1] == "next coordinate 3 (0) after <i>right</i>"
    assert listed["cart.qq"]["coordinates"] == [*STATES[:3], "coordinate 3 (0)"]
    assert listed["five.qq"]["coordinates"] == [f"x{k}" for k in range(5)]  # as its columns were declared
    assert (listed["catalogue.qq"]["items"], listed["catalogue.qq"]["coordinates"]) == (list(ITEMS), ["item"])
    kinds_of = {name.removesuffix(".qq"): one["what"] for name, one in listed.items()}
    assert kinds_of == {"cart": "world", "pushed": "world", "driver": "agent", "catalogue": "function",
                        "evaluated": "policy values", "five": "function"}  # fmt: skip
    assert {name for name, one in listed.items() if one["items"] is not None} == {"catalogue.qq"}


def test_items_have_their_values_and_policies_their_intervals(kinds):
    ask = Asked(kinds)
    answer = ask.post(ask.url("catalogue"), json={"states": list(range(len(ITEMS)))})
    assert np.array(answer.json()["values"])[:, 0].tolist() == load(kinds["catalogue"])(list(ITEMS)).tolist()
    released: Any = load(kinds["evaluated"])
    found = ask.get(ask.url("evaluated"), params={"state": 0}).json()["values"]
    assert found == [[one.value for one in released.values.values()]]
    plain = " ".join(ask.get(ask.url("evaluated", "certificate")).json()["plain"])
    for name, one in released.values.items():
        assert f"{name} {one.value:.4g} (from {one.low:.4g} to {one.high:.4g})" in plain


@pytest.mark.parametrize(("signed", "given"), [(False, False), (True, False), (True, True)])
def test_every_answer_says_who_signed(tmp_path, signed, given):
    """Certified is what the file says of itself: who stands behind that is said beside it."""
    files = make_files(tmp_path)
    key, public = make_keys(tmp_path / "key")
    print_of_key = fingerprint(read_public_key(public))
    publish(load(files["agent"]), files["agent"], sign=key if signed else None)
    wanted = {
        (False, False): "nobody signed this",
        (True, False): f"signed by {print_of_key}, not checked against a key",
        (True, True): f"signed by the key given, {print_of_key}",
    }[signed, given]
    ask = Asked({"agent": files["agent"]}, key=read_public_key(public) if given else None)
    for answer in (
        ask.get("/v1/releases"),
        ask.get(ask.url("agent", "certificate")),
        ask.get(ask.url("agent"), params={"state": 0.3}),
        ask.post(ask.url("agent", "policy"), json={"states": [0.1, 0.2]}),
    ):
        assert answer.json()["privacy"] == answer.headers["X-Quietq-Privacy"] == "certified"
        assert answer.json()["signed"] == answer.headers["X-Quietq-Signed"] == wanted
    (listed,) = ask.get("/v1/releases").json()["releases"]
    assert (listed["signer"], listed["signer_checked"]) == (print_of_key if signed else None, given)


@pytest.mark.parametrize(
    ("path", "kind"), [("/", "text/html"), ("/page.js", "text/javascript"), ("/page.css", "text/css")]
)
def test_the_page_and_its_headers(ask, path, kind):
    answer = ask.get(path)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == f"{kind}; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.content
    assert ask("HEAD", path).status_code == 200


@pytest.mark.parametrize("path", ["/", "/v1/releases", "/healthz", "/nowhere", "/metrics", "/openapi.json"])
def test_every_answer_has_the_headers_of_safety_and_none_of_cors(ask, path):
    headers = ask.get(path, headers={"Origin": "https://elsewhere.example"}).headers
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert not [name for name in headers if name.startswith("access-control")]


def test_answers_are_not_kept_on_the_way(ask):
    assert ask.get(ask.url("agent"), params={"state": 0.5}).headers["Cache-Control"] == "no-store"


def test_pages_that_would_load_scripts_from_elsewhere_are_off(ask):
    for path in ("/docs", "/redoc", "/docs/oauth2-redirect"):
        assert ask.get(path).status_code == 404
    assert ask.get("/openapi.json").json()["info"]["title"] == "quietq"


def test_what_is_asked_is_not_traced(files, monkeypatch):
    monkeypatch.setenv("FASTAPI_OTEL_AUTO_CONFIGURE", "true")
    app: Any = Asked(files).app
    assert not any(app._telemetry[name] for name in ("auto_configure", "tracing", "metrics", "logs"))
    assert not app._native_telemetry.enabled()
