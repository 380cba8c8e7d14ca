"""Real numbers as they are: noise of an exact law, rounded once, with as many random bits as the rounding needs.

A floating-point number drawn from 52 random bits has a largest value and gaps in its tail; whoever sees an output that
one input can reach and another cannot has distinguished them, so a promise of delta = 0 does not hold. Here a uniform
number is a real one: a `LazyUniform` holds its first bits, and is asked for more until what they leave open no longer
matters. What is computed from it is an `Enclosure`, two decimal numbers between which the real result lies for certain
(the standard library's `decimal` rounds its operations, logarithms and square roots correctly). `round_exactly` refines
until both ends round to the same multiple of the public step.

Theorem. Its result is the ideal value plus ideal noise, rounded: a function of the ideal sum and of nothing else. So
whatever promise holds for the ideal sum holds for it, exactly. It ends with probability 1, because a continuous sum
lies on no boundary between two multiples.

Proof: docs/theory.md#exact-pure-noise.
"""

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache
from typing import TypeVar

import numpy as np
from jaxtyping import Float

Answer = TypeVar("Answer")
RandomBits = Callable[[int], int]
"""Gives that many random bits as a whole number; `secrets.randbits` for noise that protects."""


class Undecided(ArithmeticError):
    """The bits drawn so far leave it open; more of them will not."""


class LazyUniform:
    """A uniform real number between 0 and 1, of which the first `bits` binary places have been drawn."""

    def __init__(self, random_bits: RandomBits = secrets.randbits, bits: int = 0, places: int = 0) -> None:
        self._random_bits = random_bits
        self.bits, self.places = bits, places
        if not bits:
            self.refine(128)

    def refine(self, more: int) -> None:
        self.places = (self.places << more) | self._random_bits(more)
        self.bits += more

    def enclosure(self) -> "Enclosure":
        digits = self.bits * 3 // 10 + 12  # so many more than the bits are worth
        scale = Decimal(2**self.bits)
        down, up = _contexts(digits)
        return Enclosure(down.divide(Decimal(self.places), scale), up.divide(Decimal(self.places + 1), scale), digits)


@dataclass(frozen=True)
class Enclosure:
    """Two numbers that a real number lies between. Every operation rounds outwards, so the result lies between too."""

    low: Decimal
    high: Decimal
    digits: int = 30

    @classmethod
    def exactly(cls, number: float | int) -> "Enclosure":
        """A number itself: floating-point numbers are binary fractions, and decimal ones hold them without loss."""
        return cls(Decimal(number), Decimal(number))

    def __add__(self, other: "Enclosure | float") -> "Enclosure":
        return self._outwards(Context.add, other)

    def __mul__(self, other: "Enclosure | float") -> "Enclosure":
        return self._outwards(Context.multiply, other)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> "Enclosure":
        return Enclosure(self.high.copy_negate(), self.low.copy_negate(), self.digits)

    def __truediv__(self, other: "Enclosure | float") -> "Enclosure":
        if not (other.low if isinstance(other, Enclosure) else other) > 0:
            raise Undecided  # all that is divided by here is positive
        return self._outwards(Context.divide, other)

    def _outwards(
        self, operation: Callable[[Context, Decimal, Decimal], Decimal], other: "Enclosure | float"
    ) -> "Enclosure":
        other = other if isinstance(other, Enclosure) else Enclosure.exactly(other)
        digits = max(self.digits, other.digits)
        down, up = _contexts(digits)
        ends = [(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        return Enclosure(min(operation(down, *e) for e in ends), max(operation(up, *e) for e in ends), digits)

    def sqrt(self) -> "Enclosure":
        down, up = _contexts(self.digits)
        low, high = down.sqrt(max(self.low, Decimal(0))), up.sqrt(self.high)  # rounds to nearest, whatever the context
        return Enclosure(max(down.next_minus(low), Decimal(0)), up.next_plus(high), self.digits)

    def log(self) -> "Enclosure":
        if not self.low > 0:
            raise Undecided
        down, up = _contexts(self.digits)  # rounds to nearest, whatever the context
        return Enclosure(down.next_minus(down.ln(self.low)), up.next_plus(up.ln(self.high)), self.digits)

    def is_below(self, bound: int) -> bool:
        if self.high < bound:
            return True
        if self.low > bound:
            return False
        raise Undecided

    def multiple(self, value: float, step: float) -> int:
        """The multiple of `step` that value + number is rounded to; raises Undecided where that is open."""
        place = (self + value) / step + 0.5
        first, last = (end.to_integral_value(ROUND_FLOOR) for end in (place.low, place.high))
        if first != last:
            raise Undecided
        return int(first)


def exponentials(uniforms: Iterable[LazyUniform]) -> Enclosure:
    """The sum of independent exponential numbers, one a uniform: Gamma distributed, with as many as its shape."""
    return -sum((uniform.enclosure().log() for uniform in uniforms), Enclosure.exactly(0))


def decide(question: Callable[[], Answer], uniforms: Iterable[LazyUniform]) -> Answer:
    """The answer to a question about real numbers, with as many of their bits as it takes."""
    uniforms = list(uniforms)
    while True:
        try:
            return question()
        except Undecided:
            for uniform in uniforms:
                uniform.refine(uniform.bits)


def round_exactly(
    values: Float[np.ndarray, "..."],
    noise: Callable[[], list[Enclosure]],
    uniforms: list[LazyUniform],
    step: float,
) -> Float[np.ndarray, "..."]:
    """Values + noise, rounded to multiples of the step. `noise` computes one number a value from the uniforms.

    Multiples of 2^53 and more may be rounded once more when they become floating-point numbers: that depends on
    nothing but the result.
    """
    flat = values.ravel().tolist()

    def multiples() -> list[int]:
        return [number.multiple(value, step) for number, value in zip(noise(), flat, strict=True)]

    return (np.array(decide(multiples, uniforms), dtype=np.float64) * step).reshape(values.shape)


@lru_cache(maxsize=64)
def _contexts(digits: int) -> tuple[Context, Context]:
    down = Context(prec=digits, rounding=ROUND_FLOOR, Emin=-(10**6), Emax=10**6)
    up = down.copy()
    up.rounding = ROUND_CEILING
    return down, up
