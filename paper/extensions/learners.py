"""Learners on private rewards of the walk: actor-critic, replay, exploration. All of it is post-processing."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import quietq as qq
from paper.extensions.row import ACTOR_CRITIC, TABLE, row
from paper.task import Row, Task
from quietq.learning.private_source import OnPrivateReward
from quietq.noise.private_function import PrivateFunction
from quietq.worlds import WALK, walk_reward

EPSILON, DELTA = 0.9, 1e-4
STEPS = 5_000
SEED = 7
"""Of training; the rewards' noise has a seed a draw."""
SHARES = (0.0, 0.05, 0.3, 1.0)
"""Of random actions, from the first step to the last."""
KEPT = (10_000, 128)
"""Transitions to learn from: all of them, or no more than a batch."""


def exploring(share: float) -> str:
    """A setting's name."""
    return f"{share:.0%} random actions"


def keeping(number: int) -> str:
    """A setting's name."""
    return f"on a private reward, the last {number:,} steps"


def private_rewards(people: int, draws: int) -> list[PrivateFunction]:
    """Simulated draws of the walk's reward, as a path."""
    relation, budget = WALK.relation(people), qq.Budget(EPSILON, DELTA)
    return [qq.privatise(walk_reward, budget, relation=relation, noise="path", simulate=i) for i in range(draws)]


@dataclass(frozen=True)
class Learning(Task):
    """One learner on the same private rewards as all others; it costs steps, and nothing in privacy."""

    table: ClassVar[str] = TABLE
    stated: tuple[tuple[str, str], ...]
    """Extensions and settings that the rows are stated under."""
    learner: Literal["deep-q", "actor-critic"]
    people: tuple[int, ...]
    draws: int
    steps: int = STEPS
    network: Literal["mlp", "splines"] = "mlp"
    replay: int = 10_000
    """Transitions that deep Q-learning keeps."""
    explore: float | None = None
    """A share of random actions that stays; by default it falls from 1 to 0.05."""
    batch: int = 500
    """Steps a round of actor-critic."""

    @property
    def title(self) -> str:
        """Which learner, and how."""
        return f"extensions: {self.stated[0][1]}"

    @property
    def program(self) -> str:
        """Each compiles its own."""
        return self.title

    def rows(self) -> list[Row]:
        """Scores by people and draw, and how many gradient steps they took."""
        rewards = [one for people in self.people for one in private_rewards(people, self.draws)]
        method = self._method(rewards)
        scores = qq.Agent(WALK, method, seed=SEED).learn(self.steps).evaluate().scores or []
        found = []
        for extension, setting in self.stated:
            found += [
                row(extension, setting, "score", score, people=self.people[i // self.draws], draw=i % self.draws,
                    epsilon=EPSILON, delta=DELTA)
                for i, score in enumerate(scores)
            ]  # fmt: skip
            found.append(row(extension, setting, "gradient steps", updates(method, self.steps)))
        return found

    def _method(self, rewards: list[PrivateFunction]) -> Any:
        if self.learner == "actor-critic":
            return qq.ActorCritic(rewards, network=self.network, batch=self.batch)
        shares: dict[str, Any] = (
            {} if self.explore is None else {"explore_first": self.explore, "explore_last": self.explore}
        )
        return qq.RewardNoise(rewards, network=self.network, replay=self.replay, **shares)


@dataclass(frozen=True)
class LearningFromValues(Task):
    """Actor-critic on values that `input`, a method that noises as it goes, has released."""

    table: ClassVar[str] = TABLE
    people: tuple[int, ...]
    draws: int
    steps: int = STEPS

    @property
    def title(self) -> str:
        """What it does."""
        return "extensions: actor-critic on released values"

    def rows(self) -> list[Row]:
        """Scores of the values' own greedy policy, and of the actor that learned from them."""
        from paper.extensions.released import values_of

        budget = qq.Budget(EPSILON, DELTA)
        before, sources = [], []
        for people in self.people:
            method = qq.InputNoise(relation=WALK.relation(people), budget=budget)
            agent = qq.Agent(WALK, method, seed=SEED).learn(self.steps, simulate=self.draws)
            before += agent.evaluate().scores or []
            sources += values_of(agent)
        after = qq.Agent(WALK, qq.ActorCritic(sources), seed=SEED).learn(self.steps).evaluate().scores or []
        return [
            row(ACTOR_CRITIC, setting, "score", score, people=self.people[i // self.draws], draw=i % self.draws,
                epsilon=EPSILON, delta=DELTA)
            for setting, scores in (("values released by input", before), ("actor-critic on these values", after))
            for i, score in enumerate(scores)
        ]  # fmt: skip


def updates(method: OnPrivateReward, steps: int) -> int:
    """How many gradient steps so many steps of the world make."""
    if isinstance(method, qq.ActorCritic):
        return steps // method.batch * method.epochs
    assert isinstance(method, qq.RewardNoise)
    first = max(method.start, method.train_every)
    return max((steps - first) // method.train_every + 1, 0)
