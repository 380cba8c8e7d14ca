"""Policies with a promise: what people gave goes one way, through `_noised`, to what decides.

Theorem. Given all that was noised before, each answer is in one sum, or in as many as the method's norm states. Which
sum that is follows from what was noised before and from who came when, never from an answer. So replacing one person's
answers moves all sums together by at most what `privacy.interactive` states for the norm, times the visits of one
person, and fresh noise of that size on each keeps the promise (`docs/theory.md`, section 14).
"""

import hashlib
import math
import os
import warnings
from collections import Counter
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from quietq.learning.bandits.policy import Policy
from quietq.mechanisms.laws import Gaussian, KNorm, Law
from quietq.mechanisms.weights import Independent
from quietq.noise.ball import Ball
from quietq.privacy import Arrivals, Assumption, Budget, Certificate, Cost, norms, weak_delta
from quietq.privacy.account import Account, accounted
from quietq.privacy.certificate import CHOSEN, FAIR
from quietq.privacy.checks import count, instance, optional, same_process
from quietq.privacy.errors import BudgetExhausted, InvalidInput, PrivacyWarning
from quietq.privacy.words import plural

_MOST = 2.0**33  # sums of more answers are no longer exact in float64
_MOST_ARRIVALS = 2**31 - 1  # one more, and a sum of parts of 2^-32 could leave 64 bits with their sign
_LARGEST = 10**100  # Python does not write out numbers of thousands of digits


@dataclass(eq=False)
class PrivatePolicy(Policy):
    """A policy with a promise. The account is charged when it is made, before anybody comes by."""

    fields: ClassVar = {
        **Policy.fields, "visits": count, "arrivals": optional(partial(count, least=2, most=_MOST_ARRIVALS)),
    }  # fmt: skip
    pure: ClassVar[bool] = False
    """Whether its noise is pure whatever the budget's delta is."""
    declared: ClassVar[bool] = False
    """Whether it cannot do without a number of arrivals."""
    bounded: ClassVar[bool] = False
    """Whether there is room for so many arrivals and no more."""
    contexts: ClassVar[bool] = False
    """Whether it looks at contexts, so that the promise is joint."""
    remarks: ClassVar[tuple[str, ...]] = (
        "The promise covers everything that anybody is shown: nothing that is shown follows from a context.",
    )
    budget: Budget
    """With delta = 0 for pure noise."""
    _: KW_ONLY
    arrivals: int | None = None
    """How often somebody will come by, in all; declared beforehand."""
    visits: int = 1
    """How often one person may come by."""
    named: bool = False
    """Whether every answer comes with a name, by which visits are counted; else their number is trusted."""
    account: Account | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        instance("budget", self.budget, Budget, "a Budget(epsilon, delta)")
        self.budget.require_mu(self.cost.mu, f"noise of {type(self).__name__}")
        if self.arrivals is None and (self.declared or self.bounded):
            raise InvalidInput(f"arrivals must be declared for {type(self).__name__}: how often will somebody come by?")
        self._process, self._handed_over, self._seen = os.getpid(), False, Counter[str]()
        super().__post_init__()
        for caution in self._cautions():  # before anything is charged
            warnings.warn(caution, stacklevel=3)
        if self.account is not None and self.simulate is None:
            self.account.charge(self.cost, self.relation)

    def _cautions(self) -> list[Warning]:
        sentence = None if self.is_pure else weak_delta(self.budget.delta, self.arrivals)
        return [PrivacyWarning(sentence)] if sentence else []

    @property
    def is_pure(self) -> bool:
        return self.pure or self.budget.is_pure

    @property
    def cost(self) -> Cost:
        return Cost.apart(self.budget.epsilon) if self.is_pure else Cost.gaussian(self.budget.mu)

    @property
    def relation(self) -> Arrivals:
        return Arrivals(self.arrivals if self.bounded else None, self.visits, self.contexts)

    @property
    def norm(self) -> dict[str, Any]:
        return {"kind": "answers"}

    @cached_property
    def sensitivity(self) -> float:
        return norms.largest_difference(self.norm, self.relation.describe())

    @cached_property
    def law(self) -> Law:
        """Of the noise on each number."""
        if self.is_pure:  # not a last place too little
            return KNorm(Ball(1, self.norm), math.nextafter(self.budget.epsilon / self.sensitivity, 0.0))
        return Gaussian(math.nextafter(self.sensitivity / self.budget.mu, math.inf), Independent(self.norm))

    def _noised(self, numbers: Float[np.ndarray, " numbers"]) -> Float[np.ndarray, " numbers"]:
        """The only way from what people gave to what decides."""
        same_process(self._process, "This policy")
        entropy = self._entropy()
        if isinstance(self.law, Gaussian):
            return self.law.add(numbers, entropy)
        return np.concatenate([self.law.add(one, entropy) for one in numbers.reshape(-1, 1)])

    def _admit(self, people: list[Any]) -> list[bool]:
        if self._handed_over:
            raise BudgetExhausted("This policy was saved, and goes on where it is resumed: it learns no more here.")
        if self.simulate is None:
            same_process(self._process, "This policy")  # before a batch is learned in part
        if not self.named:
            return super()._admit(people)
        counted = []
        for name in [_hash(person) for person in people]:
            self._seen[name] += 1
            counted.append(self._seen[name] <= self.visits)
        return counted

    def _hand_over(self) -> None:
        """Where it is resumed it may noise its answers, and so it must not here."""
        same_process(self._process, "This policy")
        self._admit([])
        self._handed_over = self.simulate is None

    def _certify(self) -> Certificate:
        method = f"bandit/{self.name}"
        if self.simulate is not None:
            remark = f"Simulates {self.budget}; drawn from a seed, so it protects nobody."
            return Certificate(method=method, standing="none", reproducible=True, remarks=(remark,))
        return Certificate(
            method=method, standing="certified", relation=self.relation.describe(), epsilon=self.budget.epsilon,
            delta=0.0 if self.is_pure else self.budget.delta, mu=None if self.is_pure else self.budget.mu,
            sensitivity=self.sensitivity, assumptions=(CHOSEN, *self._conditions(), FAIR),
            remarks=self.remarks,
            **self._measured(),
        )  # fmt: skip

    def _measured(self) -> dict[str, Any]:
        return self.law.measured()

    @property
    def _error(self) -> float:
        """How far off the numbers are that noise is added to, at the most."""
        return 0.0

    def _conditions(self) -> tuple[Assumption, ...]:
        low, high = self.rewards
        held = f"Answers were held to [{low:g}, {high:g}], and those that did not come count as the middle."
        return (
            Assumption(held, True),
            *self._about_visits(self.named),
            Assumption("Who comes by when, and which answer is learned when, is the same whatever the data is.", False),
            Assumption(
                "Of what people gave, what is shown follows from noised numbers and the person's own context alone, "
                "and what all others are shown is covered." if self.contexts else
                "Of what people gave, what is shown follows from noised numbers alone, and is covered.", True,
            ),
            Assumption(
                "The policy's state and what is measured of its success are kept secret: they are not computed from "
                "what this certificate covers alone.", False,
            ),
            *self.law.conditions(_MOST, self._error),
            accounted(self.account),
        )  # fmt: skip

    def _about_visits(self, counted: bool) -> tuple[Assumption, ...]:
        answers = plural(self.visits, "answer")
        if not counted:
            return (Assumption(f"Nobody gave more than {answers}, be it under two names.", False),)
        one_name = Assumption("Nobody came by under two names.", False)
        return Assumption(f"Of each name {answers} counted at the most.", True), one_name

    def _forget_visits(self) -> None:
        """From now on some visits may be unknown."""
        known, told = self._about_visits(True), self.certificate.assumptions
        if set(known) <= set(told):
            kept = (one for one in told if one not in known)
            self.certificate = replace(self.certificate, assumptions=(*kept, *self._about_visits(False)))


def _hash(person: Any) -> str:
    if not isinstance(person, str | Integral) or (isinstance(person, Integral) and abs(int(person)) > _LARGEST):
        raise InvalidInput(
            "person must be a name or a whole number of at most 100 digits, because this policy counts visits by name."
        )
    name = person if isinstance(person, str) else str(int(person))
    return hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=16).hexdigest()
