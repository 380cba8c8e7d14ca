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
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from typing import ClassVar

from quietq.noise.exact_gaussian import ROOM, Chance, Normals, draw_normals, round_exactly
from quietq.noise.rounding import rounding_step
from quietq.privacy.relations import Exponential

Known = tuple[float, float]
"""A point and its value."""
_AT_ONCE = 64  # normals


@dataclass
class SortedPoints:
    """A sorted map from numbers to numbers, in buckets, that can say between which two a new one falls."""

    full: ClassVar[int] = 1024
    """How many points a bucket holds before it is split."""
    _keys: list[array] = field(default_factory=lambda: [array("d")])
    _values: list[array] = field(default_factory=lambda: [array("d")])
    _last: list[float] = field(default_factory=lambda: [float("-inf")])  # the largest key of each bucket

    def find(self, x: float) -> tuple[tuple[int, int], float | None, Known | None, Known | None]:
        """Where x belongs, its value if it is known, and else its left and right neighbours if there are any."""
        bucket = min(bisect_left(self._last, x), len(self._last) - 1)
        keys, values = self._keys[bucket], self._values[bucket]
        at = bisect_left(keys, x)
        right = (keys[at], values[at]) if at < len(keys) else None
        if right is not None and right[0] == x:
            return (bucket, at), right[1], None, None
        if at:
            return (bucket, at), None, (keys[at - 1], values[at - 1]), right
        left = (self._keys[bucket - 1][-1], self._values[bucket - 1][-1]) if bucket else None
        return (bucket, at), None, left, right

    def insert(self, place: tuple[int, int], x: float, value: float) -> None:
        """Puts a new point at the place that `find` gave for it."""
        bucket, at = place
        keys, values = self._keys[bucket], self._values[bucket]
        keys.insert(at, x)
        values.insert(at, value)
        if len(keys) > self.full:
            half = self.full // 2
            self._keys[bucket : bucket + 1] = [keys[:half], keys[half:]]
            self._values[bucket : bucket + 1] = [values[:half], values[half:]]
            self._last.insert(bucket, keys[half - 1])
            bucket += 1
        self._last[bucket] = self._keys[bucket][-1]

    def __len__(self) -> int:
        return sum(len(keys) for keys in self._keys)


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
        self._own, self._released = SortedPoints(), SortedPoints()
        self._normals: Normals | None = None
        self._used = 0

    def nearest(self, x: float) -> float | None:
        """What was released at the nearest point, if that is nearer than the gap."""
        _, value, *neighbours = self._released.find(x)
        if value is not None:
            return value
        near = [(abs(point - x), known) for point, known in filter(None, neighbours)]
        distance, value = min(near, default=(math.inf, 0.0), key=lambda pair: pair[0])
        return value if distance < self._gap else None

    def add(self, x: float, value: float) -> float:
        """The function's value at a new point with noise, rounded."""
        place, _, *own = self._own.find(x)
        sides = [one for one in own if one is not None]
        released = [one for one in self._released.find(x)[2:] if one is not None]  # at the same points
        weights, scale = self.row(x, *(point for point, _ in sides))
        expected = sum(weight * Fraction(known) for weight, (_, known) in zip(weights, sides, strict=True))
        white = self._round(scale * (Fraction(value) - expected) / Fraction(self._step))
        mean = sum(float(weight) * known for weight, (_, known) in zip(weights, released, strict=True))
        noised = round(mean / self._step + white / float(scale)) * self._step
        self._own.insert(place, x, value)
        self._released.insert(place, x, noised)
        return noised

    def row(self, x: float, *sides: float) -> tuple[list[Fraction], Fraction]:
        """Weights of the nearest points, at most one on either side, and one over the deviation, rounded down."""
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
        """With noise, in steps."""
        turn = self._used % _AT_ONCE
        if self._normals is None or turn == 0:
            self._normals = draw_normals(_AT_ONCE, self._chance)
        self._used += 1
        return round_exactly(value, self._scale, self._normals, turn)

    def __reduce__(self) -> str:
        raise TypeError("An ExactPath is one release that grows with use, and is not copied or pickled.")

    def __repr__(self) -> str:
        return f"ExactPath(points={len(self._released)})"
