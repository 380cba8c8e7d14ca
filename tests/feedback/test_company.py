"""A person's vector has the same bits alone and in any company: whoever else is there, and in whichever bucket."""

import numpy as np
import pytest

from quietq.feedback.cells import Cells
from quietq.feedback.imitation_statistics import OwnReturns, ReachCounts, StateMoments
from quietq.feedback.returns import ActionShares, Returns
from quietq.feedback.row_statistics import (
    Chosen,
    ClippedGradient,
    EndRates,
    Ends,
    Marginals,
    NormalisedMoments,
    SecondMoments,
    Squared,
    StepRewards,
    first_states,
    moves,
)
from quietq.feedback.spaces import Spaces
from quietq.feedback.statistic import Vector
from quietq.noise.box import Box
from quietq.noise.feature_maps import Categorical, Columns, Fourier, Polynomials

RNG = np.random.default_rng(0)
SPACES = Spaces(Box.of([(0, 1)] * 2), 3)
SMOOTH = Polynomials(2, ((), ((0, 1),), ((1, 3),), ((0, 1), (1, 2))))
MAPS = {
    "polynomials": SMOOTH,
    "fourier": Fourier.draw(2, 33, width=0.3),
    "columns": Columns().sized(2),
}
SIZES = [1, 2, 3, 40, 1, 300, 7, 8, 9, 64, 1, 1000, 5]


def gradient(loss, features, rank: int, along: int | None = None) -> ClippedGradient:
    weights = RNG.normal(size=rank) / rank
    return ClippedGradient(loss, features, weights, 0.1, None if along is None else RNG.normal(size=(rank, along)))


def moments(looked) -> NormalisedMoments:
    size = len(looked.scales)
    return NormalisedMoments(looked, RNG.normal(size=(size, size)))


def around(points: np.ndarray) -> np.ndarray:
    return 2 * points - 1


def policy(states: np.ndarray) -> np.ndarray:
    odds = np.exp(states @ np.array([[1.0, -1.0, 0.3], [0.2, 0.7, -0.4]]))
    return odds / odds.sum(axis=1, keepdims=True)


def returns() -> Returns:
    return Returns((policy, policy), policy, SPACES.box, 3, (0.0, 1.0), (0.0, 9.0), 0.9, False)


def by_action(points: np.ndarray, action: np.ndarray) -> np.ndarray:
    return SMOOTH(points) * (1.0 + action[:, None])


OF_BOTH = Polynomials(3, ((), ((0, 1),), ((2, 2),)))
RATED, PAIRS, CLIPS = Squared(2, (0.0, 1.0)), Chosen(2, 2), Chosen(2, 2, 5)
ITEMS = Categorical(tuple(f"item {i}" for i in range(30)))
STATISTICS: dict[str, Vector] = {
    **{f"gradient of {name}": gradient(RATED, one, one.rank) for name, one in MAPS.items()},
    **{f"choices by {name}": gradient(PAIRS, one, one.rank) for name, one in MAPS.items()},
    "gradient along a basis": gradient(RATED, MAPS["fourier"], 66, 50),
    "gradient of items": gradient(Squared(1, (0.0, 1.0)), ITEMS, ITEMS.rank),
    "gradient by action": gradient(Squared(2, (0.0, 1.0), 3), by_action, 4),
    "choices of segments": gradient(CLIPS, SMOOTH, 4),
    "choices among three": gradient(Chosen(2, 3), SMOOTH, 4),
    "rewards of steps": gradient(StepRewards.of(Spaces(SPACES.box, action_box=Box.of((0, 1)))), OF_BOTH, OF_BOTH.rank),
    "ends": gradient(Ends(2), SMOOTH, 4),
    "marginals": Marginals(RATED, 2, 8),
    "marginals of choices": Marginals(Chosen(2, 3), 2, 8),
    "moments": SecondMoments(RATED, around, 2),
    "moments of choices": SecondMoments(Chosen(2, 3), around, 2),
    **{
        f"moves by {name}": moments(moves(SPACES, one, (0, 1)))
        for name, one in {
            "polynomials": Polynomials(4, ((), ((0, 1),), ((3, 1),), ((0, 1), (1, 2)))),
            "fourier": Fourier.draw(4, 20, width=0.3),
        }.items()
    },
    "first states": moments(first_states(np.array([0.4, 0.6]), RNG.normal(size=(2, 2)))),
    "rates of ends": EndRates(lambda states: states @ np.array([1.0, -2.0]), 2, 0.1),
    "returns": returns(),
    "shares of actions": ActionShares(Cells(4, lambda states: np.floor(4 * states[:, 0])), SPACES.box, 3),
    "moments of states": StateMoments(np.array([0.4, 0.6]), np.array([0.1, 0.3]), 4.0),
    "counts of returns": ReachCounts(OwnReturns((-1.0, 1.0), (-9.0, 9.0)), 0.1),
}  # fmt: skip


def crowd(sizes: list[int]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    rng, rows = np.random.default_rng(1), sum(sizes)
    places = ["x0", "x1", "s0", "s1", "n0", "n1", "a0", *(f"option{j}_{i}" for j in range(3) for i in range(2))]
    columns = {name: rng.random(rows) for name in (*places, "rating", "reward")}
    starts = np.cumsum(sizes) - sizes
    row = np.arange(rows) - np.repeat(starts, sizes)
    columns["option2_0"][rng.random(rows) < 0.2] = np.nan
    columns |= {"choice": rng.integers(0, 3, rows), "action": rng.integers(0, 3, rows), "segment": row // 5}
    columns |= {"episode": np.repeat(100 * np.arange(len(sizes)), sizes) + row // 12, "step": row % 12}
    return starts, columns | {"first": (row % 12 == 0).astype(np.int8), "end": (rng.random(rows) < 0.1).astype(np.int8)}


@pytest.mark.parametrize("name", STATISTICS)
def test_company_changes_no_bit(name: str) -> None:
    statistic = STATISTICS[name]
    starts, columns = crowd(SIZES)
    if name == "gradient of items":
        columns["x0"] = np.rint(29 * columns["x0"]) / 29
    theirs = [np.arange(start, start + size) for start, size in zip(starts, SIZES, strict=True)]
    with np.errstate(all="ignore"):
        together = statistic.of_people(starts, columns)
        for chosen in (*([i] for i in range(len(SIZES))), [11, 0, 3], [*range(12, 0, -1)], [0, 4, 10]):
            rows = np.concatenate([theirs[i] for i in chosen])
            sizes = np.array([SIZES[i] for i in chosen])
            part = statistic.of_people(np.cumsum(sizes) - sizes, {key: one[rows] for key, one in columns.items()})
            assert np.array_equal(part, together[chosen])
    assert np.isfinite(together).all()
    assert (together != 0).any()
