"""The one draw: what people gave goes in, a private reward with its certificate comes out.

After it, everything is post-processing: any library may train on the result, for as long as it likes, in any number of
environments and processes. The raw data is not needed again and can be deleted.
"""

import warnings
from dataclasses import replace
from typing import Any

from quietq.feedback.feedback import Feedback
from quietq.feedback.own_function import Input, OwnFunction
from quietq.mechanisms.k_norm import Increments
from quietq.mechanisms.knots import ShapedKnots
from quietq.mechanisms.mechanism import Mechanism, Task
from quietq.mechanisms.moments import Moments
from quietq.mechanisms.path import Path
from quietq.mechanisms.release import release, simulate as simulate_release
from quietq.mechanisms.rounds import Rounds
from quietq.noise.box import Domain
from quietq.noise.own_values import shows_nothing
from quietq.privacy import Account, Budget, InvalidInput, LipschitzBall, PrivacyWarning, Relation, weak_promise
from quietq.privacy.checks import did_you_mean, instance
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
        accuracy: How far off each value of a function of your own may be, if it does not compute in float64; it costs
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
    feedback, task = _task(source, budget, relation, domain, accuracy)
    if simulate is None:
        one = "an Accountant, or a source's account, Ledger(url).account(source)"
        instance("account", account, Account | None, one)
    instance("level", level, bool, "True if episodes can end early, or False")
    instance("world", world, WorldModel | None, "a WorldModel(degree=..., reward=..., ...)")
    if world is not None and task.spaces is None:
        raise InvalidInput("world is for Sessions, of which a world is made: leave it out.")
    task = replace(task, pieces=pieces, world=world, fewest=simulate is None, level=level)
    mechanism = choose(noise, task)
    if mechanism.name == "path" and isinstance(task.relation, LipschitzBall) and not level:
        mechanism.remarks = (*mechanism.remarks, UNEVEN)
    if sentence := weak_promise(budget, task.relation.people, pure=mechanism.cost.delta == 0):
        warnings.warn(sentence, PrivacyWarning, stacklevel=3)
    if simulate is not None:
        return simulate_release(mechanism, feedback, simulate)
    return release(mechanism, feedback, account)


def _task(
    source: Feedback | Input, budget: Budget, relation: Relation | None, domain: Domain | None, accuracy: float | None
) -> tuple[Any, Task]:
    if isinstance(source, Feedback):
        if relation is not None or domain is not None:
            name = type(source).__name__
            raise InvalidInput(f"{name} bring their own relation and box: leave relation and domain out.")
        if accuracy is not None:
            raise InvalidInput(
                "accuracy is for a function of your own; people's sums are exact to float64: leave it out."
            )
        return source, Task.of(source, budget)
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
    return OwnFunction(source, relation), Task(relation, budget, domain, accuracy=accuracy)


def choose(noise: str, task: Task) -> Mechanism:
    """The mechanism that was asked for, or for "auto" the one with the least expected error among `candidates`.

    A public rule, of what was declared and the budget, never of the data. The error is the root mean square of the
    noise, up to a constant, and for knots also that of straight lines between them, for a reward with one kink of half
    the declared slope up and down. Over random rewards of families that it was not made for, the regret is close to
    that of whichever noise is best (`python -m benchmarks auto`). A reward with much more detail asks for "path".

    >>> from quietq.privacy import people
    >>> few, many = people(28, 0, 0.5, 1), people(10_000, 0, 0.5, 1)
    >>> [choose("auto", Task(one, Budget(0.9, 1e-4), slope=1.0)).name for one in (few, many)]
    ['knots', 'path']
    >>> choose("auto", Task(few, Budget(0.9, 0), slope=1.0)).name
    'k-norm'
    """
    every = _for_feedback(task)
    if noise != "auto" and noise not in every:
        near = did_you_mean(noise, ("auto", *every)) if isinstance(noise, str) else ""
        raise InvalidInput(f"noise must be 'auto' or one of {', '.join(map(repr, every))}, not {noise!r}.{near}")
    if task.pieces is not None and not isinstance(task.relation, LipschitzBall):
        raise InvalidInput("pieces is for noise on knots, in one dimension and without features: leave it out.")
    asked = replace(task, asked=noise != "auto")
    chosen = candidates(task) if noise == "auto" else [noise]
    found: list[Mechanism] = [one for name in chosen for one in every[name].propose(asked)]
    for one in found if asked.asked else ():
        task.budget.require_mu(one.cost.mu, f"noise {one.name!r}")
    if not found:
        paths = "use a kernel that has an exact path; noise on weights of features is in quietq.paper"
        other = paths if task.pieces is None else "leave pieces out"
        advice = "state a delta above 0" if task.budget.is_pure else other
        raise InvalidInput(f"There is no noise for {task.relation} at {task.budget}: {advice}.")
    found.sort(key=lambda one: one.expected_error())
    why = "asked for" if asked.asked else "chosen by declared bounds and budget, not by the data"
    best = {one.name: one for one in reversed(found)}  # of each kind, in no order
    errors = ", ".join(f"{_in_words(one)} {one.expected_error():.3g}" for one in found if one is best[one.name])
    remark = f"Noise {found[0].name!r} was {why}; expected errors ({found[0].error_unit}): {errors}."
    found[0].remarks = (*found[0].remarks, remark)
    return found[0]


def candidates(task: Task) -> list[str]:
    """The kinds of noise that "auto" chooses among, by name: Gaussian ones unless delta is 0.

    At one budget they all protect alike, so that errors can be compared. Pure noise of the same epsilon would have less
    error, and let a guesser be right far more often (`privacy.limits`).
    """
    return [name for name, kind in _for_feedback(task).items() if task.budget.is_pure or not kind.pure]


def _for_feedback(task: Task) -> dict[str, type[Mechanism]]:
    return {name: kind for name, kind in MECHANISMS.items() if kind.takes == task.gives}


def _in_words(mechanism: Mechanism) -> str:
    pieces = getattr(mechanism, "pieces", None)
    return mechanism.name if pieces is None else f"{mechanism.name} with {pieces} pieces"
