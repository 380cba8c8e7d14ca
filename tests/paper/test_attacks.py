"""Ways in which noise could be used twice, left out or undone: each was found to work once, and must not again."""

from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agent_cases import STEPS
from gymnasium.spaces import Box as BoxSpace, Discrete

from quietq import Accountant, Budget, BudgetExhausted, InvalidInput, people, privatise
from quietq.noise.box import Box
from quietq.noise.entropy import SeededEntropy
from quietq.paper import GradientNoise, InputNoise, OutputNoise
from quietq.paper.agents import Agent, RewardNoise, trainer
from quietq.paper.agents.method import EnvironmentSpaces, Transition
from quietq.paper.agents.networks import DeepQNetwork
from quietq.paper.agents.protect import protect
from quietq.paper.agents.training import Training
from quietq.paper.baselines.averages import add
from quietq.paper.baselines.value_network import NetworkValueNoise
from quietq.privacy.assumptions import Code
from quietq.worlds import WalkWorld, walk_reward

BUDGET, FIFTY = Budget(epsilon=0.9, delta=1e-4), people(50, low=0, high=0.5, slope=1)
PROMISE: dict[str, Any] = {"relation": FIFTY, "budget": BUDGET}
POINTS = np.linspace(0, 1, 9)[:, None]
SPACES = EnvironmentSpaces(Box((0.0,), (1.0,)), 2, 50)


@pytest.mark.parametrize("scale", [0.0, np.nan, np.inf, -1.0, 1e-40, 1e30])
def test_a_scale_that_is_no_ordinary_number_releases_nothing(scale):
    released = protect(jnp.array([0.3, 7.0]), jnp.array([0.1, -0.2]), jnp.float32(scale))
    np.testing.assert_array_equal(np.asarray(released), 0)


def test_values_that_are_not_finite_count_as_nothing():
    normals = jnp.array([0.5, -1.0, 2.0])
    hostile = protect(jnp.array([jnp.nan, jnp.inf, -jnp.inf]), normals, jnp.float32(1.0))
    np.testing.assert_array_equal(np.asarray(hostile), np.asarray(protect(jnp.zeros(3), normals, jnp.float32(1.0))))


def steep(network: DeepQNetwork) -> DeepQNetwork:
    """A network with ordinary values and slopes beyond float32's squares."""
    sizes = [1e-20, 1e20]
    layers = tuple(
        jax.tree.map(lambda leaf, size=size: jnp.full_like(leaf, size), layer)
        for layer, size in zip(network.layers, sizes, strict=True)
    )
    return DeepQNetwork(layers, network.box)


@pytest.mark.parametrize("kind", [GradientNoise, pytest.param(NetworkValueNoise, marks=pytest.mark.slow)])
def test_slopes_that_overflow_release_nothing(kind):
    chosen: dict[str, Any] = {} if kind is GradientNoise else {"network": "mlp"}
    method = kind(**PROMISE, **chosen, widths=(1,), batch=4)
    noise = jax.tree.map(jnp.asarray, method.draw(SPACES, 5000, SeededEntropy(0)))
    network = method.init(SPACES, jax.random.key(0)).network
    assert isinstance(network, DeepQNetwork)
    network = steep(network)
    zeros, ends = jnp.zeros(4, jnp.int32), jnp.zeros(4, bool)
    for rewards in (0.0, 0.01):
        batch = Transition(jnp.ones((4, 1)), zeros, jnp.full(4, rewards), jnp.ones((4, 1)), ends, ends)
        noised = jax.jit(method.noised)
        if kind is GradientNoise:
            moved = noised(network, network, batch, noise, jnp.array(0))
            assert all((np.asarray(leaf) == 0).all() for leaf in jax.tree.leaves(moved))
        else:
            quiet = noised(network, network, batch, jnp.array(0), noise)
            silent = noised(network, network, batch._replace(reward=jnp.zeros(4)), jnp.array(0), noise)
            for one, other in zip(jax.tree.leaves(quiet), jax.tree.leaves(silent), strict=True):
                np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


class Glitch(gymnasium.Env):
    """Shows one observation that is no number."""

    observation_space, action_space = BoxSpace(0, 1, (1,), np.float32), Discrete(2)
    now = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.array([0.5], np.float32), {}

    def step(self, action):
        self.now += 1
        return np.array([np.nan if self.now == 50 else 0.5], np.float32), 0.25, False, False, {}


def test_a_training_that_was_ended_is_not_gone_on_with(monkeypatch):
    """Steps after its end would be noised with what is left of the same numbers."""

    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(trainer, "advance", stop)
    agent = Agent("walk", InputNoise(**PROMISE), seed=1, account=(account := Accountant(BUDGET)))
    with pytest.raises(KeyboardInterrupt):
        agent.learn(STEPS)
    assert agent.spent
    assert account.spending.spent_mu == pytest.approx(BUDGET.mu)
    with pytest.raises(BudgetExhausted):
        agent.learn(STEPS)


def test_a_mistake_does_not_give_the_budget_back():
    agent = Agent("walk", InputNoise(**PROMISE), account=Accountant(BUDGET)).learn(STEPS)
    with pytest.raises(BudgetExhausted):
        agent.learn(0)
    with pytest.raises(BudgetExhausted):
        agent.learn(100, simulate=1)
    with pytest.raises(BudgetExhausted):
        agent.learn(100)


def test_rewards_that_are_not_finite_are_refused_before_anything_is_spent():
    agent = Agent("walk", InputNoise(**PROMISE), account=(account := Accountant(BUDGET)), reward=lambda s: s / 0.0)
    with pytest.raises(InvalidInput, match="finite"):
        agent.learn(100)
    assert account.spending.spent_mu == 0


def test_knots_that_were_hardly_seen_do_not_count():
    method = OutputNoise(**PROMISE, knots=2)
    start = method.init(SPACES, jax.random.key(0))
    here = jnp.array([[1 - 2.0**-24]])
    ends = jnp.zeros(1, bool)
    seen = Transition(here, jnp.zeros(1, jnp.int32), jnp.array([0.3]), here, ends, ends)
    sums = jax.jit(add)(start.sums, seen, start.network)
    assert sums.seen.tolist() == [[False, True], [False, False]]
    np.testing.assert_allclose(np.asarray(sums.means()), [[0, 0.3], [0, 0]], rtol=1e-6)


def test_an_agent_trusts_that_an_environment_hides_its_reward():
    private = privatise(walk_reward, BUDGET, relation=FIFTY)
    for world in (gymnasium.make("quietq.worlds:quietq/Walk-v0"), Glitch(), Nosy()):
        for method in (RewardNoise(private, widths=(8,), start=32), InputNoise(**PROMISE)):
            certificate = Training(world=world, spaces=SPACES, method=method, seed=0, steps=40).certificate()
            assert certificate.assumptions.count(Code.INDEPENDENT()) == 1
            assert certificate.standing == "certified"


class Nosy(WalkWorld):
    """A world of one's own, which ends where its own preference is high."""

    def move(self, state, action, draws, xp):
        after, _ = super().move(state, action, draws, xp)
        return after, self.reward(after, xp) > 0.4


def test_an_agent_says_whether_an_account_was_charged():
    for account, words, enforced in (
        (None, "No account was given: other releases of the same data add up.", False),
        (Accountant(BUDGET), "The release was charged to an Accountant in memory before the draw.", True),
    ):
        certificate = Agent("walk", InputNoise(**PROMISE), account=account).learn(STEPS).certificate
        assert (certificate.assumptions[-1].text, certificate.assumptions[-1].enforced) == (words, enforced)
