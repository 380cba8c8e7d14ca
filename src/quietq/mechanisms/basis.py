"""Which directions of a public feature map a model is fitted along, and how much each is expected to matter. Public.

Any map is a kernel, and its principal components over uniform states are uncorrelated: each round of a fit can then
look at all of them at once. For the default, product polynomials, they are known in closed form; items of a catalogue
and columns of an embedding are taken as they are. With actions, each component is multiplied by contrasts between them.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from quietq.feedback.loss import Loss
from quietq.noise.feature_maps import FeatureMap, Polynomials
from quietq.noise.smooth_prior import ACTIONS_OWN_SHARE, smooth_prior
from quietq.released.private_model import stretch

CONSTANT = 1 / 16
"""The variance of a constant, in squared units of the range of ratings."""
_SMALLEST = 1e-6


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

    def raw(self, points: Float[np.ndarray, "rows d"]) -> Float[np.ndarray, "rows raw"]:
        """The map's features, after the constant, without contrasts."""
        found = self.feature_map(points)
        if self.constant:
            found = np.insert(found, 0, 1.0, axis=1)
        if self.sizes is not None:
            found *= self.sizes
        return found

    def alone(self, points: Float[np.ndarray, "rows d"]) -> Float[np.ndarray, "rows alone"]:
        """The directions without contrasts."""
        return self.raw(points) if self.matrix is None else self.raw(points) @ self.matrix

    def features(self, points: Float[np.ndarray, "rows d"], action: np.ndarray | None = None) -> np.ndarray:
        """Of rows: points of the unit box, as it was stretched, and actions."""
        found = self.raw(points)
        if len(self.places) < found.shape[1] or self.actions > 1:
            found = found[:, self.places]
        if self.actions > 1:
            assert action is not None
            found *= self.between_actions[:, action].T[:, self.contrasts]
        return found

    def directions(self, points: Float[np.ndarray, "rows d"], action: np.ndarray | None = None) -> np.ndarray:
        """What weights are fitted of."""
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


def features_of_stretched(
    basis: Basis,
    knots: Float[np.ndarray, "d knots"],
    points: Float[np.ndarray, "rows d"],
    action: np.ndarray | None = None,
) -> np.ndarray:
    """The features of rows, after the box was stretched by the knots."""
    return basis.features(stretch(points, knots), action)
