"""Everything that is released, attacked in one table: by draws, and with the noise held fixed."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from quietq.audit.bounds import significance_of
from quietq.audit.draws import audit_mechanism, audit_reward
from quietq.audit.finding import Finding, Movement
from quietq.audit.frozen_release import frozen_release
from quietq.audit.worst_rows import WorstRows, worst_rows
from quietq.feedback.feedback import Feedback
from quietq.feedback.own_function import OwnFunction
from quietq.feedback.sessions import Sessions
from quietq.feedback.synthetic import Survey, SyntheticPeople
from quietq.mechanisms.candidates import MECHANISMS, choose
from quietq.mechanisms.clone import CloneSettings, Cloning
from quietq.mechanisms.path import Path
from quietq.noise.box import UNIT
from quietq.privacy import Budget, Exponential, LipschitzBall
from quietq.privacy.checks import count, one_of
from quietq.worlds import WALK

Audit = Callable[..., Finding]  # takes what is called with how far it is, as `progress`
Check = Callable[[], Movement]
PEOPLE = 50
"""Behind each release, by default."""
CLONE = "policy, clone of sessions"
"""What tables call a policy that imitates people."""
SURVEYS = {
    "ratings": Survey("ratings", 5, 2),
    "comparisons": Survey("comparisons", 5, 2),
    "sessions": Survey("sessions", 5, 2),
    "ratings of items": Survey("ratings", 5, items=12),
    "ratings per action": Survey("ratings", 5, 2, actions=2),
    "choices among three": Survey("comparisons", 5, 2, options=3),
    "comparisons of segments": Survey("comparisons", 5, 2, segment_rows=2),
}
"""Kinds of rows that models and worlds are made of, all of which are audited."""


class PlannedAudit(NamedTuple):
    """One line of the table of all audits: neighbours distinguished by draws, and moved with the noise held fixed."""

    title: str
    run: Audit | None = None
    check: Check | None = None


def plan_releases(
    runs: int = 1000, budget: Budget | None = None, people: int = PEOPLE, seed: int = 0
) -> Iterator[PlannedAudit]:
    """Lists all audits of `quietq audit all`, for the walk unless they say otherwise.

    Args:
        runs: Releases of each of two inputs.
        budget: The (epsilon, delta) of each release.
        people: The number of people.
        seed: Makes the audits repeatable.

    """
    budget = Budget(0.9, 1e-4) if budget is None else budget
    for title, stream in (("gaussian-process", 0), ("gaussian-process, real noise", None)):
        audit = partial(audit_mechanism, budget.mu, max(200_000, runs), delta=budget.delta, seed=stream)
        yield PlannedAudit(title, audit)
    walk = OwnFunction(None, WALK.relation(people), box=WALK.box)  # what is public about the walk's reward
    for name in (name for name, kind in MECHANISMS.items() if kind.is_for(walk)):
        title, mechanism = f"reward, {name}", choose(name, walk, budget)
        audit = partial(audit_reward, WALK, mechanism, 4 * runs)
        yield PlannedAudit(title, audit, partial(frozen_release, mechanism, name=title, seed=seed))
    yield _plan_rows("reward, one of many people", partial(one_of_many, people, budget), runs, seed)
    for title, (kind, noise) in models_of_all_kinds().items():
        search = partial(worst_rows, *all_but_two(kind, people), budget, noise=noise)
        yield _plan_rows(title, search, runs, seed)
    read, rows = all_but_two("sessions", people)
    search = partial(worst_rows, read, rows, budget, mechanism=short_clone(read(rows), budget))
    yield _plan_rows(CLONE, search, runs, seed)


def short_clone(sessions: Feedback, budget: Budget) -> Cloning:
    """A clone of few queries, each with as much of the budget more, so that many of them are drawn in minutes."""
    assert isinstance(sessions, Sessions)
    returns = (5 * sessions.spaces.low, 5 * sessions.spaces.high)
    settings = CloneSettings(state_rounds=2, threshold_rounds=3, steps=6, hidden=4)
    return Cloning(sessions, budget, returns, 0.2, settings)


def _plan_rows(title: str, search: Callable[..., WorstRows], runs: int, seed: int) -> PlannedAudit:
    """The worst rows are searched for once, for the draws and for what moves with the noise held fixed."""
    found = cache(partial(search, name=title, seed=seed))
    return PlannedAudit(title, lambda progress=None: found().audit(runs, progress=progress), lambda: found().movement)


def one_of_many(people: int, budget: Budget, **options: Any) -> WorstRows:
    """One person's ratings of one coordinate, which become a function, in the mean of people that a path hides.

    A path hides sizes and slopes: two people who go to and fro as steeply as they may, close to either end of the
    range, are nearly as far apart as neighbours can be.
    """
    read, rows = Survey("ratings", 5).draw(people - 2, 0, declared=people)
    relation, levels = read(rows).relation, 6
    assert isinstance(relation, LipschitzBall)
    kernel = Exponential(relation.best_beta())
    declared = OwnFunction(None, relation, box=UNIT)
    path = Path(declared, budget, kernel, radius=relation.rkhs_radius(kernel), levels=levels)
    places = np.linspace(0, 1, 2**levels + 1)
    tooth = people * relation.lipschitz / 2 / 2**levels * (np.arange(len(places)) % 2)
    ratings = {"zigzag below the top": 1 - tooth, "zigzag above the bottom": tooth}
    candidates = {by: list(zip(places, values, strict=True)) for by, values in ratings.items()}
    return worst_rows(read, rows, budget, mechanism=path, candidates=candidates, tries=8, **options)


def check_confidence(confidence: float) -> None:
    """Refuses one that two bounds could not share."""
    significance_of(confidence)
    significance_of((1 + confidence) / 2)


def all_but_two(kind: str, people: int, dimension: int = 2, seed: int = 0) -> SyntheticPeople:
    """Makes all but two of this number of synthetic people, for `worst_rows`.

    There is room for one whose rows an adversary chooses, and for that one once again, if somebody counts them twice.

    Args:
        kind: One of `SURVEYS`.
        people: The number of people.
        dimension: The number of coordinates of a state.
        seed: Of the people.

    """
    one_of("kind", kind, SURVEYS)
    survey, people = SURVEYS[kind], count("people", people, 3)
    if survey.items is None:
        survey = replace(survey, dimension=count("dimension", dimension, 2))
    return survey.draw(people - 2, count("seed", seed, 0), declared=people)


@cache
def models_of_all_kinds() -> dict[str, tuple[str, str]]:
    """Each kind of feedback that gives rows, with each noise that makes a model of them private, by what tables say."""
    found = {}
    for kind in SURVEYS:
        read, rows = all_but_two(kind, PEOPLE)
        feedback = read(rows)
        for noise, mechanism in MECHANISMS.items():
            if mechanism.is_for(feedback):
                found[f"{mechanism.releases}, {noise} of {kind}"] = kind, noise
    return found
