"""States that were edited: what no run can have left is refused, and all else keeps what the certificate promises."""

import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bandit_cases import CONTEXT, MAKE

from quietq import Accountant, Budget, InvalidInput
from quietq.online import (
    Elimination,
    Episodes,
    Linear,
    LocalUCB,
    TreeUCB,
    resume,
    save,
)
from quietq.online.state import NAME

pytestmark = pytest.mark.filterwarnings("ignore:.* answers were left out", "ignore:Hardly anything can be learned")
ALL = MAKE | {"short": lambda **more: Elimination(3, Budget(50.0, 0.0), arrivals=2, **more)}

UNSEEN = {
    # It changes nothing.
    "header/note": "nobody reads it",
    "header/certificate/version": "the code that saved may be another one",
    # Noise is fresh whatever these are, and everything that is decided still follows from released numbers.
    "header/drawn": "how many draws there were, at least: a seed's stream goes on elsewhere",
    "time": "answers that a second resuming dropped were counted, so any larger number may be right",
    "arm": "which arm has the largest index follows from a time that is gone",
    "shown": "people may never answer",
    "before": "noisy numbers of an earlier running sum",
    "spread": "their variance",
    "public": "noisy numbers, which may be any",
    "means": "noisy numbers on the grid of their rounding",
    "nodes": "noisy numbers on the grid of their rounding",
    # Settings of what is decided, and not of noise: any of them may have been chosen.
    "header/settings/weights": "no promise follows from it",
    "header/settings/width": "no promise follows from it",
    "header/settings/simulate": "another seed, which protects nobody either",
    "header/settings/arrivals": "where no noise follows from it",
    "header/settings/arms": "of a linear policy: no sum is one arm's",
    "header/settings/rewards": "of local flips: a report is private whatever the range",
    "header/settings/budget/delta": "of a policy whose noise is pure whatever it is",
    # Sums of answers, within what as many can come to: each answer is in as many sums as before.
    "answers": "fewer or more may wait for noise",
    "units": "answers may be any",
    "secret": "contexts and answers may be any",
    "bad_contexts": "contexts may be bad",
    "epoch": "later epochs need longer, and a draw for each",
    "left": "a later epoch may have dropped any arm",
    "length": "an episode may have been longer",
    # These two alone can break the promise: how many came, and whose visits were counted, is the file's word. More
    # steps than visits, and fewer visits in all than the sums are made of, are refused.
    "steps": "that fewer came, so that there is room for more",
    "header/seen": "that somebody came oftener, so that less of theirs counts; or another name in the place of one",
}
"""Fields of which some edits cannot be told from what a run leaves, and why they keep the promise."""


def played(name: str, **more: Any) -> Any:
    """A policy half way: sums that wait for noise, some that were noised, names that came too often."""
    generator = np.random.default_rng(1)
    policy = ALL[name](**more, named=True, visits=2)
    for t in range(45 if name != "short" else 2400):
        context = generator.normal(size=(3, 2)) if policy.contexts and t % 20 else CONTEXT if policy.contexts else None
        arm = policy.choose(context)
        reward: Any = int(generator.random() < (0.9, 0.2, 0.1)[arm])
        if isinstance(policy, LocalUCB):
            reward = policy.report(reward)
        person = int(generator.integers(20)) if name != "short" else t
        policy.learn(context, arm, reward, person)
    return policy


def read(folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    with np.load(folder / NAME) as stored:
        arrays = {name: stored[name] for name in stored.files}
    return json.loads(arrays.pop("header").tobytes()), arrays


def write(folder: Path, header: Any, arrays: dict[str, np.ndarray]) -> None:
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)
    (folder / NAME).write_bytes(stream.getvalue())


def leaves(record: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """All places in JSON, inner ones too."""
    if path:
        yield path
    for key in record if isinstance(record, dict) else range(len(record)) if isinstance(record, list) else ():
        yield from leaves(record[key], (*path, key))


def edited(record: Any, path: tuple[Any, ...], value: Any) -> Any:
    copy = json.loads(json.dumps(record))
    place = copy
    for key in path[:-1]:
        place = place[key]
    if value is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return copy


def other_values(value: Any, generator: np.random.Generator) -> list[Any]:
    """Of JSON: near ones of the same kind, and of other kinds."""
    near: list[Any] = []
    if isinstance(value, int | float) and not isinstance(value, bool):
        near = [value + 1, value - 1, 2 * value + 0.5, -value - 3, 10**18, 1e300, math.nan, math.inf]
    if isinstance(value, bool):
        near = [not value]
    if isinstance(value, str):
        near = [value + "x", value[1:], ""]
    kinds: list[Any] = [KeyError, None, "text", [], {}, [[1]], {"a": 1}, True, 3, 0.25, -1]
    chosen = [kinds[i] for i in generator.choice(len(kinds), 3, replace=False)]
    return [one for one in (*near, *chosen) if one is KeyError or (type(one), one) != (type(value), value)]


def other_arrays(value: np.ndarray, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """One number is another; and arrays of other shapes and kinds."""
    place = tuple(int(generator.integers(n)) for n in value.shape)
    for change in (
        lambda x: x + 1, lambda x: x - 1, lambda x: -x - 1, lambda x: 2 * x + 3, lambda x: 2**62, lambda x: -(2**62),
        lambda x: x * 0, lambda x: x + 0.123456789, lambda x: math.nan, lambda x: math.inf, lambda x: 1e300,
    ):  # fmt: skip
        changed, number = value.copy(), value[place]
        new = not number if value.dtype == bool else change(number.item())
        if value.dtype.kind == "i" and not (isinstance(new, int) and abs(new) < 2**63):
            continue
        changed[place] = new
        if not np.array_equal(changed, value):
            yield changed
    yield value.astype(np.float32)
    yield value.astype(complex)
    yield value[..., None]
    yield np.zeros_like(value) if value.any() else value[None]
    yield np.repeat(value[None], 2, axis=0)


def outcome(folder: Path, original: Any) -> bool:
    """Whether it was refused, in one sentence and with the file left as it is; else it must keep the promise."""
    before = (folder / NAME).read_bytes()
    refused = ""
    try:
        policy: Any = resume(folder)
    except InvalidInput as refusal:
        policy, refused = None, str(refusal)
    if policy is None:
        assert refused.endswith((".", "?"))
        assert "\n" not in refused
        assert (folder / NAME).read_bytes() == before
        assert [file.name for file in folder.iterdir()] == [NAME]
        return True
    said, meant = policy.certificate.to_dict(), original.certificate.to_dict()
    assert {**said, "version": ""} == {**meant, "version": ""}
    assert policy.law == original.law
    assert (policy.visits, policy.named) == (original.visits, original.named)
    assert policy.rewards == original.rewards or isinstance(policy, LocalUCB)
    generator = np.random.default_rng(0)
    for t in range(12):  # and it goes on
        context = generator.normal(size=(3, 2)) if policy.contexts else None
        reward = 1 if isinstance(policy, LocalUCB) else generator.random()
        policy.learn(context, policy.choose(context), reward, f"new {t}")
    return False


MANY = pytest.mark.parametrize("rounds", [1, pytest.param(10, marks=pytest.mark.slow)])


@MANY
@pytest.mark.parametrize("name", ALL)
def test_numbers_that_no_run_leaves_are_refused_and_others_keep_the_promise(
    name: str, rounds: int, tmp_path: Path
) -> None:
    policy, generator = played(name, simulate=3), np.random.default_rng(5)
    save(policy, tmp_path)
    header, arrays = read(tmp_path)
    write(tmp_path, header, arrays)
    assert not outcome(tmp_path, policy)  # as it was
    unseen, refused = set(), set()
    for field, value in arrays.items():
        for changed in [one for _ in range(rounds) for one in other_arrays(value, generator)]:
            write(tmp_path, header, {**arrays, field: changed})
            (refused if outcome(tmp_path, policy) else unseen).add(field)
        write(tmp_path, header, {one: arrays[one] for one in arrays if one != field})
        assert outcome(tmp_path, policy)
    write(tmp_path, header, {**arrays, "more": np.zeros(3)})
    assert outcome(tmp_path, policy)
    assert refused == set(arrays)
    assert unseen <= set(UNSEEN)


@MANY
@pytest.mark.parametrize("name", ["episodes", "elimination", "tree", "local", "linear"])
def test_settings_and_certificates_that_disagree_are_refused(name: str, rounds: int, tmp_path: Path) -> None:
    policy, generator = played(name), np.random.default_rng(5)
    save(policy, tmp_path)
    header, arrays = read(tmp_path)
    for path in leaves(header):
        value = header
        for key in path:
            value = value[key]
        changes = [one for _ in range(rounds) for one in other_values(value, generator)]
        for place in generator.permutation(len(changes))[: rounds * (1 if path[0] in ("seen", "certificate") else 3)]:
            write(tmp_path, edited(header, path, changes[place]), arrays)
            if not outcome(tmp_path, policy):
                field = "/".join(map(str, ("header", *path)))
                assert any(field == one or field.startswith(f"{one}/") for one in UNSEEN), (field, changes[place])
    for whole in (None, [], "text", {}, {**header, "more": 1}, {**header, "policy": "thompson"}):
        write(tmp_path, whole, arrays)
        assert outcome(tmp_path, policy)


@pytest.mark.parametrize("name", [name for name in MAKE if name != "elimination"])
def test_visits_fewer_than_the_state_is_made_of_are_refused(name: str, tmp_path: Path) -> None:
    """Else somebody whose answers are in the sums could be learned from again."""
    policy = played(name)
    save(policy, tmp_path)
    header, arrays = read(tmp_path)
    seen = header["seen"]
    often = next(one for one, visits in seen.items() if visits >= 2)
    for fewer in ({**seen, often: 1}, {one: n for one, n in seen.items() if one != often}, {}):
        write(tmp_path, {**header, "seen": fewer}, arrays)
        assert outcome(tmp_path, policy)
    write(tmp_path, {**header, "seen": {**seen, often: 9}}, arrays)
    assert not outcome(tmp_path, policy)


def test_budgets_and_visits_are_refused_unless_all_of_the_file_says_the_same(tmp_path: Path) -> None:
    """What nobody can tell from a file: that another policy, with a certificate of its own, was never this one."""
    for make, larger in (
        (lambda **more: Episodes(3, Budget(1.0, 0.0), **more), {"budget": {"epsilon": 2.0, "delta": 0.0}}),
        (lambda **more: TreeUCB(3, Budget(1.0, 0.0), arrivals=300, **more), {"arrivals": 290}),
        (lambda **more: Linear(3, Budget(1.0, 1e-5), dimension=2, arrivals=300, **more), {"arrivals": 299}),
        (lambda **more: Linear(3, Budget(1.0, 1e-5), dimension=2, arrivals=300, **more), {"visits": 1}),
        (lambda **more: Episodes(3, Budget(1.0, 0.0), **more), {"rewards": [0.0, 2.0]}),
        (lambda **more: Episodes(3, Budget(1.0, 0.0), **more), {"named": True}),
        (lambda **more: Episodes(3, Budget(1.0, 0.0), **more), {"simulate": 1}),
    ):
        policy = make(visits=2)
        save(policy, tmp_path)
        header, arrays = read(tmp_path)
        changed = {**header, "settings": {**header["settings"], **larger}}
        write(tmp_path, changed, arrays)
        with pytest.raises(InvalidInput, match="certificate is not that of its settings"):
            resume(tmp_path)
    promised = Episodes(3, Budget(2.0, 0.0), visits=2)
    save(Episodes(3, Budget(1.0, 0.0), visits=2), tmp_path)
    header, arrays = read(tmp_path)
    changed = {**header, "settings": {**header["settings"], "budget": {"epsilon": 2.0, "delta": 0.0}}}
    write(tmp_path, {**changed, "certificate": promised.certificate.to_dict()}, arrays)
    assert resume(tmp_path).certificate == promised.certificate


def test_a_certificate_keeps_what_it_says_of_an_account_and_of_visits(tmp_path: Path) -> None:
    account = Accountant(None, apart=Budget(1.5, 0.0))
    for named in (True, False):
        policy = Episodes(2, Budget(0.5, 0.0), named=named, account=account)
        save(policy, tmp_path)
        assert resume(tmp_path).certificate == policy.certificate
        assert "charged to an Accountant" in str(resume(tmp_path).certificate)
        assert "charged to an Accountant" in str(resume(tmp_path).certificate)  # a third time, with visits trusted


def test_bytes_that_are_damaged_are_refused(tmp_path: Path) -> None:
    policy, generator = played("episodes"), np.random.default_rng(2)
    data = save(policy, tmp_path).read_bytes()
    for _ in range(200):
        place = int(generator.integers(len(data)))
        damaged = data[:place] + bytes([data[place] ^ int(generator.integers(1, 256))]) + data[place + 1 :]
        (tmp_path / NAME).write_bytes(damaged if generator.random() < 0.7 else data[:place])
        outcome(tmp_path, policy)
        assert [file.name for file in tmp_path.iterdir()] == [NAME]
