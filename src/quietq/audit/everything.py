"""One table of all methods: what each claims or certifies, and what an attack measures of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from quietq.audit.draws import Progress
from quietq.audit.finding import Finding
from quietq.audit.mechanism import audit_mechanism
from quietq.audit.other_releases import audit_evaluation, audit_observed, audit_weights
from quietq.audit.release import audit_reward
from quietq.audit.training import audit_training
from quietq.audit.views import View
from quietq.learning import METHODS
from quietq.learning.published import Published
from quietq.privacy.budget import Budget
from quietq.privacy.relations import SupBall
from quietq.worlds.registry import find_world
from quietq.worlds.walk import WALK

EVERY = View("every", queries=9, moments=10)
TRAINED = {"input": 4, "value": 1, "output": 4, "gradient": 1, "value-network": 1}
"""Certified methods that noise as they train, and how many times as many runs they get, because they are cheap."""
WEAK_EPSILON = 4.0
"""A second, weaker budget for methods whose runs are dear: a larger mu needs fewer of them to be seen."""


@dataclass(frozen=True)
class Entry:
    """One audit of the table, not yet run."""

    title: str
    run: Callable[[Progress | None], Finding]


def entries(runs: int, budget: Budget, people: int, folder: Path | None) -> Iterator[Entry]:
    """All audits of `quietq audit all`, for the walk unless they say otherwise."""
    relation = WALK.relation(people)
    for sigma in (0.32, 0.74):
        method = Published.code(sigma)
        yield Entry(
            f"published, sigma {sigma:g}",
            lambda progress, method=method: audit_training(method, WALK, runs, folder=folder, progress=progress),
        )
    yield Entry(
        "gaussian-process",
        lambda progress: audit_mechanism(budget.mu, max(200_000, runs), delta=budget.delta),
    )
    for noise, pieces in (("path", None), ("knots", 6), ("k-norm", 6)):
        kind = partial(audit_reward, WALK, relation, budget, 4 * runs, noise=noise, pieces=pieces)
        yield Entry(f"reward, {noise}", lambda progress, kind=kind: kind(progress=progress))
    recommender = find_world("recommender")
    for noise in ("k-norm", "path"):
        kind = partial(audit_weights, recommender, people, budget, 4 * runs, noise=noise)
        yield Entry(f"reward, weights, {noise}", lambda progress, kind=kind: kind(progress=progress))
    yield Entry(
        "reward, observed",
        lambda progress: audit_observed(WALK, SupBall(relation.radius), budget, runs, progress=progress),
    )
    for name, times in TRAINED.items():
        method = METHODS[name](relation=relation, budget=budget)  # pyright: ignore[reportCallIssue]
        yield Entry(
            name,
            lambda progress, method=method, times=times: audit_training(
                method, WALK, times * runs, view=EVERY, folder=folder, progress=progress
            ),
        )
    yield Entry("evaluation", lambda progress: audit_evaluation(200, budget, runs, progress=progress))
