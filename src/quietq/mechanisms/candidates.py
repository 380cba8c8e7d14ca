"""The one draw: what people gave goes in, a private reward with its certificate comes out, by the best mechanism.

After it, everything is post-processing: any library may train on the result, for as long as it likes, in any number of
environments and processes. The raw data is not needed again and can be deleted.

Which mechanisms can release which feedback, and which of them "auto" takes, is a table:

| feedback | mechanisms, and what each is made with |
|---|---|
| a function of states: ratings in one dimension, one's own | "path", in one or two kernels (`level`) |
| the same, where no difference is steeper than a slope | "knots" and, for delta = 0, "k-norm", by number of `pieces` |
| rows: comparisons, and ratings in features | "rounds" |
| sessions | "moments" (`world`) |

It is a public rule, of what was declared and the budget, never of the data.
"""

from typing import Any

from quietq.feedback.feedback import Feedback
from quietq.feedback.own_function import Input, OwnFunction
from quietq.feedback.sessions import Sessions
from quietq.mechanisms.knots import Increments, OnKnots, ShapedKnots
from quietq.mechanisms.moments import Moments
from quietq.mechanisms.path import Path, best_kernel
from quietq.mechanisms.release import AnyFeedback, Mechanism, release_or_simulate
from quietq.mechanisms.rounds import Rounds
from quietq.noise.box import Box, Domain
from quietq.privacy import Account, Budget, InvalidInput, LipschitzBall, Relation
from quietq.privacy.checks import did_you_mean, instance
from quietq.privacy.errors import shows_nothing
from quietq.released.world_model import WorldModel

MECHANISMS: dict[str, type[Mechanism]] = {kind.name: kind for kind in (Path, Increments, ShapedKnots, Rounds, Moments)}
"""The kinds of noise; a certificate calls them `reward/KIND`, or `world/KIND` where a world is released."""
UNEVEN = (
    "Noise is small about the reward's mean, and larger in its level: that matters where episodes can end early, and "
    "level=True has less of it there."
)
"""A remark on paths, whose kernel is chosen for shapes alone unless a level is asked for."""


@shows_nothing
def privatise(
    source: Feedback | Input,
    budget: Budget,
    *,
    noise: str = "auto",
    pieces: int | None = None,
    relation: Relation | None = None,
    domain: Domain | None = None,
    accuracy: float | None = None,
    level: bool = False,
    world: WorldModel | None = None,
    account: Account | None = None,
    simulate: int | None = None,
) -> Any:
    """Makes what people gave private, once: a `PrivateFunction` of a reward, or a `PrivateWorld` of Sessions.

    Without an account, the same feedback is released once, and a second time is refused.

    Args:
        source: Feedback such as `Ratings`, whose relation and box are enforced and known, or a function of your own.
        budget: The (epsilon, delta) that the release may cost.
        noise: "path" (a Gaussian process on a fine grid), "k-norm" (pure epsilon, on knots), "knots" (Gaussian, on
            knots), in several dimensions and for comparisons "rounds"; or "auto", a public rule, which takes Gaussian
            noise unless delta is 0: at the same epsilon, pure noise lets a guesser be right far more often.
        pieces: The number of pieces between knots.
        relation: Declares of a function of your own which change must stay hidden; the certificate says "trusted".
        domain: Where the states of a function of your own lie.
        accuracy: The largest error of a value of a function of your own, if it does not compute in float64; it costs
            noise and fineness.
        level: Whether episodes can end early, so that a constant added to a reward changes what is best: "path" then
            has less noise in it, and noise on knots, which leaves it out, does not apply.
        world: What a private world of Sessions is made of, and what of it is known already.
        account: An Accountant, or a source's account in a Ledger, which is charged before the draw.
        simulate: A seed to draw from instead, for experiments: protects nobody and is not charged.

    >>> import polars
    >>> ratings = polars.DataFrame({"person": range(50), "state": [0.5] * 50, "rating": [1.0] * 50})
    >>> from quietq import Ratings
    >>> people = Ratings.read(ratings, box=(0, 1), low=0, high=1, slope=1, people=50)
    >>> private = privatise(people, Budget(epsilon=0.9, delta=1e-4))
    >>> private.certificate.standing, private([0.0, 0.5]).shape
    ('certified', (2,))

    """
    instance("budget", budget, Budget, "a Budget(epsilon, delta)")
    feedback = _as_feedback(source, relation, domain, accuracy)
    instance("level", level, bool, "True if episodes can end early, or False")
    instance("world", world, WorldModel | None, "a WorldModel(degree=..., reward=..., ...)")
    if world is not None and not isinstance(feedback, Sessions):
        raise InvalidInput("world is for Sessions, of which a world is made: leave it out.")
    mechanism = choose(noise, feedback, budget, pieces=pieces, level=level, world=world, fewest=simulate is None)
    if mechanism.name == "path" and isinstance(mechanism.relation, LipschitzBall) and not level:
        mechanism.remarks = (*mechanism.remarks, UNEVEN)
    return release_or_simulate(mechanism, feedback, account, simulate)


def _as_feedback(
    source: Feedback | Input, relation: Relation | None, domain: Domain | None, accuracy: float | None
) -> AnyFeedback:
    """Returns what people gave, or a function of one's own with what was declared about it."""
    if isinstance(source, Feedback):
        if relation is not None or domain is not None:
            name = type(source).__name__
            raise InvalidInput(f"{name} bring their own relation and box: leave relation and domain out.")
        if accuracy is not None:
            raise InvalidInput(
                "accuracy is for a function of your own; people's sums are exact to float64: leave it out."
            )
        return source
    if isinstance(source, str | bytes | dict) or not (callable(source) or hasattr(source, "__len__")):
        raise InvalidInput(
            "privatise takes what people gave, as Ratings.read, Comparisons.read or Sessions.read gives it, or else a "
            f"function of your own and its relation, not {type(source).__name__}."
        )
    if relation is None:
        raise InvalidInput(
            "privatise takes what people gave: read rows, an array or a table by Ratings.read, Comparisons.read or "
            "Sessions.read first. A function of your own needs a relation: which change of it must stay hidden?"
        )
    return OwnFunction(source, relation, box=None if domain is None else Box.of(domain), accuracy=accuracy)


def choose(noise: str, feedback: AnyFeedback, budget: Budget, **options: Any) -> Mechanism:
    """The mechanism that was asked for, or for "auto" the one with the least expected error among `candidates`.

    The error is the root mean square of the noise, up to a constant, and for knots also that of straight lines between
    them, for a reward with one kink of half the declared slope up and down. Over random rewards of families that it was
    not made for, the regret is close to that of whichever noise is best (`python -m benchmarks auto`). A reward with
    much more detail asks for "path".

    >>> from quietq.privacy import people
    >>> few, many = (OwnFunction(None, people(number, 0, 0.5, 1), slope=1.0) for number in (28, 10_000))
    >>> [choose("auto", one, Budget(0.9, 1e-4)).name for one in (few, many)]
    ['knots', 'path']
    >>> choose("auto", few, Budget(0.9, 0)).name
    'k-norm'
    """
    found = candidates(feedback, budget, noise, **options)
    why = "chosen by declared bounds and budget, not by the data" if noise == "auto" else "asked for"
    best = {one.name: one for one in reversed(found)}  # of each kind
    errors = ", ".join(f"{_in_words(one)} {one.expected_error:.3g}" for one in found if one is best[one.name])
    remark = f"Noise {found[0].name!r} was {why}; expected errors ({found[0].error_unit}): {errors}."
    found[0].remarks = (*found[0].remarks, remark)
    return found[0]


def _in_words(mechanism: Mechanism) -> str:
    pieces = getattr(mechanism, "pieces", None)
    return mechanism.name if pieces is None else f"{mechanism.name} with {pieces} pieces"


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
    less error, and let a guesser be right far more often (`privacy.budget`): it is among them where delta is 0, or if
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
    if found[0].pure:
        budget.require_mu(None, f"noise {found[0].name!r}")
    return sorted(found, key=lambda one: one.expected_error)


def _kinds(feedback: AnyFeedback, budget: Budget, noise: str, pieces: int | None, level: bool) -> list[type[Mechanism]]:
    """The rows of the table for this feedback: the one that was asked for, or all that "auto" chooses among."""
    kinds = {name: kind for name, kind in MECHANISMS.items() if kind.is_for(feedback)}
    pure = budget.is_pure
    if noise != "auto":
        if noise not in kinds:
            near = did_you_mean(noise, ("auto", *kinds)) if isinstance(noise, str) else ""
            raise InvalidInput(f"noise must be 'auto' or one of {', '.join(map(repr, kinds))}, not {noise!r}.{near}")
        chosen: list[type[Mechanism]] = [kinds[noise]]
    else:
        alike = [kind for kind in kinds.values() if kind.pure == pure]
        chosen = alike or list(kinds.values())  # which then say that they are Gaussian
    # Knots have pieces and no level. They are not tried where nothing is known of the detail that they would lose.
    unknown = noise == "auto" and not pure and feedback.slope is None
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
