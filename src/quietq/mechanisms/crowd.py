"""A mean reward from the public prior, and people whose own rewards deviate from it. None of them exists."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from quietq.feedback.simulated import Survey
from quietq.mechanisms.basis import OWN
from quietq.mechanisms.smooth_prior import smooth_prior
from quietq.noise.feature_maps import Polynomials

SPREAD = 0.5
"""How far people's own rewards are from the mean one, over the deviation of the mean reward itself."""
_AT_ONCE = 2**22  # numbers of everybody's own weights
_PEOPLE_AT_ONCE = 500


@dataclass(frozen=True)
class Crowd:
    """Weights of the prior's features, or values of items, in units of the mean reward's deviation over states."""

    features: Polynomials | None
    """None for items, which states are the numbers of."""
    deviations: Float[np.ndarray, " rank"]
    weights: Float[np.ndarray, "rank actions"]
    seed: int

    @classmethod
    def draw(cls, survey: Survey, seed: int) -> "Crowd":
        features, deviations = None, np.ones(survey.items or 0)
        if survey.items is None:
            terms, variances = smooth_prior(survey.dimension)
            order = sorted(range(len(terms)), key=lambda i: len(terms[i]))
            deviations = np.sqrt(variances[order] / variances.sum())
            features = Polynomials(survey.dimension, tuple(terms[i] for i in order))
        generator = np.random.default_rng(seed)
        weights = generator.normal(size=(len(deviations), 1))
        if survey.actions > 1:
            own = generator.normal(size=(len(deviations), survey.actions))
            weights = math.sqrt(1 - OWN) * weights + math.sqrt(OWN) * own
        return cls(features, deviations, weights * deviations[:, None], seed)

    def mean(self, states: Float[np.ndarray, "states d"]) -> Float[np.ndarray, "states actions"]:
        return self._at(states[None], self.weights[None])[0]

    def __call__(
        self, points: Float[np.ndarray, "people rows d"], actions: Int[np.ndarray, "people rows"] | None = None
    ) -> Float[np.ndarray, "people rows"]:
        """Everybody's own reward at their own states; the same people have the same tastes each time."""
        generator, found = np.random.default_rng((self.seed, 1)), []
        at_once = max(1, min(_PEOPLE_AT_ONCE, _AT_ONCE // self.weights.size))
        for first in range(0, len(points), at_once):
            some = points[first : first + at_once]
            taste = SPREAD * self.deviations[:, None] * generator.normal(size=(len(some), *self.weights.shape))
            found.append(self._at(some, self.weights + taste))
        every = np.concatenate(found)
        return every[..., 0] if actions is None else np.take_along_axis(every, actions[..., None], axis=-1)[..., 0]

    def _at(
        self, points: Float[np.ndarray, "people rows d"], weights: Float[np.ndarray, "people rank actions"]
    ) -> Float[np.ndarray, "people rows actions"]:
        if self.features is None:
            return np.take_along_axis(weights, points.astype(np.int64), axis=1)
        return self.features(points) @ weights
