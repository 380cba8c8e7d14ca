"""Where states lie: a law made of two released answers, from which anybody may draw states, and what follows for
features.

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

_AT_ONCE = 2**12  # draws


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
        beyond = found / whole - even
        beyond -= beyond.mean(axis=1, keepdims=True)
        size = np.maximum((beyond**2).sum(axis=1, keepdims=True), 1e-300)
        freedom, noise = len(even) - 1, (sigma / whole) ** 2
        # What noise alone would show must be exceeded by two standard deviations: a pattern of noise mixes features.
        sure = size > (freedom + 2.0 * math.sqrt(2 * freedom)) * noise
        worth = np.where(sure, 1 - freedom * noise / size, 0.0)
        shares = np.maximum(even + worth * beyond, 0.0)
        return cls(shares / shares.sum(axis=1, keepdims=True))

    @cached_property
    def knots(self) -> Float[np.ndarray, "d knots"]:
        """Distribution functions of what lies between the ends: stretched by them, states are about uniform."""
        between = self.shares[:, 1:-1]
        between = np.maximum(between, 0.1 / between.shape[1])
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
        normals = np.random.default_rng(1).standard_normal((_AT_ONCE, d * min(compared, 2)))
        alone = self.centred(self.draw(normals)[0])
        mean, variance = alone.mean(axis=0), np.maximum(alone.var(axis=0), 1e-4)
        wanted = _covariances(_matrices(answer, d), sigma, mean, variance, compared)
        np.fill_diagonal(wanted, 0.0)  # which the shares tell
        if not wanted.any():
            return self
        deviations = np.sqrt(np.tile(variance, min(compared, 2)))
        correlations, law = np.eye(len(wanted)), self
        for _ in range(6):  # ties are corrected by what the moments of drawn states are short of
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
        rng, products = np.random.default_rng(0), []
        for _ in range(2**15 // _AT_ONCE):
            states = self.draw(rng.standard_normal((_AT_ONCE, len(self.shares) * min(compared, 2))))
            first, *other = (features(stretch(state, self.knots)) for state in states)
            design = (first - other[0]) / math.sqrt(2) if other else first
            products.append(design.T @ design / _AT_ONCE)
        same = np.eye(len(products[0]))
        beyond = np.mean(products, axis=0) - same
        # What is below four standard deviations of a simulated entry is 0, or features would be mixed for nothing.
        seen = np.where(np.abs(beyond) > 0.08, beyond, 0.0)
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
    """What second moments say of covariances, of one state or two, beyond their diagonal: 0 if that may be noise."""
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
    shrunk[np.abs(values) <= 1.25 * edge] = 0.0  # small matrices go a little beyond the edge by chance
    return (vectors * shrunk) @ vectors.T


def _root(correlations: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """A root of the nearest matrix of correlations, about."""
    values, vectors = np.linalg.eigh(correlations)
    root = vectors * np.sqrt(np.maximum(values, 1e-3))
    return root / np.linalg.norm(root, axis=1, keepdims=True)
