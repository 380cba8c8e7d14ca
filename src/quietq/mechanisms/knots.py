"""Gaussian noise on the values at a few knots, shaped by the ellipsoid of least trace around what one person can do.

Theorem. If the values at the knots of neighbours differ by v with v' S^-1 v <= 1, then adding N(0, S/mu^2) is mu-GDP.

The differences are the body {|v_j| <= rho, |v_{j+1} - v_j| <= l/d}. A convex function is largest at a vertex, so it is
enough that all vertices fulfil the inequality. Among such S the least trace is found from weights w on the vertices:
S = c M^(1/2) with M = sum w_i v_i v_i', and multiplying w_i by v_i' M^(-1/2) v_i/trace M^(1/2) raises the dual bound
until it meets the primal. Whatever the weights, c = max_i v_i' M^(-1/2) v_i makes the inequality true: a search that
stops early costs noise, never privacy.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.mechanisms.laws import Gaussian
from quietq.mechanisms.mechanism import SLACK, Mechanism, Query, Task, propose_pieces
from quietq.mechanisms.private_function import PrivateKnots
from quietq.noise import Box, Entropy
from quietq.noise.allowance import largest_and_error, widen_ball
from quietq.noise.evaluation import on_knots
from quietq.privacy import Assumption, Budget, Certificate, InvalidInput, LipschitzBall
from quietq.privacy.checks import real
from quietq.privacy.knot_body import MOST_PIECES, vertices
from quietq.privacy.norms import Norm, Record, largest_difference, register


@dataclass(frozen=True, eq=False)
class KnotShape:
    """Noise at knots of a mean variance of 1: L z."""

    root: Float[np.ndarray, "knots knots"]
    """L"""

    @property
    def norm(self) -> dict[str, Any]:
        shape = self.root @ self.root.T
        return {"kind": "knots", "shape": ((shape + shape.T) / 2).tolist()}

    def draw(self, shape: tuple[int, ...], entropy: Entropy) -> Float[np.ndarray, " knots"]:
        return self.root @ entropy.normals(shape)

    def length(self, difference: np.ndarray) -> float:
        return float(np.linalg.norm(np.linalg.solve(self.root, difference)))


class ShapedKnots(Mechanism):
    """Values at equally spaced knots, straight lines between them."""

    name = "knots"

    def __init__(self, ball: LipschitzBall, budget: Budget, box: Box, pieces: int, task: Task) -> None:
        self.relation, self.budget, self.box, self.pieces = ball, budget, box, pieces
        self._slope, self._exact = task.slope or 0.0, task.accuracy is None
        least = ball.radius / budget.mu  # a constant difference alone needs that much
        self.largest, self.error = largest_and_error(least, ball.radius, ball.people, task.largest, task.accuracy)
        self._wider = widen_ball(ball, pieces, self.error, SLACK)
        root = np.linalg.cholesky(least_shape(self._wider, pieces)) / budget.mu
        self.sigma = math.sqrt(float(np.sum(root**2)) / len(root))
        self._shape = KnotShape(root / self.sigma)
        looked = f"Only the values at {pieces + 1} public knots were looked at, noised once, not kept."
        self.conditions = (Assumption(looked, True),)

    def run(self) -> Generator[Query, np.ndarray, np.ndarray]:
        sensitivity = largest_difference(self._shape.norm, self._wider.describe())
        return (yield Query(self._values, sensitivity, Gaussian(self.sigma, self._shape)))

    def _values(self, feedback: Any) -> Float[np.ndarray, " knots"]:
        return on_knots(feedback.functions()[0], self.box, self.pieces, self._exact, self.largest)

    def result(self, released: np.ndarray, certificate: Certificate) -> PrivateKnots:
        return PrivateKnots(released, self.box, certificate)

    def expected_error(self) -> float:
        """Root mean square of the noise about its own mean, and of straight lines between knots."""
        shape, knots = self.sigma**2 * self._shape.root @ self._shape.root.T, self.pieces + 1
        noise = (np.trace(shape) - shape.sum() / knots) / knots
        return math.hypot(math.sqrt(noise), self._slope / (2 * self.pieces**1.5))

    @classmethod
    def propose(cls, task: Task) -> list[Mechanism]:
        if task.budget.is_pure:
            return task.refuse("Noise 'knots' is Gaussian and needs delta above 0; 'k-norm' works with delta = 0.")
        return propose_pieces(cls, task)


def least_shape(ball: LipschitzBall, pieces: int) -> Float[np.ndarray, "knots knots"]:
    """S for values at pieces + 1 equally spaced knots."""
    step = ball.lipschitz / pieces / ball.radius
    # twelve digits, rounded up, so that the same bounds for other numbers of people find the same shape
    return ball.radius**2 * _unit_shape(float(f"{step:.11e}") * (1 + 1e-10), pieces)


@lru_cache(maxsize=64)
def _unit_shape(step: float, pieces: int) -> np.ndarray:
    points = vertices(step, pieces)
    weights = np.full(len(points), 1 / len(points))
    for _ in range(2000):
        root, inverse = _roots(points.T @ (weights[:, None] * points))
        score = np.einsum("ij,jk,ik->i", points, inverse, points)
        trace = np.trace(root)
        if score.max() <= trace * 1.0005:
            break
        weights *= score / trace
        weights /= weights.sum()
    root, inverse = _roots(points.T @ (weights[:, None] * points))
    largest = np.einsum("ij,jk,ik->i", points, inverse, points).max()
    return root * largest * (1 + 1e-9)


def _roots(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, values[-1] * 1e-12)
    return (vectors * np.sqrt(values)) @ vectors.T, (vectors / np.sqrt(values)) @ vectors.T


def _difference(norm: Record, relation: Record) -> float | None:
    """A convex function is largest at a vertex of the body."""
    if relation["kind"] != "lipschitz-ball" or relation["actions"] != 1:
        return None
    shape, radius = np.array(norm["shape"], dtype=np.float64), relation["radius"]
    pieces = len(shape) - 1
    points = vertices(relation["lipschitz"] / pieces / radius, pieces)
    lengths = np.linalg.norm(np.linalg.solve(np.linalg.cholesky(shape), points.T), axis=0)
    return radius * float(lengths.max())


def _check_shape(name: str, value: object) -> None:
    """The covariance of noise at knots, in units of its mean variance."""
    rows: Any = value if isinstance(value, list | tuple) else ()
    knots = len(rows)
    square = all(isinstance(row, list | tuple) and len(row) == knots for row in rows)
    if not 2 <= knots <= MOST_PIECES + 1 or not square:
        raise InvalidInput(f"{name} must be a square of 2 to {MOST_PIECES + 1} rows.")
    shape = np.array([[real(name, number) for number in row] for row in rows])
    if not (np.array_equal(shape, shape.T) and math.isclose(float(np.trace(shape)), knots, rel_tol=1e-9)):
        raise InvalidInput(f"{name} must be symmetric, with a mean of 1 on its diagonal.")


register(
    "knots",
    Norm(
        fields={"shape": _check_shape},
        difference=_difference,
        words=lambda norm: f"the shape of the noise at {len(norm['shape'])} knots",
        dimension=lambda norm: 1,
        families=("gaussian",),
    ),
)
