"""Whatever is sent, the answer is one of those that the schema knows, and never an error of the server."""

import json
import struct

import pytest
from hypothesis import given, settings, strategies as st

KINDS = ["application/json", "application/octet-stream", "application/json;charset=utf-8", "text/plain", "a/b;;=", ""]
ACCEPTS = ["", "*/*", "application/octet-stream", "application/json;q=0.0.1", "*/*;q=-1", ";;,,", "application/*;q="]
numbers = st.floats() | st.integers(-(10**400), 10**400) | st.floats(0, 1)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)
records = values | st.fixed_dictionaries(
    {"states": values | st.lists(numbers | st.lists(numbers, max_size=3), max_size=5)}
)
texts = records.map(lambda record: json.dumps(record).encode())
broken = st.tuples(texts, st.integers(0, 200), st.binary(max_size=3)).map(
    lambda made: made[0][: made[1]] + made[2] + made[0][made[1] :]
)
arrays = st.lists(st.floats() | st.floats(0, 1), max_size=6).map(lambda found: struct.pack(f"<{len(found)}d", *found))
printable = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30)


def check(answer):
    assert answer.status_code in (200, 404, 409, 413, 415, 422)
    if answer.status_code >= 400:
        assert answer.json()["detail"].endswith(".")
        assert len(answer.json()["detail"]) < 400


def bodies(ask, what, body, kind, accept):
    headers = {"Content-Type": kind, "Accept": accept}
    check(ask.post(ask.url(*what), content=body, headers=headers))


WHERE = st.sampled_from([("agent", "values"), ("agent", "policy"), ("plane", "values"), ("function", "policy")])
BODY = texts | broken | arrays | st.binary(max_size=64)


@settings(max_examples=80)
@given(WHERE, BODY, st.sampled_from(KINDS) | printable, st.sampled_from(ACCEPTS) | printable)
def test_any_body(ask, what, body, kind, accept):
    bodies(ask, what, body, kind, accept)


@pytest.mark.slow
@settings(max_examples=20_000)
@given(WHERE, BODY, st.sampled_from(KINDS) | printable, st.sampled_from(ACCEPTS) | printable)
def test_any_body_at_length(ask, what, body, kind, accept):
    bodies(ask, what, body, kind, accept)


@given(
    WHERE,
    st.lists(st.tuples(st.sampled_from(["state", "states", "x"]), st.text(max_size=8) | numbers.map(str)), max_size=4),
)
def test_any_query(ask, what, query):
    check(ask.get(ask.url(*what), params=query))


@given(st.text(max_size=20), st.sampled_from(["", "/values", "/policy", "/certificate", "/"]))
def test_any_id(ask, name, what):
    from urllib.parse import quote

    answer = ask.get(f"/v1/releases/{quote(name, safe='')}{what}?state=0.5")
    assert answer.status_code in (200, 404)  # an empty id leads to the list
