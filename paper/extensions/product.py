"""The paper's kernel for several dimensions, exp(-beta |x - y|_1): exact, but few functions have a norm in it."""

import math
import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import quietq as qq
from paper.extensions.row import DIMENSIONS, TABLE, refusal, row
from paper.task import Row, Task
from quietq.noise.entropy import SeededEntropy
from quietq.noise.kernels import Product, piecewise_linear
from quietq.noise.kernels.exponential import whiten

EPSILON, DELTA = 1.0, 1e-5
BETA = 4.0
"""The walk's, twice a slope of 1 over a range of 0.5."""
_LEVELS = {1: 16, 2: 10, 3: 7}
PRODUCT = "product kernel"


@dataclass(frozen=True)
class Dimension(Task):
    """What one more dimension costs: noise, terms of the path, and time."""

    table: ClassVar[str] = TABLE
    dimension: int
    people: int
    queries: int

    @property
    def title(self) -> str:
        """Which."""
        return f"extensions: product kernel, {self.dimension} dimension(s)"

    def rows(self) -> list[Row]:
        """Noise for people as on the walk, with mixed derivatives bounded too; seconds are this machine's."""
        kernel, d = Product((BETA,) * self.dimension), self.dimension
        tent = piecewise_linear([0.0, 0.5, 1.0], [0.0, 1.0, 0.0])
        relation = qq.RkhsBall(mixed_radius(self.people, d), kernel, people=self.people)
        mechanism = qq.GaussianProcessMechanism.for_relation(relation, qq.Budget(EPSILON, DELTA))
        setting = f"{PRODUCT}, {d} dimension{'s' if d > 1 else ''}"
        tree = qq.TreePath(kernel, levels=_LEVELS[1], key=bytes(range(16)))
        states = np.random.default_rng(0).random((self.queries, d) if d > 1 else self.queries)
        began = time.thread_time()
        tree(states)
        asked = time.thread_time()
        qq.GridPath(kernel, levels=_LEVELS[d], entropy=SeededEntropy(0))
        drawn = time.thread_time()
        promised = {"people": self.people, "epsilon": EPSILON, "delta": DELTA}
        return [
            row(DIMENSIONS, setting, "radius", relation.radius, people=self.people),
            row(DIMENSIONS, setting, "norm of one person's peak", 0.5 * kernel.norm([tent] * d) / self.people,
                people=self.people),
            row(DIMENSIONS, setting, "sigma", mechanism.sigma, **promised),
            row(DIMENSIONS, setting, "terms of the path", (_LEVELS[1] + 2) ** d),
            row(DIMENSIONS, setting, "seconds a query of the path", (asked - began) / self.queries),
            row(DIMENSIONS, setting, "values of the table", (2 ** _LEVELS[d] + 1) ** d),
            row(DIMENSIONS, setting, "seconds to draw the table", drawn - asked),
        ]  # fmt: skip


def mixed_radius(people: int, dimension: int) -> float:
    """The norm of what replacing one person can change, if all mixed derivatives are bounded.

    Let |d_S f| <= rho (l/rho)^|S| for every set S of coordinates. The norm's square is a sum of integrals of such
    squares, the same along each axis as in one dimension: at most rho^2 (1 + l/rho)^d at beta = l/rho.

    >>> round(mixed_radius(50, 1) / qq.people(50, low=0, high=0.5, slope=1).rkhs_radius(qq.Exponential(BETA)), 12)
    1.0
    """
    ball = qq.people(people, low=0.0, high=0.5, slope=1.0)
    return ball.radius * (1 + ball.best_beta()) ** (dimension / 2)


@dataclass(frozen=True)
class Covariance(Task):
    """Are two-dimensional draws what the kernel says they are?"""

    table: ClassVar[str] = TABLE
    draws: int
    levels: int = 3

    @property
    def title(self) -> str:
        """What it does."""
        return "extensions: covariance of draws of the product kernel"

    def rows(self) -> list[Row]:
        """The largest error of the draws' covariance, as such and in standard errors."""
        kernel = Product((BETA, BETA / 2))
        grids = (qq.GridPath(kernel, self.levels, entropy=SeededEntropy(seed)).values for seed in range(self.draws))
        drawn = np.stack([grid.ravel() for grid in grids])
        axis = np.arange(2**self.levels + 1) / 2**self.levels
        points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
        return errors(f"{PRODUCT}, 2 dimensions", DIMENSIONS, drawn, kernel.covariance(points, points))


def errors(setting: str, extension: str, drawn: np.ndarray, expected: np.ndarray) -> list[Row]:
    """How far the covariance of draws (one a row, of mean 0) is from what it should be."""
    apart = np.abs(drawn.T @ drawn / len(drawn) - expected)
    deviations = np.diag(expected)
    allowed = np.sqrt((np.outer(deviations, deviations) + expected**2) / len(drawn))
    return [
        row(extension, setting, "largest error of the covariance", apart.max()),
        row(extension, setting, "the same in standard errors", (apart / allowed).max()),
        row(extension, setting, "draws", len(drawn)),
    ]


@dataclass(frozen=True)
class Membership(Task):
    """Which functions have a norm in the product kernel: seen on finer and finer grids, a norm settles or grows."""

    table: ClassVar[str] = TABLE
    levels: tuple[int, ...]

    @property
    def title(self) -> str:
        """What it does."""
        return "extensions: norms in the product kernel"

    def rows(self) -> list[Row]:
        """Norms on grids of a peak with a mixed derivative and of one unit, tanh or ReLU; and what is refused."""
        found = []
        for level in self.levels:
            x = np.arange(2**level + 1) / 2**level
            tent = 1 - 2 * np.abs(x - 0.5)
            sums = x[:, None] + x[None] - 1
            functions = {
                "smooth peak": 0.5 * np.outer(tent, tent),
                "ReLU unit": np.maximum(sums, 0),
                "tanh unit": np.tanh(sums),
            }
            found += [
                row(DIMENSIONS, f"{PRODUCT}, {name}", "norm on a grid", norm_on_grid(BETA, x, values), at=2**level)
                for name, values in functions.items()
            ]  # fmt: skip
        kernel, ball = Product((BETA, BETA)), qq.people(100, low=0.0, high=0.5, slope=1.0)
        found.append(refusal(DIMENSIONS, f"{PRODUCT}, Lipschitz ball", lambda: ball.rkhs_radius(kernel)))
        found.append(refusal(DIMENSIONS, f"{PRODUCT}, Lipschitz bounds", lambda: kernel.lipschitz_radius(0.01, 0.04)))
        return found


def norm_on_grid(beta: float, axis: np.ndarray, values: np.ndarray) -> float:
    """The least norm, in the product kernel, of a function that takes these values on axis x axis."""
    once = whiten(beta, axis, values)
    return math.sqrt(float(np.sum(whiten(beta, axis, once.T) ** 2)))
