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

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from quietq.audit.distinguisher import Expected
from quietq.audit.draws import BestTest
from quietq.audit.finding import Attack, Finding, Movement, Unprotected
from quietq.audit.frozen_release import Frozen, Release
from quietq.audit.neighbours import BETTER
from quietq.feedback.feedback import Feedback
from quietq.feedback.row_statistics import COMPANY
from quietq.mechanisms.mechanism import Mechanism, Task
from quietq.mechanisms.privatise import choose
from quietq.mechanisms.release import simulate
from quietq.privacy import Budget, InvalidInput

Rows = list[tuple[Any, ...]]
"""One person's, with a cell for each field of the schema."""
Read = Callable[[Any], Feedback]
_SPELLINGS = ("Somebody Else", " somebody  ELSE")
_MANY = 200
_FEW = 12


@dataclass(frozen=True, eq=False)
class WorstRows:
    """The two neighbours that a search found farthest apart, in what a mechanism looks at."""

    mechanism: Mechanism
    one: Feedback
    other: Feedback
    movement: Movement

    def audit(self, runs: int = 1000, **options: Any) -> Finding:
        """Releases both as often as that, by simulation, and tells them apart by the likelihood ratio."""
        test, relation = BestTest(self.mechanism, self.one, self.other), self.mechanism.relation
        seen = "every noisy answer of a release"
        kind = type(self.one).__name__.lower()
        by = f"worst rows ({self.movement.by})"
        attack = Attack(f"reward/{self.mechanism.name}", kind, str(relation), by, seen, "likelihood ratio")
        if self.movement.together is not None and self.mechanism.cost.mu is not None:
            mu = self.movement.together * self.mechanism.cost.mu  # in one transcript, and about that in others
            options = {"expected": Expected(-(mu**2) / 2, mu, mu**2 / 2, mu), **options}
        return test.audit(runs, attack, **options)


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
    >>> read = partial(Ratings.read, state=["x", "y"], box=[(0, 1), (0, 1)], low=0, high=1, count=20)
    >>> move = worst_rows(read, rows, Budget(0.9, 1e-4), tries=4).movement
    >>> move.exceeds, move.share > 0.9
    (False, True)
    """
    crowd = _Crowd(read, source)
    everybody = crowd.with_rows([])
    if mechanism is None:
        mechanism = choose(noise, Task.of(everybody, budget))
    frozen = Frozen(mechanism, release, everybody, seed)
    search = _Search(crowd, frozen, np.random.default_rng(seed))
    search.run(tries)
    search.check()
    share, best = 0.0, search.best[-1]
    for pair in search.farthest():
        found = frozen.share(*(crowd.with_rows(person.rows) for person in (pair.one, pair.other)))
        if not found <= share * BETTER:  # NaN is the worst of all
            share, best = found, pair
    movement = frozen.movement(name or f"{mechanism.name}, one person's rows", share, best.by)
    *each, whole = search.best
    if len(each) > 1:
        movement = replace(movement, queries=tuple(pair.share for pair in each), together=whole.share)
    return WorstRows(mechanism, crowd.with_rows(whole.one.rows), crowd.with_rows(whole.other.rows), movement)


class _Crowd:
    """Everybody else, and one more person whose rows come in two parts, under a name in two spellings."""

    def __init__(self, read: Read, source: Any) -> None:
        self._read, self._source = read, source
        feedback = read(source)
        if feedback.schema is None:
            raise InvalidInput("read must read rows by a schema, or there are none to replace.")
        self.person, self.fields = feedback.schema.person, list(feedback.schema.fields.values())
        self.count = feedback.count

    def with_rows(self, rows: Rows) -> Feedback:
        return self._read([self._frame(rows[1::2], 1), self._source, self._frame(rows[::2])])

    def in_another_order(self, rows: Rows) -> Feedback:
        return self._read([self._source, self._frame(rows[::-1])])

    def alone(self, rows: Rows) -> Feedback:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that no row can be used
            return self._read([self._frame(rows)])

    def _frame(self, rows: Rows, spelling: int = 0) -> Any:
        import polars as pl

        columns = {self.person: [_SPELLINGS[spelling]] * len(rows)}
        columns |= {field.column: [row[i] for row in rows] for i, field in enumerate(self.fields)}
        return pl.DataFrame(columns, strict=False)


@dataclass(frozen=True, eq=False)
class _Person:
    by: str
    rows: Rows
    numbers: list[np.ndarray]
    """Of every query, with nobody else there."""


@dataclass(frozen=True, eq=False)
class _Pair:
    share: float
    one: _Person
    other: _Person

    @property
    def by(self) -> str:
        return self.other.by


class _Search:
    """Candidates for one person's rows, and the farthest pair of them for each query and for all together.

    Nobody; one row at a corner or at the opposite one, many copies of it, or any rows; then the farthest with one
    column turned to its other end; the two farthest mixed, for what is between them; and with a column changed,
    greedily.
    """

    def __init__(self, crowd: _Crowd, frozen: Frozen, rng: np.random.Generator) -> None:
        self._crowd, self._frozen, self._rng = crowd, frozen, rng
        self._people: list[_Person] = []
        self.best: list[_Pair] = []

    def run(self, tries: int) -> None:
        corners = list(dict.fromkeys(row for _ in range(tries) for row in self._opposites()))[: max(tries // 2, 4)]
        self._attempt("nobody", [])
        for corner in corners:
            self._attempt("one row", [corner])
        for number in self._rng.integers(2, 20, max(tries // 8, 2)):
            self._attempt("anything", [self._anything() for _ in range(number)])
        self._attempt("many rows", [corners[0]] * _MANY)
        far = self._far()
        self._attempt("many rows", far * _MANY)
        for rows in self._turned(far):
            self._attempt("opposite", rows)
        one, other = self._pair()
        for number in (11, 12, 13, 14, 16, 18):
            self._attempt("mixture", one[:1] * (20 - number) + other[:1] * number)
        for _ in range(tries // 4):
            rows = list(self._pair()[self._rng.integers(2)])
            self._attempt("greedy", self._change(rows, int(self._rng.integers(len(self._crowd.fields)))))

    def farthest(self) -> list[_Pair]:
        """The pairs to make private among everybody: the farthest in all queries, in any one, and in the first."""
        chosen = [self.best[-1], max(self.best[:-1], key=lambda pair: pair.share), self.best[0]]
        return list({(id(pair.one), id(pair.other)): pair for pair in chosen}.values())

    def check(self) -> None:
        """Refuses numbers that are no sum over people: one person's part must be the same in any order and company."""
        nobody, alone = self._numbers(self._crowd.with_rows([])), self._people[0].numbers
        several = next(person for person in self._people if len(person.rows) > 1)
        for person in (several, self.best[-1].one, self.best[-1].other):
            there = self._numbers(self._crowd.with_rows(person.rows))
            if self._differ(there, self._numbers(self._crowd.in_another_order(person.rows))):
                raise Unprotected(
                    "One person's rows count otherwise in two parts, in another order or under another spelling of the "
                    "name: who is split counts twice."
                )
            if self._differ(_less(there, nobody), _less(person.numbers, alone)):
                raise Unprotected(
                    "One person's rows change what other people count for, so that the numbers are no sum over people."
                )

    def _differ(self, one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> bool:
        """By more than what the noise allows for the company that people are in."""
        for query, difference in zip(self._frozen.queries, _less(one, other), strict=True):
            allowed = COMPANY * math.sqrt(difference.size) * self._crowd.count / 2
            if not query.law.distance(difference) <= allowed * query.sensitivity:
                return True
        return False

    def _attempt(self, by: str, rows: Rows) -> None:
        person = _Person(by, rows, self._numbers(self._crowd.alone(rows)))
        for other in self._people:
            shares = self._frozen.shares(_less(person.numbers, other.numbers))
            found = [_Pair(float(share), other, person) for share in shares]
            old = self.best or found
            self.best = [b if b.share * BETTER >= f.share else f for b, f in zip(old, found, strict=True)]
        self._people.append(person)

    def _numbers(self, feedback: Feedback) -> list[np.ndarray]:
        return [query.numbers(feedback) for query in self._frozen.queries]

    def _pair(self) -> tuple[Rows, Rows]:
        return self.best[-1].one.rows, self.best[-1].other.rows

    def _far(self) -> Rows:
        """Of all single rows, that which is the farthest from nobody."""
        single = [person for person in self._people if len(person.rows) == 1]
        nobody = self._people[0].numbers
        return max(single, key=lambda person: self._frozen.shares(_less(person.numbers, nobody))[-1]).rows

    def _turned(self, rows: Rows) -> Iterator[Rows]:
        """The same rows, with one column at another end of its range in all of them; a few columns of many."""
        places = self._rng.permutation(len(self._crowd.fields))[-_FEW:]
        for place in places:
            ends = [cell for cell in self._crowd.fields[place].extremes if cell != rows[0][place]]
            for cell in self._rng.permutation(np.array(ends, object))[:3]:
                yield [(*row[:place], cell, *row[place + 1 :]) for row in rows]

    def _change(self, rows: Rows, place: int) -> Rows:
        field = self._crowd.fields[place]
        cell = field.anything(self._rng) if self._rng.random() < 0.5 else self._end(field)
        return [(*row[:place], cell, *row[place + 1 :]) for row in rows]

    def _opposites(self) -> Iterator[tuple[Any, ...]]:
        """A row at a corner, and the one that has every cell at the other end."""
        ends = [field.extremes for field in self._crowd.fields]
        places = [int(self._rng.integers(len(cells))) for cells in ends]
        yield tuple(cells[place] for cells, place in zip(ends, places, strict=True))
        yield tuple(cells[-1 - place] for cells, place in zip(ends, places, strict=True))

    def _end(self, field: Any) -> Any:
        return field.extremes[self._rng.integers(len(field.extremes))]

    def _anything(self) -> tuple[Any, ...]:
        return tuple(field.anything(self._rng) for field in self._crowd.fields)


def _less(one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [first - second for first, second in zip(one, other, strict=True)]
