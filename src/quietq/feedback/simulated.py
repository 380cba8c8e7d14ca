"""People who do not exist, drawn from public laws: to try a release on before anything is spent.

Everybody's reward is the mean reward and a taste of their own, both in units of the mean reward's standard deviation
over states. States are uniform in the box. One entry of `SIMULATED` per kind of feedback.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from quietq.feedback.comparisons import Comparisons
from quietq.feedback.feedback import Feedback
from quietq.feedback.ratings import Ratings
from quietq.noise.box import Box

RATED, LOG_ODDS = 1 / 5, 1.5
"""Standard deviation of the mean reward over states, in units of the range of ratings, and of log-odds."""
NOISE = 0.1
"""Standard deviation of the noise of a rating, in units of the range of ratings."""
SLOPE = 2.0
"""What is declared of a person's ratings in one dimension, in ranges per width of the box."""

Points = Float[np.ndarray, "people rows d"]
Rewards = Callable[[Points], Float[np.ndarray, "people rows"]]
"""Each person's reward at their own states."""


def simulate_ratings(rewards: Rewards, people: int, rows: int, dimension: int, seed: int) -> Ratings:
    """Ratings from 0 to 1 around 1/2; what falls outside is moved to the nearer end."""
    generator = np.random.default_rng(seed)
    states = generator.random((people, rows, dimension))
    ratings = 0.5 + RATED * rewards(states) + NOISE * generator.normal(size=(people, rows))
    columns = _columns("x", states)
    frame = _frame(people, rows, {**columns, "rating": ratings.ravel()})
    slope = SLOPE if dimension == 1 else None
    return Ratings.read(frame, box=_unit(dimension), low=0, high=1, slope=slope, count=people, state=list(columns))


def simulate_comparisons(rewards: Rewards, people: int, rows: int, dimension: int, seed: int) -> Comparisons:
    """Choices between two states, by the log-odds of a reward."""
    generator = np.random.default_rng(seed)
    left, right = generator.random((2, people, rows, dimension))
    liked = expit(LOG_ODDS * (rewards(left) - rewards(right)))
    chosen = np.where(generator.random((people, rows)) < liked, "left", "right").ravel()
    columns = _columns("left", left), _columns("right", right)
    frame = _frame(people, rows, {**columns[0], **columns[1], "choice": chosen})
    return Comparisons.read(frame, left=list(columns[0]), right=list(columns[1]), box=_unit(dimension), count=people)


SIMULATED: dict[str, Callable[[Rewards, int, int, int, int], Feedback]] = {
    "ratings": simulate_ratings,
    "comparisons": simulate_comparisons,
}
"""By the names of `quietq.registry.FEEDBACK`: so many people with so many rows each, of this dimension, by a seed."""


def _columns(name: str, states: Points) -> dict[str, np.ndarray]:
    return {f"{name}{i}": states[..., i].ravel() for i in range(states.shape[-1])}


def _unit(dimension: int) -> Box:
    return Box((0.0,) * dimension, (1.0,) * dimension)


def _frame(people: int, rows: int, columns: dict[str, np.ndarray]) -> object:
    from quietq.feedback.schema import pl  # which says what to install, if it has to

    return pl.DataFrame({"person": np.repeat(np.arange(people), rows), **columns})
