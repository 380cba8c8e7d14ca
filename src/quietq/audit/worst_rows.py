"""One person among many, whose rows are replaced by the worst that a search finds: for models of everybody's rows.

Whatever the kind of feedback and the mechanism, rows go all the way: made up by the schema's fields, read, cleaned,
held to bounds, averaged, made private. One transcript is drawn and replayed to both neighbours, so that all queries are
the same, and what is compared is how far apart the two are in each query, in its law's own distance, and in all of them
together (by the root of the sum of squares, for Gaussian noise) against the budget.

A query asks for a sum over people, so it is enough to look at each candidate alone, and then at every pair of them;
that it is a sum is checked: nobody's part may depend on who else is there, on the order of rows, on the parts in which
they come or on how the name is spelt. The farthest pairs are then made private among everybody, with the noise of one
seed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.audit.distinguisher import Expected
from quietq.audit.draws import BestTest, audit_draws
from quietq.audit.finding import Attack, Finding, Movement, Promise
from quietq.audit.frozen_release import Frozen, Release
from quietq.audit.row_search import Crowd, Read, RowSearch
from quietq.feedback.feedback import Feedback
from quietq.mechanisms.mechanism import Mechanism, Task
from quietq.mechanisms.privatise import choose
from quietq.mechanisms.publishable import Publishable
from quietq.mechanisms.release import simulate
from quietq.privacy import Budget


@dataclass(frozen=True, eq=False)
class WorstRows:
    """The two neighbours that a search found farthest apart, in what a mechanism looks at."""

    mechanism: Mechanism
    one: Feedback
    other: Feedback
    movement: Movement

    def audit(self, runs: int = 1000, **options: Any) -> Finding:
        """Releases both as often as that, by simulation, and tells them apart by the likelihood ratio."""
        test = BestTest(self.mechanism, self.one, self.other)
        if self.movement.together is not None and self.mechanism.cost.mu is not None:
            mu = self.movement.together * self.mechanism.cost.mu  # in one transcript, and about that in others
            options = {"expected": Expected(-(mu**2) / 2, mu, mu**2 / 2, mu), **options}
        return test.audit(runs, self._attack("every noisy answer of a release", "likelihood ratio"), **options)

    def audit_file(self, runs: int = 1000, release: Release = simulate, **options: Any) -> Finding:
        """The same for somebody who has the published file alone, by a score that is learned on a quarter of them."""

        def draw(side: int, seed: int) -> Float[np.ndarray, " numbers"]:
            return numbers_in_file(release(self.mechanism, (self.one, self.other)[side], seed))

        attack, promise = self._attack("the published file", "learned"), Promise.of_mechanism(self.mechanism)
        return audit_draws(draw, None, runs, attack, promise, **options)

    def _attack(self, seen: str, score: str) -> Attack:
        method, kind = f"{self.mechanism.releases}/{self.mechanism.name}", type(self.one).__name__.lower()
        by = f"worst rows ({self.movement.by})"
        return Attack(method, kind, str(self.mechanism.relation), by, seen, score)


def numbers_in_file(released: Publishable) -> Float[np.ndarray, " numbers"]:
    """All that a file holds of a release besides its certificate, which says nothing of anybody: a row of numbers."""
    details, arrays = released.to_arrays()
    return np.array([*_numbers(details), *(one for name in sorted(arrays) for one in np.ravel(arrays[name]))], float)


def _numbers(told: object) -> Iterator[float]:
    if isinstance(told, Mapping):
        told = [told[name] for name in sorted(told)]
    if isinstance(told, list):
        for one in told:
            yield from _numbers(one)
    elif isinstance(told, int | float):
        yield float(told)


def worst_rows(
    read: Read, source: Any, budget: Budget, *, noise: str = "auto", mechanism: Mechanism | None = None,
    release: Release = simulate, name: str | None = None, tries: int = 40, seed: int = 0,
) -> WorstRows:  # fmt: skip
    """Searches for the rows of one person, and for others in their place, that a mechanism tells apart best.

    `source` is what `read` reads: everybody else's rows, of at least two people fewer than are declared, so that there
    is room for somebody who is counted twice. `mechanism` is what makes them private, by default what `privatise` would
    take. What is found comes from these rows: take people who are made up.

    >>> import polars
    >>> from functools import partial
    >>> from quietq import Ratings
    >>> rows = polars.DataFrame({"person": range(18), "x": [0.5] * 18, "y": [0.2] * 18, "rating": [1.0] * 18})
    >>> read = partial(Ratings.read, state=["x", "y"], box=[(0, 1), (0, 1)], low=0, high=1, people=20)
    >>> move = worst_rows(read, rows, Budget(0.9, 1e-4), tries=4).movement
    >>> move.exceeds, move.share > 0.9
    (False, True)
    """
    crowd = Crowd(read, source)
    everybody = crowd.with_rows([])
    if mechanism is None:
        mechanism = choose(noise, Task.of(everybody, budget))
    frozen = Frozen(mechanism, release, everybody, seed)
    search = RowSearch(crowd, frozen, np.random.default_rng(seed))
    search.run(tries)
    search.check()
    pairs = search.farthest()
    both = [[crowd.with_rows(person.rows) for person in (pair.one, pair.other)] for pair in pairs]
    shares = [frozen.share(*neighbours) for neighbours in both]
    best = int(np.argmax(shares))  # NaN is the worst of all
    movement = frozen.movement(name or f"{mechanism.name}, one person's rows", shares[best], pairs[best].by)
    *each, whole = search.best
    if len(each) > 1:
        movement = replace(movement, queries=tuple(pair.share for pair in each), together=whole.share)
    one, other = both[0]  # the farthest in all queries together
    return WorstRows(mechanism, one, other, movement)
