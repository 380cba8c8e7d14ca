"""The 944 voters of `quietq demo` and of examples/voters.ipynb: their ratings, and the bounds that they are held to.

In the American National Election Study of 1996 each respondent says where they stand, from 1 (left) to 7 (right). Let
that be a point on [0, 1], and let their reward for a policy at s fall off with the distance: 1 - |s - ideal|. The data
is part of statsmodels.

They also say how close they are to which party. A candidate is both, a position and a party: a point of the unit
square, which each respondent likes the better the nearer it is in whichever of the two it is farther away.
"""

import importlib.util
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from quietq.feedback.ratings import Ratings
from quietq.privacy.errors import MissingExtra

if TYPE_CHECKING:
    import polars as pl

COUNT = 944
POSITIONS = np.linspace(0, 1, 7)
CANDIDATE = ("position, from left to right", "party, from Democrats to Republicans")
RATED = 16
"""Candidates that each respondent rates."""


def require() -> None:
    """Raises MissingExtra unless the data and what reads it are installed."""
    for package in ("statsmodels", "polars"):
        if importlib.util.find_spec(package) is None:
            raise MissingExtra.of("examples", f"The voters need {package}")


def ideals() -> Float[np.ndarray, "people 2"]:
    """Where each respondent stands: between left and right, and between the parties. PRIVATE."""
    require()
    import statsmodels.api as sm

    study = sm.datasets.anes96.load_pandas().data
    assert study is not None
    return np.stack([(study["selfLR"].to_numpy() - 1) / 6, study["PID"].to_numpy() / 6], axis=1)


def ratings() -> "pl.DataFrame":
    """What each respondent would give to each of the seven positions: one row a rating."""
    ideal = ideals()[:, 0]
    import polars as pl

    reward = 1 - np.abs(POSITIONS - ideal[:, None])
    person = np.repeat(np.arange(len(ideal)), len(POSITIONS))
    return pl.DataFrame({"person": person, "state": np.tile(POSITIONS, len(ideal)), "rating": reward.ravel()})


def read(source: Any) -> Ratings:
    """Their mean reward, each held to the declared bounds. The bounds are public: they come from the questionnaire."""
    return Ratings.read(source, box=(0, 1), low=0, high=1, slope=1, people=COUNT)


def voters() -> Ratings:
    return read(ratings())


def candidate_ratings() -> "pl.DataFrame":
    """What each respondent would give to candidates, who are drawn at random and public: one row a rating."""
    people = ideals()
    import polars as pl

    candidates = np.random.default_rng(0).random((len(people), RATED, 2)).round(3)
    rating = 1 - np.abs(candidates - people[:, None]).max(axis=2)
    person = np.repeat(np.arange(len(people)), RATED)
    columns = {"person": person, "position": candidates[..., 0].ravel(), "party": candidates[..., 1].ravel()}
    return pl.DataFrame({**columns, "rating": rating.ravel().round(6)})


def read_candidates(source: Any) -> Ratings:
    return Ratings.read(source, state=["position", "party"], box=[(0, 1), (0, 1)], low=0, high=1, people=COUNT)


def mean_candidate_rating(states: Float[np.ndarray, "... 2"]) -> Float[np.ndarray, "..."]:
    """What they like on average, without noise. NOT PRIVATE."""
    return np.mean([1 - np.abs(states - ideal).max(axis=-1) for ideal in ideals()], axis=0)
