"""Exact normals: their law, every comparison bit by bit against fractions, and values that float64 noise never has."""

from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from quietq.noise.exact_gaussian import (
    Chance,
    Normals,
    Uniforms,
    _draw_whole,
    _even_runs,
    _keep,
    _root_digit,
    draw_normals,
)


def seeded(seed: int, kind: type = np.uint64) -> Chance:
    return Chance(np.random.default_rng(seed).bytes, kind)


def values(normals: Normals) -> np.ndarray:
    """With all digits that were drawn."""
    bits = normals.fraction.chance.bits
    parts = [digit * 2.0 ** (-bits * (place + 1)) for place, digit in enumerate(normals.fraction.digits)]
    return normals.sign * (normals.whole + sum(parts))


def agrees(counts: np.ndarray, probabilities: np.ndarray) -> bool:
    expected = counts.sum() * probabilities
    assert expected.min() > 20
    return bool(chi2.sf(((counts - expected) ** 2 / expected).sum(), len(counts) - 1) > 1e-6)


@pytest.mark.parametrize(("kind", "size"), [(np.uint64, 80_000), (np.uint8, 40_000)])
def test_normals_have_the_law(kind, size):
    """In 58 cells, whose probabilities mpmath knows; digits of 8 bits often take several to compare."""
    normals = draw_normals(size, seeded(1, kind))
    edges = np.linspace(-2.8, 2.8, 57)
    below = [mpmath.ncdf(edge) for edge in edges]
    probabilities = np.diff(np.array([0, *map(float, below), 1]))
    found = values(normals)
    assert agrees(np.bincount(np.searchsorted(edges, found), minlength=58), probabilities)
    assert (len(normals.fraction.digits) > 1) == (kind is np.uint8)
    pairs = 8 * np.searchsorted(OCTILES, found[::2]) + np.searchsorted(OCTILES, found[1::2])
    assert agrees(np.bincount(pairs, minlength=64), np.full(64, 1 / 64))  # neighbours are independent


OCTILES = [float(mpmath.sqrt(2) * mpmath.erfinv(mpmath.mpf(2 * i - 8) / 8)) for i in range(1, 8)]


def test_digits_that_nobody_compared_are_uniform():
    digit = draw_normals(30_000, seeded(2)).fraction.digits[0]
    for shift in (0, 24, 48):
        low = (digit >> np.uint64(shift)).astype(np.int64) & 15
        assert agrees(np.bincount(low, minlength=16), np.full(16, 1 / 16))


with mpmath.workprec(600):
    ROOT = int(mpmath.floor(mpmath.exp(-mpmath.mpf(1) / 2) * 2**512)).to_bytes(64, "big")


class Bytes:
    """A reader of random bytes, and the numbers of the algorithm one by one, with nothing but fractions and lists."""

    def __init__(self, seed: int) -> None:
        eighths = np.frombuffer(np.random.default_rng(seed).bytes(2**24), np.uint8) & 0xE0  # often the same
        self._bytes, self._at = eighths.tobytes(), 0

    def read(self, n: int) -> bytes:
        self._at += n
        assert self._at <= len(self._bytes)
        return self._bytes[self._at - n : self._at]

    def uniform(self) -> list[int]:
        return [self.read(1)[0]]

    def coin(self) -> bool:
        return bool(self.read(1)[0] >> 7)

    def is_below(self, one: list[int], other: list[int]) -> bool:
        place = 0
        while True:
            for number in (one, other):
                if len(number) == place:
                    number.append(self.read(1)[0])
            first, second = (
                Fraction(int.from_bytes(bytes(number[: place + 1]), "big"), 256 ** (place + 1))
                for number in (one, other)
            )
            if first != second:
                return first < second
            place += 1

    def even_run(self, start: list[int], also) -> bool:
        length = 0
        while also():
            number = self.uniform()
            if not self.is_below(number, start):
                break
            start, length = number, length + 1
        return length % 2 == 0

    def whole(self) -> int | None:
        k = 0
        while self.is_below(self.uniform(), list(ROOT)):
            k += 1
        return k if all(self.is_below(self.uniform(), list(ROOT)) for _ in range(k * (k - 1))) else None

    def keeps(self, k: int, x: list[int]) -> bool:
        if not self.even_run(x, lambda: self.coin() and self.is_below(self.uniform(), x)):
            return False
        return all(self.even_run(x, lambda: True) for _ in range(k))


def test_every_draw_is_what_fractions_make_of_the_same_bits():
    """One at a time, with digits of eight values, so that many comparisons go on to further ones."""
    chance, slow = Chance(Bytes(3).read, np.uint8), Bytes(3)
    kept, deep = 0, 0
    for _ in range(250):
        whole, expected = _draw_whole(1, chance), slow.whole()
        assert whole.tolist() == ([] if expected is None else [expected])
        if expected is None:
            continue
        x, other = Uniforms(1, chance), slow.uniform()
        found = _keep(whole, x).size == 1
        assert found == slow.keeps(expected, other)
        assert [int(digit[0]) for digit in x.digits] == other
        kept, deep = kept + found, deep + (len(other) > 1)
    assert kept > 60
    assert deep > 8


@pytest.mark.parametrize("digit", [0, 1, 128, 255])
def test_runs_have_their_probability(digit):
    """exp(-x) for a number with this first digit, the rest of which is open."""
    chance = seeded(4, np.uint8)
    x = Uniforms(20_000, chance, [np.full(20_000, digit, dtype=np.uint8)])
    even = _even_runs(x, np.arange(20_000)).mean()
    assert abs(even - np.exp(-(digit + 0.5) / 256)) < 5.5 * 0.5 / np.sqrt(20_000)


def test_no_value_is_out_of_reach():
    """15 sigma, where normals by inversion of 116 bits end at 12.5: what a neighbour can release, everybody can."""
    whole, tries = 15, 18
    digits = 8 * tries
    script = b"".join(
        [
            bytes(digits * whole) + b"\xff" * digits,  # below exp(-1/2) so many times, and then not
            bytes(digits * whole * (whole - 1)),
            b"\x10" * digits + bytes(3),  # the fractions, and coins that end all runs at once
            b"\xff" * (digits * whole) + b"\0",  # runs that do not begin; the sign
        ]
    )
    read = 0

    def scripted(n: int) -> bytes:
        nonlocal read
        read += n
        return script[read - n : read]

    normals = draw_normals(1, Chance(scripted))
    assert read == len(script)
    assert normals.between(0, 1)[0] == 15 + Fraction(int.from_bytes(b"\x10" * 8, "little"), 2**64)


def test_a_number_is_below_exp_of_minus_a_half_by_as_many_digits_as_it_takes():
    """The same as fractions say: every other number has the first digit of exp(-1/2)."""
    chance, size = Chance(Bytes(9).read, np.uint8), 400
    uniforms, root = Uniforms(size, chance), partial(_root_digit, chance)
    first = np.uint8(int(root(0, np.zeros(1, int))))
    uniforms.digits[0] = np.where(np.arange(size) % 2, uniforms.digits[0], first)
    below = uniforms.below(root, np.arange(size))
    digits = np.stack(uniforms.digits, axis=1)
    with mpmath.workprec(600):
        exactly = int(mpmath.floor(mpmath.exp(-mpmath.mpf(1) / 2) * 2**512))
    assert below.tolist() == [
        Fraction(int.from_bytes(row.tobytes(), "big"), 256 ** len(row)) < Fraction(exactly, 2**512) for row in digits
    ]
    assert digits.shape[1] > 1


def test_there_may_be_no_numbers_at_all():
    assert draw_normals(0, Chance()).about().shape == (0,)


class Bulk:
    """The same draw of many numbers at once, with lists and loops, in the order in which the bits are asked for."""

    def __init__(self, seed: int) -> None:
        self.read = Bytes(seed).read

    def uniforms(self, size: int) -> list[list[int]]:
        return [[one] for one in self.read(size)]

    def coins(self, size: int) -> list[bool]:
        bits = "".join(f"{byte:08b}" for byte in self.read(-(-size // 8)))
        return [bit == "1" for bit in bits[:size]]

    def digit(self, numbers: list[list[int]], i: int, place: int) -> int:
        if len(numbers[i]) == place:  # one more digit of each of them
            for number, one in zip(numbers, self.read(len(numbers)), strict=True):
                number.append(one)
        return numbers[i][place]

    def below(self, numbers: list[list[int]], others: list[list[int]], at: list[int]) -> list[bool]:
        less, undecided, place = [False] * len(numbers), list(range(len(numbers))), 0
        while undecided:
            mine = [self.digit(numbers, i, place) for i in undecided]
            theirs = [self.digit(others, at[i], place) for i in undecided]
            for i, one, other in zip(undecided, mine, theirs, strict=True):
                less[i] = one < other
            undecided = [i for i, one, other in zip(undecided, mine, theirs, strict=True) if one == other]
            place += 1
        return less

    def happens(self, size: int) -> list[bool]:
        return self.below(self.uniforms(size), [list(ROOT)], [0] * size)

    def in_a_row(self, times: list[int], happens) -> list[int]:
        left, kept = list(times), [True] * len(times)
        while index := [i for i in range(len(left)) if kept[i] and left[i] > 0]:
            for i, happened in zip(index, happens(index), strict=True):
                kept[i], left[i] = happened, left[i] - 1
        return [i for i in range(len(left)) if kept[i]]

    def even_runs(self, start: list[list[int]], index: list[int], also=None) -> list[bool]:
        even, going, last, at = [True] * len(index), list(range(len(index))), start, list(index)
        while going:
            if also is not None:
                happened = also([index[i] for i in going])
                going = [i for i, one in zip(going, happened, strict=True) if one]
                at = [i for i, one in zip(at, happened, strict=True) if one]
            fresh = self.uniforms(len(going))
            on = [i for i, one in enumerate(self.below(fresh, last, at)) if one]
            going, last, at = [going[i] for i in on], fresh, on
            for i in going:
                even[i] = not even[i]
        return even

    def whole(self, tries: int) -> list[int]:
        k, going = [0] * tries, list(range(tries))
        while going:
            going = [i for i, one in zip(going, self.happens(len(going)), strict=True) if one]
            for i in going:
                k[i] += 1
        return [k[i] for i in self.in_a_row([one * (one - 1) for one in k], lambda index: self.happens(len(index)))]

    def keep(self, whole: list[int], x: list[list[int]]) -> list[int]:
        def below_half(index: list[int]) -> list[bool]:
            happens = self.coins(len(index))
            chosen = [i for i, one in zip(index, happens, strict=True) if one]
            below = iter(self.below(self.uniforms(len(chosen)), x, chosen))
            return [one and next(below) for one in happens]

        kept = [i for i, one in enumerate(self.even_runs(x, list(range(len(x))), below_half)) if one]
        rows = self.in_a_row([whole[i] for i in kept], lambda index: self.even_runs(x, [kept[i] for i in index]))
        return [kept[i] for i in rows]

    def normals(self, size: int) -> list[tuple[bool, int, list[int]]]:
        left, parts = size, []
        while left > 0:
            proposed = self.whole(min(2 * left + left // 8 + 16, 2**15))
            fractions = self.uniforms(len(proposed))
            kept = self.keep(proposed, fractions)[:left]
            parts.append((proposed, fractions, kept))
            left -= len(kept)
        signs = iter(self.coins(size))
        most = max(len(fractions[0]) for _, fractions, _ in parts)
        for place in range(most):
            for _, fractions, kept in parts:
                self.digit(fractions, kept[0], place)
        return [(next(signs), proposed[i], fractions[i]) for proposed, fractions, kept in parts for i in kept]


@pytest.mark.parametrize("size", [1, 60, 600, pytest.param(40_000, marks=pytest.mark.slow)])
def test_draws_in_bulk_are_what_lists_make_of_the_same_bits(size):
    """With digits of eight values, so that comparisons go on to many of them."""
    found = draw_normals(size, Chance(Bytes(8).read, np.uint8))
    digits = np.stack(found.fraction.digits, axis=1).tolist()
    expected = Bulk(8).normals(size)
    assert found.sign.tolist() == [-1.0 if minus else 1.0 for minus, _, _ in expected]
    assert found.whole.tolist() == [whole for _, whole, _ in expected]
    assert digits == [fraction[: len(digits[0])] for _, _, fraction in expected]
    assert len(digits[0]) > 1
