"""A statistic is one clipped vector per person, and its sum over people: the only access to feedback.

Theorem. If each person's vector is a function of that person's rows alone and is clipped to length C, then replacing
all of one person's rows, by anything, moves the mean of n people by at most 2C/n.

People are summed in whole numbers, of which no order of rows, slice or engine changes a bit; vectors are rounded
towards zero to whole multiples of C/2^40 before. What is left is the rounding of the length and of the mean, some 1e-15
of C each: the slack in the noise (`release.SLACK`, a millionth of 2C/n) covers it many times over for up to 10^8
people. A vector that is not finite counts as zero, so no refusal depends on what a person said.

Proof: docs/theory.md#mean-of-people.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from quietq.privacy.checks import numbers
from quietq.privacy.errors import InvalidInput

_STEPS = 2**40
_PEOPLE_AT_ONCE = 4096  # whose vectors surely fit, in steps, into an integer of 64 bits

Starts = Int[np.ndarray, " people"]
"""Where each person's rows begin in columns in which everybody's rows stand together."""
Columns = Mapping[str, np.ndarray]
"""Cleaned rows, by the names that the schema gives them."""


@dataclass(repr=False)
class Tally:
    """Sums over people, in whole numbers: tallies of disjoint people add up exactly."""

    people: int
    sums: list[np.ndarray]
    """Integers of 64 bits, or Python's own (dtype object) where these might overflow."""

    def merge(self, other: "Tally") -> None:
        self.people += other.people
        for mine, theirs in zip(self.sums, other.sums, strict=True):
            mine += theirs


class Statistic(ABC):
    """A function of one person's rows, clipped to its bound, and its sum over people. It is public, and a value."""

    @abstractmethod
    def empty(self) -> Tally:
        """Nobody yet."""

    @abstractmethod
    def add(self, tally: Tally, starts: Starts, columns: Columns) -> None:
        """Adds people whose rows stand together, in the order of the first column, and holds each to the bound."""

    @abstractmethod
    def mean(self, tally: Tally, count: int) -> Float[np.ndarray, "..."]:
        """The mean over `count` people, those without a row being neutral. THE SECRET."""

    def told(self, tally: Tally) -> dict[str, int]:
        """Counts for the operator, if it has any besides that of people."""
        return {}


class Vector(Statistic):
    """One vector per person. A subclass says how it follows from a person's rows; here it is clipped to its length."""

    size: int
    bound: float
    """C, the length that every person's vector is clipped to."""
    right_angles: ClassVar[bool] = False
    """Whether no two people's vectors can be more than a right angle apart (docs/theory.md#moments)."""
    rows_at_once: int = 2**18

    @abstractmethod
    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people size"]:
        """Each person's vector: of that person's rows alone, to the last bit, whatever the batch and order."""

    @property
    def diameter(self) -> float:
        """How far apart two people's vectors can be: in units of it a mean moves by 1/people (MeanOfPeople).

        A statistic with a theorem of its own overrides it: one number that is never below 0 differs by `bound` at most.
        """
        return (math.sqrt(2) if self.right_angles else 2.0) * self.bound

    def empty(self) -> Tally:
        return Tally(0, [np.zeros(self.size, object)])

    def add(self, tally: Tally, starts: Starts, columns: Columns) -> None:
        for begins, theirs in some_at_once(starts, columns, self.rows_at_once):
            vectors = self._hold(self.of_people(begins, theirs), len(begins))
            steps = np.clip(np.trunc(vectors / self.bound * _STEPS), -_STEPS, _STEPS).astype(np.int64)
            tally.merge(Tally(len(begins), [steps.sum(axis=0).astype(object)]))

    def mean(self, tally: Tally, count: int) -> Float[np.ndarray, " size"]:
        return np.array([total / (_STEPS * count) for total in tally.sums[0]]) * self.bound

    def _hold(self, vectors: np.ndarray, people: int) -> Float[np.ndarray, "people size"]:
        # One person after the other in memory, so that each length is summed alike in any batch.
        vectors = np.ascontiguousarray(numbers("What a statistic makes of people's rows", vectors))
        if vectors.shape != (people, self.size):
            raise InvalidInput(
                f"{type(self).__name__} must give one vector of {self.size} numbers for each person, and it gave an "
                f"array of shape {vectors.shape} for {people} people."
            )
        vectors = np.where(np.isfinite(vectors).all(axis=1, keepdims=True), vectors, 0.0)
        with np.errstate(over="ignore"):
            length = np.linalg.norm(vectors, axis=1, keepdims=True)
            return vectors * np.minimum(1.0, self.bound / np.maximum(length, 1e-300))


def some_at_once(starts: Starts, columns: Columns, rows: int) -> Iterator[tuple[Starts, Columns]]:
    """Yields people whose rows stand together, some at a time: at most this many rows, or one person's."""
    ends = np.append(starts[1:], len(next(iter(columns.values()))))
    first = 0
    while first < len(starts):
        fit = int(np.searchsorted(ends, starts[first] + rows, side="right"))
        last = min(max(fit, first + 1), first + _PEOPLE_AT_ONCE)
        theirs = slice(starts[first], ends[last - 1])
        yield starts[first:last] - starts[first], {name: column[theirs] for name, column in columns.items()}
        first = last
