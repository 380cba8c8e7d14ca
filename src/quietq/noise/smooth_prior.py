"""What is expected of a reward before anybody was asked: which polynomials matter, and how much. Public.

Rewards are taken for a mixture: Gaussian kernels of several length scales (in product polynomials these are nearly
diagonal), additive kernels of several length scales, and a linear part. One length scale would be too smooth for rough
rewards, or too rough for smooth ones.
"""

import heapq
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from quietq.noise.feature_maps import MOST_DEGREE, Term

ACTIONS_OWN_SHARE = 0.5
"""How much of a reward's variance is expected to differ between actions."""


@lru_cache(maxsize=32)
def smooth_prior(dimension: int, most: int = 300) -> tuple[tuple[Term, ...], Float[np.ndarray, " terms"]]:
    """The `most` terms of largest variance, without the constant, largest first; all variances together are at most 1.

    >>> terms, variances = smooth_prior(2)
    >>> terms[0], bool(0.9 < variances.sum() <= 1)
    (((0, 1),), True)
    """
    # Of the variance, joint kernels have a half, additive ones a quarter, and a linear part the other quarter.
    joint = [_variances(scale * dimension**0.5) for scale in (0.15, 0.3, 0.6, 1.2)]
    single = [_variances(scale) for scale in (0.1, 0.2, 0.4)]
    terms = {((column, degree),) for column in range(dimension) for degree in range(1, MOST_DEGREE + 1)}
    for variances in joint:
        terms |= _largest_products(variances, dimension, most)
    ordered = sorted(terms)
    total = np.zeros(len(ordered))
    for variances in joint:
        products = np.array([np.prod([variances[degree] for _, degree in term]) for term in ordered])
        total += 0.5 / len(joint) * products / (variances.sum() ** dimension - 1)
    alone = np.array([term[0][1] if len(term) == 1 else 0 for term in ordered])
    for variances in single:
        parts = np.where(alone > 0, variances[alone], 0.0)
        total += 0.25 / len(single) * parts / (dimension * variances[1:].sum())
    total += 0.25 * (alone == 1) / dimension
    order = np.argsort(-total, kind="stable")[:most]
    return tuple(ordered[i] for i in order), total[order]


def beyond(dimension: int) -> float:
    """Which part of the variance the prior expects of terms that are none of those.

    >>> [round(beyond(dimension), 4) for dimension in (2, 4, 8)]
    [0.0, 0.0021, 0.0419]
    """
    return max(1.0 - float(smooth_prior(dimension)[1].sum()), 0.0)


def _variances(scale: float) -> Float[np.ndarray, " degrees"]:
    """What a Gaussian kernel of this length scale on [0, 1] gives to each degree, relative to the constant."""
    nodes, weights = np.polynomial.legendre.leggauss(48)
    basis = np.polynomial.legendre.legvander(nodes, MOST_DEGREE) * np.sqrt(2 * np.arange(MOST_DEGREE + 1) + 1)
    weighted = basis * (weights / 2)[:, None]
    kernel = np.exp(-((nodes[:, None] - nodes) ** 2) / (8 * scale**2))  # nodes lie in [-1, 1]
    found = np.einsum("ik,ij,jk->k", weighted, kernel, weighted)
    return np.maximum(found / found[0], 1e-12)


def _largest_products(variances: np.ndarray, dimension: int, most: int) -> set[Term]:
    """The terms whose products of variances are largest: a best-first search, for variances fall with the degree."""
    heap: list[tuple[float, Term]] = [(-variances[1], ((column, 1),)) for column in range(dimension)]
    heapq.heapify(heap)
    found: set[Term] = set()
    while heap and len(found) < most:
        size, term = heapq.heappop(heap)
        found.add(term)
        column, degree = term[-1]
        if degree < MOST_DEGREE:
            ratio = variances[degree + 1] / variances[degree]
            heapq.heappush(heap, (size * ratio, (*term[:-1], (column, degree + 1))))
        if len(term) < 6:
            for further in range(column + 1, dimension):
                heapq.heappush(heap, (size * variances[1], (*term, (further, 1))))
    return found
