"""Files are checked before the port opens, and what a worker reads is what the parent read."""

import json
import os
import stat
from pathlib import Path

import pytest
from serving import TOKEN, catalogue_of, make_files

from quietq import InvalidInput
from quietq.server.catalogue import MOST_AUDIT_BYTES
from quietq.server.handover import FOLDER, handed_on, taken_over


@pytest.fixture
def own(tmp_path):
    return make_files(tmp_path)


def test_a_worker_takes_over_what_the_parent_read(own):
    before = dict(os.environ)
    with handed_on(list(own.values()), TOKEN) as catalogue:
        folder = Path(os.environ[FOLDER])
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        for file in own.values():
            file.unlink()  # whatever happens to the files meanwhile
        there, token = taken_over()
        assert token == TOKEN
        assert "QUIETQ_TOKEN" not in os.environ
        assert [entry.describe() for entry in there] == [entry.describe() for entry in catalogue]
    assert not folder.exists()
    assert dict(os.environ) == before


def test_a_copy_that_was_exchanged_is_refused(own):
    with handed_on([own["agent"], own["function"]], None):
        folder = Path(os.environ[FOLDER])
        (folder / "0.qq").write_bytes(own["plane"].read_bytes())
        with pytest.raises(InvalidInput, match=r"'agent.qq' is not what was read"):
            taken_over()


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
        handed_on([own["agent"], tmp_path / "bad.qq"], None),
    ):
        pass
    with pytest.raises(InvalidInput, match="There is no file"), handed_on([tmp_path / "nothing.qq"], None):
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
        (b"[" * 50_000, "JSON object in UTF-8"),
        (b'{"release": "0000"}', "another release, '0000'"),
        (b'{"a": "' + b"x" * MOST_AUDIT_BYTES + b'"}', "at most 65536 bytes"),
    ],
)  # fmt: skip
def test_audits_that_are_none(own, content, word):
    own["agent"].with_name("agent.audit.json").write_bytes(content)
    with pytest.raises(InvalidInput, match=r"'agent.qq' cannot be served: its audit") as raised:
        catalogue_of(own["agent"])
    assert word in str(raised.value)


def test_an_audit_without_a_hash(own):
    own["agent"].with_name("agent.audit.json").write_text(json.dumps({"runs": 10, "passed": True}))
    (entry,) = catalogue_of(own["agent"])
    assert entry.audit == {"runs": 10, "passed": True}
