"""The paper's algorithm: its parameters, its optimiser, what it learns, where its noise goes and what it claims."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quietq import InvalidInput
from quietq.noise.box import Box
from quietq.noise.entropy import SeededEntropy
from quietq.paper.agents import trainer
from quietq.paper.agents.jax_world import stack, world_reward
from quietq.paper.agents.method import EnvironmentSpaces, Moment, Transition
from quietq.paper.agents.networks import DeepQNetwork
from quietq.paper.algorithm import ACTING, BOOTSTRAP, Published
from quietq.worlds.walk import WalkWorld

torch = pytest.importorskip("torch")

WORLD = WalkWorld()
SPACES = trainer.spaces_of(WORLD)
WORST, BEST = 0.26342, 20.7083  # exact returns of the worst and the best policy


def episode_scores(methods: list[Published], steps: int) -> np.ndarray:
    """Scores of all episodes, (methods, episodes), in one compiled program."""
    noises = [method.draw(SPACES, steps, SeededEntropy(i)) for i, method in enumerate(methods)]
    noise = jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *noises)
    rewards = stack([world_reward(WORLD)] * len(methods))
    runs = trainer.Runs(jax.random.split(jax.random.key(5), len(methods)), rewards, noise)
    core = methods[0].core()
    _, seen = trainer.advance(core, WORLD, runs, trainer.begin(core, WORLD, runs), 0, steps)
    returns = np.asarray(seen[0])[:, : steps // 50 * 50].reshape(len(methods), -1, 50).sum(axis=2)
    return (returns - WORST) / (BEST - WORST)


def test_code_has_the_parameters_of_the_authors_program() -> None:
    method = Published.code()
    assert (method.optimiser, method.learning_rate, method.clamp, method.loss) == (
        "rmsprop-pytorch",
        0.01,
        1.0,
        "huber",
    )
    assert (method.batch, method.replay, method.train_every, method.start) == (128, 10_000, 1, 128)
    assert (method.beta, method.widths, method.gamma, method.target_every) == (1.0, (16, 16), 0.999, 10)
    assert (method.explore_first, method.explore_last, method.explore_decay) == (0.9, 0.05, 200.0)
    assert not method.bootstrap_truncated
    assert 5000 - method.start + 1 == pytest.approx(4900, abs=50)  # updates, of 5,000 steps


def test_text_has_the_parameters_of_the_listing() -> None:
    method = Published.text()
    assert (method.optimiser, method.learning_rate, method.clamp, method.loss) == ("sgd", 3e-4, None, "squared")
    assert (method.batch, method.replay, method.train_every, method.target_every) == (64, 64, 64, 1)
    assert method.explore_first == method.explore_last == 0
    assert method.paths(SPACES, 5000) == 5000 // 64 == 78  # rounds


@pytest.mark.slow
def test_the_optimiser_is_pytorchs_rmsprop() -> None:
    rng, transformation = np.random.default_rng(0), Published.code().transformation()
    ours = jnp.asarray(rng.normal(size=20), jnp.float32)
    theirs = torch.nn.Parameter(torch.tensor(np.asarray(ours)))
    update = jax.jit(transformation.update)
    state, optimiser = transformation.init(ours), torch.optim.RMSprop([theirs], lr=1e-2)
    for _ in range(60):
        gradient = (rng.normal(size=20) * 10.0 ** rng.integers(-6, 3, 20)).astype(np.float32)
        theirs.grad = torch.tensor(gradient).clamp(-1, 1)
        optimiser.step()
        updates, state = update(jnp.asarray(gradient), state, ours)
        ours = ours + jnp.asarray(updates)
        assert np.allclose(ours, theirs.detach().numpy(), rtol=0, atol=1e-6)


def test_networks_start_as_pytorchs_do() -> None:
    networks = [Published.code().make_network(SPACES, jax.random.key(i)) for i in range(20)]
    for depth, (inputs, outputs) in enumerate([(1, 16), (16, 16), (16, 2)]):
        layers = []
        for network in networks:
            assert isinstance(network, DeepQNetwork)
            layers.append(network.layers[depth])
        bound = torch.nn.Linear(inputs, outputs).in_features ** -0.5
        for numbers in (np.stack([layer.weight for layer in layers]), np.stack([layer.bias for layer in layers])):
            assert np.abs(numbers).max() <= bound
            assert np.abs(numbers).max() > 0.8 * bound
            assert numbers.std() == pytest.approx(bound / np.sqrt(3), rel=0.25)


def test_the_text_does_not_learn() -> None:
    scores = episode_scores([Published.text(sigma, levels=8) for sigma in (0.0, 0.32, 1.0) for _ in range(2)], 5000)
    gained = scores[:, -20:].mean(axis=1) - scores[:, :20].mean(axis=1)
    assert gained.reshape(3, 2).mean(axis=1).max() < 0.1
    assert scores[:2, -20:].mean() < 0.4  # less than uniformly random actions, 0.52


@pytest.mark.slow
def test_the_code_learns_less_the_more_noise_there_is() -> None:
    scores = episode_scores([Published.code(sigma) for sigma in (0.0, 0.4) for _ in range(20)], 5000)
    without, noised = scores[:, -20:].mean(axis=1).reshape(2, 20).mean(axis=1)
    assert without >= 0.9
    assert noised >= 0.6
    assert noised < without


@pytest.mark.parametrize("make", [Published.code, Published.text])
@pytest.mark.parametrize(("sigma", "epsilon"), [(0.32, 0.9), (0.74, 0.45)])
def test_certificates_only_claim(make: Any, sigma: float, epsilon: float) -> None:
    certificate = make(sigma).certificate(SPACES, 5000)
    assert (certificate.standing, certificate.method, certificate.epsilon) == ("claimed", "published", epsilon)
    assert certificate.mu is None
    words = " ".join(certificate.remarks)
    assert "2k" in words
    assert "un-noised state" in words
    assert ("authors' program" in words) == (make == Published.code)


def test_without_noise_there_is_not_even_a_claim() -> None:
    assert Published.code(0.0).certificate(SPACES, 5000).standing == "none"


def marked(method: Published, steps: int) -> Any:
    """Noise whose values say which path and which network they belong to."""
    paths, by_step = method.draw(SPACES, steps, SeededEntropy(0))
    marks = 10.0 * np.arange(paths.shape[1])[:, None] + np.arange(paths.shape[2])
    return jnp.broadcast_to(jnp.asarray(marks, jnp.float32)[None, :, :, None], paths.shape), jnp.asarray(by_step)


def noise_at(method: Published, network: int) -> Any:
    """Compiled: the noise at some states, in a step."""

    def at(state: Any, states: Any, step: Any, noise: Any) -> Any:
        return method._at(state, states, Moment(step, jax.random.key(0), noise), network)

    return jax.jit(at)


def test_the_codes_noise_is_drawn_anew_every_episode_and_for_each_network() -> None:
    method = Published.code(1.0, levels=3)
    noise, state = marked(method, 500), method.init(SPACES, jax.random.key(0))
    assert noise[0].shape == (9, 10, 2, 2)
    states, step = jnp.array([[0.0], [1.0]]), jnp.array(499)
    acting, bootstrap = (noise_at(method, which) for which in (ACTING, BOOTSTRAP))
    for episode in range(10):
        now = state._replace(episode=jnp.array(episode))
        assert (acting(now, states, step, noise) == 10 * episode).all()
        assert (bootstrap(now, states, step, noise) == 10 * episode + 1).all()
    over, nothing = jnp.array([True]), jnp.zeros(1)
    seen = Transition(states[:1], jnp.array([0]), nothing, states[:1], ~over, over)
    assert int(jax.jit(method.update)(state, seen, Moment(jnp.array(0), jax.random.key(0), noise)).episode) == 1
    assert (method.finish(state, noise).path == 90).all()
    paths, _ = Published.code(1.0, levels=1).draw(SPACES, 200_000, SeededEntropy(1))
    one, two = paths[0, :, ACTING, 0], paths[0, :, BOOTSTRAP, 0]
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.1  # of 4,000 episodes: more than six standard errors
    assert one.std() == pytest.approx(1, abs=0.08)


@pytest.mark.parametrize("resets", [1, 3, 99])
def test_the_codes_noise_is_shared_by_stretches_of_episodes(resets: int | None) -> None:
    method = Published.code(1.0, levels=3, resets=resets)
    noise, state = marked(method, 500), method.init(SPACES, jax.random.key(0))
    paths = min(resets or 10, 10)
    assert noise[0].shape == (9, paths, 2, 2)
    used, acting = [], noise_at(method, ACTING)
    bootstrap, current = noise_at(method, BOOTSTRAP), jax.jit(method.current)
    for episode in range(11):  # the last is over: nothing has noise of its own after it
        now = state._replace(episode=jnp.array(episode))
        values = acting(now, jnp.array([[0.5]]), jnp.array(0), noise)
        assert (current(now, noise).path == values[0, 0]).all()
        assert (bootstrap(now, jnp.array([[0.5]]), jnp.array(499), noise) == values + 1).all()
        used.append(int(values[0, 0]) // 10)
    assert used[-1] == used[-2] == paths - 1
    assert used[:10] == sorted(used[:10])
    lengths = np.bincount(used[:10], minlength=paths)
    assert lengths.max() - lengths.min() <= 1  # as equal as they can be
    assert (method.finish(state, noise).path == 10 * (paths - 1)).all()


def test_by_default_the_codes_noise_is_as_if_it_were_reset_every_episode() -> None:
    every, default = (Published.code(0.4, levels=5, resets=resets) for resets in (100, None))
    for one, other in zip(*(m.draw(SPACES, 5000, SeededEntropy(0)) for m in (every, default)), strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(default.draw(SPACES, 5000, SeededEntropy(0))[1], np.arange(100))


@pytest.mark.parametrize(
    ("resets", "words"),
    [
        (None, "redrawn every episode"),
        (100, "redrawn every episode"),
        (10, "10 paths in the whole run"),
        (1, "one path for the whole run"),
    ],
)
def test_the_certificate_says_how_often_the_codes_noise_is_drawn(resets: int | None, words: str) -> None:
    remarks = Published.code(0.32, resets=resets).certificate(SPACES, 5000).remarks
    assert words in remarks[-1]
    assert ("redrawn" in remarks[-1]) == (resets in (None, 100))


@pytest.mark.parametrize("resets", [None, 3])
def test_the_texts_noise_is_drawn_j_times_and_shared(resets: int | None) -> None:
    method = Published.text(1.0, levels=3, resets=resets)
    noise, state = marked(method, 5000), method.init(SPACES, jax.random.key(0))
    at = noise_at(method, ACTING)
    index = [int(at(state, jnp.array([[0.5]]), jnp.array(step), noise)[0, 0]) // 10 for step in range(0, 5000, 32)]
    assert sorted(set(index)) == list(range(resets or 78))
    assert index == sorted(index)
    assert noise[0].shape[2] == 1
    acting, bootstrap = (
        noise_at(method, which)(state, jnp.array([[0.5]]), jnp.array(70), noise) for which in (ACTING, BOOTSTRAP)
    )
    assert np.array_equal(acting, bootstrap)
    assert (np.asarray(noise[1]).reshape(-1)[: 78 * 64].reshape(78, 64).std(axis=1) == 0).all()  # whole rounds


def test_the_text_returns_values_without_noise() -> None:
    method = Published.text(1.0, levels=3)
    state = method.init(SPACES, jax.random.key(0))
    released = method.finish(state, jax.tree.map(jnp.asarray, method.draw(SPACES, 128, SeededEntropy(0))))
    assert (released.path == 0).all()
    x = jnp.array([0.3])
    assert np.array_equal(method.values(released, x), state.learner.network(x))


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match="one coordinate"):
        Published.code().check(EnvironmentSpaces(Box((0.0, 0.0), (1.0, 1.0)), 2, 50), 5000)
    with pytest.raises(InvalidInput, match="at least one batch"):
        Published.text().check(SPACES, 10)
    with pytest.raises(InvalidInput, match="sigma must be at least 0"):
        Published.code(-1.0)
