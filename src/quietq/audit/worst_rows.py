"""One person among many, whose rows are replaced by the worst that a search finds.

Whatever the kind of feedback and the mechanism, rows go all the way: drawn by the schema's fields, which say which
cells an adversary would try, read, cleaned, clipped, averaged, made private. One transcript is drawn and replayed to
both neighbours, so that all queries are the same, and what is compared is how far apart the two are in each query, in
its law's own distance, and in all of them together (by the root of the sum of squares, for Gaussian noise) against the
budget.

A query asks for a sum over people, so it is enough to look at each candidate alone, and then at every pair of them;
that it is a sum is checked: no person's part may depend on who else is there, on the order of rows, on the parts in
which they come or on how the name is spelt. The farthest pairs are then made private among everybody, with the noise of
one seed.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from quietq.audit.draws import BestTest, audit_draws
from quietq.audit.finding import Attack, Finding, Movement, Promise, Unprotected
from quietq.audit.frozen_release import Frozen, Release
from quietq.audit.neighbours import BETTER
from quietq.feedback.feedback import Feedback
from quietq.feedback.row_statistics import BATCH_ROUNDING
from quietq.mechanisms.candidates import choose
from quietq.mechanisms.release import Mechanism, simulate
from quietq.privacy import Budget, InvalidInput
from quietq.released.publishable import Publishable

Row = tuple[object, ...]
Rows = list[Row]
"""One person's, with a cell for each field of the schema."""
Read = Callable[..., Feedback]
_SPELLINGS = ("4000000007", " 4000000007.0")
"""One name in two spellings: a number, as most people's names are."""
_MANY = 1000
"""Rows of somebody who gives many."""


class Neighbourhood:
    """Everybody else, and one more person whose rows come in two parts, under a name in two spellings."""

    def __init__(self, read: Read, source: object) -> None:
        self._reader, self._source = read, source
        feedback = self._read(source)
        if feedback.schema is None:
            raise InvalidInput("read must read rows by a schema, or there are none to replace.")
        self.person, self.fields = feedback.schema.person, list(feedback.schema.fields.values())
        self.people = feedback.people
        whats = [field.what for field in self.fields]
        self.kinds = [[i for i, one in enumerate(whats) if one == what] for what in dict.fromkeys(whats)]

    def with_rows(self, rows: Rows) -> Feedback:
        return self._read([self._frame(rows[1::2], _SPELLINGS[1]), self._source, self._frame(rows[::2])])

    def in_another_order(self, rows: Rows) -> Feedback:
        return self._read([self._source, self._frame(rows[::-1], "4000000008")])

    def in_batch(self, rows: Rows, others: Sequence[Rows]) -> Feedback:
        names = [f"other {number}" for number, theirs in enumerate(others) for _ in theirs]
        batch = self._frame([row for theirs in others for row in theirs], names)
        return self._read([batch, self._frame(rows, "Somebody Else")])

    def _read(self, source: object) -> Feedback:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that rows look like a mistake, or none can be used
            return self._reader(source)

    def _frame(self, rows: Rows, name: str | list[str] = _SPELLINGS[0]) -> Any:
        import polars as pl

        columns = {self.person: [name] * len(rows) if isinstance(name, str) else name}
        columns |= {field.column: [row[i] for row in rows] for i, field in enumerate(self.fields)}
        return pl.DataFrame(columns, strict=False)


@dataclass(frozen=True, eq=False)
class Person:
    """One candidate for the person who is searched for: how the rows were found, and what each query sees of them."""

    by: str
    rows: Rows
    numbers: list[np.ndarray]
    """The person's part of every query, with nobody else there."""


class RowPair(NamedTuple):
    """Two candidates, and how far apart they are as part of what is stated."""

    share: float
    one: Person
    other: Person


class RowSearch:
    """Candidates for one person's rows, and the farthest pair of them for each query and for all together.

    Nobody; one row at a corner or at the opposite one, many copies of it, many corners, or any rows; then the farthest
    with one column turned to its other end, or all that say the same thing, such as where; all rows that push
    the same way; the two farthest mixed, for what is between them; and with a column changed, greedily.
    """

    def __init__(self, crowd: Neighbourhood, frozen: Frozen, rng: np.random.Generator) -> None:
        self._crowd, self._frozen, self._rng = crowd, frozen, rng
        self._people: list[Person] = []
        self.best: list[RowPair] = []

    def run(self, tries: int, candidates: Mapping[str, Rows]) -> None:
        corners = list(dict.fromkeys(row for _ in range(tries) for row in self._opposites()))[: max(tries // 2, 4)]
        self._attempt("nobody", [])
        for by, rows in candidates.items():
            self._attempt(by, rows)
        for corner in corners:
            self._attempt("one row", [corner])
        for number in (*self._rng.integers(2, 20, max(tries // 8, 2)), *[1] * (tries // 2)):
            self._attempt("anything", [self._anything() for _ in range(number)])
        self._attempt("contradictions", self._contradictions())
        far = self._far()
        self._attempt("many rows", far.rows * _MANY)
        for row in dict.fromkeys(self._turned(far.rows[0])):
            self._attempt("opposite", [row])
        for rows in self._aligned(far):
            self._attempt("aligned", rows)
        self._mix()
        for _ in range(tries // 4):
            self._attempt("greedy", self._change(self._farthest_two()[self._rng.integers(2)].rows))

    def _mix(self) -> None:
        """The two farthest in one person, so that they nearly cancel: where is what is left the farthest from one?"""
        one, other = (far.rows * (_MANY // max(len(far.rows), 1) + 1) for far in self._farthest_two())

        def attempt(left: float) -> tuple[float, float]:
            number = round(_MANY * (1 + left) / 2)
            return self._attempt("mixture", one[: _MANY - number] + other[:number]), left

        step = 3.0
        best = max(map(attempt, 0.9 / step ** np.arange(5)))
        for _ in range(3):
            step **= 0.5
            best = max(best, attempt(best[1] / step), attempt(min(best[1] * step, 1.0)))

    def farthest(self) -> list[RowPair]:
        """The pairs to make private among everybody: the farthest in all queries, in any one, and in the first."""
        chosen = [self.best[-1], max(self.best[:-1], key=lambda pair: pair.share), self.best[0]]
        return list({(id(pair.one), id(pair.other)): pair for pair in chosen}.values())

    def check(self) -> None:
        """Refuses numbers that are no sum over people: one person's part must be the same in any order and batch.

        One batch are the people of the source; the other are people whose many rows contradict each other.
        """
        contradicting, many = (person for person in self._people if person.by in ("contradictions", "many rows"))
        others = [self._contradictions() for _ in range(min(self._crowd.people - 1, 4))]
        batches = [self._crowd.with_rows, partial(self._crowd.in_batch, others=others)]
        nobody = [self._numbers(batch([])) for batch in batches]
        for person in (contradicting, many, *self._farthest_two()):
            there = [self._numbers(batch(person.rows)) for batch in batches]
            if self._differ(there[0], self._numbers(self._crowd.in_another_order(person.rows))):
                raise Unprotected(
                    "One person's rows count otherwise in two parts, in another order or under another spelling of the "
                    "name: who is split counts twice."
                )
            if any(self._differ(_less(*both), self._part(person)) for both in zip(there, nobody, strict=True)):
                raise Unprotected(
                    "One person's rows change what other people count for, so that the numbers are no sum over people."
                )

    def _differ(self, one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> bool:
        """Says whether they differ by more than what the noise allows for rounding that depends on the batch."""
        for query, difference in zip(self._frozen.queries, _less(one, other), strict=True):
            allowed = BATCH_ROUNDING * math.sqrt(difference.size) * self._crowd.people / 2
            if not query.law.distance(difference) <= allowed * query.sensitivity:
                return True
        return False

    def _attempt(self, by: str, rows: Rows) -> float:
        """Returns how far this is from any candidate before, in any query."""
        person, farthest = Person(by, rows, self._numbers(self._crowd.in_batch(rows, ()))), 0.0
        for other in self._people:
            shares = self._frozen.shares(_less(person.numbers, other.numbers))
            found = [RowPair(float(share), other, person) for share in shares]
            old = self.best or found
            self.best = [b if b.share * BETTER >= f.share else f for b, f in zip(old, found, strict=True)]
            farthest = max(farthest, float(shares.max()))
        self._people.append(person)
        return farthest

    def _numbers(self, feedback: Feedback) -> list[np.ndarray]:
        return [query.numbers(feedback) for query in self._frozen.queries]

    def _farthest_two(self) -> tuple[Person, Person]:
        return self.best[-1].one, self.best[-1].other

    def _single(self) -> list[Person]:
        return [person for person in self._people if len(person.rows) == 1]

    def _part(self, person: Person) -> list[np.ndarray]:
        """Returns what this person adds to each query."""
        return _less(person.numbers, self._people[0].numbers)

    def _far(self) -> Person:
        """Returns the corner that is farthest from a person without rows."""
        single = [person for person in self._single() if person.by == "one row"]
        return max(single, key=lambda person: self._frozen.shares(self._part(person))[-1])

    def _turned(self, row: Row) -> Iterator[Row]:
        """The same corner with all columns that say one thing at other ends of their ranges, and with single ones."""
        single = [[int(place)] for place in self._rng.permutation(len(row))[:4]]
        for places in [*self._crowd.kinds, *single]:
            ends = {place: self._crowd.fields[place].extremes for place in places}
            for turn in range(1, min(max(map(len, ends.values())), 4)):
                turned = list(row)
                for place, cells in ends.items():
                    turned[place] = cells[(cells.index(row[place]) + turn) % len(cells)]
                yield tuple(turned)

    def _aligned(self, far: Person) -> Iterator[Rows]:
        """All single rows that push the same way as the farthest, in one person; and all that push against it."""
        way = np.concatenate([part.ravel() for part in self._part(far)])
        pushes = [
            (one.rows[0], way @ np.concatenate([part.ravel() for part in self._part(one)])) for one in self._single()
        ]
        for sign in (1, -1):
            rows = [row for row, push in pushes if sign * push > 0]
            yield rows * max(1, _MANY // 8 // max(len(rows), 1))

    def _change(self, rows: Rows) -> Rows:
        """One column, of a thing that is chosen first: there may be hundreds that say where, and one that says what."""
        kind = self._crowd.kinds[self._rng.integers(len(self._crowd.kinds))]
        place = kind[self._rng.integers(len(kind))]
        field = self._crowd.fields[place]
        ends = field.extremes
        cell = field.anything(self._rng) if self._rng.random() < 0.5 else ends[self._rng.integers(len(ends))]
        return [(*row[:place], cell, *row[place + 1 :]) for row in rows]

    def _opposites(self) -> Iterator[Row]:
        """A row at a corner, and the one that has every cell at the other end."""
        ends = [field.extremes for field in self._crowd.fields]
        places = [int(self._rng.integers(len(cells))) for cells in ends]
        yield tuple(cells[place] for cells, place in zip(ends, places, strict=True))
        yield tuple(cells[-1 - place] for cells, place in zip(ends, places, strict=True))

    def _contradictions(self) -> Rows:
        """Many rows at corners, so that many begin alike and end otherwise."""
        return [row for _ in range(_MANY // 4) for row in self._opposites()]

    def _anything(self) -> Row:
        return tuple(field.anything(self._rng) for field in self._crowd.fields)


def _less(one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [first - second for first, second in zip(one, other, strict=True)]


@dataclass(frozen=True, eq=False)
class WorstRows(BestTest):
    """The two neighbours that a search found farthest apart in what a mechanism looks at, and the best test of them."""

    movement: Movement

    @cached_property
    def mu(self) -> float | None:
        """How far apart all queries together were found to be: in one transcript, and about that in others."""
        together, whole = self.movement.together, self.mechanism.cost.mu
        return super().mu if together is None or whole is None else together * whole

    def audit(self, runs: int = 1000, move: str | None = None, source: str | None = None, **options: Any) -> Finding:
        """Releases both neighbours many times, by simulation, and distinguishes them by the likelihood ratio.

        Args:
            runs: The number of releases of each neighbour.
            move: What differs between the neighbours, in words; by default what the search says.
            source: What releases are made of, for the finding; by default the kind of feedback.
            options: Further options of `audit_draws`.

        """
        return super().audit(runs, move or self._move, source, **options)

    def audit_file(self, runs: int = 1000, release: Release = simulate, **options: Any) -> Finding:
        """Distinguishes the neighbours by their published files alone, by a score that is learned on a quarter of them.

        Args:
            runs: The number of releases of each neighbour.
            release: How a release is made from a mechanism, a neighbour's feedback and a seed.
            options: Further options of `audit_draws`.

        """

        def draw(side: int, seed: int) -> Float[np.ndarray, " numbers"]:
            return numbers_in_file(release(self.mechanism, (self.before, self.after)[side], seed))

        source = type(self.before).__name__.lower()
        attack = Attack.on_mechanism(self.mechanism, source, self._move, "the published file", "learned")
        return audit_draws(draw, runs, attack, Promise.of_mechanism(self.mechanism), **options)

    @property
    def _move(self) -> str:
        return f"worst rows ({self.movement.by})"


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
    read: Read,
    source: object,
    budget: Budget,
    *,
    noise: str = "auto",
    mechanism: Mechanism | None = None,
    release: Release = simulate,
    candidates: Mapping[str, Rows] | None = None,
    name: str | None = None,
    tries: int = 40,
    seed: int = 0,
) -> WorstRows:
    """Searches for the rows of one person, and for others in their place, that a mechanism distinguishes best.

    What is found comes from these rows: take synthetic people.

    Args:
        read: How rows are read, e.g. a partial of `Ratings.read`.
        source: What it reads: everybody else's rows, of at least two people fewer than are declared, so that there is
            room for somebody who is counted twice.
        budget: The (epsilon, delta) of the release.
        noise: The mechanism, by its name in `privatise`.
        mechanism: The mechanism itself, in the place of a name.
        release: How a release is made with a seed; a broken copy may make it otherwise.
        candidates: Rows of one person that are tried before all others, by what they are called.
        name: The name of the movement.
        tries: Random attempts of the search.
        seed: Makes the search repeatable.

    >>> import polars
    >>> from functools import cached_property, partial
    >>> from quietq import Ratings
    >>> rows = polars.DataFrame({"person": range(18), "x": [0.5] * 18, "y": [0.2] * 18, "rating": [1.0] * 18})
    >>> read = partial(Ratings.read, state=["x", "y"], box=[(0, 1), (0, 1)], low=0, high=1, people=20)
    >>> move = worst_rows(read, rows, Budget(0.9, 1e-4), tries=4).movement
    >>> move.exceeds, move.share > 0.9
    (False, True)

    """
    crowd = Neighbourhood(read, source)
    everybody = crowd.with_rows([])
    if mechanism is None:
        mechanism = choose(noise, everybody, budget)
    frozen = Frozen(mechanism, release, everybody, seed)
    search = RowSearch(crowd, frozen, np.random.default_rng(seed))
    search.run(tries, candidates or {})
    search.check()
    pairs = search.farthest()
    both = [[crowd.with_rows(person.rows) for person in (pair.one, pair.other)] for pair in pairs]
    shares = [frozen.share(*neighbours) for neighbours in both]
    best = int(np.argmax(shares))  # NaN is the worst of all
    movement = frozen.movement(name or f"{mechanism.name}, one person's rows", shares[best], pairs[best].other.by)
    *each, whole = search.best
    if len(each) > 1:
        movement = replace(movement, queries=tuple(pair.share for pair in each), together=whole.share)
    one, other = both[0]  # the farthest in all queries together
    return WorstRows(mechanism, one, other, movement)
