"""The frozen-noise check catches ways round the noise and normals that are used twice or not as they were drawn."""

import dataclasses
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from frozen_cases import PROMISE, SPACES

from quietq.audit.finding import Unprotected
from quietq.paper import GradientNoise, InputNoise, OutputNoise, ValueNoise
from quietq.paper.attacks.frozen_step import FrozenStep, frozen_sensitivity
from quietq.paper.baselines import averages
from quietq.privacy.errors import InvalidInput


class Leaking(OutputNoise):
    """A little of the values goes round the noise."""

    def finish(self, state: Any, noise: Any) -> Any:
        network, sums = super().finish(state, noise), state.sums
        raw = averages.best_values(sums.means(), sums, self.gamma)
        return dataclasses.replace(network, weights=network.weights + 1e-3 * raw)


class Following(InputNoise):
    """The noise's size follows the rewards."""

    def update(self, state: Any, seen: Any, now: Any) -> Any:
        noise = now.noise._replace(scale=now.noise.scale * (1 + jnp.abs(seen.reward).max()))
        return super().update(state, seen, now._replace(noise=noise))


class Bare(InputNoise):
    """No noise at all."""

    def update(self, state: Any, seen: Any, now: Any) -> Any:
        return state._replace(sums=averages.add(state.sums, seen, state.network))


class Stopped(ValueNoise):
    """A little of the mean rewards goes round the noise, where no derivative sees it."""

    def _release(self, state: Any, noise: Any) -> Any:
        released, raw = super()._release(state, noise), state.unreleased.means()
        weights = released.network.weights + jax.lax.stop_gradient(1e-3 * raw)
        return released._replace(network=dataclasses.replace(released.network, weights=weights))


class Comparing(InputNoise):
    """Whether a reward is positive decides what is learned."""

    def update(self, state: Any, seen: Any, now: Any) -> Any:
        after = super().update(state, seen, now)
        some = (seen.reward[0] > 0).astype(int).astype(float)
        return after._replace(sums=after.sums._replace(rewards=after.sums.rewards * (1 + 1e-3 * some)))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Leaking, "without going through"),
        (Following, "not public"),
        (Bare, "0 times"),
    ],
)
def test_a_way_round_the_noise_is_caught(kind: Any, words: str) -> None:
    with pytest.raises(Unprotected, match=words):
        frozen_sensitivity(kind(**PROMISE), SPACES, rewards=8, climb=False)


@pytest.mark.parametrize("kind", [Stopped, Comparing])
def test_so_is_one_that_has_no_derivative(kind: Any) -> None:
    with pytest.raises(Unprotected, match="without going through"):
        FrozenStep(kind(**PROMISE), SPACES, rewards=8).check_ways()


def reusing(kind: type, change: Any) -> Any:
    """A copy of a method that draws its normals and then changes them."""

    def draw(self: Any, *arguments: Any) -> Any:
        noise = kind.draw(self, *arguments)
        return noise._replace(normals=change(noise.normals))

    return type(f"Reusing{kind.__name__}", (kind,), {"draw": draw})(**PROMISE)


def one_for_all(normals: np.ndarray) -> np.ndarray:
    """The first normal, or the first round's, for all that follow too."""
    return np.broadcast_to(normals[:1], normals.shape)


def rows_mixed(normals: np.ndarray) -> np.ndarray:
    """Normals of the right size, each of which shares a half with the one that comes before."""
    return (normals + np.roll(normals, 1)) / math.sqrt(2)


class Standing(ValueNoise):
    """Rounds are not counted, so each has the normals of the first."""

    def _release(self, state: Any, noise: Any) -> Any:
        return super()._release(state, noise)._replace(round=state.round)


@pytest.mark.parametrize(
    "method",
    [
        reusing(ValueNoise, one_for_all),
        *(
            pytest.param(method, marks=pytest.mark.slow)
            for method in (reusing(GradientNoise, one_for_all), Standing(**PROMISE))
        ),
    ],
)
def test_normals_that_are_the_same_in_each_round_are_caught(method: Any) -> None:
    with pytest.raises(Unprotected, match="twice"):
        FrozenStep(method, SPACES, rewards=8).check_ways()


def test_normals_that_are_not_as_drawn_are_caught() -> None:
    step = FrozenStep(InputNoise(**PROMISE), SPACES, rewards=8)
    step.check_ways()
    drawn = step.ones, step.tagged
    for change in (rows_mixed, np.abs, lambda normals: np.clip(normals, -3, 3), lambda normals: 0 * normals):
        step.ones, step.tagged = (each._replace(normals=change(np.asarray(each.normals))) for each in drawn)
        with pytest.raises(Unprotected, match="not the independent"):
            step.check_ways()


def test_one_normal_for_all_rewards_is_caught() -> None:
    with pytest.raises(Unprotected, match="twice"):
        frozen_sensitivity(reusing(InputNoise, one_for_all), SPACES, rewards=8, climb=False)


def test_twice_the_noise_in_another_order_is_not() -> None:
    method = reusing(InputNoise, lambda normals: 2 * normals[::-1])
    assert frozen_sensitivity(method, SPACES, rewards=8, climb=False).share == pytest.approx(0.5, rel=0.01)


def test_a_step_that_is_compiled_inside_is_refused() -> None:
    class Compiled(InputNoise):
        def update(self, state: Any, seen: Any, now: Any) -> Any:
            return eqx.filter_jit(super().update)(state, seen, now)

    with pytest.raises(InvalidInput, match="compiled code of its own"):
        frozen_sensitivity(Compiled(**PROMISE), SPACES, rewards=8, climb=False)


def test_more_normals_than_can_be_told_apart_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quietq.paper.attacks.frozen_step._TAGS", 8)
    with pytest.raises(InvalidInput, match="smaller network"):
        FrozenStep(InputNoise(**PROMISE), SPACES)
