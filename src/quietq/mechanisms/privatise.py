"""The one draw: what people gave goes in, a private reward with its certificate comes out.

After it, everything is post-processing: any library may train on the result, for as long as it likes, in any number of
environments and processes. The raw data is not needed again and can be deleted.
"""

import warnings
from typing import Any

from quietq.feedback.feedback import Feedback
from quietq.feedback.own_function import Input, OwnFunction
from quietq.feedback.sessions import Sessions
from quietq.mechanisms.candidates import candidates
from quietq.mechanisms.mechanism import AnyFeedback, Mechanism
from quietq.mechanisms.release import release, simulate as simulate_release
from quietq.noise.box import Box, Domain
from quietq.noise.own_values import shows_nothing
from quietq.privacy import Account, Budget, InvalidInput, LipschitzBall, PrivacyWarning, Relation, weak_promise
from quietq.privacy.checks import instance
from quietq.released.world_model import WorldModel

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
    feedback = _as_feedback(source, relation, domain, accuracy)
    if simulate is None:
        one = "an Accountant, or a source's account, Ledger(url).account(source)"
        instance("account", account, Account | None, one)
    instance("level", level, bool, "True if episodes can end early, or False")
    instance("world", world, WorldModel | None, "a WorldModel(degree=..., reward=..., ...)")
    if world is not None and not isinstance(feedback, Sessions):
        raise InvalidInput("world is for Sessions, of which a world is made: leave it out.")
    mechanism = choose(noise, feedback, budget, pieces=pieces, level=level, world=world, fewest=simulate is None)
    if mechanism.name == "path" and isinstance(mechanism.relation, LipschitzBall) and not level:
        mechanism.remarks = (*mechanism.remarks, UNEVEN)
    if sentence := weak_promise(budget, mechanism.relation.people, pure=mechanism.cost.delta == 0):
        warnings.warn(sentence, PrivacyWarning, stacklevel=3)
    if simulate is not None:
        return simulate_release(mechanism, feedback, simulate)
    return release(mechanism, feedback, account)


def _as_feedback(
    source: Feedback | Input, relation: Relation | None, domain: Domain | None, accuracy: float | None
) -> AnyFeedback:
    """What people gave, or a function of one's own with what was declared about it."""
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
    errors = ", ".join(f"{_in_words(one)} {one.expected_error():.3g}" for one in found if one is best[one.name])
    remark = f"Noise {found[0].name!r} was {why}; expected errors ({found[0].error_unit}): {errors}."
    found[0].remarks = (*found[0].remarks, remark)
    return found[0]


def _in_words(mechanism: Mechanism) -> str:
    pieces = getattr(mechanism, "pieces", None)
    return mechanism.name if pieces is None else f"{mechanism.name} with {pieces} pieces"
