"""Which directions of a public feature map a model is fitted along, and how much each is expected to matter.

Any map is a kernel, and its principal components over uniform states are uncorrelated (`Basis`): each round of a fit
can then look at all of them at once. For the default, product polynomials, they are known in closed form; items of a
catalogue and columns of an embedding are taken as they are. With actions, each component is multiplied by contrasts
between them. All of that is public.

People's states are not uniform. Where they lie is a distribution made of two released answers (`StateLaw`), from which
anybody may draw states. Each coordinate has its released shares, at both ends of the box and in bins between, and the
box is stretched until it is about uniform. Normal numbers behind the coordinates tie them together (a Gaussian copula),
so that states have the released second moments. Such a law has no clusters, but it spreads in the directions that they
spread in. Directions are turned until they are uncorrelated under it. All of it is post-processing, simulated with
public random numbers.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtr

from quietq.feedback.row_statistics import Loss, Phi
from quietq.noise.feature_maps import ACTIONS_OWN_SHARE, FeatureMap, Polynomials, smooth_prior, stretch

CONSTANT = 1 / 16
"""The variance of a constant, in squared units of the range of ratings."""
_SMALLEST = 1e-6


@dataclass(frozen=True)
class StateLawSettings:
    """The public numbers that the distribution is fitted with: none of them changes what is promised."""

    draws: int = 2**15
    """How many states are drawn for the mean products of features."""
    draws_at_once: int = 2**12
    """How many of them are drawn at once, and how many for the ties."""
    certainty: float = 2.0
    """The least z-score of shares against pure noise: a pattern of noise mixes features."""
    least_share: float = 0.1
    """No bin is taken to hold less than this part of an even share."""
    corrections: int = 6
    """How often ties are corrected by what the moments of drawn states are short of."""
    clear_product: float = 0.08
    """Mean products that are nearer to 0 or 1 count as these: four standard deviations of a simulated entry."""
    clear_eigenvalue: float = 1.25
    """An eigenvalue counts from this multiple of noise alone on: small matrices exceed that a little by chance."""


SETTINGS = StateLawSettings()


@dataclass(frozen=True, eq=False)
class Basis:
    """Directions, about uncorrelated and of variance 1 over uniform states, with what is expected of their weights.

    A row's *features* are the map's own, after a constant 1 if there is one, times contrasts between actions; what is
    fitted are weights of *directions*, the columns of `matrix`.
    """

    feature_map: FeatureMap
    constant: bool
    """Whether there is a feature 1 before those of the map."""
    sizes: Float[np.ndarray, " raw"] | None
    """What each feature is multiplied by; None for 1."""
    actions: int
    places: Int[np.ndarray, " features"]
    """Which of the map's features, counted with the constant, each feature of a row is..."""
    contrasts: Int[np.ndarray, " features"]
    """...and by which contrast between actions it is multiplied."""
    matrix: Float[np.ndarray, "features directions"] | None
    """None where directions are features."""
    variances: Float[np.ndarray, " directions"]
    """What is expected of each weight before anybody was asked."""
    groups: Int[np.ndarray, " directions"]
    """Weights of one group are shrunk alike."""

    @classmethod
    def of(cls, feature_map: FeatureMap | None, dimension: int, loss: Loss) -> "Basis":
        """All directions of a map, or by default of polynomials, for a loss."""
        basis = cls._polynomials(dimension, loss) if feature_map is None else cls._of_map(feature_map, loss)
        return basis._times_actions(loss.actions)

    @classmethod
    def _of_map(cls, feature_map: FeatureMap, loss: Loss) -> "Basis":
        means, moments = feature_map.moments()
        matrix, sizes, found = None, None, moments
        if moments.ndim == 1:
            sizes = np.append(np.ones(int(loss.constant)), 1 / np.sqrt(moments))
        else:
            found, vectors = np.linalg.eigh(moments)
            kept = np.flatnonzero(found > _SMALLEST * found[-1])[::-1]
            found, matrix = found[kept], vectors[:, kept] / np.sqrt(found[kept])
            if loss.constant:  # directions are centred, so that none of them says what the constant says
                matrix = np.vstack([-means @ matrix, matrix])
                matrix = np.column_stack([np.eye(len(matrix))[0], matrix])
        variances = loss.scale**2 * found / found.sum()
        groups = 1 + np.round(np.log2(found.max() / found) / 2).astype(int)  # of about the same size
        if loss.constant:
            variances, groups = np.append(CONSTANT, variances), np.append(0, groups)
        places = np.arange(feature_map.rank + loss.constant)
        return cls(feature_map, loss.constant, sizes, 1, places, 0 * places, matrix, variances, groups)

    @classmethod
    def _polynomials(cls, dimension: int, loss: Loss) -> "Basis":
        terms, variances = smooth_prior(dimension)
        variances = loss.scale**2 * variances
        if loss.constant:
            terms, variances = ((), *terms), np.append(CONSTANT, variances)
        order = sorted(range(len(terms)), key=lambda i: len(terms[i]))
        feature_map = Polynomials(dimension, tuple(terms[i] for i in order))
        keys = [(len(term), sum(degree for _, degree in term)) for term in feature_map.terms]
        groups = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
        places = np.arange(len(terms))
        return cls(feature_map, False, None, 1, places, 0 * places, None, variances[order], groups)

    def _times_actions(self, actions: int) -> "Basis":
        if actions == 1:
            return self
        places, contrasts = np.repeat(self.places, actions), np.tile(np.arange(actions), len(self.places))
        matrix = None if self.matrix is None else np.kron(self.matrix, np.eye(actions))
        number = np.tile(np.arange(actions), len(self.variances))
        share = np.where(number == 0, 1 - ACTIONS_OWN_SHARE, ACTIONS_OWN_SHARE / (actions - 1))
        variances = np.repeat(self.variances, actions) * share
        groups = 2 * np.repeat(self.groups, actions) + (number > 0)
        return replace(
            self, actions=actions, places=places, contrasts=contrasts, matrix=matrix, variances=variances, groups=groups
        )

    @property
    def size(self) -> int:
        """How many weights are fitted."""
        return len(self.variances)

    def first(self, number: int) -> "Basis":
        """The directions of largest expected variance, and all that are worth as much."""
        least = np.sort(self.variances)[::-1][number - 1]
        kept = np.flatnonzero(self.variances >= least * (1 - 1e-9))
        fewer = {"variances": self.variances[kept], "groups": self.groups[kept]}
        if self.matrix is not None:
            return replace(self, matrix=self.matrix[:, kept], **fewer)
        places, feature_map = self.places[kept], self.feature_map
        if isinstance(feature_map, Polynomials):  # there are many: those that are left out are not even computed
            used, places = np.unique(places, return_inverse=True)
            feature_map = Polynomials(feature_map.dimension, tuple(feature_map.terms[i] for i in used))
        return replace(self, feature_map=feature_map, places=places, contrasts=self.contrasts[kept], **fewer)

    def turned(self, gram: Float[np.ndarray, "alone alone"]) -> "Basis":
        """Directions that are uncorrelated where those `alone`, without contrasts, have these mean products.

        For weights w of given independent variances S, w . f(x) is a Gaussian process, and these are its principal
        components: eigenvectors of S^1/2 G S^1/2, largest first, without those that are next to nothing.
        """
        products = gram
        if self.matrix is None:
            products = gram[np.ix_(self.places, self.places)] * (self.contrasts[:, None] == self.contrasts)
        root = np.sqrt(self.variances)
        found, vectors = np.linalg.eigh(root[:, None] * products * root)
        kept = np.flatnonzero(found > _SMALLEST * found[-1])[::-1]
        turn = root[:, None] * vectors[:, kept] / np.sqrt(found[kept])
        parts = turn**2 / self.variances[:, None]
        groups = [np.bincount(self.groups, part).argmax() for part in parts.T]  # that of most of it
        matrix = turn if self.matrix is None else self.matrix @ turn
        return replace(self, matrix=matrix, variances=found[kept], groups=np.unique(groups, return_inverse=True)[1])

    @cached_property
    def between_actions(self) -> Float[np.ndarray, "contrasts actions"]:
        """Orthonormal functions of the action, of mean square 1; the first is constant."""
        raw = np.eye(self.actions) - np.eye(self.actions, k=1) if self.actions > 1 else np.eye(1)
        raw[:, 0] = 1.0
        orthogonal = np.linalg.qr(raw)[0]
        return (orthogonal * np.sqrt(self.actions) * np.sign(orthogonal[0, 0])).T

    def raw(self, points: Float[np.ndarray, "rows d"], knots: np.ndarray | None = None) -> np.ndarray:
        """The map's features, after the constant, without contrasts; of points that the knots stretch before."""
        found = self.feature_map(points if knots is None else stretch(points, knots))
        if self.constant:
            found = np.insert(found, 0, 1.0, axis=1)
        if self.sizes is not None:
            found *= self.sizes
        return found

    def alone(self, points: Float[np.ndarray, "rows d"], knots: np.ndarray | None = None) -> np.ndarray:
        """The directions without contrasts."""
        found = self.raw(points, knots)
        return found if self.matrix is None else found @ self.matrix

    def features(
        self, points: Float[np.ndarray, "rows d"], action: np.ndarray | None = None, *, knots: np.ndarray | None = None
    ) -> np.ndarray:
        """Returns the features of rows: points of the unit box, and actions."""
        found = self.raw(points, knots)
        if len(self.places) < found.shape[1] or self.actions > 1:
            found = found[:, self.places]
        if self.actions > 1:
            assert action is not None
            found *= self.between_actions[:, action].T[:, self.contrasts]
        return found

    def directions(self, points: Float[np.ndarray, "rows d"], action: np.ndarray | None = None) -> np.ndarray:
        """Returns what weights are fitted of."""
        found = self.features(points, action)
        return found if self.matrix is None else found @ self.matrix

    def of_features(self, fitted: Float[np.ndarray, " directions"]) -> Float[np.ndarray, " features"]:
        """The weights of features that weights of directions come to."""
        return fitted if self.matrix is None else self.matrix @ fitted

    def weights(self, fitted: Float[np.ndarray, " directions"]) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the map itself, shape (rank,) or (rank, actions), and a constant for each action."""
        table = np.zeros((self.feature_map.rank + self.constant, self.actions))
        table[self.places, self.contrasts] = self.of_features(fitted)
        if self.sizes is not None:
            table *= self.sizes[:, None]
        table = table @ self.between_actions
        offset = table[0] if self.constant else np.zeros(self.actions)
        table = table[int(self.constant) :]
        return (table[:, 0] if self.actions == 1 else table), offset


@dataclass(frozen=True, eq=False)
class StateLaw:
    """The law of one state, or of two that are compared."""

    shares: Float[np.ndarray, "d cells"]
    ties: Float[np.ndarray, "numbers numbers"] | None = None
    """The matrix by which independent normals become those behind the coordinates of one state or two; its rows have
    length 1. None if all are independent."""

    @classmethod
    def from_marginals(cls, answer: Float[np.ndarray, " size"], sigma: float, bins: int) -> "StateLaw":
        """Estimates it from noisy `Marginals`, up to their length, shrunk to uniform by the noise."""
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
        """Returns one state per row from d independent normal numbers, or two from 2d."""
        levels = ndtr(normals if self.ties is None else normals @ self.ties.T)
        risen = np.cumsum(np.pad(self.shares, ((0, 0), (1, 0))), axis=1)
        places = np.pad(np.linspace(0, 1, self.shares.shape[1] - 1), 1, mode="edge")
        d = len(risen)
        columns = [np.interp(one, risen[i % d], places) for i, one in enumerate(levels.T)]
        return [np.stack(columns[i : i + d], axis=1) for i in range(0, len(columns), d)]

    def tied(self, answer: Float[np.ndarray, " size"], sigma: float, compared: int) -> "StateLaw":
        """Returns it with ties that give the noisy `SecondMoments`, up to their length."""
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
            first, *other = (features(state, knots=self.knots) for state in states)
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
    """Returns off-diagonal covariances, of one state or two, by second moments: 0 if that may be noise.

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
    """Returns what stands out of symmetric noise: its eigenvalues reach sqrt(2d) sigma alone, and those beyond it are
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
