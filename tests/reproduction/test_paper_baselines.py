"""The paper's baselines: their noise, what it is worth, the clipping, and that the learner is the authors'."""

import math
from dataclasses import fields, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from quietq import InvalidInput, paper
from quietq.noise.entropy import SeededEntropy, SystemEntropy
from quietq.paper.agents import trainer
from quietq.paper.agents.deep_q import DeepQState, NoNoise
from quietq.paper.agents.method import Moment, Transition
from quietq.paper.agents.networks import Network
from quietq.paper.algorithm import Baseline, Published
from quietq.paper.baselines.abadi import GradientPerturbation
from quietq.paper.baselines.balle import CELLS, EXPLORE, cell, walk_by_evaluation
from quietq.paper.baselines.venkitasubramaniam import InputPerturbation
from quietq.privacy.budget import Budget, delta_from_mu
from quietq.worlds.planning import policy_return
from quietq.worlds.walk import WALK

SPACES = trainer.spaces_of(WALK)
DELTA = 1e-4


def transitions(batch: int, rewards: np.ndarray, seed: int = 0) -> Transition:
    rng = np.random.default_rng(seed)
    states, following = (jnp.asarray(rng.random((batch, 1)), jnp.float32) for _ in range(2))
    over = jnp.zeros(batch, bool)
    return Transition(
        states,
        jnp.asarray(rng.integers(0, 2, batch), jnp.int32),
        jnp.asarray(rewards, jnp.float32),
        following,
        over,
        over,
    )


@pytest.mark.parametrize("kind", [InputPerturbation, GradientPerturbation])
@pytest.mark.parametrize("epsilon", [0.9, 0.45])
def test_what_the_noise_is_worth_is_the_epsilon_of_its_mu(kind: type[Baseline], epsilon: float) -> None:
    baseline = kind.of(epsilon, DELTA)
    worth = baseline.worth(5000)
    assert delta_from_mu(baseline.mu(5000), worth) == pytest.approx(DELTA, rel=1e-6)
    conservative = kind is InputPerturbation
    assert (worth < epsilon) == conservative  # the paper's noise on gradients misses the factor 2
    if not conservative:
        half = 0.5 * baseline.mu(5000)  # without that factor it would have been enough
        assert delta_from_mu(half, epsilon) < DELTA


def test_noise_on_rewards_follows_the_papers_composition() -> None:
    baseline = InputPerturbation.of(0.9, DELTA)
    one = math.sqrt(2 * math.log(1.25 / DELTA)) / 0.9  # the Gaussian mechanism, once
    assert baseline.sigma(5000) == pytest.approx(one * math.sqrt(5000 * math.log(math.e + 0.9 / DELTA)))
    normals, scale = baseline.draw(SPACES, 5000, SeededEntropy(0))
    assert normals.shape == (5000,)
    assert float(scale) == pytest.approx(baseline.sigma(5000))


def test_every_reward_is_noised_once_before_it_is_stored() -> None:
    baseline = InputPerturbation.of(0.9, DELTA, widths=(2,), batch=4, replay=64)
    noise = jax.tree.map(jnp.asarray, baseline.draw(SPACES, 500, SeededEntropy(0)))
    state, update = baseline.init(SPACES, jax.random.key(0)), jax.jit(baseline.update)
    for step in range(3):
        state = update(
            state, transitions(1, np.array([0.3]), step), Moment(jnp.array(step), jax.random.key(step), noise)
        )
    normals, scale = noise
    expected = 0.3 + float(scale) * np.asarray(normals[:3])
    assert np.allclose(state.replay[:3, 1], expected, atol=float(scale) / 60)  # as `protect` rounds


@pytest.mark.parametrize("kind", [InputPerturbation, GradientPerturbation])
def test_the_learner_is_the_authors(kind: type[Baseline]) -> None:
    baseline, theirs = kind.of(0.9, DELTA), Published.code(0.0)
    for name in ("widths", "gamma", "optimiser", "learning_rate", "loss", "clamp", "replay", "batch", "start"):
        assert getattr(baseline, name) == getattr(theirs, name)
    assert baseline.target_every == 10 * WALK.steps  # theirs counts episodes
    assert baseline.core() == kind.of(0.45, DELTA).core()  # one program for both targets


def test_updates_are_counted_as_they_are_made() -> None:
    baseline = GradientPerturbation.of(0.9, DELTA, start=8, batch=4, widths=(2,), replay=64)
    noise = baseline.draw(SPACES, 30, SeededEntropy(0))
    assert noise[0].shape == (baseline.updates(30), baseline.parameters(SPACES)) == (23, 10)
    arrays = jax.tree.map(jnp.asarray, noise)
    update = jax.jit(baseline.update)
    state, made = baseline.init(SPACES, jax.random.key(0)), 0
    for step in range(30):
        before = parameters(state)
        state = update(
            state, transitions(1, np.array([0.3]), step), Moment(jnp.array(step), jax.random.key(step), arrays)
        )
        made += not np.array_equal(parameters(state), before)
    assert made == 23


def parameters(state: DeepQState) -> np.ndarray:
    return np.asarray(ravel_pytree(eqx.filter(state.network, eqx.is_array))[0])


def wide_network(baseline: GradientPerturbation) -> Network:
    """With slopes of more than 2."""
    network = baseline.init(SPACES, jax.random.key(1)).network
    return jax.tree.map(lambda leaf: leaf * 3.0 if eqx.is_array(leaf) else leaf, network)


@pytest.fixture(scope="module")
def baseline() -> GradientPerturbation:
    return GradientPerturbation.of(0.9, DELTA, widths=(4,), replay=64, gamma=0.0)


@eqx.filter_jit
def mean_gradients(baseline: GradientPerturbation, batch: Transition) -> tuple[jax.Array, jax.Array]:
    """With every gradient clipped, and as it is."""
    network = wide_network(baseline)
    goals = baseline.goals(network, batch)
    plain = eqx.filter_grad(baseline.batch_loss)(network, goals, batch)
    clipped = baseline.clipped(network, goals, batch)
    return ravel_pytree(eqx.filter(clipped, eqx.is_array))[0], ravel_pytree(eqx.filter(plain, eqx.is_array))[0]


def test_where_nothing_is_clipped_it_is_the_mean_gradient(baseline: GradientPerturbation) -> None:
    batch = transitions(16, np.linspace(-3, 3, 16))
    clipped, plain = mean_gradients(replace(baseline, clip=1e6), batch)
    assert np.allclose(clipped, plain, atol=1e-6)
    clipped, plain = mean_gradients(baseline, batch)
    assert np.linalg.norm(clipped) <= baseline.clip
    assert not np.allclose(clipped, plain, atol=1e-2)


def test_the_mean_gradient_moves_by_2c_and_never_by_more(baseline: GradientPerturbation) -> None:
    one = transitions(1, np.zeros(1))
    same = jax.tree.map(lambda leaf: jnp.repeat(leaf, 16, axis=0), one)
    here = float(wide_network(baseline)(one.state[0])[int(one.action[0])])

    def moved(batch: Transition, rewards: np.ndarray, others: np.ndarray) -> float:
        pair = (batch._replace(reward=jnp.asarray(each, jnp.float32)) for each in (rewards, others))
        first, second = (np.asarray(mean_gradients(baseline, each)[0]) for each in pair)
        return float(np.linalg.norm(first - second))

    # Neighbours: no reward differs by more than 1. The paper counts C.
    assert moved(same, np.full(16, here - 0.5), np.full(16, here + 0.5)) == pytest.approx(2 * baseline.clip, rel=1e-4)
    rng = np.random.default_rng(0)
    for trial in range(50):
        rewards = rng.normal(size=16)
        most = 2 * baseline.clip * (1 + 1e-5)
        assert moved(transitions(16, rewards, trial), rewards, rewards + rng.uniform(-1, 1, 16)) <= most


@pytest.mark.parametrize("kind", [InputPerturbation, GradientPerturbation])
def test_real_noise_is_refused(kind: type[Baseline]) -> None:
    with pytest.raises(InvalidInput, match="for simulation"):
        kind.of(0.9, DELTA).draw(SPACES, 200, SystemEntropy())
    assert kind.of(0.9, DELTA).certificate(SPACES, 200).standing == "none"
    with pytest.raises(InvalidInput, match="seeds must be 1"):
        paper.Agent("walk", kind.of(0.9, DELTA), seed=0).learn(200, seeds=2)


@pytest.mark.parametrize("cells", CELLS)
def test_a_step_is_a_trajectory_of_its_position_and_action(cells: int) -> None:
    pairs = np.array([[position, action] for action in (0, 1) for position in np.linspace(0.0, 1.0, cells)])
    assert cell(pairs, cells).tolist() == list(range(2 * cells))


@pytest.mark.parametrize("cells", CELLS)
def test_policy_evaluation_acts_on_what_it_released(cells: int) -> None:
    generous = walk_by_evaluation(Budget(500.0, DELTA), 2000, 0, cells)
    assert generous.shape == (40,)
    # The best with one action a cell; an odd number of cells has the peak within one.
    possible = policy_return(lambda states: np.floor(states * cells) < cells // 2)
    assert generous[20:].mean() > (1 - EXPLORE) * possible  # hardly any noise, and one step's reward is enough
    assert generous[:20].mean() == pytest.approx(10.86, abs=6 * generous[:20].std() / math.sqrt(20))  # at random
    assert np.array_equal(generous, walk_by_evaluation(Budget(500.0, DELTA), 2000, 0, cells))


@pytest.mark.slow
def test_without_noise_the_learner_walks_as_the_authors_does() -> None:
    ours = InputPerturbation.of(0.9, DELTA)
    quiet = NoNoise(**{field.name: getattr(ours, field.name) for field in fields(NoNoise)})
    here = paper.Agent("walk", quiet, seed=3).learn(700, seeds=3).not_private["episode_returns"]
    there = paper.Agent("walk", Published.code(0.0), seed=3).learn(700, simulate=3).not_private["episode_returns"]
    assert np.allclose(here, there, atol=1e-3)
