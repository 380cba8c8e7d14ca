"""With a token, only the page and the sign of life are open without it."""

import pytest
from serving import TOKEN, Asked

from quietq import InvalidInput
from quietq.publishing.server.run import read_token


@pytest.fixture(scope="module")
def guarded(files):
    return Asked({"agent": files["agent"]}, TOKEN)


def guarded_paths(asked):
    return [
        "/v1/releases",
        "/v1/releases/nowhere/certificate",
        asked.url("agent", "certificate"),
        "/metrics",
        "/openapi.json",
    ]


@pytest.mark.parametrize(
    "given", [None, "", "Bearer", "Bearer ", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer é"]
)
def test_no_answer_without_the_token(guarded, given):
    headers = {} if given is None else {"Authorization": given.encode()}
    for path in guarded_paths(guarded):
        answer = guarded.get(path, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert "token" in answer.json()["detail"]
        assert TOKEN not in answer.text


def test_answers_with_the_token(guarded):
    headers = {"Authorization": f"bearer {TOKEN}"}
    assert guarded.get(guarded.url("agent"), params={"state": 0.5}, headers=headers).status_code == 200
    assert guarded.get("/v1/nowhere", headers=headers).status_code == 404
    document = guarded.get("/openapi.json", headers=headers).json()
    assert document["paths"]["/v1/releases"]["get"]["security"] == [{"HTTPBearer": []}]
    assert "security" not in document["paths"]["/healthz"]["get"]
    assert "401" in document["paths"]["/v1/releases"]["get"]["responses"]


def test_page_and_sign_of_life_are_open(guarded):
    for path in ("/", "/page.js", "/page.css", "/healthz"):
        assert guarded.get(path).status_code == 200


def test_where_the_token_comes_from(tmp_path, monkeypatch):
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    monkeypatch.delenv("QUIETQ_TOKEN", raising=False)
    assert read_token(None) is None
    assert read_token(file) == TOKEN
    monkeypatch.setenv("QUIETQ_TOKEN", "another-token-of-some-length")
    assert read_token(None) == "another-token-of-some-length"
    assert read_token(file) == TOKEN


@pytest.mark.parametrize(
    "content", [b"", b"short", b"with a space in between", b"\xff" * 20, b"two-lines-of-it\nand-more"]
)
def test_tokens_that_are_none(tmp_path, content):
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(InvalidInput, match="at least 16") as raised:
        read_token(file)
    assert "short" not in str(raised.value)


def test_a_token_file_that_is_not_there(tmp_path):
    with pytest.raises(InvalidInput, match="There is no file"):
        read_token(tmp_path / "nothing")
