"""Whatever is not a release is refused, in one way."""

import contextlib
import json
import re
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from releases import BUDGET, arrays_of, edit, header_of, make, record_of, rewrite, states

from quietq import people
from quietq.mechanisms import privatise
from quietq.paper import BandLimited, FeatureKernel, FiniteRankMechanism
from quietq.privacy.norms import vertices
from quietq.publishing import publish
from quietq.released import InvalidRelease, PrivateKnots, load
from quietq.released.release_file import MOST_BYTES, open_bytes, pack

FUZZ = Path(__file__).with_name("fuzz.py")


def fuzz(trials: int, seed: int) -> dict[str, int]:
    """In a process of its own, with limits on memory and on the time of each file."""
    done = subprocess.run(
        [sys.executable, str(FUZZ), str(trials), str(seed)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_mutations_are_refused_or_harmless():
    found = fuzz(1_000, seed=1)
    assert found["refused"] + found["loaded"] == 1_000
    assert found["refused"] > 500
    assert found["loaded"] > 10  # some get past everything, and are then asked


@pytest.mark.slow
def test_a_hundred_thousand_mutations():
    found = fuzz(100_000, seed=2)
    assert found["refused"] + found["loaded"] == 100_000
    assert found["refused"] > 50_000
    assert found["loaded"] > 100


@pytest.mark.parametrize("kind", ["table", "sum", "mlp"])
def test_any_changed_byte_is_seen(tmp_path, kind):
    path = tmp_path / "reward.qq"
    publish(make(kind), path)
    whole = path.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    spaces = len(whole[8 : 8 + length]) - len(whole[8 : 8 + length].rstrip())
    for at in range(0, len(whole), 7):
        if 8 + length - spaces <= at < 8 + length:
            continue  # padding
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(InvalidRelease):
            load(path)
    for end in range(0, len(whole), 13):
        path.write_bytes(whole[:end])
        with pytest.raises(InvalidRelease):
            load(path)


def test_hostile_fields(tmp_path):
    """Every field of the text, and every field of the certificate, set to every kind of nonsense."""
    nonsense = [None, True, -1, 1, 10**15, 1e-320, 1e308, 0.5, "", "x", [], [1], [[0.0, 1.0]], {"kind": "x"}]
    for kind in ("table", "sum", "agent", "moving policy"):
        path = tmp_path / "reward.qq"
        publish(make(kind), path)
        record, arrays = record_of(path), arrays_of(path)
        for value in nonsense:
            trials = [{name: value} for name in record]
            if kind in ("table", "agent"):  # a function's and an agent's: other kinds read it in the same way
                stated = record["certificate"]
                inside = {"relation": stated["relation"] or {}, "budget": stated["budget"]}
                changed = [{name: value} for name in stated]
                changed += [{part: {**inside[part], name: value}} for part in inside for name in inside[part]]
                changed += [{"queries": [{**stated["queries"][0], name: value}]} for name in stated["queries"][0]]
                changed += [{"assumptions": [value, *stated["assumptions"]]}, {"queries": [value]}]
                trials += [{"certificate": {**stated, **change}} for change in changed]
            trials += [{"details": {**record["details"], name: value}} for name in record["details"]]
            for changes in trials:
                path.write_bytes(pack(json.dumps({**record, **changes}), arrays))
                try:
                    back = load(path)
                except InvalidRelease:
                    continue
                assert np.isfinite(back(states(back))).all()


@pytest.mark.parametrize("budget", [{"epsilon": 0.9, "delta": 1e-300}, {"epsilon": 1e7, "delta": 1e-4}])
def test_a_budget_that_no_mu_can_be_computed_for_is_refused(tmp_path, budget):
    path = tmp_path / "reward.qq"
    publish(make("table"), path)
    stated = record_of(path)["certificate"]
    query = {**stated["queries"][0], "size": 1e9}  # noise that is enough for any
    edit(path, certificate={**stated, "queries": [query]})
    load(path)
    edit(path, certificate={**stated, "queries": [query], "budget": budget})
    with pytest.raises(InvalidRelease, match=r"(delta|epsilon) must be"):
        load(path)


def test_hostile_headers(tmp_path):
    path = tmp_path / "reward.qq"
    publish(make("table"), path)
    whole = path.read_bytes()
    header, data = header_of(path)
    entry, metadata = header["values"], header["__metadata__"]
    text, inner = metadata["quietq"], json.dumps(metadata)

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
    for hostile, match in (
        ("[" * 100_000, "not JSON"),
        ("[" * 20 + "]" * 20, "JSON object"),
        ('{"a": ' * 20 + "1" + "}" * 20, "too deeply"),
    ):
        refuses({**header, "__metadata__": {**metadata, "quietq": hostile}}, data, match)
    refuses({**header, "__metadata__": {**metadata, "more": ""}}, data, "its texts must be")
    refuses({**header, "__metadata__": {**metadata, "signature": ""}}, data, "its texts must be")
    refuses({**header, "__metadata__": {"quietq": text}}, data, "its texts must be")
    refuses({**header, "__metadata__": {**metadata, "quietq": {}}}, data, "must be text")
    refuses({**header, "__metadata__": {**metadata, "sha256": "0" * 64}}, data, "changed or damaged")
    refuses({**header, "__metadata__": {**metadata, "quietq": text.replace(" ", "")}}, data, "is not spelled as")
    refuses(json.dumps(header).replace("[0, ", "[-0, "), data, "is not spelled as")
    refuses({**header, "__metadata__": {**metadata, "quietq": text[:-1] + ', "more": 1e999}'}}, data, "not JSON")
    refuses(
        {**header, "__metadata__": {**metadata, "quietq": text[:-1] + ', "more": 1.50}'}}, data, "is not spelled as"
    )
    refuses({**header, "values": {**entry, "dtype": "F32", "shape": [66]}}, data, "float64")
    refuses({**header, "values": {**entry, "dtype": "I64"}}, data, "float64")
    refuses({**header, "values": {**entry, "shape": [3, 11]}}, data, "changed or damaged")
    refuses({**header, "values": {**entry, "shape": [2**40, 2**40]}}, data, "where it must")
    refuses({**header, "values": {**entry, "shape": [-33]}}, data, "float64")
    refuses({**header, "values": {**entry, "data_offsets": [8, 272]}}, data, "where it must")
    refuses(header, data + b"\0", "belong to nothing")
    refuses(header, data[:-8] + np.float64(np.nan).tobytes(), "not finite")
    refuses(header, data[:-8] + np.float64(-np.inf).tobytes(), "not finite")
    twice = f'{{"__metadata__": {inner}, "__metadata__": {inner}, "values": {json.dumps(entry)}}}'
    refuses(twice, data, "every key and number once")
    twice = json.dumps(header).replace('{\\"format\\"', '{\\"format\\": 1, \\"format\\"')
    refuses(twice, data, "every key and number once")
    refuses(
        json.dumps(header).replace('\\"version\\": \\"', '\\"version\\": \\"\\\\u001b[31m'), data, "control characters"
    )


def test_arrays_must_fit_what_is_said_of_them(tmp_path):
    path = tmp_path / "release.qq"
    for kind, changes in {
        "table": {"values": np.zeros((3, 11)), "more": np.zeros(3)},
        "knots": {"values": np.zeros(1)},
        "observed": {"values": np.zeros((3, 2))},
        "mlp": {
            "weights.0": np.zeros((2, 4, 2)), "weights.1": np.zeros((2, 3, 5)), "biases.0": np.zeros((2, 3)),
            "biases.1": np.full((2, 3), 1e40), "weights.2": np.zeros((2, 3, 3)),
        },
        "splines": {"weights.0": np.zeros((1, 2, 5)), "biases.0": np.zeros((1, 2))},
        "moving policy": {
            "weights.0": np.zeros((4, 3)), "weights.1": np.zeros((3, 4, 1)), "biases.1": np.full(3, 1e40),
            "action_range": np.zeros((2, 3)), "normal": -np.ones((2, 2)), "weights.2": np.zeros((3, 3)),
        },
        "choosing policy": {"action_range": np.array([[0.0] * 3, [1.0] * 3]), "normal": np.ones((2, 2))},
        "world": {
            "right": np.zeros((2, 2)), "gram": np.ones((4, 4)), "residual": -np.eye(2), "weights": np.zeros((4, 1)),
            "left": np.full((4, 4), 1e40), "spread": np.array([[0.0, 1.0], [0.0, 0.0]]), "first": np.zeros(3),
        },
    }.items():  # fmt: skip
        publish(make(kind), path)
        record, arrays = json.dumps(record_of(path)), arrays_of(path)
        for name, value in changes.items():
            path.write_bytes(pack(record, {**arrays, name: value}))
            with pytest.raises(InvalidRelease):
                load(path)
        for name in arrays:
            path.write_bytes(pack(record, {other: array for other, array in arrays.items() if other != name}))
            with pytest.raises(InvalidRelease):
                load(path)


def test_what_a_world_says_of_itself_must_fit(tmp_path):
    path = tmp_path / "world.qq"
    publish(make("world"), path)
    record, whole = record_of(path), path.read_bytes()
    details, labels, errors = record["details"], record["labels"], record["details"]["errors"]
    printable = "must be 1 to 80 printable letters"
    for change, words in (
        ({"action_box": 3}, "details.action_box: Expected `object | null`, got `int`"),
        ({"action_box": {"low": [0.0], "high": 1.0}}, "details.action_box.high: Expected `array`, got `float`"),
        ({"action_box": {"low": [0.0], "high": ["x"]}, "actions": None}, "Expected `float`, got `str`"),
        ({"action_box": {"low": [1.0], "high": [0.0]}, "actions": None}, "low below high"),
        ({"action_box": {"low": [0.0], "high": [1.0], "more": 1}, "actions": None}, "every field of its kind"),
        ({"action_box": {"low": [0.0], "high": [1.0]}}, "or else an action_box"),
        ({"actions": 3}, "There must be 3 different names of actions, not 2"),
        ({"moved": [1, 0]}, "its moved coordinates"),
        ({"moved": []}, "details.moved: Expected `array` of length >= 1"),
        ({"moved": [0, 2]}, "its moved coordinates"),
        ({"moved": [0.5]}, "Expected `int`, got `float`"),
        ({"known": ["end"]}, "its ends must be learned, or else known"),
        ({"known": ["moon"]}, "Invalid enum value 'moon'"),
        ({"known": ["start", "start"]}, "its arrays must be"),
        ({"reward": None}, "its arrays must be"),
        ({"errors": 3}, "details.errors: Expected `object`, got `int`"),
        ({"errors": {**errors, "more": 1.0}}, "unknown field `more`"),
        ({"errors": {**errors, "reward_noise": -1.0}}, "reward_noise must be at least 0"),
        (
            {"errors": {**errors, "reward_kept": "all"}},
            "details.errors.reward_kept: Expected `float | null`, got `str`",
        ),
        ({"errors": {**errors, "ends_noise": None}}, "its errors must be stated for all that is learned"),
        ({"errors": {**errors, "starts_seen": None}}, "its errors must be stated for all that is learned"),
        ({"end_reward": 0.5}, "its errors must be stated for all that is learned"),
        ({"end_reward": 9.0, "errors": {**errors, "end_reward_noise": 0.1}}, "its reward at ends must be learned"),
        ({"circles": [[0, 2]]}, "circles must be of coordinates 0 to 1, not of 2"),
        ({"circles": [[0, 0]]}, "circles must name each coordinate once"),
        ({"circles": [[0, 1]]}, "whose box holds -1 to 1; that of coordinate 1"),
        ({"circles": [[0]]}, "Expected `array` of length 2"),
        ({"circles": [[0, -1]]}, "circles must be a whole number of at least 0"),
        ({"rate": "often"}, "details.rate: Expected `float`, got `str`"),
    ):
        path.write_bytes(whole)
        edit(path, details=details | change)
        with pytest.raises(InvalidRelease, match=re.escape(words)) as refused:
            load(path)
        assert str(refused.value).count("is not a release") == 1
    for change, words in (
        ({"actions": ["a", "b", "c"]}, "There must be 2 different names of actions, not 3"),
        ({"states": "xy"}, "labels.states: Expected `array`, got `str`"),
        ({"states": ["x"]}, "There must be 2 different names of states, not 1"),
        ({"states": ["x", "x"]}, "different names of states"),
        ({"states": ["x", 3]}, "Expected `str`, got `int`"),
        ({"states": ["x", "y\nmore"]}, "its text holds control characters"),
        ({"states": ["x", " "]}, f"The name of each state {printable}"),
        ({"actions": ["x", "\u202egnp"]}, f"The name of each action {printable}"),
        ({"actions": ["x", "a" * 81]}, f"The name of each action {printable}"),
        ({"actions": [["x"], "y"]}, "Expected `str`, got `array`"),
    ):
        path.write_bytes(whole)
        edit(path, labels=labels | change)
        with pytest.raises(InvalidRelease, match=re.escape(words)) as refused:
            load(path)
        assert str(refused.value).count("is not a release") == 1
    path.write_bytes(whole)
    edit(path, details=details | {"actions": 3}, labels=labels | {"actions": ["a", "b", "c"]})
    with pytest.raises(InvalidRelease, match="its reward must fit its actions"):
        load(path)


def test_sizes_are_checked_before_reading(tmp_path):
    path = tmp_path / "huge.qq"
    with path.open("wb") as stream:
        stream.truncate(MOST_BYTES + 1)  # a hole: takes no room
    with pytest.raises(InvalidRelease, match="more than"):
        load(path)
    for wrong in (tmp_path, tmp_path / "nothing", "/dev/zero"):
        with pytest.raises(InvalidRelease, match=r"no file|is a folder"):
            load(wrong)
    with pytest.raises(InvalidRelease, match="could not be read"):
        load(tmp_path / ("x" * 5000))


def test_weights_are_in_no_file(tmp_path):
    """Nor is a table that borrows the certificate of weights, whose noise another norm hides."""
    path, kernel = tmp_path / "reward.qq", FeatureKernel(lambda x: np.stack([np.ones_like(x), x], axis=-1), rank=2)
    weights = FiniteRankMechanism(kernel, 0.02, BUDGET, domain=(-1, 3)).apply([0.1, 0.2])
    for one in (weights, FiniteRankMechanism(BandLimited(2.0), 0.02, BUDGET, domain=(-1, 3)).apply(np.sin)):
        for kind in ("table", "sum", "knots"):
            publish(make(kind), path)
            edit(path, certificate=one.certificate.to_dict(), box=[[-1.0, 3.0]])
            with pytest.raises(InvalidRelease):
                load(path)
        publish(make("table"), path)
        edit(path, certificate=one.certificate.to_dict())
        with pytest.raises(InvalidRelease, match="its noise must be that of a PrivateTable"):
            load(path)
        edit(path, details={"kind": "weights", "kernel": kernel.norm.to_dict()})
        with pytest.raises(InvalidRelease, match=re.escape("details.kind: Invalid value 'weights'")):
            load(path)


def test_hostile_features_cost_nothing(tmp_path):
    path = tmp_path / "agent.qq"
    publish(make("splines"), path)
    details = record_of(path)["details"]
    for form in ("splines", "grid"):
        for size in (10**15, 4097, 1, 0, -5):
            edit(path, details={**details, "form": form, "size": size})
            with pytest.raises(InvalidRelease):
                load(path)


def test_no_layer_may_overflow_on_the_way(tmp_path):
    path = tmp_path / "agent.qq"
    publish(make("mlp"), path)
    record, arrays = json.dumps(record_of(path)), arrays_of(path)
    scaled = {**arrays, "weights.0": arrays["weights.0"] * 1e60, "weights.1": arrays["weights.1"] * 1e-60}
    path.write_bytes(pack(record, scaled))
    with pytest.raises(InvalidRelease, match="too large to compute with"):
        load(path)


def test_many_runs_or_wide_layers_do_not_fill_memory(tmp_path):
    path = tmp_path / "agent.qq"
    publish(make("mlp"), path)
    record = json.dumps(record_of(path))
    wide = {"weights.0": np.zeros((1, 1, 1)), "weights.1": np.zeros((1, 200_000, 1))}
    wide |= {"biases.0": np.zeros((1, 1)), "biases.1": np.zeros((1, 200_000))}
    path.write_bytes(pack(record, wide))
    network = load(path)
    tracemalloc.start()
    network(np.zeros(50))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * 50 * 200_000 * 8  # the answer itself, and little more
    many = {"weights.0": np.zeros((1025, 1, 1)), "biases.0": np.zeros((1025, 1))}
    path.write_bytes(pack(record, many))
    with pytest.raises(InvalidRelease, match="more than 1024 runs"):
        load(path)


def slow_files(folder: Path) -> dict[str, bytes]:
    """Files that were crafted to take long to verify: each kind of thing that a file can have many or large ones of."""
    path = folder / "release.qq"
    publish(make("table"), path)
    record, arrays = record_of(path), arrays_of(path)
    [query] = record["certificate"]["queries"]

    def text(**changes: object) -> bytes:
        return pack(json.dumps({**record, **changes}, separators=(",", ":")), arrays)

    def certificate(**changes: object) -> bytes:
        return text(certificate={**record["certificate"], **changes})

    def product(sides: int) -> bytes:
        kernel = {"kind": "product", "betas": [1.0] * sides}
        ball = {"kind": "rkhs-ball", "radius": 0.01, "kernel": kernel, "people": None, "actions": 1}
        answered = {"norm": kernel, "family": "gaussian", "sensitivity": 0.01, "size": 10.0}
        return certificate(relation=ball, queries=[answered], domain=[[0.0, 1.0]] * sides)

    many = 39_000
    found = {f"{many} {item!r}": text(more=[item] * many) for item in (0, 0.1, "", [], {}, {"a": 0})}
    found |= {f"product of {sides}": product(sides) for sides in (256, 9_000)}
    found |= {f"header of {item!r}": _header([item] * many) for item in (0, 0.1, "", [], {}, {"a": 0})}
    found["keys"] = _header({hex(i): 0 for i in range(many)})
    found["backslashes"] = _header("\\" * 500_000)
    caller = [{"code": "vouched-by-caller", "values": [f"x{i}"]} for i in range(3_900)]
    found["assumptions"] = certificate(assumptions=record["certificate"]["assumptions"] + caller)
    found["queries"] = certificate(queries=[{**query, "size": query["size"] * (100 + i)} for i in range(900)])
    found["distinct queries"] = certificate(queries=[{**query, "size": 100.0 + i} for i in range(500)])
    found["domain"] = certificate(domain=[[0.0, 1.0]] * 15_000)
    found["remarks"] = certificate(remarks=["x"] * 39_000)
    found["box"] = text(box=[[0.0, 1.0]] * 15_000)
    found["labels"] = text(labels={"states": [f"x{i}" for i in range(39_000)], "actions": []})
    publish(make("knots"), path)
    record, arrays = record_of(path), {"values": np.zeros(9)}
    for slope in (3.9, 8.0, 16.0 - 1e-11):
        ball = {"kind": "lipschitz-ball", "radius": 0.01, "lipschitz": 0.01 * slope, "actions": 1, "people": None}
        shape = {"norm": {"kind": "knots", "shape": np.eye(8).tolist()}, "family": "gaussian"}
        found[f"knots {slope}"] = certificate(relation=ball, queries=[{**shape, "sensitivity": 1.0, "size": 10.0}])
    publish(make("world"), path)
    record, arrays = record_of(path), arrays_of(path)
    for rank in (300, 1_200):  # as many features as a world may have, and more
        terms = [[[0, i % 12 + 1], [1, i // 12 % 12 + 1], [2, i // 144 + 1]] for i in range(rank)]
        wide = {"kind": "polynomials", "dimension": 3, "terms": terms}
        square = np.eye(rank + 1)
        large = {"weights": np.zeros((rank + 1, 2)), "gram": square, "left": square}
        changed = {**record, "details": {**record["details"], "feature_map": wide}}
        found[f"a world of {rank} features"] = pack(json.dumps(changed), {**arrays, **large})
    return found


def _header(value: object) -> bytes:
    written = json.dumps({"x": value}, separators=(",", ":")).encode()
    return len(written).to_bytes(8, "little") + written


def test_no_file_takes_long_to_verify(tmp_path):
    """The slowest that can be crafted over an ordinary release, both in processor time: a ratio, in one run.

    Ordinary is a world, and for knots, of which all vertices are looked at, eight pieces between them.
    """
    for kind, private in (("world", make("world")), ("knots", eight_pieces())):
        publish(private, tmp_path / f"{kind}.qq")

    def seconds(data: bytes, runs: int) -> float:
        taken = []
        for _ in range(runs):
            vertices.cache_clear()
            begin = time.process_time()
            with contextlib.suppress(InvalidRelease):
                open_bytes(data)
            taken.append(time.process_time() - begin)
        return min(taken)

    usual = {kind: seconds((tmp_path / f"{kind}.qq").read_bytes(), 6) for kind in ("world", "knots")}
    taken = {name: seconds(data, 6) for name, data in slow_files(tmp_path).items()}
    assert max(taken.values()) < 0.5, taken
    taken.pop("a world of 300 features")  # which quietq makes too
    ratios = {name: one / usual["knots" if "knots" in name else "world"] for name, one in taken.items()}
    assert max(ratios.values()) < 20, ratios


def eight_pieces() -> PrivateKnots:
    return privatise(np.sin, BUDGET, noise="knots", pieces=8, relation=people(50, 0, 0.5, 1))
