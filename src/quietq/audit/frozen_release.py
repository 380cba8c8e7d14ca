"""The frozen-noise check of releases: neighbours are no farther apart than stated, and the noise is of its law.

The real release runs twice on neighbours, with the noise of one seed: what moves between the two is the secret alone,
and must be, but for rounding, the numbers that the query says. A mechanism with several queries is sent one transcript
both times, so that its queries are the same. How far apart the numbers are, in the law's own distance, is held against

- the query's stated sensitivity,
- the promise: at a difference v, Gaussian noise costs mu = sqrt(-2 log p(v)/p(0)), and pure noise epsilon =
  -log p(v)/p(0), which is all that a budget has to cover; what else has a delta, its law says,
- the noise that is really there: the release's against the law's own draw from the same seed, and the law's draws
  against its density. If that is proportional to exp(-|z|^k) in n numbers, then |z|^k ~ Gamma(n/k).
"""

import math
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import gammainc

from quietq.audit.finding import Movement, Unprotected
from quietq.audit.neighbours import Look, Move, Moves, add_move, moves, run_search
from quietq.feedback.feedback import Feedback
from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms.release import Mechanism, Query, simulate
from quietq.noise import SeededEntropy
from quietq.noise.laws import Law
from quietq.noise.rounding import rounding_step
from quietq.privacy import Certificate, Cost

Data = Feedback | OwnFunction
Release = Callable[[Mechanism, Any, int], Any]
"""`simulate`, or a copy of it that may be broken: from mechanism, feedback and seed."""


def frozen_release(
    mechanism: Mechanism, *, name: str | None = None, release: Release = simulate, seed: int = 0
) -> Movement:
    """Searches for the neighbours of a mechanism's relation that are farthest apart, beside what its noise covers.

    Args:
        mechanism: The mechanism.
        name: The name of the movement; by default the mechanism's.
        release: How a release is made with a seed; a broken copy may make it otherwise.
        seed: Of the noise, which is the same for both.

    >>> from quietq.feedback.own_function import OwnFunction
    >>> from quietq.mechanisms.candidates import choose
    >>> from quietq.privacy import Budget, people
    >>> declared = OwnFunction(None, people(50, 0, 0.5, 1))
    >>> move = frozen_release(choose("knots", declared, Budget(0.9, 1e-4), pieces=4))
    >>> move.exceeds, move.share > 0.999
    (False, True)

    """

    def search() -> Moves:
        return moves(mechanism.relation, Look(mechanism), np.random.default_rng(seed))

    def part_of(move: Move, part: float) -> OwnFunction:
        return OwnFunction(add_move(None, move, part), mechanism.relation)

    _, first = next(search())
    frozen = Frozen(mechanism, release, part_of(first, 0.0), seed)
    share, by, _ = run_search(search(), lambda move: frozen.share(part_of(move, 0.5), part_of(move, -0.5)))
    return frozen.movement(name or f"reward, {mechanism.name}", share, by)


class Answer(NamedTuple):
    """A query, and the noisy numbers that it was answered with."""

    query: Query
    noised: Float[np.ndarray, "..."]


class Replay(Mechanism):
    """A mechanism whose release is all of its answers; if a transcript is given, that is what it is sent instead."""

    def __init__(self, mechanism: Mechanism, transcript: list[Answer] | None = None) -> None:
        self._mechanism, self._transcript = mechanism, transcript
        self._answers: list[Answer] = []
        for name in ("name", "is_for", "relation", "budget", "box", "largest", "error", "conditions"):
            setattr(self, name, getattr(mechanism, name))

    @property
    def cost(self) -> Cost:
        return self._mechanism.cost

    def run(self) -> Generator[Query, np.ndarray, np.ndarray]:
        steps, self._answers = self._mechanism.run(), []
        query = next(steps)
        while True:
            self._answers.append(Answer(query, (yield query)))
            sent = self._answers if self._transcript is None else self._transcript
            try:
                query = steps.send(sent[len(self._answers) - 1].noised)
            except StopIteration:
                return np.zeros(0)

    def result(self, released: np.ndarray, certificate: Certificate) -> list[Answer]:
        return self._answers


class Frozen:
    """The release of a mechanism from one seed, as a function of the data."""

    def __init__(self, mechanism: Mechanism, release: Release, feedback: Data, seed: int) -> None:
        self._mechanism, self._release, self._seed = mechanism, release, seed
        self._transcript: list[Answer] = release(Replay(mechanism), feedback, seed)
        self._size = self._size_of_noise(feedback)

    @property
    def queries(self) -> list[Query]:
        return [query for query, _ in self._transcript]

    def share(self, one: Data, other: Data) -> float:
        """Returns how far apart two neighbours are, as part of what is stated: of any query's or of all together."""
        both = [self._release(Replay(self._mechanism, self._transcript), each, self._seed) for each in (one, other)]
        differences = [query.numbers(one) - query.numbers(other) for query in self.queries]
        for query, difference, first, second in zip(self.queries, differences, *both, strict=True):
            if not np.allclose(
                first.noised - second.noised, difference, rtol=0, atol=1.01 * rounding_step(query.law.sigma)
            ):
                raise Unprotected(f"A release by {self._mechanism.name!r} holds other numbers than its query says.")
        return float(self.shares(differences).max())

    def shares(self, differences: Sequence[np.ndarray]) -> Float[np.ndarray, " queries_and_promise"]:
        """Returns the shares of each query's stated sensitivity and, in the end, of all that the budget promises."""
        pairs = list(zip(self.queries, differences, strict=True))
        each = [query.law.distance(difference) / query.sensitivity for query, difference in pairs]
        given_away = math.fsum(-query.law.log_density(difference) for query, difference in pairs)
        budget, cost = self._mechanism.budget, self._mechanism.cost
        promised = given_away / budget.epsilon if cost.mu is None else math.sqrt(2 * given_away) / budget.mu
        if cost.delta and given_away:  # more than epsilon may be, as seldom as delta says: the law knows how much
            spent = Cost.of_all([query.law.cost(query.law.distance(difference)) for query, difference in pairs])
            promised = math.inf if spent is None else (spent.epsilon or math.inf) / budget.epsilon
        return np.array([*each, promised]) / self._size

    def movement(self, name: str, share: float, by: str) -> Movement:
        """Returns the movement of one query in its own norm; of several, over what is stated."""
        if len(self._transcript) > 1:
            return Movement(name, 1.0, share, by, "stated")
        query = self._transcript[0].query
        return Movement(name, query.sensitivity, share * query.sensitivity, by, str(query.law.norm))

    def _size_of_noise(self, feedback: Data) -> float:
        """The noise of the release, in units of what its law says: 1, unless there is too little of it."""
        # Noise of another law can be the same up to its size in one draw, but not in three.
        drawn = [self._noise(feedback, seed) for seed in range(self._seed, self._seed + 3)]
        found = []
        for (query, noised), pairs in zip(self._transcript, zip(*drawn, strict=True), strict=True):
            noise, own = np.array(pairs).swapaxes(0, 1)
            size = float(np.sum(noise * own) / np.sum(own**2))
            if not np.allclose(noise, size * own, rtol=0, atol=rounding_step(query.law.sigma)):
                raise Unprotected(f"The noise of {self._mechanism.name!r} is not what its law draws.")
            found.append((size if abs(size - 1) > 1e-3 else 1.0) * _size_of_draws(query.law, noised.shape))
        return min(found)

    def _noise(self, feedback: Data, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
        entropy = SeededEntropy(seed)
        answers = self._release(Replay(self._mechanism, self._transcript), feedback, seed)
        return [(noised - query.numbers(feedback), query.law.draw(noised.shape, entropy)) for query, noised in answers]


def _size_of_draws(law: Law, shape: tuple[int, ...]) -> float:
    """The law's draws, in units of what its density says: 1, unless they are clearly smaller."""
    numbers = math.prod(shape)
    draws = max(3, -(-600 // numbers))  # so that at least 600 numbers tell of the law
    entropy = SeededEntropy(1)
    total = math.fsum(-law.log_density(law.draw(shape, entropy)) for _ in range(draws))
    degree = 1 if law.cost(1.0).mu is None else 2
    freedom = draws * numbers / degree
    below = float(gammainc(freedom, total))
    chance = 1e-9  # that a law which is right is taken for a wrong one
    if below > 1 - chance:
        raise Unprotected("The noise does not have the stated density: its draws are too long.")
    return (total / freedom) ** (1 / degree) if below < chance else 1.0
