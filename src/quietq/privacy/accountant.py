"""Composition: rounds of Gaussian noise under one cap.

Theorem (Dong, Roth & Su 2022; for adaptively chosen mu_i Smith & Thakurta 2022). Rounds that are mu_i-GDP, each given
all earlier outputs, are together sqrt(sum mu_i^2)-GDP, exactly; the mu_i may be chosen as one goes along, as long as
the sum of squares is capped beforehand. What then holds is the cap: the theorem is a filter, not an odometer, so the
sum booked so far is a promise only if the number and the sizes of the rounds did not depend on earlier outputs.
"""

import math
import os
import threading
from collections import Counter
from typing import TYPE_CHECKING, ClassVar

from quietq.privacy.budget import Budget
from quietq.privacy.checks import count, instance, not_negative, positive, positive_delta, same_process
from quietq.privacy.errors import BudgetExhausted, InvalidInput, MissingExtra
from quietq.privacy.gaussian import delta_from_mu, epsilon_from_mu
from quietq.privacy.relations import Relation

if TYPE_CHECKING:
    import dp_accounting

_A_RELATION = "a relation, e.g. people(50, low=0, high=0.5, slope=1)"
TOLERANCE = 1e-12
"""Relative, for sums of squares that meet the cap but for rounding; `Budget.mu` keeps as much back."""


class Accountant:
    """Adds up rounds of Gaussian noise and refuses the one that would break the budget.

    What is promised is `budget`, however the rounds were chosen. What was spent so far (`spent_mu`, `get_epsilon`,
    `get_delta`) is a promise too only for a schedule fixed beforehand: neither how many rounds there are nor their mu
    may depend on what came out. All rounds must speak of one `relation`, given here or by the first charge to name one.

    >>> accountant = Accountant(Budget(epsilon=0.9, delta=1e-4))
    >>> accountant.charge(0.02, rounds=100)
    >>> round(accountant.get_epsilon(1e-4), 4), round(accountant.remaining_mu, 4)
    (0.6016, 0.2044)
    >>> accountant.charge(0.3)
    Traceback (most recent call last):
    ...
    quietq.privacy.errors.BudgetExhausted: 1 round of mu = 0.3 needs more than what is left, mu = 0.204379 ...
    """

    kind: ClassVar[str] = "an Accountant in memory"
    """In words, for certificates."""

    def __init__(self, budget: Budget, relation: Relation | None = None) -> None:
        instance("budget", budget, Budget, "a Budget, e.g. Budget(epsilon=0.9, delta=1e-4)")
        instance("relation", relation, Relation | None, _A_RELATION)
        self.budget: Budget | None = budget
        self._relation = relation
        self._process = os.getpid()
        self._cap = budget.mu
        self._rounds: Counter[float] = Counter()
        self._lock = threading.Lock()

    @property
    def relation(self) -> Relation | None:
        """The relation that all rounds speak of, once one has been named."""
        return self._relation

    def charge(self, mu: float, rounds: int = 1, relation: Relation | None = None) -> None:
        """Books `rounds` rounds of mu-GDP noise for `relation`, or raises BudgetExhausted and books nothing."""
        mu, rounds = positive("mu", mu), count("rounds", rounds)
        instance("relation", relation, Relation | None, _A_RELATION)
        same_process(self._process, "This Accountant")
        with self._lock:
            if relation is not None and self._relation not in (None, relation):
                raise InvalidInput(
                    f"This Accountant adds up rounds for {self._relation}, and a sum with rounds for {relation} would "
                    "mean nothing: use an Accountant of its own; nothing was booked."
                )
            if self._sum_of_squares() + rounds * mu * mu > self._cap**2 * (1 + TOLERANCE):
                raise BudgetExhausted(
                    f"{rounds} round{'s' * (rounds > 1)} of mu = {mu:g} needs more than what is left, "
                    f"mu = {self.remaining_mu:g} of {self._cap:g}; nothing was booked."
                )
            self._rounds[mu] += rounds
            self._relation = self._relation if relation is None else relation

    def charge_apart(self, epsilon: float, delta: float = 0.0, relation: Relation | None = None) -> None:
        """Refuses what has no mu, a pure release say: only a ledger's source has a place for it."""
        raise InvalidInput(
            "An Accountant adds up Gaussian noise, and this release has no mu: it has to be booked apart, which a "
            "Ledger's source can; nothing was booked."
        )

    @property
    def book(self) -> object:
        """What tells two accounts apart: equal for those that add up in one place."""
        return id(self)

    def committed(self, release: str) -> None:
        """Notes the hash of the release that the last charge was for; only a ledger keeps it."""

    def _booked(self) -> dict[float, int]:
        """{mu: number of rounds}."""
        return self._rounds

    def _sum_of_squares(self) -> float:
        return math.fsum(n * mu * mu for mu, n in self._booked().items())

    @property
    def spent_mu(self) -> float:
        """The mu of everything booked so far, for a schedule fixed beforehand; else the promise is `budget`."""
        return math.sqrt(self._sum_of_squares())

    @property
    def remaining_mu(self) -> float:
        """The largest single round that would still be accepted."""
        return math.sqrt(max(self._cap**2 - self._sum_of_squares(), 0.0))

    def get_epsilon(self, delta: float) -> float:
        """The epsilon of what is booked so far, for a schedule fixed beforehand; else the promise is `budget`."""
        delta = positive_delta(delta)
        return epsilon_from_mu(self.spent_mu, delta) if self._booked() else 0.0

    def get_delta(self, epsilon: float) -> float:
        """The delta of what is booked so far, for a schedule fixed beforehand; else the promise is `budget`."""
        epsilon = not_negative("epsilon", epsilon)
        return delta_from_mu(self.spent_mu, epsilon) if self._booked() else 0.0

    def to_event(self, *, fixed_schedule: bool = False) -> "dp_accounting.DpEvent":
        """The promise as a dp-accounting event: the whole cap or, for a schedule fixed beforehand, what was spent."""
        return gaussian_event(self._booked() if fixed_schedule else {self._cap: 1})

    def __reduce__(self) -> str:
        raise TypeError("An Accountant guards one budget and is not copied or pickled; share the object itself.")

    def __repr__(self) -> str:
        return f"Accountant({self.budget}, spent_mu={self.spent_mu:.6g}, remaining_mu={self.remaining_mu:.6g})"


def gaussian_event(rounds: dict[float, int]) -> "dp_accounting.DpEvent":
    """A dp-accounting event for {mu: number of rounds}: noise multiplier 1/mu a round.

    Compose it with dp-accounting's default relation, ADD_OR_REMOVE_ONE, for which an event's sensitivity is 1: our mu
    is already relative to all that neighbours can differ by. Its PLD accountant reads REPLACE_ONE as a sensitivity of 2
    (its Renyi accountant does not), which would charge this event twice: safe, but more than was spent. For a mixture
    with events whose sensitivity is 1 when one record is added or removed, that is the one to use (`docs/theory.md`).
    """
    try:
        import dp_accounting as dpa
    except ImportError as error:
        raise MissingExtra.of("accounting", "Exporting an event needs dp-accounting") from error
    events: list[dpa.DpEvent] = [dpa.SelfComposedDpEvent(dpa.GaussianDpEvent(1 / mu), n) for mu, n in rounds.items()]
    return dpa.ComposedDpEvent(events)
