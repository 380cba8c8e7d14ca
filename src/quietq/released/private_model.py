"""A reward in any dimension that can be published: weights of public features, and how the box was stretched."""

from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from quietq.noise import Box
from quietq.noise.feature_maps import AnyFeatureMap, Categorical, stretch
from quietq.privacy import Certificate
from quietq.privacy.checks import Real, numbers
from quietq.privacy.norms import AnyNorm, MeanOfPeople
from quietq.released.private_function import PrivateFunction
from quietq.released.publishable import require

LARGEST = 1e20
"""No weight of a file may be larger: then no value overflows in float32."""
Array = Any
"""A NumPy or a JAX array."""


@dataclass(frozen=True, eq=False, repr=False)
class PrivateModel(PrivateFunction, tag="model"):
    """A fitted model: low + (high - low) (1/2 + offset + weights . features), clipped to [low, high].

    Without a range, it is offset + weights . features. With one column of weights per action it has a value for each.
    Of a catalogue, states are the items' names, or their places in the public list, from 0 on.
    """

    arrays: ClassVar = ("offset", "weights", "knots")
    feature_map: AnyFeatureMap
    offset: Float[np.ndarray, " outputs"]
    weights: Float[np.ndarray, "rank ..."]
    knots: Float[np.ndarray, "d knots"]
    low: Real | None
    high: Real | None
    box: Box
    certificate: Certificate

    @property
    def items(self) -> tuple[str, ...] | None:
        """The public list that states are of, if it is a catalogue."""
        return self.feature_map.items if isinstance(self.feature_map, Categorical) else None

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        if isinstance(self.feature_map, Categorical):
            states = self.feature_map.numbers_of(states)
        if self.feature_map.clips:
            states = np.clip(numbers("states", states), self.box.low, self.box.high)
        unit = self.box.to_unit(states)
        points = unit[..., None] if self.box.dimension == 1 else unit
        return np.asarray(self.read(points, self.offset, self.weights, self.knots))

    def read(self, points: Array, offset: Array, weights: Array, knots: Array, xp: ModuleType = np) -> Array:
        """Returns the values at points of the unit box, shape (..., d), by numbers that JAX may hold."""
        features = self.feature_map(stretch(points, knots, xp), xp)
        fitted = features @ weights + (offset if weights.ndim > 1 else offset[0])
        if self.low is None or self.high is None:
            return fitted
        return xp.minimum(xp.maximum(self.low + (self.high - self.low) * (0.5 + fitted), self.low), self.high)

    def check(self) -> None:
        weights, knots, rank, sides = self.weights, self.knots, self.feature_map.rank, self.box.dimension
        require(weights.ndim in (1, 2) and len(weights) == rank, "it must have one weight for each feature")
        require((np.abs(weights) <= LARGEST).all(), "its weights are too large to compute with")
        own = self.items is None or self.box == Box((0.0,), (rank - 1.0,))
        require(own, "its box must be that of its items")
        require(self.offset.shape == (weights.shape[1:] or (1,)), "its offset must be a number for each column")
        low, high = self.low, self.high
        fits = low is high if low is None or high is None else low < high
        require(self.feature_map.dimension == sides and fits, "its features, box and range must fit")
        rises = knots.ndim == 2 and len(knots) == sides and knots.shape[1] > 1 and (np.diff(knots) > 0).all()
        require(rises and (knots[:, 0] == 0).all() and (knots[:, -1] == 1).all(), "its knots must rise from 0 to 1")

    def check_norms(self, norms: tuple[AnyNorm, ...], certificate: Certificate) -> None:
        means = all(isinstance(norm, MeanOfPeople) for norm in norms)
        require(means, "its noise must be that of means over people")
