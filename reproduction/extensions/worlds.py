"""Any bounded interval, by scaling; and several dimensions: the additive kernel in the navigation world.

The same person, declared per width of the box, takes the same noise.
"""

import math

import numpy as np

import quietq as qq
from quietq import worlds
from quietq.privacy.relations import Exponential
from quietq.worlds import WALK, NavigationWorld, mean_return, walk_reward
from reproduction.experiment import Row
from reproduction.extensions.learners import PROMISE, budget
from reproduction.extensions.rows import DIMENSIONS, INTERVAL, row
from reproduction.hilbert import norm_of, piecewise_linear

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
EPSILON, DELTA = 1.0, 1e-5


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
            reached = worlds.score(worlds.plan(lambda s, path=path, back=back: path(back(s))))
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


def measure_plans(people: tuple[int, ...], draws: int) -> list[Row]:
    """Plans on private rewards of the navigation world, in the additive kernel: 0 is random, 1 the best known."""
    world, found = NavigationWorld(), []
    for number in people:
        mechanism = qq.GaussianProcessMechanism.for_relation(
            world.relation(number), qq.Budget(EPSILON, DELTA), domain=world.box
        )
        promised = {"people": number, "epsilon": EPSILON, "delta": DELTA}
        for draw in range(draws):
            plan = worlds.plan_on_grid(world, mechanism.simulate(world.mean_reward(), draw))
            reached = worlds.normalise(world, mean_return(world, plan))
            found.append(row(DIMENSIONS, "additive kernel, navigation", "score", reached, draw=draw, **promised))
    return found
