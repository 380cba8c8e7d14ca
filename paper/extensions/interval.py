"""Any bounded interval, by scaling: the same person, declared per width of the box, takes the same noise."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import quietq as qq
from paper.extensions.learners import DELTA, EPSILON
from paper.extensions.row import INTERVAL, TABLE, row
from paper.task import Row, Task
from quietq.noise.kernels import Exponential, piecewise_linear
from quietq.worlds import WALK, ThermostatWorld, mean_return, normalise, plan, plan_on_grid, score, walk_reward

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


@dataclass(frozen=True)
class Scaled(Task):
    """The walk's reward, stretched to another interval and made private there."""

    table: ClassVar[str] = TABLE
    low: float
    high: float
    people: int
    draws: int

    @property
    def title(self) -> str:
        """Which interval."""
        return f"extensions: the walk's reward on [{self.low:g}, {self.high:g}]"

    def rows(self) -> list[Row]:
        """Sigma, norm, certificate, values at corresponding points, and the score, here and on [0, 1]."""
        relation, budget, width = WALK.relation(self.people), qq.Budget(EPSILON, DELTA), self.high - self.low
        points = np.arange(1025) / 1024
        seen: dict[str, list[np.ndarray]] = {}
        found = []
        for low, high in ((0.0, 1.0), (self.low, self.high)):
            name, size = f"[{low:g}, {high:g}]", high - low
            promised = {"people": self.people, "epsilon": EPSILON, "delta": DELTA}

            def stretched(s: np.ndarray, low: float = low, size: float = size) -> np.ndarray:
                return walk_reward((np.asarray(s) - low) / size)

            mechanism = qq.GaussianProcessMechanism.for_relation(relation, budget, domain=(low, high))
            paths = [mechanism.simulate(stretched, seed) for seed in range(self.draws)]
            seen[name] = [np.asarray(path(low + size * points)) for path in paths]
            scores = [
                score(plan(lambda s, path=path, low=low, size=size: path(low + size * s)).actions) for path in paths
            ]
            norm = _norm(relation.best_beta() / size, low, high)
            found += [row(INTERVAL, name, "sigma", mechanism.sigma, **promised)]
            found += [row(INTERVAL, name, "norm of the reward", norm, **promised)]
            found += [row(INTERVAL, name, "score", one, draw=i, **promised) for i, one in enumerate(scores)]
            certificate = mechanism.apply(stretched).certificate
            found += [row(INTERVAL, name, "epsilon of the certificate", certificate.epsilon or math.inf, **promised)]
        unit, other = seen.values()
        apart = max(float(np.abs(a - b).max()) for a, b in zip(unit, other, strict=True))
        tent = piecewise_linear([0.0, 0.5, 1.0], [0.0, 0.5, 0.0])
        exact = Exponential(relation.best_beta()).norm(tent)
        return [
            *found,
            row(INTERVAL, f"[{self.low:g}, {self.high:g}]", "largest difference of the releases", apart),
            row(INTERVAL, "[0, 1]", "norm by the kernel's own formula", exact),
            row(INTERVAL, f"[{self.low:g}, {self.high:g}]", "width", width),
        ]


@dataclass(frozen=True)
class Thermostat(Task):
    """A world that lives on 14 to 30 degrees; a plan on its private reward."""

    table: ClassVar[str] = TABLE
    people: int
    draws: int
    epsilon: float = 1.0
    delta: float = 1e-5

    @property
    def title(self) -> str:
        """What it does."""
        return "extensions: the thermostat, 14 to 30 degrees"

    def rows(self) -> list[Row]:
        """Scores of plans; 0 is random, 1 the best known."""
        world = ThermostatWorld()
        mechanism = qq.GaussianProcessMechanism.for_relation(
            world.relation(self.people), qq.Budget(self.epsilon, self.delta), domain=(world.low, world.high)
        )
        promised = {"people": self.people, "epsilon": self.epsilon, "delta": self.delta}
        plans = [plan_on_grid(world, mechanism.simulate(world.preference(), i)) for i in range(self.draws)]
        name = f"[{world.low:g}, {world.high:g}], thermostat"
        return [
            row(INTERVAL, name, "score", normalise(world, mean_return(world, one)), draw=i, **promised)
            for i, one in enumerate(plans)
        ]


def _norm(beta: float, low: float, high: float) -> float:
    """The stretched reward's norm under exp(-beta |x - y|) on [low, high], from the integral, in its own units."""
    half = (high - low) / 4
    edges = np.array([low, low + 2 * half])[:, None]
    x = edges + half * (1 + _NODES)
    value = walk_reward((x - low) / (high - low))
    slope = 1 / (high - low)
    integral = float(np.sum(half * _WEIGHTS * (slope**2 / (2 * beta) + beta / 2 * value**2)))
    ends = walk_reward(np.array([0.0, 1.0]))
    return math.sqrt(float(np.sum(ends**2)) / 2 + integral)
