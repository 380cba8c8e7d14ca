"""What is read off a private function before it is noised: its values on a public grid, or its weights.

Whatever goes wrong in here may have to do with private values, so a refusal shows none of them, and neither quotes nor
carries along an exception of the caller's code.
"""

import math
import re
from collections.abc import Callable, Iterable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np
from jaxtyping import Float

from quietq.noise.box import Box
from quietq.noise.grid_path import grid_points
from quietq.privacy.checks import numbers
from quietq.privacy.errors import InvalidInput, QuietqError
from quietq.privacy.relations import Relation

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


def shows_nothing(release: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """A refusal carries no frames of `release` along, in which a log or a debugger would find private values."""

    @wraps(release)
    def refusing(*args: _Given.args, **kwargs: _Given.kwargs) -> _Made:
        try:
            return release(*args, **kwargs)
        except QuietqError as error:
            refusal = error.with_traceback(None)
        del args, kwargs
        raise refusal

    return refusing


def on_grid(f: object, box: Box, levels: int, exact: bool = True) -> Float[np.ndarray, "..."]:
    """f on the grid, shaped as the table: grid axes first, outputs last; `exact` numbers are float64 or better."""
    values = values_at(f, grid_points(box, levels), exact)
    return values.reshape((2**levels + 1,) * box.dimension + values.shape[1:])


def check_outputs(shape: tuple[int, ...], relation: Relation, box: Box) -> int:
    """How many outputs there are; a ball for one function must not be taken for a ball of several."""
    outputs, actions = math.prod(shape), getattr(relation, "actions", 1)
    if outputs > actions:
        rows = "" if box.dimension == 1 else ", e.g. `s[:, 0] + s[:, 1]`, for states come as rows"
        raise InvalidInput(
            f"The function has {outputs} outputs, but the relation lets {actions} change: declare `actions={outputs}` "
            f"in the relation if there is one output per action, and else return one value per state{rows}; nothing "
            "was drawn or spent."
        )
    return outputs


def values_at(f: object, states: np.ndarray, exact: bool = True) -> np.ndarray:
    """One value, or one row, for each of the states; `exact` ones are float64 or better."""
    if not callable(f):
        raise InvalidInput(f"A function of states is needed, not {type(f).__name__}.")
    hint = "wrap it in numpy.vectorize if it takes one state at a time; nothing was drawn or spent."
    values, failure = None, ""
    try:
        values = f(states)
    except Exception as error:
        failure = type(error).__name__  # and no more: its text may hold private values
    if failure:
        raise InvalidInput(f"The function failed with {failure} on an array of {len(states)} states; {hint}")
    if exact:
        check_exact("The function's values", values)
    values = numbers("The function's values", values)
    if values.ndim not in (1, 2) or values.shape[0] != len(states):
        raise InvalidInput(
            f"The function must return one value, or one row, for each of {len(states)} states at once, "
            f"not shape {values.shape}; {hint}"
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
