"""What no algorithm can do at this promise, by the number of people: a cap on the score, in each world.

In every world here the opposite preference, c - r (for the recommender -r), is one that people could have: turn each
person round, and they still keep to what is declared of them. Episodes have a fixed length, or end by chance alone, so
a policy's returns for the two add up to a constant and what scores S for the one scores 1 - S for the other. That is
the condition of `quietq.privacy.limits`. It caps the worse of the two scores; a method may be lucky with one of them.

Steps from r to its opposite: if all N people think alike, replacing them one by one takes N. For the recommender the
mean weights have length `strength`, their opposite is 2 strength away, and one person moves 2/N.
"""

from dataclasses import dataclass
from typing import ClassVar

from paper.comparison.scores import DELTA, EPSILON, budget
from paper.task import Row, Task
from quietq.privacy.limits import cap_any_dp, cap_gdp, steps_between
from quietq.worlds import RecommenderWorld, World, find_world


@dataclass(frozen=True)
class Caps(Task):
    """The caps in one world."""

    table: ClassVar[str] = "comparison_limits"

    world: str
    people: tuple[int, ...]

    @property
    def title(self) -> str:
        """World."""
        return f"what is possible on the {self.world}"

    def rows(self) -> list[Row]:
        """One row a number of people."""
        world, rows = find_world(self.world), list[Row]()
        for number in self.people:
            steps = steps_to_opposite(world, number)
            rows.append({
                "world": self.world, "people": number, "epsilon": EPSILON, "delta": DELTA, "steps": steps,
                "gaussian": cap_gdp(budget().mu, steps), "any": cap_any_dp(budget(), steps),
            })  # fmt: skip
        return rows


def steps_to_opposite(world: World, people: int) -> int:
    """How many people must be replaced, one by one, to turn the preference round.

    >>> steps_to_opposite(find_world("walk"), 50), steps_to_opposite(find_world("recommender"), 50)
    (50, 15)
    """
    if isinstance(world, RecommenderWorld):
        return steps_between(2 * world.strength, 2 / people)
    return people


def fewest_people(world: World, score: float, gaussian: bool) -> int:
    """The fewest with which the score is not ruled out.

    >>> fewest_people(find_world("walk"), 0.9, gaussian=True), fewest_people(find_world("walk"), 0.9, gaussian=False)
    (9, 3)
    """

    def possible(people: int) -> bool:
        steps = steps_to_opposite(world, people)
        return (cap_gdp(budget().mu, steps) if gaussian else cap_any_dp(budget(), steps)) >= score

    return next(people for people in range(1, 10**6) if possible(people))
