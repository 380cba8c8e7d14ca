"""Neighbouring rewards: the search for the farthest that a relation allows.

A search is a generator: it yields a move, the difference of two neighbours, in the form that the mechanism takes (a
function of states, one per coordinate, or weights), and is sent how far that moved the numbers. What is maximised is a
norm, or close to one, so the farthest are corners of the relation's ball. A new relation registers its own with
`moves.register`.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, singledispatch
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float

from quietq.feedback.own_function import Function, Input, OwnFunction
from quietq.mechanisms.release import Mechanism, Query
from quietq.noise import Box
from quietq.privacy import Exponential, InvalidInput, LipschitzBall, Relation, RkhsBall, SupBall
from quietq.privacy.norms import MOST_PIECES, vertices

Move = Function | Sequence[Function] | np.ndarray
Tried = TypeVar("Tried")
Moves = Generator[tuple[str, Move], float, None]  # how a move was found, and the move; what is sent is its length
Values = Float[np.ndarray, " ends"]
BETTER = 1 + 1e-6
"""What is the same but for rounding is the simpler search's, which came first."""


@dataclass(frozen=True, eq=False)
class Look:
    """The first query of a mechanism: how long a move is there, and where functions are evaluated."""

    mechanism: Mechanism

    @cached_property
    def query(self) -> Query:
        return next(self.mechanism.run())

    def length(self, move: Move) -> float:
        return self.query.law.distance(self.query.numbers(OwnFunction(move, self.mechanism.relation)))

    def places(self) -> Float[np.ndarray, " places"]:
        """The public states at which a function of one coordinate is looked at, in the unit interval."""
        seen: list[np.ndarray] = []

        def note(states: np.ndarray) -> np.ndarray:
            seen.append(np.asarray(states))
            return np.zeros(len(states))

        self.length(note)
        return np.unique(self.mechanism.box.to_unit(np.concatenate(seen)))


def farthest_move(mechanism: Mechanism, seed: int = 0) -> tuple[str, Move]:
    """The move that is the longest in the distance of the mechanism's own law, and how it was found."""
    look = Look(mechanism)
    return run_search(moves(mechanism.relation, look, np.random.default_rng(seed)), look.length)[1:]


def run_search(
    search: Generator[tuple[str, Tried], float, None], length: Callable[[Tried], float]
) -> tuple[float, str, Tried]:
    """The farthest that a search finds, how it was found, and what it is."""
    by, tried = next(search)
    best = (length(tried), by, tried)
    found = best[0]
    while True:
        try:
            by, tried = search.send(found)
        except StopIteration:
            return best
        found = length(tried)
        if not found <= best[0] * BETTER:  # NaN is the worst of all
            best = (found, by, tried)


def add_move(source: Input | None, move: Move, part: float = 1.0) -> Input:
    """The source, moved by so much of the move: functions, one per coordinate, or weights; None is nothing."""
    if isinstance(move, np.ndarray):
        return (0.0 if source is None else np.asarray(source, np.float64)) + part * move
    if callable(move):
        return _moved_function(source, move, part)
    sources = source if isinstance(source, Sequence) else [None] * len(move)
    return [_moved_function(*each, part) for each in zip(sources, move, strict=True)]


def _moved_function(source: Any, move: Function, part: float) -> Function:
    return lambda states: (0.0 if source is None else source(states)) + part * move(states)


@singledispatch
def moves(relation: Relation, look: Look, rng: np.random.Generator) -> Moves:
    """All searches for neighbours by this relation, one after the other."""
    raise InvalidInput(f"There is no search among the neighbours of a {type(relation).__name__}.")


@moves.register
def _(ball: SupBall, look: Look, rng: np.random.Generator) -> Moves:
    """Returns moves that are as rough as one likes."""
    yield "constant", lambda states: np.full(len(states), ball.radius)
    for frequency in rng.uniform(1e5, 1e6, 20):
        yield "random", lambda states, f=frequency: ball.radius * np.sign(np.cos(f * states))
        yield "random", lambda states, f=frequency: ball.radius * np.cos(f * states)


@moves.register
def _(ball: RkhsBall, look: Look, rng: np.random.Generator) -> Moves:
    """Weights in any direction, or sections of the kernel at points of a grid, whose norm is known."""
    kernel: Any = getattr(look.mechanism, "kernel", None)
    if getattr(kernel, "norm", None) != ball.kernel:  # in no other does the ball have a radius
        raise InvalidInput(f"A mechanism for a {type(ball).__name__} can be searched only if it has the ball's kernel.")
    if not isinstance(kernel, Exponential):  # functions are given by weights of features
        for by, unit in kernel.unit_weights(rng):
            weights = ball.radius * unit
            yield by, weights if ball.actions == 1 else np.repeat(weights[:, None], ball.actions, axis=1)
        return
    tables, box = kernel.tables, look.mechanism.box
    for centre in (0.5, 0.0, 0.25, 0.75, 1.0):
        for number, betas in enumerate(tables):
            part = box if len(tables) == 1 else box.coordinate(number)
            section = _section(betas, part, centre, ball)
            rest = [np.zeros_like] * (len(tables) - 1)
            yield "kernel section", section if not rest else [*rest[:number], section, *rest[number:]]


def _section(betas: tuple[float, ...], box: Box, centre: float, ball: RkhsBall) -> Callable[[np.ndarray], np.ndarray]:
    """The kernel of a table with one place fixed: of norm 1 times the radius, in every action."""

    def function(states: np.ndarray) -> Float[np.ndarray, "..."]:
        unit = box.to_unit(states).reshape(len(states), -1)
        values = ball.radius * Exponential(betas).covariance(unit, np.full((1, len(betas)), centre))[:, 0]
        return values if ball.actions == 1 else np.repeat(values[:, None], ball.actions, axis=1)

    return function


@moves.register
def _(ball: LipschitzBall, look: Look, rng: np.random.Generator) -> Moves:
    if ball.actions != 1:
        raise InvalidInput("Only the LipschitzBall of one reward function can be searched so far.")
    return _Lines(ball, look).search()


class _Lines:
    """Straight lines between values at most `radius` in size, no steeper than `lipschitz`.

    Zigzags close under the lid; the corners of the body of knots, of which one is the farthest of all; and from the
    farthest of these, greedily, corners that are one value away. Lines may bend where the mechanism looks and, if that
    is at few places, half way between them.
    """

    def __init__(self, ball: LipschitzBall, look: Look) -> None:
        self._ball, self._look, self._places = ball, look, look.places()
        self._ends = np.union1d(self._places, [0.0, 1.0])
        if few := len(self._ends) <= 300:
            self._ends = np.union1d(self._ends, (self._ends[1:] + self._ends[:-1]) / 2)
        self._few, self._steps = few, ball.lipschitz * np.diff(self._ends)
        self._best = (0.0, np.zeros(len(self._ends)))

    def search(self) -> Moves:
        for values in self._zigzags():
            yield from self._attempt("zigzag", values)
        yield from self._attempt("constant", np.full(len(self._ends), self._ball.radius))
        yield from self._attempt("line", self._ball.lipschitz * (self._ends - 0.5))
        if not self._few:
            return
        if (corner := self._farthest_corner()) is not None:
            yield from self._attempt("corner", np.interp(self._ends, self._places, corner))
        yield from self._turn_one_by_one()

    def _attempt(self, by: str, values: Values) -> Generator[tuple[str, Move], float, float]:
        """Shrunk until it lies in the ball."""
        steepest = np.abs(np.diff(values) / np.diff(self._ends)).max() / self._ball.lipschitz
        values = values / max(1.0, np.abs(values).max() / self._ball.radius, steepest)
        found = yield by, self._function(values, self._ends)
        if found > self._best[0] * BETTER:
            self._best = (found, values)
        return found

    def _function(self, values: Values, at: np.ndarray) -> Function:
        states = self._look.mechanism.box.from_unit(at)
        return lambda where: np.interp(where, states, values)

    def _zigzags(self) -> Iterator[Values]:
        """Down from the lid and up to it again at full slope, over one, two or four pieces each way, from any place."""
        for half in (half for half in (1, 2, 4) if half <= len(self._steps)):
            for phase in range(half):
                turns = (np.arange(len(self._steps)) + phase) // half % 2
                path = np.append(0.0, np.cumsum(self._steps * (2 * turns - 1)))
                yield np.maximum(path - path.max() + self._ball.radius, -self._ball.radius)

    def _farthest_corner(self) -> Values | None:
        """Returns the farthest corner of the body of values at a few equally spaced knots, if it has few enough."""
        pieces, ball = len(self._places) - 1, self._ball
        if not 1 <= pieces <= MOST_PIECES or not np.allclose(self._places, np.linspace(0, 1, pieces + 1)):
            return None
        corners = ball.radius * vertices(ball.lipschitz / pieces / ball.radius, pieces)
        return max(corners, key=lambda values: self._look.length(self._function(values, self._places)))

    def _turn_one_by_one(self) -> Moves:
        farthest, values = self._best[0], self._best[1].copy()
        for _ in range(2):
            before = farthest
            for place in range(len(values)):
                for end in self._allowed(values, place):
                    other = values.copy()
                    other[place] = end
                    if (found := (yield from self._attempt("greedy", other))) > farthest * (1 + 1e-9):
                        values, farthest = other, found
            if farthest <= before * BETTER:
                return

    def _allowed(self, values: Values, place: int) -> tuple[float, float]:
        """The largest and the smallest value at a place that its neighbours and the lid allow."""
        sides = [side for side in (place - 1, place + 1) if 0 <= side < len(values)]
        reach = [self._steps[min(side, place)] for side in sides]
        highest = min(self._ball.radius, *(values[side] + most for side, most in zip(sides, reach, strict=True)))
        lowest = max(-self._ball.radius, *(values[side] - most for side, most in zip(sides, reach, strict=True)))
        return highest, lowest
