"""Releases come back bit by bit, hold what is allowed and nothing else, and are written whole or not at all."""

import dataclasses
import json
import os
import pickle
import subprocess
import sys
from typing import Any

import msgspec
import numpy as np
import pytest
from releases import AGENTS, BUDGET, KINDS, SECRET, edit, header_of, make, numbers, record_of, states

from quietq import Certificate, Exponential, GaussianProcessMechanism, InvalidInput
from quietq.publishing import publish
from quietq.released import InvalidRelease, load, open_release
from quietq.released.private_function import PrivateFunction, PrivateTable
from quietq.released.release_file import write_release


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(tmp_path, kind):
    private = make(kind)
    name = publish(private, tmp_path / "reward.qq")
    release = open_release(tmp_path / "reward.qq")
    back = release.function
    assert release.hash == name
    assert release.privacy == "certified"
    assert release.signer is None
    assert release.what == ("agent" if kind in AGENTS else "function")
    assert type(back) is type(private)
    assert back.box == private.box
    assert back.certificate == private.certificate
    for ours, theirs in zip(numbers(private), numbers(back), strict=True):
        assert ours.tobytes() == theirs.tobytes()
        assert not theirs.flags.writeable
    x = states(private)
    assert private(x).tobytes() == back(x).tobytes()
    assert release.values(x.reshape(len(x), -1)).tobytes() == private(x).tobytes()
    assert publish(back, tmp_path / "again.qq") == name
    assert (tmp_path / "again.qq").read_bytes() == (tmp_path / "reward.qq").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["again.qq", "reward.qq"]


@pytest.mark.parametrize("kind", KINDS)
def test_holds_what_is_allowed_and_nothing_else(tmp_path, kind):
    publish(make(kind), tmp_path / "reward.qq")
    header, data = header_of(tmp_path / "reward.qq")
    metadata = header.pop("__metadata__")
    assert set(metadata) == {"quietq", "sha256"}
    record = json.loads(metadata["quietq"])
    assert set(record) == {"format", "version", "privacy", "box", "labels", "details", "certificate"}
    assert set(record["certificate"]) == set(Certificate.__struct_fields__)
    assert set(record["details"]) <= {
        *("kind", "levels", "summed", "form", "size", "output", "draws", "training", "activation", "clip", "threshold"),
        *("feature_map", "low", "high"),
        *("moved", "known", "circles", "actions", "action_box", "rate", "reward", "end_reward", "ends", "errors"),
    }
    allowed = {"values", "weights", "mean", "covariance", "edges", "action_range", "normal", "knots", "offset"}
    allowed |= {"weights.0", "weights.1", "biases.0", "biases.1"}
    allowed |= {"gram", "residual", "left", "right", "first", "spread"}  # of a world
    allowed |= {f"{part}.{name}" for part in ("reward", "ends") for name in ("offset", "weights", "knots")}
    assert set(header) <= allowed
    assert str(SECRET) not in metadata["quietq"]
    assert np.float64(SECRET).tobytes() not in data
    assert not any(word in metadata["quietq"] for word in ("seed", "key", "entropy"))


@pytest.mark.parametrize("kind", KINDS)
def test_not_private_is_refused_or_says_so(tmp_path, kind):
    simulated = make(kind, simulate=987654321)
    with pytest.raises(InvalidInput, match="Only a certified release can be published"):
        publish(simulated, tmp_path / "reward.qq")
    assert not os.listdir(tmp_path)
    publish(simulated, tmp_path / "reward.qq", not_private=True)
    assert b"987654321" not in (tmp_path / "reward.qq").read_bytes()
    assert record_of(tmp_path / "reward.qq")["privacy"] == "NOT PRIVATE"
    release = open_release(tmp_path / "reward.qq")
    assert release.privacy == "NOT PRIVATE"
    back = release.function
    assert repr(back).startswith("NOT PRIVATE: ")
    assert str(back).startswith("NOT PRIVATE: ")
    assert isinstance(back, type(simulated))
    with pytest.raises(InvalidInput):
        publish(back, tmp_path / "again.qq")
    edit(tmp_path / "reward.qq", privacy="certified")
    with pytest.raises(InvalidRelease, match="what its certificate says"):
        load(tmp_path / "reward.qq")


def test_marked_things_can_be_pickled(tmp_path):
    publish(make("table", simulate=1), tmp_path / "reward.qq", not_private=True)
    assert repr(pickle.loads(pickle.dumps(load(tmp_path / "reward.qq")))).startswith("NOT PRIVATE")


def test_a_claim_is_not_a_certificate(tmp_path):
    private = make("table")
    assert isinstance(private, PrivateTable)
    claim = msgspec.structs.replace(private.certificate, standing="claimed", remarks=("The paper's theorem.",))
    with pytest.raises(InvalidInput, match="'claimed'"):
        publish(dataclasses.replace(private, certificate=claim), tmp_path / "reward.qq")


def test_what_would_not_load_is_not_written(tmp_path):
    private = make("table")
    assert isinstance(private, PrivateTable)
    for values in (np.full(33, np.nan), np.zeros(32), np.full(33, 1e200)):
        with pytest.raises(InvalidInput):
            write_release(dataclasses.replace(private, values=values), tmp_path / "reward.qq")
    huge = dataclasses.replace(private, values=np.broadcast_to(0.0, (2**25,)).copy(), levels=25)
    with pytest.raises(InvalidInput, match="use fewer levels"):
        write_release(huge, tmp_path / "reward.qq")
    with pytest.raises(InvalidInput, match="folder that exists"):
        publish(private, tmp_path / "nowhere" / "reward.qq")

    class Other(PrivateFunction):
        certificate, box = private.certificate, private.box

        def __call__(self, states: object) -> np.ndarray:
            return np.zeros(1)

        def _shape(self) -> str:
            return ""

    with pytest.raises(InvalidInput, match="cannot be published"):
        publish(Other(), tmp_path / "reward.qq")
    with pytest.raises(InvalidInput, match="Only an agent"):
        publish(np.zeros(3), tmp_path / "reward.qq")  # type: ignore[arg-type]
    assert not os.listdir(tmp_path)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    publish(make("table"), tmp_path / "reward.qq")
    before = (tmp_path / "reward.qq").read_bytes()

    def fail(*_):
        raise OSError("disk full")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            with pytest.raises(OSError, match="disk full"):
                publish(make("table"), tmp_path / "reward.qq")
    assert os.listdir(tmp_path) == ["reward.qq"]
    assert (tmp_path / "reward.qq").read_bytes() == before


def test_loading_imports_nothing_more(tmp_path):
    for kind in KINDS:
        publish(make(kind), tmp_path / f"{kind}.qq")
    code = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ("jax", "polars", "torch", "matplotlib", "safetensors", "cryptography"):
            raise ImportError(name)

sys.meta_path.insert(0, Absent())
from quietq import load
before = set(sys.modules)
for kind in {KINDS!r}:
    load({str(tmp_path)!r} + f"/{{kind}}.qq")
assert set(sys.modules) == before  # nothing in a file names a module
assert "pickle" not in load.__globals__
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", KINDS)
def test_any_safetensors_reader_opens_it(tmp_path, kind):
    reader = pytest.importorskip("safetensors.numpy")
    private = make(kind)
    publish(private, tmp_path / "reward.qq")
    arrays = list(reader.load_file(tmp_path / "reward.qq").values())
    for ours in numbers(private):
        assert any(np.array_equal(ours, theirs) for theirs in arrays)


@pytest.mark.parametrize("kind", ["table", "outputs", "plane", "sum"])
def test_numbers_that_were_not_rounded_with_the_noise_borrow_no_certificate(tmp_path, kind):
    private: Any = make(kind)
    raw = dataclasses.replace(private, values=private.values + 1e-9)
    with pytest.raises(InvalidInput, match="not what was released under its certificate"):
        publish(raw, tmp_path / "raw.qq")
    with pytest.raises(InvalidInput, match="not multiples of the step"):
        write_release(raw, tmp_path / "raw.qq")
    assert not os.listdir(tmp_path)


def test_a_sum_of_one_kernel_is_published_as_the_kernel_is(tmp_path):
    """What was paid for must not turn out to be of no file's form."""
    private = GaussianProcessMechanism(Exponential(4.0, summed=True), 0.02, BUDGET, levels=5).apply(lambda s: s)
    publish(private, tmp_path / "one.qq")
    assert load(tmp_path / "one.qq")(0.5) == private(0.5)
