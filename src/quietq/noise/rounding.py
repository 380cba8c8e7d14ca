"""Rounding of what is released to a public grid.

Adding floating-point noise leaks through low-order bits: which multiples of 2^-53 can occur depends on the secret.
Every released value is therefore rounded to multiples of a step that is fixed by sigma alone, about a millionth of it:
far coarser than the last place of any value that is let through, far finer than the noise. Releases add exact noise and
are rounded by `noise.exact_sum` or `noise.exact`; the same step is used.
"""

import math

import numpy as np
from jaxtyping import Float

from quietq.privacy.certificate import Assumption
from quietq.privacy.errors import InvalidInput

_FINER_THAN_SIGMA = 20  # bits
_COARSER_THAN_LAST_PLACE = 8  # bits


def rounding_step(sigma: float) -> float:
    """The public step for noise of this size, a power of two."""
    return 2.0 ** (math.floor(math.log2(sigma)) - _FINER_THAN_SIGMA)


def round_release(values: np.ndarray, noise: np.ndarray, sigma: float) -> Float[np.ndarray, "..."]:
    """Values + noise, rounded to the public grid; zero has no sign."""
    step = rounding_step(sigma)
    return np.rint((values + noise) / step) * step + 0.0


def largest_value(sigma: float) -> float:
    """The size up to which a value may be released with this noise: its last place stays far below the step."""
    return rounding_step(sigma) * 2.0 ** (52 - _COARSER_THAN_LAST_PLACE)


def exact_rounding(sigma: float, largest: float, error: float) -> tuple[Assumption, Assumption]:
    """What a certificate says of noise that was drawn in real numbers: of the noise, nothing is idealised."""
    bounded = (
        f"The numbers that noise was added to stay below {largest:g} in size whatever the data is, and were computed "
        f"to within {error:g}, which the noise covers."
    )
    rounded = (
        "Noise of exactly its law was drawn from the operating system's generator, with as many bits as it took, and "
        f"the sum was rounded to multiples of {rounding_step(sigma):g}; what is released was computed from that alone."
    )
    return Assumption(bounded, False), Assumption(rounded, True)


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
            "them, or say with `accuracy` how exact the values are; nothing was drawn or spent."
        )
