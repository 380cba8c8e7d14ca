"""Gaussian noise on knots, shaped by the ellipsoid of least trace around what one person can do.

Theorem. If the values at the knots of neighbours differ by v with v' S^-1 v <= 1, then adding N(0, S/mu^2) is mu-GDP.

The differences are the body {|v_j| <= rho, |v_{j+1} - v_j| <= l/d}. A convex function is largest at a vertex, so it is
enough that all vertices fulfil the inequality. Among such S the least trace is found from weights w on the vertices:
S = c M^(1/2) with M = sum w_i v_i v_i', and multiplying w_i by v_i' M^(-1/2) v_i/trace M^(1/2) raises the dual bound
until it meets the primal. Whatever the weights, c = max_i v_i' M^(-1/2) v_i makes the inequality true: a search that
stops early costs noise, never privacy.
"""

from functools import lru_cache

import numpy as np
from jaxtyping import Float

from quietq.privacy.knot_body import vertices
from quietq.privacy.relations import LipschitzBall


def shape(ball: LipschitzBall, pieces: int) -> Float[np.ndarray, "knots knots"]:
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
    """M^(1/2) and M^(-1/2)."""
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, values[-1] * 1e-12)
    return (vectors * np.sqrt(values)) @ vectors.T, (vectors / np.sqrt(values)) @ vectors.T
