"""What all private bandits share: choose, show, learn from the answer, and one promise for all who arrive.

`arm = policy.choose(context)`, and later, in whatever order answers come in, `policy.learn(context, arm, reward)`. The
context is None for a policy that looks at none. What people gave goes one way, through `_noised`, to what decides.

Theorem. Given all that was noised before, each answer is in one sum, or in as many as the method's norm states, unless
its person gave `visits` answers before: then it is left out. Which sum that is, and who is left out, follows from what
was noised before and from who came when, never from an answer. So replacing all of one person's answers moves all sums
together by at most what `privacy.norms` states for the norm, times `visits`, and fresh noise of that size on each
keeps the promise (docs/theory.md#who-counts and docs/theory.md#each-answer-once).
"""

import hashlib
import math
import os
import threading
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from quietq.noise.entropy import Entropy, SeededEntropy, SystemEntropy
from quietq.noise.laws import BallNoise, Gaussian, RoundedLaw
from quietq.noise.rounding import rounding_step
from quietq.privacy import Arrivals, Assumption, Budget, Code, Cost, weak_promise
from quietq.privacy.account import Account
from quietq.privacy.checks import (
    Check,
    Checked,
    count,
    flag,
    instance,
    interval,
    optional,
    plural,
    same_process,
)
from quietq.privacy.errors import BudgetExhausted, InvalidInput, MissingExtra, PrivacyWarning
from quietq.privacy.norms import Answers, AnyNorm
from quietq.privacy.transcript import Query, Transcript

UNITS = 2**20
"""An answer is a whole number of these parts of its range, so that sums of up to 2^33 of them are exact in float64."""
MOST = 2**33
"""Sums of more answers are no longer exact in float64."""
MOST_ARRIVALS = 2**31 - 1
_KEPT = ("state", "law", "certificate")
"""Set once, or by the policy itself: a state that is put back would have its answers noised again."""
FARTHEST = 1000.0  # standard deviations, beyond which noise is with a probability below e^-1000


def are_counts(numbers: int | np.ndarray, most: int | np.ndarray = MOST) -> bool:
    """Says whether a count is possible, where there are at most `most`."""
    return bool(np.all((numbers >= 0) & (numbers <= most)))


@dataclass(eq=False)
class PrivateBandit(Checked, ABC):
    """A policy with a promise. The account is charged when it is made, before anybody arrives."""

    fields: ClassVar[Mapping[str, Check]] = {
        "arms": partial(count, least=2, most=10**6),
        "rewards": interval,
        "simulate": optional(partial(count, least=0, most=None)),
        "visits": count,
        "named": flag,
        "arrivals": optional(partial(count, least=2, most=MOST_ARRIVALS)),
    }
    name: ClassVar[str]
    contexts: ClassVar[bool] = False
    """Whether it looks at contexts, so that the promise is joint."""
    pure: ClassVar[bool] = False
    """Whether its noise is pure whatever the budget's delta is."""
    declared: ClassVar[bool] = False
    """Whether it cannot do without a number of arrivals."""
    bounded: ClassVar[bool] = False
    """Says whether there is room for exactly this number of arrivals."""
    remarks: ClassVar[tuple[str, ...]] = (
        "The promise covers everything that anybody is shown: nothing that is shown follows from a context.",
    )
    arms: int
    """Numbered from 0."""
    budget: Budget
    """The budget, with delta = 0 for pure noise."""
    _: KW_ONLY
    rewards: tuple[float, float] = (0.0, 1.0)
    """The public range of an answer. What lies outside is clipped, and no answer counts as the middle."""
    simulate: int | None = None
    """A seed, for simulation: then nothing is promised."""
    arrivals: int | None = None
    """The number of arrivals in all; declared beforehand."""
    visits: int = 1
    """How many answers of one person count: by name the first ones, and more are left out; without names it is trusted
    that nobody gives more."""
    named: bool = False
    """Whether every answer comes with a name, by which visits are counted; else their number is trusted."""
    account: Account | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        instance("budget", self.budget, Budget, "a Budget(epsilon, delta)")
        super().__post_init__()
        self.budget.require_mu(self.cost.mu, f"noise of {type(self).__name__}")
        if self.arrivals is None and (self.declared or self.bounded):
            raise InvalidInput(f"arrivals must be declared for {type(self).__name__}: how many arrivals will there be?")
        self._drawn, self._lock, self._warned = 0, threading.RLock(), dict[str, int]()
        self._process, self._handed_over = os.getpid(), False
        self._simulated = None if self.simulate is None else SeededEntropy(self.simulate)
        self._count(Counter())
        self._hashes([])  # what it needs for names is there, or it is refused before anything is charged
        self.state: Any = self._start()  # PRIVATE
        self._transcript = Transcript(
            self.relation,
            self.budget,
            self.account,
            cost=self.cost,
            largest=float(MOST),
            error=self._error,
            simulated=self._simulated,
        )
        self._transcript.ask(self._query)
        certify = partial(self._transcript.certificate, f"bandit/{self.name}", None, self._conditions(), self.remarks)
        certify()  # in rehearsal: what it refuses costs nothing
        for caution in self._cautions():  # before anything is charged
            warnings.warn(caution, stacklevel=3)
        self._transcript.charge()
        self.certificate = certify()

    def __setattr__(self, name: str, value: object) -> None:
        if (name in self.__dataclass_fields__ or name in _KEPT) and hasattr(self, "certificate"):
            raise AttributeError(f"{name} was promised by the policy's certificate, and is not changed: make another.")
        super().__setattr__(name, value)

    def __reduce__(self) -> str:
        raise TypeError("A policy is not copied or pickled, for a copy would spend its budget again: save it.")

    # What is promised

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
    def norm(self) -> AnyNorm:
        return Answers()

    @cached_property
    def sensitivity(self) -> float:
        return self.norm.sensitivity(self.relation)

    @cached_property
    def law(self) -> RoundedLaw:
        """Returns the distribution of the noise on each number."""
        if self.is_pure:  # not a last place too little
            return BallNoise(math.nextafter(self.budget.epsilon / self.sensitivity, 0.0), 1, self.norm)
        return Gaussian(math.nextafter(self.sensitivity / self.budget.mu, math.inf), self.norm)

    @cached_property
    def _query(self) -> Query:
        """All sums there will ever be: each is a part, and neighbours differ by the sensitivity in all together."""
        return Query(np.atleast_1d, self.sensitivity, self.law, in_parts=True)

    @property
    def _error(self) -> float:
        """The largest error of the numbers that noise is added to."""
        return 0.0

    def _cautions(self) -> list[Warning]:
        sentence = weak_promise(self.budget, self.arrivals, pure=self.is_pure)
        return [PrivacyWarning(sentence)] if sentence else []

    def _conditions(self) -> tuple[Assumption, ...]:
        shown = Code.SHOWN_FROM_CONTEXT() if self.contexts else Code.SHOWN_FROM_NOISED()
        visits = self._about_visits(self.named)
        return Code.ANSWERS_CLIPPED(*self.rewards), *visits, Code.ARRIVALS_PUBLIC(), shown, Code.STATE_SECRET()

    def _about_visits(self, counted: bool) -> tuple[Assumption, ...]:
        if not counted:
            return (Code.VISITS_TRUSTED(self.visits),)
        return Code.VISITS_COUNTED(self.visits), Code.NAMES()

    # Choosing and learning

    def choose(self, context: object = None) -> int:
        """The policy says what to show to whoever arrived.

        Args:
            context: Features for this person, for a policy that looks at contexts; else None.

        """
        if context is not None and not self.contexts:
            raise InvalidInput(
                f"context must be left out, because {type(self).__name__} uses none: Linear learns from contexts."
            )
        return self._choose(context)

    @abstractmethod
    def _choose(self, context: object) -> int:
        """The same; the context is None unless the policy looks at contexts."""

    def learn(self, context: object, arm: int, reward: object, person: object = None) -> None:
        """The policy learns from one answer, which came in now or much later.

        Args:
            context: What `choose` was given.
            arm: What was shown.
            reward: The answer; None for one that will never come.
            person: Their name, if the policy counts visits by name.

        """
        self.learn_batch([context], [arm], [reward], [person])

    def learn_batch(
        self,
        contexts: Iterable[object] | None,
        arms: Iterable[object],
        rewards: Iterable[object],
        people: Iterable[object] | None = None,
    ) -> None:
        """The policy learns from many answers, as from one after the other; if one is refused, none is learned.

        Args:
            contexts: What `choose` was given for each answer; None where the policy looks at none.
            arms: What was shown.
            rewards: The answers; None for those that will never come.
            people: Their names, if the policy counts visits by name.

        """
        arms, rewards = list(arms), list(rewards)
        contexts, people = ([None] * len(arms) if given is None else list(given) for given in (contexts, people))
        if len({len(contexts), len(arms), len(rewards), len(people)}) != 1:
            raise InvalidInput("contexts, arms, rewards and people must be equally many.")
        with self._lock:
            given = [
                (self._shown(context, count("arm", arm, 0, self.arms - 1)), self._units(reward))
                for context, arm, reward in zip(contexts, arms, rewards, strict=True)
            ]
            names = self._hashes(people)
            taken = [answer for answer, counts in zip(given, self._admit(names), strict=True) if counts]
            # What is warned of may be made an error: then nothing was counted or learned yet.
            self._warn_of(names, taken)
            if self.named:
                self._seen.update(names)
                self._answers += len(names)
                self._left_out += len(names) - len(taken)
            for about, units in taken:
                self._take(about, units)

    def _shown(self, context: object, arm: int) -> object:
        """Returns what an answer is about, as `_take` wants it."""
        return arm

    def _units(self, reward: Any) -> int:
        """An answer as a whole number. Nothing is refused: that would depend on the answer."""
        low, high = self.rewards
        with suppress(Exception):
            part = (min(max(float(reward), low), high) - low) / (high - low)
            if not math.isnan(part):
                return round(UNITS * min(max(part, 0.0), 1.0))
        return UNITS // 2

    @abstractmethod
    def _take(self, shown: Any, units: int) -> None:
        """One answer."""

    def _noised(self, numbers: Float[np.ndarray, " numbers"]) -> Float[np.ndarray, " numbers"]:
        """The only way from what people gave to what decides."""
        same_process(self._process, "This policy")
        self._entropy()
        parts = [numbers] if isinstance(self.law, Gaussian) else numbers.reshape(-1, 1)
        return np.concatenate([self._transcript.answer(self._query, part) for part in parts])

    def _entropy(self) -> Entropy:
        """Fresh randomness; simulated, a stream of its own for each draw, so that resuming needs only their number."""
        self._drawn += 1
        if self._simulated is None or self.simulate is None:
            return SystemEntropy()
        self._simulated.restart((self.simulate << 64) + self._drawn)
        return self._simulated

    # Who comes back

    @property
    def left_out(self) -> int:
        """How many answers were beyond their person's `visits`: public, because it follows from who came when."""
        return self._left_out

    def _hashes(self, people: list[Any]) -> list[str]:
        """Returns the hashes by which visits are counted, for each of these people; empty where they are not."""
        if not self.named:
            if any(person is not None for person in people):
                raise InvalidInput("person must be left out, unless the policy counts visits by name: named=True.")
            return [""] * len(people)
        try:
            import polars

            from quietq.feedback.schema import forms_of
        except ImportError as error:
            raise MissingExtra.of("people", "Counting visits by name needs Polars") from error
        for person in people:
            # Python does not write out numbers of thousands of digits.
            if not isinstance(person, str | Integral) or (isinstance(person, Integral) and abs(int(person)) > 10**100):
                raise InvalidInput(
                    "person must be a name or a whole number of at most 100 digits, because this policy counts visits "
                    "by name."
                )
        names = [person if isinstance(person, str) else str(int(person)) for person in people]
        # Half a surrogate pair is no text: it counts as its own escape.
        texts = [name.encode(errors="backslashreplace").decode() for name in names]
        forms = forms_of(polars.Series(texts, dtype=polars.String)).fill_null("")
        return [hashlib.blake2b(form.encode(), digest_size=16).hexdigest() for form in forms]

    def _admit(self, names: list[str]) -> list[bool]:
        """Says whether each one's answer counts, or refuses. It changes nothing, and follows from what is public."""
        if self._handed_over:
            raise BudgetExhausted("This policy was saved, and goes on where it is resumed: it learns no more here.")
        if self.simulate is None:
            same_process(self._process, "This policy")  # before a batch is learned in part
        coming, counted = Counter[str](), []
        for name in names:
            coming[name] += 1
            counted.append(not self.named or self._seen[name] + coming[name] <= self.visits)
        return counted

    def _warn_of(self, names: list[str], taken: list[tuple[object, int]]) -> None:
        """Warns of answers that will count for nothing."""
        self._warn_from_a_tenth(
            f"answers were left out, because their people had given {plural(self.visits, 'answer')} before: a policy "
            "of more `visits`, and as much more noise, would learn from them.",
            self._left_out + len(names) - len(taken),
            self._answers + len(names),
        )

    def _warn_from_a_tenth(self, sentence: str, odd: int, total: int) -> None:
        """Warns from a tenth of the total on, and again each time that there is twice as much of it."""
        if odd and 10 * odd >= total and odd >= 2 * self._warned.get(sentence, 0):
            self._warned[sentence] = odd
            warnings.warn(f"{odd} of {total} {sentence}", stacklevel=4)

    def _count(self, seen: Counter[str]) -> None:
        """How often each name came so far."""
        self._seen, self._answers = seen, seen.total()
        self._left_out = sum(max(visits - self.visits, 0) for visits in seen.values())

    # For files (`state.py`)

    @abstractmethod
    def _start(self) -> object:
        """A dataclass of whole numbers and arrays: all that there is to be saved."""

    @abstractmethod
    def _learned(self) -> int:
        """Returns how many answers the state is made of, at the least."""

    def _possible(self) -> Iterator[tuple[str, bool]]:
        """The fields of the state, one by one, and whether a run can leave each as it is."""
        counted = self._answers - self._left_out
        yield "seen", counted >= self._learned() if self.named else not self._seen

    def _may_be_noisy(
        self, noisy: np.ndarray, due: np.ndarray, low: float | np.ndarray, high: float | np.ndarray
    ) -> bool:
        """Says whether noise can make these, where due, of numbers between `low` and `high`; elsewhere there is 0.

        Noisy numbers are multiples of a step, are not too far off, and are not all 0.
        """
        step, far = rounding_step(self.law.sigma), FARTHEST * self.law.sigma
        on_the_grid = np.abs(np.rint(noisy / step) * step - noisy) <= 2.0**-48 * np.abs(noisy)
        possible = np.where(due, on_the_grid & (noisy >= low - far) & (noisy <= high + far), noisy == 0)
        return bool(possible.all()) and (bool(noisy.any()) or int(due.sum()) < 3)

    def _hand_over(self) -> None:
        """Where it is resumed it may noise its answers, and so it must not here."""
        same_process(self._process, "This policy")
        self._admit([])
        self._handed_over = self.simulate is None

    def _forget(self) -> None:
        """Drops all answers that were not noised yet: all, where they cannot be distinguished from those that were."""
        self._replace(state=self._start())

    def _replace(self, **kept: object) -> None:
        """Replaces what nobody else may set."""
        vars(self).update(kept)

    def _forget_visits(self) -> None:
        """Notes that from now on some visits may be unknown."""
        known, told = self._about_visits(True), self.certificate.assumptions
        if set(known) <= set(told):
            certificate = self.certificate.with_assumption(*self._about_visits(False), without=known)
            self._replace(certificate=certificate)
