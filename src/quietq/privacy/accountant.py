"""Composition: rounds of Gaussian noise under one cap.

Theorem (Dong, Roth & Su 2022; for adaptively chosen mu_i Smith & Thakurta 2022). Rounds that are mu_i-GDP, each given
all earlier outputs, are together sqrt(sum mu_i^2)-GDP, exactly; the mu_i may be chosen as one goes along, as long as
the sum of squares is capped beforehand.
"""

import math
import threading
from collections import Counter
from typing import TYPE_CHECKING

from quietq.privacy.budget import Budget
from quietq.privacy.checks import count, instance, not_negative, positive, positive_delta
from quietq.privacy.errors import BudgetExhausted, MissingExtra
from quietq.privacy.gaussian import delta_from_mu, epsilon_from_mu

if TYPE_CHECKING:
    import dp_accounting

_TOLERANCE = 1e-12  # relative, for sums of squares that meet the cap but for rounding; Budget.mu keeps as much back


class Accountant:
    """Adds up rounds of Gaussian noise and refuses the one that would break the budget.

    >>> accountant = Accountant(Budget(epsilon=0.9, delta=1e-4))
    >>> accountant.charge(0.02, rounds=100)
    >>> round(accountant.get_epsilon(1e-4), 4), round(accountant.remaining_mu, 4)
    (0.6016, 0.2044)
    >>> accountant.charge(0.3)
    Traceback (most recent call last):
    ...
    quietq.privacy.errors.BudgetExhausted: 1 round of mu = 0.3 needs more than what is left, mu = 0.204379 ...
    """

    def __init__(self, budget: Budget) -> None:
        instance("budget", budget, Budget, "a Budget, e.g. Budget(epsilon=0.9, delta=1e-4)")
        self.budget = budget
        self._cap = budget.mu
        self._rounds: Counter[float] = Counter()
        self._lock = threading.Lock()

    def charge(self, mu: float, rounds: int = 1) -> None:
        """Books `rounds` rounds of mu-GDP noise, or raises BudgetExhausted and books nothing."""
        mu, rounds = positive("mu", mu), count("rounds", rounds)
        with self._lock:
            if self._sum_of_squares() + rounds * mu * mu > self._cap**2 * (1 + _TOLERANCE):
                raise BudgetExhausted(
                    f"{rounds} round{'s' * (rounds > 1)} of mu = {mu:g} needs more than what is left, "
                    f"mu = {self.remaining_mu:g} of {self._cap:g}; nothing was booked."
                )
            self._rounds[mu] += rounds

    def _sum_of_squares(self) -> float:
        return math.fsum(n * mu * mu for mu, n in self._rounds.items())

    @property
    def spent_mu(self) -> float:
        """The mu of everything booked so far."""
        return math.sqrt(self._sum_of_squares())

    @property
    def remaining_mu(self) -> float:
        """The largest single round that would still be accepted."""
        return math.sqrt(max(self._cap**2 - self._sum_of_squares(), 0.0))

    def get_epsilon(self, delta: float) -> float:
        """The epsilon of everything booked so far, at this delta."""
        delta = positive_delta(delta)
        return epsilon_from_mu(self.spent_mu, delta) if self._rounds else 0.0

    def get_delta(self, epsilon: float) -> float:
        """The delta of everything booked so far, at this epsilon."""
        epsilon = not_negative("epsilon", epsilon)
        return delta_from_mu(self.spent_mu, epsilon) if self._rounds else 0.0

    def to_event(self) -> "dp_accounting.DpEvent":
        """The rounds as a dp-accounting event, for an accountant with its default neighbouring relation."""
        return gaussian_event(self._rounds)

    def __repr__(self) -> str:
        return f"Accountant({self.budget}, spent_mu={self.spent_mu:.6g}, remaining_mu={self.remaining_mu:.6g})"


def gaussian_event(rounds: dict[float, int]) -> "dp_accounting.DpEvent":
    """A dp-accounting event for {mu: number of rounds}: noise multiplier 1/mu a round.

    Compose it with dp-accounting's default relation, ADD_OR_REMOVE_ONE, for which an event's sensitivity is 1: our mu
    is already relative to all that neighbours can differ by. Its PLD accountant reads REPLACE_ONE as a sensitivity of 2
    (its Renyi accountant does not), which would charge this event twice: safe, but more than was spent.
    """
    try:
        import dp_accounting as dpa
    except ImportError as error:
        raise MissingExtra("Exporting an event needs dp-accounting: pip install 'quietq[accounting]'.") from error
    events: list[dpa.DpEvent] = [dpa.SelfComposedDpEvent(dpa.GaussianDpEvent(1 / mu), n) for mu, n in rounds.items()]
    return dpa.ComposedDpEvent(events)
