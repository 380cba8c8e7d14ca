"""The gradient of a small network that imitates people: what it is, whose it is, what one person can do to a mean."""

import dataclasses
import pickle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quietq.feedback.imitation_statistics import (
    ImitationGradient,
    OwnReturns,
    ReachCounts,
    StateMoments,
    number_of_weights,
)
from quietq.feedback.spaces import Spaces
from quietq.feedback.statistic import Vector
from quietq.mechanisms.release import mean_of_people
from quietq.noise.box import Box

ROWS, STATES, PEOPLE = 5, 3, 12
PLACES = (np.arange(ROWS) + 0.5) / ROWS
NORMAL = np.array([[0.5] * STATES, [0.2] * STATES])
LISTED = Spaces(Box.of([(0, 1)] * STATES), 4)
NUMBERS = Spaces(Box.of([(0, 1)] * STATES), action_box=Box.of([(-2, 3)] * 2))
SPACES = {"a list": LISTED, "numbers": NUMBERS}


def statistic(spaces: Spaces, places: np.ndarray = PLACES, **more: Any) -> ImitationGradient:
    widths = (STATES, 6, spaces.actions or spaces.numbers)
    weights = np.random.default_rng(1).normal(size=number_of_weights(widths))
    return ImitationGradient(spaces, widths, weights, NORMAL, 2.0, places, **more)


def people(rows: int = ROWS) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """So many people of two episodes each, in which some do better than others."""
    rng, number = np.random.default_rng(0), PEOPLE * rows
    columns: dict[str, np.ndarray] = {name: rng.random(number) for name in ("s0", "s1", "s2", "a0", "a1", "reward")}
    columns["action"] = rng.integers(0, 4, number).astype(np.int32)
    row = np.tile(np.arange(rows), PEOPLE)
    first = (rows + 1) // 2
    columns["episode"] = 2 * np.repeat(np.arange(PEOPLE), rows) + (row >= first)
    columns["step"] = np.where(row >= first, row - first, row).astype(np.int32)
    return rows * np.arange(PEOPLE), columns


def loss(of: ImitationGradient, weights: Any, columns: dict[str, np.ndarray]) -> Any:
    """The same in JAX, for one person."""
    states = jnp.stack([columns[f"s{i}"] for i in range(STATES)], axis=-1)
    hidden = jnp.clip((states - NORMAL[0]) / NORMAL[1], -of.clip, of.clip)
    inner = (STATES + 1) * of.widths[1]
    first, second = weights[:inner].reshape(STATES + 1, -1), weights[inner:].reshape(of.widths[1] + 1, -1)
    outputs = jnp.tanh(hidden @ first[:-1] + first[-1]) @ second[:-1] + second[-1]
    if of.spaces.actions is not None:
        odds = jax.nn.log_softmax(outputs)
        return -odds[jnp.arange(len(odds)), columns["action"]].mean()
    actions = 2 * jnp.stack([columns["a0"], columns["a1"]], axis=-1) - 1
    slope = jnp.clip((jnp.tanh(outputs) - actions) / 0.2, -1, 1)  # by each output, as Huber's of how far off it is
    return (jax.lax.stop_gradient(slope) * outputs).sum(axis=-1).mean()


@pytest.mark.parametrize("spaces", SPACES.values(), ids=SPACES)
def test_gradients_are_those_of_cross_entropy_and_of_distances_that_are_cut(spaces: Spaces) -> None:
    starts, columns = people()
    of = statistic(spaces)
    found = of.gradients(columns)
    with jax.enable_x64(True):
        for i, start in enumerate(starts):
            own = {name: column[start : start + ROWS] for name, column in columns.items()}
            theirs = jax.grad(lambda weights, own=own: loss(of, weights, own))(jnp.asarray(of.weights))
            assert found[i] == pytest.approx(np.asarray(theirs), abs=1e-6)  # in float32
    lengths = np.linalg.norm(of.of_people(starts, columns), axis=1)
    assert (lengths < 1).all()
    assert (lengths > 0.98).all()


def total(of: Vector, starts: np.ndarray, columns: dict[str, np.ndarray]) -> tuple[int, np.ndarray]:
    tally = of.empty()
    of.add(tally, starts, columns)
    return tally.people, of.mean(tally, PEOPLE)


@pytest.mark.parametrize("spaces", SPACES.values(), ids=SPACES)
def test_only_who_reaches_the_threshold_is_imitated_and_everybody_counts(spaces: Spaces) -> None:
    starts, columns = people()
    own = OwnReturns((-1.0, 1.0), (-10.0, 10.0))
    returns = own(starts, columns)
    threshold = float(np.sort(returns)[-4])
    everybody, some = statistic(spaces), statistic(spaces, own=own, threshold=threshold)
    vectors = everybody.of_people(starts, columns)
    counted, mean = total(some, starts, columns)
    assert counted == PEOPLE
    assert mean == pytest.approx(vectors[returns >= threshold].sum(axis=0) / PEOPLE, abs=1e-11)
    assert total(everybody, starts, columns)[1] == pytest.approx(vectors.mean(axis=0), abs=1e-11)
    nobody = statistic(spaces, own=own, threshold=11.0)
    assert total(nobody, starts, columns)[0] == PEOPLE
    assert not total(nobody, starts, columns)[1].any()
    empty = {name: column[:0] for name, column in columns.items()}
    assert total(some, starts[:0], empty)[0] == 0


def test_a_return_is_the_mean_over_episodes_of_sums_and_missing_steps_are_like_the_others() -> None:
    columns = {
        "reward": np.array([1.0, 1.0, 0.0, 0.5, 1.0, 0.0]),
        "episode": np.array([0, 0, 1, 2, 2, 3]),
        "step": np.array([0, 1, 0, 0, 3, 0]),  # the third episode lacks two of four steps
    }
    own = OwnReturns((-1.0, 1.0), (-5.0, 5.0))
    found = own(np.array([0, 3, 5]), columns)
    assert found == pytest.approx([(2 - 1) / 2, 4 * (0 + 1) / 2, -1.0])
    clipped = OwnReturns((-1.0, 1.0), (-0.2, 0.2))(np.array([0, 3, 5]), columns)
    assert clipped == pytest.approx([0.2, 0.2, -0.2])
    assert (own(np.array([0, 3, 5]), columns) >= 0.5).tolist() == [True, True, False]


def test_rows_are_chosen_by_public_numbers_among_ones_own() -> None:
    """Somebody's vector is that of their chosen rows alone, however many there are; few rows are looked at twice."""
    starts, columns = people(rows=40)
    of = statistic(LISTED)
    chosen = starts[:, None] + (PLACES * 40).astype(int)
    few = {name: column[chosen.ravel()] for name, column in columns.items()}
    assert np.array_equal(total(of, starts, columns)[1], total(of, ROWS * np.arange(PEOPLE), few)[1])
    one = {name: column[:1] for name, column in columns.items()}
    twice = {name: np.repeat(column[:1], ROWS) for name, column in columns.items()}
    assert np.array_equal(total(of, np.array([0]), one)[1], total(of, np.array([0]), twice)[1])


OWN = OwnReturns((-1.0, 1.0), (-40.0, 40.0))
STATISTICS = {
    **{f"gradient, {name}": statistic(one) for name, one in SPACES.items()},
    "gradient of the best": statistic(LISTED, own=OWN, threshold=0.0),
    "states": StateMoments(NORMAL[0], NORMAL[1], 4.0),
    "returns": ReachCounts(OWN, 0.3),
}


AS_WIDE_AS_CLONES = ImitationGradient(
    Spaces(Box.of([(0, 1)] * 17), action_box=Box.of([(-1, 1)] * 5)),
    (17, 33, 5),
    np.random.default_rng(2).normal(size=number_of_weights((17, 33, 5))),
    np.array([[0.5] * 17, [0.2] * 17]),
    4.0,
    (np.arange(100) + 0.5) / 100,
)


@pytest.mark.parametrize(
    "of", [*STATISTICS.values(), AS_WIDE_AS_CLONES], ids=[*STATISTICS, "gradient of a clone's size"]
)
def test_company_changes_no_bit(of: Vector) -> None:
    sizes = np.array([1, 2, 3, 40, 1, 300, 7, 8, 9, 64, 1, 1000, 5])
    rng, rows = np.random.default_rng(3), int(sizes.sum())
    starts = np.cumsum(sizes) - sizes
    names = [*(f"s{i}" for i in range(17)), *(f"a{i}" for i in range(5)), "reward"]
    columns = {name: rng.random(rows) for name in names}
    columns |= {"action": rng.integers(0, 4, rows).astype(np.int32)}
    row = np.arange(rows) - np.repeat(starts, sizes)
    columns |= {"episode": np.repeat(100 * np.arange(len(sizes)), sizes) + row // 12, "step": row % 12}

    def summed(chosen: list[int]) -> Any:
        theirs = np.concatenate([np.arange(starts[i], starts[i] + sizes[i]) for i in chosen])
        tally = of.empty()
        begins = np.cumsum(sizes[chosen]) - sizes[chosen]
        of.add(tally, begins, {name: column[theirs] for name, column in columns.items()})
        return tally.sums[0]

    alone = [summed([i]) for i in range(len(sizes))]
    for chosen in ([*range(len(sizes))], [11, 0, 3], [*range(12, 0, -1)], [0, 4, 10]):
        assert np.array_equal(summed(chosen), sum(alone[i] for i in chosen))  # in whole numbers, to the last bit


@pytest.mark.parametrize("of", STATISTICS.values(), ids=STATISTICS)
def test_statistics_travel(of: Vector) -> None:
    starts, columns = people()
    there = pickle.loads(pickle.dumps(of))
    assert np.array_equal(total(there, starts, columns)[1], total(of, starts, columns)[1])


# One person's rows, replaced by whatever an adversary likes


def with_one(of: Vector, rows: list[tuple[float, int]]) -> np.ndarray:
    """The mean of twelve, of whom the first is in one corner and did so and so."""
    starts, columns = people()
    columns = {name: column[ROWS:] for name, column in columns.items()}
    own = {name: np.array([row[0] for row in rows]) for name in ("s0", "s1", "s2", "reward")}
    own |= {name: np.array([float(row[1] > 0) for row in rows]) for name in ("a0", "a1")}
    own |= {"action": np.array([row[1] for row in rows], np.int32)}
    own |= {"episode": np.full(len(rows), -1), "step": np.arange(len(rows), dtype=np.int32)}
    together = {name: np.concatenate([own[name], column]) for name, column in columns.items()}
    begins = starts[:-1] + len(rows)
    return total(of, np.append(0, begins) if rows else begins, together)[1]


ADVERSARIES = {
    "opposite": [(1.0, 0)],
    "many": [(1.0, 0)] * 500,
    "nobody": [],
    "what is no number": [(np.nan, 0), (np.inf, 3)],
    "contradictions": [(1.0, 0), (1.0, 3), (0.0, 0)] * 50,
}


@pytest.mark.parametrize("rows", ADVERSARIES.values(), ids=ADVERSARIES)
@pytest.mark.parametrize("of", STATISTICS.values(), ids=STATISTICS)
def test_one_person_moves_no_mean_farther_than_stated(of: Vector, rows: list[tuple[float, int]]) -> None:
    most = mean_of_people(of, PEOPLE, 1.0).sensitivity
    with np.errstate(all="ignore"):
        assert np.linalg.norm(with_one(of, [(1.0, 3)]) - with_one(of, rows)) <= most


SMALL = dataclasses.replace(statistic(NUMBERS), weights=0.05 * statistic(NUMBERS).weights)  # within actions' range


@pytest.mark.parametrize("of", [SMALL, STATISTICS["returns"]], ids=["gradient", "returns"])
def test_opposite_people_come_close_to_what_is_stated(of: Vector) -> None:
    other = (1.0, 0) if of.size > 2 else (0.0, 3)
    found = np.linalg.norm(with_one(of, [(1.0, 3)]) - with_one(of, [other]))
    assert found > 0.95 * mean_of_people(of, PEOPLE, 1.0).sensitivity
