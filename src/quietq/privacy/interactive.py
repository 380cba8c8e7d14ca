"""Norms of what noises as it goes: observed rewards, rounds of averages and gradients, values, answers of arrivals.

All that methods in worlds see of a relation is how much one reward can change (`sup_radius`). These norms are
registered here and not with their methods, because a certificate is read also where there is no JAX.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

from quietq.privacy.checks import count, positive, probability
from quietq.privacy.errors import InvalidInput
from quietq.privacy.norms import NORMS, Norm, Record, rounding
from quietq.privacy.relations import sup_radius
from quietq.privacy.words import plural

_OPERATIONS = partial(count, least=0)  # of float32, whose rounding counts; none in float64


def _together(counted: str) -> Callable[[Record, Record], float]:
    def together(norm: Record, relation: Record) -> float:
        rounded = rounding(norm["operations"], relation["people"]) if norm["operations"] else 1.0
        return rounded * sup_radius(relation) * math.sqrt(norm[counted])

    return together


def cube_deviation(numbers: int) -> float:
    """Of each of so many numbers, under noise of density exp(-max|z|): see `noise.cube`."""
    return math.sqrt((numbers + 1) * (numbers + 2) / 3)


def _each(norm: Record, relation: Record) -> float:
    """How far apart neighbours are in any one number, in units in which the scale of noise is its deviation."""
    apart = rounding(norm["operations"], relation["people"]) * sup_radius(relation) / (1 - norm.get("discount", 0.0))
    return cube_deviation(norm["count"]) * apart


def _of_gradients(norm: Record, relation: Record) -> float:
    """Each round's own sensitivity, as rewards that differ by the norm's radius move it, counts as 1."""
    return math.sqrt(norm["rounds"]) * max(1.0, sup_radius(relation) / norm["radius"])


NORMS["rewards"] = Norm(
    fields={"count": count, "operations": _OPERATIONS},
    difference=_together("count"),
    words=lambda norm: f"the Euclidean norm of {plural(norm['count'], 'observed reward')} together",
    families=("gaussian",),
)
NORMS["mean-rewards"] = Norm(
    fields={"rounds": count, "operations": _OPERATIONS},
    difference=_together("rounds"),
    words=lambda norm: (
        f"units of the root of the number of mean rewards in a round, of {plural(norm['rounds'], 'round')} together"
    ),
    families=("gaussian",),
)
for _kind, _of, _one in (
    ("reward-gradients", "round's gradient", "round"),
    ("clipped-gradients", "gradient step", "step"),
):
    NORMS[_kind] = Norm(
        fields={"rounds": count, "radius": positive},
        difference=_of_gradients,
        words=lambda norm, of=_of, one=_one: (
            f"units of what rewards that differ by {norm['radius']:g} do to a {of}, of "
            f"{plural(norm['rounds'], one)} together"
        ),
        families=("gaussian",),
    )
NORMS["values"] = Norm(
    fields={"count": count, "discount": probability, "operations": _OPERATIONS},
    difference=lambda norm, relation: _together("count")(norm, relation) / (1 - norm["discount"]),
    words=lambda norm: (
        f"the Euclidean norm of {plural(norm['count'], 'value')} at knots, with discount {norm['discount']:g}"
    ),
    families=("gaussian",),
)


# People who come by (docs/theory.md, section 14). Each answer is used once, unless it is in a node on every level


def _of_visits(most: Callable[[Record, Record], float], contexts: bool = False) -> Callable[..., float | None]:
    """What all of a person's visits can come to: each as much as one, and all of them in the same sum."""

    def difference(norm: Record, relation: Record) -> float | None:
        if relation["kind"] != "arrivals" or relation["contexts"] is not contexts:
            return None
        return relation["visits"] * most(norm, relation)

    return difference


def _levels(norm: Record, relation: Record) -> int:
    """Each answer is in one node on each level, and there must be a leaf for everybody."""
    if relation["arrivals"] is None or relation["arrivals"] > 2 ** (norm["levels"] - 1):
        raise InvalidInput(f"A tree of {norm['levels']} levels has no place for all arrivals.")
    return norm["levels"]


def longest_column(scales: Sequence[float], decays: Sequence[float], steps: int) -> float:
    """The Euclidean length of 1, c_1, c_2, ..., of so many numbers, with c_k = sum_i scale_i decay_i^(k - 1).

    >>> longest_column([0.5], [0.5], 3) == math.sqrt(1 + 0.25 + 0.0625)
    True
    """
    pairs = [(a * b, p * q) for a, p in zip(scales, decays, strict=True) for b, q in zip(scales, decays, strict=True)]
    return math.sqrt(1 + math.fsum(a * (1 - p ** (steps - 1)) / (1 - p) for a, p in pairs))


def _column(norm: Record, relation: Record) -> float:
    if relation["arrivals"] is None:
        raise InvalidInput("A running sum needs a number of arrivals.")
    return longest_column(norm["scales"], norm["decays"], relation["arrivals"])


def _between(name: str, value: object) -> None:
    """Positive, so that the matrix has no negative entry, as the theorem asks."""
    if not isinstance(value, list | tuple) or not all(isinstance(one, float) and 0 < one < 1 for one in value):
        raise InvalidInput(f"{name} must be numbers between 0 and 1.")


NORMS["answers"] = Norm(
    fields={},
    difference=_of_visits(lambda norm, relation: 1.0),
    words=lambda norm: "units of the range of an answer, summed over all sums that a person is in",
    families=("gaussian", "pure"),
)
NORMS["flips"] = Norm(
    fields={},
    difference=_of_visits(lambda norm, relation: 1.0),
    words=lambda norm: "units of the logarithm of the odds that an answer is passed on as it is",
    families=("pure",),
)
NORMS["tree-of-answers"] = Norm(
    fields={"levels": count},
    difference=_of_visits(_levels),
    words=lambda norm: f"units of the range of an answer, summed over {plural(norm['levels'], 'level')} of a tree",
    families=("pure",),
)
NORMS["tree-of-moments"] = Norm(
    fields={"levels": count, "length": positive},
    difference=_of_visits(lambda n, r: math.sqrt(2 * _levels(n, r)) * n["length"] ** 2, contexts=True),
    words=lambda norm: (
        f"the Frobenius norm of sums of zz' with |z| at most {norm['length']:g}, on {plural(norm['levels'], 'level')} "
        "of a tree"
    ),
    families=("gaussian",),
)
NORMS["encoded-moments"] = Norm(
    fields={"scales": _between, "decays": _between, "length": positive},
    difference=_of_visits(lambda n, r: math.sqrt(2) * _column(n, r) * n["length"] ** 2, contexts=True),
    words=lambda norm: (
        f"the Frobenius norm of encoded sums of zz' with |z| at most {norm['length']:g}, by a Toeplitz matrix of "
        f"{plural(len(norm['scales']), 'buffer')}"
    ),
    families=("gaussian",),
)
NORMS["largest-value"] = Norm(
    fields={"count": count, "discount": probability, "operations": _OPERATIONS},
    difference=_each,
    words=lambda norm: (
        f"the largest of {plural(norm['count'], 'value')} at knots, with discount {norm['discount']:g}, in units in "
        "which noise of scale 1 has deviation 1"
    ),
    families=("pure",),
)
NORMS["largest-mean-reward"] = Norm(
    fields={"count": count, "operations": _OPERATIONS},
    difference=_each,
    words=lambda norm: (
        f"the largest of {plural(norm['count'], 'mean reward')} of one round, in units in which noise of scale 1 has "
        "deviation 1"
    ),
    families=("pure",),
)
