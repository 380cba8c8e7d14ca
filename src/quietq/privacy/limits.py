"""Caps on the score of *any* private algorithm.

Theorem. Let r and r' have opposite preferences (what scores p in [0, 1] under the one scores at most 1 - p under the
other) and be joined by `steps` steps between neighbours. With p and q an algorithm's expected scores under r and r',
every (epsilon, delta)-DP algorithm has p <= e^(k epsilon) (1 - q) + delta (e^(k epsilon) - 1)/(e^epsilon - 1), and
every mu-GDP one has min(p, q) <= Phi(k mu/2), where k = steps. It bounds the *pair*: an algorithm that ignores its
input is perfectly private and right by luck under one of the two.

Proof: docs/theory.md#limits.
"""

import math
from bisect import bisect_left

from scipy.special import ndtr

from quietq.privacy.budget import Budget
from quietq.privacy.checks import MOST, count, positive, real
from quietq.privacy.errors import InvalidInput


def steps_between(distance: float, radius: float) -> int:
    """Returns how many neighbouring steps lead from r to r'.

    For a Lipschitz ball the slope must be covered as well: it is the larger of two numbers, the other one for the slope
    of r - r' and that of a difference of neighbours.

    Args:
        distance: The distance |r - r'|.
        radius: The distance of neighbours.

    """
    ratio = positive("distance", distance) / positive("radius", radius)
    if ratio > MOST:
        raise InvalidInput(
            f"distance {distance!r} is more than {MOST:g} times radius {radius!r}: give a larger radius."
        )
    return max(math.ceil(ratio * (1 - 1e-12)), 1)  # 0.3/0.1 is three steps, whatever the last bit says


def cap_gdp(mu: float, steps: int) -> float:
    """Returns the best lesser score under r and r' of any mu-GDP algorithm.

    Args:
        mu: The parameter of Gaussian differential privacy.
        steps: The number of neighbouring steps from r to r'.

    """
    return float(ndtr(count("steps", steps) * positive("mu", mu) / 2))


def cap_any_dp(budget: Budget, steps: int) -> float:
    """Returns a cap on the lesser score under r and r' of any (epsilon, delta)-DP algorithm; for one step it is
    attained.

    Args:
        budget: The (epsilon, delta).
        steps: The number of neighbouring steps from r to r'.

    """
    k, e = count("steps", steps), budget.epsilon
    # p = q = (e^{ke} + delta_k)/(1 + e^{ke}), divided through by e^{ke} so that nothing overflows
    shrunk = math.exp(-k * e)
    group_delta = budget.delta * -math.expm1(-k * e) / math.expm1(e) if e < 700 else 0.0
    return min((1 + group_delta) / (1 + shrunk), 1.0)


def steps_needed(score: float, budget: Budget, *, gaussian: bool) -> int:
    """Returns the fewest steps at which a score under both r and r' is not ruled out.

    Args:
        score: The score.
        budget: The (epsilon, delta).
        gaussian: Whether the noise is Gaussian; otherwise any.

    """
    score = real("score", score)
    if not 0 < score < 1:
        raise InvalidInput(f"score must be above 0 (the worst policy) and below 1 (the best), not {score!r}.")

    def possible(k: int) -> bool:
        return (cap_gdp(budget.mu, k) if gaussian else cap_any_dp(budget, k)) >= score

    fewest = bisect_left(range(1, MOST + 1), True, key=possible) + 1
    if fewest > MOST:
        raise InvalidInput(f"score {score!r} needs more than {MOST:g} steps at {budget}: give a larger budget.")
    return fewest


def people_needed(score: float, budget: Budget, *, distance: float, width: float, gaussian: bool) -> int:
    """Returns how many people must stand behind a reward before a score is possible at all.

    Fewer people than this make the score impossible; that many do not make it easy.

    Args:
        score: The score, from 0 (the worst policy) to 1 (the best).
        budget: The (epsilon, delta).
        distance: The distance |r - r'| of two opposite mean rewards.
        width: The range of one person's reward.
        gaussian: Whether the noise is Gaussian; otherwise any.

    >>> people_needed(0.9, Budget(0.9, 1e-4), distance=0.5, width=0.5, gaussian=True)
    9

    """
    steps = steps_needed(score, budget, gaussian=gaussian)
    per_person = positive("width", width) / positive("distance", distance)
    # steps_between(distance, width/n) = ceil(n/per_person) must reach `steps`: the least n above (steps-1) per_person.
    needed = (steps - 1) * per_person * (1 + 1e-12)
    if needed > MOST:
        raise InvalidInput(f"score {score!r} needs more than {MOST:g} people of width {width!r} at {budget}.")
    return math.floor(needed) + 1
