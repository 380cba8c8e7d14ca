"""Many people's ratings in, one bounded and smooth reward out: their mean, and by how much one person can move it."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from quietq.feedback.clipped_fit import ClippedFit, WeightTally
from quietq.feedback.declared import Declared
from quietq.feedback.extension import Tally
from quietq.noise.box import Domain
from quietq.noise.kernels import Additive, Exponential, Features
from quietq.privacy.account import Once
from quietq.privacy.certificate import Assumption
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import LipschitzBall, Relation, RkhsBall, people as people_relation

Engine = Literal["local", "ray"]


@dataclass(frozen=True, eq=False, repr=False)
class Ratings:
    """The mean of people's rewards with enforced bounds. It is the secret itself: make it private with `privatise`.

    Without an account, `privatise` releases the same people once: releases add up.

    In one dimension each person's function is the midpoint of the two extreme Lipschitz extensions of their ratings.
    In several, a rating y at (x_1, ..., x_d) is split evenly, y/d for each coordinate's own function of range
    [low/d, high/d]: whatever the split, each part keeps its range and slope, so the bounds hold. With `features`, each
    person is a ridge fit clipped to length `norm`.

    >>> import polars
    >>> ratings = polars.DataFrame({"person": ["a", "a", "b"], "state": [0.0, 1.0, 0.5], "rating": [0.0, 1.0, 1.0]})
    >>> people = Ratings.read(ratings, box=(0, 1), low=0, high=1, slope=1, count=2)
    >>> people
    Ratings(count=2, box=[0, 1], range=[0, 1], slope=1)
    """

    declared: Declared
    preferences: ClippedFit | None
    _means: tuple[np.ndarray, ...]
    not_private: dict[str, int] = field(default_factory=dict)
    """counts for the operator; publishing them is not covered by any certificate"""
    once: Once = field(default_factory=lambda: Once("These people's reward"))
    """The mark by which `privatise` knows that they were released; copies and pickles carry it along."""

    @classmethod
    def read(
        cls,
        source: object,
        *,
        box: Domain,
        low: float,
        high: float,
        slope: float,
        count: int,
        person: str = "person",
        state: str | Sequence[str] = "state",
        rating: str = "rating",
        features: Features | None = None,
        norm: float | None = None,
        ridge: float = 0.1,
        levels: int = 16,
        engine: Engine = "local",
        progress: Callable[[int], None] | None = None,
    ) -> "Ratings":
        """From a data frame (pandas or Polars), CSV or Parquet files, or several of them; streaming.

        `box`, `low`, `high`, `slope` and `count` are public and declared by you, never taken from the rows. `slope` is
        in units of reward per width of the box. `progress` is told the number of rows read so far.
        """
        from quietq.feedback.rows import Columns

        columns = Columns(person, (state,) if isinstance(state, str) else tuple(state), rating)
        declared = Declared.of(box, low, high, slope, count, levels)
        preferences = _preferences(features, norm, ridge)
        _check_dimension(declared, preferences, len(columns.state))
        if engine == "ray":
            from quietq.feedback.ray_engine import aggregate
        elif engine == "local":
            from quietq.feedback.aggregate import aggregate
        else:
            raise InvalidInput(f"engine must be 'local' or 'ray', not {engine!r}.")
        tallies, counts = aggregate(source, columns, declared, preferences, progress)
        return cls.from_tallies(declared, preferences, tallies, counts)

    @classmethod
    def from_tallies(
        cls,
        declared: Declared,
        preferences: ClippedFit | None,
        tallies: Sequence[Tally | WeightTally],
        counts: dict[str, int],
    ) -> "Ratings":
        """From sums over disjoint people, made wherever the rows are."""
        present = tallies[0].people
        if present > declared.people:
            raise InvalidInput(
                f"There are more people in the data than the {declared.people} that were declared; nothing was spent."
            )
        if not counts["used_rows"]:
            # No refusal, which would tell whether the one person with a usable row is there.
            warnings.warn(
                f"No row of the ratings can be used, so all {declared.people} people count as neutral: check that the "
                "columns are the right ones, that states lie in the box, and that numbers have a decimal point, not a "
                "comma. This warning comes from the raw data and is for you alone.",
                UserWarning,
                stacklevel=3,
            )
        means = []
        for tally in tallies:
            if isinstance(tally, WeightTally):
                assert preferences is not None
                means.append(tally.mean(preferences, declared.people))
            else:
                means.append(tally.mean(declared, share=1 / len(tallies)))
        return cls(declared, preferences, tuple(means), {**counts, "people_present": present})

    @property
    def relation(self) -> Relation:
        """Which two rewards must look alike: replacing any one person's rows by any others, or by none."""
        d = self.declared
        if self.preferences is not None:
            return RkhsBall.of_people(d.people, self.preferences.features, self.preferences.norm)
        if d.box.dimension == 1:
            return people_relation(d.people, d.low, d.high, d.slope)
        dimensions = d.box.dimension
        balls = [LipschitzBall(d.width / dimensions / d.people, 2 * d.slope / d.people)] * dimensions
        kernel = Additive((Exponential(balls[0].best_beta()),) * dimensions)
        return RkhsBall(kernel.radius_of(balls), kernel, people=d.people)

    @property
    def largest(self) -> float:
        """A public bound on the size of what is released, before noise."""
        return (
            self.preferences.norm
            if self.preferences is not None
            else max(abs(self.declared.low), abs(self.declared.high))
        )

    @property
    def assumption(self) -> Assumption:
        """How the relation is made sure of."""
        d = self.declared
        how = (
            f"each person's weights were clipped to length {self.preferences.norm:g}"
            if self.preferences is not None
            else f"each reward was held to [{d.low:g}, {d.high:g}] and to slope {d.slope:g} per width of the box"
        )
        return Assumption(f"One person's rows, all of them, count as one of {d.people} people: {how}.", enforced=True)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """How the relation is made sure of, and what no code can see."""
        return (self.assumption, *self.trusted)

    @property
    def trusted(self) -> tuple[Assumption, ...]:
        """What no code can see."""
        trusted = [
            "Each row stands under the name of the person it came from, and nobody appears in the data under two names."
        ]
        if self.preferences is not None:
            trusted.append("The feature map looks at one state at a time and remembers nothing.")
        return tuple(Assumption(text, enforced=False) for text in trusted)

    def functions(self) -> list[Callable[[np.ndarray], np.ndarray]]:
        """The mean reward, one function a coordinate. THE SECRET: what comes out must not be published."""
        if self.preferences is not None:
            raise InvalidInput("Ratings with features have weights, not functions of a coordinate.")
        return [_interpolator(mean, self.declared, i) for i, mean in enumerate(self._means)]

    def weights(self) -> np.ndarray:
        """The mean weights of people with features. THE SECRET, likewise."""
        if self.preferences is None:
            raise InvalidInput("These people have no features, so there are no weights.")
        return self._means[0].copy()

    def __repr__(self) -> str:
        d = self.declared
        return f"Ratings(count={d.people}, box={d.box}, range=[{d.low:g}, {d.high:g}], slope={d.slope:g})"


def _interpolator(mean: np.ndarray, declared: Declared, coordinate: int) -> Callable[[np.ndarray], np.ndarray]:
    """The mean between its grid points. Straight lines keep the range and the slope of every person's function."""
    box = declared.box.coordinate(coordinate)
    grid = np.linspace(0, 1, len(mean))
    return lambda states: np.interp(box.to_unit(states), grid, mean)


def _preferences(features: Features | None, norm: float | None, ridge: float) -> ClippedFit | None:
    if features is None and norm is None:
        return None
    if features is None or norm is None:
        raise InvalidInput("features and norm belong together: give both or neither.")
    return ClippedFit(features, norm, ridge)


def _check_dimension(declared: Declared, preferences: ClippedFit | None, columns: int) -> None:
    if columns != declared.box.dimension:
        raise InvalidInput(f"box has {declared.box.dimension} dimensions, but there are {columns} state columns.")
    if preferences is not None and preferences.features.dimension != columns:
        raise InvalidInput(
            f"features look at {preferences.features.dimension} coordinates, but there are {columns} state columns."
        )
