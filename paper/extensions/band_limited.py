"""The band-limited kernel: what it takes, what can be promised in it, and what it costs against the exponential one.

The relation is another. Here each person's reward has no frequency above W and a norm of at most C: on the whole line
its squares integrate to C^2/2W. A slope is not declared, and the walk's own reward, with its kink, is not of this kind:
what is released is the reward without its frequencies above W.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import quietq as qq
from paper.extensions.learners import DELTA, EPSILON
from paper.extensions.product import errors
from paper.extensions.row import BAND_LIMITED, TABLE, row
from paper.task import Row, Task
from quietq.noise.entropy import SeededEntropy
from quietq.noise.feature_path import FeaturePath
from quietq.noise.kernels import BandLimited
from quietq.worlds import WALK, plan, score, walk_reward


def without_high_frequencies(half_width: float) -> Callable[[np.ndarray], np.ndarray]:
    """The walk's reward, 0 outside [0, 1], without frequencies above the half-width."""
    places = np.linspace(0, 1, 2049)
    rewards = walk_reward(places)

    def reward(states: np.ndarray) -> np.ndarray:
        away = np.asarray(states)[:, None] - places
        part = 2 * half_width * np.sinc(2 * half_width * away) * rewards
        return np.asarray(np.trapezoid(part, places, axis=1))

    return reward


def norm_bound(half_width: float) -> float:
    """A norm that the reward of `without_high_frequencies` has at most: its squares integrate to 1/12 at most."""
    return math.sqrt(2 * half_width / 12)


@dataclass(frozen=True)
class Terms(Task):
    """How many terms the kernel has, and whether they make it up."""

    table: ClassVar[str] = TABLE
    half_width: float
    draws: int

    @property
    def title(self) -> str:
        """Which."""
        return f"extensions: terms of the band-limited kernel, W = {self.half_width:g}"

    def rows(self) -> list[Row]:
        """Terms, errors of the kernel and of the draws' covariance, and norms of rewards."""
        kernel, setting = BandLimited(self.half_width), f"W = {self.half_width:g}"
        points = np.linspace(0, 1, 33)
        wanted = np.sinc(2 * self.half_width * np.subtract.outer(points, points))
        drawn = np.stack([FeaturePath(kernel, entropy=SeededEntropy(seed)).weights for seed in range(self.draws)])
        reward = without_high_frequencies(self.half_width)
        norms = {
            "norm of the reward without high frequencies": reward,
            "norm of the reward as it is, projected": walk_reward,
        }
        return [
            row(BAND_LIMITED, setting, "terms", kernel.rank),
            row(BAND_LIMITED, setting, "error of the terms", np.abs(kernel.covariance(points, points) - wanted).max()),
            *errors(setting, BAND_LIMITED, drawn @ kernel.features(points).T, wanted),
            *(
                row(BAND_LIMITED, setting, name, float(np.linalg.norm(kernel.project(f(kernel.sample_points)))))
                for name, f in norms.items()
            ),
        ]


@dataclass(frozen=True)
class BrokenLine(Task):
    """Which functions have a norm in the band-limited kernel: seen on more and more points, it settles or grows."""

    table: ClassVar[str] = TABLE
    half_width: float = 6.0

    @property
    def title(self) -> str:
        """What it does."""
        return "extensions: norms in the band-limited kernel"

    def rows(self) -> list[Row]:
        """Of a tent, as ReLU networks have it, and of a section of the kernel itself, whose norm is 1."""
        kernel, setting, found = BandLimited(self.half_width), f"W = {self.half_width:g}", []
        for points in (4, 8, 12, 16, 20):
            grid = np.linspace(0, 1, points)
            tent, section = np.maximum(0, 0.3 - np.abs(grid - 0.47)), kernel.covariance(np.array([0.5]), grid)[0]
            found.append(row(BAND_LIMITED, setting, LINE, kernel.norm_on(grid, tent), at=points))
            found.append(row(BAND_LIMITED, setting, SECTION, kernel.norm_on(grid, section), at=points))
        return found


@dataclass(frozen=True)
class Released(Task):
    """Plans on the reward as the band-limited kernel releases it, or the exponential one (half-width 0)."""

    table: ClassVar[str] = TABLE
    half_width: float
    people: tuple[int, ...]
    draws: int

    @property
    def title(self) -> str:
        """Which kernel."""
        return f"extensions: plans, {self._setting()}"

    def rows(self) -> list[Row]:
        """Sigma and scores by people; and one release, to be looked at."""
        found, setting = [], self._setting()
        for people in self.people:
            promised = {"people": people, "epsilon": EPSILON, "delta": DELTA}
            mechanism, reward = self._mechanism(people)
            releases = [mechanism.simulate(reward, seed) for seed in range(self.draws)]
            found.append(row(BAND_LIMITED, setting, "sigma", mechanism.sigma, **promised))
            found += [
                row(BAND_LIMITED, setting, "score", score(plan(one).actions), draw=i, **promised)
                for i, one in enumerate(releases)
            ]
            if people == self.people[-1]:
                places = np.arange(129) / 128
                found += [
                    row(BAND_LIMITED, setting, "release", value, at=place, **promised)
                    for place, value in zip(places, releases[0](places), strict=True)
                ]
        return found

    def _mechanism(self, people: int) -> tuple[qq.GaussianProcessMechanism, Callable[[np.ndarray], np.ndarray]]:
        budget = qq.Budget(EPSILON, DELTA)
        if not self.half_width:
            return qq.GaussianProcessMechanism.for_relation(WALK.relation(people), budget), walk_reward
        kernel = BandLimited(self.half_width)
        relation = qq.RkhsBall.of_people(people, kernel, norm=norm_bound(self.half_width))
        mechanism = qq.GaussianProcessMechanism.for_relation(relation, budget)
        return mechanism, without_high_frequencies(self.half_width)

    def _setting(self) -> str:
        return f"W = {self.half_width:g}" if self.half_width else EXPONENTIAL


EXPONENTIAL = "exponential kernel"
LINE, SECTION = "norm of a broken line on points", "norm of the kernel's section on points"
