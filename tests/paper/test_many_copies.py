"""Rounding errors of many copies of an environment, against what the noise covers."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quietq import Budget, SupBall
from quietq.paper.agents.method import Transition
from quietq.paper.agents.protect import total, watched
from quietq.paper.agents.trainer import spaces_of
from quietq.paper.attacks.frozen_step import FrozenStep
from quietq.paper.baselines.value import ValueNoise
from quietq.paper.baselines.value_network import NetworkValueNoise, unit_sensitivity
from quietq.worlds.walk import WALK

PROMISE: dict[str, Any] = {"relation": SupBall(0.01, people=50), "budget": Budget(0.9, 1e-4)}
SPACES = spaces_of(WALK)


def farthest(look: Any, largest: float, radius: float, copies: int) -> float:
    """The most that all rewards together move what is noised, from some places, over what the noise is enough for."""
    found = []
    for part in (0.1, 0.3, 0.6, 0.999):
        above, below = (look(jnp.full(copies, part * largest + side * radius / 2, jnp.float32)) for side in (1.0, -1.0))
        moved = np.asarray(above[0], np.float64) - np.asarray(below[0], np.float64)
        found.append(np.linalg.norm(moved) / float(above[1]))
    return max(found)


def test_value_with_many_copies() -> None:
    method, copies = ValueNoise(**PROMISE), 2**14
    step = FrozenStep(method, SPACES, rewards=copies, same=True)
    assert farthest(jax.jit(step.look), method.largest, method.radius, copies) / step.hidden <= 1


@pytest.mark.slow
def test_value_network_with_more_copies_than_a_batch() -> None:
    copies = 2**10
    method = NetworkValueNoise(**PROMISE, batch=8, features=3)
    noise = jax.tree.map(jnp.asarray, method.draw(SPACES, 8, _Ones()))
    network = method.init(SPACES, jax.random.key(0), copies).network
    states = jnp.full((copies, 1), 0.5)
    nothing = jnp.zeros(copies, bool)

    @jax.jit
    def look(rewards: Any) -> Any:
        seen = Transition(states, jnp.zeros(copies, jnp.int32), rewards, states, nothing, nothing)
        with watched() as calls:
            method.noised(network, network, seen, jnp.array(0), noise)
        return calls[0].value, calls[0].scale

    mu = Budget(0.9, 1e-4).mu
    assert farthest(look, method.largest, method.radius, copies) / mu <= 1


class _Ones:
    reproducible = True

    def normals(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.ones(shape)

    def uniforms(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.ones(shape)


@pytest.mark.parametrize("number", [1, 2, 3, 1000, 2**17 + 1])
def test_a_total_errs_by_two_roundings(number: int) -> None:
    rng = np.random.default_rng(number)
    for terms in (rng.random(number), rng.normal(size=number) * 10.0 ** rng.uniform(-6, 6, number)):
        single = np.asarray(terms, np.float32)
        found = float(jax.jit(total)(jnp.asarray(single)))
        exact = float(np.sum(single.astype(np.longdouble)))
        assert abs(found - exact) <= 2 * 2.0**-24 * np.abs(single.astype(float)).sum()


def test_the_gram_bound_holds_for_many_rows() -> None:
    slopes = np.full((2**11, 2), 0.1, np.float32)
    exact = float(np.linalg.norm(slopes.astype(np.float64).mean(axis=0)))
    assert exact <= float(jax.jit(unit_sensitivity)(jnp.asarray(slopes))) <= 1.02 * exact
