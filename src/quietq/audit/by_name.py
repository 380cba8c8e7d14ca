"""One audit of a method by its name, checked and ready to run."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from quietq.audit.bounds import significance_of
from quietq.audit.finding import Finding
from quietq.audit.other_releases import audit_evaluation, audit_observed, audit_weights
from quietq.audit.release import audit_reward
from quietq.audit.runs import Privatising
from quietq.audit.training import audit_training
from quietq.audit.views import View
from quietq.learning.in_loop_method import InLoopMethod
from quietq.learning.reward_learner import RewardLearner
from quietq.privacy.budget import Budget
from quietq.privacy.checks import count
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import LipschitzBall, SupBall
from quietq.registry import METHODS
from quietq.worlds.world import find_world

Audit = Callable[[Any], Finding]
"""Takes what is told how far it is, or None."""
QUERIES = {"final": 65, "policy": 65, "every": 9}
"""States a coordinate that are asked for, unless told otherwise."""
OF_TRAINING = ("score", "queries", "moments", "steps", "public_walk")


def check_confidence(confidence: float) -> None:
    """Refuses one that two bounds could not share."""
    significance_of(confidence)
    significance_of((1 + confidence) / 2)


def plan_audit(
    method: str, runs: int, budget: Budget, people: int = 50, *, confidence: float = 0.95, seed: int = 0,
    options: Mapping[str, Any], hyper: Mapping[str, Any], folder: Path | None = None,
) -> Audit:  # fmt: skip
    """The audit, with everything refused that can be before it runs.

    `options` are those of the attack and of the private reward that were extra (`world`, `radius`, `noise`, `pieces`,
    `move`, `view` and so on), `hyper` the method's hyper-parameters. Trainings are kept in `folder`.
    """
    check_confidence(confidence)
    common: dict[str, Any] = {"seed": count("seed", seed, 0), "confidence": confidence}
    if method == "evaluation":
        return lambda progress: audit_evaluation(people, budget, runs, progress=progress, **common)
    kind, world = METHODS[method].load(), find_world(options.get("world", "walk"))
    relation = SupBall(options["radius"]) if "radius" in options else world.relation(people)
    if not issubclass(kind, RewardLearner):
        promise = {"relation": relation, "budget": budget} if issubclass(kind, InLoopMethod) else {}
        built = METHODS[method].build(hyper, **promise)
        return _of_training(built, world, runs, None, options, folder, common)
    if options.get("view", "reward") != "reward":
        private = Privatising(relation, budget, options.get("noise", "path"), options.get("pieces"))
        return _of_training(METHODS[method].build(hyper), world, runs, private, options, folder, common)
    if hyper or any(name in options for name in OF_TRAINING):
        raise InvalidInput(
            "The private reward itself is seen whole, before any training: for hyper-parameters and the options of "
            "trainings add --view final."
        )
    if isinstance(relation, LipschitzBall):
        noise = options.get("noise", "k-norm" if budget.is_pure else "path")
        return lambda progress: audit_reward(
            world, relation, budget, runs, noise=noise, pieces=options.get("pieces"),
            move=options.get("move", "worst"), progress=progress, **common,
        )  # fmt: skip
    if isinstance(relation, SupBall):
        _refuse(method, options, "noise", "pieces", "move")
        return lambda progress: audit_observed(world, relation, budget, runs, progress=progress, **common)
    _refuse(method, options, "pieces", "move")
    noise = options.get("noise", "ball")
    return lambda progress: audit_weights(world, people, budget, runs, noise=noise, progress=progress, **common)


def _of_training(
    method: Any, world: Any, runs: int, private: Privatising | None, options: Mapping[str, Any], folder: Path | None,
    common: Mapping[str, Any],
) -> Audit:  # fmt: skip
    """Of what is trained, by complete runs."""
    seen: Any = options.get("view", "final")
    if seen != "every" and "moments" in options:
        raise InvalidInput("--moments is for --view every.")
    view = View(seen, options.get("queries", QUERIES[seen]), options.get("moments", 10))
    extra = {name: options[name] for name in ("move", "score", "public_walk", "steps") if name in options}
    return lambda progress: audit_training(
        method, world, runs, view=view, folder=folder, private=private, progress=progress, **extra, **common
    )


def _refuse(method: str, options: Mapping[str, Any], *unused: str) -> None:
    """Refuses options that would not matter."""
    for name in unused:
        if name in options:
            raise InvalidInput(f"--{name} makes no difference to this audit of {method!r}: leave it out.")
