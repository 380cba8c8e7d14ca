"""The comparison at equal promises: every certified method at epsilon 0.9, delta 1e-4, by the number of people.

The paper compares methods at the same *claimed* epsilon, and claims that do not hold cost nothing. Here each has a
certificate for the same relation, replacing one of N people, and is beside a cap that no method can pass under both of
two opposite rewards. K-norm noise has delta = 0, which is more than is asked.
"""

from typing import ClassVar

from paper.comparison.audit import DrawAudit, audited
from paper.comparison.limits import Caps
from paper.comparison.needed import curves, needed
from paper.comparison.needs import compared
from paper.comparison.scores import Scored
from paper.experiment import Claim, Experiment, Tables
from paper.task import Row, Task

MOST = 9_999
"""People at the end of the axis. From 10,000 on a delta of 1e-4 is 1/people or more, and no promise worth the name."""
ON_REWARD = (1, 3, 6, 10, 15, 20, 30, 40, 50, 100, 1000, MOST)
AS_THEY_GO = (1, 3, 10, 20, 30, 40, 50, 60, 70, 80, 100, 200, 1000, MOST)
ON_REWARD_ELSEWHERE = (1, 10, 30, 50, 100, 1000, MOST)
ELSEWHERE = (1, 10, 30, 50, 100, 200, 500, 1000, MOST)
NOISES = {
    "walk": ("path", "k-norm", "knots", "observed"),
    "thermostat": ("path", "k-norm"),
    "navigation": ("path",),
    "recommender": ("k-norm",),
}
METHODS = {
    "walk": ("input", "value", "gradient", "output", "value-network"),
    "thermostat": ("input", "value", "gradient", "output"),
    "navigation": ("input", "gradient"),
    "recommender": ("input", "gradient"),
}
DRAWS, CHEAP_DRAWS = 12, 40
"""Of deep Q-learning on a private reward, and of methods that noise as they go, which take less time."""
CLOSER = (10, 15, 20, 30)
"""Where noise on the reward reaches 0.9 on the walk, so that more draws are worth their time."""
AXIS = (*range(1, 30), *range(30, 100, 5), 100, 200, 500, 1000, 3000, MOST)
QUICK_PEOPLE = (10, 40, 160)


class Comparing(Experiment):
    """`python -m paper comparison`."""

    name: ClassVar[str] = "comparison"
    title: ClassVar[str] = "Every certified method at the same promise, by the number of people"

    def tasks(self, quick: bool) -> list[Task]:
        """The longest first, so that no core waits for the last."""
        return _quick() if quick else _full()

    def further(self, tables: Tables) -> dict[str, list[Row]]:
        """What audits of trainings found that were made here before, and how many people each method needs."""
        found = {"audit_trainings": audited()}
        return {**found, "needed": needed({**tables, **found})}

    def claims(self, tables: Tables) -> list[Claim]:
        """What is said of input and output perturbation, against Algorithm 1 made sound in either way."""
        on_walk = {curve.name: curve for curve in curves(tables["comparison_scores"]) if curve.world == "walk"}
        return [
            compared(
                "input perturbation", "It 'will cause relatively large utility loss and is therefore less preferred'.",
                on_walk["input"], on_walk,
            ),
            compared(
                "output perturbation", "'The necessary noise level is relatively larger and also depends on more "
                "factors than our algorithm does.'", on_walk["output"], on_walk,
                "The paper speaks of the noise level; what is compared here is the people it takes.",
            ),
        ]  # fmt: skip


def _full() -> list[Task]:
    tasks: list[Task] = []
    for world, noises in NOISES.items():
        numbers = ON_REWARD if world == "walk" else ON_REWARD_ELSEWHERE
        tasks += [Scored(world, "reward", noise, people, DRAWS) for noise in noises for people in numbers]
    for first in (DRAWS, 2 * DRAWS):
        closer = [(noise, people) for noise in NOISES["walk"] for people in CLOSER]
        tasks += [Scored("walk", "reward", noise, people, DRAWS, first=first) for noise, people in closer]
    tasks += [DrawAudit(noise, 50, 1000) for noise in NOISES["walk"]]
    for world, methods in METHODS.items():
        numbers, draws = (AS_THEY_GO, CHEAP_DRAWS) if world == "walk" else (ELSEWHERE, DRAWS)
        tasks += [Scored(world, method, None, people, draws) for method in methods for people in numbers]
    for world in NOISES:
        tasks += [Scored(world, "none", None, None, DRAWS), Scored(world, "random", None, None, 1), Caps(world, AXIS)]
    return tasks


def _quick() -> list[Task]:
    """Few programs to compile, few draws, and short trainings where that is enough: deep Q-learning takes longer."""
    tasks: list[Task] = [Scored("walk", "reward", "path", people, 4) for people in QUICK_PEOPLE]
    for world, methods in {"walk": ("input", "value", "output"), "thermostat": ("input",)}.items():
        tasks += [Scored(world, method, None, people, 8, 1000) for method in methods for people in QUICK_PEOPLE]
        tasks += [Scored(world, "random", None, None, 1), Caps(world, AXIS)]
    return [*tasks, DrawAudit("knots", 50, 100)]
