"""The 944 voters of `quietq demo` and of examples/voters.ipynb: their ratings, and the bounds that they are clipped to.

In the American National Election Study of 1996 each respondent says where they stand, from 1 (left) to 7 (right). Let
that be a point on [0, 1], and let their reward for a policy at s fall off with the distance: 1 - |s - ideal|. The data
is part of statsmodels.
"""

import importlib.util
from typing import TYPE_CHECKING, Any

import numpy as np

from quietq.feedback.ratings import Ratings
from quietq.privacy.errors import MissingExtra

if TYPE_CHECKING:
    import polars as pl

COUNT = 944
POSITIONS = np.linspace(0, 1, 7)


def require() -> None:
    """Raises MissingExtra unless the data and what reads it are installed."""
    for package in ("statsmodels", "polars"):
        if importlib.util.find_spec(package) is None:
            raise MissingExtra.of("examples", f"The voters need {package}")


def ratings() -> "pl.DataFrame":
    """Returns what each respondent would give to each of the seven positions: one row a rating. PRIVATE."""
    require()
    import polars as pl
    import statsmodels.api as sm

    study = sm.datasets.anes96.load_pandas().data
    assert study is not None
    ideal = (study["selfLR"].to_numpy() - 1) / 6  # where each one stands, between left and right
    reward = 1 - np.abs(POSITIONS - ideal[:, None])
    person = np.repeat(np.arange(len(ideal)), len(POSITIONS))
    return pl.DataFrame({"person": person, "state": np.tile(POSITIONS, len(ideal)), "rating": reward.ravel()})


def read(source: Any) -> Ratings:
    """Returns their mean reward, each clipped to the declared bounds, which come from the questionnaire."""
    return Ratings.read(source, box=(0, 1), low=0, high=1, slope=1, people=COUNT)
