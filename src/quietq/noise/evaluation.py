"""What is read off a private function before it is noised: its values on a public grid, or its weights.

Whatever goes wrong in here may have to do with private values, so a refusal shows none of them, and neither quotes nor
carries along an exception of the caller's code.
"""

import numpy as np
from jaxtyping import Float

from quietq.noise.box import Box
from quietq.noise.grid_path import grid_points
from quietq.noise.kernels import BandLimited, FiniteRank
from quietq.noise.rounding import check_values
from quietq.privacy.checks import numbers
from quietq.privacy.errors import InvalidInput, QuietqError


def on_grid(f: object, box: Box, levels: int) -> Float[np.ndarray, "..."]:
    """f on the grid, shaped as the table: grid axes first, outputs last."""
    values = values_at(f, grid_points(box, levels))
    return values.reshape((2**levels + 1,) * box.dimension + values.shape[1:])


def in_weights(f: object, kernel: FiniteRank, box: Box, sigma: float) -> Float[np.ndarray, "..."]:
    """f's weights, one row a feature: as they are given or, for a band-limited kernel, by projection of a function."""
    if callable(f):
        if not isinstance(kernel, BandLimited):
            raise InvalidInput("A Features kernel takes the function's weights, not the function.")
        values = values_at(f, box.from_unit(kernel.sample_points))
        check_values(values, sigma)
        return kernel.project(values)
    weights = numbers("weights", f)
    if weights.ndim < 1 or weights.shape[0] != kernel.rank:
        raise InvalidInput(f"weights must have {kernel.rank} rows, one a feature, not shape {weights.shape}.")
    return weights


def values_at(f: object, states: np.ndarray) -> np.ndarray:
    """One value, or one row, for each of the states."""
    if not callable(f):
        raise InvalidInput(f"A function of states is needed, not {type(f).__name__}.")
    hint = "wrap it in numpy.vectorize if it takes one state at a time; nothing was drawn or spent."
    values, failure = None, ""
    try:
        values = f(states)
    except QuietqError:
        raise
    except (TypeError, ValueError) as error:
        failure = type(error).__name__  # and no more: its text may hold private values
    if failure:
        raise InvalidInput(f"The function failed with {failure} on an array of {len(states)} states; {hint}")
    values = numbers("The function's values", values)
    if values.ndim not in (1, 2) or values.shape[0] != len(states):
        raise InvalidInput(
            f"The function must return one value, or one row, for each of {len(states)} states at once, "
            f"not shape {values.shape}; {hint}"
        )
    return values
