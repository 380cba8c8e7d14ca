"""Values that a method has released, as a source for another learner; and sources that are refused, and why."""

from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

import quietq as qq
from paper.extensions.learners import DELTA, EPSILON, KEPT, SHARES, STEPS, exploring, keeping
from paper.extensions.row import ACTOR_CRITIC, EXPLORATION, REPLAY, TABLE, refusal, row
from paper.task import Row, Task
from quietq.learning.networks import Hats, LinearQ, Network, Scaled
from quietq.learning.private_source import ReleasedValues
from quietq.learning.trainer import spaces_of
from quietq.noise.private_function import PrivateFunction
from quietq.worlds import WALK, walk_reward

CHANGE = "change of the policy by r + 1"


class AtMany(eqx.Module):
    """A network of values, at many states at once."""

    network: Network

    def __call__(self, states: Float[Array, "points d"]) -> Float[Array, "points actions"]:
        """The values of all actions."""
        return jax.vmap(self.network)(states)


def values_of(agent: qq.Agent) -> list[ReleasedValues]:
    """What an agent released, one source a run, each with the agent's certificate."""
    return [
        ReleasedValues(AtMany(jax.tree.map(lambda leaf, i=i: leaf[i], agent.released)), WALK.box, agent.certificate)
        for i in range(agent.members)
    ]


@dataclass(frozen=True)
class Promises(Task):
    """What covers an actor's policy, and which sources an actor does not learn from."""

    table: ClassVar[str] = TABLE
    people: int

    @property
    def title(self) -> str:
        """What it does."""
        return "extensions: what covers a policy"

    def rows(self) -> list[Row]:
        """The epsilon of the source and of the policy, drawn for protection and not simulated; and refusals."""
        relation, budget, spaces = WALK.relation(self.people), qq.Budget(EPSILON, DELTA), spaces_of(WALK)
        private = qq.privatise(walk_reward, budget, relation=relation, noise="path")
        noised = qq.InputNoise(relation=relation, budget=budget).certificate(spaces, STEPS)
        sources = {"private reward": private, "values released by input": self._values(noised)}
        found = []
        for name, source in sources.items():
            method = qq.ActorCritic(source)
            method.check(spaces, STEPS)
            covers = method.certificate(spaces, STEPS)
            for whose, promise in (("source", source.certificate), ("policy", covers)):
                found.append(
                    row(ACTOR_CRITIC, name, f"epsilon of the {whose}", promise.epsilon or float("inf"),
                        people=self.people, epsilon=EPSILON, delta=promise.delta)
                )  # fmt: skip
        for extension, setting, method in self._learners(private):
            method.check(spaces, STEPS)
            epsilon = method.certificate(spaces, STEPS).epsilon or float("inf")
            found.append(row(extension, setting, "epsilon of the policy", epsilon, people=self.people, epsilon=EPSILON))
        unnoised = self._values(qq.NoNoise().certificate(spaces, STEPS))
        attempts = {"raw rewards": None, "values without noise": unnoised}  # None leaves the world's own
        return found + [
            refusal(ACTOR_CRITIC, name, lambda it=it: qq.Agent(WALK, qq.ActorCritic(it), seed=0).learn(STEPS))
            for name, it in attempts.items()
        ]

    def _learners(self, private: PrivateFunction) -> list[tuple[str, str, qq.RewardNoise]]:
        """Deep Q-learning on the private reward, as the learners' tasks have it."""
        shares = [(share, qq.RewardNoise(private, explore_first=share, explore_last=share)) for share in SHARES]
        kept = [(number, qq.RewardNoise(private, replay=number)) for number in KEPT]
        return [
            *((EXPLORATION, exploring(share), method) for share, method in shares),
            *((REPLAY, keeping(number), method) for number, method in kept),
        ]

    def _values(self, certificate: qq.Certificate) -> ReleasedValues:
        """Values of some kind with this certificate: what is asked here is what it covers."""
        weights = jax.numpy.asarray([[0.0, 1.0], [1.0, 0.0]])
        network = LinearQ(weights, Scaled(WALK.box.low, WALK.box.high), Hats(2))
        return ReleasedValues(AtMany(network), WALK.box, certificate)


@dataclass(frozen=True)
class RawAdvantages(Task):
    """What true rewards in the policy's gradient give away, whatever noise is on the values."""

    table: ClassVar[str] = TABLE
    steps: int = 50

    @property
    def title(self) -> str:
        """What it does."""
        return "extensions: advantages of raw rewards"

    def rows(self) -> list[Row]:
        """One step of size 1 along one walk, under r and under r + 1: no noise stands between the two policies."""
        places = np.random.default_rng(0).random(self.steps + 1)
        rewards = walk_reward(places[1:])
        moved = np.abs(policy_step(places, rewards + 1) - policy_step(places, rewards)).max()
        return [row(ACTOR_CRITIC, "advantages of raw rewards", CHANGE, moved)]


def policy_step(places: np.ndarray, rewards: np.ndarray, decay: float = 0.95, hats: int = 8) -> np.ndarray:
    """The mean of grad ln pi(a|s) A(s, a), for two actions in turn, and a policy that has them alike.

    A(s, a) is as the Discussion has it. The values in it, which are released and so the same for all rewards, are 0.
    """
    advantages = np.zeros(len(rewards) + 1)
    for t in range(len(rewards))[::-1]:
        advantages[t] = rewards[t] + decay * advantages[t + 1]
    features = np.maximum(0, 1 - np.abs((hats - 1) * places[:-1, None] - np.arange(hats)))
    chosen = np.eye(2)[np.arange(len(rewards)) % 2] - 0.5
    return np.einsum("ta,th,t->ah", chosen, features, advantages[:-1]) / len(rewards)
