"""A function's values at points that come one by one, each with exact noise along one path of the exponential kernel.

Theorem. Let points x_1, x_2, ... lie at least h apart in [0, 1], each chosen by whatever was released before. The noise
at x_i, given that at the points before, has a mean of sum_j w_j g(x_j) over the nearest known point on either side and
a deviation of 1/c_i (Markov). What is drawn is round(c_i (f(x_i) - sum_j w_j f(x_j)) + sigma z_i), with z_i exactly
normal; what is released is computed from that. The squares of c_i (v(x_i) - sum_j w_j v(x_j)) add up to v's squared
norm at all points so far, which is at most |v|^2, so all answers together are mu-GDP with mu = |f - f'|/sigma: the
squared costs of answers, adaptive as they are, never add up to more.

Weights are rounded. If those of a row have an error of eta together, and its c_i is rounded down, the length grows by
at most eta sup|v| sqrt(sum_i c_i^2), because 1/c_i^2 is the variance given some of the other points, at least that
given all of them, so the sum is at most the trace of the kernel's inverse matrix, which is at most
`allowance.worst_norm` squared. Weights have so many digits here that this is below a part of 1e-30. Proof:
docs/theory.md#exact-path.
"""

import math
from array import array
from bisect import bisect_left
from decimal import Context, Decimal
from fractions import Fraction
from typing import ClassVar, Generic, TypeVar

from quietq.noise.exact_gaussian import ROOM, Chance, Normals, draw_normals, round_exactly
from quietq.noise.rounding import rounding_step
from quietq.privacy.relations import Exponential

Value = TypeVar("Value")
_AT_ONCE = 64  # normals


class SortedPoints(Generic[Value]):
    """A map from numbers to values that can say between which two of its numbers a new one falls.

    Its numbers are sorted, in buckets, so that a new one moves few others.
    """

    full: ClassVar[int] = 1024
    """How many numbers a bucket holds before it is split."""

    def __init__(self) -> None:
        self._buckets = [array("d", [math.inf])]  # above all numbers, so that each has a place
        self._values: dict[float, Value] = {}

    def get(self, x: float) -> Value | None:
        return self._values.get(x)

    def neighbours(self, x: float) -> list[tuple[float, Value]]:
        """Returns the nearest number on either side of a new one, where there is one, with its value."""
        number, place = self._place(x)
        near = self._buckets[number][max(place - 1, 0) : place + 1]
        if not place and number:
            near.insert(0, self._buckets[number - 1][-1])
        return [(known, self._values[known]) for known in near if known in self._values]

    def insert(self, x: float, value: Value) -> None:
        number, place = self._place(x)
        bucket, half = self._buckets[number], self.full // 2
        bucket.insert(place, x)
        self._values[x] = value
        if len(bucket) > self.full:
            self._buckets[number : number + 1] = [bucket[:half], bucket[half:]]

    def _place(self, x: float) -> tuple[int, int]:
        number = bisect_left(self._buckets, x, key=_largest)
        return number, bisect_left(self._buckets[number], x)

    def __len__(self) -> int:
        return len(self._values)


def _largest(bucket: array) -> float:
    return bucket[-1]


class ExactPath:
    """One function with noise, as far as it was asked for. THE SECRET: it holds the function's values."""

    def __init__(self, kernel: Exponential, gap: float, sigma: float, chance: Chance | None = None) -> None:
        """Points must be at least `gap` apart."""
        self._beta, self._gap, self._chance = Decimal(kernel.beta), gap, Chance() if chance is None else chance
        self._step = rounding_step(sigma)
        self._scale = Fraction(sigma * ROOM / self._step)
        # 1 - exp(-2 beta gap) and its root lose digits, and what is off grows by `worst_norm`
        lost = 2 * math.ceil(-math.log10(gap) - math.log10(min(kernel.beta * gap, 1.0)))
        self._exact = Context(prec=40 + lost)
        self._known: SortedPoints[tuple[float, float]] = SortedPoints()  # each point's own value, and the released one
        self._normals: Normals | None = None
        self._used = 0

    def nearest(self, x: float) -> float | None:
        """Returns what was released at the nearest point, if that is nearer than the gap."""
        if (there := self._known.get(x)) is not None:
            return there[1]
        near = [(abs(point - x), released) for point, (_, released) in self._known.neighbours(x)]
        distance, released = min(near, default=(math.inf, 0.0), key=lambda pair: pair[0])
        return released if distance < self._gap else None

    def add(self, x: float, value: float) -> float:
        """Returns the function's value at a new point with noise, rounded."""
        sides = self._known.neighbours(x)
        weights, scale = self.row(x, *(point for point, _ in sides))
        expected = sum(weight * Fraction(own) for weight, (_, (own, _)) in zip(weights, sides, strict=True))
        white = self._round(scale * (Fraction(value) - expected) / Fraction(self._step))
        mean = sum(float(weight) * released for weight, (_, (_, released)) in zip(weights, sides, strict=True))
        noised = round(mean / self._step + white / float(scale)) * self._step
        self._known.insert(x, (value, noised))
        return noised

    def row(self, x: float, *sides: float) -> tuple[list[Fraction], Fraction]:
        """Returns the nearest points' weights, at most one on either side, and 1 over the deviation, rounded down."""
        exact, one = self._exact, Decimal(1)
        gaps = [exact.subtract(Decimal(max(x, side)), Decimal(min(x, side))) for side in sides]
        weights = [exact.exp(exact.multiply(-self._beta, gap)) for gap in gaps]
        spreads = [exact.subtract(one, exact.multiply(weight, weight)) for weight in weights]
        variance = spreads[0] if spreads else one
        if len(sides) == 2:
            both = exact.multiply(*weights)
            whole = exact.subtract(one, exact.multiply(both, both))
            weights = [
                exact.divide(exact.multiply(weight, other), whole)
                for weight, other in zip(weights, reversed(spreads), strict=True)
            ]
            variance = exact.divide(exact.multiply(*spreads), whole)
        scale = exact.divide(1 - Decimal(10) ** -25, exact.sqrt(variance))  # a little less than it is
        return [Fraction(weight) for weight in weights], Fraction(scale)

    def _round(self, value: Fraction) -> int:
        """Returns the value with the next normal's noise, in steps."""
        turn = self._used % _AT_ONCE
        if self._normals is None or turn == 0:
            self._normals = draw_normals(_AT_ONCE, self._chance)
        self._used += 1
        return round_exactly(value, self._scale, self._normals, turn)

    def __reduce__(self) -> str:
        raise TypeError("An ExactPath is one release that grows with use, and is not copied or pickled.")

    def __repr__(self) -> str:
        return f"ExactPath(points={len(self._known)})"
