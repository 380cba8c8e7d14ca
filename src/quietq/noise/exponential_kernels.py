"""Kernels: how smooth the noise is, and in which norm it protects; those whose paths on a grid are exact.

Theorem. exp(-beta |x - y|) on [0, 1] reproduces in <f, g> = (f(0) g(0) + f(1) g(1))/2 + (1/2 beta) int f' g' +
(beta/2) int f g. Hence |f| <= rho and |f'| <= l give |f|^2 <= rho^2 + beta rho^2/2 + l^2/(2 beta), approached by a
zigzag, and least at beta = l/rho, where it is rho^2 + rho l. Its paths are Ornstein-Uhlenbeck processes.

Theorem. For f(x) = f_1(x_1) + ... + f_d(x_d), releasing every f_i with independent noise of the i-th kernel is a
Gaussian process mechanism in the direct sum, whose squared norm is the sum of the squared norms of the parts; the
released sum has the kernel sum_i K_i. That is the norm of the parts as they are given: a sum has many splits into parts
(a constant may go to any of them), and two of these can be distinguished.

Proof: docs/theory.md#exponential-kernel and docs/theory.md#sums-of-kernels.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from quietq.privacy.checks import instance, positive
from quietq.privacy.errors import InvalidInput
from quietq.privacy.kernel_norms import AnyKernelNorm, ExponentialNorm
from quietq.privacy.relations import LipschitzBall


class Kernel(ABC):
    """A covariance on [0, 1]^d whose Hilbert space norm says how much noise a function needs."""

    dimension: int
    """Number of coordinates of a state."""

    @property
    def tables(self) -> tuple[tuple["Exponential", ...], ...]:
        """The tables that an exact path on a grid consists of, each the product of its exponential kernels, one per
        axis; none where there is no such path.
        """
        return ()

    @abstractmethod
    def covariance(self, x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, "rows columns"]:
        """K(x_i, y_j) for points x and y, in unit coordinates."""

    @property
    @abstractmethod
    def norm(self) -> AnyKernelNorm:
        """Returns the kernel's norm, as relations and certificates state it."""

    def unit_weights(self, rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
        """Functions of norm 1 that an audit tries as differences of neighbours, each with how it was found.

        None where functions are not given by weights: an audit takes sections of the `tables` then.
        """
        return iter(())

    def norm_on(self, points: np.ndarray, values: np.ndarray) -> float:
        """sqrt(v' K^-1 v) for a function known at `points` only: the norm of its least-norm interpolant.

        This is what separates two releases that are seen at these points: the best test between f and f' has
        d' = norm_on(points, f - f')/sigma. Dense; O(points^3).
        """
        from scipy.linalg import cho_factor, cho_solve

        return math.sqrt(float(values @ cho_solve(cho_factor(self.covariance(points, points)), values)))


@dataclass(frozen=True)
class Exponential(Kernel):
    """exp(-beta |x - y|), in one dimension: it has room for all Lipschitz functions."""

    beta: float
    dimension: ClassVar[int] = 1  # pyright: ignore[reportIncompatibleVariableOverride]

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", positive("beta", self.beta))

    @property
    def tables(self) -> tuple[tuple["Exponential", ...], ...]:
        return ((self,),)

    def covariance(self, x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, "rows columns"]:
        return np.exp(-self.beta * np.abs(np.subtract.outer(np.asarray(x, float), np.asarray(y, float))))

    @property
    def norm(self) -> ExponentialNorm:
        return ExponentialNorm((self.beta,))

    def norm_on(self, points: np.ndarray, values: np.ndarray) -> float:
        """At increasing points, by the Markov property: O(points)."""
        return float(np.linalg.norm(whiten(self.beta, points, values)))


class _ByCoordinate(Kernel):
    """A kernel of one Exponential per coordinate."""

    parts: tuple[Exponential, ...]
    combine: ClassVar[np.ufunc]
    """What makes one number of the parts' numbers."""

    @property
    def dimension(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.parts)

    def covariance(self, x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, "rows columns"]:
        x, y = (np.asarray(points, float).reshape(-1, self.dimension) for points in (x, y))
        return self.combine.reduce([part.covariance(x[:, i], y[:, i]) for i, part in enumerate(self.parts)])


@dataclass(frozen=True)
class Product(_ByCoordinate):
    """prod_i exp(-beta_i |x_i - y_i|), the paper's proposal for several dimensions; up to three.

    Its space holds functions with a bounded *mixed* derivative: Lipschitz is not enough in two dimensions or more, and
    a plain ReLU network is not in it. So there is no radius for a Lipschitz ball, only for a declared RkhsBall.
    """

    combine: ClassVar[np.ufunc] = np.multiply
    betas: tuple[float, ...]

    def __post_init__(self) -> None:
        instance("betas", self.betas, Sequence, "a sequence of numbers, one per coordinate")
        object.__setattr__(self, "betas", tuple(positive("beta", beta) for beta in self.betas))
        if not 1 <= self.dimension <= 3:
            raise InvalidInput(
                f"Product has 1 to 3 dimensions, not {self.dimension}: its table has 2^(levels d) "
                "values; use Additive beyond that."
            )

    @property
    def parts(self) -> tuple[Exponential, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return tuple(Exponential(beta) for beta in self.betas)

    @property
    def tables(self) -> tuple[tuple[Exponential, ...], ...]:
        return (self.parts,)

    @property
    def norm(self) -> ExponentialNorm:
        return ExponentialNorm(self.betas)


@dataclass(frozen=True)
class Additive(_ByCoordinate):
    """sum_i K_i(x_i, y_i): cheap in any dimension."""

    combine: ClassVar[np.ufunc] = np.add
    parts: tuple[Exponential, ...]

    def __post_init__(self) -> None:
        instance("parts", self.parts, Sequence, "a sequence of Exponential, one per coordinate")
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.parts:
            raise InvalidInput("parts must hold at least one Exponential, not none.")
        for part in self.parts:
            instance("Each of parts", part, Exponential, "Exponential, one per coordinate")

    @property
    def tables(self) -> tuple[tuple[Exponential, ...], ...]:
        return tuple((part,) for part in self.parts)

    @property
    def norm(self) -> ExponentialNorm:
        return ExponentialNorm(tuple(part.beta for part in self.parts), summed=True)

    def radius_of(self, balls: Sequence[LipschitzBall]) -> float:
        """Returns the radius of one Lipschitz ball per coordinate, all of which may move at once.

        Args:
            balls: A `LipschitzBall` for each coordinate.

        """
        if len(balls) != self.dimension:
            raise InvalidInput(f"One ball per coordinate is needed, {self.dimension} in all, not {len(balls)}.")
        return math.sqrt(math.fsum(ball.rkhs_radius(k.norm) ** 2 for ball, k in zip(balls, self.parts, strict=True)))


def kernel_of(norm: AnyKernelNorm) -> Kernel:
    """Returns the kernel of a norm, where its record says all of it; refused for features, which are code."""
    if isinstance(norm, ExponentialNorm):
        parts = tuple(map(Exponential, norm.betas))
        if norm.summed:
            return Additive(parts)
        return parts[0] if len(parts) == 1 else Product(norm.betas)
    raise InvalidInput(f"The relation is declared in {norm.in_words()}: use quietq.paper.FiniteRankMechanism with it.")


def whiten(beta: float, points: np.ndarray, values: np.ndarray) -> Float[np.ndarray, "..."]:
    """Values at increasing points (last axis) as independent N(0, 1) increments, if they are a path of this kernel."""
    decay = -beta * np.diff(points)
    steps = (values[..., 1:] - np.exp(decay) * values[..., :-1]) / np.sqrt(-np.expm1(2 * decay))
    return np.concatenate([values[..., :1], steps], axis=-1)


# The Ornstein-Uhlenbeck process between and beyond known points. The textbook forms with sinh overflow for large beta
# and cancel for close points; these use expm1 throughout, and keep all their digits.


def between(beta: float, gap_left: float, gap_right: float) -> tuple[float, float, float]:
    """Weights of the left and right neighbour's values, and the variance, of a point between them."""
    a, b = beta * gap_left, beta * gap_right
    spread_left, spread_right = -math.expm1(-2 * a), -math.expm1(-2 * b)
    both = spread_left + spread_right - spread_left * spread_right  # 1 - exp(-2(a+b))
    if both == 0:  # three points closer than the smallest number: the same point
        return 0.5, 0.5, 0.0
    weights = math.exp(-a) * spread_right / both, math.exp(-b) * spread_left / both
    return *weights, spread_left * spread_right / both


def beyond(beta: float, gap: float) -> tuple[float, float]:
    """Weight of the nearest known value, and the variance, of a point beyond all known ones."""
    return math.exp(-beta * gap), -math.expm1(-2 * beta * gap)
