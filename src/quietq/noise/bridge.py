"""The Ornstein-Uhlenbeck process between and beyond known points, in forms that keep all their digits.

The textbook forms with sinh overflow for large beta and cancel for close points; these use expm1 throughout.
"""

import math


def between(beta: float, gap_left: float, gap_right: float) -> tuple[float, float, float]:
    """Weights of the left and right neighbour's values, and the variance, of a point between them.

    >>> [round(x, 6) for x in between(beta=1.0, gap_left=0.5, gap_right=0.5)]
    [0.443409, 0.443409, 0.462117]
    """
    a, b = beta * gap_left, beta * gap_right
    spread_left, spread_right = -math.expm1(-2 * a), -math.expm1(-2 * b)
    both = spread_left + spread_right - spread_left * spread_right  # 1 - exp(-2(a+b))
    if both == 0:  # three points closer than the smallest number: the same point
        return 0.5, 0.5, 0.0
    return (
        math.exp(-a) * spread_right / both,
        math.exp(-b) * spread_left / both,
        spread_left * spread_right / both,
    )


def beyond(beta: float, gap: float) -> tuple[float, float]:
    """Weight of the nearest known value, and the variance, of a point beyond all known ones."""
    return math.exp(-beta * gap), -math.expm1(-2 * beta * gap)


def midpoint(beta: float, level: int) -> tuple[float, float]:
    """Weight of either neighbour and standard deviation of the midpoint of a dyadic interval of width 2^-level."""
    u = beta * 2.0 ** -(level + 1)
    return math.exp(-u) / (1 + math.exp(-2 * u)), math.sqrt(math.tanh(u))
