"""Any bounded interval, by scaling; and several dimensions: the additive kernel in the navigation world, features in
the recommender. The same person, declared per width of the box, takes the same noise.
"""

import math
from typing import Any, Literal

import numpy as np

import quietq as qq
from paper.experiment import Row
from paper.extensions.learners import PROMISE, SEED, budget
from paper.extensions.rows import DIMENSIONS, INTERVAL, row
from paper.hilbert import norm_of, piecewise_linear
from quietq import worlds
from quietq.mechanisms.private_function import PrivateFunction
from quietq.noise.kernels import Exponential
from quietq.worlds import WALK, World, find_world, mean_return, walk_reward
from quietq.worlds.planning import MOST_ON_A_GRID

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
EPSILON, DELTA = 1.0, 1e-5
NAMES = {"navigation": "additive kernel, navigation", "recommender": "feature kernel, recommender"}
NOISES = {"path": "Gaussian noise", "k-norm": "K-norm noise"}
ON_WEIGHTS = {"path": "weights", "k-norm": "ball"}
NoiseName = Literal["path", "k-norm"]
"""Gaussian noise in the relation's kernel, or pure noise on weights."""


def measure_scaled(low: float, high: float, people: int, draws: int) -> list[Row]:
    """The walk's reward, on [0, 1] and stretched to another interval and made private there."""
    relation, points, found = WALK.relation(people), np.arange(1025) / 1024, []
    beta, seen = relation.best_beta(), []
    for low_, high_ in ((0.0, 1.0), (low, high)):

        def stretched(s: np.ndarray, low: float = low_, size: float = high_ - low_) -> np.ndarray:
            return walk_reward((np.asarray(s) - low) / size)

        def back(s: np.ndarray, low: float = low_, size: float = high_ - low_) -> np.ndarray:
            return low + size * s

        name, promised = f"[{low_:g}, {high_:g}]", {"people": people, **PROMISE}
        mechanism = qq.GaussianProcessMechanism.for_relation(relation, budget(), domain=(low_, high_))
        paths = [mechanism.simulate(stretched, seed) for seed in range(draws)]
        seen.append([np.asarray(path(back(points))) for path in paths])
        norm = _norm(beta / (high_ - low_), low_, high_)
        found += [row(INTERVAL, name, "sigma", mechanism.sigma, **promised)]
        found += [row(INTERVAL, name, "norm of the reward", norm, **promised)]
        for i, path in enumerate(paths):
            reached = worlds.score(worlds.plan(lambda s, path=path, back=back: path(back(s))).actions)
            found += [row(INTERVAL, name, "score", reached, draw=i, **promised)]
        epsilon = mechanism.apply(stretched).certificate.epsilon
        found += [row(INTERVAL, name, "epsilon of the certificate", epsilon or math.inf, **promised)]
    apart = max(float(np.abs(a - b).max()) for a, b in zip(*seen, strict=True))
    exact = norm_of(Exponential(beta), piecewise_linear([0.0, 0.5, 1.0], [0.0, 0.5, 0.0]))
    return [
        *found,
        row(INTERVAL, f"[{low:g}, {high:g}]", "largest difference of the releases", apart),
        row(INTERVAL, "[0, 1]", "norm by the kernel's own formula", exact),
        row(INTERVAL, f"[{low:g}, {high:g}]", "width", high - low),
    ]


def _norm(beta: float, low: float, high: float) -> float:
    """The stretched reward's norm under exp(-beta |x - y|) on [low, high], from the integral, in its own units."""
    half = (high - low) / 4
    x = np.array([low, low + 2 * half])[:, None] + half * (1 + _NODES)
    value, slope = walk_reward((x - low) / (high - low)), 1 / (high - low)
    integral = float(np.sum(half * _WEIGHTS * (slope**2 / (2 * beta) + beta / 2 * value**2)))
    return math.sqrt(float(np.sum(walk_reward(np.array([0.0, 1.0])) ** 2)) / 2 + integral)


def measure_thermostat(people: int, draws: int, epsilon: float = EPSILON, delta: float = DELTA) -> list[Row]:
    """A world that lives on 14 to 30 degrees: scores of plans on its private reward; 0 is random, 1 the best known."""
    world = worlds.ThermostatWorld()
    mechanism = qq.GaussianProcessMechanism.for_relation(
        world.relation(people), qq.Budget(epsilon, delta), domain=world.box
    )
    name, found = f"{world.box}, thermostat", []
    for i in range(draws):
        reached = mean_return(world, worlds.plan_on_grid(world, mechanism.simulate(world.mean_reward(), i)))
        promised = {"people": people, "epsilon": epsilon, "delta": delta}
        found.append(row(INTERVAL, name, "score", worlds.normalise(world, reached), draw=i, **promised))
    return found


def private_rewards(world: World, people: int, noise: NoiseName, draws: int) -> list[PrivateFunction]:
    relation, promise = world.relation(people), qq.Budget(EPSILON, _delta(noise))
    kind = ON_WEIGHTS[noise] if world.name == "recommender" else noise
    return [
        qq.privatise(world.mean_reward(), promise, relation=relation, noise=kind, domain=world.box, simulate=seed)
        for seed in range(draws)
    ]


def measure_plans(world: str, noise: NoiseName, people: tuple[int, ...], draws: int) -> list[Row]:
    """Plans on private rewards: what the noise costs, whatever learns from it. 0 is random, 1 the best known."""
    there, setting, found = find_world(world), f"{NAMES[world]}, {NOISES[noise]}, planned", []
    choose: Any = worlds.plan_on_grid if there.box.dimension <= MOST_ON_A_GRID else worlds.look_ahead
    for number in people:
        promised = {"people": number, "epsilon": EPSILON, "delta": _delta(noise)}
        for i, private in enumerate(private_rewards(there, number, noise, draws)):
            reached = worlds.normalise(there, mean_return(there, choose(there, private)))
            found.append(row(DIMENSIONS, setting, "score", reached, draw=i, **promised))
    return found


def measure_training(world: str, noises: tuple[NoiseName, ...], people: int, draws: int, steps: int) -> list[Row]:
    """Deep Q-learning on private rewards, or, without noises, on the true one: the twin that nobody could publish."""
    there = find_world(world)
    rewards = [one for noise in noises for one in private_rewards(there, people, noise, draws)]
    agent = qq.Agent(there, qq.RewardNoise(rewards) if noises else qq.NoNoise(), seed=SEED)
    found = agent.learn(steps, seeds=1 if noises else draws).evaluate()
    rows = []
    for quantity, values in (("score", found.scores or []), ("return", found.returns)):
        for i, value in enumerate(values):
            noise = noises[i // draws] if noises else None
            setting = f"{NAMES[world]}, {'not private' if noise is None else NOISES[noise]}, trained"
            promised = {"people": people, "epsilon": EPSILON, "delta": _delta(noise)} if noise else {}
            rows.append(row(DIMENSIONS, setting, quantity, value, draw=i % draws, **promised))
    return rows


def _delta(noise: NoiseName) -> float:
    return DELTA if noise == "path" else 0.0
