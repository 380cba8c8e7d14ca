"""The audit of a method that is trained: complete runs under r and r', a score, and what it tells."""

import time
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from quietq.audit.bounds import MOST_RUNS
from quietq.audit.distinguisher import LEARNED_SHARE, Seen, learn
from quietq.audit.draws import Progress
from quietq.audit.finding import Attack, Finding, Promise, count_errors
from quietq.audit.neighbours import neighbours
from quietq.paper import Published
from quietq.paper.agents import InLoopMethod, Method
from quietq.paper.agents.method import EnvironmentSpaces
from quietq.paper.agents.trainer import spaces_of
from quietq.paper.attacks.runs import Privatising, Store, Trainings, View
from quietq.privacy import InvalidInput, Relation, RkhsBall, SupBall
from quietq.privacy.checks import count, one_of
from quietq.worlds import World

ScoreKind = Literal["mean", "learned"]


def audit_training(
    method: Method, world: World, runs: int = 1000, *, move: str = "shift", view: View | None = None,
    score: ScoreKind | None = None, steps: int = 5000, seed: int = 0, confidence: float = 0.95,
    folder: Path | None = None, private: Privatising | None = None, public_walk: bool | None = None,
    progress: Progress | None = None,
) -> Finding:  # fmt: skip
    """Trains `runs` times under the world's reward and as often under its neighbour, and tells them apart if it can.

    The score is the mean of all values seen where r' is r shifted, which raises them all, and else one that is learned.
    With a `public_walk`, only the noise differs between runs, which is what certificates are about and so the default
    for methods that have one; else the adversary does not know how the walk went.

    Methods that learn from a private reward need to know how it is made `private`. Results are kept in `folder`, batch
    by batch, if one is given.
    """
    began, view = time.monotonic(), View() if view is None else view
    relation = relation_of(method) if private is None else private.relation
    pair = neighbours(world, relation, move)
    score = ("mean" if move == "shift" and view.kind != "policy" else "learned") if score is None else score
    one_of("score", score, get_args(ScoreKind))
    learned_on = round(LEARNED_SHARE * count("runs", runs, 40, MOST_RUNS))
    view.check(world.box, count("steps", steps))
    public_walk = not isinstance(method, Published) if public_walk is None else public_walk
    if private is None:
        method.check(spaces_of(world), steps)
        promise = _promise_of(method, spaces_of(world), steps)
    else:
        promise = Promise.of_mechanism(private.mechanism(world))
    trainings = Trainings(method, pair, view, steps, count("seed", seed, 0), private, public_walk)
    store = Store(folder if trainings.known else None, trainings.describe())
    seen = trainings.run(runs, store, progress)
    taught, judged = seen.split(learned_on)
    if score == "learned":
        weights, expected = learn(taught)
    else:
        weights = np.full(seen.first.shape[1], 1 / seen.first.shape[1])
        expected = taught.scored(weights).normal()
    thresholds = expected.thresholds(runs - learned_on, promise.delta, confidence)
    attack = Attack(method.name, world.name, str(relation), move, _in_words(view, seen, public_walk), score)
    return count_errors(
        judged.scored(weights), thresholds, attack, promise, confidence, learned_on, time.monotonic() - began
    )


def _promise_of(method: Method, spaces: EnvironmentSpaces, steps: int) -> Promise:
    """What its budget promises, of methods that noise as they go: a copy that is broken has no certificate."""
    if not isinstance(method, InLoopMethod):
        return Promise.of(method.certificate(spaces, steps))
    _, budget = method.promised()
    return Promise("certified", budget.epsilon, budget.delta, budget.mu)


def relation_of(method: Method) -> Relation:
    """What the method's promise is about: for the paper's, rewards that differ by at most 1."""
    if isinstance(method, Published):
        return SupBall(1.0)
    if isinstance(method, InLoopMethod):
        relation = method.promised()[0]
        # Their noise covers whatever moves no reward by more than the radius, and a norm's ball is part of that.
        return SupBall(method.radius) if isinstance(relation, RkhsBall) else relation
    raise InvalidInput(
        f"{method.name!r} makes no promise of its own that training could break: audit the private reward instead."
    )


def _in_words(view: View, seen: Seen, public_walk: bool) -> str:
    what = {"final": "released values", "policy": "released policy", "every": f"values at {view.moments} moments"}
    return f"{what[view.kind]}, {seen.first.shape[1]} numbers{', and the walk' if public_walk else ''}"
