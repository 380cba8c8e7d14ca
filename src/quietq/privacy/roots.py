"""Where a continuous function changes sign."""

from collections.abc import Callable


def root(f: Callable[[float], float], low: float, high: float, tolerance: float = 1e-14) -> float:
    """A zero of f between low and high, where it has opposite signs (Brent's method).

    >>> round(root(lambda x: x * x - 2, 0, 2), 6)
    1.414214
    """
    from scipy.optimize import brentq  # slow to import

    return float(brentq(f, low, high, xtol=tolerance))  # pyright: ignore[reportArgumentType]
