"""One table of all methods: what each claims or certifies, and what an attack measures of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from quietq.audit.draws import Progress
from quietq.audit.finding import Finding
from quietq.audit.mechanism import audit_mechanism
from quietq.audit.other_releases import audit_evaluation, audit_observed, audit_weights
from quietq.audit.person import attack_person
from quietq.audit.release import audit_reward
from quietq.audit.training import ScoreKind, audit_training
from quietq.audit.views import View
from quietq.learning import METHODS
from quietq.learning.input import InputNoise
from quietq.learning.published import Published
from quietq.privacy.budget import Budget
from quietq.privacy.relations import SupBall
from quietq.worlds.walk import WALK
from quietq.worlds.world import find_world

EVERY = View("every", queries=9, moments=10)
AT_KNOTS = View("final", queries=7)
TRAINED: dict[str, tuple[int, View, ScoreKind]] = {
    "input": (4, AT_KNOTS, "learned"),
    "value": (1, EVERY, "mean"),
    "output": (4, EVERY, "mean"),
    "gradient": (1, EVERY, "mean"),
    "value-network": (1, EVERY, "mean"),
}
"""Certified methods that noise as they train: how many times as many runs they get, because they are cheap, what is
seen of them, and the score. A shift shows in the mean of all values, but for `input`, whose values are shrunken."""
EXTREME: dict[str, list[tuple[float, float]]] = {"rating": [(0.0, 0.0), (0.5, 0.0), (1.0, 0.0)], "presence": []}
"""What one person's rows are replaced by, who gives the most everywhere: the least everywhere, or nothing."""


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
    for title, seed in (("gaussian-process", 0), ("gaussian-process, real noise", None)):
        yield Entry(
            title,
            lambda progress, seed=seed: audit_mechanism(budget.mu, max(200_000, runs), delta=budget.delta, seed=seed),
        )
    for noise, pieces in (("path", None), ("knots", 6), ("k-norm", 6)):
        kind = partial(audit_reward, WALK, relation, budget, 4 * runs, noise=noise, pieces=pieces)
        yield Entry(f"reward, {noise}", lambda progress, kind=kind: kind(progress=progress))
    recommender = find_world("recommender")
    for noise in ("ball", "weights"):
        kind = partial(audit_weights, recommender, people, budget, 4 * runs, noise=noise)
        yield Entry(f"reward, weights, {noise}", lambda progress, kind=kind: kind(progress=progress))
    yield Entry(
        "reward, observed",
        lambda progress: audit_observed(WALK, SupBall(relation.radius), budget, 4 * runs, progress=progress),
    )
    for kind, instead in EXTREME.items():
        yield Entry(
            f"reward, one person's {kind}",
            lambda progress, instead=instead: _one_of(people, instead, budget, runs),
        )
    for name, (times, view, score) in TRAINED.items():
        method = METHODS[name](relation=relation, budget=budget)  # pyright: ignore[reportCallIssue]
        yield Entry(
            name,
            lambda progress, method=method, times=times, view=view, score=score: audit_training(
                method, WALK, times * runs, view=view, score=score, folder=folder, progress=progress
            ),
        )
    bumpy = InputNoise(relation=relation, budget=budget)
    yield Entry(
        "input, bumps",
        lambda progress: audit_training(
            bumpy, WALK, 4 * runs, move="bumps", view=EVERY, folder=folder, progress=progress
        ),
    )
    yield Entry("evaluation", lambda progress: audit_evaluation(60, budget, runs, progress=progress))


def _one_of(people: int, instead: list[tuple[float, float]], budget: Budget, runs: int) -> Finding:
    """Somebody who likes everything, among people who each like one place."""
    import polars as pl

    liked = np.linspace(0, 1, people - 1)
    places = [(i, x, place) for i, place in enumerate(liked) for x in (0.0, 0.5, 1.0)]
    others = [(f"person {i}", x, 0.5 - abs(x - float(place))) for i, x, place in places]
    rows = [*others, *(("somebody", x, 0.5) for x in (0.0, 0.5, 1.0))]
    ratings = pl.DataFrame(rows, schema=["person", "state", "rating"], orient="row")
    return attack_person(
        ratings, "somebody", instead, budget, releases=runs, noise="path", box=(0, 1), low=0.0, high=0.5, slope=1.0,
        count=people,
    ).finding()  # fmt: skip
