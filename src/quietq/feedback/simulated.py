"""People who do not exist, drawn from public laws: to try a release on before anything is spent.

Everybody's reward is the mean reward and a taste of their own, both in units of the mean reward's standard deviation
over states. States are uniform in the box, or items uniform in the list. One entry of `SIMULATED` per kind of feedback.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from quietq.feedback.comparisons import Comparisons
from quietq.feedback.feedback import Feedback
from quietq.feedback.ratings import Ratings
from quietq.noise.box import Box
from quietq.noise.feature_maps.categorical import MOST_ITEMS
from quietq.privacy.checks import Checked, count, one_of, optional
from quietq.privacy.errors import InvalidInput
from quietq.privacy.words import plural

RATED, LOG_ODDS = 1 / 5, 1.5
"""Standard deviation of the mean reward over states, in units of the range of ratings, and of log-odds."""
NOISE = 0.1
"""Standard deviation of the noise of a rating, in units of the range of ratings."""
SLOPE = 2.0
"""What is declared of a person's ratings in one dimension, in ranges per width of the box."""
MOST_DIMENSION, MOST_CHOICES = 64, 100

Points = Float[np.ndarray, "people rows d"]
Rewards = Callable[..., Float[np.ndarray, "people rows"]]
"""Each person's reward at their own states, for the actions that they name if there are several."""


@dataclass(frozen=True)
class Survey(Checked):
    """What everybody is asked: so many rows, about states of a box or items of a list."""

    fields: ClassVar = {
        "rows": count,
        "dimension": partial(count, most=MOST_DIMENSION),
        "items": optional(partial(count, least=2, most=MOST_ITEMS)),
        "actions": partial(count, most=MOST_CHOICES),
        "options": partial(count, least=2, most=MOST_CHOICES),
    }
    kind: str
    """One of `SIMULATED`."""
    rows: int
    dimension: int = 1
    items: int | None = None
    """How many there are to speak of, in place of states in a box."""
    actions: int = 1
    """Of which each rating names one."""
    options: int = 2
    """Among which each comparison chooses one."""

    def __post_init__(self) -> None:
        if self.kind == "sessions":
            raise InvalidInput(
                "There is no plan for sessions, because worlds differ too much: make people up who are like yours, and "
                "try privatise(..., simulate=seed) on them, as docs/sessions.md says under 'Is it good enough?'. A "
                f"plan is for {' or '.join(SIMULATED)}."
            )
        one_of("kind", self.kind, SIMULATED)
        super().__post_init__()
        if self.items is not None and self.dimension != 1:
            raise InvalidInput("Items have no dimension: leave it out, or the items.")
        for name, usual, kind in (("actions", 1, "ratings"), ("options", 2, "comparisons")):
            if self.kind != kind and getattr(self, name) != usual:
                raise InvalidInput(f"{name} are for {kind}: leave them out, or ask about {kind}.")

    def __str__(self) -> str:
        about = plural(self.dimension, "dimension") if self.items is None else plural(self.items, "item")
        among = f" among {self.options} options" if self.options > 2 else ""
        actions = f", {self.actions} actions" if self.actions > 1 else ""
        return f"{self.rows:,} {self.kind}{among} each, {about}{actions}"

    def states(self, generator: np.random.Generator, people: int) -> Points:
        """Where everybody is asked; items by their numbers."""
        if self.items is None:
            return generator.random((people, self.rows, self.dimension))
        return generator.integers(0, self.items, (people, self.rows, 1)).astype(np.float64)

    def declared(self) -> dict[str, object]:
        """What is declared of states."""
        if self.items is not None:
            return {"items": [str(i) for i in range(self.items)]}
        return {"box": Box((0.0,) * self.dimension, (1.0,) * self.dimension)}

    def columns(self, name: str, states: Points) -> dict[str, np.ndarray]:
        kind = np.float64 if self.items is None else np.int64
        return {f"{name}{i}": states[..., i].ravel().astype(kind) for i in range(self.dimension)}


def simulate_ratings(rewards: Rewards, people: int, survey: Survey, seed: int) -> Ratings:
    """Ratings from 0 to 1 around 1/2; what falls outside is moved to the nearer end."""
    generator = np.random.default_rng(seed)
    states = survey.states(generator, people)
    taken = generator.integers(0, survey.actions, states.shape[:2]) if survey.actions > 1 else None
    liked = rewards(states) if taken is None else rewards(states, taken)
    ratings = 0.5 + RATED * liked + NOISE * generator.normal(size=states.shape[:2])
    columns = survey.columns("x", states)
    rows = {**columns, "rating": ratings.ravel()}
    declared = {**survey.declared(), "state": list(columns), "low": 0, "high": 1, "people": people}
    if taken is not None:
        rows["action"] = taken.ravel()
        declared |= {"action": "action", "actions": [str(i) for i in range(survey.actions)]}
    elif survey.dimension == 1 and survey.items is None:
        declared["slope"] = SLOPE
    return Ratings.read(_frame(people, survey.rows, rows), **declared)  # type: ignore[arg-type]


def simulate_comparisons(rewards: Rewards, people: int, survey: Survey, seed: int) -> Comparisons:
    """Choices among states, by the log-odds of a reward."""
    generator = np.random.default_rng(seed)
    sides = [survey.states(generator, people) for _ in range(survey.options)]
    names = ["left", "right"] if survey.options == 2 else [f"option{j}_" for j in range(survey.options)]
    liked = np.stack([LOG_ODDS * rewards(one) for one in sides])
    chosen = np.array(names)[(liked + generator.gumbel(size=liked.shape)).argmax(axis=0)].ravel()
    columns = {name: survey.columns(name, one) for name, one in zip(names, sides, strict=True)}
    options = {name: list(one) for name, one in columns.items()}
    rows = {name: column for one in columns.values() for name, column in one.items()} | {"choice": chosen}
    frame = _frame(people, survey.rows, rows)
    return Comparisons.read(frame, options=options, people=people, **survey.declared())  # type: ignore[arg-type]


SIMULATED: dict[str, Callable[[Rewards, int, Survey, int], Feedback]] = {
    "ratings": simulate_ratings,
    "comparisons": simulate_comparisons,
}
"""By the names of `quietq.registry.FEEDBACK`, where a reward is made of it: people, what they are asked, and a seed."""


def _frame(people: int, rows: int, columns: dict[str, np.ndarray]) -> object:
    from quietq.feedback.schema import pl  # which says what to install, if it has to

    return pl.DataFrame({"person": np.repeat(np.arange(people), rows), **columns})
