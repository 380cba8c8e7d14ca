"""The comparison that should have been there: every certified method with the same protection, by people.

The paper compares methods at the same *claimed* epsilon, and claims that do not hold cost nothing. Here each has a
certificate for the same relation, replacing one of N people, and is beside a cap that no method can pass under both of
two opposite rewards. Gaussian noise has epsilon 0.9, delta 1e-4; K-norm noise, which is pure, has the smaller epsilon
at which a guesser is right as often.
"""

from functools import partial
from pathlib import Path
from typing import Any

from quietq.cli.report.page import table
from quietq.privacy.budget import guess_right, of_hundred
from reproduction.comparison.needed import TARGET, compare, curves, needed
from reproduction.comparison.scores import DELTA, EPSILON, budget, measure, measure_caps, name_of
from reproduction.experiment import Claim, Experiment, Tables, Task, statement, task
from reproduction.picture import plot_people

MOST = 9_999
"""Ratings at the end of the axis. From 10,000 on a delta of 1e-4 is 1/people or more, and no promise worth the name."""
ON_REWARD = (1, 3, 6, 10, 15, 20, 30, 40, 50, 100, 1000, MOST)
AS_THEY_GO = (1, 3, 10, 20, 30, 40, 50, 60, 70, 80, 100, 200, 500, 1000, MOST)
ON_REWARD_ELSEWHERE = (1, 10, 30, 50, 100, 1000, MOST)
ELSEWHERE = (1, 10, 30, 50, 100, 200, 500, 1000, MOST)
NOISES = {
    "walk": ("path", "k-norm", "knots", "observed"),
    "thermostat": ("path", "k-norm"),
    "navigation": ("path",),
}
METHODS = {
    "walk": ("input", "value", "gradient", "output", "value-network"),
    "thermostat": ("input", "value", "gradient", "output"),
    "navigation": ("input", "gradient"),
}
DRAWS, CHEAP_DRAWS = 12, 40
"""Of deep Q-learning on a private reward, and of methods that noise as they go, which take less time."""
CLOSER, CLOSER_PURE = (10, 15, 20, 30), (30, 40, 50)
"""Where noise on the reward reaches 0.9 on the walk, so that more draws are worth their time."""
AXIS = (*range(1, 30), *range(30, 100, 5), 100, 200, 500, 1000, 3000, MOST)
QUICK_PEOPLE = (10, 40, 160)
PROTECTION = f"a guesser is right in at most {of_hundred(guess_right(EPSILON, DELTA, budget().mu))} of 100 cases"


def score(
    world: str, method: str, noise: str | None, people: int | None, draws: int, steps: int = 5000, first: int = 0
) -> Task:
    settings: dict[str, Any] = dict(locals())
    title = f"{name_of(method, noise)} on the {world}" + ("" if people is None else f", {people} people")
    program = f"{world} {method} {'knots' if noise == 'k-norm' else noise} {draws} {steps}"
    return task("comparison_scores", title, measure, program, **settings)


def caps(world: str) -> Task:
    return task("comparison_limits", f"what is possible on the {world}", measure_caps, world=world, people=AXIS)


def tasks(quick: bool) -> list[Task]:
    """The longest first, so that no core waits for the last; at a glance few programs, few draws, short trainings."""
    tasks: list[Task] = []
    if quick:
        tasks += [score("walk", "reward", "path", people, 4) for people in QUICK_PEOPLE]
        for world, methods in {"walk": ("input", "value", "output"), "thermostat": ("input",)}.items():
            tasks += [score(world, method, None, people, 8, 1000) for method in methods for people in QUICK_PEOPLE]
            tasks += [score(world, "random", None, None, 1), caps(world)]
        return tasks
    for world, noises in NOISES.items():
        numbers = ON_REWARD if world == "walk" else ON_REWARD_ELSEWHERE
        tasks += [score(world, "reward", noise, people, DRAWS) for noise in noises for people in numbers]
    for first in (DRAWS, 2 * DRAWS):
        for noise in NOISES["walk"]:
            closer = CLOSER_PURE if noise == "k-norm" else CLOSER
            tasks += [score("walk", "reward", noise, people, DRAWS, first=first) for people in closer]
    for world, methods in METHODS.items():
        numbers, draws = (AS_THEY_GO, CHEAP_DRAWS) if world == "walk" else (ELSEWHERE, DRAWS)
        tasks += [score(world, method, None, people, draws) for method in methods for people in numbers]
    for world in NOISES:
        tasks += [score(world, "none", None, None, DRAWS), score(world, "random", None, None, 1), caps(world)]
    return tasks


INPUT = statement("input perturbation")(partial(compare, "input"))
OUTPUT = statement("output perturbation")(partial(compare, "output"))


def claims(tables: Tables) -> list[Claim]:
    on_walk = {curve.name: curve for curve in curves(tables["comparison_scores"]) if curve.world == "walk"}
    return [INPUT.claim(on_walk), OUTPUT.claim(on_walk)]


def draw(tables: Tables, path: Path) -> None:
    plot_people(curves(tables["comparison_scores"]), tables, TARGET, PROTECTION, path)


def after(tables: Tables) -> list[str]:
    rows = []
    for row in tables["needed"]:
        people = "not reached" if row["people"] is None else f"{'at most ' * (row['below'] is None)}{row['people']:.0f}"
        interval = " to ".join("more than tried" if row[end] is None else f"{row[end]:,.0f}" for end in ("low", "high"))
        rows.append((row["world"], row["name"], people, interval, row["fewest_gaussian"], row["fewest_any"]))
    headings = ("world", "method", "people for 0.9", "80 % interval", "fewest with Gaussian noise", "fewest with any")
    return [table(headings, rows)]


COMPARISON = Experiment(
    name="comparison",
    tasks=tasks,
    claims=claims,
    drawings={"comparison": draw},
    derive=lambda tables: {"needed": needed(tables)},
    after=after,
)
