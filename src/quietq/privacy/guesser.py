"""What a promise means to somebody who guesses: the most often that they can be right, where a coin is half the time.

Theorem. Of two neighbours, either as likely as the other, nobody tells which one was there with a chance above
Phi(mu/2) from what is mu-GDP (the two errors add up to at least 2 Phi(-mu/2)), nor above (e^epsilon + delta)/(1 +
e^epsilon) from what is (epsilon, delta)-DP. Both are attained, so epsilon alone says little: at 1 it is 73.2 of 100 for
pure noise, and 55.4 for Gaussian noise with delta = 1e-5.
"""

import math

from scipy.special import expit, ndtr


def guess_right(epsilon: float, delta: float, mu: float | None = None) -> float:
    """The largest chance of being right: by mu where there is one, else by (epsilon, delta), of which no more is known.

    >>> round(guess_right(1.0, 0.0), 4), round(guess_right(1.0, 1e-5, mu=0.268053), 4)
    (0.7311, 0.5533)
    """
    if mu is not None:
        return float(ndtr(mu / 2))
    share = float(expit(epsilon))
    return share + (1 - share) * delta


def of_hundred(share: float) -> str:
    """In how many of 100 cases: rounded upwards, because it is "at most".

    >>> of_hundred(guess_right(1.0, 0.0))
    '73.2'
    """
    return f"{math.ceil(1000 * share) / 10:.1f}"
