"""A function that may leave: numbers that the noise has already gone into, and their certificate.

Nothing else is in here: no key, no cache, no raw value. It answers any number of queries, everywhere the same, and may
be copied, pickled and shared.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from quietq.noise.box import UNIT, Box
from quietq.noise.grid_path import look_up
from quietq.privacy import Certificate
from quietq.privacy.checks import count
from quietq.privacy.kernel_norms import AdditiveNorm, ExponentialNorm, Norm, ProductNorm
from quietq.privacy.norms import AnyNorm, IncrementGauge, ObservedRewards, ShapedIncrements, SmoothBound
from quietq.released.publishable import (
    IN_TRAINING,
    Publishable,
    Unchecked,
    check_outputs,
    require,
)


class PrivateFunction(Publishable):
    """What a mechanism releases; call it with states."""

    certificate: Certificate  # pyright: ignore[reportIncompatibleVariableOverride]

    noise: ClassVar[tuple[type[Norm], ...]]
    """Norms in which the noise of such a function is drawn."""

    def check_norms(self, norms: tuple[AnyNorm, ...], certificate: Certificate) -> None:
        fits = all(isinstance(norm, self.noise) for norm in norms)
        require(fits, f"its noise must be that of a {type(self).__name__}")
        most = getattr(certificate.relation, "actions", 1)
        require(self.outputs <= most, "it has more outputs than its certificate lets change")


@dataclass(frozen=True, eq=False, repr=False)
class PrivateTable(PrivateFunction):
    """Released values on a dyadic grid; a query reads the nearest."""

    kind: ClassVar[str] = "table"
    noise: ClassVar = (ExponentialNorm, ProductNorm)
    details: ClassVar = ("levels",)
    arrays: ClassVar = ("values",)
    values: Float[np.ndarray, "..."]
    levels: int
    box: Box
    certificate: Certificate

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", count("levels", self.levels))
        super().__post_init__()

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        return look_up(self.values, self.box, self.levels, states)

    @staticmethod
    def check(levels: Unchecked, values: np.ndarray, box: Box) -> None:
        check_outputs(values, [_side(levels)] * box.dimension)


@dataclass(frozen=True, eq=False, repr=False)
class PrivateKnots(PrivateFunction):
    """Released values at equally spaced knots of an interval, straight lines between them."""

    kind: ClassVar[str] = "knots"
    noise: ClassVar = (ShapedIncrements, IncrementGauge)
    arrays: ClassVar = ("values",)
    values: Float[np.ndarray, " knots"]
    box: Box
    certificate: Certificate

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        return np.asarray(np.interp(self.box.to_unit(states), np.linspace(0, 1, len(self.values)), self.values))

    @staticmethod
    def check(values: np.ndarray, box: Box) -> None:
        require(box.dimension == values.ndim == 1 and len(values) > 1, "knots are a list of at least two values")

    def check_norms(self, norms: tuple[AnyNorm, ...], certificate: Certificate) -> None:
        """Values at any knots may be fitted to rewards that were noised one by one."""
        if all(isinstance(norm, ObservedRewards) for norm in norms):
            return
        super().check_norms(norms, certificate)
        for norm in norms:
            pieces = len(norm.shape) if isinstance(norm, ShapedIncrements) else getattr(norm, "pieces", None)
            require(pieces == len(self.values) - 1, "its knots must be those that its certificate names")


class PrivateSum(PrivateTable):
    """Released functions of one coordinate each, on dyadic grids, summed; `values` has a row for each coordinate."""

    kind: ClassVar[str] = "sum"
    noise: ClassVar = (AdditiveNorm,)

    @property
    def parts(self) -> list[PrivateTable]:
        each = enumerate(self.values)
        return [PrivateTable(part, self.levels, self.box.coordinate(i), self.certificate) for i, part in each]

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        x = self.box.to_unit(states)
        coordinates = np.moveaxis(x, -1, 0) if self.box.dimension > 1 else [x]
        parts = zip(self.values, coordinates, strict=True)
        return np.asarray(sum(look_up(part, UNIT, self.levels, coordinate) for part, coordinate in parts))

    @staticmethod
    def check(levels: Unchecked, values: np.ndarray, box: Box) -> None:
        check_outputs(values, [box.dimension, _side(levels)])


@dataclass(frozen=True, eq=False, repr=False)
class PrivateCells(PrivateFunction):
    """One released value per cell of one coordinate; cells lie between edges that rise from one end of the box to the
    other.
    """

    kind: ClassVar[str] = "cells"
    arrays: ClassVar = ("edges", "values")
    edges: Float[np.ndarray, " edges"]
    values: Float[np.ndarray, " cells"]
    box: Box
    certificate: Certificate

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        self.box.to_unit(states)  # refuses what lies outside
        return np.asarray(self.values[np.searchsorted(self.edges[1:-1], np.asarray(states, float), side="right")])

    @staticmethod
    def check(edges: np.ndarray, values: np.ndarray, box: Box) -> None:
        flat = box.dimension == edges.ndim == values.ndim == 1
        require(flat and len(edges) == len(values) + 1, "there is one value between two edges")
        rises = (np.diff(edges) > 0).all() and (edges[0], edges[-1]) == (box.low[0], box.high[0])
        require(rises, "the edges must rise from one end of the box to the other")

    def check_norms(self, norms: tuple[AnyNorm, ...], certificate: Certificate) -> None:
        """Cells may be computed from anything that was released, but not from an agent."""
        alone = all(isinstance(norm, SmoothBound) or not isinstance(norm, IN_TRAINING) for norm in norms)
        require(alone, "its certificate is for an agent, and cells are not one")


def _side(levels: Unchecked) -> int:
    """The number of grid points on a side of a table."""
    require(type(levels) is int and 1 <= levels <= 26, "levels must be 1 to 26")
    return 2**levels + 1
