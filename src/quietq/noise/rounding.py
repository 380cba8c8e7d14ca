"""Rounding of what is released to a public grid, and how much more noise the errors of what it is added to take.

Adding floating-point noise leaks through low-order bits: which multiples of 2^-53 can occur depends on the secret.
Every released value is therefore rounded to multiples of a step that is fixed by sigma alone, about a millionth of it:
far coarser than the last place of any value that is let through, far finer than the noise. Releases add exact noise and
are rounded by `noise.exact_gaussian` or `noise.exact`; the same step is used.

Theorem. Let |e_i| <= eta at n + 1 points of [0, 1] whose gaps are at least h. In the exponential kernel, with
a_i = exp(-beta g_i) for the gap g_i, the squared norm of e is

    e_0^2 + sum_i (e_{i+1} - a_i e_i)^2/(1 - a_i^2) <= eta^2 (1 + sum_i (1 + a_i)^2/(1 - a_i^2))
        = eta^2 (1 + sum_i coth(beta g_i/2)) <= eta^2 (1 + coth(beta h/2)/h),

because coth falls and there are at most 1/h gaps. Errors that alternate in sign attain it on a grid. A product kernel
whitens one axis after the other, so the factors multiply; parts of a sum add their squares, and so do outputs.

Neighbours err by eta each, so the computed functions are at most 2 eta times that root farther apart than the functions
themselves (triangle inequality): this is added to the sensitivity. It grows as 1/h, so values that are less exact need
a coarser grid.

Proof: docs/theory.md#rounding.
"""

import math
import re
from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from quietq.privacy.checks import ask_code, numbers, positive
from quietq.privacy.errors import InvalidInput
from quietq.privacy.norms import FEWEST
from quietq.privacy.relations import Exponential


def rounding_step(sigma: float) -> float:
    """The public step for noise of this size: a power of two, 20 bits finer than sigma."""
    return 2.0 ** (math.floor(math.log2(sigma)) - 20)


def round_release(values: np.ndarray, noise: np.ndarray, sigma: float) -> Float[np.ndarray, "..."]:
    """Values + noise, rounded to the public grid; zero has no sign."""
    step = rounding_step(sigma)
    return np.rint((values + noise) / step) * step + 0.0


def largest_value(sigma: float) -> float:
    """The size up to which a value may be released with this noise: its last place stays 8 bits below the step."""
    return rounding_step(sigma) * 2.0 ** (52 - 8)


def check_size(largest: float, sigma: float) -> None:
    """Refuses a *declared* size that is too large for the noise, so that no refusal has to look at the values."""
    if largest > largest_value(sigma):
        raise InvalidInput(
            f"Values of a size up to {largest:g} are too large for noise of sigma {sigma:g}, whose rounding hides only "
            f"those within {largest_value(sigma):g} of 0: subtract the middle of the declared range."
        )


def check_values(values: np.ndarray, largest: float) -> None:
    """Refuses values that are not finite or too large for the noise, without saying what they are."""
    if not np.isfinite(values).all():
        raise InvalidInput("The function must return finite numbers everywhere; nothing was drawn or spent.")
    if np.abs(values).max(initial=0.0) > largest:
        raise InvalidInput(
            f"The function's values must stay below {largest:g} in size, or the noise would not cover their rounding: "
            "subtract a public constant, declare `people` in the relation if the function is a mean over more of "
            "them, or state with `accuracy` how exact the values are; nothing was drawn or spent."
        )


FLOAT64 = 2.0**-49
"""How exact float64 values are taken to be, as a part of their largest: sixteen roundings.

A mean of people's functions, in a range of at most twice the largest, has at most thirteen (`feedback.extension`): two
of the rise from 0, a sum and a product, each of twice the largest; the value at 0; its sum with the rise; that with
those who gave nothing; and the division: eight. Straight lines between grid points are convex combinations, so they
amplify none of these; where they are steepest, the difference and its product with the place are of twice the largest,
and the sum is one more: five. What the place itself is rounded by is public, and the same for neighbours."""


def size_bound(radius: float, people: int | None) -> float:
    """A public number that values near 0 stay below: they are at most the mean of `people` changes of size `radius`."""
    return 2 * radius * max(people or 0, FEWEST)


def largest_and_error(
    noise: float, radius: float, people: int | None, largest: float | None, accuracy: float | None
) -> tuple[float, float]:
    """A bound on values, and one on their errors: as declared, or else by noise of about this size."""
    most = largest_value(noise)
    if largest is None:
        largest = most if accuracy is not None else min(most, size_bound(radius, people))
    return positive("largest", largest), FLOAT64 * largest if accuracy is None else positive("accuracy", accuracy)


def worst_norm(kernel: Exponential, levels: int, outputs: int = 1) -> float:
    """The norm that errors of size 1 can have at points that are at least 2^-levels apart along each axis."""
    gap = 2.0**-levels
    squares = [math.prod(1 + 1 / (gap * math.tanh(beta * gap / 2)) for beta in table) for table in kernel.tables]
    return math.sqrt(math.fsum(squares) * outputs)


def finest_levels(kernel: Exponential, error: float, sensitivity: float, finest: int, outputs: int = 1) -> int:
    """The finest grid, of at most `finest` levels, on which the allowance for errors is a tenth of the sensitivity.

    Where there is none, the coarsest, of four; more noise than there would be without errors is then the lesser evil.

    >>> from quietq.privacy import Exponential
    >>> finest_levels(Exponential(4.0), error=6e-8, sensitivity=5.6e-5, finest=16)
    6
    """
    for levels in range(finest, 4, -1):
        if 2 * error * worst_norm(kernel, levels, outputs) <= 0.1 * sensitivity:
            return levels
    return min(4, finest)


def needed_levels(kernel: Exponential, sigma: float, slope: float) -> int:
    """The fewest levels that lose nothing of a reward of at most this slope per width, beside noise of this size.

    A table is read at the nearest point, at most half a cell away: what the reward changes by on that way is at most
    a 256th of sigma, which adds less than 1e-5 to the root mean square error. And what the noise forgets from one point
    to the next is at most a part of 1/16, so that averages over the table have all that is in the path.

    >>> from quietq.privacy import Exponential
    >>> needed_levels(Exponential(4.0), sigma=0.078, slope=1.0)
    11
    """
    return max(math.ceil(math.log2(max(128 * slope / sigma, 16 * max(kernel.betas)))), 10)  # 1,025 points cost nothing


def check_allowance(allowance: float, sensitivity: float, error: float) -> None:
    """Refuses errors that would need more noise than what is to be hidden."""
    if allowance > sensitivity:
        raise InvalidInput(
            f"Values that are exact to {error:g} only cannot be released with a sensitivity of {sensitivity:g}, which "
            f"their rounding errors exceed ({allowance:g}): compute them more exactly, or use fewer levels."
        )


# What is read off a private function before it is noised. Whatever goes wrong here may have to do with private values,
# so a refusal shows none of them.


def values_at(f: object, states: np.ndarray, exact: bool = True) -> np.ndarray:
    """One value, or one row, for each of the states; `exact` ones are float64 or better."""
    if not callable(f):
        raise InvalidInput(f"A function of states is needed, not {type(f).__name__}.")
    hint = "wrap it in numpy.vectorize if it takes one state at a time; nothing was drawn or spent"
    values = ask_code("The function", f, states, where=f"an array of {len(states)} states; {hint}")
    if exact:
        check_exact("The function's values", values)
    values = numbers("The function's values", values)
    if values.ndim not in (1, 2) or values.shape[0] != len(states):
        raise InvalidInput(
            f"The function must return one value, or one row, for each of {len(states)} states at once, "
            f"not shape {values.shape}; {hint}."
        )
    return values


def check_exact(name: str, value: object) -> None:
    """Refuses numbers of a type that rounds more than float64 does: the noise does not cover it."""
    if (coarse := coarse_type(value)) is not None:
        raise InvalidInput(
            f"{name} must be float64, Python's numbers or integers, not {coarse}, whose rounding the noise would not "
            "hide: compute them in float64, or state with `accuracy` the largest error of each; nothing was "
            "drawn or spent."
        )


def coarse_type(value: object, single: bool = False) -> str | None:
    """The name of a type of number in there that is less exact than float64, or with `single` than float32, if any."""
    least = 4 if single else 8
    if isinstance(value, bool | int | float) and not isinstance(value, np.generic):
        return None
    if isinstance(value, list | tuple):
        return next((found for item in value if (found := coarse_type(item, single)) is not None), None)
    kinds = getattr(value, "dtypes", None)  # of a data frame: as one array its columns would lose theirs
    for kind in kinds if isinstance(kinds, Iterable) else [getattr(value, "dtype", None)]:
        name = str(kind).removeprefix("torch.")
        if isinstance(kind, np.dtype):
            if kind.kind not in "biuOSUcmM" and (kind.kind != "f" or kind.itemsize < least):  # bfloat16 is of kind V
                return kind.name
        elif kind is not None and re.search(rf"float(?!64{'|32' * single})|half", name, re.IGNORECASE):
            return name
    if isinstance(value, np.ndarray | np.generic):
        return None
    try:
        kind = np.asarray(value).dtype
    except Exception:  # whatever it is, `numbers` refuses it
        return None
    return kind.name if kind.kind == "f" and kind.itemsize < least else None
