"""What can be audited, by name: one method or noise with all options, and everything in the registry as one table."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from quietq.audit.bounds import significance_of
from quietq.audit.draws import Progress, audit_mechanism, audit_reward, mechanism_for
from quietq.audit.evaluation import audit_evaluation, frozen_trajectories
from quietq.audit.finding import Finding, Movement
from quietq.audit.frozen_release import frozen_people, frozen_release
from quietq.audit.frozen_step import frozen_sensitivity
from quietq.audit.made_up import MADE_UP, made_up
from quietq.audit.person import attack_person
from quietq.audit.runs import Privatising, View
from quietq.audit.training import ScoreKind, audit_training
from quietq.audit.worst_rows import worst_rows
from quietq.feedback.trajectories import Cells
from quietq.learning import (
    GradientNoise,
    InLoopMethod,
    NetworkValueNoise,
    OutputNoise,
    Published,
    RewardLearner,
    ValueNoise,
)
from quietq.mechanisms import Evaluation
from quietq.mechanisms.mechanism import Mechanism, Task
from quietq.mechanisms.privatise import choose
from quietq.privacy import Budget, InvalidInput, LipschitzBall, Relation, SupBall, Trajectories
from quietq.privacy.checks import count
from quietq.registry import MECHANISMS, METHODS
from quietq.worlds import WALK, World, find_world

Audit = Callable[..., Finding]  # takes what is told how far it is, as `progress`
QUERIES = {"final": 65, "policy": 65, "every": 9}  # states a coordinate that are asked for, unless told otherwise
OF_TRAINING = ("score", "queries", "moments", "steps", "public_walk")


def check_confidence(confidence: float) -> None:
    """Refuses one that two bounds could not share."""
    significance_of(confidence)
    significance_of((1 + confidence) / 2)


def plan_audit(
    method: str, runs: int, budget: Budget, people: int = 50, *, confidence: float = 0.95, seed: int = 0,
    options: Mapping[str, Any], hyper: Mapping[str, Any], folder: Path | None = None,
) -> Audit:  # fmt: skip
    """The audit of a method by its name, with everything refused that can be before it runs.

    `options` are those of the attack and of the private reward that were extra (`world`, `radius`, `noise`, `pieces`,
    `move`, `view` and so on), `hyper` the method's hyper-parameters. Trainings are kept in `folder`.
    """
    check_confidence(confidence)
    common: dict[str, Any] = {"seed": count("seed", seed, 0), "confidence": confidence}
    entry = METHODS[method]
    if not entry.in_worlds:
        return partial(audit_evaluation, people, budget, runs, **common)
    kind, world = entry.load(), find_world(options.get("world", "walk"))
    relation = SupBall(options["radius"]) if "radius" in options else world.relation(people)
    train = partial(_plan_training, world=world, runs=runs, options=options, folder=folder, common=common)
    if not issubclass(kind, RewardLearner):
        promise = {"relation": relation, "budget": budget} if issubclass(kind, InLoopMethod) else {}
        return train(entry.build(hyper, **promise))
    if options.get("view", "reward") != "reward":
        private = Privatising(relation, budget, options.get("noise", "path"), options.get("pieces"))
        return train(entry.build(hyper), private=private)
    if hyper or any(name in options for name in OF_TRAINING):
        raise InvalidInput(
            "The private reward itself is seen whole, before any training: for hyper-parameters and the options of "
            "trainings add --view final."
        )
    used = {name: options[name] for name in ("noise", "pieces", "move") if name in options}
    _refuse_unused(method, relation, used)
    mechanism_for(world, relation, budget, used.get("noise"), used.get("pieces"))  # refused now, if at all
    return partial(audit_reward, world, relation, budget, runs, **used, **common)


def _plan_training(
    method: Any, world: World, runs: int, options: Mapping[str, Any], folder: Path | None, common: Mapping[str, Any],
    private: Privatising | None = None,
) -> Audit:  # fmt: skip
    seen: Any = options.get("view", "final")
    if seen != "every" and "moments" in options:
        raise InvalidInput("--moments is for --view every.")
    view = View(seen, options.get("queries", QUERIES[seen]), options.get("moments", 10))
    extra = {name: options[name] for name in ("move", "score", "public_walk", "steps") if name in options}
    return partial(audit_training, method, world, runs, view=view, folder=folder, private=private, **extra, **common)


def _refuse_unused(method: str, relation: Relation, options: Mapping[str, Any]) -> None:
    """Moves are for rewards that are functions, and there is one noise for those that need not be smooth."""
    for name in options:
        unused = name == "move" and not isinstance(relation, LipschitzBall)
        if unused or isinstance(relation, SupBall):
            raise InvalidInput(f"--{name} makes no difference to this audit of {method!r}: leave it out.")


# Everything


EVERY = View("every", queries=9, moments=10)
WORTH: dict[str, tuple[int, View, ScoreKind]] = {
    "input": (4, View("final", queries=7), "learned"),
    "output": (4, EVERY, "mean"),
}
"""Methods of which another audit tells more: how many times as many runs they get, because they are cheap, what is seen
of them, and the score. A shift shows in the mean of all values, but for `input`, whose values are shrunken."""
EXTREME: dict[str, list[tuple[float, float]]] = {"rating": [(0.0, 0.0), (0.5, 0.0), (1.0, 0.0)], "presence": []}
"""What one person's rows are replaced by, who gives the most everywhere: the least everywhere, or nothing."""


@dataclass(frozen=True)
class PlannedAudit:
    title: str
    run: Audit


def plan_everything(runs: int, budget: Budget, people: int, folder: Path | None) -> Iterator[PlannedAudit]:
    """All audits of `quietq audit all`, for the walk unless they say otherwise."""
    relation = WALK.relation(people)
    for sigma in (0.32, 0.74):
        train = partial(audit_training, Published.code(sigma), WALK, runs, folder=folder)
        yield PlannedAudit(f"published, sigma {sigma:g}", train)
    for title, seed in (("gaussian-process", 0), ("gaussian-process, real noise", None)):
        audit = partial(audit_mechanism, budget.mu, max(200_000, runs), delta=budget.delta, seed=seed)
        yield PlannedAudit(title, audit)
    for name, (world, own) in rewards_of_all_kinds(people).items():
        yield PlannedAudit(f"reward, {name}", partial(audit_reward, world, own, budget, 4 * runs, noise=name))
    rough = SupBall(relation.radius)
    yield PlannedAudit("reward, observed", partial(audit_reward, WALK, rough, budget, 4 * runs))
    for kind, instead in EXTREME.items():
        attack = partial(_attack_somebody, people, instead, budget, runs)
        yield PlannedAudit(f"reward, one person's {kind}", attack)
    for kind, noise in models_of_all_kinds():
        attack = partial(_attack_rows, kind, noise, people, budget, runs)
        yield PlannedAudit(model_title(kind, noise), attack)
    for name, kind in noising_methods().items():
        times, view, score = WORTH.get(name, (1, EVERY, "mean"))
        method = kind(relation=relation, budget=budget)
        train = partial(audit_training, method, WALK, times * runs, view=view, score=score, folder=folder)
        yield PlannedAudit(name, train)
    bumpy = METHODS["input"].load()(relation=relation, budget=budget)
    train = partial(audit_training, bumpy, WALK, 4 * runs, move="bumps", view=EVERY, folder=folder)
    yield PlannedAudit("input, bumps", train)
    yield PlannedAudit("evaluation", partial(audit_evaluation, 60, budget, runs))


def noising_methods() -> dict[str, type[InLoopMethod]]:
    kinds = {name: entry.load() for name, entry in METHODS.items() if entry.in_worlds}
    return {name: kind for name, kind in kinds.items() if issubclass(kind, InLoopMethod)}


def rewards_of_all_kinds(people: int) -> dict[str, tuple[World, Relation]]:
    """For each kind of noise in the registry, a world whose reward it can make private."""
    found: dict[str, tuple[World, Relation]] = {}
    for name, entry in MECHANISMS.items():
        for world in (WALK, find_world("recommender")):
            task = Task(world.relation(people), Budget(0.9, 1e-4), world.box, slope=1.0)
            if entry.load().takes == task.gives and entry.load().propose(task):
                found.setdefault(name, (world, task.relation))
    return found


def models_of_all_kinds() -> list[tuple[str, str]]:
    """Each kind of feedback that gives rows, with each kind of noise that makes a model of them private."""
    found = []
    for kind in MADE_UP:
        read, rows = made_up(kind, _PEOPLE)
        task = replace(Task.of(read(rows), Budget(0.9, 1e-4)), asked=True)
        for name, entry in MECHANISMS.items():
            with suppress(InvalidInput):  # it is not made for these
                if entry.load().takes == task.gives and entry.load().propose(task):
                    found.append((kind, name))
    return found


def _attack_rows(
    kind: str, noise: str, people: int, budget: Budget, runs: int, progress: Progress | None = None
) -> Finding:
    return worst_rows(*made_up(kind, people), budget, noise=noise).audit(runs, progress=progress)


def _check_rows(kind: str, noise: str, budget: Budget, seed: int) -> Movement:
    crowd, name = made_up(kind, _PEOPLE), model_title(kind, noise)
    return worst_rows(*crowd, budget, noise=noise, name=name, seed=seed).movement


def model_title(kind: str, noise: str) -> str:
    """What tables call a model, or a world, of everybody's rows."""
    return f"{MECHANISMS[noise].load().releases}, {noise} of {kind}"


def _attack_somebody(
    people: int, instead: list[tuple[float, float]], budget: Budget, runs: int, progress: Progress | None = None
) -> Finding:
    """Somebody who likes everything, among people who each like one place."""
    import polars as pl

    liked = np.linspace(0, 1, people - 1)
    places = [(i, x, place) for i, place in enumerate(liked) for x in (0.0, 0.5, 1.0)]
    others = [(f"person {i}", x, 0.5 - abs(x - float(place))) for i, x, place in places]
    rows = [*others, *(("somebody", x, 0.5) for x in (0.0, 0.5, 1.0))]
    ratings = pl.DataFrame(rows, schema=["person", "state", "rating"], orient="row")
    return attack_person(
        ratings, "somebody", instead, budget, releases=runs, noise="path", box=(0, 1), low=0.0, high=0.5, slope=1.0,
        people=people, progress=progress,
    ).finding  # fmt: skip


# Sensitivities, with the noise held fixed


_PEOPLE = 50
_TRAJECTORIES = 150
_AMPLE = Budget(10.0, 1e-6)  # so that so few trajectories are enough for a smooth bound that is also the local one
_SMALL = {"network": "mlp", "widths": (16, 16)}
Check = Callable[[], Movement]


def plan_checks(budget: Budget | None = None, seed: int = 0) -> dict[str, Check]:
    """The frozen-noise check of everything in the registry, in its usual forms, by name, to be run one by one."""
    budget = Budget(0.9, 1e-4) if budget is None else budget
    promise: dict[str, Any] = {"relation": SupBall(0.5 / _PEOPLE, people=_PEOPLE), "budget": budget}
    mechanisms: dict[str, Mechanism] = {}
    for name, (world, relation) in rewards_of_all_kinds(_PEOPLE).items():
        mechanisms[name] = choose(name, Task(relation, budget, world.box))
    mechanisms["observed"] = mechanism_for(WALK, promise["relation"], budget, rewards=60)
    found: dict[str, Check] = {
        f"reward, {name}": partial(frozen_release, one, name=f"reward, {name}", seed=seed)
        for name, one in mechanisms.items()
    }
    found["reward, one of many people"] = partial(frozen_people, budget, people=_PEOPLE, seed=seed)
    for kind, noise in models_of_all_kinds():
        found[model_title(kind, noise)] = partial(_check_rows, kind, noise, budget, seed)
    for name, (method, same) in _forms(promise).items():
        found[name] = partial(frozen_sensitivity, method, WALK, same=same, name=name, seed=seed)
    for kind in ("lsw", "lsl"):
        found[f"evaluation, {kind}"] = partial(_check_evaluation, kind, seed)
    return found


def _forms(promise: Mapping[str, Any]) -> dict[str, tuple[InLoopMethod, bool]]:
    """All methods that noise as they go, and further forms of some; whether all rewards are seen in one state."""
    return {
        **{name: (kind(**promise), False) for name, kind in noising_methods().items()},
        "value, one round": (ValueNoise(**promise, law="cube"), False),
        "output, gaussian": (OutputNoise(**promise, law="gaussian"), False),
        "value-network, mlp": (NetworkValueNoise(**promise, **_SMALL), False),
        "value-network, fourier": (NetworkValueNoise(**promise, network="fourier"), False),
        "gradient, one state": (GradientNoise(**promise), True),
        "gradient, clipped": (GradientNoise(**promise, **_SMALL, clip=0.002), False),
    }


def sensitivities(
    budget: Budget | None = None, seed: int = 0, progress: Callable[[Movement], None] | None = None
) -> list[Movement]:
    """The whole table of checks; `progress` is told each movement at once."""
    table = []
    for check in plan_checks(budget, seed).values():
        table.append(check())
        if progress is not None:
            progress(table[-1])
    return table


def _check_evaluation(kind: Any, seed: int) -> Movement:
    """Everybody was everywhere and was paid the most."""
    relation, cells = Trajectories(_TRAJECTORIES, largest_reward=1.0), Cells.states(3)
    evaluation = Evaluation(
        budget=_AMPLE, relation=relation, gamma=0.5, cells=cells, kind=kind, ridge=1.0 if kind == "lsl" else None
    )
    one = (np.append(np.arange(3), np.zeros(40)), np.ones(43))
    return frozen_trajectories(evaluation, [one] * _TRAJECTORIES, seed=seed)
