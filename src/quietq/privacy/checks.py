"""Checks of numbers that come from outside, each with a one-sentence refusal."""

import math
from numbers import Integral, Real

from quietq.privacy.errors import InvalidInput


def real(name: str, value: object) -> float:
    """`value` as a finite float.

    >>> real("slope", 2)
    2.0
    """
    if isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(float(value)):
        return float(value)
    raise InvalidInput(f"{name} must be a finite number, not {value!r}.")


def positive(name: str, value: object) -> float:
    """`value` as a finite float above zero."""
    number = real(name, value)
    if number > 0:
        return number
    raise InvalidInput(f"{name} must be above 0, not {number!r}.")


def probability(name: str, value: object) -> float:
    """`value` as a float in [0, 1)."""
    number = real(name, value)
    if 0 <= number < 1:
        return number
    raise InvalidInput(f"{name} must be at least 0 and below 1, not {number!r}.")


def positive_delta(value: object) -> float:
    """A delta in (0, 1), as Gaussian noise needs it."""
    number = probability("delta", value)
    if number > 0:
        return number
    raise InvalidInput(
        "delta must be above 0 here, not 0: a pure budget has no finite mu, "
        "so Gaussian noise cannot meet it; use a pure mechanism or a positive delta."
    )


def count(name: str, value: object, least: int = 1) -> int:
    """`value` as a whole number of at least `least`."""
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least:
        return int(value)
    raise InvalidInput(f"{name} must be a whole number of at least {least}, not {value!r}.")
