"""Learners on private rewards of the walk: actor-critic, replay, exploration. All of it is post-processing.

On a private reward replay is free, because rewards were released before. `gradient` looks at true rewards in each of
its rounds, and every look pays again: N rounds under one budget need noise of sqrt(N)/mu in units of a round's own
sensitivity.
"""

import math
from typing import Any, Literal

import jax
import numpy as np

import quietq as qq
from quietq import paper
from quietq.paper.agents.networks import LinearQ
from quietq.paper.agents.reward_learner import ReleasedValues, RewardLearner
from quietq.paper.agents.trainer import spaces_of
from quietq.privacy.budget import epsilon_from_mu
from quietq.released.private_function import PrivateFunction
from quietq.worlds import WALK, walk_reward
from reproduction.experiment import Row
from reproduction.extensions.rows import ACTOR_CRITIC, EXPLORATION, REPLAY, refusal, row

EPSILON, DELTA = 0.9, 1e-4
PROMISE: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA}
STEPS = 5_000
SEED = 7
"""Of training; the rewards' noise has a seed a draw."""
SHARES = (0.0, 0.05, 0.3, 1.0)
"""Of random actions, from the first step to the last."""
KEPT = (10_000, 128)
"""Transitions to learn from: all of them, or no more than a batch."""
CHANGE = "change of the policy by r + 1"


def budget() -> qq.Budget:
    return qq.Budget(EPSILON, DELTA)


def exploring(share: float) -> str:
    return f"{share:.0%} random actions"


def keeping(number: int) -> str:
    return f"on a private reward, the last {number:,} steps"


def private_rewards(people: int, draws: int) -> list[PrivateFunction]:
    relation = WALK.relation(people)
    return [qq.privatise(walk_reward, budget(), relation=relation, noise="path", simulate=i) for i in range(draws)]


def score_rows(extension: str, setting: str, found: list[float] | None, people: tuple[int, ...]) -> list[Row]:
    draws = len(found or ()) // len(people)
    return [
        row(extension, setting, "score", score, people=people[i // draws], draw=i % draws, **PROMISE)
        for i, score in enumerate(found or ())
    ]


def measure_learning(
    stated: tuple[tuple[str, str], ...],
    learner: Literal["deep-q", "actor-critic"],
    people: tuple[int, ...],
    draws: int,
    steps: int = STEPS,
    network: Literal["mlp", "splines"] = "mlp",
    replay: int = 10_000,
    explore: float | None = None,
    batch: int = 500,
) -> list[Row]:
    """One learner on the same private rewards as all others, stated under some extensions and settings.

    Deep Q-learning keeps `replay` transitions; its share of random actions falls from 1 to 0.05, or stays at `explore`.
    `batch` is steps a round of actor-critic. It costs steps, and nothing in privacy.
    """
    rewards = [one for number in people for one in private_rewards(number, draws)]
    if learner == "actor-critic":
        method = paper.ActorCritic(rewards, network=network, batch=batch)
    else:
        shares: dict[str, Any] = {} if explore is None else {"explore_first": explore, "explore_last": explore}
        method = paper.RewardNoise(rewards, network=network, replay=replay, **shares)
    found = paper.Agent(WALK, method, seed=SEED).learn(steps).evaluate().scores
    return [one for extension, setting in stated for one in score_rows(extension, setting, found, people)]


def measure_values(people: tuple[int, ...], draws: int, steps: int = STEPS) -> list[Row]:
    """Actor-critic on values that `input`, a method that noises as it goes, has released: its scores, and theirs."""
    before, sources = [], []
    for number in people:
        method = paper.InputNoise(relation=WALK.relation(number), budget=budget())
        agent = paper.Agent(WALK, method, seed=SEED).learn(steps, simulate=draws)
        before += agent.evaluate().scores or []
        sources += [agent.released_values(member) for member in range(agent.members)]
    after = paper.Agent(WALK, paper.ActorCritic(sources), seed=SEED).learn(steps).evaluate().scores
    found = {"values released by input": before, "actor-critic on these values": after}
    return [one for setting, scores in found.items() for one in score_rows(ACTOR_CRITIC, setting, scores, people)]


def measure_promises(people: int) -> list[Row]:
    """What covers a policy, drawn for protection and not simulated; and which sources an actor does not learn from."""
    relation, spaces, found = WALK.relation(people), spaces_of(WALK), []

    def certificate(method: RewardLearner) -> qq.Certificate:
        method.check(spaces, STEPS)
        return method.certificate(spaces, STEPS)

    private = qq.privatise(walk_reward, budget(), relation=relation, noise="path")
    noised = paper.InputNoise(relation=relation, budget=budget()).certificate(spaces, STEPS)
    sources = {"private reward": private, "values released by input": _any_values(noised)}
    for name, source in sources.items():
        covers = certificate(paper.ActorCritic(source))
        for whose, promise in (("source", source.certificate), ("policy", covers)):
            words, epsilon = f"epsilon of the {whose}", promise.epsilon or math.inf
            found.append(row(ACTOR_CRITIC, name, words, epsilon, people=people, epsilon=EPSILON, delta=promise.delta))
    methods = [(EXPLORATION, exploring(s), paper.RewardNoise(private, explore_first=s, explore_last=s)) for s in SHARES]
    methods += [(REPLAY, keeping(number), paper.RewardNoise(private, replay=number)) for number in KEPT]
    for extension, setting, method in methods:
        epsilon = certificate(method).epsilon or math.inf
        found.append(row(extension, setting, "epsilon of the policy", epsilon, people=people, epsilon=EPSILON))
    unnoised = _any_values(paper.NoNoise().certificate(spaces, STEPS))
    attempts = {"raw rewards": None, "values without noise": unnoised}  # None leaves the world's own
    return found + [
        refusal(ACTOR_CRITIC, name, lambda it=it: paper.Agent(WALK, paper.ActorCritic(it), seed=0).learn(STEPS))
        for name, it in attempts.items()
    ]


def _any_values(certificate: qq.Certificate) -> ReleasedValues:
    """Values of some kind with this certificate: what is asked here is what it covers."""
    weights = jax.numpy.asarray([[0.0, 1.0], [1.0, 0.0]])
    network = LinearQ(weights, WALK.box, 2)
    return ReleasedValues(paper.NoNoise(), network, WALK.box, certificate)


def measure_raw_advantages(steps: int = 50) -> list[Row]:
    """What true rewards in the policy's gradient give away, whatever noise is on the values.

    One step of size 1 along one walk, under r and under r + 1: no noise stands between the two policies.
    """
    places = np.random.default_rng(0).random(steps + 1)
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


def measure_gradient(
    people: int, draws: int, train_every: int, batch: int = 500, new_only: bool = False, steps: int = STEPS
) -> list[Row]:
    """`gradient` with a step every so often, on batches from all that was seen or what is new.

    With no draws none is trained: then only what it costs is computed.
    """
    kept: dict[str, Any] = {"replay": train_every, "start": train_every} if new_only else {}
    method = paper.GradientNoise(
        relation=WALK.relation(people), budget=budget(), train_every=train_every, batch=batch, **kept
    )
    rounds, noise = method.rounds(steps), method.certificate(spaces_of(WALK), steps).sigma
    setting = "gradient, no replay" if new_only else f"gradient, a step every {train_every}"
    numbers = {"gradient steps": rounds, "uses of a reward": rounds * batch / steps}
    found = [row(REPLAY, setting, quantity, value, people=people) for quantity, value in numbers.items()]
    found.append(row(REPLAY, setting, "noise multiplier", noise or math.nan, people=people, **PROMISE))
    if draws:
        agent = paper.Agent(WALK, method, seed=SEED).learn(steps, simulate=draws)
        found += score_rows(REPLAY, setting, agent.evaluate().scores, (people,))
    return found


def measure_published(steps: int = STEPS) -> list[Row]:
    """How often the authors' program looks at a reward, against the rounds that their theorem counts."""
    code, counted = paper.Published.code(), steps // paper.PublishedTheorem(budget(), steps=steps).batch
    made = (steps - code.start) // code.train_every + 1
    epsilon, setting = epsilon_from_mu(budget().mu * math.sqrt(made / counted), DELTA), "published program"
    return [
        row(REPLAY, setting, "rounds counted by the theorem", counted),
        row(REPLAY, setting, "gradient steps", made),
        row(REPLAY, setting, "uses of a reward", made * code.batch / steps),
        row(REPLAY, setting, "epsilon if all were counted", epsilon, **PROMISE),
    ]
