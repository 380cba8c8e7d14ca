"""Files are checked before the port opens, and a worker is given the bytes that were checked."""

import pickle
from functools import partial

import pytest
from keys import make_keys
from serving import TOKEN, ask, catalogue_of, make_files

from quietq import InvalidInput
from quietq.publishing.publish import copy_release
from quietq.publishing.server.catalogue import open_catalogue, read_served
from quietq.publishing.server.run import start_worker
from quietq.released.signature import read_public_key


@pytest.fixture
def own(tmp_path):
    return make_files(tmp_path)


def test_a_worker_serves_what_was_checked_whatever_becomes_of_the_file(own):
    checked = read_served(own["agent"])
    own["agent"].write_bytes(own["plane"].read_bytes())
    start = pickle.loads(pickle.dumps(partial(start_worker, [checked], ["*"], None, TOKEN)))  # as for a new process
    (entry,) = open_catalogue([checked]).values()
    answer = ask(start(), "GET", "/v1/releases", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.json()["releases"] == [entry.record.model_dump()]


def test_a_worker_checks_the_bytes_again(own):
    checked = read_served(own["agent"])
    damaged = (checked[0], checked[1][:-1] + b"x")
    with pytest.raises(InvalidInput, match=r"'agent.qq' cannot be served"):
        start_worker([damaged], ["*"], None, None)


def test_the_same_release_twice(own, tmp_path):
    again = tmp_path / "again.qq"
    again.write_bytes(own["agent"].read_bytes())
    with pytest.raises(
        InvalidInput, match=r"'agent.qq' and 'again.qq' hold the same release, [0-9a-f]{16}: give it once"
    ):
        catalogue_of(own["agent"], again)


def test_files_that_are_no_releases(own, tmp_path):
    (tmp_path / "bad.qq").write_bytes(own["agent"].read_bytes()[:-1])
    with pytest.raises(InvalidInput, match=r"'bad.qq' cannot be served: This is not a release"):
        catalogue_of(own["agent"], tmp_path / "bad.qq")
    with pytest.raises(InvalidInput, match=r"There is no file '.*nothing.qq'"):
        catalogue_of(tmp_path / "nothing.qq")


def test_only_what_the_key_signed_is_served_by_any_worker(own):
    (mine, public), (other, _) = (make_keys(own["agent"].with_name(name)) for name in ("mine", "other"))
    key = read_public_key(public)
    with pytest.raises(InvalidInput, match=r"'agent.qq' cannot be served: it is whole, but nobody signed it\."):
        catalogue_of(own["agent"], key=key)
    copy_release(own["agent"], own["agent"], sign=other)
    with pytest.raises(InvalidInput, match=r"'agent.qq' cannot be served: it is signed by another key"):
        catalogue_of(own["agent"], key=key)
    with pytest.raises(InvalidInput, match="signed by another key"):
        start_worker([read_served(own["agent"])], ["*"], key, None)
    copy_release(own["agent"], own["agent"], sign=mine)
    (entry,) = catalogue_of(own["agent"], key=key).values()
    assert entry.record.signed.startswith("signed by the key given, ")
    assert start_worker([read_served(own["agent"])], ["*"], key, None)


def test_sizes_are_checked_before_anything_is_read(own):
    with own["agent"].open("r+b") as stream:
        stream.truncate(2**40)  # a hole, which takes no room
    with pytest.raises(InvalidInput, match=r"more than 268435456 bytes"):
        read_served(own["agent"])
