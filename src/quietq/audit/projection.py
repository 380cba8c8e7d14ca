"""The best test between two functions of which one was released with noise: a projection, where the noise is Gaussian.

Theorem. Let X = f + sigma g on a grid, g Gaussian with covariance K. Between f and f' the likelihood ratio is an
increasing function of w . X with w = K^-1 (f' - f), so by Neyman and Pearson no test of X has fewer misses at as many
false alarms than a threshold on w . X. That score is normal with standard deviation sigma |f' - f|_K in both worlds,
and its means are |f' - f|_K^2 apart: the worlds are exactly mu-GDP apart with mu = |f' - f|_K/sigma, where
|d|_K^2 = d . K^-1 d. With the threshold in the middle between the means the test errs with Phi(-mu/2) in both.

Ornstein-Uhlenbeck paths are Markov, so K^-1 is tridiagonal, and the weights cost O(points). With a = exp(-beta h)
and the whitened increments u_0 = d_0, u_i = (d_i - a d_{i-1})/sqrt(1 - a^2), it is w = A' u for the two-banded A that
made them: no difference of large numbers beyond the increments' own is taken.
"""

import math

import numpy as np
from jaxtyping import Float

from quietq.noise.kernels import Exponential
from quietq.noise.kernels.exponential import whiten
from quietq.privacy.checks import instance, numbers, positive
from quietq.privacy.errors import InvalidInput


def optimal_weights(kernel: Exponential, difference: object) -> Float[np.ndarray, " points"]:
    """K^-1 `difference`, for values at equally spaced points from 0 to 1, both ends included.

    >>> weights = optimal_weights(Exponential(2.0), np.exp(-2.0 * np.linspace(0, 1, 5)))  # K(., 0): evaluation at 0
    >>> bool(np.allclose(weights, [1, 0, 0, 0, 0]))
    True
    """
    values = _on_grid(kernel, difference)
    decay, scale = _step(kernel, len(values))
    whitened = whiten(kernel.beta, np.linspace(0, 1, len(values)), values)
    steps = whitened[1:] / scale
    return np.append(whitened[:1], steps) - np.append(decay * steps, 0.0)


def distance(kernel: Exponential, difference: object) -> float:
    """|`difference`|_K on the grid: sqrt(d . K^-1 d), at most the norm of any function with these values.

    >>> round(distance(Exponential(2.0), np.ones(65)) ** 2, 3)  # 1 + beta/2 for the constant function
    2.0
    """
    values = _on_grid(kernel, difference)
    return float(np.linalg.norm(whiten(kernel.beta, np.linspace(0, 1, len(values)), values)))


def mu_between(kernel: Exponential, difference: object, sigma: float) -> float:
    """How far apart in Gaussian DP two releases with this difference are, exactly: |difference|_K/sigma.

    >>> round(mu_between(Exponential(2.0), np.ones(65), sigma=2.0), 4)
    0.7071
    """
    return distance(kernel, difference) / positive("sigma", sigma)


def _on_grid(kernel: Exponential, difference: object) -> np.ndarray:
    instance("kernel", kernel, Exponential, "Exponential, e.g. Exponential(beta=4.0)")
    values = numbers("difference", difference)
    if values.ndim != 1 or len(values) < 2:
        raise InvalidInput(f"difference must be values at two or more grid points, not of shape {values.shape}.")
    if not np.isfinite(values).all():
        raise InvalidInput("difference must be finite at every grid point.")
    return values


def _step(kernel: Exponential, points: int) -> tuple[float, float]:
    """exp(-beta h) and sqrt(1 - exp(-2 beta h)) for the grid's step h."""
    exponent = -kernel.beta / (points - 1)
    return math.exp(exponent), math.sqrt(-math.expm1(2 * exponent))
