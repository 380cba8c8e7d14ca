"""Everything that is released, attacked in one table: by draws, and with the noise held fixed."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from quietq.audit.bounds import significance_of
from quietq.audit.draws import Progress, audit_mechanism, audit_reward
from quietq.audit.finding import Finding, Movement
from quietq.audit.frozen_release import frozen_people, frozen_release
from quietq.audit.person import attack_person
from quietq.audit.worst_rows import WorstRows, worst_rows
from quietq.feedback.feedback import Feedback
from quietq.feedback.sessions import Sessions
from quietq.feedback.synthetic import Survey, SyntheticPeople
from quietq.mechanisms.clone import CloneSettings, Cloning
from quietq.mechanisms.mechanism import Task
from quietq.mechanisms.privatise import MECHANISMS, choose
from quietq.privacy import Budget, InvalidInput
from quietq.privacy.checks import count, one_of
from quietq.worlds import WALK

Audit = Callable[..., Finding]  # takes what is told how far it is, as `progress`
Check = Callable[[], Movement]
PEOPLE = 50
"""Behind each release, unless told otherwise."""
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
EXTREME: dict[str, list[tuple[float, float]]] = {"rating": [(0.0, 0.0), (0.5, 0.0), (1.0, 0.0)], "presence": []}
"""What one person's rows are replaced by, who gives the most everywhere: the least everywhere, or nothing."""


class PlannedAudit(NamedTuple):
    """One line of the table of all audits: neighbours told apart by draws, and moved with the noise held fixed."""

    title: str
    run: Audit | None = None
    check: Check | None = None


def plan_releases(
    runs: int = 1000, budget: Budget | None = None, people: int = PEOPLE, seed: int = 0
) -> Iterator[PlannedAudit]:
    """All audits of `quietq audit all`, for the walk unless they say otherwise."""
    budget = Budget(0.9, 1e-4) if budget is None else budget
    for title, stream in (("gaussian-process", 0), ("gaussian-process, real noise", None)):
        audit = partial(audit_mechanism, budget.mu, max(200_000, runs), delta=budget.delta, seed=stream)
        yield PlannedAudit(title, audit)
    for name in noises_on_the_walk(people):
        title, mechanism = f"reward, {name}", choose(name, Task(WALK.relation(people), budget, WALK.box))
        audit = partial(audit_reward, WALK, mechanism, 4 * runs)
        yield PlannedAudit(title, audit, partial(frozen_release, mechanism, name=title, seed=seed))
    for kind, instead in EXTREME.items():
        attack = partial(_attack_somebody, people, instead, budget, runs)
        yield PlannedAudit(f"reward, one person's {kind}", attack)
    yield PlannedAudit("reward, one of many people", check=partial(frozen_people, budget, people=people, seed=seed))
    for kind, noise in models_of_all_kinds():
        title, crowd = model_title(kind, noise), all_but_two(kind, people)
        yield _plan_rows(title, runs, partial(worst_rows, *crowd, budget, noise=noise, name=title, seed=seed))
    read, rows = all_but_two("sessions", people)
    search = partial(worst_rows, read, rows, budget, mechanism=short_clone(read(rows), budget), name=CLONE, seed=seed)
    yield _plan_rows(CLONE, runs, search)


def short_clone(sessions: Feedback, budget: Budget) -> Cloning:
    """A clone of few queries, each with as much of the budget more, so that many of them are drawn in minutes."""
    assert isinstance(sessions, Sessions)
    returns = (5 * sessions.low, 5 * sessions.high)
    settings = CloneSettings(state_rounds=2, threshold_rounds=3, steps=6, hidden=4)
    return Cloning(sessions, budget, returns, 0.2, settings)


def _plan_rows(title: str, runs: int, search: Callable[[], WorstRows]) -> PlannedAudit:
    """The worst rows are searched for once, for the draws and for what moves with the noise held fixed."""
    found = cache(search)
    return PlannedAudit(title, lambda progress=None: found().audit(runs, progress=progress), lambda: found().movement)


def check_confidence(confidence: float) -> None:
    """Refuses one that two bounds could not share."""
    significance_of(confidence)
    significance_of((1 + confidence) / 2)


def noises_on_the_walk(people: int) -> list[str]:
    """The kinds of noise that can make the walk's reward private."""
    task = Task(WALK.relation(people), Budget(0.9, 1e-4), WALK.box, slope=1.0)
    return [name for name, kind in MECHANISMS.items() if kind.takes == task.gives and kind.propose(task)]


def all_but_two(kind: str, people: int, dimension: int = 2, seed: int = 0) -> SyntheticPeople:
    """All but two of so many synthetic people, whose rows are of a kind of `SURVEYS`, for `worst_rows`.

    There is room for one whose rows an adversary chooses, and for that one once again, if somebody counts them twice.
    """
    one_of("kind", kind, SURVEYS)
    survey, people = SURVEYS[kind], count("people", people, 3)
    if survey.items is None:
        survey = replace(survey, dimension=count("dimension", dimension, 2))
    return survey.draw(people - 2, count("seed", seed, 0), declared=people)


def models_of_all_kinds() -> list[tuple[str, str]]:
    """Each kind of feedback that gives rows, with each kind of noise that makes a model of them private."""
    found = []
    for kind in SURVEYS:
        read, rows = all_but_two(kind, PEOPLE)
        task = replace(Task.of(read(rows), Budget(0.9, 1e-4)), asked=True)
        for name, mechanism in MECHANISMS.items():
            with suppress(InvalidInput):  # it is not made for these
                if mechanism.takes == task.gives and mechanism.propose(task):
                    found.append((kind, name))
    return found


def model_title(kind: str, noise: str) -> str:
    """What tables call a model, or a world, of everybody's rows."""
    return f"{MECHANISMS[noise].releases}, {noise} of {kind}"


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
        ratings,
        "somebody",
        instead,
        budget,
        releases=runs,
        noise="path",
        box=(0, 1),
        low=0.0,
        high=0.5,
        slope=1.0,
        people=people,
        progress=progress,
    ).finding
