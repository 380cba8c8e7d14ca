"""A function that may leave: numbers that the noise has already gone into, and their certificate.

Nothing else is in here: no key, no cache, no raw value. It answers any number of queries, everywhere the same, and may
be copied, pickled and shared.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from quietq.noise.box import UNIT, Box
from quietq.noise.feature_path import weighted_features
from quietq.noise.grid_path import look_up
from quietq.noise.kernels import FiniteRank
from quietq.privacy.account import Receipted
from quietq.privacy.certificate import Certificate
from quietq.privacy.checks import count


class PrivateFunction(Receipted, ABC):
    """What `GaussianProcessMechanism.apply` returns; call it with states."""

    certificate: Certificate
    box: Box

    @abstractmethod
    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        """The released values; further axes are outputs, if the function has more than one."""

    @abstractmethod
    def _shape(self) -> str:
        """What it is made of, in a word or two."""

    def __repr__(self) -> str:
        standing = self.certificate.standing
        shown = f"{type(self).__name__}({self._shape()}, domain={self.box}, standing={standing})"
        return shown if standing == "certified" else f"NOT PRIVATE: {shown}"

    def __setstate__(self, state: dict[str, object]) -> None:
        """Copies and what comes out of a pickle are read-only too."""
        for name, value in state.items():
            object.__setattr__(self, name, value)
            if isinstance(value, np.ndarray):
                _freeze(value)


@dataclass(frozen=True, eq=False, repr=False)
class PrivateTable(PrivateFunction):
    """Released values on a dyadic grid; a query reads the nearest."""

    values: Float[np.ndarray, "..."]
    levels: int
    box: Box
    certificate: Certificate

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", count("levels", self.levels))
        _freeze(self.values)

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        """The released values at the nearest grid points."""
        return look_up(self.values, self.box, self.levels, states)

    def _shape(self) -> str:
        return f"shape={self.values.shape}"


@dataclass(frozen=True, eq=False, repr=False)
class PrivateKnots(PrivateFunction):
    """Released values at equally spaced knots of an interval, straight lines between them."""

    values: Float[np.ndarray, " knots"]
    box: Box
    certificate: Certificate

    def __post_init__(self) -> None:
        _freeze(self.values)

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        """The released values, interpolated."""
        return np.asarray(np.interp(self.box.to_unit(states), np.linspace(0, 1, len(self.values)), self.values))

    def _shape(self) -> str:
        return f"knots={len(self.values)}"


@dataclass(frozen=True, eq=False, repr=False)
class PrivateSum(PrivateFunction):
    """Released functions of one coordinate each, summed."""

    parts: tuple[PrivateTable, ...]
    box: Box
    certificate: Certificate

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        """The released values."""
        x = self.box.to_unit(states)
        coordinates = np.moveaxis(x, -1, 0) if self.box.dimension > 1 else [x]
        return np.asarray(
            sum(look_up(part.values, UNIT, part.levels, c) for part, c in zip(self.parts, coordinates, strict=True))
        )

    def _shape(self) -> str:
        return f"parts={len(self.parts)}"


@dataclass(frozen=True, eq=False, repr=False)
class PrivateWeights(PrivateFunction):
    """Released weights of public features."""

    weights: Float[np.ndarray, "..."]
    kernel: FiniteRank
    box: Box
    certificate: Certificate

    def __post_init__(self) -> None:
        _freeze(self.weights)

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        """The released values."""
        return weighted_features(self.kernel, self.weights, self.box, states)

    def _shape(self) -> str:
        return f"shape={self.weights.shape}"


def _freeze(array: np.ndarray) -> None:
    array.flags.writeable = False
