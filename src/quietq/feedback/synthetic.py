"""Synthetic people, drawn from public laws by a seed: to plan, try and audit releases on, before anything is spent.

`Survey(kind, ...).draw(people, seed)` makes so many people's rows of a kind of feedback, and says how such rows are
read. Everybody's reward is a mean reward, drawn from the public prior, and a taste of their own, both in units of the
mean reward's standard deviation over states. States are uniform in the box, or items uniform in the list; in sessions
people are pushed about. One entry of `SYNTHETIC` per kind of feedback.
"""

import csv
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from quietq.feedback.comparisons import Comparisons
from quietq.feedback.feedback import Feedback
from quietq.feedback.ratings import Ratings
from quietq.feedback.sessions import Sessions
from quietq.noise.box import Box
from quietq.noise.feature_maps import ACTIONS_OWN_SHARE, MOST_ITEMS, Polynomials, smooth_prior
from quietq.privacy.checks import Checked, count, one_of, optional, plural
from quietq.privacy.errors import InvalidInput

if TYPE_CHECKING:
    import polars

RATED, LOG_ODDS = 1 / 5, 1.5
"""Standard deviation of the mean reward over states, in units of the range of ratings, and of log-odds."""
NOISE = 0.1
"""Standard deviation of the noise of a rating, in units of the range of ratings."""
SPREAD = 0.5
"""How far people's own rewards are from the mean one, over the deviation of the mean reward itself."""
MOST_CHOICES = 100

Points = Float[np.ndarray, "people rows d"]
Rewards = Callable[..., Float[np.ndarray, "people rows"]]
"""Each person's reward at their own states, for the actions that they name if there are several."""


class SyntheticPeople(NamedTuple):
    """Rows of synthetic people, and how they are read: with all that is declared but the rows."""

    read: Callable[..., Feedback]
    rows: "polars.DataFrame"


@dataclass(frozen=True)
class Survey(Checked):
    """What everybody is asked: a number of rows, about states of a box or items of a list."""

    fields: ClassVar = {
        "rows": count,
        "dimension": partial(count, most=64),
        "items": optional(partial(count, least=2, most=MOST_ITEMS)),
        "actions": partial(count, most=MOST_CHOICES),
        "options": partial(count, least=2, most=MOST_CHOICES),
        "segment_rows": count,
    }
    kind: str
    """One of `SYNTHETIC`."""
    rows: int
    dimension: int = 1
    items: int | None = None
    """How many there are to speak of, in place of states in a box."""
    actions: int = 1
    """The number of actions, of which each rating names one."""
    options: int = 2
    """Among which each comparison chooses one."""
    segment_rows: int = 1
    """The number of rows of each comparison, whose rewards are summed."""

    def __post_init__(self) -> None:
        one_of("kind", self.kind, SYNTHETIC)
        super().__post_init__()
        if self.items is not None and self.dimension != 1:
            raise InvalidInput("Items have no dimension: leave it out, or the items.")
        usual = {"actions": (1, "ratings"), "options": (2, "comparisons"), "segment_rows": (1, "comparisons")}
        for name, (default, kind) in usual.items():
            if self.kind != kind and getattr(self, name) != default:
                raise InvalidInput(f"{name} are for {kind}: leave them out, or plan for {kind}.")

    def __str__(self) -> str:
        about = plural(self.dimension, "dimension") if self.items is None else plural(self.items, "item")
        among = f" among {self.options} options" if self.options > 2 else ""
        actions = f", {self.actions} actions" if self.actions > 1 else ""
        return f"{self.rows:,} {self.kind}{among} each, {about}{actions}"

    def draw(
        self, people: int, seed: int, rewards: Rewards | None = None, declared: int | None = None
    ) -> SyntheticPeople:
        """Draws this number of people, whose `rewards` are by default drawn from the prior by the same seed.

        `declared` is how many are declared when rows are read, if there is to be room for more.
        """
        rewards = SyntheticRewards.draw(self, seed) if rewards is None else rewards
        columns, read = SYNTHETIC[self.kind](self, rewards, people, np.random.default_rng(seed))
        from quietq.feedback.schema import pl  # which says what to install, if it has to

        frame = pl.DataFrame({"person": np.repeat(np.arange(people), self.rows), **columns})
        return SyntheticPeople(partial(read, people=people if declared is None else declared), frame)

    def states(self, generator: np.random.Generator, people: int) -> Points:
        """Returns where everybody is asked; items by their numbers."""
        if self.items is None:
            return generator.random((people, self.rows, self.dimension))
        return generator.integers(0, self.items, (people, self.rows, 1)).astype(np.float64)

    def declared(self) -> dict[str, object]:
        """Returns what is declared of states."""
        if self.items is not None:
            return {"box": [str(i) for i in range(self.items)]}
        return {"box": Box((0.0,) * self.dimension, (1.0,) * self.dimension)}

    def columns(self, name: str, states: Points) -> dict[str, np.ndarray]:
        kind = np.float64 if self.items is None else np.int64
        return {f"{name}{i}": states[..., i].ravel().astype(kind) for i in range(self.dimension)}


@dataclass(frozen=True)
class SyntheticRewards:
    """A mean reward from the public prior, and people whose own rewards deviate from it.

    Weights of the prior's features, or values of items, are in units of the mean reward's deviation over states.
    """

    features: Polynomials | None
    """None for items, which states are the numbers of."""
    deviations: Float[np.ndarray, " rank"]
    weights: Float[np.ndarray, "rank actions"]
    seed: int

    @classmethod
    def draw(cls, survey: Survey, seed: int) -> "SyntheticRewards":
        features, deviations = None, np.ones(survey.items or 0)
        if survey.items is None:
            terms, variances = smooth_prior(survey.dimension)
            order = sorted(range(len(terms)), key=lambda i: len(terms[i]))
            deviations = np.sqrt(variances[order] / variances.sum())
            features = Polynomials(survey.dimension, tuple(terms[i] for i in order))
        generator = np.random.default_rng(seed)
        weights = generator.normal(size=(len(deviations), 1))
        if survey.actions > 1:
            own = generator.normal(size=(len(deviations), survey.actions))
            weights = math.sqrt(1 - ACTIONS_OWN_SHARE) * weights + math.sqrt(ACTIONS_OWN_SHARE) * own
        return cls(features, deviations, weights * deviations[:, None], seed)

    def mean(self, states: Float[np.ndarray, "states d"]) -> Float[np.ndarray, "states actions"]:
        return self._at(states[None], self.weights[None])[0]

    def __call__(
        self, points: Points, actions: Int[np.ndarray, "people rows"] | None = None
    ) -> Float[np.ndarray, "people rows"]:
        """Everybody's own reward at their own states; the same people have the same tastes each time."""
        generator, found = np.random.default_rng((self.seed, 1)), []
        at_once = max(1, min(500, 2**22 // self.weights.size))  # so that everybody's own weights fit into memory
        for first in range(0, len(points), at_once):
            some = points[first : first + at_once]
            taste = SPREAD * self.deviations[:, None] * generator.normal(size=(len(some), *self.weights.shape))
            found.append(self._at(some, self.weights + taste))
        every = np.concatenate(found)
        return every[..., 0] if actions is None else np.take_along_axis(every, actions[..., None], axis=-1)[..., 0]

    def _at(
        self, points: Points, weights: Float[np.ndarray, "people rank actions"]
    ) -> Float[np.ndarray, "people rows actions"]:
        if self.features is None:
            return np.take_along_axis(weights, points.astype(np.int64), axis=1)
        return self.features(points) @ weights


Drawn = tuple[dict[str, np.ndarray], Callable[..., Feedback]]
"""Columns of rows, and how they are read."""


def _ratings(survey: Survey, rewards: Rewards, people: int, generator: np.random.Generator) -> Drawn:
    """Ratings from 0 to 1 around 1/2; what falls outside is clipped when it is read."""
    states = survey.states(generator, people)
    taken = generator.integers(0, survey.actions, states.shape[:2]) if survey.actions > 1 else None
    liked = rewards(states) if taken is None else rewards(states, taken)
    ratings = 0.5 + RATED * liked + NOISE * generator.normal(size=states.shape[:2])
    columns = survey.columns("x", states)
    declared = {**survey.declared(), "state": list(columns), "low": 0, "high": 1}
    columns["rating"] = ratings.ravel()
    if taken is not None:
        columns["action"] = taken.ravel()
        declared |= {"action": "action", "actions": [str(i) for i in range(survey.actions)]}
    elif survey.dimension == 1 and survey.items is None:
        declared["slope"] = 2.0  # ranges per width of the box
    return columns, partial(Ratings.read, **declared)


def _comparisons(survey: Survey, rewards: Rewards, people: int, generator: np.random.Generator) -> Drawn:
    """Choices among states, or segments of them, by the log-odds of a reward."""
    sides = [survey.states(generator, people) for _ in range(survey.options)]
    names = ["left", "right"] if survey.options == 2 else [f"option{j}_" for j in range(survey.options)]
    liked = np.stack([LOG_ODDS * rewards(one) for one in sides])
    pair = np.arange(survey.rows) // survey.segment_rows
    liked = np.add.reduceat(liked, np.arange(0, survey.rows, survey.segment_rows), axis=2)
    chosen = np.array(names)[(liked + generator.gumbel(size=liked.shape)).argmax(axis=0)][:, pair].ravel()
    columns = {name: survey.columns(name, one) for name, one in zip(names, sides, strict=True)}
    options = {name: list(one) for name, one in columns.items()}
    declared = {**survey.declared(), **(options if survey.options == 2 else {"options": options})}
    rows = {name: column for one in columns.values() for name, column in one.items()} | {"choice": chosen}
    if survey.segment_rows > 1:
        rows["pair"] = np.tile(pair, people)
        declared |= {"segment": "pair", "length": survey.segment_rows}
    return rows, partial(Comparisons.read, **declared)


def _sessions(survey: Survey, rewards: Rewards, people: int, generator: np.random.Generator) -> Drawn:
    """Visits of three steps, at which everybody is pushed along the first coordinate, and rests beyond an edge."""
    visit, shape = 3, (people, survey.dimension)
    step, state = np.arange(survey.rows), np.zeros(shape)
    pushes = generator.integers(0, 2, (people, survey.rows))
    states, nexts = np.zeros((2, people, survey.rows, survey.dimension))
    for row in step:
        state = generator.random(shape) if row % visit == 0 else state
        after = 0.9 * state + 0.05 + generator.normal(0, 0.02, shape)
        after[:, 0] += 0.1 * (2 * pushes[:, row] - 1)
        states[:, row], nexts[:, row] = state, np.clip(after, 0.0, 1.0)
        state = nexts[:, row]
    before, later = survey.columns("x", states), survey.columns("next", nexts)
    told = {"visit": np.tile(step // visit, people), "step": np.tile(step, people), "push": pushes.ravel()}
    told |= {"reward": (0.5 + RATED * rewards(nexts)).ravel(), "end": (nexts[..., 0] > 0.9).astype(np.int64).ravel()}
    declared = {
        **survey.declared(), "episode": "visit", "step": "step", "state": list(before), "next_state": list(later),
        "action": "push", "actions": [0, 1], "reward": "reward", "low": 0.0, "high": 1.0, "end": "end",
    }  # fmt: skip
    return {**before, **later, **told}, partial(Sessions.read, **declared)


SYNTHETIC: dict[str, Callable[[Survey, Rewards, int, np.random.Generator], Drawn]] = {
    "ratings": _ratings,
    "comparisons": _comparisons,
    "sessions": _sessions,
}
"""Synthetic people by the names of `quietq.feedback.FEEDBACK`."""


def write_cart_pole_sessions(path: str | os.PathLike[str], people: int = 500, seed: int = 0) -> int:
    """Writes synthetic sessions to a CSV file, one row per step, and gives the number of rows.

    People push CartPole's cart at random until it falls, which takes some 22 steps, or for 100.
    """
    import gymnasium

    states = ("position", "velocity", "angle", "spin")
    env, rng, rows = gymnasium.make("CartPole-v1", max_episode_steps=100), np.random.default_rng(seed), []
    for person in range(count("people", people)):
        state, _ = env.reset(seed=int(rng.integers(2**31)))
        step, over = 0, False
        while not over:
            push = int(rng.integers(2))
            after, reward, fell, cut, _ = env.step(push)
            numbers = (f"{value:.6g}" for value in (*state, *after))
            rows.append((f"person {person}", step, *numbers, ("left", "right")[push], float(reward), int(fell)))
            state, step, over = after, step + 1, fell or cut
    env.close()
    with open(path, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("person", "step", *states, *(f"next {name}" for name in states), "push", "reward", "fell"))
        writer.writerows(rows)
    return len(rows)
