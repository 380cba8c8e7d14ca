"""A function that may leave: numbers that the noise has already gone into, and their certificate.

Nothing else is in here: no key, no cache, no raw value. It answers any number of queries, everywhere the same, and may
be copied, pickled and shared.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from quietq.mechanisms.publishable import (
    IN_TRAINING,
    Arrays,
    Details,
    InvalidRelease,
    Publishable,
    Stored,
    check_outputs,
    require,
)
from quietq.noise.box import UNIT, Box
from quietq.noise.grid_path import look_up
from quietq.noise.kernels import BandLimited, FeatureKernel, FiniteRank
from quietq.noise.kernels.finite_rank import weighted_features
from quietq.privacy import Certificate, InvalidInput
from quietq.privacy.checks import count

MOST_RANK = 2**14  # a larger band-limited kernel takes minutes to rebuild


MEANS = frozenset({"mean-of-people", "mean-within-right-angles"})
"""Norms of means over people, by which models are fitted and nothing else is released."""


def kinds_of(norm: dict[str, Any]) -> list[str]:
    """The kinds of norm of one query, or of several; whoever is drawn at random is asked for means."""
    if "of" not in norm:
        return [norm["kind"]]
    return [part["norm"]["kind"] for part in norm["of"]] + ["mean-of-people"] * len(norm.get("drawn", ()))


class PrivateFunction(Publishable):
    """What a mechanism releases; call it with states."""

    certificate: Certificate  # pyright: ignore[reportIncompatibleVariableOverride]

    def check_norm(self, norm: dict[str, Any], certificate: Certificate) -> None:
        kinds = kinds_of(norm)
        fits = all(_FORMS.get(kind, type(self)) is type(self) and kind not in IN_TRAINING | MEANS for kind in kinds)
        require(fits, f"its noise must be that of a {type(self).__name__}")
        self.require_outputs(certificate)


@dataclass(frozen=True, eq=False, repr=False)
class PrivateTable(PrivateFunction):
    """Released values on a dyadic grid; a query reads the nearest."""

    kind: ClassVar[str] = "table"
    details: ClassVar = ("levels",)
    arrays: ClassVar = ("values",)
    values: Float[np.ndarray, "..."]
    levels: int
    box: Box
    certificate: Certificate

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", count("levels", self.levels))
        super().__post_init__()

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        return look_up(self.values, self.box, self.levels, states)

    @staticmethod
    def check(levels: Any, values: np.ndarray, box: Box) -> None:
        check_outputs(values, [_side(levels)] * box.dimension)


@dataclass(frozen=True, eq=False, repr=False)
class PrivateKnots(PrivateFunction):
    """Released values at equally spaced knots of an interval, straight lines between them."""

    kind: ClassVar[str] = "knots"
    arrays: ClassVar = ("values",)
    values: Float[np.ndarray, " knots"]
    box: Box
    certificate: Certificate

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        return np.asarray(np.interp(self.box.to_unit(states), np.linspace(0, 1, len(self.values)), self.values))

    @staticmethod
    def check(values: np.ndarray, box: Box) -> None:
        require(box.dimension == values.ndim == 1 and len(values) > 1, "knots are a list of at least two values")

    def check_norm(self, norm: dict[str, Any], certificate: Certificate) -> None:
        super().check_norm(norm, certificate)
        knots = len(self.values)
        named = 1 + (len(norm["shape"]) if "shape" in norm else norm.get("pieces", knots - 1))
        require(named == knots, "its knots must be those that its certificate names")


@dataclass(frozen=True, eq=False, repr=False)
class PrivateSum(PrivateFunction):
    """Released functions of one coordinate each, on dyadic grids, summed."""

    kind: ClassVar[str] = "sum"
    details: ClassVar = ("levels",)
    arrays: ClassVar = ("values",)
    values: Float[np.ndarray, "parts points ..."]
    levels: int
    box: Box
    certificate: Certificate

    @property
    def parts(self) -> list[PrivateTable]:
        each = enumerate(self.values)
        return [PrivateTable(part, self.levels, self.box.coordinate(i), self.certificate) for i, part in each]

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        x = self.box.to_unit(states)
        coordinates = np.moveaxis(x, -1, 0) if self.box.dimension > 1 else [x]
        parts = zip(self.values, coordinates, strict=True)
        return np.asarray(sum(look_up(part, UNIT, self.levels, coordinate) for part, coordinate in parts))

    @staticmethod
    def check(levels: Any, values: np.ndarray, box: Box) -> None:
        check_outputs(values, [box.dimension, _side(levels)])


@dataclass(frozen=True, eq=False, repr=False)
class PrivateWeights(PrivateFunction):
    """Released weights of public features."""

    kind: ClassVar[str] = "weights"
    needs_code: ClassVar[bool] = True
    arrays: ClassVar = ("weights",)
    weights: Float[np.ndarray, "..."]
    kernel: FiniteRank
    box: Box
    certificate: Certificate

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        return weighted_features(self.kernel, self.weights, self.box, states)

    def to_arrays(self) -> tuple[Details, Arrays]:
        arrays = {"weights": self.weights}
        if self.features is not None:
            arrays["check"] = _at_some_points(self.features)
        return {"kernel": self.kernel.describe()}, arrays

    @property
    def features(self) -> FeatureKernel | None:
        """Its kernel, if that is code, which a file does not hold."""
        return self.kernel if isinstance(self.kernel, FeatureKernel) else None

    @classmethod
    def from_arrays(cls, stored: Stored) -> "PrivateWeights":
        is_code = "check" in stored.arrays
        require(is_code or stored.features is None, "only weights of features are loaded with features")
        stored.expect({"kernel"}, {"weights", "check"} if is_code else {"weights"})
        stated, weights, box = stored.details["kernel"], stored.arrays["weights"], stored.box
        require(isinstance(stated, dict), "weights have a kernel")
        kernel = _known_features(stated, stored) if is_code else _rebuilt(stated, len(weights))
        check_outputs(weights, [len(weights)])
        require(kernel.dimension == box.dimension, "kernel and box must have the same dimension")
        return cls(weights, kernel, box, stored.certificate)

    def check_norm(self, norm: dict[str, Any], certificate: Certificate) -> None:
        super().check_norm(norm, certificate)
        stated = norm["kernel"] if norm["kind"] == "ball" else norm
        own = norm["kind"] not in _FORMS or self.kernel.describe() == stated
        require(own, "its kernel must be that of its certificate")


@dataclass(frozen=True, eq=False, repr=False)
class PrivateCells(PrivateFunction):
    """One released value per cell of one coordinate; cells lie between edges that rise from one end of the box to the
    other.
    """

    kind: ClassVar[str] = "cells"
    arrays: ClassVar = ("edges", "values")
    edges: Float[np.ndarray, " edges"]
    values: Float[np.ndarray, " cells"]
    box: Box
    certificate: Certificate

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        self.box.to_unit(states)  # refuses what lies outside
        return np.asarray(self.values[np.searchsorted(self.edges[1:-1], np.asarray(states, float), side="right")])

    @staticmethod
    def check(edges: np.ndarray, values: np.ndarray, box: Box) -> None:
        flat = box.dimension == edges.ndim == values.ndim == 1
        require(flat and len(edges) == len(values) + 1, "there is one value between two edges")
        rises = (np.diff(edges) > 0).all() and (edges[0], edges[-1]) == (box.low[0], box.high[0])
        require(rises, "the edges must rise from one end of the box to the other")

    def check_norm(self, norm: dict[str, Any], certificate: Certificate) -> None:
        """Cells may be computed from anything that was released, but not from an agent."""
        alone = norm["kind"] not in IN_TRAINING or norm["kind"] == "smooth-bound"
        require(alone, "its certificate is for an agent, and cells are not one")


_FORMS: dict[str, type[PrivateFunction]] = {
    "exponential": PrivateTable, "product": PrivateTable, "additive": PrivateSum, "features": PrivateWeights,
    "ball": PrivateWeights, "band-limited": PrivateWeights, "knots": PrivateKnots, "increments": PrivateKnots,
}  # fmt: skip
"""What noise in these norms is released as; noise in a norm of its own says so by what it releases."""


def _side(levels: Any) -> int:
    """The number of grid points on a side of a table."""
    require(type(levels) is int and 1 <= levels <= 26, "levels must be 1 to 26")
    return 2**levels + 1


def _rebuilt(kernel: Details, rank: int) -> BandLimited:
    known = set(kernel) == {"kind", "half_width", "rank", "tolerance"} and kernel["kind"] == "band-limited"
    width, tolerance = kernel.get("half_width", ""), kernel.get("tolerance", "")
    require(known and type(width) is type(tolerance) is float, "its kernel is not known here")
    # A kernel of half-width W has more than W terms, so a rank that fits bounds the work of rebuilding it.
    require(0 < width <= rank <= MOST_RANK, f"a band-limited kernel has at most {MOST_RANK} terms")
    try:
        rebuilt = BandLimited(width, tolerance)
    except InvalidInput as error:
        raise InvalidRelease(f"This is not a release: {error}") from error
    require(rebuilt.rank == kernel["rank"] == rank, "the number of weights must be the kernel's rank")
    return rebuilt


def _known_features(kernel: Details, stored: Stored) -> FeatureKernel:
    """The features that were given, if they are those that the weights were released for."""
    phi, features, arrays = kernel.get("phi"), stored.features, stored.arrays
    require(isinstance(phi, str), "features need their name")
    if features is None:
        raise InvalidRelease(
            f"This release holds weights of the feature map {phi!r}, which is code and not in the file: "
            "give the kernel that they were made with, load(path, features=kernel)."
        )
    there = _at_some_points(features)
    same = features.rank == len(arrays["weights"]) and there.shape == arrays["check"].shape
    if not (same and np.allclose(there, arrays["check"], rtol=1e-9, atol=1e-12)):
        raise InvalidRelease(f"The features given are not those of the release, {phi!r}: they differ in value.")
    return features


def _at_some_points(kernel: FeatureKernel) -> Float[np.ndarray, "points features"]:
    """A feature map at a few public points, to recognise it by."""
    points = (1 + np.sin(np.outer(np.arange(1, 6), np.arange(1, kernel.dimension + 1)))) / 2
    return kernel.features(points if kernel.dimension > 1 else points[:, 0])
