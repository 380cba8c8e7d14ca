"""Where a function of one number crosses a line."""

from collections.abc import Callable


def root(f: Callable[[float], float], low: float, high: float, tolerance: float = 1e-14) -> float:
    """A zero of f between low and high, where it has opposite signs (Brent's method)."""
    from scipy.optimize import brentq  # slow to import

    return float(brentq(f, low, high, xtol=tolerance))  # pyright: ignore[reportArgumentType]


def falling_root(f: Callable[[float], float], low: float, most: float) -> float | None:
    """The zero of a function that falls, beyond `low`; None if there is none up to `most`."""
    high = 1.0
    while f(high) > 0:
        high *= 2
        if high > most:
            return None
    return root(f, low, high, 1e-10)


def threshold(holds: Callable[[float], bool], low: float, high: float, tolerance: float = 1e-13) -> tuple[float, float]:
    """The last number without and the first with a property that, once it holds, goes on to hold; by bisection."""
    while high - low > tolerance * max(abs(low), abs(high), 1.0):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high
