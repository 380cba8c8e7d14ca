"""The table of choice: which mechanisms can release which feedback, and which of them "auto" takes.

| feedback | mechanisms, and what each is made with |
|---|---|
| a function of states: ratings in one dimension, one's own | "path", in one or two kernels (`level`) |
| the same, where no difference is steeper than a slope | "knots" and, for delta = 0, "k-norm", by number of `pieces` |
| rows: comparisons, and ratings in features | "rounds" |
| sessions | "moments" (`world`) |

It is a public rule, of what was declared and the budget, never of the data.
"""

from typing import Any

from quietq.mechanisms.knots import Increments, OnKnots, ShapedKnots
from quietq.mechanisms.mechanism import AnyFeedback, Mechanism
from quietq.mechanisms.moments import Moments
from quietq.mechanisms.path import Path, best_kernel
from quietq.mechanisms.rounds import Rounds
from quietq.privacy import Budget, InvalidInput
from quietq.privacy.checks import did_you_mean
from quietq.released.world_model import WorldModel

MECHANISMS: dict[str, type[Mechanism]] = {kind.name: kind for kind in (Path, Increments, ShapedKnots, Rounds, Moments)}
"""The kinds of noise; a certificate calls them `reward/KIND`, or `world/KIND` where a world is released."""


def candidates(
    feedback: AnyFeedback,
    budget: Budget,
    noise: str = "auto",
    *,
    pieces: int | None = None,
    level: bool = False,
    world: WorldModel | None = None,
    fewest: bool = False,
) -> list[Mechanism]:
    """The mechanisms that could release this feedback, the one with the least expected error first.

    At one budget Gaussian ones protect alike, so that errors can be compared. Pure noise of the same epsilon would have
    less error, and let a guesser be right far more often (`privacy.limits`): it is among them where delta is 0, or if
    it was asked for by name.
    """
    found: list[Mechanism] = []
    refusals: list[InvalidInput] = []
    for kind in _kinds(feedback, budget, noise, pieces, level):
        variants: list[dict[str, Any]] = [{}]
        if issubclass(kind, OnKnots):
            variants = [{"pieces": number} for number in (kind.tried if pieces is None else (pieces,))]
        elif issubclass(kind, Path):
            relation = feedback.relation
            kernels = dict.fromkeys([best_kernel(relation), best_kernel(relation, level)])
            variants = [{"kernel": kernel, "fewest": fewest} for kernel in kernels]
        elif issubclass(kind, Moments):
            variants = [{"world": world}]
        for options in variants:
            try:
                found.append(kind(feedback, budget, **options))  # pyright: ignore[reportCallIssue, reportArgumentType]
            except InvalidInput as refusal:  # too many pieces, or values too inexact for so fine a grid
                refusals.append(refusal)
    if not found:
        raise refusals[0]
    budget.require_mu(found[0].cost.mu, f"noise {found[0].name!r}")
    return sorted(found, key=lambda one: one.expected_error())


def _kinds(feedback: AnyFeedback, budget: Budget, noise: str, pieces: int | None, level: bool) -> list[type[Mechanism]]:
    """The rows of the table for this feedback: the one that was asked for, or all that "auto" chooses among."""
    kinds = {name: kind for name, kind in MECHANISMS.items() if kind.is_for(feedback)}
    if noise != "auto":
        if noise not in kinds:
            near = did_you_mean(noise, ("auto", *kinds)) if isinstance(noise, str) else ""
            raise InvalidInput(f"noise must be 'auto' or one of {', '.join(map(repr, kinds))}, not {noise!r}.{near}")
        chosen: list[type[Mechanism]] = [kinds[noise]]
    else:
        alike = [kind for kind in kinds.values() if kind.pure == budget.is_pure]
        chosen = alike or list(kinds.values())  # which then say that they are Gaussian
    # Knots have pieces and no level. They are not tried where nothing is known of the detail that they would lose.
    unknown = noise == "auto" and feedback.slope is None and not budget.is_pure
    if pieces is not None:
        chosen = [kind for kind in chosen if issubclass(kind, OnKnots)]
    if level or (pieces is None and unknown):
        chosen = [kind for kind in chosen if not issubclass(kind, OnKnots)]
    if not chosen:
        raise InvalidInput(
            "pieces is for noise on knots, in one dimension and without features, which leaves the reward's level out; "
            "a path has none: leave pieces out, or level."
        )
    return chosen  # pyright: ignore[reportReturnType]
