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
    return ball.radius**2 * _unit_shape(round(step, 12) * (1 + 1e-11), pieces)


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

    At a vertex the knots fall into runs whose steps are all full, up or down, and each of which touches 1 or -1.
    """
    if not 1 <= pieces <= MOST_PIECES:
        raise InvalidInput(f"Shaped Gaussian noise has 1 to {MOST_PIECES} pieces between knots, not {pieces}.")
    levels = np.arange(0, 2 / step + 1e-9) * step
    anchored = np.unique(np.round(np.concatenate([1 - levels, levels - 1]), 10))
    anchored = anchored[np.abs(anchored) <= 1]
    found: list[tuple[float, ...]] = []

    def touches(value: float) -> bool:
        return abs(abs(value) - 1) < 1e-9

    def extend(path: tuple[float, ...], settled: bool) -> None:
        if len(found) > _MOST_VERTICES:
            raise InvalidInput(f"{pieces} pieces have too many vertices for this range and slope: use fewer knots.")
        if len(path) == pieces + 1:
            if settled:
                found.append(path)
            return
        last = path[-1]
        left = pieces + 1 - len(path)
        for change in (step, -step):
            value = last + change
            if abs(value) <= 1 + 1e-9:
                value = min(max(value, -1.0), 1.0)
                done = settled or touches(value)
                if done or (1 - abs(value)) / step <= left - 1 + 1e-9:
                    extend((*path, value), done)
        if settled:  # a new run may begin, with a step that is not full
            for value in anchored[np.abs(anchored - last) < step - 1e-9].tolist():
                done = touches(value)
                if done or (1 - abs(value)) / step <= left - 1 + 1e-9:
                    extend((*path, value), done)

    for value in anchored[anchored >= 0].tolist():
        extend((value,), touches(value))
    return np.array(found)
