"""Policies for people who come by: choose, show, learn from the answer.

`arm = policy.choose(context)`, and later, in whatever order answers come in, `policy.learn(context, arm, reward)`. What
people gave goes one way, from sums of whole numbers through `_noised` to what decides; `choose` sees nothing else.

Theorem. Given all that was noised before, each answer is in one sum, or in as many as the method's norm states. Which
sum that is follows from what was noised before and from who came when, never from an answer. So replacing one person's
answers moves all sums together by at most what `privacy.interactive` states for the norm, times the visits of one
person, and fresh noise of that size on each keeps the promise (`docs/theory.md`, section 14).
"""

import hashlib
import math
import os
import threading
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from quietq.mechanisms.laws import Gaussian, KNorm, Law
from quietq.mechanisms.weights import Independent
from quietq.noise.ball import Ball
from quietq.noise.entropy import Entropy, SeededEntropy, SystemEntropy
from quietq.privacy import (
    Arrivals,
    Assumption,
    Budget,
    BudgetExhausted,
    Certificate,
    Cost,
    InvalidInput,
    PrivacyWarning,
    norms,
    weak_delta,
)  # fmt: skip
from quietq.privacy.account import Account, accounted
from quietq.privacy.certificate import CHOSEN
from quietq.privacy.checks import count, instance, optional, real, same_process, shown
from quietq.privacy.words import plural

UNITS = 2**20
"""An answer is a whole number of these parts of its range, so that sums are exact."""
_MOST = 2.0**33  # sums of more answers are no longer exact in float64
_LARGEST = 10**100  # Python does not write out numbers of thousands of digits
_MOST_ARRIVALS = 2**31 - 1  # one more, and a sum of parts of 2^-32 could leave 64 bits with their sign


@dataclass(eq=False)
class Policy(ABC):
    """What all policies share; one that is only this promises nothing."""

    name: ClassVar[str]
    arms: int
    """Numbered from 0."""
    _: KW_ONLY
    rewards: tuple[float, float] = (0.0, 1.0)
    """The public range of an answer. What lies outside is taken for the nearer end, and no answer for the middle."""
    simulate: int | None = None
    """A seed, for simulation: then nothing is promised."""

    def __post_init__(self) -> None:
        self.arms = count("arms", self.arms, 2, 10**6)
        low, high = (real("rewards", one) for one in self.rewards)
        if not low < high:
            raise InvalidInput(f"rewards must be a range, lower end first, not {shown(self.rewards)}.")
        self.rewards = low, high
        self.simulate = optional(lambda name, value: count(name, value, 0, None))("simulate", self.simulate)
        self._process, self._drawn, self._lock = os.getpid(), 0, threading.RLock()
        self.state: Any = self._start()  # PRIVATE
        self.certificate = self._certify()
        self._made = True

    def __setattr__(self, name: str, value: Any) -> None:
        if getattr(self, "_made", False) and name in self.__dataclass_fields__:
            raise AttributeError(f"{name} was promised by the policy's certificate, and is not changed: make another.")
        super().__setattr__(name, value)

    @abstractmethod
    def _start(self) -> Any:
        """A dataclass of whole numbers and arrays: all that there is to be saved."""

    @abstractmethod
    def choose(self, context: Any = None) -> int:
        """What to show to whoever came by."""

    def learn(self, context: Any, arm: int, reward: Any, person: Any = None) -> None:
        """An answer that came in, now or much later; None for one that never will."""
        self.learn_batch([context], [arm], [reward], [person])

    def learn_batch(self, contexts: Any, arms: Any, rewards: Any, people: Iterable[Any] | None = None) -> None:
        """Many answers at once: the same as one after the other. If one is refused, none is learned."""
        contexts = [None] * len(arms) if contexts is None else contexts
        named = [None] * len(arms) if people is None else people
        with self._lock:
            given = [self._checked(*one) for one in zip(contexts, arms, rewards, named, strict=True)]
            self._make_room(len(given))
            for shown, units, name in given:
                if self._counts(name):
                    self._take(shown, units)
                else:
                    self._skip(shown)

    def _checked(self, context: Any, arm: Any, reward: Any, person: Any) -> tuple[Any, int, str | None]:
        """What was shown, the answer in units and the hash of a name."""
        shown = self._shown(context, count("arm", arm, 0, self.arms - 1))
        return shown, self._units(reward), self._hashed(person)

    def _shown(self, context: Any, arm: int) -> Any:
        """What an answer is about, as `_take` wants it."""
        return arm

    def _make_room(self, answers: int) -> None:  # noqa: B027 - most have room for any number
        """Refuses more answers than there is room for."""

    @abstractmethod
    def _take(self, shown: Any, units: int) -> None:
        """One answer."""

    def _skip(self, shown: Any) -> None:
        """One that does not count, because this person gave too many."""
        self._take(shown, UNITS // 2)

    def _hashed(self, person: Any) -> str | None:
        if person is not None:
            raise InvalidInput("person must be left out, unless the policy counts visits by name: named=True.")
        return None

    def _counts(self, name: str | None) -> bool:
        """Whether this person's answer still counts."""
        return True

    def _units(self, reward: Any) -> int:
        """An answer as a whole number. Nothing is refused: that would depend on the answer."""
        low, high = self.rewards
        with suppress(Exception):
            part = (min(max(float(reward), low), high) - low) / (high - low)
            if not math.isnan(part):
                return round(UNITS * min(max(part, 0.0), 1.0))
        return UNITS // 2

    def _entropy(self) -> Entropy:
        self._drawn += 1  # a seeded stream of its own for each draw: resuming needs to know only how many there were
        return SystemEntropy() if self.simulate is None else SeededEntropy((self.simulate << 64) + self._drawn)

    def _certify(self) -> Certificate:
        remark = "It learns from answers as they are, to compare with."
        return Certificate(method=f"bandit/{self.name}", standing="none", remarks=(remark,))

    def _forget(self) -> None:
        """Drops all answers that were not noised yet: all, where none ever is."""
        self.state = self._start()

    def __reduce__(self) -> str:
        raise TypeError("A policy is not copied or pickled, for a copy would spend its budget again: save it.")


@dataclass(eq=False)
class PrivatePolicy(Policy):
    """A policy with a promise. The account is charged when it is made, before anybody comes by."""

    contexts: ClassVar[bool] = False
    """Whether it looks at contexts, so that the promise is joint."""
    pure: ClassVar[bool] = False
    """Whether its noise is pure whatever the budget's delta is."""
    bounded: ClassVar[bool] = False
    """Whether there is room for so many arrivals and no more."""
    remarks: ClassVar[tuple[str, ...]] = ()
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
        self.visits = count("visits", self.visits)
        self.arrivals = optional(lambda name, value: count(name, value, 2, _MOST_ARRIVALS))("arrivals", self.arrivals)
        if self.bounded and self.arrivals is None:
            raise InvalidInput(f"arrivals must be declared for {type(self).__name__}: how often will somebody come by?")
        self._seen: Counter[str] = Counter()
        self._handed_over = False
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
        law, entropy = self.law, self._entropy()
        if isinstance(law, Gaussian):
            return law.add(numbers, entropy)
        return np.concatenate([law.add(one, entropy) for one in numbers.reshape(-1, 1)])

    def _make_room(self, answers: int) -> None:
        if self._handed_over:
            raise BudgetExhausted("This policy was saved, and goes on where it is resumed: it learns no more here.")
        if self.simulate is None:
            same_process(self._process, "This policy")  # before a batch is learned in part

    def _hashed(self, person: Any) -> str | None:
        if not self.named:
            return super()._hashed(person)
        if not isinstance(person, str | Integral) or (isinstance(person, Integral) and abs(int(person)) > _LARGEST):
            raise InvalidInput(
                "person must be a name or a whole number of at most 100 digits, because this policy counts visits by "
                "name."
            )
        name = person if isinstance(person, str) else str(int(person))
        return hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=16).hexdigest()

    def _counts(self, name: str | None) -> bool:
        if name is None:
            return True
        self._seen[name] += 1
        return self._seen[name] <= self.visits

    def _hand_over(self) -> None:
        """Where it is resumed it may noise its answers, and so it must not here."""
        same_process(self._process, "This policy")
        self._make_room(0)
        self._handed_over = self.simulate is None

    def _take_back(self) -> None:
        self._handed_over = False

    def _forget_visits(self) -> None:
        """From now on some visits may be unknown."""
        known, unknown = self._about_visits(True), self._about_visits(False)
        kept = tuple(one for one in self.certificate.assumptions if one not in known)
        if len(kept) + len(known) == len(self.certificate.assumptions):
            self.certificate = replace(self.certificate, assumptions=(*kept, *unknown))

    def _certify(self) -> Certificate:
        method = f"bandit/{self.name}"
        if self.simulate is not None:
            remark = f"Simulates {self.budget}; drawn from a seed, so it protects nobody."
            return Certificate(method=method, standing="none", reproducible=True, remarks=(remark,))
        return Certificate(
            method=method, standing="certified", relation=self.relation.describe(), epsilon=self.budget.epsilon,
            delta=0.0 if self.is_pure else self.budget.delta, mu=None if self.is_pure else self.budget.mu,
            sensitivity=self.sensitivity, assumptions=(CHOSEN, *self._conditions()),
            remarks=(self._told, *self.remarks), **self._measured(),
        )  # fmt: skip

    def _measured(self) -> dict[str, Any]:
        return self.law.measured()

    @property
    def _told(self) -> str:
        if self.contexts:
            return (
                "Joint differential privacy: what a person is shown follows from their own context, and what all "
                "others are shown, together, does not give that person away."
            )
        return "The promise covers everything that anybody is shown: nothing that is shown follows from a context."

    def _conditions(self) -> tuple[Assumption, ...]:
        low, high = self.rewards
        held = f"Answers were held to [{low:g}, {high:g}], and those that did not come count as the middle."
        return (
            Assumption(held, True),
            *self._about_visits(self.named),
            Assumption("Who comes by when, and which answer is learned when, is the same whatever the data is.", False),
            Assumption(
                "People saw what they were shown. The policy's state and what was measured of its success are private, "
                "because they are not computed from what this certificate covers alone.", False,
            ),
            *self.law.conditions(_MOST, self._error),
            accounted(self.account),
        )  # fmt: skip

    @property
    def _error(self) -> float:
        """How far off the numbers are that noise is added to, at the most."""
        return 0.0

    def _about_visits(self, counted: bool) -> tuple[Assumption, ...]:
        answers = plural(self.visits, "answer")
        if not counted:
            return (Assumption(f"Nobody gave more than {answers}, be it under two names.", False),)
        one_name = Assumption("Nobody came by under two names.", False)
        return Assumption(f"Of each name {answers} counted at the most.", True), one_name


def sums_in_answers(units: np.ndarray) -> Float[np.ndarray, "..."]:
    """Whole numbers of units in answers: exact below 2^33 of them."""
    return units / UNITS
