"""Rewards of several dimensions: the additive kernel in the navigation world, features in the recommender."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import quietq as qq
from paper.extensions.learners import SEED
from paper.extensions.row import DIMENSIONS, TABLE, row
from paper.task import Row, Task
from quietq.noise.private_function import PrivateFunction
from quietq.worlds import World, find_world, look_ahead, mean_return, normalise, plan_on_grid
from quietq.worlds.planning import MOST_ON_A_GRID

EPSILON, DELTA = 1.0, 1e-5
NAMES = {"navigation": "additive kernel, navigation", "recommender": "feature kernel, recommender"}
Kind = Literal["path", "k-norm"]
"""Gaussian noise in the relation's kernel, or pure noise on weights."""


def private_rewards(world: World, people: int, noise: Kind, draws: int) -> list[PrivateFunction]:
    """Simulated draws of the world's reward."""
    budget = qq.Budget(EPSILON, DELTA if noise == "path" else 0.0)
    return [
        qq.privatise(
            world.preference(), budget, relation=world.relation(people), noise=noise, domain=world.box, simulate=seed
        )
        for seed in range(draws)
    ]


@dataclass(frozen=True)
class Planned(Task):
    """Plans on private rewards: what the noise costs, whatever learns from it."""

    table: ClassVar[str] = TABLE
    world: str
    noise: Kind
    people: tuple[int, ...]
    draws: int

    @property
    def title(self) -> str:
        """Where."""
        return f"extensions: plans for the {self.world}, {self.noise}"

    def rows(self) -> list[Row]:
        """Scores; 0 is random, 1 the best known."""
        world = find_world(self.world)
        choose: Any = plan_on_grid if world.box.dimension <= MOST_ON_A_GRID else look_ahead
        return [
            row(DIMENSIONS, f"{NAMES[self.world]}, {_kind(self.noise)}, planned", "score",
                normalise(world, mean_return(world, choose(world, private))), people=people, epsilon=EPSILON,
                delta=_delta(self.noise), draw=i)
            for people in self.people
            for i, private in enumerate(private_rewards(world, people, self.noise, self.draws))
        ]  # fmt: skip


@dataclass(frozen=True)
class Trained(Task):
    """Deep Q-learning on private rewards, or on the true one: the twin that nobody could publish."""

    table: ClassVar[str] = TABLE
    world: str
    noises: tuple[Kind, ...]
    """None for the twin."""
    people: int
    draws: int
    steps: int

    @property
    def title(self) -> str:
        """Where, and on what."""
        return f"extensions: {'private' if self.noises else 'not private'} learning in the {self.world}"

    @property
    def program(self) -> str:
        """Each compiles its own."""
        return self.title

    def rows(self) -> list[Row]:
        """Returns and scores under the true reward, one a draw."""
        world, name = find_world(self.world), NAMES[self.world]
        if not self.noises:
            found = qq.Agent(world, qq.NoNoise(), seed=SEED).learn(self.steps, seeds=self.draws).evaluate()
            setting = f"{name}, not private, trained"
            return [
                row(DIMENSIONS, setting, quantity, value, draw=i)
                for quantity, values in (("score", found.scores or []), ("return", found.returns))
                for i, value in enumerate(values)
            ]
        rewards = [one for noise in self.noises for one in private_rewards(world, self.people, noise, self.draws)]
        found = qq.Agent(world, qq.RewardNoise(rewards), seed=SEED).learn(self.steps).evaluate()
        kinds: list[Kind] = [noise for noise in self.noises for _ in range(self.draws)]
        return [
            row(DIMENSIONS, f"{name}, {_kind(kind)}, trained", quantity, value, people=self.people, epsilon=EPSILON,
                delta=_delta(kind), draw=i % self.draws)
            for quantity, values in (("score", found.scores or []), ("return", found.returns))
            for i, (kind, value) in enumerate(zip(kinds, values, strict=True))
        ]  # fmt: skip


def _kind(noise: Kind) -> str:
    return "Gaussian noise" if noise == "path" else "K-norm noise"


def _delta(noise: Kind) -> float:
    return DELTA if noise == "path" else 0.0
