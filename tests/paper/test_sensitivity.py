"""Each certified method's private step: how much noise goes on it, and how often; `audit` sees how far it moves."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st

from quietq import Budget, InvalidInput, NoRkhsRadius, SupBall, people
from quietq.noise.box import Box
from quietq.noise.entropy import SeededEntropy, SystemEntropy
from quietq.paper import FeatureKernel
from quietq.paper.agents import protect
from quietq.paper.agents.in_loop_method import UnitSteps, whole_noise
from quietq.paper.agents.method import EnvironmentSpaces, Moment, Transition
from quietq.paper.baselines import (
    abadi as gradient,
    averages,
    output,
    value,
    value_network,
    venkitasubramaniam as input,
)
from quietq.paper.baselines.abadi import GradientNoise
from quietq.paper.baselines.output import OutputNoise
from quietq.paper.baselines.value import ValueNoise
from quietq.paper.baselines.value_network import NetworkValueNoise, unit_sensitivity
from quietq.paper.baselines.venkitasubramaniam import InputNoise
from quietq.privacy.relations import Exponential, RkhsBall, Trajectories

RADIUS, BUDGET = 0.3, Budget(0.9, 1e-4)
SPACES = EnvironmentSpaces(Box((0.0,), (1.0,)), 2, 50)
PROMISE: dict[str, Any] = {"relation": SupBall(RADIUS), "budget": BUDGET}
BATCH = 48


def transitions(rewards: Any, seed: int = 0) -> Transition:
    """A fixed batch of states and actions, with these rewards."""
    rng, n = np.random.default_rng(seed), len(rewards)
    states, actions = rng.random((2, n, 1)).astype(np.float32), rng.integers(0, 2, n).astype(np.int32)
    before, after = map(jnp.asarray, states)
    nothing = jnp.zeros(n, bool)
    return Transition(before, jnp.asarray(actions), rewards, after, nothing, nothing)


_unit_sensitivity = jax.jit(unit_sensitivity)


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (64, 100)])
@pytest.mark.parametrize("size", [1e-15, 1.0, 1e12])
def test_the_gram_bound_is_above_what_it_bounds_and_not_far(shape: tuple[int, int], size: float) -> None:
    rng = np.random.default_rng(shape[0])
    for rows in (rng.normal(size=shape), rng.random(shape), np.eye(*shape)):
        slopes = np.asarray(size * rows, np.float32).astype(np.float64)
        gram = slopes @ slopes.T
        exact = min(np.sqrt(np.abs(gram).sum()) / len(gram), np.sqrt(np.linalg.eigvalsh(gram)[-1] / len(gram)))
        assert exact <= float(_unit_sensitivity(jnp.asarray(slopes, jnp.float32))) <= 1.2 * exact
    assert float(_unit_sensitivity(jnp.zeros(shape))) == 0


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
    "gradient": (gradient, GradientNoise(**PROMISE, batch=2, start=5, train_every=3, widths=(2,)), 3),
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
        state = update(state, batch, Moment(jnp.array(step), jax.random.key(step), marked))
    if method.name == "output":
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
        state = update(state, transitions(jnp.ones(1), seed=step), Moment(jnp.array(step), jax.random.key(step), noise))
    assert int(state.round) == 1
    before, after = method.current(state, noise), method.finish(state, noise)
    assert not np.allclose(before.weights, after.weights)
    full = state._replace(unreleased=jax.tree.map(jnp.zeros_like, state.unreleased))
    assert np.array_equal(method.finish(full, noise).weights, before.weights)


@pytest.mark.parametrize("name", SMALL)
def test_certificates_add_up(name: str) -> None:
    _, method, _ = SMALL[name]
    method.check(SPACES, 24)
    rounds = {"value": 6, "value-network": 6, "gradient": 7, "input": 24, "output": 1}[method.name]
    certificate = method.certificate(SPACES, 24)
    assert (certificate.standing, certificate.method) == ("certified", method.name)
    assert (certificate.epsilon, certificate.delta, certificate.mu) == (0.9, 1e-4, BUDGET.mu)
    # radius sqrt(rounds) by the theorem, and what float32's rounding adds; of gradients, in units of each step's own
    unit = {"gradient": 1.0, "value-network": 1.0}.get(name, RADIUS)
    if method.name == "output":
        unit *= np.sqrt(SPACES.actions * method.knots) / (1 - method.gamma)
    (query,) = certificate.queries
    assert 1 <= query.sensitivity / (unit * np.sqrt(rounds)) < 1.1
    assert certificate.sigma == query.size == pytest.approx(query.sensitivity / BUDGET.mu, rel=2e-3)
    assert query.family == "gaussian"
    assert certificate.relation == SupBall(RADIUS)
    assert method.core().relation is method.core().budget is None


@pytest.mark.parametrize("name", SMALL)
def test_refusals(name: str) -> None:
    kind = type(SMALL[name][1])
    features = RkhsBall(0.1, FeatureKernel(lambda x: np.stack([x, x**2], axis=-1), 2).norm)
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


def test_noise_that_whole_numbers_do_not_hold_is_refused() -> None:
    """Numbers of 2^53 and more are not all in float64: gaps would show what they were added to."""
    assert whole_noise((2, 5), 1e-8, SystemEntropy()).dtype == np.int32
    for entropy in (UnitSteps(), SystemEntropy()):  # in rehearsal, too, when nothing was charged yet
        with pytest.raises(InvalidInput, match="must be larger"):
            whole_noise((2, 5), 1e-14, entropy)


def test_radius_of_one_reward() -> None:
    assert people(100, 0, 0.5, 1).sup_radius == 0.005
    assert RkhsBall(0.2, Exponential(3.0).norm).sup_radius == 0.2
    assert RkhsBall(0.2, Exponential((3.0,) * 4, summed=True).norm).sup_radius == pytest.approx(0.4)
    with pytest.raises(InvalidInput, match="how much one reward can change"):
        _ = Trajectories(10, 1.0).sup_radius
    assert issubclass(NoRkhsRadius, InvalidInput)


def test_sums_of_rewards_do_not_lose_more_with_every_step() -> None:
    method, steps = OutputNoise(**PROMISE), 30_000
    start = method.init(SPACES, jax.random.key(0))
    seen = transitions(np.full(BATCH, 0.1))
    one = Transition(*(column[:1] for column in seen))
    sums, _ = jax.lax.scan(lambda sums, _: (averages.add(sums, one, start.network), None), start.sums, None, steps)
    exact = steps * (np.asarray(averages.add(start.sums, one, start.network).rewards, np.float64))
    np.testing.assert_allclose(np.asarray(sums.rewards, np.float64), exact, rtol=3 * 2.0**-24)
