"""The adversary's search among smooth functions: |v| at most `radius`, and no steeper than `lipschitz`, on [0, 1].

A function is its values at the ends of equally long pieces, straight lines between. What is maximised is a norm, or
close to one, so the farthest are corners of the ball: zigzags close under its lid, walks that are always at full slope,
the corner that a gradient points to (a linear program, again and again), and corners that are one value away.
"""

from collections.abc import Callable, Iterator

import numpy as np
from jaxtyping import Float
from scipy.optimize import linprog

from quietq.privacy.relations import LipschitzBall

Values = Float[np.ndarray, " ends"]
_RANDOM = 12
_CLIMBS = 8
_SWEEPS = 2


def farthest_move(
    moved: Callable[[Values], float], length: Callable[[Values], float], ball: LipschitzBall, pieces: int, seed: int
) -> tuple[float, str, Values]:
    """The farthest that any of the searches moves, by which, and the move.

    `moved` is what counts, by the audited code; `length` is what theory takes it for, and only points the way.
    """
    best: tuple[float, str, Values] = (0.0, "nothing", np.zeros(pieces + 1))

    def attempt(values: Values, by: str) -> float:
        nonlocal best
        values = into_ball(values, ball)
        found = moved(values)
        if found > best[0] * (1 + 1e-6):
            best = (found, by, values)
        return found

    attempt(np.full(pieces + 1, ball.radius), "constant")
    attempt(ball.lipschitz * np.linspace(-0.5, 0.5, pieces + 1), "line")
    for values in zigzags(ball, pieces):
        attempt(values, "zigzag")
    rng = np.random.default_rng(seed)
    walks = [random_walk(ball, pieces, rng) for _ in range(_RANDOM)]
    beginning = max(walks, key=lambda values: attempt(values, "random"))
    for values in climb(length, ball, beginning):
        attempt(values, "gradient")
    _greedy(attempt, ball, best[2])
    return best


def into_ball(values: Values, ball: LipschitzBall) -> Values:
    """The same if it lies in the ball, else shrunk until it does."""
    pieces = len(values) - 1
    steepest = np.abs(np.diff(values)).max() * pieces / ball.lipschitz
    return values / max(1.0, np.abs(values).max() / ball.radius, steepest)


def zigzags(ball: LipschitzBall, pieces: int) -> Iterator[Values]:
    """Down from the lid and up to it again at full slope, over one, two or four pieces each way, from any place."""
    for half in (half for half in (1, 2, 4) if half <= pieces):
        for phase in range(half):
            place = (np.arange(pieces + 1) + phase) % (2 * half)
            drop = ball.lipschitz / pieces * np.minimum(place, 2 * half - place)
            yield np.maximum(ball.radius - drop, -ball.radius)


def random_walk(ball: LipschitzBall, pieces: int, rng: np.random.Generator) -> Values:
    """Up or down at full slope, piece by piece, held to the ball."""
    steps = ball.lipschitz / pieces * rng.choice([-1.0, 1.0], pieces)
    values = [rng.choice([-1.0, 1.0]) * ball.radius]
    for step in steps:
        values.append(float(np.clip(values[-1] + step, -ball.radius, ball.radius)))
    return np.array(values)


def climb(length: Callable[[Values], float], ball: LipschitzBall, values: Values) -> Iterator[Values]:
    """The corner of the ball that the gradient of the squared length points to, then from there (Frank & Wolfe)."""
    ends = len(values)
    differences = np.diff(np.eye(ends), axis=0)
    tiny = 1e-3 * ball.radius * np.eye(ends)
    for _ in range(_CLIMBS):
        gradient = np.array([length(values + e) ** 2 - length(values - e) ** 2 for e in tiny])
        gradient = gradient / np.abs(gradient).max(initial=1e-300)
        solved = linprog(
            -gradient,
            A_ub=np.concatenate([differences, -differences]),
            b_ub=np.full(2 * ends - 2, ball.lipschitz / (ends - 1) / ball.radius),  # in units of the radius
            bounds=(-1, 1),
        )
        corner = ball.radius * np.asarray(solved.x)
        if np.allclose(corner, values, atol=1e-6 * ball.radius):
            return
        values = corner
        yield values


def _greedy(attempt: Callable[[Values, str], float], ball: LipschitzBall, start: Values) -> None:
    """One value after the other to whichever end of what its neighbours allow moves farther."""
    values, farthest = start.copy(), attempt(start, "greedy")
    most = ball.lipschitz / (len(values) - 1)
    for _ in range(_SWEEPS):
        before = farthest
        for i in range(len(values)):
            beside = np.concatenate([values[max(i - 1, 0) : i], values[i + 1 : i + 2]])
            highest, lowest = min(ball.radius, *(beside + most)), max(-ball.radius, *(beside - most))
            for end in (highest, lowest):
                other = values.copy()
                other[i] = end
                if (found := attempt(other, "greedy")) > farthest * (1 + 1e-9):
                    values, farthest = other, found
        if farthest <= before * (1 + 1e-6):
            return
