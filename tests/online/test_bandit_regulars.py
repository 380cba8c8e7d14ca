"""People who come back more often than `visits`, bring no context, or give no answer: others' answers are learned."""

import math
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bandit_cases import CONTEXT, GAUSSIAN, MAKE, PURE

from quietq import Budget, InvalidInput
from quietq.online import Elimination, Episodes, Linear, LocalUCB, resume, save

LEFT_OUT, HARDLY = "ignore:.* answers were left out", "ignore:Hardly anything can be learned"
NO_CONTEXTS: list[Any] = [
    None, "text", "1.0", math.nan, [], [[]], [1.0], [[1.0, 0.0]], [[1.0, 0.0], [0.0], [0.6, 0.8]], object(), 7,
    [[1.0, None], [0.0, 1.0], [0.6, 0.8]], [["1", "0"], ["0", "1"], ["0", "1"]], np.ones((3, 2, 1)), np.ones((2, 3)),
    np.full((3, 2), math.nan), np.full((3, 2), math.inf), np.ma.masked_all((3, 2)), np.ones((3, 2)) * 1j,
    {"a": 1.0}, np.zeros((0, 2)), np.datetime64("2020-01-01"), [[10**400, 0], [0, 1], [1, 0]], np.zeros(10**6),
]  # fmt: skip


def same(one: Any, other: Any) -> bool:
    """Whether two policies are in the same state, to the bit."""
    pairs = zip(vars(one.state).values(), vars(other.state).values(), strict=True)
    return one._drawn == other._drawn and all(np.array_equal(a, b) for a, b in pairs)


def answers(policy: Any, n: int, seed: int) -> list[Any]:
    rewards = np.random.default_rng(seed).integers(0, 2, n).tolist()
    return [policy.report(one) for one in rewards] if isinstance(policy, LocalUCB) else rewards


@pytest.mark.filterwarnings(LEFT_OUT, HARDLY)
@pytest.mark.parametrize("name", MAKE)
def test_answers_beyond_the_bound_leave_no_trace(name: str) -> None:
    """As if these people had not come again, whatever they would have answered."""
    generator, visits = np.random.default_rng(3), 2
    people = generator.integers(0, 30, 150).tolist()
    arms, contexts = generator.integers(0, 3, 150).tolist(), list(generator.normal(size=(150, 3, 2)))
    rewards = answers(MAKE[name](simulate=0), 150, 4)
    came, counts = Counter[int](), []
    for person in people:
        came[person] += 1
        counts.append(came[person] <= visits)
    often, others = (MAKE[name](simulate=1, visits=visits, named=True) for _ in range(2))
    for start in range(0, 150, 10):
        rows = [(contexts[i], arms[i], rewards[i] if counts[i] else None, people[i]) for i in range(start, start + 10)]
        often.learn_batch(*zip(*rows, strict=True))
        kept = [row for row, count in zip(rows, counts[start:], strict=False) if count]
        if kept:
            others.learn_batch(*zip(*kept, strict=True))
    assert same(often, others)
    assert (often.left_out, others.left_out) == (150 - sum(counts), 0)


def share_of_best(policy: Any, means: tuple[float, ...], people: int, times: int, seed: int) -> float:
    """Among the later half of those who come, how many are shown the second arm: the best one.

    Everybody comes so many times one after the other, ten people at a time, whose answers of four visits are learned at
    once.
    """
    generator, shown = np.random.default_rng([5, seed]), []
    for first in range(0, people, 10):
        for _ in range(times // 4):
            arms = [policy.choose() for _ in range(40)]
            rewards = (generator.random(40) < np.array(means)[arms]).tolist()
            policy.learn_batch(None, arms, rewards, [*range(first, first + 10)] * 4)
            shown += arms
    return float(np.mean(np.array(shown[len(shown) // 2 :]) == 1))


REGULARS = {"visits": 2, "named": True}
LEARNS: dict[str, tuple[Any, tuple[float, ...], int, int, float, int]] = {
    "episodes": (
        lambda seed: Episodes(3, Budget(8.0, 0.0), simulate=seed, **REGULARS), (0.1, 0.5, 0.1), 200, 40, 0.7, 8,
    ),
    "elimination": (
        lambda seed: Elimination(2, Budget(8.0, 0.0), arrivals=2, simulate=seed, **REGULARS), (0.2, 0.5),
        1000, 24, 0.9, 1,
    ),
}  # fmt: skip


@pytest.mark.filterwarnings(LEFT_OUT)
@pytest.mark.parametrize("name", LEARNS)
def test_regulars_do_not_keep_a_policy_from_learning(name: str) -> None:
    """If what they answer beyond their visits counted as the middle, arms would look alike, at any epsilon."""
    make, means, people, times, least, runs = LEARNS[name]
    assert np.mean([share_of_best(make(seed), means, people, times, seed) for seed in range(runs)]) > least


@pytest.mark.filterwarnings(LEFT_OUT, HARDLY)
@pytest.mark.parametrize(
    ("name", "first"),
    [(name, first) for name in MAKE for first in (None, math.nan, "text", [1]) if name != "local" or first is None],
)
def test_an_answer_that_is_none_uses_up_a_visit(name: str, first: Any) -> None:
    """Else it would follow from it which later answers count."""
    with_it, without = (MAKE[name](simulate=1, visits=2, named=True) for _ in range(2))
    for policy, one in ((with_it, first), (without, None)):
        policy.learn_batch([CONTEXT] * 4, [0, 1, 0, 1], [one, 1, 1, 0], ["anna"] * 4)
        assert policy.left_out == 2
    assert same(with_it, without)


@pytest.mark.parametrize("name", MAKE)
def test_what_is_left_out_is_warned_of_from_a_tenth_on(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy = MAKE[name](simulate=1, named=True)
        policy.learn_batch([CONTEXT] * 11, [0] * 11, answers(policy, 11, 0), [*range(10), 0])
        assert policy.left_out == 1
        with pytest.raises(UserWarning, match="2 of 12 answers were left out"):
            policy.learn(CONTEXT, 0, None, 0)
        assert policy.left_out == 1  # a warning that is an error comes before anything was counted or learned
        policy.learn(CONTEXT, 0, None, 0)  # and once
        policy.learn(CONTEXT, 0, None, 0)
        with pytest.raises(UserWarning, match="4 of 14 answers were left out"):  # and when there are twice as many
            policy.learn(CONTEXT, 0, None, 0)


def test_what_was_left_out_is_known_after_saving(tmp_path: Path) -> None:
    policy = Episodes(2, PURE, named=True)
    policy.learn_batch(None, [0] * 19, [1.0] * 19, range(19))
    policy.learn(None, 0, 1.0, 3)
    save(policy, tmp_path)
    again: Any = resume(tmp_path)
    assert again.left_out == 1
    with pytest.warns(UserWarning, match="3 of 22"):
        again.learn_batch(None, [0, 0], [1.0, 1.0], [3, 4])


@pytest.mark.filterwarnings(LEFT_OUT)
def test_what_is_left_out_takes_no_room_among_arrivals() -> None:
    policy = Linear(3, Budget(1000.0, 1e-5), dimension=2, arrivals=2, simulate=0, named=True)
    policy.learn_batch([CONTEXT] * 5, [0] * 5, [1.0] * 5, ["anna"] * 5)
    policy.learn_batch([CONTEXT] * 2, [0] * 2, [1.0] * 2, ["anna", "ben"])
    assert policy.state.steps == 2


def test_one_persons_bad_context_keeps_nobody_from_being_learned_from() -> None:
    make = MAKE["linear"]
    generator = np.random.default_rng(2)
    contexts, arms = list(generator.normal(size=(100, 3, 2))), generator.integers(0, 3, 100).tolist()
    rewards = generator.integers(0, 2, 100).tolist()
    neutral = make(simulate=3)
    neutral.learn_batch([*contexts[:50], np.zeros((3, 2)), *contexts[51:]], arms, rewards)
    assert neutral.bad_contexts == 0
    for bad in NO_CONTEXTS:
        policy = make(simulate=3)
        policy.learn_batch([*contexts[:50], bad, *contexts[51:]], arms, rewards)
        assert policy.bad_contexts == 1
        policy.state.bad_contexts = 0
        assert same(policy, neutral)
        assert policy.choose(bad) == 0
        assert policy.choose(contexts[3]) == neutral.choose(contexts[3])


def test_a_row_with_a_gap_counts_as_zeros_and_other_rows_as_they_are() -> None:
    context = [[math.nan, 1.0], [0.0, 1.0], [0.6, 0.8]]
    policy = Linear(3, GAUSSIAN, dimension=2, arrivals=300, simulate=0)
    assert policy.rows(context).tolist() == [[0.0, 0.0], [0.0, 1.0], [0.6, 0.8]]
    policy.learn_batch([context] * 11, [0] + [1] * 10, [1.0] * 11)
    assert policy.bad_contexts == 1


def test_many_bad_contexts_are_told_to_the_operator() -> None:
    policy = Linear(3, GAUSSIAN, dimension=2, arrivals=300, simulate=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy.learn_batch([CONTEXT] * 10 + [None], [0] * 11, [1.0] * 11)
        with pytest.raises(UserWarning, match=r"2 of 12 contexts were not finite numbers of shape .* for you alone"):
            policy.learn("text", 0, 1.0)
        assert (policy.bad_contexts, policy.state.steps) == (1, 11)
        policy.learn("text", 0, 1.0)  # what stopped it was the filter's error, once
    assert policy.bad_contexts == 2
    with pytest.raises(InvalidInput, match="context must be real numbers"):
        policy.rows("text")
