"""What Gaussian noise and releases without a mu come to together, by their privacy losses.

Theorem. What is (e, d)-DP is no easier to attack than one that gives everything away with probability d, and else
answers by randomised response, whose privacy loss is e with probability 1/(1 + exp(-e)) and else -e (Kairouz, Oh &
Viswanath 2015). Losses of releases add up, whether each is chosen by those before or used at once with others (Vadhan &
Zhang 2023). So with mu-GDP noise beside releases whose losses L have been added up,

    delta(epsilon) = d + (1 - d) E delta_mu(epsilon - L),   d the sum of all d.

It is exact for up to `FEW` releases. With more, a loss is split among the two nearest points of a grid, such that its
probability is kept under both neighbours: putting the two together again is post-processing, so this can only add. And
small ones count as Gaussian: randomised response is mu-GDP with Phi(mu/2) = 1/(1 + exp(-e)), because its trade-off is
made of two chords of the Gaussian one (docs/theory.md, section 2).
"""

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from jaxtyping import Float
from scipy.special import erfinv, ndtri

from quietq.privacy.gaussian import delta_from_mu, deltas_from_mu
from quietq.privacy.roots import root

FEW = 8
GRID = 2.0**-10
SMALL = 2.0**-6
"""From here on, releases are on the grid: sixteen of its cells."""
MOST_EPSILON, MOST_MU = 8.0, 8.0
"""Beyond this sum, or this mu, nothing is gained."""
_ROUNDING = 1e-9  # relative: sums of positive numbers err by far less

Losses = tuple[float, Float[np.ndarray, " losses"], Float[np.ndarray, " losses"]]
"""The mu of those that count as Gaussian; the losses of all others together, and their probabilities."""


def delta_together(mu: float, apart: Mapping[float, int], delta: float, epsilon: float) -> float:
    """Of Gaussian noise beside releases of these epsilons, each so many times, that took `delta` together."""
    total = math.fsum(number * one for one, number in apart.items())
    least = 1.0 if epsilon < total else delta_from_mu(mu, epsilon - total) if mu else 0.0  # by adding up
    if apart and total <= MOST_EPSILON and mu <= MOST_MU:
        small, losses, chances = _losses(tuple(sorted(apart.items())))
        least = min(least, float(chances @ deltas_from_mu(math.hypot(mu, small), epsilon - losses)))
    return min(delta + (1 - delta) * least * (1 + _ROUNDING), 1.0)


def epsilon_together(mu: float, apart: Mapping[float, int], delta: float, at: float, most: float) -> float:
    """The least epsilon that holds at the delta `at`, if `most` is known to hold."""

    def excess(epsilon: float) -> float:
        return delta_together(mu, apart, delta, epsilon) - at

    if excess(0.0) <= 0:
        return 0.0
    if excess(most) >= 0:
        return most
    found = root(excess, 0.0, most, 1e-12)
    while excess(found) > 0:
        found = found * (1 + 1e-12) + 1e-12  # a step that large numbers feel too
    return min(found, most)


@lru_cache(maxsize=256)
def _losses(apart: tuple[tuple[float, int], ...]) -> Losses:
    if sum(number for _, number in apart) > FEW:
        return _on_grid(apart)
    losses, chances = np.zeros(1), np.ones(1)
    for epsilon, number in apart:
        for _ in range(number):
            up = 1 / (1 + math.exp(-epsilon))
            losses = np.concatenate([losses + epsilon, losses - epsilon])
            chances = np.concatenate([chances * up, chances * math.exp(-epsilon) * up])
    return 0.0, losses, chances


def _on_grid(apart: tuple[tuple[float, int], ...]) -> Losses:
    squares = [number * gaussian_mu(epsilon) ** 2 for epsilon, number in apart if epsilon < SMALL]
    chances = np.ones(1)
    for epsilon, number in apart:
        if epsilon >= SMALL:
            for _ in range(number):
                chances = _spread(chances, epsilon)
    reach = len(chances) // 2
    there = np.flatnonzero(chances)
    return math.sqrt(math.fsum(squares)), GRID * (there - reach), chances[there]


def _spread(chances: Float[np.ndarray, " before"], epsilon: float) -> Float[np.ndarray, " after"]:
    """The losses of one more release added; both arrays are centred at a loss of 0."""
    cells = math.floor(epsilon / GRID)
    above = math.expm1(cells * GRID - epsilon) / math.expm1(-GRID)  # the share of a loss of epsilon in the point above
    up = 1 / (1 + math.exp(-epsilon))
    shares = {cells + 1: up * above, cells: up * (1 - above)}
    # Under the other neighbour the same losses are negative: each point's share times e^-loss.
    shares |= {-k: share * math.exp(-k * GRID) for k, share in shares.items()}
    after = np.zeros(len(chances) + 2 * (cells + 1))
    for k, share in shares.items():
        start = cells + 1 + k
        after[start : start + len(chances)] += share * chances
    return after


def gaussian_mu(epsilon: float) -> float:
    """The least mu for which everything that is epsilon-DP is mu-GDP.

    >>> round(gaussian_mu(0.1), 5)
    0.12531
    """
    # Phi(mu/2) - 1/2 = tanh(epsilon/2)/2: without the half, of which a small epsilon would be lost
    small = 2 * math.sqrt(2) * float(erfinv(math.tanh(epsilon / 2)))
    found = small if epsilon < 1 else -2 * float(ndtri(math.exp(-epsilon) / (1 + math.exp(-epsilon))))
    return found * (1 + 1e-13)
