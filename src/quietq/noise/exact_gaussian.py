"""Exact Gaussian noise: normals as real numbers, many at once, added to numbers and rounded once to a public step.

A real number between 0 and 1 is its digits, of 64 bits each, drawn as comparisons ask for them (`Uniforms`).

Theorem (von Neumann 1951, Forsythe 1972). Let y be in [0, 1], and let u_1, u_2, ... be uniform and each come with an
independent event of probability p. The run y > u_1 > u_2 > ... goes on while its events happen. It reaches length n
with probability (y p)^n/n!, so its length is even with probability sum_n (-y p)^n/n! = exp(-y p).

Theorem (after Karney 2016). Draw a whole k >= 0 with probability proportional to exp(-k^2/2), by comparing uniform
numbers with exp(-1/2), of which any digit is known. Draw a uniform x, and keep both with probability
exp(-k x) exp(-x^2/2), else draw anew. The density of k + x is then proportional to
exp(-k^2/2 - k x - x^2/2) = exp(-(k + x)^2/2): with a fair sign it is standard normal, exactly. Digits of x that were
not compared remain independent and uniform. Proof: docs/theory.md#exact-normals.

A release with correlated noise is a bijection of T f + s z with independent z. Here T has float64 entries, which are
binary fractions, so that T f is a binary fraction too, and is known exactly wherever it matters (`Whitened`). How far
T's entries are from those of the ideal matrix is public, and far below the `ROOM`.

Theorem. `add_exactly` gives round((T f + s z)/step), a function of the ideal sum and of nothing else, with z exactly
standard normal and T, f, s and the step binary fractions. Rounding is post-processing, so it is exactly mu-GDP with
mu = |T (f - f')|/s. Float64 decides only where its proven error leaves one whole number; else fractions do, with more
digits of z. That ends with probability 1, because a continuous sum lies on no boundary between two whole numbers.

Proof: docs/theory.md#exact-sums.
"""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from quietq.privacy.errors import InvalidInput

ROOM = 1 + 2.0**-19
"""Exact noise is so much larger than stated. That covers what public constants are rounded by: a grid's states, which
can make slopes steeper by a part of 2^-20, sensitivities and costs by 1e-9 each, and matrices by 2^-30."""
ROUNDINGS = 2.0**-50
"""Eight roundings in float64: more than there are in each of the sums below, and in the bounds on them."""
TINY = 2.0**-1000
"""Far above the smallest numbers, far below everything else."""
Digits = np.ndarray | np.unsignedinteger
Index = Int[np.ndarray, " some"]


@dataclass(frozen=True)
class Chance:
    """Random bits: the operating system's for noise that protects, drawn in bulk and never kept."""

    source: Callable[[int], bytes] = os.urandom
    """Gives this number of bytes."""
    kind: type[np.unsignedinteger] = np.uint64
    """The type of a digit; small ones are for tests, where comparisons are to need many."""

    @property
    def bits(self) -> int:
        """Returns the number of bits of a digit."""
        return 8 * np.dtype(self.kind).itemsize

    def digits(self, size: int) -> np.ndarray:
        return np.frombuffer(self.source(size * self.bits // 8), dtype=self.kind)

    def coins(self, size: int) -> Bool[np.ndarray, " size"]:
        return np.unpackbits(np.frombuffer(self.source(-(-size // 8)), dtype=np.uint8), count=size).astype(bool)


class Uniforms:
    """Uniform real numbers between 0 and 1, of which the first digits have been drawn."""

    def __init__(self, size: int, chance: Chance, digits: list[np.ndarray] | None = None) -> None:
        self.size, self.chance, self.digits = size, chance, [chance.digits(size)] if digits is None else digits

    def digit(self, place: int, index: int | Index) -> Digits:
        """One digit of one number, or of several."""
        while len(self.digits) <= place:  # for all numbers: more digits than needed do no harm
            self.digits.append(self.chance.digits(self.size))
        return self.digits[place][index]

    def below(
        self, digit: Callable[[int, Index], Digits], index: Int[np.ndarray, " size"]
    ) -> Bool[np.ndarray, " size"]:
        """Says which of these numbers are below other ones, whose digits are given, by as many digits as it takes."""
        less, open_, place = np.zeros(self.size, dtype=bool), np.arange(self.size), 0
        while open_.size:
            one, two = self.digit(place, open_), digit(place, index[open_])
            less[open_] = one < two
            open_, place = open_[one == two], place + 1
        return less

    @classmethod
    def joined(cls, parts: list[tuple["Uniforms", Int[np.ndarray, " some"]]]) -> "Uniforms":
        """Some numbers of each part."""
        places = range(max(len(part.digits) for part, _ in parts))
        digits = [np.concatenate([part.digit(place, index) for part, index in parts]) for place in places]
        return cls(len(digits[0]), parts[0][0].chance, digits)


def _root_digit(chance: Chance, place: int, index: Index) -> Digits:
    """One digit of exp(-1/2), for as many numbers as you like."""
    return chance.kind(_root_places(chance.bits * (place + 1)) % (1 << chance.bits))


@lru_cache(maxsize=64)
def _root_places(bits: int) -> int:
    """The first binary places of exp(-1/2), as a whole number."""
    digits = bits // 3
    ends = (0, 1)
    while ends[0] != ends[1]:
        digits += 20
        root, off = Fraction(Context(prec=digits).exp(Decimal("-0.5"))), Fraction(1, 10 ** (digits - 1))
        ends = tuple(math.floor((root + side) * (1 << bits)) for side in (-off, off))
    return ends[0]


@dataclass(frozen=True)
class Normals:
    """sign (whole + fraction), number by number."""

    sign: Float[np.ndarray, " size"]
    whole: Float[np.ndarray, " size"]
    fraction: Uniforms

    def about(self) -> Float[np.ndarray, " size"]:
        """Returns the numbers in float64, with an error of at most 2^-53 (|z| + 2), and of one of the first digit."""
        return self.sign * (self.whole + self.fraction.digits[0] * 2.0**-self.fraction.chance.bits)

    def between(self, index: int, places: int) -> tuple[Fraction, Fraction]:
        """Returns two numbers that one of them lies between, by this many digits."""
        digits, bits = 0, self.fraction.chance.bits
        for place in range(places):
            digits = (digits << bits) + int(self.fraction.digit(place, index))
        unit = Fraction(1, 1 << bits * places)
        low = int(self.whole[index]) + digits * unit
        return (low, low + unit) if self.sign[index] > 0 else (-low - unit, -low)


def draw_normals(size: int, chance: Chance) -> Normals:
    """Draws this number of independent standard normals."""
    left, whole, parts = size, [np.zeros(0, dtype=np.int64)], [(Uniforms(0, chance), np.zeros(0, dtype=np.int64))]
    while left > 0:
        proposed = _draw_whole(min(2 * left + left // 8 + 16, 2**15), chance)  # stays in cache
        fraction = Uniforms(len(proposed), chance)
        kept = _keep(proposed, fraction)[:left]
        whole.append(proposed[kept])
        parts.append((fraction, kept))
        left -= len(kept)
    return Normals(1.0 - 2.0 * chance.coins(size), np.concatenate(whole).astype(np.float64), Uniforms.joined(parts))


def _draw_whole(tries: int, chance: Chance) -> Int[np.ndarray, " kept"]:
    """Whole numbers k with probability proportional to exp(-k^2/2): exp(-1/2) k times, and k (k - 1) times more."""

    def happens(size: int) -> np.ndarray:  # with probability exp(-1/2)
        return Uniforms(size, chance).below(partial(_root_digit, chance), np.arange(size))

    k, going = np.zeros(tries, dtype=np.int64), np.arange(tries)
    while going.size:
        going = going[happens(going.size)]
        k[going] += 1
    return k[_in_a_row(k * (k - 1), lambda index: happens(len(index)))]


def _keep(whole: Int[np.ndarray, " size"], x: Uniforms) -> Int[np.ndarray, " kept"]:
    """Returns those that are kept: with probability exp(-x^2/2), and exp(-x) as many times as the whole number says."""

    def below_half(index: np.ndarray) -> np.ndarray:  # an event of probability x/2
        happens = x.chance.coins(len(index))
        happens[happens] = Uniforms(int(happens.sum()), x.chance).below(x.digit, index[happens])
        return happens

    kept = np.flatnonzero(_even_runs(x, np.arange(x.size), below_half))
    return kept[_in_a_row(whole[kept], lambda index: _even_runs(x, kept[index]))]


def _in_a_row(times: Int[np.ndarray, " size"], happens: Callable[[Index], np.ndarray]) -> Int[np.ndarray, " kept"]:
    """Returns those for which something happens this many times in a row."""
    left, kept = times.copy(), np.ones(len(times), dtype=bool)
    while (index := np.flatnonzero(kept & (left > 0))).size:
        kept[index] = happens(index)
        left[index] -= 1
    return np.flatnonzero(kept)


def _even_runs(
    start: Uniforms, index: Int[np.ndarray, " size"], also: Callable[[Index], np.ndarray] | None = None
) -> Bool[np.ndarray, " size"]:
    """Says whether runs that begin below these numbers of `start` have an even length.

    `also` draws the event that each further number of a run comes with, for those numbers of `start`.
    """
    even, going, last, at = np.ones(len(index), dtype=bool), np.arange(len(index)), start, index
    while going.size:
        if also is not None:
            happened = also(index[going])
            going, at = going[happened], at[happened]
        fresh = Uniforms(going.size, start.chance)
        on = np.flatnonzero(fresh.below(last.digit, at))
        going, last, at = going[on], fresh, on
        even[going] ^= True
    return even


class Whitened(NamedTuple):
    """T f in units of the public step: approximately, the largest error of that, and one number of it exactly."""

    about: Float[np.ndarray, "..."]
    errors: Float[np.ndarray, "..."]
    exactly: Callable[[int], Fraction]


def as_they_are(numbers: np.ndarray, step: float) -> Whitened:
    """For independent noise."""
    scaled = numbers / step  # a power of two: exact, unless it is tiny or overflows
    return Whitened(scaled, np.full(numbers.shape, TINY), lambda i: in_steps(numbers.item(i), step))


def by_matrix(matrix: Float[np.ndarray, "n n"], numbers: Float[np.ndarray, " n"], step: float) -> Whitened:
    """For a few numbers."""
    scaled = numbers / step
    errors = np.abs(matrix) @ (np.abs(scaled) * (len(numbers) * ROUNDINGS) + TINY) + TINY

    def exactly(i: int) -> Fraction:
        pairs = zip(matrix[i].tolist(), numbers.tolist(), strict=True)
        return sum((Fraction(one) * in_steps(number, step) for one, number in pairs), Fraction(0))

    return Whitened(matrix @ scaled, errors, exactly)


def inverse(root: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """A matrix whose product with the root is 1 but for a part in a billion, for certain.

    Then what it makes of numbers is longer by no more than that part than what the true inverse does.
    """
    found, n = np.linalg.inv(root), len(root)
    off = np.abs(found @ root - np.eye(n)) + n * ROUNDINGS * (np.abs(found) @ np.abs(root))
    if not np.linalg.norm(off) <= 2.0**-30:
        raise InvalidInput("The shape of the noise is too narrow in some direction to be drawn exactly.")
    return found


def in_steps(number: float, step: float) -> Fraction:
    """The number in units of the step, exactly."""
    return Fraction(number) / Fraction(step)


def add_exactly(
    whitened: Whitened, sigma: float, step: float, chance: Chance | None = None
) -> Float[np.ndarray, "..."]:
    """T f + sigma z in multiples of the step, as float64 numbers. Those of 2^53 steps and more may be rounded again."""
    chance, scale = Chance() if chance is None else chance, sigma * ROOM / step
    about, errors = whitened.about.ravel(), whitened.errors.ravel()
    rounded = np.empty(about.size)
    at_once = 2**16
    for start in range(0, about.size, at_once):
        part = slice(start, start + at_once)
        rounded[part] = _round(whitened, about[part], errors[part], start, scale, chance)
    return rounded.reshape(whitened.about.shape) * step + 0.0


def _round(
    whitened: Whitened, about: np.ndarray, errors: np.ndarray, start: int, scale: float, chance: Chance
) -> Float[np.ndarray, " part"]:
    normals = draw_normals(about.size, chance)
    z = normals.about()
    unknown = 2.0**-chance.bits + ROUNDINGS  # of z: the digits that were not drawn, and roundings
    with np.errstate(over="ignore", invalid="ignore"):
        sums = about + scale * z
        off = errors + ROUNDINGS * (np.abs(about) + scale * np.abs(z)) + scale * unknown
        rounded = np.rint(sums)
        clear = 0.5 - np.abs(sums - rounded) > off  # not where a number is infinite or none
    for i in np.flatnonzero(~clear).tolist():
        rounded[i] = round_exactly(whitened.exactly(start + i), Fraction(scale), normals, i)
    return rounded


def round_exactly(value: Fraction, scale: Fraction, normals: Normals, i: int) -> int:
    """value + scale times the i-th normal, rounded, by as many of its digits as it takes."""
    places, ends = 1, (0, 1)
    while ends[0] != ends[1]:
        ends = tuple(math.floor(value + scale * end + Fraction(1, 2)) for end in normals.between(i, places))
        places += 1
    return ends[0]
