"""The tests' own type checker sees what it should, in functions with and without shapes."""

from dataclasses import dataclass

import jaxtyping
import numpy as np
import pytest
from jaxtyping import Float
from typecheck import typecheck

checked = jaxtyping.jaxtyped(typechecker=typecheck)  # as the import hook does


@checked
def plain(number: float, names: list[str]) -> str:
    return names[int(number)]


@checked
def shaped(rows: Float[np.ndarray, "n d"], weights: Float[np.ndarray, " d"]) -> Float[np.ndarray, " n"]:
    return rows @ weights if weights.sum() else rows


@checked
@dataclass
class Pair:
    first: int
    second: Float[np.ndarray, " n"]


def test_types():
    assert plain(1, ["a", "b"]) == "b"
    for number, names in (("1", ["a"]), (0, "a"), (0, [1])):
        with pytest.raises(TypeError):
            plain(number, names)  # pyright: ignore[reportArgumentType]


def test_sizes_agree_between_arguments_and_with_what_is_returned():
    assert shaped(np.ones((3, 2)), np.ones(2)).shape == (3,)
    assert shaped(np.ones((2, 3)), np.ones(3)).shape == (2,)  # names stand for other sizes in the next call
    for rows, weights in ((np.ones((3, 2)), np.ones(3)), (np.ones(3), np.ones(3)), (np.ones((3, 2)), np.zeros(2))):
        with pytest.raises(TypeError):
            shaped(rows, weights)


def test_fields():
    assert Pair(1, np.ones(2)).first == 1
    for first, second in (("1", np.ones(2)), (1, np.ones((2, 2))), (1, np.ones(2, int))):
        with pytest.raises(TypeError):
            Pair(first, second)  # pyright: ignore[reportArgumentType]


def test_the_library_is_checked():
    from quietq.paper.sampler import beyond

    with pytest.raises(TypeError):
        beyond(1.0, "2")  # pyright: ignore[reportArgumentType]
