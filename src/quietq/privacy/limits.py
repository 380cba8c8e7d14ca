"""What a promise means to somebody who guesses, and caps on the score of *any* private algorithm.

Theorem. Let r and r' have opposite preferences (what scores p in [0, 1] under the one scores at most 1 - p under the
other) and be joined by `steps` steps between neighbours. With p and q an algorithm's expected scores under r and r',
every (epsilon, delta)-DP algorithm has p <= e^(k epsilon) (1 - q) + delta (e^(k epsilon) - 1)/(e^epsilon - 1), and
every mu-GDP one has min(p, q) <= Phi(k mu/2), where k = steps. It bounds the *pair*: an algorithm that ignores its
input is perfectly private and right by luck under one of the two.

Theorem. Of two neighbours, either as likely as the other, nobody tells which one was there with a chance above
Phi(mu/2) from what is mu-GDP (the two errors add up to at least 2 Phi(-mu/2)), nor above (e^epsilon + delta)/(1 +
e^epsilon) from what is (epsilon, delta)-DP. Both are attained, so epsilon alone says little: at 1 it is 73.2 of 100 for
pure noise, and 55.4 for Gaussian noise with delta = 1e-5.

Proof: docs/theory.md#guessing and docs/theory.md#limits.
"""

import math
from bisect import bisect_left
from typing import TYPE_CHECKING

from scipy.special import expit, log_ndtr, ndtr

from quietq.privacy.budget import Budget, weak_delta
from quietq.privacy.checks import MOST, count, positive, real
from quietq.privacy.errors import InvalidInput

if TYPE_CHECKING:
    from quietq.privacy.certificate import Certificate

LARGE_EPSILON = 10.0
"""From here on a promise says hardly anything, and whoever makes it is warned."""


def steps_between(
    distance: float, radius: float, slope_distance: float | None = None, lipschitz: float | None = None
) -> int:
    """Returns how many neighbouring steps lead from r to r'.

    For a Lipschitz ball the slope must be covered as well.

    Args:
        distance: The distance |r - r'|.
        radius: The distance of neighbours.
        slope_distance: The slope of r - r'.
        lipschitz: The slope of a difference of neighbours.

    """
    steps = _ceiling("distance", distance, "radius", radius)
    if (slope_distance is None) != (lipschitz is None):
        raise InvalidInput("slope_distance and lipschitz belong together: give both or neither.")
    if slope_distance is None or lipschitz is None:
        return steps
    return max(steps, _ceiling("slope_distance", slope_distance, "lipschitz", lipschitz))


def _ceiling(name: str, whole: float, step_name: str, step: float) -> int:
    ratio = positive(name, whole) / positive(step_name, step)
    if ratio > MOST:
        raise InvalidInput(
            f"{name} {whole!r} is more than {MOST:g} times {step_name} {step!r}: give a larger {step_name}."
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


def guess(certificate: "Certificate") -> float:
    """Returns how often somebody who knows all but one person is right about that one at the most; at chance it is half
    of the time.

    Args:
        certificate: The certificate of a release.

    """
    if certificate.epsilon is None:
        raise InvalidInput(f"A certificate of standing {certificate.standing!r} promises nothing to bet on.")
    return guess_right(certificate.epsilon, certificate.delta or 0.0, certificate.mu)


def guess_right(epsilon: float, delta: float, mu: float | None = None) -> float:
    """The largest chance of being right: by mu where there is one, else by (epsilon, delta), of which no more is known.

    >>> round(guess_right(1.0, 0.0), 4), round(guess_right(1.0, 1e-5, mu=0.268053), 4)
    (0.7311, 0.5533)
    """
    if mu is not None:
        return float(ndtr(mu / 2))
    share = float(expit(epsilon))
    return share + (1 - share) * delta


def pure_epsilon(mu: float) -> float:
    """The epsilon of pure noise with which a guesser is right as often as with mu-GDP: it is then mu-GDP, too.

    >>> round(pure_epsilon(Budget(0.9, 1e-4).mu), 4)
    0.2284
    """
    return float(log_ndtr(mu / 2) - log_ndtr(-mu / 2))


def of_hundred(share: float) -> str:
    """In how many of 100 cases: rounded upwards, because it is "at most".

    >>> of_hundred(guess_right(1.0, 0.0))
    '73.2'
    """
    return f"{math.ceil(1000 * share) / 10:.1f}"


def pure_at(budget: Budget) -> tuple[str, ...]:
    """What a certificate of pure noise says of a budget that has a delta: what a guesser gains over Gaussian noise.

    >>> print(*pure_at(Budget(0.9, 1e-4)), *pure_at(Budget(0.9, 0)))
    Pure noise was taken at (0.9, 0.0001): a guesser is right in at most 71.1 of 100 cases, with Gaussian noise in 55.7.
    """
    if budget.is_pure:
        return ()
    pure, gaussian = (of_hundred(guess_right(budget.epsilon, 0.0, mu)) for mu in (None, budget.mu))
    return (
        f"Pure noise was taken at ({budget.epsilon:g}, {budget.delta:g}): a guesser is right in at most {pure} of 100 "
        f"cases, with Gaussian noise in {gaussian}.",
    )


def weak_epsilon(epsilon: float, delta: float, mu: float | None = None) -> str | None:
    """A sentence if epsilon is so large that a guesser is nearly always right, else None.

    >>> print(weak_epsilon(1000.0, 0.0))
    epsilon = 1000 hides little: whoever knows all else and guesses what one person gave may be right in 100.0 of 100
    cases.
    """
    if epsilon < LARGE_EPSILON:
        return None
    return (
        f"epsilon = {epsilon:g} hides little: whoever knows all else and guesses what one person gave may be right in "
        f"{of_hundred(guess_right(epsilon, delta, mu))} of 100 cases."
    )


def weak_promise(budget: Budget, people: int | None, pure: bool = False) -> str | None:
    """Returns the warning about an epsilon or a delta that is too large; None if neither is.

    Args:
        budget: The (epsilon, delta).
        people: The number of people, if there is one.
        pure: Whether the noise has no delta, whatever the budget has.

    """
    delta, mu = (0.0, None) if pure or budget.is_pure else (budget.delta, budget.mu)
    found = (weak_epsilon(budget.epsilon, delta, mu), None if pure else weak_delta(budget.delta, people))
    return " ".join(one for one in found if one is not None) or None
