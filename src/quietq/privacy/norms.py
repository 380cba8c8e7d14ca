"""What sensitivity and noise are measured in, as a certificate's JSON has it; and what a relation comes to in it.

Each kind belongs to a theorem (docs/theory.md). `largest_difference` is the theorem's sensitivity, from the relation
and the norm alone: it knows nothing of how much noise was drawn, so that a certificate can hold the two against each
other. A norm that is not known here has no theorem, and nothing is certified in it.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import chdtri, gammaincinv, ndtri

from quietq.privacy.checks import count, positive, real, shown
from quietq.privacy.errors import InvalidInput
from quietq.privacy.knot_body import MOST_PIECES, vertices
from quietq.privacy.words import norm_in_words, relation_in_words

Record = Mapping[str, Any]
_RIDGE = 1e-8  # of the projection on a band-limited kernel's terms
UNIT_ROUNDING = 2.0**-24  # of float32
FEWEST = 1024
MOST_QUERIES = 10_000
"""Rewards in float32 are clipped to twice the radius times the people, or times this if they are fewer."""


def largest_difference(norm: Record, relation: Record) -> float:
    """The most that neighbours differ by in this norm; refused if the norm is unknown, or has no such bound.

    >>> ball = {"kind": "lipschitz-ball", "radius": 0.01, "lipschitz": 0.04, "actions": 1, "people": 50}
    >>> round(largest_difference({"kind": "exponential", "beta": 4.0}, ball), 8)
    0.02236068
    """
    _check_fields(norm)
    try:
        found = _DIFFERENCES[norm["kind"]](norm, relation)
    except (ArithmeticError, LookupError, TypeError, ValueError, np.linalg.LinAlgError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"The norm {shown(_plain(norm))} is not one that a difference can be measured in."
        ) from error
    return positive("What neighbours differ by in this norm", found)


def dimension(norm: Record) -> int | None:
    """How many coordinates the states have on which this norm is defined; None if it does not look at states."""
    return _DIMENSIONS[norm["kind"]](norm) if norm["kind"] in _DIMENSIONS else None


def smooth_epsilon(norm: Record, scale: float, delta: float) -> float:
    """The epsilon of Gaussian noise of size `scale` times a smooth bound (`learning.smooth_sensitivity` has the proof).

    >>> round(smooth_epsilon({"kind": "smooth-bound", "weights": 5, "beta": 1 / 65.9}, 10.0, 1e-6), 2)
    1.0
    """
    d, beta, alpha = norm["weights"], norm["beta"], 1 / scale
    low, high = min(2 * float(gammaincinv(d / 2, delta / 2)), d), max(float(chdtri(d, delta / 2)), d)
    quantile = -float(ndtri(delta / 2))
    narrower = math.expm1(2 * beta) * high / 2 - beta * d + math.exp(beta) * alpha * quantile + alpha**2 / 2
    wider = beta * d + math.expm1(-2 * beta) * low / 2 + alpha * quantile + alpha**2 / 2
    return max(narrower, wider)


def sup_radius(relation: Record) -> float:
    """The most that one reward can differ between neighbours.

    >>> sup_radius({"kind": "sup-ball", "radius": 0.01, "people": None})
    0.01
    """
    if relation["kind"] in ("sup-ball", "lipschitz-ball"):
        return relation["radius"]
    if relation["kind"] == "rkhs-ball" and relation["kernel"]["kind"] == "exponential":
        return relation["radius"]  # |f(x)| <= |f| sqrt(K(x, x))
    if relation["kind"] == "rkhs-ball" and relation["kernel"]["kind"] == "additive":
        return relation["radius"] * math.sqrt(len(relation["kernel"]["parts"]))
    raise InvalidInput(
        "This method needs to know how much one reward can change: state a SupBall (for features of length at most c, "
        "its radius is c times that of the weights), or use 'reward'."
    )


def rounding(operations: int, people: int | None) -> float:
    """How much farther apart neighbours can be than without rounding, after so many operations in a row in float32.

    Each changes a number of the size that rewards are clipped to by at most 2^-24 of it, for each of two neighbours.
    """
    return 1 + 4 * operations * UNIT_ROUNDING * max(people or 0, FEWEST)


def knot_shape(norm: Record) -> Float[np.ndarray, "knots knots"]:
    """The covariance of noise at knots, in units of its mean variance."""
    shape = np.array(norm["shape"], dtype=np.float64)
    pieces = len(shape) - 1
    if shape.shape != (pieces + 1, pieces + 1) or not 1 <= pieces <= MOST_PIECES:
        raise InvalidInput(f"The norm's shape must be a square of 2 to {MOST_PIECES + 1} rows.")
    if not (np.array_equal(shape, shape.T) and math.isclose(float(np.trace(shape)), pieces + 1, rel_tol=1e-9)):
        raise InvalidInput("The norm's shape must be symmetric, with a mean of 1 on its diagonal.")
    return shape


def _check_fields(norm: Record) -> None:
    kind = norm.get("kind")
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise InvalidInput(f"What is certified must be measured in a norm that is known here, not in {shown(kind)}.")
    if set(norm) != {"kind", *_FIELDS[kind]}:
        raise InvalidInput(f"A norm of the kind {kind!r} has exactly the fields {sorted({'kind', *_FIELDS[kind]})}.")
    for name, check in _FIELDS[kind].items():
        check(f"The norm's {name}", norm[name])


def _in_kernel(norm: Record, relation: Record) -> float:
    if relation["kind"] == "rkhs-ball" and _plain(relation["kernel"]) == _plain(norm):
        return math.sqrt(relation["actions"]) * relation["radius"]
    raise _no_bound(norm, relation)


def _in_exponential(norm: Record, relation: Record) -> float:
    if relation["kind"] != "lipschitz-ball":
        return _in_kernel(norm, relation)
    radius, beta, slope = relation["radius"], norm["beta"], relation["lipschitz"] / relation["radius"]
    return math.sqrt(relation["actions"]) * radius * math.sqrt(1 + beta / 2 + slope / beta * slope / 2)


def _in_band_limited(norm: Record, relation: Record) -> float:
    """A function that is projected on finitely many terms can differ by a little more than it did before."""
    stretch = 1 + math.sqrt(2 * norm["rank"] * norm["tolerance"]) / (2 * math.sqrt(_RIDGE))
    return stretch * _in_kernel(norm, relation)


def _at_knots(norm: Record, relation: Record) -> float:
    """A convex function is largest at a vertex of the body."""
    ball, shape = _one_lipschitz(norm, relation), knot_shape(norm)
    pieces = len(shape) - 1
    points = vertices(ball["lipschitz"] / pieces / ball["radius"], pieces)
    lengths = np.linalg.norm(np.linalg.solve(np.linalg.cholesky(shape), points.T), axis=0)
    return ball["radius"] * float(lengths.max())


def _between_knots(norm: Record, relation: Record) -> float:
    """The gauge of one body of increments, at most over another: its steepest step, or its whole range."""
    ball, pieces = _one_lipschitz(norm, relation), norm["pieces"]
    radius, lipschitz = ball["radius"], ball["lipschitz"]
    steepest = min(lipschitz, 2 * radius * pieces) / norm["lipschitz"]
    return max(steepest, min(2 * radius, lipschitz) / (2 * norm["radius"]))


def _one_lipschitz(norm: Record, relation: Record) -> Record:
    if relation["kind"] == "lipschitz-ball" and relation["actions"] == 1:
        return relation
    raise _no_bound(norm, relation)


def _of_values(norm: Record, relation: Record) -> float:
    return _together("count")(norm, relation) / (1 - norm["discount"])


def _of_gradients(norm: Record, relation: Record) -> float:
    """Each round's own sensitivity, as rewards that differ by the norm's radius move it, counts as 1."""
    return math.sqrt(norm["rounds"]) * max(1.0, sup_radius(relation) / norm["radius"])


def _of_trajectories(norm: Record, relation: Record) -> float:
    """The bound itself is what neighbours differ by."""
    if relation["kind"] == "replace-trajectory":
        return 1.0
    raise _no_bound(norm, relation)


def _together(counted: str) -> Callable[[Record, Record], float]:
    def together(norm: Record, relation: Record) -> float:
        rounded = rounding(norm["operations"], relation["people"]) if norm["operations"] else 1.0
        return rounded * sup_radius(relation) * math.sqrt(norm[counted])

    return together


def _each(norm: Record, relation: Record) -> list[float]:
    """What neighbours differ by in each of several queries, in units of its noise."""
    return [largest_difference(query["norm"], relation) / query["size"] for query in norm["of"]]


def _no_bound(norm: Record, relation: Record) -> InvalidInput:
    return InvalidInput(
        f"Nothing bounds {relation_in_words(relation)} in {norm_in_words(norm)}, so nothing is certified in it."
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be text, not {shown(value)}.")


def _operations(name: str, value: object) -> None:
    """Of float32, whose rounding counts; none in float64."""
    count(name, value, 0)


def _discount(name: str, value: object) -> None:
    if not 0 <= real(name, value) < 1:
        raise InvalidInput(f"{name} must be at least 0 and below 1, not {shown(value)}.")


def _betas(name: str, value: object) -> None:
    if not isinstance(value, list | tuple) or not value:
        raise InvalidInput(f"{name} must be a list, one entry a coordinate, not {shown(value)}.")
    for beta in value:
        positive(name, beta)


def _parts(name: str, value: object) -> None:
    if not isinstance(value, list | tuple) or not value:
        raise InvalidInput(f"{name} must be a list, one entry a coordinate, not {shown(value)}.")
    for part in value:
        if not isinstance(part, Mapping) or set(part) != {"kind", "beta"} or part["kind"] != "exponential":
            raise InvalidInput(f"{name} must be exponential kernels, not {shown(_plain(part))}.")
        positive(name, part["beta"])


def _queries(name: str, value: object) -> None:
    if not isinstance(value, list | tuple) or not 2 <= len(value) <= MOST_QUERIES:
        raise InvalidInput(f"{name} must be a list of 2 to {MOST_QUERIES} queries, not {shown(_plain(value))}.")
    for query in value:
        if not isinstance(query, Mapping) or set(query) != {"norm", "size"} or not isinstance(query["norm"], Mapping):
            raise InvalidInput(f"{name} must have a norm and a size for each query, not {shown(_plain(query))}.")
        if str(query["norm"].get("kind")).endswith("-queries"):
            raise InvalidInput(f"{name} must be single queries.")
        positive(name, query["size"])


def _matrix(name: str, value: object) -> None:
    rows = value if isinstance(value, list | tuple) else ()
    if not rows or not all(isinstance(row, list | tuple) and len(row) == len(rows) for row in rows):
        raise InvalidInput(f"{name} must be a square of numbers, not {shown(_plain(value))}.")
    for row in rows:
        for number in row:
            real(name, number)


_FIELDS: dict[str, dict[str, Callable[[str, object], object]]] = {
    "exponential": {"beta": positive},
    "additive": {"parts": _parts},
    "product": {"betas": _betas},
    "features": {"phi": _text, "rank": count, "dimension": count},
    "band-limited": {"half_width": positive, "tolerance": positive, "rank": count},
    "knots": {"shape": _matrix},
    "increments": {"pieces": count, "radius": positive, "lipschitz": positive},
    "rewards": {"count": count, "operations": _operations},
    "mean-rewards": {"rounds": count, "operations": _operations},
    "reward-gradients": {"rounds": count, "radius": positive},
    "clipped-gradients": {"rounds": count, "radius": positive},
    "values": {"count": count, "discount": _discount, "operations": _operations},
    "smooth-bound": {"weights": count, "beta": positive},
    "gaussian-queries": {"of": _queries},
    "pure-queries": {"of": _queries},
}
PURE = frozenset({"features", "increments", "pure-queries"})
"""Norms in which pure noise is drawn: of density exp(-|z|/scale)."""
GAUSSIAN = frozenset(_FIELDS) - {"increments", "smooth-bound", "pure-queries"}
"""Norms in which Gaussian noise is drawn, of deviation sigma in all directions."""
_DIFFERENCES: dict[str, Callable[[Record, Record], float]] = {
    "exponential": _in_exponential,
    "additive": _in_kernel,
    "product": _in_kernel,
    "features": _in_kernel,
    "band-limited": _in_band_limited,
    "knots": _at_knots,
    "increments": _between_knots,
    "rewards": _together("count"),
    "mean-rewards": _together("rounds"),
    "reward-gradients": _of_gradients,
    "clipped-gradients": _of_gradients,
    "values": _of_values,
    "smooth-bound": _of_trajectories,
    "gaussian-queries": lambda norm, relation: math.hypot(*_each(norm, relation)),
    "pure-queries": lambda norm, relation: math.fsum(_each(norm, relation)),
}
_DIMENSIONS: dict[str, Callable[[Record], int]] = {
    "exponential": lambda norm: 1,
    "additive": lambda norm: len(norm["parts"]),
    "product": lambda norm: len(norm["betas"]),
    "features": lambda norm: norm["dimension"],
    "band-limited": lambda norm: 1,
    "knots": lambda norm: 1,
    "increments": lambda norm: 1,
}
