"""Audits of bandits: two streams of people that differ in one person's context or answers.

Everybody brings a context (or None) and a table with an answer for each arm. `frozen_bandit` draws one transcript of
noisy numbers and replays it to both streams, so that all decisions about others are the same, and measures how far
apart the two are in all that was noised, in the norm that the noise hides. `audit_bandit` draws many transcripts of
both, from fresh noise, and learns to distinguish them: it knows nothing of how noise is drawn, so it also finds noise
that is used twice.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from quietq.audit.draws import audit_draws
from quietq.audit.finding import Attack, Finding, Movement, Promise, Unprotected
from quietq.online import PrivateBandit
from quietq.privacy import InvalidInput


class Visit(NamedTuple):
    """One arrival of one person."""

    context: object
    answers: tuple[float | None, ...]
    """What they would answer to each arm; None for no answer."""
    person: object = None
    """Their name, where the policy counts visits by name."""


Make = Callable[[int], PrivateBandit]
"""A policy that simulates by this seed."""


Numbers = list[np.ndarray]
"""What was noised, or came of it, draw by draw."""


def play(policy: PrivateBandit, visits: Sequence[Visit], replayed: Numbers | None = None) -> tuple[Numbers, Numbers]:
    """THE SECRET, what was noised while these people arrived, and its noisy form: another play's, if that is given."""
    looked, noisy, draw = Numbers(), Numbers(), policy._noised

    def noised(numbers: np.ndarray) -> np.ndarray:
        place = len(looked)
        if replayed is not None and (place >= len(replayed) or replayed[place].shape != numbers.shape):
            raise Unprotected("One person's data changes when something is noised, or how much of it.")
        looked.append(numbers.copy())
        noisy.append(draw(numbers) if replayed is None else replayed[place])
        return noisy[-1]

    setattr(policy, "_noised", noised)  # noqa: B010
    for visit in visits:
        arm = policy.choose(visit.context)
        policy.learn(visit.context, arm, visit.answers[arm], visit.person)
    return looked, noisy


def frozen_bandit(make: Make, before: Sequence[Visit], after: Sequence[Visit], seed: int = 0) -> Movement:
    """Replays one transcript to both streams, and compares their distance before noise with what the noise covers.

    Args:
        make: Makes a policy that simulates by a seed.
        before: One stream of visits.
        after: The same stream with the visits of one person changed.
        seed: Of the transcript.

    """
    policy = make(seed)
    _check(policy, before, after)
    first, noisy = play(policy, before)
    second, _ = play(make(seed), after, noisy)
    if len(second) != len(first):
        raise Unprotected("One person's data changes how often something is noised.")
    moved = np.concatenate([np.zeros(1), *(b - a for a, b in zip(first, second, strict=True))])
    unit, pure = policy.law.cost(1.0), policy.is_pure
    stated = policy.budget.epsilon / (unit.epsilon or 1.0) if pure else policy.budget.mu / (unit.mu or 1.0)
    found = float(np.abs(moved).sum() if pure else np.linalg.norm(moved))
    by = f"a transcript of {len(noisy)} draws"
    return Movement(f"bandit/{policy.name}", stated, found, by, "sum of sizes" if pure else "Euclidean")


def audit_bandit(
    make: Make, before: Sequence[Visit], after: Sequence[Visit], runs: int = 1000, *, most: int = 200, **options: Any
) -> Finding:
    """Audits a bandit: a linear score, learned on a quarter of the plays, distinguishes two neighbouring streams.

    Args:
        make: Makes a policy that simulates by a seed.
        before: One stream of visits.
        after: The same stream with the visits of one person changed.
        runs: How often each stream is played.
        most: How many of the first noisy numbers the score looks at, at the most.
        options: Those of `audit_draws`.

    """
    policy = make(0)
    _check(policy, before, after)
    budget, pure = policy.budget, policy.is_pure
    count = min(most, sum(one.size for one in play(policy, before)[1]))

    def draw(side: int, seed: int) -> Float[np.ndarray, " numbers"]:
        _, noisy = play(make(seed), after if side else before)
        row = np.concatenate([np.zeros(0), *(one.ravel() for one in noisy)])[:count]
        return np.concatenate([row, np.zeros(count - len(row))])

    promise = Promise("certified", budget.epsilon, 0.0 if pure else budget.delta, None if pure else budget.mu)
    relation = str(policy.relation)
    attack = Attack(f"bandit/{policy.name}", "arrivals", relation, "one person", f"{count} noisy numbers", "learned")
    return audit_draws(draw, runs, attack, promise, **options)


def _check(policy: PrivateBandit, before: Sequence[Visit], after: Sequence[Visit]) -> None:
    if [one.person for one in before] != [one.person for one in after]:
        raise InvalidInput("Both streams must have as many visits, of the same people in the same order.")
    apart = [one.person for one, other in zip(before, after, strict=True) if not _same(one, other)]
    if policy.named and len(set(apart)) != 1:
        raise InvalidInput(f"The streams must differ in visits of one person, not of {len(set(apart))}.")
    if not policy.named and not 0 < len(apart) <= policy.visits:
        raise InvalidInput(
            f"The streams must differ in 1 to {policy.visits} visits, those of one person, not {len(apart)}."
        )


def _same(one: Visit, other: Visit) -> bool:
    return one.answers == other.answers and np.array_equal(np.asarray(one.context), np.asarray(other.context))
