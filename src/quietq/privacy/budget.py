"""How much may be given away: an amount, not an account."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from quietq.privacy.checks import Checked, count, positive, positive_delta, probability
from quietq.privacy.errors import InvalidInput
from quietq.privacy.gaussian import epsilon_from_mu, mu_from_budget


@dataclass(frozen=True)
class Budget(Checked):
    """(epsilon, delta), immutable. With delta = 0 it is pure: only pure mechanisms accept it.

    Having a Budget spends nothing. What spends it is a mechanism, once.

    >>> budget = Budget(epsilon=0.9, delta=1e-4)
    >>> round(budget.mu, 5)
    0.28596
    """

    fields: ClassVar = {"epsilon": positive, "delta": probability}
    epsilon: float
    delta: float

    @classmethod
    def from_mu(cls, mu: float, delta: float) -> "Budget":
        """The budget that a mu-GDP mechanism uses at this delta."""
        epsilon = epsilon_from_mu(positive("mu", mu), positive_delta(delta))
        if epsilon == 0:
            raise InvalidInput(f"mu {mu!r} is already (0, {delta!r})-DP: give a smaller delta.")
        return cls(epsilon=epsilon, delta=delta)

    @property
    def is_pure(self) -> bool:
        """Whether delta is 0, so that no Gaussian noise can meet it."""
        return self.delta == 0

    @cached_property
    def mu(self) -> float:
        """The largest mu such that mu-GDP implies this budget, exactly; a pure budget has none and says so."""
        if self.is_pure:
            positive_delta(self.delta)
        return mu_from_budget(self.epsilon, self.delta)

    def __str__(self) -> str:
        promise = f"({self.epsilon:g}, {self.delta:g})-DP"
        return promise if self.is_pure else f"{promise}, mu = {self.mu:.5g}"


def weak_delta(delta: float, people: int | None) -> str | None:
    """A sentence if delta is so large that it would allow giving one whole person away, else None."""
    delta = probability("delta", delta)
    if people is None or delta < 1 / count("people", people):
        return None
    safe = 10.0 ** math.floor(math.log10(1 / people) - 1)
    return (
        f"delta {delta:g} is not below 1/people = {1 / people:g}: such a promise would allow publishing "
        f"one person's data outright; {safe:g} or less would be usual."
    )
