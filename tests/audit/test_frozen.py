"""The frozen-noise check: no certified method is moved farther than stated, and broken copies of them are caught."""

import asyncio
import dataclasses
import itertools
import math
import threading
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quietq import Budget, SupBall, people, privatise
from quietq.audit.frozen import checks, frozen_sensitivity, sensitivities
from quietq.audit.frozen_people import frozen_people
from quietq.audit.frozen_rewards import frozen_knots, frozen_path
from quietq.audit.frozen_trajectories import frozen_trajectories
from quietq.audit.frozen_vectors import frozen_observed, frozen_weights
from quietq.audit.movement import Movement, Unprotected
from quietq.audit.private_steps import Emptied, PrivateStep, private_step
from quietq.audit.search import check_ways, farthest
from quietq.learning import (
    GradientNoise,
    InputNoise,
    NetworkValueNoise,
    NoNoise,
    OutputNoise,
    Promising,
    ValueNoise,
    averages,
)
from quietq.learning.evaluation import Evaluation
from quietq.learning.method import Spaces
from quietq.learning.observed import observe
from quietq.learning.protect import protect, watched
from quietq.learning.trajectories import Cells
from quietq.noise.box import UNIT, Box
from quietq.noise.kernels import Features
from quietq.noise.mechanism import GaussianProcessMechanism
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import RkhsBall, Trajectories
from quietq.worlds import WALK

BUDGET, BALL, SUP = Budget(0.9, 1e-4), people(50, 0, 0.5, 1), SupBall(0.3)
SPACES = Spaces(UNIT, 2, 50)
PROMISE: dict[str, Any] = {"relation": SUP, "budget": BUDGET}
WEIGHTS = RkhsBall(0.02, Features(lambda x: np.stack([x, x**2], axis=-1), 2))

# The part of the stated sensitivity that the search finds at the least.
LEAST = {
    "reward, path": 0.98,
    "reward, one of many people": 0.98,
    "reward, k-norm": 0.9999,
    "reward, knots": 0.9999,
    "reward, k-norm on weights": 0.9999,
    "reward, gaussian on weights": 0.9999,
    "reward, observed": 0.999,
    "value": 0.997,
    "value-network, splines": 0.99,
    "value-network, mlp": 0.99,
    "value-network, fourier": 0.97,
    "gradient": 0.997,
    "gradient, one state": 0.997,
    "gradient, clipped": 0.93,
    "input": 0.998,
    "output": 0.99,
    "evaluation, lsw": 0.9999,
    "evaluation, lsl": 0.9999,
}

# Other forms of methods that are checked anyway.
SLOW = {"value-network, mlp", "value-network, fourier", "gradient, one state", "gradient, clipped"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in LEAST])
def test_nothing_moves_a_release_farther_than_stated_and_something_nearly_as_far(name: str) -> None:
    move = checks()[name]()
    assert move.name == name
    assert not move.exceeds
    assert LEAST[name] <= move.share <= 1 + 1e-5


def test_every_check_has_its_threshold() -> None:
    assert set(checks()) == set(LEAST)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nor_with_other_seeds(seed: int) -> None:
    told: list[Movement] = []
    table = sensitivities(seed=seed, progress=told.append)
    assert told == table
    assert not any(move.exceeds for move in table)
    assert min(move.share for move in table) > 0.85


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [
        ValueNoise(**PROMISE),
        NetworkValueNoise(**PROMISE, network="random"),
        NetworkValueNoise(**PROMISE, network="mlp", gamma=0.9),
        GradientNoise(**PROMISE, network="random", loss="huber"),
        GradientNoise(**PROMISE, network="mlp", clip=0.1),
        InputNoise(**PROMISE),
        OutputNoise(**PROMISE, gamma=0.9),
    ],
)
def test_nor_in_two_dimensions_with_three_actions(method: Promising) -> None:
    move = frozen_sensitivity(method, Spaces(Box((-1.0, 0.0), (1.0, 5.0)), 3, 50), rewards=64)
    assert not move.exceeds
    assert move.share > 0.4


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
        def release(self, trajectories: Any, *, simulate: int | None = None) -> Any:
            budget = Budget(2 * self.budget.epsilon, self.budget.delta)
            return Evaluation(
                budget=budget, relation=self.relation, gamma=self.gamma, cells=self.cells
            ).release(trajectories, simulate=simulate)  # fmt: skip

    relation = Trajectories(150, 1.0)
    careless = Careless(budget=Budget(10.0, 1e-6), relation=relation, gamma=0.5, cells=Cells.states(3))
    assert frozen_trajectories(careless, [(np.append(np.arange(3), np.zeros(40)), np.ones(43))] * 150).share > 1.5


class Leaking(OutputNoise):
    """A little of the values goes round the noise."""

    def finish(self, state: Any, noise: Any) -> Any:
        network, sums = super().finish(state, noise), state.sums
        raw = averages.best_values(sums.means(), sums, self.gamma)
        return dataclasses.replace(network, weights=network.weights + 1e-3 * raw)


class Following(InputNoise):
    """The noise's size follows the rewards."""

    def update(self, state: Any, seen: Any, step: Any, key: Any, noise: Any) -> Any:
        noise = noise._replace(scale=noise.scale * (1 + jnp.abs(seen.reward).max()))
        return super().update(state, seen, step, key, noise)


class Bare(InputNoise):
    """No noise at all."""

    def update(self, state: Any, seen: Any, step: Any, key: Any, noise: Any) -> Any:
        return state._replace(sums=averages.add(state.sums, seen, state.network))


class Stopped(ValueNoise):
    """A little of the mean rewards goes round the noise, where no derivative sees it."""

    def _release(self, state: Any, noise: Any) -> Any:
        released, raw = super()._release(state, noise), state.unreleased.means()
        weights = released.network.weights + jax.lax.stop_gradient(1e-3 * raw)
        return released._replace(network=dataclasses.replace(released.network, weights=weights))


class Comparing(InputNoise):
    """Whether a reward is positive decides what is learned."""

    def update(self, state: Any, seen: Any, step: Any, key: Any, noise: Any) -> Any:
        after = super().update(state, seen, step, key, noise)
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
        check_ways(private_step(kind(**PROMISE), SPACES, rewards=8))


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
    "method", [reusing(ValueNoise, one_for_all), reusing(GradientNoise, one_for_all), Standing(**PROMISE)]
)
def test_normals_that_are_the_same_in_each_round_are_caught(method: Any) -> None:
    with pytest.raises(Unprotected, match="twice"):
        check_ways(private_step(method, SPACES, rewards=8))


def test_normals_that_are_not_as_drawn_are_caught() -> None:
    step = private_step(InputNoise(**PROMISE), SPACES, rewards=8)
    check_ways(step)
    for change in (rows_mixed, np.abs, lambda normals: np.clip(normals, -3, 3), lambda normals: 0 * normals):
        ones, tagged = (each._replace(normals=change(np.asarray(each.normals))) for each in (step.ones, step.tagged))
        with pytest.raises(Unprotected, match="not the independent"):
            check_ways(dataclasses.replace(step, ones=ones, tagged=tagged))


def test_one_normal_for_all_rewards_is_caught() -> None:
    with pytest.raises(Unprotected, match="twice"):
        frozen_sensitivity(reusing(InputNoise, one_for_all), SPACES, rewards=8, climb=False)


def test_twice_the_noise_in_another_order_is_not() -> None:
    method = reusing(InputNoise, lambda normals: 2 * normals[::-1])
    assert frozen_sensitivity(method, SPACES, rewards=8, climb=False).share == pytest.approx(0.5, rel=0.01)


def test_a_step_that_is_compiled_inside_is_refused() -> None:
    class Compiled(InputNoise):
        def update(self, state: Any, seen: Any, step: Any, key: Any, noise: Any) -> Any:
            return eqx.filter_jit(super().update)(state, seen, step, key, noise)

    with pytest.raises(InvalidInput, match="compiled code of its own"):
        frozen_sensitivity(Compiled(**PROMISE), SPACES, rewards=8, climb=False)


def test_more_normals_than_can_be_told_apart_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quietq.audit.private_steps._TAGS", 8)
    with pytest.raises(InvalidInput, match="smaller network"):
        private_step(InputNoise(**PROMISE), SPACES)


def test_noise_of_another_law_is_caught() -> None:
    def gaussian(source: Any, budget: Budget, *, noise: str, **options: Any) -> Any:
        return privatise(source, budget, noise="path", **options)

    with pytest.raises(Unprotected, match="not of the law"):
        frozen_weights(WEIGHTS, BUDGET, "k-norm", release=gaussian)


@pytest.mark.parametrize("seed", range(2))
def test_the_search_finds_the_farthest_corner_of_a_cube(seed: int) -> None:
    matrix = np.random.default_rng(seed).normal(size=(5, 10))
    corners = np.array(list(itertools.product([-1, 1], repeat=10)))
    exact = 0.7 * np.linalg.norm(corners @ matrix.T, axis=1).max()
    rows = jnp.asarray(matrix, jnp.float32)
    step = PrivateStep(
        "a matrix", lambda r: (rows @ r, jnp.ones(())), lambda *_: Emptied([], []), None, None, np.zeros(0), 1,
        centre=np.zeros(10), radius=0.7, mu=1.0,
    )  # fmt: skip
    best = farthest(step, seed=seed)
    assert best.found == pytest.approx(exact, rel=1e-5)
    assert 0.7 * np.linalg.norm(matrix @ best.direction) == pytest.approx(exact, rel=1e-5)
    assert best.by in ("gradient", "greedy", "random signs")


def test_calls_of_protect_are_seen_while_watched_and_only_then() -> None:
    def noised() -> Any:
        return jax.eval_shape(lambda value: protect(value, value, 0.25), jnp.zeros(3))

    with watched() as calls:
        noised()
        elsewhere = threading.Thread(target=noised)
        elsewhere.start()
        elsewhere.join()
        with watched() as inner:
            noised()
    with pytest.raises(RuntimeError), watched():
        raise RuntimeError
    noised()
    assert len(calls) == len(inner) == 1
    assert (calls[0].value.shape, calls[0].scale) == ((3,), 0.25)


def test_another_thread_is_watched_if_it_copies_the_context() -> None:
    with watched() as calls:
        asyncio.run(asyncio.to_thread(protect, jnp.zeros(3), jnp.ones(3), 0.25))
    assert len(calls) == 1


def test_something_else_can_be_noised_while_watched() -> None:
    with watched(instead=lambda call: jnp.zeros_like(call.value)):
        nothing = protect(jnp.full(3, 5.0), jnp.ones(3), 0.25)
    assert (nothing == protect(jnp.zeros(3), jnp.ones(3), 0.25)).all()
    assert (nothing != protect(jnp.full(3, 5.0), jnp.ones(3), 0.25)).all()


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
class Nothing(NoNoise, Promising):
    """A method that nobody knows how to audit."""


def test_what_cannot_be_audited_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no private step"):
        private_step(Nothing(**PROMISE), SPACES)
    several = people(50, 0, 0.5, 1, actions=2)
    with pytest.raises(InvalidInput, match="one reward function"):
        frozen_path(GaussianProcessMechanism.for_relation(several, BUDGET, levels=4))
