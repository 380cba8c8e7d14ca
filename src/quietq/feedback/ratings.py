"""Many people's ratings in, one bounded and smooth reward out: their mean, and by how much one person can move it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from quietq.feedback.extension import Extension
from quietq.feedback.feedback import NAMED, Engine, Feedback, Progress, read_people
from quietq.feedback.ridge_fit import RidgeFit
from quietq.noise.box import Box, Domain
from quietq.noise.kernels import Additive, Exponential, FeatureKernel
from quietq.privacy.certificate import Assumption
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import LipschitzBall, Relation, RkhsBall, people as people_relation


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Ratings(Feedback):
    """The mean of people's rewards with enforced bounds. It is the secret itself: make it private with `privatise`.

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

    extension: Extension
    """Range and slope of each person's reward."""
    fit: RidgeFit | None = None
    """What each person is instead of a function of every coordinate, with features."""

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
        features: FeatureKernel | None = None,
        norm: float | None = None,
        ridge: float = 0.1,
        levels: int = 16,
        engine: Engine = "local",
        progress: Progress | None = None,
    ) -> "Ratings":
        """From a data frame (pandas or Polars), CSV or Parquet files, or several of them; streaming.

        `box`, `low`, `high`, `slope` and `count` are public and declared by you, never taken from the rows. `slope` is
        in units of reward per width of the box. `progress` is told the number of rows read so far.
        """
        from quietq.feedback.schema import Number, Schema

        states, region = (state,) if isinstance(state, str) else tuple(state), Box.of(box)
        extension = Extension(region.dimension, low, high, slope, levels)
        if (features is None) != (norm is None):
            raise InvalidInput("features and norm belong together: give both or neither.")
        fit = None if features is None or norm is None else RidgeFit(features, norm, ridge)
        if len(states) != region.dimension:
            raise InvalidInput(f"box has {region.dimension} dimensions, but there are {len(states)} state columns.")
        if features is not None and features.dimension != len(states):
            raise InvalidInput(
                f"features look at {features.dimension} coordinates, but there are {len(states)} state columns."
            )
        fields = {
            f"x{i}": Number(name, "state", region.low[i], region.high[i], scales=True) for i, name in enumerate(states)
        }
        fields["rating"] = Number(rating, "rating", extension.low, extension.high, clips=True)
        read = read_people(
            source, Schema("ratings", person, fields), fit or extension, count, engine=engine, progress=progress
        )
        return cls(box=region, extension=extension, fit=fit, **read)

    @property
    def slope(self) -> float:
        return self.extension.slope

    @property
    def relation(self) -> Relation:
        bounds, dimension = self.extension, self.box.dimension
        if self.fit is not None:
            return RkhsBall.of_people(self.count, self.fit.features, self.fit.bound)
        if dimension == 1:
            return people_relation(self.count, bounds.low, bounds.high, bounds.slope)
        width = bounds.high - bounds.low
        balls = [LipschitzBall(width / dimension / self.count, 2 * bounds.slope / self.count)] * dimension
        kernel = Additive((Exponential(balls[0].best_beta()),) * dimension)
        return RkhsBall(kernel.radius_of(balls), kernel, people=self.count)

    @property
    def largest(self) -> float:
        return self.fit.bound if self.fit is not None else max(abs(self.extension.low), abs(self.extension.high))

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        bounds = self.extension
        one = f"One person's rows, all of them, count as one of {self.count} people: each"
        if self.fit is None:
            held = f"[{bounds.low:g}, {bounds.high:g}] and to slope {bounds.slope:g} per width of the box"
            return Assumption(f"{one} reward was held to {held}.", True), NAMED
        clipped = Assumption(f"{one} person's weights were clipped to length {self.fit.bound:g}.", True)
        return clipped, NAMED, Assumption("The feature map looks at one state at a time and remembers nothing.", False)

    def functions(self) -> list[Callable[[np.ndarray], np.ndarray]]:
        """The mean reward, one function per coordinate. THE SECRET: what comes out must not be published."""
        if self.fit is not None:
            raise InvalidInput("Ratings with features have weights, not functions of a coordinate.")
        return [_interpolator(mean, self.box.coordinate(i)) for i, mean in enumerate(self.mean(self.extension))]

    def weights(self) -> np.ndarray:
        """The mean weights of people with features. THE SECRET, likewise."""
        if self.fit is None:
            raise InvalidInput("These people have no features, so there are no weights.")
        return self.mean(self.fit)

    def __repr__(self) -> str:
        bounds = self.extension
        held = f"range=[{bounds.low:g}, {bounds.high:g}], slope={bounds.slope:g}"
        return f"Ratings(count={self.count}, box={self.box}, {held})"


def _interpolator(mean: np.ndarray, box: Box) -> Callable[[np.ndarray], np.ndarray]:
    """The mean between its grid points. Straight lines keep the range and the slope of every person's function."""
    grid = np.linspace(0, 1, len(mean))
    return lambda states: np.interp(box.to_unit(states), grid, mean)
