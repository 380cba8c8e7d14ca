"""Neighbours are neighbours: every move stays within its relation, and goes as far as that lets it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quietq import Budget, InvalidInput, LipschitzBall, SupBall
from quietq.audit.neighbours import farthest_move
from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms.candidates import choose
from quietq.paper.attacks.on_trainings import pair_reward
from quietq.paper.attacks.pairs import MOVES, Pair, neighbours
from quietq.privacy.relations import Exponential, RkhsBall
from quietq.worlds import WALK, find_world
from quietq.worlds.world import World

THERMOSTAT = find_world("thermostat")
WORLDS = {"walk": WALK, "thermostat": THERMOSTAT}
RELATIONS: list[Any] = [
    SupBall(1.0), SupBall(0.03), WALK.relation(50), THERMOSTAT.relation(1000), LipschitzBall(0.5, 0.7),
    LipschitzBall(0.01, 3.0), LipschitzBall(1.0, 100.0),
]  # fmt: skip
POINTS = 3 * 2**13 + 1
"""Finer than, and not aligned with, the points that moves turn at."""


def moved(pair: Pair) -> np.ndarray:
    """r' - r on a fine grid of the box."""
    low, high = pair.world.box.low[0], pair.world.box.high[0]
    states = np.linspace(low, high, POINTS)
    return pair.second(states) - pair.first(states)


def check_within(pair: Pair, relation: Any) -> None:
    check_move(moved(pair), relation)


def check_move(move: np.ndarray, relation: Any) -> None:
    assert np.abs(move).max() <= relation.radius * (1 + 1e-12)
    if isinstance(relation, LipschitzBall):
        # Differences of numbers of size 1 are off by 1e-16, and so are slopes by that over the step.
        assert np.abs(np.diff(move)).max() * (POINTS - 1) <= relation.lipschitz * (1 + 1e-9) + 1e-15 * POINTS


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_every_move_lies_within_its_relation_and_reaches_its_edge(world: World, name: str, relation: Any) -> None:
    pair = neighbours(world, relation, name)
    check_within(pair, relation)
    assert np.abs(moved(pair)).max() == pytest.approx(relation.radius, rel=1e-9)


@pytest.mark.parametrize("relation", RELATIONS[2:], ids=str)
def test_a_zigzag_is_as_steep_as_is_allowed(relation: LipschitzBall) -> None:
    steepest = np.abs(np.diff(moved(neighbours(WALK, relation, "zigzag")))).max() * (POINTS - 1)
    assert steepest == pytest.approx(relation.lipschitz, rel=1e-6)


def test_a_zigzag_on_its_own_grid_has_nearly_the_largest_norm() -> None:
    """Values at the points of the grid, as a table of the private reward shows them."""
    ball, kernel = WALK.relation(50), Exponential(WALK.relation(50).best_beta())
    points = np.linspace(0, 1, 2**10 + 1)
    pair = neighbours(WALK, ball, "zigzag")
    found = kernel.norm_on(points, pair.second(points) - pair.first(points))
    assert 0.998 * ball.rkhs_radius(kernel) < found <= ball.rkhs_radius(kernel) * (1 + 1e-12)


@pytest.mark.parametrize(("noise", "pieces"), [("path", None), ("knots", 3), ("knots", 6), ("k-norm", 5)])
@pytest.mark.parametrize("relation", [WALK.relation(50), LipschitzBall(0.01, 0.2)], ids=str)
def test_the_farthest_move_lies_within_the_relation_too_and_near_its_edge(
    noise: Any, pieces: int | None, relation: LipschitzBall
) -> None:
    mechanism = choose(noise, OwnFunction(None, relation, box=WALK.box), Budget(0.9, 1e-4), pieces=pieces)
    _, function = farthest_move(mechanism)
    assert callable(function)
    move = function(np.linspace(0, 1, POINTS))
    check_move(move, relation)
    assert np.abs(move).max() == pytest.approx(relation.radius, rel=1e-6)
    query = next(mechanism.run())
    assert query.law.distance(query.numbers(OwnFunction(function, relation))) > 0.999 * query.sensitivity


@pytest.mark.parametrize("relation", [SupBall(1.0), WALK.relation(50), LipschitzBall(0.5, 2.0)], ids=str)
@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_compiled_rewards_are_the_same_to_single_precision(world: World, name: str, relation: Any) -> None:
    pair = neighbours(world, relation, name)
    # States that single precision has, at which both forms look at the very same place.
    states = np.random.default_rng(0).uniform(world.box.low[0], world.box.high[0], 400).astype(np.float32)
    for side, reward in enumerate((pair.first, pair.second)):
        compiled = jax.vmap(pair_reward(pair, side).at)(jnp.asarray(states[:, None]))
        # A phase is rounded in units of the whole box, and multiplied by how often the move turns.
        slope = 1e-7 * (2**11 if name == "zigzag" else 64) * relation.radius
        np.testing.assert_allclose(compiled, reward(states), rtol=0, atol=2e-6 + slope)


def test_a_shift_needs_no_coordinate() -> None:
    world = find_world("navigation")
    pair = neighbours(world, SupBall(0.2), "shift")
    states = np.random.default_rng(1).uniform(world.box.low, world.box.high, (9, world.box.dimension))
    np.testing.assert_allclose(pair.second(states) - pair.first(states), 0.2, atol=1e-12)
    compiled = jax.vmap(pair_reward(pair, 1).at)(jnp.asarray(states, jnp.float32))
    np.testing.assert_allclose(compiled, pair.second(states), atol=2e-6)


def test_what_makes_no_pair_is_refused_in_a_sentence() -> None:
    with pytest.raises(InvalidInput, match="move must be one of shift, zigzag, not 'jump'"):
        neighbours(WALK, SupBall(1.0), "jump")
    with pytest.raises(InvalidInput, match="not for a RkhsBall"):
        neighbours(WALK, RkhsBall(1.0, Exponential(1.0).norm), "shift")
    with pytest.raises(InvalidInput, match="for worlds of one coordinate; take 'shift'"):
        neighbours(find_world("navigation"), SupBall(1.0), "zigzag")
