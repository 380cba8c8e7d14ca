"""The one draw: what people gave goes in, a private reward with its certificate comes out.

After it, everything is post-processing: any library may train on the result, for as long as it likes, in any number of
environments and processes. The raw data is not needed again and can be deleted.
"""

import warnings
from dataclasses import replace
from typing import Any

from quietq import registry
from quietq.feedback.feedback import Feedback
from quietq.feedback.own_function import Input, OwnFunction
from quietq.mechanisms.mechanism import Mechanism, Task
from quietq.mechanisms.release import release, simulate as simulate_release
from quietq.mechanisms.world_model import WorldModel
from quietq.noise.box import Domain
from quietq.noise.evaluation import shows_nothing
from quietq.privacy import Account, Budget, InvalidInput, LipschitzBall, PrivacyWarning, Relation, weak_delta
from quietq.privacy.checks import did_you_mean, instance
from quietq.privacy.sampling import fraction as checked_fraction

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
    sample: float | None = None,
    level: bool = False,
    world: WorldModel | None = None,
    account: Account | None = None,
    simulate: int | None = None,
) -> Any:
    """Makes what people gave private, once: a `PrivateFunction` of a reward, or a `PrivateWorld` of Sessions.

    `source` is feedback such as `Ratings`, whose relation and box are enforced and known, or a function of your own
    with the `relation` and `domain` that you declare for it (then the certificate says "trusted"). `noise` is "path"
    (a Gaussian process on a fine grid), "k-norm" (pure epsilon, on knots), "knots" (Gaussian, on knots), "weights"
    (Gaussian, on weights of features), "ball" (pure, on weights) or "auto", a public rule. In several dimensions, and
    for comparisons, it is "rounds", "fits" or "network" (for many people). `pieces` is the number of pieces between
    knots. A function must compute in float64; if it cannot, say with `accuracy` how far off each of its values may be,
    which costs noise and fineness. `sample` is for very many people: each round of "rounds" then looks at that part of
    them, drawn in secret, which saves time; the promise then has no mu. `level=True` is for episodes that can end
    early, where a constant added to a reward changes what is best: "path" then has less noise in it, and noise on
    knots, which leaves it out, does not apply. `world` says what a private world of Sessions is made of, and what of it
    is known already. `account` (an Accountant, or a source's account in a Ledger) is charged
    before the draw; with one, "auto" takes Gaussian noise unless delta is 0, and so it does for a part of a budget
    (`Budget.split`), which is good for no other. Without one, the same feedback is released
    once, and a second time is refused. `simulate` draws from a seed instead, for experiments, protects nobody and is
    not charged.

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
    task = replace(
        task, pieces=pieces, world=world, gaussian=account is not None, sample=sample, fewest=simulate is None,
        level=level,
    )  # fmt: skip
    mechanism = choose(noise, task)
    if mechanism.name == "path" and isinstance(task.relation, LipschitzBall) and not level:
        mechanism.remarks = (*mechanism.remarks, UNEVEN)
    if mechanism.cost.delta != 0 and (sentence := weak_delta(budget.delta, task.relation.people)):
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
        raise InvalidInput("A function of your own needs a relation: which change of it must stay hidden?")
    return OwnFunction(source, relation), Task(relation, budget, domain, accuracy=accuracy)


def choose(noise: str, task: Task) -> Mechanism:
    """The mechanism that was asked for, or for "auto" the one with the least expected error.

    A public rule, of what was declared and the budget, never of the data. The error is the root mean square of the
    noise, up to a constant, and for knots also that of straight lines between them, for a reward with one kink of half
    the declared slope up and down. Over random rewards of families that it was not made for, the regret is close to
    that of whichever noise is best (`python -m benchmarks auto`). A reward with much more detail asks for "path".

    >>> from quietq.privacy import people
    >>> choose("auto", Task(people(28, 0, 0.5, 1), Budget(0.9, 1e-4), slope=1.0)).name
    'k-norm'
    >>> choose("auto", Task(people(10_000, 0, 0.5, 1), Budget(0.9, 1e-4), slope=1.0)).name
    'path'
    """
    every = {name: entry.load() for name, entry in registry.MECHANISMS.items()}
    names = tuple(name for name, kind in every.items() if kind.takes == task.gives)
    if task.sample is not None:
        checked_fraction("sample", task.sample)
        names = tuple(name for name in names if every[name].samples)
        if not names:
            raise InvalidInput("sample is for models of everybody's rows, fitted in rounds: leave it out.")
    if noise != "auto" and noise not in names:
        near = did_you_mean(noise, ("auto", *names)) if isinstance(noise, str) else ""
        raise InvalidInput(f"noise must be 'auto' or one of {', '.join(map(repr, names))}, not {noise!r}.{near}")
    if task.pieces is not None and not isinstance(task.relation, LipschitzBall):
        raise InvalidInput("pieces is for noise on knots, in one dimension and without features: leave it out.")
    asked = replace(task, asked=noise != "auto", gaussian=task.gaussian or task.budget.gaussian)
    chosen = names if noise == "auto" else (noise,)
    found: list[Mechanism] = [one for name in chosen for one in every[name].propose(asked)]
    for one in found if asked.asked or task.sample is not None else ():
        task.budget.require_mu(one.cost.mu, f"noise {one.name!r}{'' if task.sample is None else ' with a sample'}")
    if not found:
        raise InvalidInput(f"There is no noise for {task.relation} at {task.budget}: state a delta above 0.")
    found.sort(key=lambda one: one.expected_error())
    why = "asked for" if asked.asked else "chosen by declared bounds and budget, not by the data"
    best = {one.name: one for one in reversed(found)}  # of each kind, in no order
    errors = ", ".join(f"{_in_words(one)} {one.expected_error():.3g}" for one in found if one is best[one.name])
    remark = f"Noise {found[0].name!r} was {why}; expected errors ({found[0].error_unit}): {errors}."
    found[0].remarks = (*found[0].remarks, remark)
    return found[0]


def _in_words(mechanism: Mechanism) -> str:
    pieces = getattr(mechanism, "pieces", None)
    return mechanism.name if pieces is None else f"{mechanism.name} with {pieces} pieces"
