"""Releases come back bit by bit; whatever is not a release is refused, in one way."""

import dataclasses
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from quietq import (
    Additive,
    BandLimited,
    Box,
    Budget,
    Certificate,
    Exponential,
    Features,
    GaussianProcessMechanism,
    InvalidInput,
    Product,
    people,
)
from quietq.noise.private_function import PrivateFunction, PrivateKnots, PrivateSum, PrivateTable, PrivateWeights
from quietq.release import InvalidRelease, file, load, publish
from quietq.rewards import privatise

BUDGET = Budget(0.9, 1e-4)
SECRET = 0.123456789
PHI = Features(lambda x: np.stack([np.ones(len(x)), x[:, 0], x[:, 1]], axis=-1), rank=3, dimension=2)
KINDS = ("table", "outputs", "plane", "knots", "pure knots", "sum", "band-limited", "features")


def tent(s):
    return SECRET - np.abs(s - SECRET)


def pair(s):
    return np.stack([s, tent(s)], axis=-1)


def make(kind: str, simulate: int | None = None) -> PrivateFunction:
    if "knots" in kind:
        noise = "knots" if kind == "knots" else "k-norm"
        return privatise(tent, BUDGET, noise=noise, pieces=4, relation=people(50, 0, 0.5, 1), simulate=simulate)
    if kind == "outputs":
        mechanism = GaussianProcessMechanism.for_relation(people(50, 0, 0.5, 1, actions=2), BUDGET, levels=5)
        return mechanism.apply(pair) if simulate is None else mechanism.simulate(pair, simulate)
    additive = Additive((Exponential(4.0), Exponential(2.0)))
    kernel, domain, f = {
        "table": (Exponential(4.0), (-1, 3), tent),
        "plane": (Product((1.0, 2.0)), [(0, 1), (2, 5)], lambda s: s[:, 0] * s[:, 1]),
        "sum": (additive, [(0, 1), (2, 5)], [tent, lambda s: s**2]),
        "band-limited": (BandLimited(2.0, 1e-12), None, tent),
        "features": (PHI, None, [SECRET, 0.2, 0.3]),
    }[kind]
    mechanism = GaussianProcessMechanism(kernel, 0.02, BUDGET, domain=domain, levels=5)
    return mechanism.apply(f) if simulate is None else mechanism.simulate(f, simulate)


def numbers(thing: PrivateFunction) -> list[np.ndarray]:
    if isinstance(thing, PrivateTable | PrivateKnots):
        return [thing.values]
    if isinstance(thing, PrivateSum):
        return [part.values for part in thing.parts]
    assert isinstance(thing, PrivateWeights)
    return [thing.weights]


def states(box: Box) -> np.ndarray:
    unit = np.random.default_rng(1).uniform(size=(50, box.dimension))
    return box.from_unit(unit if box.dimension > 1 else unit[:, 0])


def features(kind: str) -> Features | None:
    return PHI if kind == "features" else None


def header_of(path) -> tuple[dict, bytes]:
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def rewrite(path, header: object, data: bytes) -> None:
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def edit(path, **changes: object) -> None:
    """Changes fields of the JSON text."""
    header, data = header_of(path)
    record = json.loads(header["__metadata__"]["quietq"]) | changes
    header["__metadata__"]["quietq"] = json.dumps(record)
    rewrite(path, header, data)


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(tmp_path, kind):
    private = make(kind)
    publish(private, tmp_path / "reward.qq")
    back = load(tmp_path / "reward.qq", features=features(kind))
    assert type(back) is type(private)
    assert back.box == private.box
    assert back.certificate == private.certificate
    for ours, theirs in zip(numbers(private), numbers(back), strict=True):
        assert ours.tobytes() == theirs.tobytes()
        assert not theirs.flags.writeable
    x = states(private.box)
    assert private(x).tobytes() == back(x).tobytes()
    publish(back, tmp_path / "again.qq")
    assert (tmp_path / "again.qq").read_bytes() == (tmp_path / "reward.qq").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["again.qq", "reward.qq"]


@pytest.mark.parametrize("kind", KINDS)
def test_holds_what_is_allowed_and_nothing_else(tmp_path, kind):
    publish(make(kind), tmp_path / "reward.qq")
    header, data = header_of(tmp_path / "reward.qq")
    metadata = header.pop("__metadata__")
    assert set(metadata) == {"quietq"}
    record = json.loads(metadata["quietq"])
    assert set(record) == {"format", "version", "privacy", "kind", "box", "levels", "kernel", "certificate"}
    assert set(record["certificate"]) == {field.name for field in dataclasses.fields(Certificate)}
    assert record["kernel"] is None or set(record["kernel"]) <= {
        *("kind", "half_width", "tolerance", "rank", "phi", "dimension")
    }
    assert set(header) <= {"values", "weights", "check", "part.0", "part.1"}
    assert str(SECRET) not in metadata["quietq"]
    assert np.float64(SECRET).tobytes() not in data
    assert not any(word in metadata["quietq"] for word in ("seed", "key", "entropy"))


@pytest.mark.parametrize("kind", KINDS)
def test_not_private_is_refused_or_says_so(tmp_path, kind):
    simulated = make(kind, simulate=987654321)
    with pytest.raises(InvalidInput, match="Only a certified release may leave"):
        publish(simulated, tmp_path / "reward.qq")
    assert not os.listdir(tmp_path)
    publish(simulated, tmp_path / "reward.qq", not_private=True)
    assert b"987654321" not in (tmp_path / "reward.qq").read_bytes()
    header, _ = header_of(tmp_path / "reward.qq")
    assert json.loads(header["__metadata__"]["quietq"])["privacy"] == "NOT PRIVATE"
    back = load(tmp_path / "reward.qq", features=features(kind))
    assert repr(back).startswith("NOT PRIVATE: Private")
    assert str(back).startswith("NOT PRIVATE: ")
    assert isinstance(back, type(simulated))
    with pytest.raises(InvalidInput):
        publish(back, tmp_path / "again.qq")
    edit(tmp_path / "reward.qq", privacy="certified")
    with pytest.raises(InvalidRelease, match="what its certificate says"):
        load(tmp_path / "reward.qq", features=features(kind))


def test_marked_things_can_be_pickled(tmp_path):
    publish(make("table", simulate=1), tmp_path / "reward.qq", not_private=True)
    assert repr(pickle.loads(pickle.dumps(load(tmp_path / "reward.qq")))).startswith("NOT PRIVATE")


def test_a_claim_is_not_a_certificate(tmp_path):
    private = make("table")
    assert isinstance(private, PrivateTable)
    claim = dataclasses.replace(private.certificate, standing="claimed", remarks=("The paper's theorem.",))
    with pytest.raises(InvalidInput, match="'claimed'"):
        publish(dataclasses.replace(private, certificate=claim), tmp_path / "reward.qq")


def test_a_sum_must_be_one_release(tmp_path):
    private, simulated = make("sum"), make("sum", simulate=1)
    assert isinstance(private, PrivateSum)
    assert isinstance(simulated, PrivateSum)
    mixed = PrivateSum((private.parts[0], simulated.parts[1]), private.box, private.certificate)
    with pytest.raises(InvalidInput, match="the sum's own certificate"):
        publish(mixed, tmp_path / "reward.qq")


def test_what_would_not_load_is_not_written(tmp_path):
    private = make("table")
    assert isinstance(private, PrivateTable)
    for values in (np.full(33, np.nan), np.zeros(32), np.full(33, 1e200)):
        with pytest.raises(InvalidInput):
            publish(dataclasses.replace(private, values=values), tmp_path / "reward.qq")
    huge = dataclasses.replace(private, values=np.broadcast_to(0.0, (2**26,)).copy(), levels=26)
    with pytest.raises(InvalidInput, match="use fewer levels"):
        publish(huge, tmp_path / "reward.qq")
    with pytest.raises(InvalidInput, match="folder that exists"):
        publish(private, tmp_path / "nowhere" / "reward.qq")

    class Other(PrivateFunction):
        certificate, box = private.certificate, private.box

        def __call__(self, states: object) -> np.ndarray:
            return np.zeros(1)

    with pytest.raises(InvalidInput, match="cannot be published"):
        publish(Other(), tmp_path / "reward.qq")
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


def test_features_are_needed_and_recognised(tmp_path):
    publish(make("features"), tmp_path / "reward.qq")
    with pytest.raises(InvalidRelease, match=r"load\(path, features=kernel\)"):
        load(tmp_path / "reward.qq")
    for other in (
        Features(lambda x: np.stack([np.ones(len(x)), x[:, 1], x[:, 0]], axis=-1), rank=3, dimension=2),
        Features(lambda x: x, rank=2, dimension=2),
        Features(lambda x: np.stack([np.ones(len(x)), x, x**2], axis=-1), rank=3),
    ):
        with pytest.raises(InvalidRelease, match="not those of the release"):
            load(tmp_path / "reward.qq", features=other)
    publish(make("table"), tmp_path / "table.qq")
    with pytest.raises(InvalidRelease, match="only weights"):
        load(tmp_path / "table.qq", features=PHI)


@pytest.mark.parametrize("kind", KINDS)
def test_mutations_are_refused_or_harmless(tmp_path, kind):
    publish(make(kind), tmp_path / "reward.qq")
    whole, target = (tmp_path / "reward.qq").read_bytes(), tmp_path / "mutated.qq"
    header = 8 + int.from_bytes(whole[:8], "little")
    rng = np.random.default_rng(KINDS.index(kind))
    loaded = 0
    for i in range(250):  # 2,000 in all
        data = bytearray(whole)
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(header if rng.random() < 0.8 else len(data)))
            what = rng.integers(5)
            if what == 0:
                data[at % len(data)] ^= 1 << int(rng.integers(8))
            elif what == 1:
                data[at % len(data)] = int(rng.choice(list(b'0123456789eE.-+[]{}":,truefalsn\\')))
            elif what == 2:
                del data[at:]
            elif what == 3:
                data[at:at] = rng.bytes(int(rng.integers(1, 20)))
            else:
                del data[at : at + int(rng.integers(1, 20))]
            if not data:
                break
        if i % 3 == 0 and len(data) > 8:  # a header length that fits again, so that the mutation gets further in
            data[:8] = (header - 8 + len(data) - len(whole)).to_bytes(8, "little", signed=True)
        target.write_bytes(data)
        try:
            back = load(target, features=features(kind))
        except InvalidRelease:
            continue
        loaded += 1
        assert all(np.isfinite(array).all() for array in numbers(back))
        assert np.isfinite(back(states(back.box))).all()
        str(back.certificate)
    assert loaded < 250


def test_hostile_fields(tmp_path):
    """Every field of the text, and every field of the certificate, set to every kind of nonsense."""
    nonsense = [None, True, -1, 1, 10**15, 1e-320, 1e308, 0.5, "", "x", [], [1], [[0.0, 1.0]], {"kind": "x"}]
    for kind in ("table", "band-limited"):
        path = tmp_path / "reward.qq"
        publish(make(kind), path)
        header, data = header_of(path)
        record = json.loads(header["__metadata__"]["quietq"])
        for value in nonsense:
            trials = [{name: value} for name in record]
            trials += [{"certificate": {**record["certificate"], name: value}} for name in record["certificate"]]
            trials += [{"kernel": {**record["kernel"], name: value}} for name in record["kernel"] or ()]
            for changes in trials:
                rewrite(path, {**header, "__metadata__": {"quietq": json.dumps({**record, **changes})}}, data)
                try:
                    back = load(path)
                except InvalidRelease:
                    continue
                assert np.isfinite(back(states(back.box))).all()


def test_hostile_headers(tmp_path):
    path = tmp_path / "reward.qq"
    publish(make("table"), path)
    whole = path.read_bytes()
    header, data = header_of(path)
    entry, text = header["values"], header["__metadata__"]["quietq"]
    inner = json.dumps({"quietq": text})

    def refuses(header: object, data: bytes, match: str) -> None:
        rewrite(path, header, data)
        with pytest.raises(InvalidRelease, match=match):
            load(path)

    for start in (b"", b"\x00" * 8, b"\xff" * 8, (2**62).to_bytes(8, "little"), (10**7).to_bytes(8, "little")):
        path.write_bytes(start + whole[8:] if start else b"")
        with pytest.raises(InvalidRelease):
            load(path)
    for hostile in ("[" * 200_000, '{"a":' * 100_000, "{" + '"\\' * 100_000, '"\\ud800"', "[]", "1" * 10_000, "NaN"):
        refuses(hostile, data, "not a release")
    refuses({**header, "__metadata__": {"quietq": "[" * 100_000}}, data, "not JSON")
    refuses({**header, "__metadata__": {"quietq": "[" * 20 + "]" * 20}}, data, "JSON object")
    refuses({**header, "__metadata__": {"quietq": '{"a":' * 20 + "1" + "}" * 20}}, data, "too deeply")
    refuses({**header, "__metadata__": {"quietq": text, "more": ""}}, data, "one text")
    refuses({**header, "__metadata__": {"quietq": {}}}, data, "one text")
    refuses({**header, "values": {**entry, "dtype": "F32", "shape": [66]}}, data, "float64")
    refuses({**header, "values": {**entry, "dtype": "I64"}}, data, "float64")
    refuses({**header, "values": {**entry, "shape": [3, 11]}}, data, "must start with")
    refuses({**header, "values": {**entry, "shape": [2**40, 2**40]}}, data, "where it must")
    refuses({**header, "values": {**entry, "shape": [-33]}}, data, "float64")
    refuses({**header, "values": {**entry, "data_offsets": [8, 272]}}, data, "where it must")
    refuses(
        {**header, "more": {"dtype": "F64", "shape": [1], "data_offsets": [264, 272]}}, data + b"\0" * 8, "one array"
    )
    refuses(header, data + b"\0", "belong to nothing")
    refuses(header, data[:-8] + np.float64(np.nan).tobytes(), "not finite")
    refuses(header, data[:-8] + np.float64(-np.inf).tobytes(), "not finite")
    twice = f'{{"__metadata__": {inner}, "__metadata__": {inner}, "values": {json.dumps(entry)}}}'
    refuses(twice, data, "twice")
    twice = json.dumps(header).replace('{\\"format\\"', '{\\"format\\": 1, \\"format\\"')
    refuses(twice, data, "twice")
    refuses(
        json.dumps(header).replace('\\"version\\": \\"', '\\"version\\": \\"\\\\u001b[31m'), data, "control characters"
    )


def test_sizes_are_checked_before_reading(tmp_path):
    path = tmp_path / "huge.qq"
    with path.open("wb") as stream:
        stream.truncate(file.MOST_BYTES + 1)  # a hole: takes no room
    with pytest.raises(InvalidRelease, match="more than"):
        load(path)
    for wrong in (tmp_path, tmp_path / "nothing", "/dev/zero"):
        with pytest.raises(InvalidRelease, match="no file"):
            load(wrong)
    with pytest.raises(InvalidRelease, match="could not be read"):
        load(tmp_path / ("x" * 5000))


def test_a_hostile_kernel_costs_nothing(tmp_path):
    path = tmp_path / "reward.qq"
    publish(make("band-limited"), path)
    rank = len(numbers(load(path))[0])
    for width in (1e300, 1e9, rank + 1.0, 1e-320):
        edit(path, kernel={"kind": "band-limited", "half_width": width, "rank": rank, "tolerance": 1e-12})
        with pytest.raises(InvalidRelease):
            load(path)


def test_loading_imports_nothing(tmp_path):
    for kind in ("table", "knots", "sum", "band-limited"):
        publish(make(kind), tmp_path / f"{kind}.qq")
    code = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ("jax", "polars", "torch", "matplotlib", "safetensors"):
            raise ImportError(name)

sys.meta_path.insert(0, Absent())
from quietq.release import load
before = set(sys.modules)
for kind in ("table", "knots", "sum", "band-limited"):
    load({str(tmp_path)!r} + f"/{{kind}}.qq")
assert set(sys.modules) == before, set(sys.modules) - before
assert "pickle" not in load.__globals__
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", KINDS)
def test_any_safetensors_reader_opens_it(tmp_path, kind):
    reader = pytest.importorskip("safetensors.numpy")
    private = make(kind)
    publish(private, tmp_path / "reward.qq")
    arrays = reader.load_file(tmp_path / "reward.qq")
    arrays.pop("check", None)
    for ours, theirs in zip(numbers(private), [arrays[name] for name in sorted(arrays)], strict=True):
        assert np.array_equal(ours, theirs)
