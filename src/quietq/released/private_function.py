"""A function that can be published: numbers that noise was added to, and their certificate.

Nothing else is in here: no key, no cache, no raw value. It answers any number of queries, everywhere the same, and may
be copied, pickled and shared.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from jaxtyping import Float
from msgspec import Meta

from quietq.noise.box import UNIT, Box
from quietq.noise.grid_path import look_up
from quietq.privacy import Certificate, Code
from quietq.privacy.checks import Flag, count
from quietq.privacy.norms import AnyNorm, IncrementGauge, ObservedRewards, ShapedIncrements
from quietq.privacy.relations import Exponential, Norm
from quietq.released.publishable import Publishable, require


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

    @property
    def items(self) -> tuple[str, ...] | None:
        """The public list that states are of, if there is one."""
        return None

    def spread(self) -> float:
        """Returns the standard deviation of its values over public random states of the box, or items of the list."""
        states = self.box.from_unit(np.random.default_rng(0).random((1000, self.box.dimension)))
        states = states[:, 0] if self.box.dimension == 1 else states
        return float(np.std(self(states if self.items is None else np.rint(states)), axis=0).max())

    def in_words(self) -> list[str]:
        error = self.certificate.expected_error
        if error is None or (spread := self.spread()) >= error:
            return super().in_words()
        return [
            *super().in_words(),
            f"Its values vary by {spread:.2g}, which is less than the {error:.2g} that they must be expected to be off "
            "by: what it likes best may be noise alone.",
        ]

    def __str__(self) -> str:
        return "\n".join([repr(self), *self.in_words()])


@dataclass(frozen=True, eq=False, repr=False)
class PrivateTable(PrivateFunction, tag="table"):
    """Released values on a dyadic grid; a query reads the nearest.

    Of an additive kernel they are functions of one coordinate each, which are summed: `values` has a row for each.
    """

    noise: ClassVar = (Exponential,)
    arrays: ClassVar = ("values",)
    values: Float[np.ndarray, "..."]
    levels: Annotated[int, Meta(ge=1, le=26)]
    box: Box
    certificate: Certificate
    summed: Flag = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", count("levels", self.levels))
        super().__post_init__()

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        if not self.summed:
            return look_up(self.values, self.box, self.levels, states)
        x = self.box.to_unit(states)
        coordinates = np.moveaxis(x, -1, 0) if self.box.dimension > 1 else [x]
        parts = zip(self.values, coordinates, strict=True)
        return np.asarray(sum(look_up(part, UNIT, self.levels, coordinate) for part, coordinate in parts))

    def check(self) -> None:
        side, sides = 2**self.levels + 1, self.box.dimension
        start = (sides, side) if self.summed else (side,) * sides
        shape = self.values.shape
        require(shape[: len(start)] == start, f"an array has shape {shape} and must start with {start}")
        require(len(shape) <= len(start) + 1, "values must be numbers, or rows of numbers")

    def check_norms(self, norms: tuple[AnyNorm, ...], certificate: Certificate) -> None:
        """Released values are whole multiples of the step that noise was rounded to, which others are not."""
        super().check_norms(norms, certificate)
        combined = all(isinstance(norm, Exponential) and (len(norm.tables) > 1) is self.summed for norm in norms)
        require(combined, f"its noise must be that of a {type(self).__name__}, summed or not as it is")
        steps = [float(one.values[0]) for one in certificate.assumptions if one.code is Code.EXACT_NOISE]
        rounded = all((np.rint(self.values / step) * step == self.values).all() for step in steps)
        require(rounded, "its values are not multiples of the step that its certificate says they were rounded to")


@dataclass(frozen=True, eq=False, repr=False)
class PrivateKnots(PrivateFunction, tag="knots"):
    """Released values at equally spaced knots of an interval, straight lines between them."""

    noise: ClassVar = (ShapedIncrements, IncrementGauge)
    arrays: ClassVar = ("values",)
    values: Float[np.ndarray, " knots"]
    box: Box
    certificate: Certificate

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        return np.asarray(np.interp(self.box.to_unit(states), np.linspace(0, 1, len(self.values)), self.values))

    def check(self) -> None:
        flat = self.box.dimension == self.values.ndim == 1
        require(flat and len(self.values) > 1, "knots are a list of at least two values")

    def check_norms(self, norms: tuple[AnyNorm, ...], certificate: Certificate) -> None:
        """Values at any knots may be fitted to rewards that were noised one by one."""
        if all(isinstance(norm, ObservedRewards) for norm in norms):
            return
        super().check_norms(norms, certificate)
        for norm in norms:
            pieces = len(norm.shape) if isinstance(norm, ShapedIncrements) else getattr(norm, "pieces", None)
            require(pieces == len(self.values) - 1, "its knots must be those that its certificate names")
