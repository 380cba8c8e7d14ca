"""What all models of public features share that are fitted to everybody's rows, however that is done."""

import math
from typing import Any

import numpy as np

from quietq.mechanisms.basis import Basis
from quietq.mechanisms.mechanism import Mechanism, Task
from quietq.noise.box import Box
from quietq.noise.feature_maps import Splines
from quietq.noise.smooth_prior import beyond
from quietq.privacy.certificate import Assumption, Certificate
from quietq.privacy.errors import InvalidInput
from quietq.released.private_model import PrivateModel


class FeatureModel(Mechanism):
    """A reward in any dimension, with interactions, from everybody's rows. A subclass says how it is fitted."""

    takes, asks_code = "rows", False
    remarks = (
        "Where states lie is taken for correlated coordinates: if they lie in clusters, the model may be farther off "
        "than expected, so try it on people who are made up.",
    )
    basis: Basis
    """The directions that are fitted."""
    _error: float
    """The expected mean square error where people's states lie, in units of the loss, but for what is `_beyond`."""
    _beyond: float
    """The variance, in units of the loss, that the prior expects beyond all features: of features that were given,
    nobody knows what they cannot represent, and it is 0."""

    def __init__(self, task: Task, mu: float | None = None) -> None:
        """`mu` is what the model may spend, if that is only a part of the budget."""
        self.relation, self.budget, self.loss, self.box = task.relation, task.budget, task.loss, Box.of(task.domain)
        self.mu, dimension = task.budget.mu if mu is None else mu, self.box.dimension
        self.largest, self.error = math.sqrt(dimension) + 2, 1e-12
        self._not_stretched = np.tile([0.0, 1.0], (dimension, 1))
        self._looks_first = task.features is None or task.features.stretches
        if not self._looks_first:
            self.remarks = ()
        if isinstance(task.features, Splines) and task.features.additive:
            self.remarks = (*self.remarks, "The model is a sum of one function per coordinate: it has no interactions.")
        if self.loss.range is None:
            self.remarks = (*self.remarks, "The reward is in log-odds and up to a constant: choices tell no more.")
        self._every = Basis.of(task.features, dimension, self.loss)
        self._beyond = self.loss.scale**2 * beyond(dimension) if task.features is None else 0.0

    def result(self, released: Any, certificate: Certificate) -> PrivateModel:
        basis, fitted, knots, *_ = released
        (weights, offset), (low, high) = basis.weights(self.loss.unit * fitted), self.loss.range or (None, None)
        return PrivateModel(basis.feature_map, offset, weights, knots, low, high, self.box, certificate)

    def expected_error(self) -> float:
        """Root mean square where people's states lie, for rewards as the prior has them.

        Noise, chance in who was asked and what is not fitted are in it; what given features cannot represent is not.
        """
        low, high = self.loss.range or (0.0, self.loss.unit)
        return (high - low) * math.sqrt(self._error + self._beyond)

    @classmethod
    def propose(cls, task: Task) -> "list[FeatureModel]":
        if task.budget.is_pure:
            raise InvalidInput("A model of everybody's rows has Gaussian noise: delta must be above 0.")
        return [cls(task)]


def held(queries: int, *parts: str) -> tuple[Assumption, ...]:
    """What such a mechanism enforces in each of its queries, of which it says what they were for."""
    each = f"Each of {queries} queries" if queries > 1 else "The one query"
    what = f"{each} ({', then '.join(parts)}) took the mean of one vector per person, held to its bound, "
    return (Assumption(what + "was noised once, and saw earlier answers only.", True),)
