"""Iterated private whitening: from noisy moments to a linear law whose residuals may be far smaller than its noise.

Each round looks at the second moments of T z, for features and targets z, and a matrix T that earlier answers made:
such that features are white and targets are *residuals of the current fit*, white too. So noise is relative to what is
not explained yet, and where little is left to explain, the fit gets better by a factor in each round.

All of this is post-processing of answers whose noise is known. Answers of all rounds are brought to the coordinates of
the last and averaged by their noise; eigenvalues are floored, and slopes shrunk, where noise could have made them.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import chdtri

from quietq.feedback.transition_statistics import ROOT
from quietq.released.private_world import Fit


@dataclass(frozen=True)
class WhiteningSettings:
    """The public numbers that whitening is done with: none of them changes what is promised."""

    floor: float = 0.5
    """Eigenvalues are floored at so many times the largest that noise alone is expected to make."""
    most_of_features: float = 1e4
    """Features that vary by less than one part in this of the box count as constants."""
    most_of_targets: float = 1e5
    """Residuals that are smaller than one part in this of the box count as zero."""
    rounding: float = 1e-12
    """Eigenvalues of the features' moments that are less than this part of the largest are 0, but for rounding."""
    pooling_rounds: int = 3
    """How often the scales of answers are matched to each other."""
    shrinking_rounds: int = 50
    """How often the size of weights is estimated anew, by expectation and maximisation."""


SETTINGS = WhiteningSettings()


@dataclass
class Whitening:
    """What is known after some answers."""

    features: int
    """How many of the numbers are features, d; the others are targets."""
    matrix: Float[np.ndarray, "numbers numbers"]
    """T: at first, what divides each number by how large it can be."""
    people: int
    sigma: float
    """The standard deviation of the noise on the moments, in all rounds."""

    def __post_init__(self) -> None:
        self._scales = 1 / np.diag(self.matrix)
        self._answers: list[tuple[np.ndarray, np.ndarray]] = []
        """Of each round T and the noisy moments of T z."""
        self._guess = np.eye(len(self.matrix))
        """The moments as the fit has them, in the coordinates of the last T."""
        self._error = 1.0
        """The standard deviation of a slope, in units of the residual's."""
        self._seen, self._entries = 0.0, 0

    def take(self, answer: Float[np.ndarray, " size"]) -> None:
        """One round: a new T from the noisy upper triangle of moments in coordinates of the old."""
        self._answers.append((self.matrix, square(answer)))
        self._seen += float(answer @ answer) / self.sigma**2
        self._entries += len(answer)
        # Moments by all answers so far: a of features, c of targets, b of each feature with each target.
        d, numbers = self.features, len(self.matrix)
        moments, variance = self._pool()
        a, b, c = moments[:d, :d], moments[:d, d:], moments[d:, d:]
        # Features along the eigenvectors v of their moments. Symmetric noise of deviation s on the diagonal has
        # eigenvalues up to s sqrt(2 d) (Wigner): smaller ones may be noise alone, and are floored before dividing.
        w, v = _floored(a, SETTINGS.floor * np.sqrt(variance[:d, :d].mean() * 2 * d))
        gram = (v * w) @ v.T
        # Slopes of targets on features, all of a target's shrunk alike (James and Stein).
        along = v.T @ b
        noise = d * variance[:d, d:].mean(axis=0) / 2
        along *= np.maximum(0.0, 1 - noise / np.maximum((along**2).sum(axis=0), 1e-300))
        slopes = (v / w) @ along
        # Moments of the residuals, which are no smaller than noise, or errors of the slopes, make them.
        rest = c - b.T @ slopes - slopes.T @ b + slopes.T @ gram @ slopes
        off = variance[:d, d:].mean() / 2
        least = max(SETTINGS.floor * np.sqrt(variance[d:, d:].mean() * 2 * (numbers - d)), off * (1 / w).sum())
        wr, vr = _floored(rest, least)
        # The next step of T: white features, and white residuals of the new fit in the place of targets.
        white = (vr / np.sqrt(wr)) @ vr.T
        step = np.block([[(v / np.sqrt(w)) @ v.T, np.zeros((d, numbers - d))], [-white @ slopes.T, white]])
        # The deviation of a slope by noise, times that of its feature; both are averaged over directions.
        self._error = float(np.sqrt(off * np.mean(1 / w**2)) * np.mean(np.sqrt(w)))
        # The moments that this fit implies, against which the scales of later answers are matched.
        cross = gram @ slopes
        guess = np.block([[gram, cross], [cross.T, (vr * wr) @ vr.T + slopes.T @ cross]])
        self._advance(step, guess)

    def _advance(self, step: np.ndarray, guess: np.ndarray) -> None:
        """The next T: its scale does not matter, and is fixed by the constant feature."""
        d, matrix = self.features, step @ self.matrix
        scale = np.linalg.norm(matrix[:d, 0])
        matrix, step = matrix / scale, step / scale
        # What is too small against the box counts as nothing: T stretches nothing by more than that.
        for part, most in ((slice(0, d), SETTINGS.most_of_features), (slice(d, None), SETTINGS.most_of_targets)):
            u, sizes, _ = np.linalg.svd(matrix[part, part])
            held = (u * np.minimum(1.0, most / sizes)) @ u.T
            matrix[part], step[part] = held @ matrix[part], held @ step[part]
        self.matrix, self._guess = matrix, step @ guess @ step.T

    def _pool(self) -> tuple[np.ndarray, np.ndarray]:
        """Moments by all answers so far, in the coordinates of the last, and the variance of each."""
        _, last = self._answers[-1]
        if len(self._answers) == 1:
            return last, np.full(last.shape, self.sigma**2)
        back = [np.linalg.solve(self.matrix.T, old.T).T for old, _ in self._answers]  # old T^-1
        moves = [np.linalg.inv(one) for one in back]
        pooled = variance = self._guess
        for _ in range(SETTINGS.pooling_rounds):
            total, weight = np.zeros_like(last), np.zeros_like(last)
            for (_, seen), there, here in zip(self._answers, back, moves, strict=True):
                # People's matrices have length 1, so the scale of an answer is unknown: it is fitted.
                expected = there @ pooled @ there.T
                size = max(float(np.linalg.norm(expected)), 1e-12)
                scale = max(float((seen * expected).sum()) / size**2, 1e-3 / size)
                # The answer in the coordinates of the last, weighted by one over the variance of each entry.
                rows = (here**2).sum(axis=1)
                noise = np.outer(rows, rows) * (self.sigma / scale) ** 2
                total += here @ seen @ here.T / scale / noise
                weight += 1 / noise
            size = float(np.linalg.norm(total / weight))
            pooled, variance = total / weight / size, 1 / (weight * size**2)
        return pooled, variance

    def seen(self) -> float:
        """The z-score of the squares of all answers against noise alone; 0 if it is negative."""
        return max(0.0, (self._seen - self._entries) / (2 * self._entries) ** 0.5)

    def fit(self) -> Fit:
        """The law, with slopes along directions that people's steps say nothing of shrunk to nothing."""
        d, matrix = self.features, self.matrix
        # T z is white, so z has the moments T^-1 T^-T: blockwise, for features and residuals. The constant feature is
        # 1, and its moment sets the scale.
        inner, outer = np.linalg.inv(matrix[:d, :d]), np.linalg.inv(matrix[d:, d:])
        gram, rest = inner @ inner.T, outer @ outer.T
        whole = gram[0, 0]
        gram, rest = gram / whole, rest / whole
        found = -(outer @ matrix[d:, :d]).T
        noise = self._error**2 + 1 / self.people  # of the release, and of people who are drawn by chance
        weights, spread = _shrunk(found, gram, rest, noise, self._scales)
        return Fit(weights, gram, rest, spread, np.linalg.cholesky(rest).T)


def _shrunk(
    found: np.ndarray, gram: np.ndarray, rest: np.ndarray, noise: float, scales: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means of weights, if those of features that are at most 1 in size are about equally large, and a root
    of the posterior's covariance, in units of the residual's.

    How large they are is learned from those that are clear, by expectation and maximisation.
    """
    # Weights, in units of the box, along directions in which their errors are independent.
    features, targets = scales[: len(gram)], scales[len(gram) :]
    a, v = np.linalg.eigh(gram / np.outer(features, features))
    # What was found along directions that features never take, such as off a circle, is rounding divided by nothing.
    a = np.where(a > SETTINGS.rounding * a[-1], a, 1e-300)
    own, turn = np.linalg.eigh(rest / np.outer(targets, targets))
    looked = v.T @ (found * features[:, None] / targets) @ turn
    variance = noise * own / a[:, None]
    # The size of a target's weights, and which part of each is left of it by the posterior mean.
    size, left = np.full(len(own), 1.0), np.ones_like(variance)
    for _ in range(SETTINGS.shrinking_rounds):
        left = size / (size + variance)
        size = (left**2 * looked**2 + left * variance).mean(axis=0)
    weights = v @ (left * looked) @ turn.T / features[:, None] * targets
    typical = np.sqrt((left * noise / a[:, None]).mean(axis=1))
    return weights, (v * typical) / features[:, None]


def normal_scatter(dimension: int) -> float:
    """What the residual's covariance must be multiplied by, where people have one step each and residuals are normal.

    Such a person is z z^T/|z|^2 for z = (1, x), so the fit is that of a Cauchy law, in which large x count less. With
    normal x of variance s for each coordinate, the constant's share of the mean is E 1/(1 + s |x|^2) = 1/(1 + d).

    >>> round(normal_scatter(2), 1)
    2.0
    """
    squares = chdtri(dimension, (np.arange(2000) + 0.5) / 2000)
    low, high = 0.0, 10.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 / (1 + middle * squares)).mean() > 1 / (1 + dimension) else (low, middle)
    return low


def _floored(matrix: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.maximum(values, least), vectors


def square(vector: Float[np.ndarray, " size"]) -> Float[np.ndarray, "n n"]:
    """The symmetric matrix whose upper triangle `feedback.transition_statistics.triangle` made this vector of."""
    numbers = int((2 * len(vector)) ** 0.5)
    row, column = np.triu_indices(numbers)
    matrix = np.zeros((numbers, numbers))
    matrix[row, column] = matrix[column, row] = vector / np.where(row == column, 1.0, ROOT)
    return matrix
