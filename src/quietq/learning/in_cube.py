"""Methods with one round whose numbers each move by at most so much: noise in a cube may be the smaller, and is pure.

Neighbours fill a cube, whose corners are sqrt(D) times as far apart as its faces. Gaussian noise must hide the corners;
noise of density exp(-epsilon max|z|/Delta) hides each number for itself (`noise.cube`), and has no delta.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Literal, get_args

from quietq.learning.in_loop_method import InLoopMethod
from quietq.learning.method import Spaces
from quietq.learning.options import option
from quietq.noise.cube import deviation
from quietq.privacy import InvalidInput
from quietq.privacy.checks import one_of

Law = Literal["auto", "gaussian", "cube"]


def _check_law(name: str, value: object) -> None:
    one_of(name, value, get_args(Law))


@dataclass(frozen=True, kw_only=True)
class InCube(InLoopMethod):
    """Noise of one round in a cube, or Gaussian."""

    law: Law = option(
        "auto", "Of the noise: gaussian; cube, which is pure and for one round; auto takes the smaller, and with an "
        "account, which adds up Gaussian noise, or a part of a budget, gaussian unless delta is 0.", _check_law,
    )  # fmt: skip

    def in_cube(self, spaces: Spaces, steps: int) -> bool:
        budget = self.promised()[1]
        if self.rounds(steps) > 1 or self.law == "gaussian" or (self.law == "auto" and budget.gaussian):
            return False
        number = math.prod(self.noise_shape(spaces, steps))
        pure = self.law == "cube" or budget.is_pure
        return pure or deviation(number) / budget.epsilon < math.sqrt(number) / budget.mu

    def with_account(self) -> "InCube":
        pure = self.budget is not None and self.budget.is_pure
        return replace(self, law="gaussian") if self.law == "auto" and not pure else self

    def check(self, spaces: Spaces, steps: int) -> None:
        super().check(spaces, steps)
        if self.law == "cube" and self.rounds(steps) > 1:
            raise InvalidInput(f"law 'cube' is for one round, and {steps} steps make {self.rounds(steps)}.")

    @abstractmethod
    def rounds(self, steps: int) -> int: ...
