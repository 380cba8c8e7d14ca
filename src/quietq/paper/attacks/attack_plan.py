"""What can be attacked of the methods, by name: one with all options, and all of them as one table."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, get_args

import numpy as np

from quietq.audit.draws import audit_reward
from quietq.audit.everything import PEOPLE, Audit, Check, PlannedAudit, check_confidence
from quietq.audit.finding import Movement
from quietq.audit.frozen_release import frozen_release
from quietq.feedback.cells import Cells
from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms.candidates import choose
from quietq.mechanisms.release import Mechanism
from quietq.paper.agents import InLoopMethod, RewardLearner
from quietq.paper.algorithm import Published
from quietq.paper.attacks.frozen_step import frozen_sensitivity
from quietq.paper.attacks.on_trainings import ScoreKind, View, audit_training
from quietq.paper.attacks.trajectories_attack import audit_evaluation, frozen_trajectories
from quietq.paper.baselines.abadi import GradientNoise
from quietq.paper.baselines.balle import Evaluation, Regression
from quietq.paper.baselines.value_network import NetworkValueNoise
from quietq.paper.methods import METHODS, build_method
from quietq.paper.observed import observed_mechanism
from quietq.privacy import Budget, InvalidInput, Relation, SupBall, Trajectories
from quietq.privacy.checks import count
from quietq.worlds import WALK, World, find_world


def plan_audit(
    method: str,
    runs: int,
    budget: Budget,
    people: int = 50,
    *,
    confidence: float = 0.95,
    seed: int = 0,
    options: Mapping[str, Any],
    hyper: Mapping[str, Any],
) -> Audit:
    """The audit of a method by its name, with everything refused that can be before it runs.

    `options` are those of the attack and of the private reward that were given (`world`, `radius`, `noise`, `move`,
    `view`, `score`, `steps`), `hyper` the method's hyper-parameters.
    """
    check_confidence(confidence)
    common: dict[str, Any] = {"seed": count("seed", seed, 0), "confidence": confidence}
    if method == "evaluation":
        return partial(audit_evaluation, people, budget, runs, **common)
    kind, world = METHODS[method], find_world(options.get("world", "walk"))
    relation = SupBall(options["radius"]) if "radius" in options else world.relation(people)
    learns_from_reward = issubclass(kind, RewardLearner)
    seen = options.get("view", "reward" if learns_from_reward else "final")
    if seen != "reward":
        promise: dict[str, Any] = {"relation": relation, "budget": budget} if issubclass(kind, InLoopMethod) else {}
        made = _mechanism(world, relation, budget, options.get("noise", "path")) if learns_from_reward else None
        view = View(seen, queries=9 if seen == "every" else 65)
        extra = {name: options[name] for name in ("move", "score", "steps") if name in options}
        trained = build_method(method, hyper, **promise)
        return partial(audit_training, trained, world, runs, view=view, private=made, **extra, **common)
    if not learns_from_reward:
        raise InvalidInput(f"--view reward is for methods that learn from a private reward, not {method!r}.")
    if hyper or any(name in options for name in ("move", "score", "steps")):
        raise InvalidInput(
            "The private reward itself is observed whole, before any training, beside its farthest neighbour: for "
            "hyper-parameters and the options of trainings add --view final."
        )
    if "noise" in options and isinstance(relation, SupBall):  # there is one for rewards that need not be smooth
        raise InvalidInput(f"--noise makes no difference to this audit of {method!r}: leave it out.")
    mechanism = _mechanism(world, relation, budget, options.get("noise", "auto"))
    return partial(audit_reward, world, mechanism, runs, **common)


def _mechanism(world: World, relation: Relation, budget: Budget, noise: str) -> Mechanism:
    """Returns what makes a world's reward private: for a SupBall, of which nothing is smooth, `observe`'s mechanism."""
    if isinstance(relation, SupBall):
        return observed_mechanism(world, relation, budget)
    return choose(noise, OwnFunction(None, relation, box=world.box), budget)


# Everything


EVERY = View("every", queries=9, moments=10)
WORTH: dict[str, tuple[int, View, ScoreKind]] = {
    "input": (4, View("final", queries=7), "learned"),
    "output": (4, EVERY, "mean"),
}
"""Methods of which another audit tells more: how many times as many runs they get, because they are cheap, what is seen
of them, and the score. A shift shows in the mean of all values, but for `input`, whose values are shrunken."""


def plan_trainings(runs: int, budget: Budget, people: int) -> Iterator[PlannedAudit]:
    """All audits of `quietq paper audit all`, for the walk."""
    relation = WALK.relation(people)
    for sigma in (0.32, 0.74):
        train = partial(audit_training, Published.code(sigma), WALK, runs)
        yield PlannedAudit(f"published, sigma {sigma:g}", train)
    rough = SupBall(relation.radius)
    observed = observed_mechanism(WALK, rough, budget)
    yield PlannedAudit("reward, observed", partial(audit_reward, WALK, observed, 4 * runs))
    for name, kind in noising_methods().items():
        times, view, score = WORTH.get(name, (1, EVERY, "mean"))
        method = kind(relation=relation, budget=budget)
        train = partial(audit_training, method, WALK, times * runs, view=view, score=score)
        yield PlannedAudit(name, train)
    yield PlannedAudit("evaluation", partial(audit_evaluation, 60, budget, runs))


def noising_methods() -> dict[str, type[InLoopMethod]]:
    return {name: kind for name, kind in METHODS.items() if issubclass(kind, InLoopMethod)}


# Sensitivities, with the noise held fixed


_TRAJECTORIES = 150


def plan_training_checks(budget: Budget | None = None, seed: int = 0) -> dict[str, Check]:
    """The frozen-noise check of every method, in its usual forms, by name, to be run one by one."""
    budget = Budget(0.9, 1e-4) if budget is None else budget
    promise: dict[str, Any] = {"relation": SupBall(0.5 / PEOPLE, people=PEOPLE), "budget": budget}
    observed = observed_mechanism(WALK, promise["relation"], budget, rewards=60)
    found: dict[str, Check] = {
        "reward, observed": partial(frozen_release, observed, name="reward, observed", seed=seed)
    }
    for name, (method, same) in _forms(promise).items():
        found[name] = partial(frozen_sensitivity, method, WALK, same=same, name=name, seed=seed)
    for kind in get_args(Regression):
        found[f"evaluation, {kind}"] = partial(_check_evaluation, kind, seed)
    return found


def _forms(promise: Mapping[str, Any]) -> dict[str, tuple[InLoopMethod, bool]]:
    """All methods that noise as they go, and further forms of some; whether all rewards are seen in one state."""
    return {
        **{name: (kind(**promise), False) for name, kind in noising_methods().items()},
        "value-network, mlp": (NetworkValueNoise(**promise, network="mlp", widths=(16, 16)), False),
        "gradient, one state": (GradientNoise(**promise), True),
        "gradient, clipped": (GradientNoise(**promise, widths=(16, 16), clip=0.002), False),
    }


def _check_evaluation(kind: Regression, seed: int) -> Movement:
    """Everybody was everywhere and was paid the most."""
    relation, cells = Trajectories(_TRAJECTORIES, largest_reward=1.0), Cells.states(3)
    # An ample budget: so few trajectories are enough for a smooth bound that is also the local one.
    evaluation = Evaluation(
        budget=Budget(10.0, 1e-6),
        relation=relation,
        gamma=0.5,
        cells=cells,
        kind=kind,
        ridge=1.0 if kind == "lsl" else None,
    )
    one = (np.append(np.arange(3), np.zeros(40)), np.ones(43))
    return frozen_trajectories(evaluation, [one] * _TRAJECTORIES, seed=seed)
