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

from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import LipschitzBall

MOST_PIECES = 8
_MOST_VERTICES = 200_000


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


def vertices(step: float, pieces: int) -> Float[np.ndarray, "vertices knots"]:
    """Points that include every vertex of {|v_j| <= 1, |v_{j+1} - v_j| <= step}, up to sign.

    At a vertex the knots fall into runs whose steps are all full, up or down, and each of which touches 1 or -1. So a
    knot's value is sign (1 - k step) with a whole k of at most `pieces`, and k changes by one within a run.
    """
    if not 1 <= pieces <= MOST_PIECES:
        raise InvalidInput(f"Shaped Gaussian noise has 1 to {MOST_PIECES} pieces between knots, not {pieces}.")
    spots = {
        (sign, k): sign * (1 - k * step) for sign in (1, -1) for k in range(pieces + 1) if 1 - k * step >= -1 - 1e-9
    }
    near = {
        spot: [other for other in spots if abs(spots[other] - value) <= step * (1 + 1e-9)]
        for spot, value in spots.items()
    }
    found: list[list[float]] = []

    def extend(path: list[tuple[int, int]], settled: bool) -> None:
        if len(found) > _MOST_VERTICES:
            raise InvalidInput(f"{pieces} pieces have too many vertices for this range and slope: use fewer knots.")
        left = pieces + 1 - len(path)
        if not left:
            if settled:
                found.append([spots[spot] for spot in path])
            return
        sign, k = path[-1]
        for spot in ((sign, k - 1), (sign, k + 1)):  # the run goes on
            if spot in spots and (settled or spot[1] <= left - 1):
                extend([*path, spot], settled or spot[1] == 0)
        if settled:  # another run may begin
            for spot in near[path[-1]]:
                if spot[1] <= left - 1:
                    extend([*path, spot], spot[1] == 0)

    for spot, value in spots.items():
        if value >= -1e-9 and spot[1] <= pieces:
            extend([spot], spot[1] == 0)
    return np.unique(np.array(found), axis=0)
