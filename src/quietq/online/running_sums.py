"""Noisy running sums of vectors by a matrix factorisation, with buffers instead of a row for each visit.

Theorem. Let each visit bring a vector v = zz' (its numbers in an order and scale in which the Euclidean norm is the
Frobenius norm), |z| <= length, and let neighbours differ in at most `visits` of them. With C lower triangular, Toeplitz
and without negative entries, what is noised is C v, which moves by at most sqrt(2) visits length^2 times the length of
C's first column; running sums are A C^-1 of it, A being all ones below the diagonal. Gaussian noise of that over mu on
every number is mu-GDP (docs/theory.md#running-sums). C is a buffered linear Toeplitz matrix near the square root of A
(Dvijotham, McMahan, Pillutla, Steinke & Thakurta 2024).
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from quietq.privacy.norms import EncodedMoments

PARTS = 2.0**32
"""Vectors are rounded to whole numbers of such parts, so that contexts which differ in last bits count alike."""
Noise = Callable[[np.ndarray], np.ndarray]
"""Numbers, with noise added."""


@dataclass
class RunningSums:
    """Where a running sum stands."""

    steps: int
    secret: np.ndarray  # PRIVATE
    public: Float[np.ndarray, "rows numbers"]
    before: Float[np.ndarray, " numbers"]  # noisy, of an earlier running sum that was forgotten
    spread: float  # the variance of that, in units of the noise's
    bad_contexts: int = 0  # PRIVATE: vectors that are 0 because their context was no numbers


class Factors:
    """A running sum by a buffered Toeplitz matrix: each visit is noised once, together with what is left of earlier
    ones. All of it is public.
    """

    def __init__(self, arrivals: int, numbers: int, length: float) -> None:
        self.arrivals, self.numbers = arrivals, numbers
        self.scales, self.decays = factors(arrivals)
        self.norm = EncodedMoments(self.scales, self.decays, length)
        # A buffer holds at most this number of vectors, and errs by 2^-52 of that in each of as many steps.
        each = zip(self.scales, self.decays, strict=True)
        squares = [scale * min(arrivals, 1 / (1 - decay)) ** 2 for scale, decay in each]
        self.rounding = 2 * (2.0**-50 * (1 + sum(squares)) * length**2) * math.sqrt(arrivals * numbers)
        """How much farther apart neighbours can be because of floating point, in one person's visit."""

    def start(self) -> RunningSums:
        rows, n = len(self.scales), self.numbers
        return RunningSums(0, np.zeros((rows, n)), np.zeros((rows + 1, n)), np.zeros(n), 0.0)

    def add(self, sums: RunningSums, vector: Float[np.ndarray, " numbers"], noised: Noise) -> None:
        """One more vector, in whole parts; what it is noised with is drawn by `noised`."""
        sums.steps += 1
        scales, decays, vector = np.array(self.scales), np.array(self.decays)[:, None], vector / PARTS
        # Encode: the next row of C v is v plus what the buffers hold of earlier vectors, scale by scale.
        encoded = noised(vector + scales @ sums.secret)
        sums.secret = decays * sums.secret + vector
        # Decode by the same recursion backwards: C^-1 of what was noised, with buffers of noisy vectors, all public.
        decoded = encoded - scales @ sums.public[:-1]
        sums.public[:-1] = decays * sums.public[:-1] + decoded
        sums.public[-1] += decoded  # A: the sum of all decoded vectors so far

    def total(self, sums: RunningSums) -> Float[np.ndarray, " numbers"]:
        """The noisy running sum."""
        return sums.before + sums.public[-1]

    def variance(self, steps: int) -> float:
        """Returns the variance of each number of a running sum after this number of steps, in units of the noise's."""
        return float(spreads(self.scales, self.decays, steps))

    def spread(self, sums: RunningSums) -> float:
        return sums.spread + self.variance(sums.steps)

    def sizes(self, steps: int) -> np.ndarray:
        """Returns how many vectors each row of the secret numbers is made of after so many steps, by their weights."""
        decays = np.array(self.decays)
        return (1 - decays**steps) / (1 - decays)

    def forget(self, sums: RunningSums) -> RunningSums:
        """Goes on from the noisy sum, which is public, with a new running sum for those who come later."""
        fresh = self.start()
        fresh.before, fresh.spread = self.total(sums), self.spread(sums)
        return fresh


@functools.lru_cache(maxsize=16)
def factors(arrivals: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Returns scales and decays of the buffers of C, for this number of arrivals.

    C's generating function is to be close to 1/sqrt(1 - x), the best one there is. The inverse, sqrt(1 - x), is the
    integral over t of (1 - x)/(1 - x + e^(2t)), up to a constant, whose sum at equally spaced t is rational: it has
    one pole for each t (Dvijotham et al. 2024, proposition 4.5). Its zeros are the poles of C.
    """
    buffers = 7
    half = (buffers + 1) // 2
    # Wider by 1.6 than what is best for very many poles: with few, wider ones are better.
    width = 1.6 * math.pi / math.sqrt(2 * (half + 1))
    places = width * (np.arange(buffers) - half)
    poles = 1 / (1 + np.exp(2 * places))
    residues = -(poles**2) * np.exp(3 * places) / (np.exp(places) @ poles)
    # 1 + sum_i r_i x/(1 - c_i x) is 0 where 1/x is an eigenvalue of diag(c) - r 1'.
    decays = np.sort(np.linalg.eigvals(np.diag(poles) - residues[:, None]).real)[::-1]
    apart = decays[:, None] - decays + np.eye(buffers)
    scales = (decays[:, None] - poles).prod(axis=1) / apart.prod(axis=1)  # residues of 1 over that
    # All buffers forget, and all entries of the inverse keep their sign.
    decays *= min(1.0, (1 - max(0.1 / arrivals, 1e-8)) / decays[0])
    scales *= min(1.0, (1 - 1e-6) / float((scales / decays).sum()))
    # rounded, so that no machine's last bits matter
    return tuple(np.round(scales, 10).tolist()), tuple(np.round(decays, 10).tolist())


def spreads(scales: tuple[float, ...], decays: tuple[float, ...], steps: int | np.ndarray) -> Float[np.ndarray, "..."]:
    """Returns the variance of the running sum after `steps`: the sum of squares of the first column of A C^-1.

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
    series = np.where(ends, steps, (1 - ratio**steps) / np.where(ends, 1.0, 1 - ratio))
    return np.asarray(np.real(series @ weight))
