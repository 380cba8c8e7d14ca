"""How long releases of other kernels take to answer, by the number of queries. Seconds are this machine's."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

import quietq as qq
from paper.claims.sampler import dense
from paper.extensions.row import QUERIES, TABLE, row
from paper.task import Row, Task
from quietq.noise.kernels import BandLimited
from quietq.noise.private_function import PrivateFunction
from quietq.worlds import NavigationWorld, RecommenderWorld, walk_reward

Kernel = Literal["exponential", "additive", "product", "features", "band-limited"]
REPEATS = 5
UNSTRUCTURED = "kernel without structure"


@dataclass(frozen=True)
class Queries(Task):
    """One release, asked more and more."""

    table: ClassVar[str] = TABLE
    kernel: Kernel
    numbers: tuple[int, ...]

    @property
    def title(self) -> str:
        """Which kernel."""
        return f"extensions: queries, {self.kernel} kernel"

    def rows(self) -> list[Row]:
        """Seconds, the best of some, for each number of queries; and the power of the number that they grow with."""
        release = self._release()
        d, setting = release.box.dimension, f"{self.kernel} kernel"
        seconds = []
        for number in self.numbers:
            unit = np.random.default_rng(0).random((number, d) if d > 1 else number)
            seconds.append(_seconds(release, release.box.from_unit(unit), REPEATS))
        return _timed(setting, self.numbers, seconds)

    def _release(self) -> PrivateFunction:
        budget, navigation, recommender = qq.Budget(1.0, 1e-5), NavigationWorld(), RecommenderWorld()
        if self.kernel == "additive":
            return qq.privatise(navigation.preference(), budget, relation=navigation.relation(100), simulate=0)
        if self.kernel == "features":
            return qq.privatise(
                recommender.preference(), budget, relation=recommender.relation(100), domain=recommender.box,
                noise="path", simulate=0,
            )  # fmt: skip
        relation = qq.people(100, low=0.0, high=0.5, slope=1.0)
        if self.kernel == "product":
            relation = qq.RkhsBall(0.02, qq.Product((4.0, 4.0)), people=100)
            mechanism = qq.GaussianProcessMechanism.for_relation(relation, budget, levels=8)
            return mechanism.simulate(lambda s: walk_reward(s[:, 0]) * walk_reward(s[:, 1]), 0)
        if self.kernel == "band-limited":
            relation = qq.RkhsBall(0.02, BandLimited(5.0), people=100)
        return qq.GaussianProcessMechanism.for_relation(relation, budget).simulate(walk_reward, 0)


@dataclass(frozen=True)
class PointByPoint(Task):
    """Noise of a kernel whose structure is not used: each value is drawn given all before it."""

    table: ClassVar[str] = TABLE
    numbers: tuple[int, ...]

    @property
    def title(self) -> str:
        """What it does."""
        return f"extensions: queries, {UNSTRUCTURED}"

    def rows(self) -> list[Row]:
        """As `Queries` has them."""
        places = [np.random.default_rng(0).random(number) for number in self.numbers]
        return _timed(UNSTRUCTURED, self.numbers, [_seconds(dense, one, 2) for one in places])


def _timed(setting: str, numbers: Sequence[int], seconds: Sequence[float]) -> list[Row]:
    """Seconds by the number of queries, and the power of it that they grow with."""
    power = np.polyfit(np.log(numbers), np.log(seconds), 1)[0]
    return [
        *(row(QUERIES, setting, "seconds", taken, at=number) for number, taken in zip(numbers, seconds, strict=True)),
        row(QUERIES, setting, "power of the number of queries", float(power)),
    ]


def _seconds(answer: Callable[[np.ndarray], object], states: np.ndarray, repeats: int) -> float:
    """The least of some repeats, of this thread alone, so that others on the machine do not count."""
    taken = []
    for _ in range(repeats):
        began = time.thread_time()
        answer(states)
        taken.append(time.thread_time() - began)
    return min(taken)
