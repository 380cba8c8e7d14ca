"""Noisy running sums of vectors: by a binary tree, or by a matrix factorisation of the sums.

Theorem. Let each visit bring a vector v = zz' (its numbers in an order and scale in which the Euclidean norm is the
Frobenius norm), |z| <= length, and let neighbours differ in at most `visits` of them. (a) Tree: a vector is in one node
on each level, and all nodes move by at most sqrt(2 levels) visits length^2 together. (b) Factors: with C lower
triangular, Toeplitz and without negative entries, what is noised is C v, which moves by at most sqrt(2) visits length^2
times the length of C's first column; running sums are A C^-1 of it, A being all ones below the diagonal. Gaussian noise
of that over mu on every number is mu-GDP (`docs/theory.md`, section 14). C is a buffered linear Toeplitz matrix of
jax-privacy's, near the square root of A (Dvijotham, McMahan, Pillutla, Steinke & Thakurta 2024).
"""

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from quietq.learning.bandits.tree_ucb import enter, levels_for

PARTS = 2.0**32
"""Vectors are rounded to whole numbers of such parts, which a tree then adds exactly."""
_BUFFERS = 7
Noised = Callable[[np.ndarray], np.ndarray]


@dataclass
class Sums:
    """Where a running sum stands."""

    steps: int
    secret: np.ndarray  # PRIVATE
    public: Float[np.ndarray, "rows numbers"]
    before: Float[np.ndarray, " numbers"]  # noisy, of an earlier running sum that was forgotten
    spread: float  # the variance of that, in units of the noise's


class RunningSum(ABC):
    """A way of adding up; all of it is public."""

    norm: dict[str, Any]
    """As certificates state it."""
    rounding = 0.0
    """By how much neighbours can be farther apart because of floating point, in one person's visit."""

    def __init__(self, arrivals: int, numbers: int, length: float) -> None:
        self.arrivals, self.numbers, self.length = arrivals, numbers, length

    @abstractmethod
    def start(self) -> Sums: ...

    @abstractmethod
    def add(self, sums: Sums, vector: Float[np.ndarray, " numbers"], noised: Noised) -> None:
        """One more vector, in whole parts; what it is noised with is drawn by `noised`."""

    @abstractmethod
    def total(self, sums: Sums) -> Float[np.ndarray, " numbers"]:
        """The noisy running sum."""

    @abstractmethod
    def variance(self, steps: int) -> float:
        """Of each number of a running sum after so many steps, in units of the noise's."""

    def spread(self, sums: Sums) -> float:
        return sums.spread + self.variance(sums.steps)

    def forget(self, sums: Sums) -> Sums:
        """Goes on from the noisy sum, which is public, with a new running sum for those who come later."""
        fresh = self.start()
        fresh.before, fresh.spread = self.total(sums), self.spread(sums)
        return fresh


class Tree(RunningSum):
    """Nodes of a binary tree, each noised once, when it is full."""

    def __init__(self, arrivals: int, numbers: int, length: float) -> None:
        super().__init__(arrivals, numbers, length)
        self.levels = levels_for(arrivals)
        self.norm = {"kind": "tree-of-moments", "levels": self.levels, "length": length}

    def start(self) -> Sums:
        shape = self.levels, self.numbers
        return Sums(0, np.zeros(shape, np.int64), np.zeros(shape), np.zeros(self.numbers), 0.0)

    def add(self, sums: Sums, vector: Float[np.ndarray, " numbers"], noised: Noised) -> None:
        sums.steps += 1
        enter(sums.steps, sums.secret, sums.public, vector.astype(np.int64), lambda node: noised(node / PARTS))

    def total(self, sums: Sums) -> Float[np.ndarray, " numbers"]:
        return sums.before + sums.public.sum(axis=0)

    def variance(self, steps: int) -> float:
        return steps.bit_count()


class Factors(RunningSum):
    """A buffered Toeplitz matrix: each visit is noised once, together with what is left of earlier ones."""

    def __init__(self, arrivals: int, numbers: int, length: float) -> None:
        super().__init__(arrivals, numbers, length)
        self.scales, self.decays = factors(arrivals)
        scales, decays = list(self.scales), list(self.decays)
        self.norm = {"kind": "encoded-moments", "scales": scales, "decays": decays, "length": length}
        # a buffer holds at most so many vectors, and errs by 2^-52 of that in each of as many steps
        squares = [scale * min(arrivals, 1 / (1 - decay)) ** 2 for scale, decay in zip(scales, decays, strict=True)]
        self.rounding = 2 * (2.0**-50 * (1 + sum(squares)) * length**2) * math.sqrt(arrivals * numbers)

    def start(self) -> Sums:
        rows, n = len(self.scales), self.numbers
        return Sums(0, np.zeros((rows, n)), np.zeros((rows + 1, n)), np.zeros(n), 0.0)

    def add(self, sums: Sums, vector: Float[np.ndarray, " numbers"], noised: Noised) -> None:
        sums.steps += 1
        scales, decays, vector = np.array(self.scales), np.array(self.decays)[:, None], vector / PARTS
        encoded = noised(vector + scales @ sums.secret)
        sums.secret = decays * sums.secret + vector
        decoded = encoded - scales @ sums.public[:-1]
        sums.public[:-1] = decays * sums.public[:-1] + decoded
        sums.public[-1] += decoded

    def total(self, sums: Sums) -> Float[np.ndarray, " numbers"]:
        return sums.before + sums.public[-1]

    def variance(self, steps: int) -> float:
        return float(spreads(self.scales, self.decays, steps))


@functools.lru_cache(maxsize=16)
def factors(arrivals: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    from jax_privacy.matrix_factorization.buffered_toeplitz import BufferedToeplitz

    with jax.enable_x64(True):  # closed form; rounded, so that no machine's last bits matter
        found = BufferedToeplitz.from_rational_approx_to_sqrt_x(
            num_buffers=_BUFFERS, max_buf_decay=1 - max(0.1 / arrivals, 1e-8), max_pillutla_score=1 - 1e-6
        )
        scales, decays = np.asarray(found.output_scale, np.float64), np.asarray(found.buf_decay, np.float64)
    return tuple(np.round(scales, 10).tolist()), tuple(np.round(decays, 10).tolist())


def spreads(scales: tuple[float, ...], decays: tuple[float, ...], steps: Any) -> Float[np.ndarray, "..."]:
    """The variance of the running sum after so many steps: the squares of the first column of A C^-1, added up.

    Decoding is linear: an error of 1 leaves buffers of 1, and comes back as -scales . M^(k-1) 1 after k steps, with
    M = diag(decays) - 1 scales', all of whose eigenvalues are simple. So the column is a sum of powers c_i p_i^k, and
    its squares are geometric series.
    """
    ones = np.ones(len(scales))
    values, vectors = np.linalg.eig(np.diag(decays) - np.outer(ones, scales))
    parts = -(np.asarray(scales) @ vectors) * np.linalg.solve(vectors, ones) / (1 - values)
    powers, weights = np.append(values, 1.0), np.append(-parts, 1 + parts.sum())
    ratio, weight = np.multiply.outer(powers, powers).ravel(), np.multiply.outer(weights, weights).ravel()
    ends, steps = ratio == 1, np.asarray(steps)[..., None]
    return np.asarray((np.where(ends, steps, (1 - ratio**steps) / np.where(ends, 1.0, 1 - ratio)) @ weight).real)
