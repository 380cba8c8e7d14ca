"""Scores of one method in one world, by the number of people behind the reward, at one certified promise for all.

The relation is the same for every method, "replace one of N people"; each method uses what it can of it. What is smooth
gets noise that knows the declared slope; methods that noise as they go know only how far one person moves one reward.

Score: 0 is the worst policy and 1 the best, in every world: exact on the walk, and elsewhere by the same 500 episodes
for the policy, the best known and the worst known. With those, what scores S for a preference scores 1 - S for its
opposite, to the last digit, so that the caps of `limits` hold for exactly this number.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

import quietq as qq
from quietq.experiments.task import Row, Task
from quietq.learning import METHODS, NoNoise, RewardNoise
from quietq.learning.judge import NotPrivate
from quietq.learning.observed import observe
from quietq.privacy.relations import LipschitzBall, SupBall
from quietq.worlds import (
    WALK,
    World,
    best_known,
    find_world,
    look_ahead,
    mean_return,
    plan_on_grid,
    random_return,
    uniform_policy,
    worst_return,
)
from quietq.worlds.environment import world_reward
from quietq.worlds.planning import MOST_ON_A_GRID
from quietq.worlds.walk_returns import best_return

EPSILON, DELTA = 0.9, 1e-4
"""The promise of the paper's comparison."""
EPISODES = 500
PIECES = {"walk": 5, "thermostat": 6}
"""Of k-norm and knots. With these no knot lies on the peak, which would flatter noise on knots."""
WIDTHS = {"walk": 0.5, "thermostat": 1.0, "navigation": 0.8, "recommender": 2.0}
"""How far apart two people's rewards can be at one state, by what each world declares of a person."""
SETTINGS: dict[tuple[str, str], dict[str, Any]] = {
    ("recommender", "input"): {"knots": 3},
    ("recommender", "gradient"): {"features": 3},
}
"""Hyper-parameters that differ from the defaults: seven knots a coordinate would be 343 in three dimensions."""


@dataclass(frozen=True)
class Scored(Task):
    """So many simulated draws of one method with so many people; `none` and `random` have no people."""

    table: ClassVar[str] = "honest_scores"

    world: str
    method: str
    noise: str | None
    people: int | None
    draws: int
    steps: int = 5000
    first: int = 0
    """The number of the first draw; others with the same setting have other numbers."""

    @property
    def title(self) -> str:
        """Method, world and people."""
        people = "" if self.people is None else f", {self.people} people"
        return f"{name_of(self.method, self.noise)} on the {self.world}{people}"

    @property
    def program(self) -> str:
        """World, method and the shape of what it learns from."""
        shape = {"k-norm": "knots"}.get(self.noise or "", self.noise)
        return f"{self.world} {self.method} {shape} {self.draws} {self.steps}"

    def rows(self) -> list[Row]:
        """One row a draw."""
        world = find_world(self.world)
        scores = [random_score(world)] if self.method == "random" else self._scores(world)
        private = self.people is not None
        common: Row = {
            "world": self.world, "method": self.method, "noise": self.noise,
            "standing": "certified" if private else "none", "people": self.people,
            "epsilon": EPSILON if private else None,
            "delta": (0.0 if self.noise == "k-norm" else DELTA) if private else None, "steps": self.steps,
        }  # fmt: skip
        return [{**common, "draw": draw, "score": score} for draw, score in enumerate(scores, self.first)]

    def _scores(self, world: World) -> list[float]:
        if self.people is None:
            agent = qq.Agent(world, NoNoise(), seed=self.first).learn(self.steps, seeds=self.draws)
        elif self.method == "reward":
            agent = qq.Agent(world, RewardNoise(self._rewards(world, self.people)), seed=self.first).learn(self.steps)
        else:
            relation = bounded(world, self.people)
            further: dict[str, Any] = {"relation": relation, "budget": budget(), **self._settings}
            agent = qq.Agent(world, METHODS[self.method](**further), seed=self.first).learn(
                self.steps, simulate=self.draws
            )
        return on_scale(world, agent.evaluate(episodes=EPISODES))

    @property
    def _settings(self) -> dict[str, Any]:
        return SETTINGS.get((self.world, self.method), {})

    def _rewards(self, world: World, people: int) -> list[Any]:
        """Simulated private rewards; the draw of a number has the same normals for any number of people."""
        if self.noise == "observed":
            ball, high = SupBall(WIDTHS[world.name] / people, people), WIDTHS[world.name]
            return [
                observe(world, ball, budget(), low=0.0, high=high, rewards=self.steps, simulate=draw, seed=draw)
                for draw in range(self.first, self.first + self.draws)
            ]
        pure = self.noise == "k-norm"
        pieces = PIECES.get(world.name) if self.noise in ("k-norm", "knots") else None
        noise: Any = self.noise
        return [
            qq.privatise(
                world.preference(), qq.Budget(EPSILON, 0.0) if pure else budget(), relation=world.relation(people),
                domain=world.box, noise=noise, pieces=pieces, simulate=draw,
            )
            for draw in range(self.first, self.first + self.draws)
        ]  # fmt: skip


def name_of(method: str, noise: str | None) -> str:
    """As tables and pictures have it.

    >>> name_of("reward", "path"), name_of("input", None)
    ('reward, path', 'input')
    """
    return method if noise is None else f"{method}, {noise}"


def budget() -> qq.Budget:
    """The promise that all methods make here."""
    return qq.Budget(EPSILON, DELTA)


def bounded(world: World, people: int) -> LipschitzBall | SupBall:
    """Replace one of so many people, for methods that know only how far one reward moves.

    In one dimension it is the world's own relation. Elsewhere the world's own is about norms, and would make them pay
    for more than a person can do.

    >>> bounded(find_world("navigation"), 100).radius
    0.008
    """
    own = world.relation(people)
    return own if isinstance(own, LipschitzBall) else SupBall(WIDTHS[world.name] / people, people)


def on_scale(world: World, found: NotPrivate) -> list[float]:
    """Scores from 0, the worst policy, to 1, the best."""
    if world == WALK:
        assert found.scores is not None
        return [float(score) for score in found.scores]
    worst, best = ends(world)
    return [float(np.clip((one - worst) / (best - worst), 0.0, 1.0)) for one in found.returns]


@cache
def ends(world: World) -> tuple[float, float]:
    """The returns of the worst and the best known policies."""
    if world == WALK:
        return worst_return(), best_return()
    liked = world_reward(world)
    on_grid = max(world.box.dimension, world.draws) <= MOST_ON_A_GRID
    worst = (plan_on_grid if on_grid else look_ahead)(world, lambda states: -np.asarray(liked(states)))
    return mean_return(world, worst, episodes=EPISODES), mean_return(world, best_known(world), episodes=EPISODES)


def random_score(world: World) -> float:
    """Of uniformly random actions."""
    worst, best = ends(world)
    found = random_return() if world == WALK else mean_return(world, uniform_policy(world), episodes=EPISODES)
    return float((found - worst) / (best - worst))
