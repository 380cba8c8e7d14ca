"""`noisy_quantile`: a quantile of one number per person, by bisection with noisy counts.

Theorem. Each query is the mean of (1, 0) or (0, 1) over all N declared people: replacing one person moves it by at most
sqrt(2)/N, and with Gaussian noise of sqrt(2)/(N mu_k) it is mu_k-GDP. Which threshold is asked about next depends on
earlier answers alone, so together they are sqrt(sum mu_k^2)-GDP (docs/theory.md#cloning).
"""

from collections.abc import Generator

import numpy as np

from quietq.feedback.imitation_statistics import OwnNumber, ReachCounts
from quietq.mechanisms.release import Query, mean_of_people


def noisy_quantile(
    own: OwnNumber, within: tuple[float, float], share: float, people: int, mu: float, rounds: int, margin: float = 0.0
) -> Generator[Query, np.ndarray, float]:
    """Asks for the largest number found that at least a share of the people reach.

    Args:
        own: The number of each person.
        within: The public range that is halved; everybody reaches its low end.
        share: The share of the people who are to reach the number, among those who are there.
        people: The declared number of people.
        mu: What each count may cost.
        rounds: The number of counts: the quantile is found to 1/2^rounds of the range.
        margin: So many standard deviations of its noise must a count exceed what is asked for. Above 0, noise is
            unlikely to make up that enough people reach a number: with few people the quantile found stays low.

    """
    low, high = within
    for _ in range(rounds):
        middle = (low + high) / 2
        query = mean_of_people(ReachCounts(own, middle), people, mu)
        reach, fall_short = yield query
        enough = share * (reach + fall_short) + margin * query.law.sigma
        low, high = (middle, high) if reach >= enough else (low, middle)
    return low
