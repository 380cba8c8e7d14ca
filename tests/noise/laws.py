"""Is a sample of paths at some points what the kernel says? Whitened Kolmogorov-Smirnov, and covariances."""

from collections.abc import Callable

import numpy as np
from scipy.stats import kstest

from quietq.noise import Entropy, SystemEntropy
from quietq.noise.box import UNIT, Domain, box_for
from quietq.noise.grid_path import draw_grid, look_up
from quietq.paper import FiniteRank
from quietq.privacy.relations import Exponential, whiten

TAIL = 1e-6


def grid_path(
    kernel: Exponential,
    levels: int = 16,
    sigma: float = 1.0,
    domain: Domain | None = None,
    entropy: Entropy | None = None,
) -> Callable[[object], np.ndarray]:
    """One path on the whole grid, as a function of states that is read as released tables are."""
    box = box_for(kernel.dimension, domain)
    values = sigma * draw_grid(kernel, levels, (), SystemEntropy() if entropy is None else entropy)

    def path(states: object) -> np.ndarray:
        if not kernel.summed:
            return look_up(values, box, levels, states)
        unit = box.to_unit(states)
        return np.asarray(sum(look_up(part, UNIT, levels, unit[..., i]) for i, part in enumerate(values)))

    return path


def p_value(kernel: Exponential | FiniteRank, points: np.ndarray, samples: np.ndarray) -> float:
    """p of the hypothesis that rows of `samples` are paths of `kernel` at increasing, distinct `points`."""
    if isinstance(kernel, Exponential) and kernel.dimension == 1:
        white = whiten(kernel.beta, points, samples)
    else:
        white = np.linalg.solve(np.linalg.cholesky(kernel.covariance(points, points)), samples.T).T
    pooled = kstest(white.ravel(), "norm").pvalue
    # a wrong correlation can hide from the pooled test: look along random directions too
    directions = np.random.default_rng(1).standard_normal((4, white.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return float(min(pooled, *(4 * kstest(white @ d, "norm").pvalue for d in directions)))


def largest_covariance_error(kernel: Exponential | FiniteRank, points: np.ndarray, samples: np.ndarray) -> float:
    """The largest deviation of a sample covariance from the kernel's, in standard errors."""
    exact = kernel.covariance(points, points)
    variance = np.diag(exact)
    error = np.sqrt((np.outer(variance, variance) + exact**2) / len(samples))
    return float(np.abs((samples.T @ samples / len(samples) - exact) / error).max())


def sample(make: Callable[[int], Callable[[np.ndarray], np.ndarray]], points: np.ndarray, paths: int) -> np.ndarray:
    """Values of `paths` paths at `points`, each asked in an order of its own, one in sixteen point by point."""
    rng = np.random.default_rng(2)
    rows = np.empty((paths, len(points)))
    for i in range(paths):
        path, order = make(i), rng.permutation(len(points))
        if i % 16:
            rows[i, order] = path(points[order])
        else:
            for j in order:
                rows[i, j] = path(points[j])
    return rows
