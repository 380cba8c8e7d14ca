"""The frozen-noise check catches copies of every certified method with too little noise."""

import copy
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest
from broken_copies import altered, halve_draws, swap_draws
from frozen_cases import BALL, BUDGET, PROMISE, SPACES, SUP, WEIGHTS
from test_best_test import TwoLooks

from quietq import Budget, people
from quietq.audit.finding import Unprotected
from quietq.audit.frozen_release import frozen_release
from quietq.audit.worst_rows import worst_rows
from quietq.feedback import Ratings
from quietq.feedback.cells import Cells
from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms import knots
from quietq.mechanisms.candidates import choose
from quietq.mechanisms.path import Path
from quietq.mechanisms.release import Mechanism, simulate
from quietq.noise.box import UNIT
from quietq.paper import FiniteRankMechanism, GradientNoise, InputNoise, NetworkValueNoise, OutputNoise, ValueNoise
from quietq.paper.attacks.frozen_step import frozen_sensitivity
from quietq.paper.attacks.trajectories_attack import frozen_trajectories
from quietq.paper.baselines.balle import Evaluation
from quietq.paper.observed import observed_mechanism
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import Exponential, Trajectories
from quietq.worlds import WALK


@pytest.fixture(autouse=True)
def _small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knots, "_AT_ONCE", 64)  # exact in any portions, and faster in small ones


def too_little(kind: type, what: str, **options: Any) -> Any:
    """A copy of a method with half the noise."""

    def draw(self: Any, *arguments: Any) -> Any:
        noise = kind.draw(self, *arguments)
        return noise._replace(**{what: getattr(noise, what) / 2})

    return type(f"Half{kind.__name__}", (kind,), {"draw": draw})(**PROMISE, **options)


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


SOUND = {
    "path": lambda: coarse_path(Path),
    "k-norm": lambda: choose("k-norm", OwnFunction(None, BALL), BUDGET, pieces=2),
    "knots": lambda: choose("knots", OwnFunction(None, BALL), BUDGET, pieces=2),
    "weights": lambda: FiniteRankMechanism.for_relation(WEIGHTS, BUDGET).mechanism,
    "observed": lambda: observed_mechanism(WALK, SUP, BUDGET, rewards=60),
}


def coarse_path(kind: type[Path], levels: int = 5) -> Path:
    kernel = Exponential(BALL.best_beta())
    declared = OwnFunction(None, BALL, box=UNIT)
    return kind(declared, BUDGET, kernel, radius=BALL.rkhs_radius(kernel), levels=levels)


@pytest.mark.parametrize("name", SOUND)
def test_a_sensitivity_that_is_too_small_is_caught(name: str) -> None:
    """Noise and sensitivity fit each other and the budget, but neighbours are twice as far apart."""
    move = frozen_release(altered(SOUND[name](), numbers=lambda numbers, feedback: 2 * numbers(feedback)))
    assert move.exceeds
    assert move.share >= (1.9 if name == "path" else 1.99)


@pytest.mark.parametrize("name", SOUND)
def test_draws_that_are_too_small_are_caught(name: str) -> None:
    """The law says one size and draws half of it: estimated to within some 3 %."""
    assert frozen_release(altered(SOUND[name](), law=halve_draws)).share == pytest.approx(2, rel=0.15)


@pytest.mark.parametrize("name", SOUND)
def test_a_release_that_noises_by_half_is_caught(name: str) -> None:
    def release(mechanism: Mechanism, feedback: Any, seed: int) -> Any:
        return simulate(altered(mechanism, law=halve_draws), feedback, seed)

    move = frozen_release(SOUND[name](), release=release)
    assert move.exceeds
    assert move.share == pytest.approx(2, rel=0.05)


@pytest.mark.parametrize("name", SOUND)
def test_a_certificate_that_states_half_of_what_is_spent_is_caught(name: str) -> None:
    """Charged is what was noised for, but the budget that is stated is another."""
    mechanism = SOUND[name]()
    spent = mechanism.cost
    stated = copy.copy(mechanism)
    stated.__class__ = type("Overstating", (type(mechanism),), {"cost": spent})
    stated.budget = Budget(BUDGET.epsilon / 2, BUDGET.delta)
    move = frozen_release(stated)
    assert move.exceeds
    assert move.share >= (1.99 if spent.mu is None else 1.8)


class OffGrid(Path):
    """Noise at the grid point, but f at the raw state, up to half a cell away."""

    def values(self, feedback: Any) -> np.ndarray:
        raw = np.where(np.arange(2**self.levels + 1) % 2, 0.5, -0.5) / 2**self.levels
        (f,) = feedback.functions()
        return super().values(OwnFunction(lambda states: f(np.clip(states + raw, 0, 1)), self.relation))


def test_a_path_off_its_grid_is_caught() -> None:
    move = frozen_release(coarse_path(OffGrid, levels=6))
    assert move.exceeds
    assert move.share >= 1.1


def test_people_who_are_steeper_than_the_noise_is_for_are_caught() -> None:
    """By `release` itself, which does not put noise for one relation on people of another."""
    assert people(50, 0, 0.5, 1) == BALL
    steeper = partial(Ratings.read, box=(0, 1), low=0, high=0.5, slope=4, people=50)
    rows = pl.DataFrame({"person": range(48), "state": [0.5] * 48, "rating": [0.2] * 48})
    with pytest.raises(InvalidInput, match="make it for that"):
        worst_rows(steeper, rows, BUDGET, mechanism=coarse_path(Path, levels=6))


def test_noise_of_another_law_is_caught() -> None:
    gaussian, pure = SOUND["weights"](), SOUND["k-norm"]()

    def release(mechanism: Mechanism, feedback: Any, seed: int) -> Any:
        other = next(gaussian.run()).law
        return simulate(altered(mechanism, law=lambda law: swap_draws(law, other)), feedback, seed)

    with pytest.raises(Unprotected, match="not what its law draws"):
        frozen_release(pure, release=release)
    other = next(gaussian.run()).law
    with pytest.raises(Unprotected, match="not have the stated density"):  # a law whose draws are another's
        frozen_release(altered(pure, law=lambda law: swap_draws(law, other)))


def test_a_release_of_other_numbers_than_it_says_is_caught() -> None:
    def release(mechanism: Mechanism, feedback: Any, seed: int) -> Any:
        doubled = altered(mechanism, numbers=lambda numbers, feedback: 2 * numbers(feedback))
        return simulate(doubled, feedback, seed)

    with pytest.raises(Unprotected, match="other numbers"):
        frozen_release(SOUND["knots"](), release=release)


@pytest.mark.parametrize("broken", [False, True], ids=["sound", "broken"])
def test_the_second_query_is_looked_at_too(broken: bool) -> None:
    class Second(TwoLooks):
        def run(self) -> Any:
            steps = super().run()
            first = yield next(steps)
            query = steps.send(first)
            twice = query._replace(numbers=lambda feedback: (2 if broken else 1) * query.numbers(feedback))
            second = yield twice
            return np.append(first, second)

    move = frozen_release(Second(BUDGET))
    assert move.exceeds == broken
    assert move.share == pytest.approx(2 if broken else 1, rel=1e-3)


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
