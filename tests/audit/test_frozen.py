"""The frozen-noise check: no certified method is moved farther than stated, and something moves it nearly as far."""

import dataclasses
import functools
import itertools
import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from frozen_cases import BALL, BUDGET, PROMISE, SPACES, WEIGHTS

from quietq import people
from quietq.audit.everything import CLONE, models_of_all_kinds, plan_releases
from quietq.audit.finding import Movement
from quietq.audit.frozen_release import frozen_release
from quietq.audit.neighbours import Look, moves
from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms.candidates import choose
from quietq.mechanisms.path import GaussianProcessMechanism
from quietq.noise.box import Box
from quietq.paper import (
    BandLimited,
    FiniteRankMechanism,
    GradientNoise,
    InputNoise,
    NetworkValueNoise,
    OutputNoise,
    ValueNoise,
)
from quietq.paper.agents import InLoopMethod, NoNoise
from quietq.paper.agents.method import EnvironmentSpaces
from quietq.paper.attacks.attack_plan import plan_training_checks
from quietq.paper.attacks.frozen_step import FrozenStep, Search, frozen_sensitivity
from quietq.privacy.errors import InvalidInput
from quietq.privacy.norms import ObservedRewards
from quietq.privacy.relations import Exponential, RkhsBall, Trajectories

# The part of the stated sensitivity that the search finds at the least.
LEAST = {
    "reward, path": 0.9999,
    "reward, k-norm": 0.9999,
    "reward, knots": 0.9999,
    "reward, observed": 0.999,
    "reward, one of many people": 0.98,
    "value": 0.997,
    "value-network": 0.99,
    "gradient": 0.98,
    "input": 0.998,
    "output": 0.99,
    "value-network, mlp": 0.99,
    "gradient, one state": 0.997,
    "gradient, clipped": 0.93,
    "evaluation, lsw": 0.9999,
    "evaluation, lsl": 0.9999,
}

# Models of everybody's rows: checked in `test_worst_rows.py` too, with fewer rounds.
MODELS = dict.fromkeys(models_of_all_kinds(), 0.9) | {CLONE: 0.9}
LEAST |= MODELS

# Other forms of methods that are checked anyway.
SLOW = {
    "value-network",
    "value-network, mlp",
    "gradient, one state",
    "gradient, clipped",
}
SLOW |= set(MODELS)


@functools.cache
def every_check(seed: int = 0) -> dict[str, Any]:
    """Of releases, and of trainings."""
    releases = {one.title: one.check for one in plan_releases(seed=seed) if one.check is not None}
    return releases | plan_training_checks(seed=seed)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in LEAST])
def test_nothing_moves_a_release_farther_than_stated_and_something_nearly_as_far(name: str) -> None:
    move = every_check()[name]()
    assert move.name == name
    assert not move.exceeds
    assert LEAST[name] <= move.share <= 1 + 1e-5


def test_every_check_has_its_threshold() -> None:
    assert set(every_check()) == set(LEAST)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nor_with_other_seeds(seed: int) -> None:
    table = [check() for check in every_check(seed).values()]
    assert not any(move.exceeds for move in table)
    assert min(move.share for move in table) > 0.85


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [
        ValueNoise(**PROMISE),
        NetworkValueNoise(**PROMISE),
        NetworkValueNoise(**PROMISE, network="mlp", gamma=0.9),
        GradientNoise(**PROMISE, loss="squared"),
        GradientNoise(**PROMISE, clip=0.1),
        InputNoise(**PROMISE),
        OutputNoise(**PROMISE, gamma=0.9),
    ],
)
def test_nor_in_two_dimensions_with_three_actions(method: InLoopMethod) -> None:
    move = frozen_sensitivity(method, EnvironmentSpaces(Box((-1.0, 0.0), (1.0, 5.0)), 3, 50), rewards=64)
    assert not move.exceeds
    assert move.share > 0.4


@pytest.mark.parametrize("seed", range(2))
def test_the_search_finds_the_farthest_corner_of_a_cube(seed: int) -> None:
    matrix = np.random.default_rng(seed).normal(size=(5, 10))
    corners = np.array(list(itertools.product([-1, 1], repeat=10)))
    exact = 0.7 * np.linalg.norm(corners @ matrix.T, axis=1).max()
    rows = jnp.asarray(matrix, jnp.float32)
    best = Search("a matrix", lambda r: (rows @ r, jnp.ones(())), np.zeros(10), 0.7, seed=seed).run()
    assert best.found == pytest.approx(exact, rel=1e-5)
    assert 0.7 * np.linalg.norm(matrix @ best.direction) == pytest.approx(exact, rel=1e-5)
    assert best.by in ("gradient", "greedy", "random signs")


def test_a_movement_says_what_it_found() -> None:
    move = Movement("a step", stated=2.0, found=1.5, by="greedy")
    assert move.to_dict() == {
        "name": "a step", "norm": "Euclidean", "stated": 2.0, "found": 1.5, "share": 0.75, "by": "greedy",
        "exceeds": False,
    }  # fmt: skip
    assert not dataclasses.replace(move, found=2.0 * (1 + 1e-6)).exceeds
    assert dataclasses.replace(move, found=2.0001).exceeds
    assert dataclasses.replace(move, found=math.nan).exceeds


@dataclasses.dataclass(frozen=True, kw_only=True)
class Nothing(NoNoise, InLoopMethod):
    """A method that nobody knows how to audit."""

    def noise_shape(self, spaces: EnvironmentSpaces, steps: int) -> tuple[int, ...]:
        return ()

    def sensitivity(self, spaces: EnvironmentSpaces, steps: int) -> float:
        return 0.0

    def norm(self, spaces: EnvironmentSpaces, steps: int, noise: Any) -> ObservedRewards:
        return ObservedRewards(steps, 0)

    def conditions(self, steps: int) -> tuple[Any, ...]:
        return ()


def test_what_cannot_be_audited_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no private step"):
        FrozenStep(Nothing(**PROMISE), SPACES)
    several = people(50, 0, 0.5, 1, actions=2)
    with pytest.raises(InvalidInput, match="one reward function"):
        frozen_release(GaussianProcessMechanism.for_relation(several, BUDGET, levels=4).mechanism)
    with pytest.raises(InvalidInput, match="no search among the neighbours of a Trajectories"):
        moves(Trajectories(3, 1.0), Look(choose("path", OwnFunction(None, BALL), BUDGET)), np.random.default_rng(0))


KERNELS = [
    RkhsBall(0.02, Exponential(3.0).norm), RkhsBall(0.02, Exponential(3.0).norm, actions=3),
    RkhsBall(0.02, Exponential((2.0, 4.0)).norm),
    RkhsBall(0.02, Exponential((2.0, 4.0), summed=True).norm),
]  # fmt: skip


@pytest.mark.parametrize("ball", KERNELS, ids=str)
def test_nor_do_sections_of_a_kernel_which_reach_the_radius(ball: RkhsBall) -> None:
    move = frozen_release(GaussianProcessMechanism.for_relation(ball, BUDGET, levels=4).mechanism)
    assert not move.exceeds
    assert move.share > 0.9999


@pytest.mark.parametrize(
    "ball",
    [WEIGHTS, RkhsBall(0.02, WEIGHTS.kernel, actions=3), RkhsBall(0.02, BandLimited(3.0).norm)],
    ids=["features", "actions", "band-limited"],
)
def test_nor_do_weights_of_a_kernel_of_finite_rank(ball: RkhsBall) -> None:
    for seed in range(4):
        move = frozen_release(FiniteRankMechanism.for_relation(ball, BUDGET).mechanism, seed=seed)
        assert move.by in ("one weight", "random")
        assert not move.exceeds
        assert 0.9999 <= move.share <= 1 + 1e-5
