"""Where states lie: a distribution made of two released answers, from which anybody may draw states, and what follows
for features.

Each coordinate has its released shares, at both ends of the box and in bins between. Normal numbers behind the
coordinates tie them together (a Gaussian copula), so that states have the released second moments. Such a law has no
clusters, but it spreads in the directions that they spread in. All of it is post-processing, simulated with public
random numbers.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

from quietq.feedback.loss import Phi
from quietq.released.private_model import stretch


@dataclass(frozen=True)
class StateLawSettings:
    """The public numbers that the distribution is fitted with: none of them changes what is promised."""

    draws: int = 2**15
    """How many states are drawn for the mean products of features."""
    draws_at_once: int = 2**12
    """How many of them are drawn at once, and how many for the ties."""
    certainty: float = 2.0
    """By how many standard deviations shares must exceed what noise alone shows: a pattern of noise mixes features."""
    least_share: float = 0.1
    """No bin is taken to hold less than this part of an even share."""
    corrections: int = 6
    """How often ties are corrected by what the moments of drawn states are short of."""
    clear_product: float = 0.08
    """Mean products that are nearer to 0 or 1 count as these: four standard deviations of a simulated entry."""
    clear_eigenvalue: float = 1.25
    """Eigenvalues count from so many times what noise alone makes: small matrices go a little beyond it by chance."""


SETTINGS = StateLawSettings()


@dataclass(frozen=True, eq=False)
class StateLaw:
    """The law of one state, or of two that are compared."""

    shares: Float[np.ndarray, "d cells"]
    ties: Float[np.ndarray, "numbers numbers"] | None = None
    """By which independent normal numbers become those behind the coordinates of one state or two; its rows have
    length 1. None if all are independent."""

    @classmethod
    def from_marginals(cls, answer: Float[np.ndarray, " size"], sigma: float, bins: int) -> "StateLaw":
        """From noisy `Marginals`, up to their length; each coordinate is shrunk to uniform by what noise is worth."""
        even = np.concatenate([[0.0], np.full(bins, 1 / bins), [0.0]])
        found = answer.reshape(-1, len(even))
        whole = max(found.sum() / len(found), 0.2)  # clipping shortens all shares alike
        # What shares differ from even ones by, coordinate by coordinate, and how much of that noise alone would show.
        beyond = found / whole - even
        beyond -= beyond.mean(axis=1, keepdims=True)
        size = np.maximum((beyond**2).sum(axis=1, keepdims=True), 1e-300)
        freedom = len(even) - 1
        noise = (sigma / whole) ** 2
        # It is shrunk by that part of it (James and Stein), or left out where it may be noise alone.
        sure = size > (freedom + SETTINGS.certainty * math.sqrt(2 * freedom)) * noise
        worth = np.where(sure, 1 - freedom * noise / size, 0.0)
        shares = np.maximum(even + worth * beyond, 0.0)
        return cls(shares / shares.sum(axis=1, keepdims=True))

    @cached_property
    def knots(self) -> Float[np.ndarray, "d knots"]:
        """Distribution functions of what lies between the ends: stretched by them, states are about uniform."""
        between = self.shares[:, 1:-1]
        between = np.maximum(between, SETTINGS.least_share / between.shape[1])
        risen = np.cumsum(between / between.sum(axis=1, keepdims=True), axis=1)
        risen[:, -1] = 1.0
        return np.hstack([np.zeros((len(risen), 1)), risen])

    def centred(self, points: Float[np.ndarray, "rows d"]) -> Float[np.ndarray, "rows d"]:
        """Stretched, around 0, and of variance 1 if they are uniform then."""
        return math.sqrt(3) * (2 * stretch(points, self.knots) - 1)

    def draw(self, normals: Float[np.ndarray, "n numbers"]) -> list[Float[np.ndarray, "n d"]]:
        """One state per row from d independent normal numbers, or two from 2d."""
        levels = ndtr(normals if self.ties is None else normals @ self.ties.T)
        risen = np.cumsum(np.pad(self.shares, ((0, 0), (1, 0))), axis=1)
        places = np.pad(np.linspace(0, 1, self.shares.shape[1] - 1), 1, mode="edge")
        d = len(risen)
        columns = [np.interp(one, risen[i % d], places) for i, one in enumerate(levels.T)]
        return [np.stack(columns[i : i + d], axis=1) for i in range(0, len(columns), d)]

    def tied(self, answer: Float[np.ndarray, " size"], sigma: float, compared: int) -> "StateLaw":
        """With ties that give the noisy `SecondMoments`, up to their length, of rows that compare so many states."""
        d = len(self.shares)
        normals = np.random.default_rng(1).standard_normal((SETTINGS.draws_at_once, d * min(compared, 2)))
        # Covariances that the answer speaks of, beyond those of independent coordinates with these shares.
        alone = self.centred(self.draw(normals)[0])
        mean, variance = alone.mean(axis=0), np.maximum(alone.var(axis=0), 1e-4)
        wanted = _covariances(_matrices(answer, d), sigma, mean, variance, compared)
        np.fill_diagonal(wanted, 0.0)  # which the shares tell
        if not wanted.any():
            return self
        deviations = np.sqrt(np.tile(variance, min(compared, 2)))
        # Correlations of the normal numbers, until states that are drawn by them have these covariances.
        correlations, law = np.eye(len(wanted)), self
        for _ in range(SETTINGS.corrections):
            drawn = np.hstack([self.centred(state) for state in law.draw(normals)])
            short = (wanted - np.atleast_2d(np.cov(drawn.T))) / np.outer(deviations, deviations)
            np.fill_diagonal(short, 0.0)
            ties = _root(np.clip(correlations + short, -1, 1))
            correlations, law = ties @ ties.T, replace(self, ties=ties)
        return law

    def gram(self, features: Phi, compared: int) -> Float[np.ndarray, "rank rank"] | None:
        """Mean products of features of a drawn state, or of half of what two differ by; None for about the identity."""
        if self.ties is None and np.ptp(self.shares[:, 1:-1], axis=1).max() + self.shares[:, [0, -1]].max() == 0:
            return None
        rng, at_once = np.random.default_rng(0), SETTINGS.draws_at_once
        products = []
        for _ in range(SETTINGS.draws // at_once):
            states = self.draw(rng.standard_normal((at_once, len(self.shares) * min(compared, 2))))
            first, *other = (features(stretch(state, self.knots)) for state in states)
            design = (first - other[0]) / math.sqrt(2) if other else first
            products.append(design.T @ design / at_once)
        # What may be chance in the draws is left out, or features would be mixed for nothing.
        same = np.eye(len(products[0]))
        beyond = np.mean(products, axis=0) - same
        seen = np.where(np.abs(beyond) > SETTINGS.clear_product, beyond, 0.0)
        return same + seen if seen.any() else None


def _matrices(triangles: Float[np.ndarray, " size"], d: int) -> list[Float[np.ndarray, "d d"]]:
    """Symmetric matrices from their upper triangles, of which all beside the diagonal was multiplied by root 2."""
    one, other = np.triu_indices(d)
    found = []
    for entries in np.split(triangles, len(triangles) // len(one)):
        matrix = np.zeros((d, d))
        matrix[one, other] = matrix[other, one] = entries * np.where(one == other, 1, 0.5**0.5)
        found.append(matrix)
    return found


def _covariances(
    found: list[np.ndarray], sigma: float, mean: np.ndarray, variance: np.ndarray, compared: int
) -> Float[np.ndarray, "numbers numbers"]:
    """What second moments say of covariances, of one state or two, beyond their diagonal: 0 if that may be noise.

    Of rows that compare states, `found` holds moments about the mean of a row, and then those of that mean.
    """
    expected = [np.diag(variance) + compared * np.outer(mean, mean)]
    if compared > 1:
        expected.insert(0, np.diag(variance))
    weights = (compared - 1, 1)[-len(expected) :]
    traces = [sum(w * np.trace(one) for w, one in zip(weights, all_, strict=True)) for all_ in (found, expected)]
    length = max(traces[0] / traces[1], sigma)
    beyond = [_clear(one / length - other, sigma / length) for one, other in zip(found, expected, strict=True)]
    if compared == 1:
        return beyond[0]
    across = (beyond[1] - beyond[0]) / compared
    within = beyond[0] + across
    return np.block([[within, across], [across, within]])


def _clear(matrix: Float[np.ndarray, "d d"], sigma: float) -> Float[np.ndarray, "d d"]:
    """What stands out of symmetric noise: its eigenvalues reach sqrt(2d) sigma by themselves, and those beyond it are
    shrunk as Gavish and Donoho (2017) say.
    """
    values, vectors = np.linalg.eigh(matrix)
    edge = math.sqrt(2 * len(matrix)) * sigma
    shrunk = np.sign(values) * np.sqrt(np.maximum(values**2 - edge**2, 0.0))
    shrunk[np.abs(values) <= SETTINGS.clear_eigenvalue * edge] = 0.0
    return (vectors * shrunk) @ vectors.T


def _root(correlations: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """A root of the nearest matrix of correlations, about."""
    values, vectors = np.linalg.eigh(correlations)
    root = vectors * np.sqrt(np.maximum(values, 1e-3))
    return root / np.linalg.norm(root, axis=1, keepdims=True)
