"""What a norm is, and the norms of kernels, which the noise of a Gaussian process path hides differences in.

A kernel's record is all that a relation or a certificate has to know of it. How its paths are drawn is in
`quietq.noise.exponential_kernels` and, for kernels of finitely many features, in `quietq.paper.kernels`.

See docs/theory.md#gaussian-process and docs/theory.md#exponential-kernel.
"""

import math
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta

from quietq.privacy.checks import plural
from quietq.privacy.errors import NoRkhsRadius
from quietq.privacy.records import Count, Flag, Line, Positive, Record

if TYPE_CHECKING:
    from quietq.privacy.relations import Relation

Family = Literal["gaussian", "pure", "smooth"]
"""Kinds of noise: Gaussian of one standard deviation; of density exp(-|z|/scale); and Gaussian whose size follows the
data by a smooth bound."""
MOST_COORDINATES = 256
"""Of a kernel: no file can ask for thousands."""
_RIDGE = 1e-8  # of the projection on a band-limited kernel's terms


class Norm(Record, frozen=True):
    """What sensitivity and noise are measured in; its words are `str(norm)`."""

    families: ClassVar[tuple[Family, ...]] = ("gaussian",)
    """Which noise may be drawn in it."""

    @property
    def dimension(self) -> int | None:
        """Returns how many coordinates the states have on which it is defined; None if it does not look at states."""
        return None

    def largest_difference(self, relation: "Relation") -> float | None:
        """Returns the most that neighbours differ by, by the norm's theorem; None where nothing bounds it."""
        raise NotImplementedError


class KernelNorm(Norm, frozen=True):
    """The norm of a kernel's functions on [0, 1]^d."""

    @property
    def dimension(self) -> int:
        return 1

    def largest_difference(self, relation: "Relation") -> float:
        return self.stretch * relation.rkhs_radius(self)

    @property
    def largest_value(self) -> float | None:
        """Returns the most that a function of norm 1 can be anywhere, sup sqrt K(x, x); None if nobody computed it."""
        return None

    @property
    def stretch(self) -> float:
        """Returns how much longer a function can become by being represented by finitely many weights."""
        return 1.0

    def of_lipschitz(self, radius: float, lipschitz: float) -> float:
        """Returns the largest norm of a function with |f| <= radius and slope <= lipschitz, where there is one."""
        raise NoRkhsRadius(
            f"A ball of Lipschitz functions is not bounded in the norm of {self.in_words()}; use Exponential for such "
            "a relation, or state an RkhsBall in this kernel."
        )

    def in_words(self) -> str:
        """Returns the kernel in words."""
        raise NotImplementedError

    def __str__(self) -> str:
        return f"the norm of {self.in_words()}"

    def aside(self) -> str:
        """Returns what a ball's words add where functions are given by parts or weights: others have the same sum."""
        return ""


class ExponentialNorm(KernelNorm, frozen=True, tag="exponential"):
    """The norm of exponential kernels exp(-beta |x - y|), one for each coordinate: of their product, or of their sum.

    Where they are summed, functions are given by one part for each coordinate, and the parts' squared norms add. On one
    coordinate Lipschitz functions are bounded in it.
    """

    betas: Annotated[tuple[Positive, ...], Meta(min_length=1, max_length=MOST_COORDINATES)]
    summed: Flag = False

    @property
    def dimension(self) -> int:
        return len(self.betas)

    @property
    def largest_value(self) -> float:
        return math.sqrt(len(self.betas)) if self.summed else 1.0

    def of_lipschitz(self, radius: float, lipschitz: float) -> float:
        """|f|^2 = (f(0)^2 + f(1)^2)/2 + |f'|^2/(2 beta) + beta |f|^2/2 over [0, 1], approached by a zigzag."""
        if len(self.betas) != 1:  # the ball is of one coordinate
            return super().of_lipschitz(radius, lipschitz)
        [beta] = self.betas
        return math.sqrt(radius**2 * (1 + beta / 2) + lipschitz**2 / (2 * beta))

    def in_words(self) -> str:
        kind = "product" if self.dimension > 1 else "exponential"
        *others, last = (f"{beta:g}" for beta in self.betas)
        listed = f"{', '.join(others)} and {last}" if others else last
        return f"the {'additive' if self.summed else kind} kernel with beta {listed}"

    def aside(self) -> str:
        return " (the parts' own norms, squared and summed)" if self.summed else ""


class FeatureNorm(KernelNorm, frozen=True, tag="features"):
    """The norm of the weights of finitely many features, which are code and go by their name."""

    phi: Line
    rank: Count
    dimension: Count  # pyright: ignore[reportIncompatibleMethodOverride]

    def in_words(self) -> str:
        return f"the kernel of {plural(self.rank, 'feature')} ({self.phi})"

    def aside(self) -> str:
        return " (the norm of the weights)"


class BandLimitedNorm(KernelNorm, frozen=True, tag="band-limited"):
    """The norm of the band-limited kernel of the paper, truncated to finitely many terms."""

    half_width: Positive
    tolerance: Positive
    rank: Count

    @property
    def stretch(self) -> float:
        """A function that is projected on finitely many terms can differ by a little more than it did before."""
        return 1 + math.sqrt(2 * self.rank * self.tolerance) / (2 * math.sqrt(_RIDGE))

    def in_words(self) -> str:
        return f"the band-limited kernel with half-width {self.half_width:g} ({plural(self.rank, 'term')})"


AnyKernelNorm = ExponentialNorm | FeatureNorm | BandLimitedNorm
