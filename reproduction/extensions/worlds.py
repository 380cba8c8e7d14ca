"""Any bounded interval, by scaling; and several dimensions: the additive kernel and features in the navigation world.

The same person, declared per width of the box, takes the same noise.
"""

import math

import numpy as np

import quietq as qq
from quietq import worlds
from quietq.paper import FeatureKernel, FiniteRankMechanism
from quietq.privacy.relations import Exponential
from quietq.released.private_function import PrivateFunction
from quietq.worlds import WALK, NavigationWorld, mean_return, walk_reward
from quietq.worlds.navigation import along_x, along_y
from reproduction.experiment import Row
from reproduction.extensions.learners import PROMISE, budget
from reproduction.extensions.rows import DIMENSIONS, INTERVAL, row
from reproduction.hilbert import norm_of, piecewise_linear

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
EPSILON, DELTA = 1.0, 1e-5
ADDITIVE, FEATURES = "additive kernel", "feature kernel"
THERE = NavigationWorld()


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


def private_reward(kernel: str, people: int, seed: int) -> PrivateFunction:
    """The navigation world's, simulated: people declare a function for each coordinate, or weights of two features."""
    budget = qq.Budget(EPSILON, DELTA)
    if kernel == ADDITIVE:
        relation, box = THERE.relation(people), THERE.box
        return qq.privatise(THERE.mean_reward(), budget, relation=relation, noise="path", domain=box, simulate=seed)
    features = FeatureKernel(_profiles, rank=2, dimension=2)
    relation = qq.RkhsBall(2 * 2.0 / people, features.norm, people=people)
    return FiniteRankMechanism.for_relation(relation, budget, domain=THERE.box).simulate([1.0, 1.0], seed)


def _profiles(places: np.ndarray) -> np.ndarray:
    """What there is to like along each axis, which is public here; how much each person likes it is not."""
    return np.stack([along_x(places[:, 0], np), along_y(places[:, 1], np)], axis=-1)


def measure_plans(kernel: str, people: tuple[int, ...], draws: int) -> list[Row]:
    """Plans on private rewards: what the noise costs, whatever learns from it. 0 is random, 1 the best known."""
    found = []
    for number in people:
        promised = {"people": number, "epsilon": EPSILON, "delta": DELTA}
        for draw in range(draws):
            plan = worlds.plan_on_grid(THERE, private_reward(kernel, number, draw))
            reached = worlds.normalise(THERE, mean_return(THERE, plan))
            found.append(row(DIMENSIONS, f"{kernel}, navigation, planned", "score", reached, draw=draw, **promised))
    return found
