"""Which noise for a reward in one dimension: a public rule, of what was declared and the budget, never of the data.

Each kind is judged by the error that it must be expected to leave in the released reward, up to a constant: the root
mean square of its noise, and for a function that is only known at knots also the error of drawing straight lines
between them. That error is taken for a reward with three kinks of the declared slope up and down, two peaks say: each
adds at most slope/(sqrt(12) pieces^(3/2)) in the root mean square. A reward with more detail than that asks for "path".
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from quietq.noise.kernels import Exponential
from quietq.privacy.budget import Budget
from quietq.privacy.checks import count
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import LipschitzBall
from quietq.rewards import ellipsoid, k_norm

Kind = Literal["path", "k-norm", "knots"]
Noise = Literal["auto", "path", "k-norm", "knots"]
_PIECES = (4, 6, 8)


@dataclass(frozen=True)
class Choice:
    """A kind of noise, how many pieces lie between its knots (0: a path has none), and why."""

    kind: Kind
    pieces: int
    expected_error: float
    reason: str


def choose(
    noise: Noise,
    ball: LipschitzBall,
    budget: Budget,
    slope: float | None = None,
    pieces: int | None = None,
    gaussian: bool = False,
) -> Choice:
    """The kind that was asked for, or for "auto" the one with the least expected error.

    `slope` is the slope of the mean reward, if one was declared; without it knots are only taken when asked for.
    `gaussian` leaves pure noise out, for an account that adds up Gaussian noise.

    >>> from quietq.privacy import people
    >>> choose("auto", people(28, 0, 0.5, 1), Budget(0.9, 1e-4), slope=1.0).kind
    'k-norm'
    >>> choose("auto", people(10_000, 0, 0.5, 1), Budget(0.9, 1e-4), slope=1.0).kind
    'path'
    """
    check_kind(noise)
    if budget.is_pure and noise not in ("auto", "k-norm"):
        raise InvalidInput(f"noise {noise!r} is Gaussian and needs delta above 0; 'k-norm' works with delta = 0.")
    if noise == "path" and pieces is not None:
        raise InvalidInput("pieces belongs to noise on knots; a path has none.")
    kinds: list[Kind] = ["k-norm"] if budget.is_pure else ["path", "k-norm", "knots"]
    if noise != "auto":
        kinds = [noise]
    elif slope is None and pieces is None and not budget.is_pure:
        kinds = ["path"]
    elif gaussian and not budget.is_pure:
        kinds = ["path", "knots"]
    candidates = []
    for kind in kinds:
        for d in (0,) if kind == "path" else _PIECES if pieces is None else (count("pieces", pieces),):
            error = _expected_error(kind, ball, budget, slope, d)
            if error is not None:
                candidates.append((error, kind, d))
    if not candidates:
        raise InvalidInput(f"{pieces} pieces are too many for noise {noise!r} with this range and slope: use fewer.")
    error, kind, d = min(candidates)
    asked = "asked for" if noise != "auto" else "chosen by declared bounds and budget, not by the data"
    others = ", ".join(f"{k}{f' with {n} pieces' if n else ''} {e:.3g}" for e, k, n in sorted(candidates)[:4])
    return Choice(kind, d, error, f"Noise kind {kind!r} was {asked}; expected errors: {others}.")


def check_kind(noise: object) -> None:
    """Refuses what is no kind of noise."""
    if noise not in ("auto", "path", "k-norm", "knots"):
        raise InvalidInput(f"noise must be 'auto', 'path', 'k-norm' or 'knots', not {noise!r}.")


def _expected_error(kind: Kind, ball: LipschitzBall, budget: Budget, slope: float | None, d: int) -> float | None:
    """None where the kind cannot be used with so many pieces."""
    if kind == "path":
        return path_noise(ball, budget)
    try:
        if kind == "k-norm":
            noise = k_norm.typical_noise(k_norm.IncrementBody(ball, d), budget.epsilon)
        else:
            noise = knot_noise(ellipsoid.shape(ball, d), budget)
    except InvalidInput:
        return None
    return math.hypot(noise, (slope or 0.0) / (2 * d**1.5))  # sqrt(3) kinks of slope/(sqrt(12) d^1.5)


def path_noise(ball: LipschitzBall, budget: Budget) -> float:
    """Root mean square of a path's noise about its own mean."""
    beta = ball.best_beta()
    sigma = ball.rkhs_radius(Exponential(beta)) / budget.mu
    variance_of_mean = 2 * (beta + math.expm1(-beta)) / beta**2
    return sigma * math.sqrt(max(1 - variance_of_mean, 0.0))


def knot_noise(shape: np.ndarray, budget: Budget) -> float:
    """Root mean square of shaped noise about its own mean."""
    knots = len(shape)
    return math.sqrt((np.trace(shape) - shape.sum() / knots) / knots) / budget.mu
