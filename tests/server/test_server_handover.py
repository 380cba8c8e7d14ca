"""Files are checked before the port opens, and what a worker reads is what the parent read."""

import json
import os
import stat

import pytest
from serving import TOKEN, catalogue_of, make_files

from quietq import InvalidInput
from quietq.release import open_release
from quietq.release.publishing import copy_release
from quietq.release.signature import create_key, read_public_key
from quietq.server.catalogue import MOST_AUDIT_BYTES
from quietq.server.handover import Handover, handed_on, taken_over


@pytest.fixture
def own(tmp_path):
    return make_files(tmp_path)


def test_a_worker_takes_over_what_the_parent_read(own, monkeypatch):
    monkeypatch.setenv("QUIETQ_TOKEN", TOKEN)
    before = dict(os.environ)
    with handed_on(list(own.values())) as (catalogue, folder):
        assert TOKEN not in os.environ.values()  # a worker's environment is for all processes of its user to read
        assert TOKEN not in repr(Handover(folder, TOKEN, None))
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        for file in own.values():
            file.unlink()  # whatever happens to the files meanwhile
        there = taken_over(Handover(folder, TOKEN, None))
        assert [entry.describe() for entry in there] == [entry.describe() for entry in catalogue]
    assert not folder.exists()
    assert dict(os.environ) == before


def test_a_copy_that_was_exchanged_is_refused(own):
    with handed_on([own["agent"], own["function"]]) as (_, folder):
        (folder / "0.qq").write_bytes(own["plane"].read_bytes())
        with pytest.raises(InvalidInput, match=r"'agent.qq' is not what was read"):
            taken_over(Handover(folder, None, None))


def test_the_same_release_twice(own, tmp_path):
    again = tmp_path / "again.qq"
    again.write_bytes(own["agent"].read_bytes())
    with pytest.raises(
        InvalidInput, match=r"'agent.qq' and 'again.qq' hold the same release, [0-9a-f]{16}: give it once"
    ):
        catalogue_of(own["agent"], again)


def test_files_that_are_no_releases(own, tmp_path):
    (tmp_path / "bad.qq").write_bytes(own["agent"].read_bytes()[:-1])
    with (
        pytest.raises(InvalidInput, match=r"'bad.qq' cannot be served: This is not a release"),
        handed_on([own["agent"], tmp_path / "bad.qq"]),
    ):
        pass
    with pytest.raises(InvalidInput, match="There is no file"), handed_on([tmp_path / "nothing.qq"]):
        pass


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"{", "JSON object in UTF-8"),
        (b"\xff", "JSON object in UTF-8"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b"[1]", "finite numbers"),
        (b'{"a": [1]}', "finite numbers"),
        (b'{"a": {"b": 1}}', "finite numbers"),
        (b'{"a": NaN}', "finite numbers"),
        (b'{"a": 1e999}', "finite numbers"),
        (b'{"a": ' + b"9" * 400 + b"}", "finite numbers"),
        (b'{"a": ' + b"9" * 9000 + b"}", "JSON object"),
        (b'{"a": "\\ud800"}', "finite numbers"),
        (b'{"a": "\\u0000"}', "finite numbers"),
        (b'{"a\\u202e": 1}', "finite numbers"),
        (b"[" * 50_000, "JSON object in UTF-8"),
        (b'{"release": "0000"}', "another release, '0000'"),
        (b'{"release": null}', "another release, None"),
        (b'{"runs": 10, "verdict": "consistent"}', "must name the release that it is of"),
        (b'{"a": "' + b"x" * MOST_AUDIT_BYTES + b'"}', "at most 65536 bytes"),
    ],
)  # fmt: skip
def test_audits_that_are_none(own, content, word):
    own["agent"].with_name("agent.audit.json").write_bytes(content)
    with pytest.raises(InvalidInput, match=r"'agent.qq' cannot be served: its audit") as raised:
        catalogue_of(own["agent"])
    assert word in str(raised.value)


def test_an_audit_is_of_the_release_that_it_names(own):
    found = {"release": open_release(own["agent"]).hash, "runs": 10, "passed": True}
    own["agent"].with_name("agent.audit.json").write_text(json.dumps(found))
    (entry,) = catalogue_of(own["agent"])
    assert entry.audit == found


def test_only_what_the_key_signed_is_handed_on_and_taken_over(own):
    keys = [create_key(own["agent"].with_name(name))[:2] for name in ("mine", "other")]
    (mine, public), (other, _) = keys
    key = read_public_key(public)
    with pytest.raises(InvalidInput, match=r"'agent.qq' cannot be served: it is whole, but nobody signed it\."):
        handed_on([own["agent"]], key).__enter__()
    copy_release(own["agent"], own["agent"], sign=other)
    with pytest.raises(InvalidInput, match=r"'agent.qq' cannot be served: it is signed by another key"):
        handed_on([own["agent"]], key).__enter__()
    copy_release(own["agent"], own["agent"], sign=mine)
    with handed_on([own["agent"]], key) as (catalogue, folder):
        assert next(iter(catalogue)).signed.startswith("signed by the key given, ")
        handover = Handover(folder, None, None, key)
        assert next(iter(taken_over(handover))).key == key
        copy_release(folder / "0.qq", folder / "0.qq", sign=other)  # the hash stays
        with pytest.raises(InvalidInput, match="signed by another key"):
            taken_over(handover)


def test_links_and_folders_are_no_audits(own):
    beside = own["agent"].with_name("agent.audit.json")
    (own["agent"].parent / "secret.json").write_text('{"key": "secret"}')
    beside.symlink_to("secret.json")
    with pytest.raises(InvalidInput, match=r"'agent.audit.json', must be a plain file"), handed_on([own["agent"]]):
        pass
    beside.unlink()
    beside.mkdir()
    with pytest.raises(InvalidInput, match="must be a plain file"), handed_on([own["agent"]]):
        pass


def test_sizes_are_checked_before_anything_is_copied(own, monkeypatch):
    def copied(*_):
        raise AssertionError("copied")

    monkeypatch.setattr("shutil.copyfileobj", copied)
    with own["agent"].open("r+b") as stream:
        stream.truncate(2**40)  # a hole, which takes no room
    with pytest.raises(InvalidInput, match=r"'agent.qq' must have at most 268435456 bytes"), handed_on([own["agent"]]):
        pass
