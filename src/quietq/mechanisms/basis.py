"""Which directions of a public feature map a model is fitted along, and how much each is expected to matter. Public.

Any map is a kernel, and its principal components over uniform states are uncorrelated features: each round of a fit can
then look at all of them at once. For the default, product polynomials, they are known in closed form; items of a
catalogue and columns of an embedding are taken as they are.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from quietq.feedback.loss import Loss
from quietq.mechanisms.private_model import stretch
from quietq.mechanisms.smooth_prior import smooth_prior
from quietq.noise.feature_maps import FeatureMap, Polynomials

CONSTANT = 1 / 16
"""The variance of a constant, in squared units of the range of ratings."""
OWN = 0.5
"""How much of a reward's variance is expected to differ between actions."""
_SMALLEST = 1e-6


@dataclass(frozen=True, eq=False)
class Basis:
    """Features, about uncorrelated and of variance 1 over uniform states, largest expected variance first.

    Each is one of the map's components, `places`, times a contrast between actions, if there are any.
    """

    feature_map: FeatureMap
    components: Float[np.ndarray, "rank components"] | Float[np.ndarray, " rank"] | None
    """A matrix, or one factor per feature; None for features that are components already."""
    means: Float[np.ndarray, " rank"]
    constant: bool
    """Whether the first component is a constant 1 besides those of the map."""
    places: Int[np.ndarray, " features"]
    contrasts: Int[np.ndarray, " features"]
    actions: int
    variances: Float[np.ndarray, " features"]
    """What is expected of each weight before anybody was asked."""
    groups: Int[np.ndarray, " features"]
    """Weights of one group are shrunk alike."""

    @classmethod
    def of(cls, feature_map: FeatureMap | None, dimension: int, loss: Loss) -> "Basis":
        """All features of a map, or by default polynomials, for a loss."""
        if feature_map is None:
            return cls._polynomials(dimension, loss)
        means, moments = feature_map.moments()
        if moments.ndim == 1:
            components, sizes = 1 / np.sqrt(moments), moments
        else:
            sizes, vectors = np.linalg.eigh(moments)
            kept = np.flatnonzero(sizes > _SMALLEST * sizes[-1])[::-1]
            sizes, components = sizes[kept], vectors[:, kept] / np.sqrt(sizes[kept])
        variances = loss.scale**2 * sizes / sizes.sum()
        groups = 1 + np.round(np.log2(sizes.max() / sizes) / 2).astype(int)  # of about the same size
        if loss.constant:
            variances, groups = np.append(CONSTANT, variances), np.append(0, groups)
        return cls._for_actions(feature_map, components, means, loss.constant, variances, groups, loss.actions)

    @classmethod
    def _polynomials(cls, dimension: int, loss: Loss) -> "Basis":
        terms, variances = smooth_prior(dimension)
        variances = loss.scale**2 * variances
        if loss.constant:
            terms, variances = ((), *terms), np.append(CONSTANT, variances)
        order = sorted(range(len(terms)), key=lambda i: len(terms[i]))
        feature_map = Polynomials(dimension, tuple(terms[i] for i in order))
        keys = [(len(term), sum(degree for _, degree in term)) for term in feature_map.terms]
        known = {key: i for i, key in enumerate(sorted(set(keys)))}
        groups = np.array([known[key] for key in keys])
        return cls._for_actions(
            feature_map, None, np.zeros(len(terms)), False, variances[order], groups, loss.actions
        )  # fmt: skip

    @classmethod
    def _for_actions(
        cls, feature_map: FeatureMap, components: np.ndarray | None, means: np.ndarray, constant: bool,
        variances: np.ndarray, groups: np.ndarray, actions: int,
    ) -> "Basis":  # fmt: skip
        places = np.repeat(np.arange(len(variances)), actions)
        contrasts = np.tile(np.arange(actions), len(variances))
        if actions > 1:
            share = np.where(contrasts == 0, 1 - OWN, OWN / (actions - 1))
            variances, groups = variances[places] * share, 2 * groups[places] + (contrasts > 0)
        order = np.argsort(-variances, kind="stable")
        return cls(
            feature_map, components, means, constant, places[order], contrasts[order], actions, variances[order],
            groups[order],
        )  # fmt: skip

    @property
    def size(self) -> int:
        return len(self.variances)

    def first(self, number: int) -> "Basis":
        """The features of largest expected variance, in the order of the map, and all that are worth as much."""
        kept = np.flatnonzero(self.variances >= self.variances[number - 1] * (1 - 1e-9))
        kept = kept[np.lexsort((self.contrasts[kept], self.places[kept]))]
        feature_map, means, places = self.feature_map, self.means, self.places[kept]
        if isinstance(feature_map, Polynomials):  # there are many: those that are left out are not even computed
            used, places = np.unique(places, return_inverse=True)
            feature_map = replace(feature_map, terms=tuple(feature_map.terms[i] for i in used))
            means = means[used]
        return replace(
            self, feature_map=feature_map, means=means, places=places, contrasts=self.contrasts[kept],
            variances=self.variances[kept], groups=self.groups[kept],
        )  # fmt: skip

    @cached_property
    def between_actions(self) -> Float[np.ndarray, "contrasts actions"]:
        """Orthonormal functions of the action, each an average over actions of squares 1; the first is constant."""
        raw = np.eye(self.actions) - np.eye(self.actions, k=1) if self.actions > 1 else np.eye(1)
        raw[:, 0] = 1.0
        orthogonal = np.linalg.qr(raw)[0]
        return (orthogonal * np.sqrt(self.actions) * np.sign(orthogonal[0, 0])).T

    @property
    def _count(self) -> int:
        """How many components there are."""
        return self.constant + (self.feature_map.rank if self.components is None else self.components.shape[-1])

    def features(self, points: Float[np.ndarray, "rows d"], action: np.ndarray | None = None) -> np.ndarray:
        """Of points of the unit box, as it was stretched."""
        found = self._components(points)
        if self.size < self._count * self.actions or self.actions > 1:
            found = found[:, self.places]
        if self.actions > 1:
            assert action is not None
            found *= self.between_actions[:, action].T[:, self.contrasts]
        return found

    def _components(self, points: np.ndarray) -> np.ndarray:
        found = self.feature_map(points)
        if self.components is None:
            return found
        found -= self.means
        if self.components.ndim == 1:
            found *= self.components
        else:
            found = np.einsum("ij,jk->ik", found, self.components)  # row by row, unlike a product of matrices
        return np.insert(found, 0, 1.0, axis=1) if self.constant else found

    def weights(self, fitted: Float[np.ndarray, " features"]) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the map's own features, shape (rank,) or (rank, actions), and a constant for each action."""
        table = np.zeros((self._count, self.actions))
        table[self.places, self.contrasts] = fitted
        table = table @ self.between_actions
        offset = np.zeros(self.actions)
        if self.constant:
            offset, table = table[0], table[1:]
        if self.components is not None:
            table = self.components[:, None] * table if self.components.ndim == 1 else self.components @ table
        offset = offset - self.means @ table
        return (table[:, 0] if self.actions == 1 else table), offset


@dataclass(frozen=True, eq=False)
class Stretched:
    """The features of a basis in the box as it was stretched: a value that can be sent to other processes."""

    basis: Basis
    knots: Float[np.ndarray, "d knots"]

    def __call__(self, points: Float[np.ndarray, "rows d"], action: np.ndarray | None = None) -> np.ndarray:
        return self.basis.features(stretch(points, self.knots), action)
