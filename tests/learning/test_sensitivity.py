"""Each certified method's private step: how far rewards can move it, how much noise goes on it, and how often."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quietq import Budget, InvalidInput, NoRkhsRadius, SupBall, people
from quietq.learning import averages, gradient, input, output, protect, value, value_network
from quietq.learning.gradient import GradientNoise
from quietq.learning.input import InputNoise
from quietq.learning.method import Spaces, Transition
from quietq.learning.output import OutputNoise
from quietq.learning.promise import sup_radius
from quietq.learning.value import ValueNoise
from quietq.learning.value_network import NetworkValueNoise, unit_sensitivity
from quietq.noise.box import Box
from quietq.noise.entropy import SeededEntropy
from quietq.noise.kernels import Additive, Exponential, Features
from quietq.privacy.relations import RkhsBall, Trajectories

RADIUS, BUDGET = 0.3, Budget(0.9, 1e-4)
SPACES = Spaces(Box((0.0,), (1.0,)), 2, 50)
PROMISE: dict[str, Any] = {"relation": SupBall(RADIUS), "budget": BUDGET}
BATCH = 48


def transitions(rewards: Any, seed: int = 0, same: bool = False) -> Transition:
    """A fixed batch of states and actions, with these rewards."""
    rng, n = np.random.default_rng(seed), len(rewards)
    states, actions = rng.random((2, n, 1)).astype(np.float32), rng.integers(0, 2, n).astype(np.int32)
    if same:
        states[0], actions[:] = states[0, 0], 0
    before, after = map(jnp.asarray, states)
    nothing = jnp.zeros(n, bool)
    return Transition(before, jnp.asarray(actions), rewards, after, nothing, nothing)


def value_round(rewards: Any) -> None:
    method = ValueNoise(**PROMISE, round_steps=1)
    noise = jax.tree.map(jnp.asarray, method.draw(SPACES, 3, SeededEntropy(0)))
    state = method.init(SPACES, jax.random.key(0))
    seen = value.add(state.unreleased, transitions(rewards), state.network)
    method._release(state._replace(unreleased=seen), noise)


def network_round(rewards: Any, **changes: Any) -> None:
    method = NetworkValueNoise(**PROMISE, batch=BATCH, **changes)
    noise = jax.tree.map(jnp.asarray, method.draw(SPACES, 3 * BATCH, SeededEntropy(0)))
    network = method.init(SPACES, jax.random.key(2), BATCH).network
    method.noised(network, network, transitions(rewards), jnp.array(1), noise)


def gradient_round(rewards: Any, same: bool = False, **changes: Any) -> None:
    method = GradientNoise(**PROMISE, batch=BATCH, start=1, train_every=1, **changes)
    noise = jax.tree.map(jnp.asarray, method.draw(SPACES, 3, SeededEntropy(0)))
    network, batch = method.init(SPACES, jax.random.key(2)).network, transitions(rewards, same=same)
    method.noised(network, network, batch, noise, jnp.array(1))


def output_end(rewards: Any) -> None:
    method = OutputNoise(**PROMISE)
    noise = jax.tree.map(jnp.asarray, method.draw(SPACES, BATCH, SeededEntropy(0)))
    state = method.update(
        method.init(SPACES, jax.random.key(0)), transitions(rewards), jnp.array(0), jax.random.key(0), noise
    )
    method.finish(state, noise)


def input_batch(rewards: Any) -> None:
    method = InputNoise(**PROMISE)
    noise = jax.tree.map(jnp.asarray, method.draw(SPACES, BATCH, SeededEntropy(0)))
    method.update(method.init(SPACES, jax.random.key(0)), transitions(rewards), jnp.array(0), jax.random.key(0), noise)


# How many rounds there are, and the part of the sensitivity that rewards can reach at the least.
STEPS: dict[str, tuple[Any, Callable[..., None], dict[str, Any], int, float]] = {
    "value": (value, value_round, {}, 3, 0.997),
    "value-network, splines": (value_network, network_round, {}, 3, 0.97),
    "value-network, mlp": (value_network, network_round, {"network": "mlp"}, 3, 0.7),
    "value-network, fourier": (value_network, network_round, {"network": "fourier"}, 3, 0.7),
    "gradient": (gradient, gradient_round, {}, 3, 0.98),
    "gradient, one state": (gradient, gradient_round, {"same": True}, 3, 0.99),
    "gradient, clipped": (gradient, gradient_round, {"clip": 0.05, "network": "mlp"}, 3, 0.2),
    "output": (output, output_end, {}, 1, 0.98),
    "input": (input, input_batch, {}, 1, 0.998),
}


def before_noise(module: Any, step: Callable[..., None], changes: dict[str, Any], patch: pytest.MonkeyPatch) -> Any:
    """What would be noised, and the noise's scale, as a function of rewards."""

    def look(rewards: Any) -> tuple[Any, Any]:
        caught = []
        patch.setattr(module, "protect", lambda value, normals, scale: caught.append((value, scale)) or value)
        step(rewards, **changes)
        ((value, scale),) = caught
        return jnp.ravel(value), jnp.asarray(scale)

    return look


def sensitivities() -> dict[str, Any]:
    """What the theorems say, computed here anew."""
    batch = transitions(np.zeros(BATCH))

    def rows(knots: int) -> np.ndarray:
        hats = np.maximum(0, 1 - np.abs((knots - 1) * np.asarray(batch.state, np.float64) - np.arange(knots)))
        return np.concatenate([hats * (np.asarray(batch.action) == a)[:, None] for a in (0, 1)], axis=1)

    return {
        "value": RADIUS * np.sqrt((rows(7).sum(axis=0) > 0).sum()),
        "value-network, splines": RADIUS * np.sqrt((rows(7) @ rows(7).T).sum()) / BATCH,
        "gradient": RADIUS * np.linalg.norm(rows(6).mean(axis=0)),
        "output": RADIUS * np.sqrt(10) / 0.9,
        "input": RADIUS * np.sqrt(BATCH),
    }


@pytest.mark.parametrize("name", STEPS)
def test_nothing_moves_a_release_farther_than_its_sensitivity(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, step, changes, rounds, least = STEPS[name]
    look, rng = jax.jit(jax.vmap(before_noise(module, step, changes, monkeypatch))), np.random.default_rng(1)
    start = rng.uniform(-0.15, 0.15, BATCH)
    here, scale = look(jnp.asarray(np.tile(start, (BATCH, 1)), jnp.float32))

    def moved(directions: np.ndarray) -> np.ndarray:
        there, scales = look(jnp.asarray(start + RADIUS * directions, jnp.float32))
        assert np.allclose(scales, scale[0], rtol=1e-6)  # the scale is public: rewards do not change it
        return np.linalg.norm(np.asarray(there - here, np.float64), axis=1)

    sensitivity = float(scale[0]) * BUDGET.mu / np.sqrt(rounds)
    signs = rng.choice([-1.0, 1.0], (BATCH, BATCH))
    signs[0] = 1
    tried = [moved(signs), moved(rng.uniform(-1, 1, (BATCH, BATCH)))]
    best, farthest = signs[tried[0].argmax()], tried[0].max()
    for _ in range(2 * BATCH):  # greedy: turn the one sign that helps most
        turned = moved(best * (1 - 2 * np.eye(BATCH)))
        tried.append(turned)
        if turned.max() <= farthest:
            break
        best, farthest = best * (1 - 2 * np.eye(BATCH))[turned.argmax()], turned.max()
    assert np.concatenate(tried).max() <= sensitivity * (1 + 1e-5)
    assert farthest >= least * sensitivity
    if name in (expected := sensitivities()):
        assert expected[name] * (1 - 1e-6) <= sensitivity <= 1.03 * expected[name]  # a little more, for rounding


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (64, 100)])
@pytest.mark.parametrize("size", [1e-15, 1.0, 1e12])
def test_the_gram_bound_is_above_what_it_bounds_and_not_far(shape: tuple[int, int], size: float) -> None:
    rng = np.random.default_rng(shape[0])
    for rows in (rng.normal(size=shape), rng.random(shape), np.eye(*shape)):
        slopes = np.asarray(size * rows, np.float32).astype(np.float64)
        gram = slopes @ slopes.T
        exact = min(np.sqrt(np.abs(gram).sum()) / len(gram), np.sqrt(np.linalg.eigvalsh(gram)[-1] / len(gram)))
        assert exact <= float(unit_sensitivity(jnp.asarray(slopes, jnp.float32))) <= 1.2 * exact
    assert float(unit_sensitivity(jnp.zeros(shape))) == 0


_protect = jax.jit(protect.protect)
numbers = st.floats(-1e6, 1e6, width=32)
scales = st.floats(2.0**-40, 2.0**20, width=32)


@given(numbers, numbers, st.floats(-10, 10, width=32), scales)
def test_protect_rounds_to_a_public_grid_and_pulls_nothing_apart(a: float, b: float, z: float, scale: float) -> None:
    one, two = np.asarray(_protect(jnp.array([a, b], jnp.float32), jnp.full(2, z, jnp.float32), jnp.float32(scale)))
    size = float(np.float32(scale) * np.float32(protect.SLACK))
    step = 2.0 ** (np.floor(np.log2(size)) - 6)
    assert size / 128 <= step <= size / 64
    assert one % step == two % step == 0
    assert abs(one) <= (protect.LARGEST + abs(z)) * size * 1.0001 + step
    assert abs(one - two) <= abs(a - b) * 1.0001 + step  # clipping is a projection; rounding adds less than a step


def test_protect_adds_noise_of_the_stated_size() -> None:
    normals = jnp.asarray(SeededEntropy(3).normals((200_000,)), jnp.float32)
    for scale in (1e-6, 0.37, 250.0):
        added = np.asarray(protect.protect(jnp.full(200_000, 2 * scale), normals, scale), np.float64) - 2 * scale
        assert added.std() / scale == pytest.approx(1, abs=0.01)  # six standard errors
        assert abs(added.mean()) / scale < 0.015
        assert np.corrcoef(added, normals)[0, 1] > 0.999


SMALL: dict[str, tuple[Any, Any, int]] = {
    "value": (value, ValueNoise(**PROMISE, round_steps=4, knots=2), 4),
    "value-network": (value_network, NetworkValueNoise(**PROMISE, batch=4, features=2), 4),
    "gradient": (gradient, GradientNoise(**PROMISE, batch=2, start=5, train_every=3, features=2), 3),
    "input": (input, InputNoise(**PROMISE, knots=2), 1),
    "output": (output, OutputNoise(**PROMISE, knots=2), 1),
}


@pytest.mark.parametrize(("copies", "full"), [(1, False), (3, True)])
@pytest.mark.parametrize("name", SMALL)
def test_each_normal_is_used_at_most_once(name: str, copies: int, full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    module, method, every = SMALL[name]
    steps = 4 * every if full else 3 * every + 1
    noise = method.draw(SPACES, steps, SeededEntropy(0))
    size = noise.normals.size
    marked = noise._replace(normals=jnp.arange(1.0, size + 1).reshape(noise.normals.shape))
    used: list[float] = []

    def note(value: Any, normals: Any, scale: Any) -> Any:
        jax.debug.callback(lambda marks: used.extend(np.ravel(marks).tolist()), normals)
        return value

    monkeypatch.setattr(module, "protect", note)
    update = jax.jit(method.update)
    state = method.init(SPACES, jax.random.key(0), copies)
    for step in range(-(-steps // copies) + 2 * every):  # two rounds too many: they must release nothing
        batch = transitions(jnp.ones(copies), seed=step)
        state = update(state, batch, jnp.array(step), jax.random.key(step), marked)
    if name == "output":
        method.finish(state, marked)
    jax.effects_barrier()
    if name == "input":  # what comes after the last normal counts for nothing, whatever was added to it
        assert float(state.sums.weight.sum()) == pytest.approx(steps)
        used = sorted(used)[:steps]
    assert len(set(used)) == len(used) <= size
    assert len(used) == size or copies == 3


@given(st.integers(1, 400), st.integers(1, 60), st.integers(1, 60))
def test_rounds_are_counted_as_they_are_made(steps: int, every: int, start: int) -> None:
    ends = sum((step + 1) % every == 0 for step in range(steps))
    assert ValueNoise(round_steps=every).rounds(steps) == ends + (steps % every > 0)
    assert NetworkValueNoise(batch=every).rounds(steps) == ends
    made = sum(step + 1 >= max(start, every) and (step + 1) % every == 0 for step in range(steps))
    assert GradientNoise(train_every=every, start=start).rounds(steps) == made


def test_a_short_last_round_of_value_is_released_at_the_end() -> None:
    method = ValueNoise(**PROMISE, round_steps=4, knots=2, spread=None, gamma=0.0)
    noise = jax.tree.map(jnp.asarray, method.draw(SPACES, 6, SeededEntropy(0)))
    state = method.init(SPACES, jax.random.key(0))
    update = jax.jit(method.update)
    for step in range(6):
        state = update(state, transitions(jnp.ones(1), seed=step), jnp.array(step), jax.random.key(step), noise)
    assert int(state.round) == 1
    before, after = method.current(state, noise), method.finish(state, noise)
    assert not np.allclose(before.weights, after.weights)
    full = state._replace(unreleased=jax.tree.map(jnp.zeros_like, state.unreleased))
    assert np.array_equal(method.finish(full, noise).weights, before.weights)


@pytest.mark.parametrize("name", SMALL)
def test_certificates_add_up(name: str) -> None:
    _, method, _ = SMALL[name]
    method.check(SPACES, 24)
    rounds = {"value": 6, "value-network": 6, "gradient": 7, "input": 24, "output": 1}[name]
    certificate = method.certificate(SPACES, 24)
    assert (certificate.standing, certificate.method) == ("certified", name)
    assert (certificate.epsilon, certificate.delta, certificate.mu) == (0.9, 1e-4, BUDGET.mu)
    assert certificate.sensitivity == pytest.approx(np.sqrt(rounds))
    assert certificate.sigma == pytest.approx(np.sqrt(rounds) / BUDGET.mu)
    assert certificate.relation == SupBall(RADIUS).describe()
    assert method.core().relation is method.core().budget is None


@pytest.mark.parametrize("name", SMALL)
def test_refusals(name: str) -> None:
    kind = type(SMALL[name][1])
    features = RkhsBall(0.1, Features(lambda x: np.stack([x, x**2], axis=-1), 2))
    for changes, words in (
        ({"relation": None}, "needs a relation and a budget"),
        ({"budget": None}, "needs a relation and a budget"),
        ({"budget": Budget(0.9, 0.0)}, "delta must be above 0"),
        ({"relation": features}, "state a SupBall"),
        ({"relation": Trajectories(10, 1.0)}, "relation must be"),
    ):
        with pytest.raises(InvalidInput, match=words):
            kind(**(PROMISE | changes)).check(SPACES, 5000)
    for few in (GradientNoise(**PROMISE), NetworkValueNoise(**PROMISE)):
        with pytest.raises(InvalidInput, match="steps must be"):
            few.check(SPACES, 100)


def test_radius_of_one_reward() -> None:
    assert sup_radius(people(100, 0, 0.5, 1)) == 0.005
    assert sup_radius(RkhsBall(0.2, Exponential(3.0))) == 0.2
    assert sup_radius(RkhsBall(0.2, Additive((Exponential(3.0),) * 4))) == pytest.approx(0.4)
    with pytest.raises(InvalidInput, match="how much one reward can change"):
        sup_radius(Trajectories(10, 1.0))
    assert issubclass(NoRkhsRadius, InvalidInput)


def test_sums_of_rewards_do_not_lose_more_with_every_step() -> None:
    method, steps = OutputNoise(**PROMISE), 30_000
    start = method.init(SPACES, jax.random.key(0))
    seen = transitions(np.full(BATCH, 0.1))
    one = Transition(*(column[:1] for column in seen))
    sums, _ = jax.lax.scan(lambda sums, _: (averages.add(sums, one, start.network), None), start.sums, None, steps)
    exact = steps * (np.asarray(averages.add(start.sums, one, start.network).rewards, np.float64))
    np.testing.assert_allclose(np.asarray(sums.rewards, np.float64), exact, rtol=3 * 2.0**-24)
