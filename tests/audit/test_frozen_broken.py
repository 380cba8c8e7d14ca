"""The frozen-noise check catches copies of every certified method with too little noise."""

from typing import Any

import numpy as np
import pytest
from frozen_cases import BALL, BUDGET, PROMISE, SPACES, SUP, WEIGHTS

from quietq import Budget, SupBall, people, privatise
from quietq.audit.frozen import frozen_sensitivity
from quietq.audit.frozen_people import frozen_people
from quietq.audit.frozen_rewards import frozen_knots, frozen_path
from quietq.audit.frozen_trajectories import frozen_trajectories
from quietq.audit.frozen_vectors import frozen_observed, frozen_weights
from quietq.audit.movement import Unprotected
from quietq.feedback.trajectories import Cells
from quietq.learning import GradientNoise, InputNoise, NetworkValueNoise, OutputNoise, ValueNoise
from quietq.mechanisms.evaluation import Evaluation
from quietq.mechanisms.gaussian_process import GaussianProcessMechanism
from quietq.privacy.relations import Trajectories
from quietq.worlds import WALK
from quietq.worlds.observed import observe


def too_little(kind: type, what: str) -> Any:
    """A copy of a method with half the noise."""

    def draw(self: Any, *arguments: Any) -> Any:
        noise = kind.draw(self, *arguments)
        return noise._replace(**{what: getattr(noise, what) / 2})

    return type(f"Half{kind.__name__}", (kind,), {"draw": draw})(**PROMISE)


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (ValueNoise, "scale"),
        (NetworkValueNoise, "scale"),
        (GradientNoise, "scale"),
        (InputNoise, "scale"),
        (InputNoise, "normals"),
        (OutputNoise, "scale"),
    ],
)
def test_half_the_noise_is_caught(kind: type, what: str) -> None:
    move = frozen_sensitivity(too_little(kind, what), SPACES, rewards=8, climb=False)
    assert move.exceeds
    assert move.share == pytest.approx(2, rel=0.15)


class HalfPath(GaussianProcessMechanism):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.sigma /= 2


class OffGrid(GaussianProcessMechanism):
    """Noise at the grid point, but f at the raw state, up to half a cell away."""

    def _evaluate(self, f: Any) -> tuple[np.ndarray, ...]:
        raw = np.where(np.arange(2**self.levels + 1) % 2, 0.5, -0.5) / 2**self.levels
        return super()._evaluate(lambda states: f(np.clip(states + raw, 0, 1)))


def privatise_badly(source: Any, budget: Budget, **options: Any) -> Any:
    return privatise(source, Budget(2 * budget.epsilon, budget.delta), **options)


def observe_badly(world: Any, relation: SupBall, budget: Budget, **options: Any) -> Any:
    return observe(world, SupBall(relation.radius / 2), budget, **options)


BROKEN = {
    "path": (lambda: frozen_path(HalfPath.for_relation(BALL, BUDGET, levels=4)), 1.9),
    "path, off its grid": (lambda: frozen_path(OffGrid.for_relation(BALL, BUDGET, levels=6)), 1.1),
    "k-norm": (lambda: frozen_knots(BALL, BUDGET, "k-norm", pieces=2, release=privatise_badly), 1.99),
    "knots": (lambda: frozen_knots(BALL, BUDGET, "knots", pieces=2, release=privatise_badly), 1.8),
    "weights": (lambda: frozen_weights(WEIGHTS, BUDGET, "k-norm", release=privatise_badly), 1.99),
    "gaussian weights": (lambda: frozen_weights(WEIGHTS, BUDGET, "path", release=privatise_badly), 1.8),
    "observed": (lambda: frozen_observed(WALK, SUP, BUDGET, release=observe_badly), 1.99),
    "people, a slope too small": (
        lambda: frozen_people(
            BUDGET,
            slope=4.0,
            levels=6,
            mechanism=GaussianProcessMechanism.for_relation(people(50, 0, 0.5, 1), BUDGET, levels=6),
        ),
        1.5,
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_private_reward_is_caught(name: str) -> None:
    check, least = BROKEN[name]
    move = check()
    assert move.exceeds
    assert move.share >= least


def test_too_little_noise_on_weights_from_trajectories_is_caught() -> None:
    class Careless(Evaluation):
        def release(self, trajectories: Any, *, account: Any = None, simulate: int | None = None) -> Any:
            budget = Budget(2 * self.budget.epsilon, self.budget.delta)
            return Evaluation(
                budget=budget, relation=self.relation, gamma=self.gamma, cells=self.cells
            ).release(trajectories, simulate=simulate)  # fmt: skip

    relation = Trajectories(150, 1.0)
    careless = Careless(budget=Budget(10.0, 1e-6), relation=relation, gamma=0.5, cells=Cells.states(3))
    assert frozen_trajectories(careless, [(np.append(np.arange(3), np.zeros(40)), np.ones(43))] * 150).share > 1.5


def test_noise_of_another_law_is_caught() -> None:
    def gaussian(source: Any, budget: Budget, *, noise: str, **options: Any) -> Any:
        return privatise(source, budget, noise="path", **options)

    with pytest.raises(Unprotected, match="not of the law"):
        frozen_weights(WEIGHTS, BUDGET, "k-norm", release=gaussian)
