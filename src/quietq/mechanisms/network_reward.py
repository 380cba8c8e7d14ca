"""A reward that may leave as a small network: all of its weights are released numbers."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from quietq.feedback.network_gradient import layers, number_of_weights
from quietq.mechanisms.private_function import MEANS, PrivateFunction, kinds_of
from quietq.mechanisms.publishable import InvalidRelease, Stored, require
from quietq.noise.box import Box
from quietq.privacy.certificate import Certificate
from quietq.privacy.checks import real
from quietq.privacy.errors import InvalidInput

LARGEST = 1e30
"""No weight may be larger: then no value overflows in float32."""
MOST_LAYERS, MOST_WIDTH = 8, 4096


@dataclass(frozen=True, eq=False, repr=False)
class NetworkReward(PrivateFunction):
    """A network with hidden layers of tanh: low + (high - low) (1/2 + its output), held to [low, high].

    Without a range, it is the output itself. With one output per action it has a value for each.
    """

    kind: ClassVar[str] = "reward-network"
    details: ClassVar = ("widths", "low", "high")
    arrays: ClassVar = ("weights",)
    widths: tuple[int, ...]
    """Of the layers, inputs first and outputs last."""
    weights: Float[np.ndarray, " weights"]
    """Layer by layer; of each the rows of its matrix, one for each input, and then its biases."""
    low: float | None
    high: float | None
    box: Box
    certificate: Certificate

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        unit = self.box.to_unit(states)
        return np.asarray(self.read(unit[..., None] if self.box.dimension == 1 else unit, self.weights))

    def read(self, points: Any, weights: Any, xp: Any = np) -> Any:
        """The values at points of the unit box, shape (..., d), by numbers that JAX may hold."""
        first, *others = layers(weights, self.widths)
        fitted = (2 * points - 1) @ first[:-1] + first[-1]
        for matrix in others:
            fitted = xp.tanh(fitted) @ matrix[:-1] + matrix[-1]
        fitted = fitted if self.widths[-1] > 1 else fitted[..., 0]
        if self.low is None or self.high is None:
            return fitted
        return xp.clip(self.low + (self.high - self.low) * (0.5 + fitted), self.low, self.high)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        details, arrays = super().to_arrays()
        return details | {"widths": list(self.widths)}, arrays

    @classmethod
    def from_arrays(cls, stored: Stored) -> "NetworkReward":
        stored.expect(cls.details, cls.arrays)
        widths, weights = stored.details["widths"], stored.arrays["weights"]
        listed = isinstance(widths, list) and 3 <= len(widths) <= MOST_LAYERS
        require(
            listed and all(type(one) is int and 1 <= one <= MOST_WIDTH for one in widths), "its widths must be some"
        )
        require(widths[0] == stored.box.dimension, "it must have one input for each coordinate")
        require(weights.shape == (number_of_weights(widths),), "its weights must be as many as its widths say")
        require((np.abs(weights) <= LARGEST).all(), "its weights are too large to compute with")
        try:
            ends = [stored.details[end] for end in ("low", "high")]
            low, high = (None if end is None else real("range", end) for end in ends)
        except InvalidInput as error:
            raise InvalidRelease(f"This is not a release: {error}") from error
        fits = low < high if low is not None and high is not None else low is high
        require(fits, "its range must have a low and a high end, or none")
        return cls(tuple(widths), weights, low, high, stored.box, stored.certificate)

    def check_norm(self, norm: dict[str, Any], certificate: Certificate) -> None:
        require(set(kinds_of(norm)) <= MEANS, "its noise must be that of means over people")
