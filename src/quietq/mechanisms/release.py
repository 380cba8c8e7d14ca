"""A release is a thing: a mechanism asks queries, and `release` answers them with noise.

A `Query` measures the data once, with noise: numbers, how far apart neighbours can be in them, and the noise's law. A
`Mechanism` is a generator of queries, each of which may depend on the answers so far; that is what adaptive composition
allows. It never sees a number that was not noised. `release` answers through a transcript, which charges, draws, rounds
and certifies: what a mechanism costs is what was charged before the first draw, whatever it asks
(`privacy.transcript`; docs/theory.md#adaptive-composition).

Theorem (mean of people). If each person's vector is a function of their rows and of earlier answers, clipped to length
B, then replacing one of N people moves the mean by at most 2B/N, and by sqrt(2) B/N where no two vectors can be more
than a right angle apart. `mean_of_people` is the query with Gaussian noise for that. Proof:
docs/theory.md#mean-of-people.
"""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar

import numpy as np

from quietq.feedback.feedback import Feedback
from quietq.feedback.own_function import OwnFunction
from quietq.feedback.row_statistics import BATCH_ROUNDING
from quietq.feedback.statistic import Vector
from quietq.noise.box import Box
from quietq.noise.entropy import SeededEntropy
from quietq.noise.laws import Gaussian
from quietq.privacy import (
    Assumption,
    Budget,
    Certificate,
    Code,
    Cost,
    InvalidInput,
    PrivacyWarning,
    Query as Query,
    Relation,
    weak_promise,
)
from quietq.privacy.account import Account
from quietq.privacy.checks import LARGEST, SMALLEST, instance, is_own
from quietq.privacy.errors import shows_nothing
from quietq.privacy.norms import MeanOfPeople
from quietq.privacy.transcript import Transcript
from quietq.released.publishable import Labelled, Labels

SLACK = 1 + 1e-6
"""Each person's part is computed in floating point: this much more noise covers it many times over.

People are summed in whole numbers, and what rounds after that is in the allowance for rounding."""
AnyFeedback = Feedback | OwnFunction
"""What a mechanism releases. Its relation, box, slope and bounds are public, and all that a choice looks at."""


class Mechanism(ABC):
    """A way of releasing: what is charged, what is asked, and what becomes of the answers. Nothing private is in it.

    It is made of what is public about the feedback, and of a budget. What takes time to compute is computed when it is
    needed first: a mechanism that is only asked for its `expected_error` draws nothing up.
    """

    name: ClassVar[str]
    """The name in `privatise(..., noise=name)`."""
    feedback_kind: ClassVar[str] = "function"
    """The `Feedback.kind` that it releases."""
    releases: ClassVar[str] = "reward"
    """What is released; certificates call the method releases/name."""
    pure: ClassVar[bool] = False
    """Whether its noise is pure, without a delta: "auto" takes it only where the budget's delta is 0."""
    relation: Relation
    budget: Budget
    box: Box
    largest: float
    """What queries look at stays below it in size."""
    error: float
    """The largest error of a value, which the queries' sensitivities allow for."""
    conditions: tuple[Assumption, ...]
    """What the promise stands on, besides what feedback, noise and account say themselves."""
    remarks: tuple[str, ...] = ()
    error_unit: ClassVar[str] = "root mean square, in units of the reward"
    """The unit of `expected_error`, which the certificate states only where it is the reward's."""
    asks_code: ClassVar[bool] = True
    """Whether functions of the caller's may see people's rows: where they fail may tell of them, so it must cost. Where
    nothing but quietq's own code looks at rows, it is False: what is refused at once then costs nothing."""

    @classmethod
    def is_for(cls, feedback: AnyFeedback) -> bool:
        """Says whether it can release this kind of feedback."""
        return feedback.kind == cls.feedback_kind

    @property
    def people(self) -> int:
        """Returns the declared number of people, where the relation counts them."""
        if self.relation.people is None:
            raise InvalidInput(f"Noise {self.name!r} is for a declared number of people, not for {self.relation}.")
        return self.relation.people

    @property
    def cost(self) -> Cost:
        """All that an account is charged, before the first query: by default the whole budget."""
        return Cost.apart(self.budget.epsilon) if self.pure else Cost.gaussian(self.budget.mu)

    @abstractmethod
    def run(self) -> Generator[Query, np.ndarray, Any]:
        """Yields queries, is sent their rounded noisy answers, and returns what is released."""

    @abstractmethod
    def result(self, released: Any, certificate: Certificate) -> Any:
        """The released thing, from what `run` returned."""

    @cached_property
    def expected_error(self) -> float:
        """The expected error of the release, which is public; "auto" takes the mechanism whose error is least.

        Root mean square over states, apart from a constant and in units of the reward, unless `error_unit` differs.
        """
        return math.inf


def mean_of_people(statistic: Vector, people: int, mu: float) -> Query:
    """Returns the query that costs `mu`: the mean of the statistic over `people`, each clipped to its bound."""
    sensitivity, law = _noise_of_mean(statistic.diameter, statistic.bound, statistic.size, people, mu)
    return Query(partial(Feedback.mean, statistic=statistic), sensitivity, law)


@lru_cache(maxsize=16)
def _noise_of_mean(diameter: float, bound: float, size: int, people: int, mu: float) -> tuple[float, Gaussian]:
    """The sensitivity of a mean of vectors, by the theorem above, and its noise: the same in all rounds of a fit."""
    sensitivity = diameter / people * SLACK + BATCH_ROUNDING * math.sqrt(size) * bound
    return sensitivity, Gaussian(sensitivity / mu, MeanOfPeople(diameter))


@shows_nothing
def release(mechanism: Mechanism, feedback: AnyFeedback, account: Account | None = None) -> Any:
    """Makes `feedback` private by `mechanism`, once; the account is charged before anything is drawn.

    What can be refused is refused before that. A query beyond what was charged ends the release without a result.
    """
    transcript = _open(mechanism, feedback, account)
    return _answer_all(mechanism, feedback, transcript).issued(transcript.receipt)


@shows_nothing
def simulate(mechanism: Mechanism, feedback: AnyFeedback, seed: int) -> Any:
    """The same release with noise from a seed, as often as you like: private to nobody, charged to nobody."""
    return _answer_all(mechanism, feedback, _open(mechanism, feedback, None, seed))


def release_or_simulate(mechanism: Mechanism, feedback: AnyFeedback, account: Account | None, seed: int | None) -> Any:
    """Releases, or simulates where a seed is given, and warns of a weak promise."""
    if sentence := weak_promise(mechanism.budget, mechanism.relation.people, pure=mechanism.pure):
        warnings.warn(sentence, PrivacyWarning, stacklevel=4)
    if seed is not None:
        return simulate(mechanism, feedback, seed)
    instance("account", account, Account | None, "an Accountant, or a source's account, Ledger(url).account(source)")
    return release(mechanism, feedback, account)


def _answer_all(mechanism: Mechanism, feedback: AnyFeedback, transcript: Transcript) -> Any:
    """Answers a mechanism's queries one after the other, and releases what it makes of the answers."""
    labels = Labels(*feedback.names)  # names that cannot be printed are refused before anything is spent
    steps: Generator[Query, Any, Any] = mechanism.run()
    answer = None
    while True:
        try:
            query = steps.send(answer)
        except StopIteration as last:
            released = mechanism.result(last.value, _certify(transcript, mechanism, feedback))
            return replace(released, labels=labels) if isinstance(released, Labelled) else released
        if query.in_parts:  # nothing here bounds what parts of one come to together
            raise InvalidInput(
                "A mechanism makes whole queries, each of which counts: leave in_parts out; nothing was drawn."
            )
        transcript.ask(query)
        if answer is None:
            _certify(transcript, mechanism, feedback, rehearsal=True)  # what it refuses costs nothing
            if mechanism.asks_code:  # which may tell of rows by failing: that must not be a free answer
                transcript.charge()
        answer = transcript.answer(query, feedback=feedback)


def _open(mechanism: Mechanism, feedback: AnyFeedback, account: Account | None, seed: int | None = None) -> Transcript:
    """A transcript for what the mechanism asks of this feedback, which it must be made for."""
    if not mechanism.is_for(feedback):
        given = f"{type(feedback).__name__} of the kind {feedback.kind!r}"
        raise InvalidInput(f"Noise {mechanism.name!r} does not release {given}.")
    if mechanism.relation != feedback.relation:
        raise InvalidInput(
            f"Noise {mechanism.name!r} is made for {mechanism.relation}, but what is to be released is about "
            f"{feedback.relation}: make it for that."
        )
    if feedback.box is not None and feedback.box != mechanism.box:
        raise InvalidInput(f"Noise {mechanism.name!r} is made for the box {mechanism.box}, not for {feedback.box}.")
    return Transcript(
        mechanism.relation,
        mechanism.budget,
        account,
        cost=mechanism.cost,
        once=feedback.once,
        largest=mechanism.largest,
        error=mechanism.error,
        simulated=None if seed is None else SeededEntropy(seed),
    )


def _certify(
    transcript: Transcript, mechanism: Mechanism, feedback: AnyFeedback, rehearsal: bool = False
) -> Certificate:
    """Returns what was promised so far; refused if a query's sensitivity is below what the relation comes to.

    What the mechanism states may be about all of its queries, of which only the first was asked in rehearsal.
    """
    error = mechanism.expected_error
    own = () if is_own(mechanism) and is_own(feedback) else (Code.OWN_CODE(),)
    of_rewards = mechanism.error_unit == Mechanism.error_unit
    return transcript.certificate(
        f"{mechanism.releases}/{mechanism.name}",
        tuple(zip(mechanism.box.low, mechanism.box.high, strict=True)),
        (*feedback.assumptions, *(() if rehearsal else mechanism.conditions), *own),
        mechanism.remarks,
        error if of_rewards and SMALLEST <= error <= LARGEST else None,
    )
