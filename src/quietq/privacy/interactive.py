"""Norms of what noises as it goes: observed rewards, rounds of averages and gradients, values.

All that such methods see of a relation is how much one reward can change (`sup_radius`). These norms are registered
here and not with their methods, because a certificate is read also where there is no JAX.
"""

import math
from collections.abc import Callable
from functools import partial

from quietq.privacy.checks import count, positive, probability
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
