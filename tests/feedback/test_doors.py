"""What people can speak of: items of a catalogue, states with actions, several options, segments, embeddings."""

import gymnasium as gym
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest

from quietq import (
    Budget,
    Columns,
    Comparisons,
    Fourier,
    InvalidInput,
    PrivateReward,
    Ratings,
    load,
    privatise,
    publish,
)
from quietq.feedback.row_statistics import ClippedGradient
from quietq.paper.agents.jax_world import as_jax
from quietq.released.private_model import PrivateModel

BUDGET = Budget(1.0, 1e-5)
PEOPLE, ROWS = 400, 10
PERSON = np.repeat(np.arange(PEOPLE), ROWS)
TEST = np.random.default_rng(77).random((500, 2))


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def peak(states: np.ndarray, at: float = 0.5) -> np.ndarray:
    return np.exp(-((states - at) ** 2).sum(axis=-1) / 0.2)


def correlation(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.corrcoef(one, other)[0, 1])


def rated(states: np.ndarray, ratings: np.ndarray, **columns) -> pl.DataFrame:
    noisy = np.clip(ratings + 0.1 * rng().normal(size=len(ratings)), 0, 1)
    return pl.DataFrame({"person": PERSON, "x": states[:, 0], "y": states[:, 1], "rating": noisy, **columns})


PLANE = {"state": ["x", "y"], "box": [(0, 1), (0, 1)], "low": 0, "high": 1, "people": PEOPLE}


# Catalogues

ITEMS = [f"item {i}" for i in range(40)]


def catalogue() -> tuple[np.ndarray, pl.DataFrame]:
    means = np.linspace(0, 1, len(ITEMS))
    which = rng().integers(0, len(ITEMS), len(PERSON))
    ratings = np.clip(means[which] + 0.1 * rng().normal(size=len(which)), 0, 1)
    return means, pl.DataFrame({"person": PERSON, "item": [ITEMS[i] for i in which], "rating": ratings})


def test_a_catalogue(tmp_path):
    means, rows = catalogue()
    (tmp_path / "items.txt").write_text("\n".join(ITEMS) + "\n")
    people = Ratings.read(rows, state="item", box=tmp_path / "items.txt", low=0, high=1, people=PEOPLE)
    private = privatise(people, BUDGET)
    assert correlation(private(ITEMS), means) > 0.9
    assert private(ITEMS[3]) == private(3) == private(np.array([3]))[0]
    publish(private, tmp_path / "reward.qq")
    again = load(tmp_path / "reward.qq")
    assert np.array_equal(again(ITEMS), private(ITEMS))
    assert isinstance(again, PrivateModel)
    assert again.items == tuple(ITEMS)
    assert f"of one of {len(ITEMS)} items of a public list" in str(again.certificate)
    assert "box" not in str(again.certificate)
    assert float(as_jax(private)(None, None, jnp.array([3.0]))) == pytest.approx(float(private(3)), abs=1e-5)


def test_an_item_that_is_not_declared_says_nothing():
    _, rows = catalogue()
    found = Ratings.read(rows, state="item", box=ITEMS[:30], low=0, high=1, people=PEOPLE).not_private
    assert found["bad_state"] == rows.filter(~pl.col("item").is_in(ITEMS[:30])).height


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"box": ["tea", "TEA"]}, "differ by more than their spelling"),
        ({"box": ["tea"]}, "between 2 and"),
        ({"box": ["tea\t", "milk"]}, "can be printed"),
        ({"box": [f"{i} {'x' * 100}" for i in range(3000)]}, "bytes together"),
        ({"box": "nowhere.txt"}, "could not be read"),
        ({"box": ITEMS, "action": "a"}, "belong together"),
    ],
)
def test_catalogues_that_are_refused(options, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        Ratings.read(catalogue()[1], state="item", low=0, high=1, people=PEOPLE, **options)


# Actions


HALF = "\ud800"
"""Half of a surrogate pair, which no text may hold."""


@pytest.mark.parametrize(
    ("read", "options"),
    [
        (Ratings.read, {"box": ["tea", HALF]}),
        (Ratings.read, {"box": f"{HALF}.txt"}),
        (Ratings.read, {"state": "x", "box": (0, 1), "action": "item", "actions": ["tea", HALF]}),
        (Comparisons.read, {"options": {"tea": "x", HALF: "x"}, "box": (0, 1)}),
    ],
)
def test_names_that_hold_half_a_character(read, options):
    rows = pl.DataFrame({"person": [1], "item": ["tea"], "x": [0.5], "rating": [1.0], "choice": ["tea"]})
    if "options" not in options:
        options = {"state": "item", "low": 0, "high": 1, **options}
    with pytest.raises(InvalidInput, match=r"half characters|could not be read"):
        read(rows, people=1, **options)


def test_a_reward_per_action(tmp_path):
    states, action = rng().random((len(PERSON), 2)), rng().integers(0, 2, len(PERSON))
    ratings = np.where(action == 0, peak(states, 0.3), peak(states, 0.7))
    rows = rated(states, ratings, move=np.array(["up", "down"])[action])
    private = privatise(Ratings.read(rows, action="move", actions=["up", "down"], **PLANE), BUDGET)
    values = private(TEST)
    assert values.shape == (500, 2)
    assert correlation(values[:, 0], peak(TEST, 0.3)) > 0.9
    assert correlation(values[:, 1], peak(TEST, 0.7)) > 0.9
    publish(private, tmp_path / "reward.qq")
    assert np.array_equal(load(tmp_path / "reward.qq")(TEST), values)
    compiled = as_jax(private)
    assert compiled.by_action
    found = compiled(jnp.asarray(TEST[0], jnp.float32), 1, None)
    assert float(found) == pytest.approx(values[0, 1], abs=1e-4)


class Shop(gym.Env):
    """Shows a random item at every step."""

    observation_space, action_space = gym.spaces.Discrete(len(ITEMS)), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return int(self.np_random.integers(len(ITEMS))), {}

    def step(self, action):
        return int(self.np_random.integers(len(ITEMS))), 0.0, False, False, {}


def test_items_are_observations():
    private = privatise(Ratings.read(catalogue()[1], state="item", box=ITEMS, low=0, high=1, people=PEOPLE), BUDGET)
    env = PrivateReward(Shop(), private)
    env.reset(seed=0)
    item, reward, *_ = env.step(0)
    assert reward == private(ITEMS[item])
    with pytest.raises(InvalidInput, match="has 40 items, numbered from 0"):
        PrivateReward(gym.make("FrozenLake-v1"), private)


# Choices among several, of items, of segments


def test_choices_among_three_with_some_not_offered():
    states = rng().random((3, len(PERSON), 2))
    states[2, ::4] = np.nan
    liked = np.where(np.isnan(states).any(axis=-1), -99.0, 4 * peak(states) + rng().gumbel(size=states.shape[:2]))
    columns = {f"{name}{i}": states[j, :, i] for j, name in enumerate("abc") for i in range(2)}
    rows = pl.DataFrame({"person": PERSON, "choice": np.array(list("ABC"))[liked.argmax(axis=0)], **columns})
    options = {name.upper(): [f"{name}0", f"{name}1"] for name in "abc"}
    people = Comparisons.read(rows, options=options, box=[(0, 1)] * 2, people=PEOPLE)
    assert people.not_private["used_rows"] == len(PERSON)
    assert correlation(privatise(people, BUDGET)(TEST), peak(TEST)) > 0.9


def survey(extra: list[tuple[object, ...]], people: int = 60) -> Comparisons:
    """Numbered people, some of whom were not offered the first option now and then."""
    rng = np.random.default_rng(4)
    rows: list[tuple[object, ...]] = []
    for person in range(people):
        for blank in (False, True, False):
            first = None if blank and person % 2 else float(rng.random())
            rows.append((person, first, *rng.random(2).tolist(), str(rng.choice(["B", "C"]))))
    table = pl.DataFrame(rows + extra, schema=["person", "a", "b", "c", "choice"], orient="row")
    return Comparisons.read(table, options={"A": "a", "B": "b", "C": "c"}, box=(0, 1), people=people)


def test_a_blank_cell_splits_nobody_and_changes_nobody_else():
    """Not even where a person says the same thing twice, by which rows are sorted in another way."""
    people = survey([])
    assert people.not_private["people_present"] == 60
    loss = people.loss
    assert loss is not None
    statistic = ClippedGradient(loss, lambda x: np.hstack([x, x**2]), np.array([0.3, -0.2]), 0.1)
    twice = survey([(0, 0.5, 0.5, 0.5, "B")] * 2)
    moved = np.linalg.norm(people.mean(statistic) - twice.mean(statistic))
    assert moved <= 2 * statistic.bound / 60


def test_two_options_are_left_and_right():
    sides, rows = rng().random((2, len(PERSON), 2)), len(PERSON)
    table = {"a": sides[0, :, 0], "b": sides[0, :, 1], "c": sides[1, :, 0], "d": sides[1, :, 1]}
    choice = np.where(rng().random(rows) < 0.5, "left", "right")
    frame = pl.DataFrame({"person": PERSON, "choice": choice, **table})
    names = {"left": ["a", "b"], "right": ["c", "d"]}
    plane = {"box": [(0, 1)] * 2, "people": PEOPLE}
    one, two = Comparisons.read(frame, **names, **plane), Comparisons.read(frame, options=names, **plane)
    found = [privatise(people, BUDGET, simulate=1)(TEST) for people in (one, two)]
    assert np.array_equal(*found)


def test_items_against_items():
    worth, pairs = np.linspace(-2, 2, len(ITEMS)), rng().integers(0, len(ITEMS), (2, len(PERSON)))
    first = worth[pairs[0]] - worth[pairs[1]] + rng().logistic(size=len(PERSON)) > 0
    names = [[ITEMS[i] for i in side] for side in pairs]
    rows = pl.DataFrame({"person": PERSON, "l": names[0], "r": names[1], "choice": np.where(first, "left", "right")})
    private = privatise(Comparisons.read(rows, left="l", right="r", box=ITEMS, people=PEOPLE), BUDGET, simulate=0)
    assert correlation(private(ITEMS), worth) > 0.85


def segments(people: int = 300, each: int = 8, length: int = 5) -> pl.DataFrame:
    sides = rng().random((2, people * each, length, 2))
    total = 3 * peak(sides).sum(axis=2)
    first = total[0] - total[1] + rng().logistic(size=people * each) > 0
    states = {name: sides[i // 2, :, :, i % 2].ravel() for i, name in enumerate("abcd")}
    return pl.DataFrame(
        {"person": np.repeat(np.arange(people), each * length),
         "choice": np.repeat(np.where(first, "left", "right"), length),
         "pair": np.repeat([f"pair {i}" for i in range(each)] * people, length), **states}
    )  # fmt: skip


SEGMENTS = {"left": ["a", "b"], "right": ["c", "d"], "box": [(0, 1)] * 2, "people": 300, "segment": "pair", "length": 5}


def test_segments_of_trajectories():
    """What is compared is the sum over a segment, in whatever order its rows come."""
    rows = segments()
    people = [Comparisons.read(one, **SEGMENTS) for one in (rows, rows.sample(fraction=1, shuffle=True, seed=1))]
    found = [privatise(each, BUDGET, simulate=2)(TEST) for each in people]
    assert correlation(found[0], peak(TEST)) > 0.9
    assert found[0] == pytest.approx(found[1], abs=1e-9)


def test_segments_need_their_length():
    with pytest.raises(InvalidInput, match="segment and length"):
        Comparisons.read(segments(2), **{**SEGMENTS, "length": None})


# Features of one's own choice


def test_another_map(tmp_path):
    features = Fourier.draw(2, 60, width=0.3)
    states = rng().random((len(PERSON), 2))
    private = privatise(Ratings.read(rated(states, peak(states)), features=features, **PLANE), BUDGET)
    assert correlation(private(TEST), peak(TEST)) > 0.95
    publish(private, tmp_path / "reward.qq")
    assert np.array_equal(load(tmp_path / "reward.qq")(TEST), private(TEST))
    found = [float(as_jax(private)(None, None, jnp.asarray(state, jnp.float32))) for state in TEST[:5]]
    assert found == pytest.approx(private(TEST[:5]), abs=1e-3)


class Peeking(Columns, frozen=True):
    """Looks at everybody at once."""

    def __call__(self, points, xp=np):
        return points - points.mean(axis=0)


def test_code_is_no_public_map():
    states = rng().random((len(PERSON), 2))
    with pytest.raises(InvalidInput, match="Peeking is code"):
        Comparisons.read(
            rated(states, peak(states)), left="x", right="y", box=(0, 1), people=PEOPLE, features=Peeking()
        )
    with pytest.raises(InvalidInput, match="Peeking is code"):
        Ratings.read(rated(states, peak(states)), features=Peeking(), **PLANE)


def test_embeddings(tmp_path):
    """A coordinate outside its interval is moved to the end, as encoders know no bounds."""
    size = 24
    encoded, direction = rng().normal(size=(len(PERSON), size)), rng().normal(size=size) / size**0.5
    ratings = np.clip(0.5 + 0.15 * encoded @ direction, 0, 1)
    rows = pl.DataFrame({"person": PERSON, "rating": ratings} | {f"e{i}": encoded[:, i] for i in range(size)})
    rows.write_parquet(tmp_path / "rows.parquet")
    for source in (rows, tmp_path / "rows.parquet"):
        people = Ratings.read(source, features=Columns(prefix="e"), box=(-3, 3), low=0, high=1, people=PEOPLE)
        assert people.not_private["used_rows"] == len(PERSON)
    private = privatise(people, BUDGET)
    fresh = 1.5 * np.random.default_rng(8).normal(size=(500, size))
    assert correlation(private(fresh), fresh @ direction) > 0.85
    with pytest.raises(InvalidInput, match="No column's name starts with 'z'"):
        Ratings.read(rows, features=Columns(prefix="z"), box=(-3, 3), low=0, high=1, people=PEOPLE)
