"""`Transcript`: the only object that charges an account, draws noise, rounds and certifies.

A `Query` measures the data once, with noise. Whatever is released is made of answers to queries: `release` answers
those of a mechanism one after the other, an environment with a private reward one part per step, a bandit one part per
sum, and a method that noises as it learns takes the noise of its whole run beforehand.

Theorem (adaptive composition under a cap). Queries, each built from the answers so far, cost together
sqrt(sum mu_i^2) (Gaussian; Dong, Roth & Su 2022, adaptively Smith & Thakurta 2022) or sum epsilon_i (pure). That sum is
capped by what was charged before the first draw, so the promise is what was charged, whatever is asked
(docs/theory.md#adaptive-composition).
"""

import itertools
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from quietq.privacy.account import Account, Cost, Once, Receipt
from quietq.privacy.assumptions import Assumption, Code
from quietq.privacy.budget import Budget, pure_at
from quietq.privacy.certificate import MOST_QUERIES, AnsweredQuery, Certificate, certifying, is_vouched_for
from quietq.privacy.checks import is_own, numbers as checked_numbers, same_process
from quietq.privacy.errors import EngineFailed, InvalidInput
from quietq.privacy.norms import AnyNorm
from quietq.privacy.relations import Family, Relation


@runtime_checkable
class Randomness(Protocol):
    """Where simulated noise comes from: a seed, so that it protects nobody."""

    @property
    def reproducible(self) -> bool: ...


class Law(ABC):
    """Noise of one kind and size: how it is drawn, and in which norm it hides a difference."""

    family: Family
    norm: AnyNorm
    """What the noise is measured in."""
    size: float
    """How large the noise is in its norm, as certificates state it."""
    sigma: float
    """Its typical size in the numbers that it is added to, which fixes what sums are rounded to."""

    @abstractmethod
    def cost(self, sensitivity: float) -> Cost:
        """Returns what it costs to hide numbers that are at most so far apart."""

    def distance(self, difference: np.ndarray) -> float:
        """Returns how far apart two vectors of numbers are, by their difference, in the norm that this noise hides."""
        raise InvalidInput(
            f"The distance that {type(self).__name__} hides does not follow from the difference of numbers alone."
        )

    def log_density(self, noise: np.ndarray) -> float:
        """Returns the logarithm of the density of one draw, up to a constant."""
        raise InvalidInput(f"The density of {type(self).__name__} is not public.")

    @abstractmethod
    def check_size(self, largest: float) -> None:
        """Refuses a declared size of numbers that rounding could not hide behind the noise."""

    @abstractmethod
    def check_values(self, numbers: np.ndarray) -> None:
        """Refuses numbers, which are not shown, that rounding could not hide behind the noise."""

    def draw(self, shape: tuple[int, ...], simulated: Any) -> np.ndarray:
        """Returns one draw for numbers of this shape, where it can be had apart from the numbers."""
        raise InvalidInput(f"{type(self).__name__} is drawn together with the numbers that it hides.")

    @abstractmethod
    def add(self, numbers: np.ndarray, simulated: Any = None, given: Any = None) -> np.ndarray:
        """Returns numbers + noise, drawn in real numbers and rounded once; simulated noise comes from a seed.

        `given` is what the law has to know besides, such as where on a path the numbers lie.
        """

    @abstractmethod
    def assumptions(self, largest: float, error: float) -> tuple[Assumption, ...]:
        """Returns what draw and rounding assume, for values below `largest` with an error of at most `error`."""


class Query(NamedTuple):
    """One noisy look at the data."""

    numbers: Callable[[Any], np.ndarray]
    """What is looked at, from the feedback. THE SECRET; it refuses what cannot be noised, and shows nothing of it."""
    sensitivity: float
    """The most that neighbours' numbers differ by in the law's norm, rounding errors included: by the relation and
    the theorem, never by the noise. Where answers come in parts, it is that of all parts together."""
    law: Law
    in_parts: bool = False
    """Whether its numbers come in parts, each of which is answered once."""


_PLAIN = (float, int, np.float64)
_NUMBERS = itertools.count()
"""Of this process's transcripts: what is released once has a name, which here takes no randomness."""
_COUNTS_PARTS = frozenset((Code.FIRST_SEEN, Code.REWARDS_NOISED_ONCE, Code.SHOWN_FROM_NOISED, Code.SHOWN_FROM_CONTEXT))
"""Whoever bounds what parts of a query come to together, as an environment or a bandit does, states one of these."""


def _is_own_law(law: Law) -> bool:
    """Says whether a law, and its shape or body, are of quietq's own classes, as they were defined."""
    return is_own(law) and all(is_own(part) or _is_data(part) for part in vars(law).values())


def _is_data(part: object) -> bool:
    return type(part).__module__ in ("builtins", "numpy") and not callable(part)


def _coarsest_first(law: Law) -> float:
    return -law.size


class Transcript:
    """What was asked about people's data, what it cost, and what it promises. It is not copied."""

    def __init__(
        self,
        relation: Relation,
        budget: Budget,
        account: Account | None = None,
        *,
        cost: Cost | None = None,
        once: Once | None = None,
        largest: float = np.inf,
        error: float = 0.0,
        simulated: Randomness | None = None,
    ) -> None:
        """Opens a transcript; nothing is charged yet.

        Args:
            relation: Which inputs are neighbouring.
            budget: The (epsilon, delta) that is promised.
            account: What is charged, before the first draw.
            cost: What is charged for all queries together; by default the mu of the whole budget.
            once: The mark of data that may be released once, unless there is an account.
            largest: A public bound on the size of all numbers that are looked at.
            error: The largest error that these numbers are computed with.
            simulated: A seeded source of noise, for experiments: then nothing is charged, and nothing promised.

        """
        self.relation = relation
        self.budget = budget
        self.account = account
        self.cost = Cost.gaussian(budget.mu) if cost is None else cost
        budget.require_mu(self.cost.mu, "such noise")
        self.receipt: Receipt | None = None
        self.charged = False
        self.queries: list[Query] = []
        self._once = Once("This release", f"transcript {next(_NUMBERS)}") if once is None else once
        self._largest = largest
        self._error = error
        self._simulated = simulated
        self._total: Cost | None = None
        self._cost_of_last = self.cost
        self._asked: Query | None = None
        """What was asked for and not answered yet."""
        self._process = os.getpid()
        self._lock = threading.RLock()
        if simulated is None:
            self._once.check(account)

    def ask(self, query: Query) -> None:
        """Books a query against the cap, before anything is looked at; refuses one beyond what is charged."""
        with self._lock:
            if query.in_parts and any(query is one for one in self.queries):
                self._asked = query
                return
            # The rounds of a fit share one law and one sensitivity: what the last one cost, the next one costs too.
            last = self.queries[-1] if self.queries else None
            shared = last is not None and all(its is own for its, own in zip(last[1:], query[1:], strict=True))
            asked = self._cost_of_last if shared else self._cost_of(query)
            total = asked if self._total is None else Cost.of_all([self._total, asked])
            if total is None or not total.at_most(self.cost) or len(self.queries) == MOST_QUERIES:
                raise InvalidInput(
                    f"A query of {asked} was asked for, and with the {len(self.queries)} before it that is more than "
                    f"the {self.cost} that is charged: it needs more noise, or fewer queries; nothing was released."
                )
            self._total = total
            self._asked = query
            self._cost_of_last = asked
            self.queries.append(query)

    def _cost_of(self, query: Query) -> Cost:
        """Returns what its law says that a query costs; refuses numbers that cannot be relied on."""
        for name, number in (("sensitivity", query.sensitivity), ("size", query.law.size)):
            if type(number) not in _PLAIN:  # a subclass could be one number here and another in the draw
                raise InvalidInput(f"A query's {name} must be a plain number, not a {type(number).__name__}.")
        if not query.in_parts:
            query.law.check_size(self._largest)
        return query.law.cost(query.sensitivity)

    def look(self, step: Callable[..., Any], *given: Any) -> Any:
        """Takes a step that looks at people's rows; where an engine fails at it, says what became of the budget."""
        try:
            return step(*given)
        except EngineFailed as error:
            spent = "what was charged stays charged, and nothing was released" if self.charged else "nothing was spent"
            failure = EngineFailed(f"{str(error).rstrip('.')}; {spent}.")
        raise failure

    def charge(self) -> None:
        """Charges the account for all queries there may be, once; a refusal costs nothing."""
        if self._simulated is not None:
            return
        same_process(self._process, "This transcript")  # before the lock, which a fork may have copied
        with self._lock:
            if self.charged:
                return
            self.receipt = self._once.spend(self.account, self.cost, self.relation)
            self.charged = True

    def answer(self, query: Query, numbers: object = None, given: Any = None, *, feedback: object = None) -> np.ndarray:
        """Returns the numbers with the query's noise, rounded once. Charges first, if that was not done yet.

        Without numbers, they are what the query looks at in the feedback.
        """
        if numbers is None:
            numbers = self.look(query.numbers, feedback)
        looked_at = checked_numbers("What a query looks at", numbers)
        if not query.in_parts:  # whoever answers as people come clips: a refusal then would tell something
            query.law.check_values(looked_at)
        if self._simulated is None:
            same_process(self._process, "This transcript")  # before the lock, which a fork may have copied
        with self._lock:
            if self._asked is not query or not self.charged:
                self._book(query)
            self._asked = None
            return query.law.add(looked_at, self._simulated, given)

    def noise(self, query: Query, shape: tuple[int, ...]) -> Any:
        """Returns the noise of a whole run beforehand, for a loop that adds it itself. Charges first."""
        with self._lock:
            self._book(query)
            return query.law.draw(shape, self._simulated)

    def _book(self, query: Query) -> None:
        """Books what is about to be drawn, unless it was just asked for, and charges."""
        if self._asked is not query:
            self.ask(query)
        self._asked = None
        self.charge()

    def certificate(
        self,
        method: str,
        box: tuple[tuple[float, float], ...] | None,
        assumptions: tuple[Assumption, ...] = (),
        remarks: tuple[str, ...] = (),
        expected_error: float | None = None,
    ) -> Certificate:
        """Returns the public part: what the queries so far promise; refused if one's noise is too small for it."""
        queries = [
            AnsweredQuery(query.law.norm, query.law.family, query.sensitivity, query.law.size) for query in self.queries
        ]
        if self._simulated is not None:
            return Certificate(
                method=method,
                standing="none",
                queries=tuple(queries),
                reproducible=True,
                remarks=(f"Simulates {self.budget}; drawn from a seed, so it protects nobody.",),
                expected_error=expected_error,
            )
        pure = self.cost.mu is None and self.cost.delta == 0
        # Of each kind the finest noise: steps are powers of two, so what it says of rounding holds for the others.
        finest = {type(law): law for law in sorted((query.law for query in self.queries), key=_coarsest_first)}
        drawn = [one for law in finest.values() for one in law.assumptions(self._largest, self._error)]
        counted = not _COUNTS_PARTS.isdisjoint(one.code for one in assumptions)
        if not all(_is_own_law(query.law) and (counted or not query.in_parts) for query in self.queries):
            drawn.append(Code.OWN_CODE())
        stated = dict.fromkeys([*assumptions, Code.CHOSEN(), *drawn, Code.FAIR(), self._accounted()])
        if not is_vouched_for(self.relation, [one.code for one in stated]):
            stated = {Code.NEIGHBOURS(): None, **stated}
        with certifying():
            return Certificate(
                method=method,
                standing="certified",
                relation=self.relation,  # pyright: ignore[reportArgumentType]
                budget=Budget(self.budget.epsilon, 0.0 if pure else self.budget.delta),
                queries=tuple(queries),
                domain=box,
                expected_error=expected_error,
                assumptions=tuple(stated),
                remarks=(*remarks, *(pure_at(self.budget) if pure else ())),
            )

    def _accounted(self) -> Assumption:
        """Returns what a certificate says about other releases of the same data."""
        if self.account is None:
            return Code.NO_ACCOUNT()
        if not self.charged:
            return Code.NOT_CHARGED_YET()
        if not is_own(self.account) or "charge" in vars(self.account):
            return Code.OTHER_ACCOUNT()
        return Code.CHARGED_IN_LEDGER() if self.account.persists else Code.CHARGED_IN_MEMORY()

    def __reduce__(self) -> str:
        raise TypeError("A transcript guards one budget and is not copied or pickled; share what was released.")
