"""An environment's own rewards, as methods take them that noise as they go: by their type, and whatever their value.

What is refused is refused for its type or shape. No value raises anything, for whether it did would tell something of
the rewards: one that is no number counts as 0, and what is too large for float32, or infinite, is the largest there is,
which the method clips as any other. So rewards that are near stay near.
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.noise.evaluation import coarse_type
from quietq.privacy.errors import InvalidInput

LARGEST = float(np.finfo(np.float32).max)


def own_rewards(given: Any, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """The rewards of a step in float32; refused unless there is one number a copy, of a type that is exact enough.

    >>> own_rewards([0.5, float("nan"), 10**400], (3,)).tolist()
    [0.5, 0.0, 3.4028234663852886e+38]
    """
    if (coarse := coarse_type(given, single=True)) is not None:
        raise too_coarse("The environment's reward", coarse)
    try:
        array = np.asarray(given)
        if array.dtype.kind == "O":
            coarse = coarse_type(array.ravel().tolist(), single=True)
            array = np.array([_number(item) for item in array.flat]).reshape(array.shape)
    except Exception:  # whatever it is, it is not a number; its text may hold private values
        array = None
    if coarse is not None:
        raise too_coarse("The environment's reward", coarse)
    if array is None or array.dtype.kind not in "biuf" or array.shape != shape:
        what = type(given).__name__ if array is None or not array.shape else f"an array of shape {array.shape}"
        right = "one number" if not shape else f"an array of {shape[0]} numbers"
        raise InvalidInput(f"The environment's reward must be {right} a step, not {what}.")
    with np.errstate(over="ignore", invalid="ignore"):
        exact = array.astype(np.float64)
        return np.where(np.isnan(exact), 0.0, np.clip(exact, -LARGEST, LARGEST)).astype(np.float32)


def too_coarse(name: str, coarse: str) -> InvalidInput:
    """For a type that rounds more than the noise covers."""
    return InvalidInput(
        f"{name} must be a Python number, an integer, float32 or float64, not {coarse}, whose rounding the noise would "
        "not hide: compute it in one of these."
    )


def _number(item: Any) -> float:
    if isinstance(item, str | bytes):
        raise TypeError
    try:
        return float(item)
    except OverflowError:
        return np.inf if item > 0 else -np.inf
