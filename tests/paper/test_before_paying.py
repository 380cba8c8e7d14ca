"""What could never work is refused before anything is spent, and no reward's value decides whether training goes on."""

import subprocess
import sys
from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from agent_cases import BUDGET, FIFTY, SPENDERS
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from quietq import Accountant, Budget, InvalidInput, SupBall
from quietq.noise.box import Box as States
from quietq.paper import GradientNoise, NetworkValueNoise, ValueNoise
from quietq.paper.agents import Agent
from quietq.paper.agents.gymnasium_loop import LARGEST, read_rewards
from quietq.paper.agents.jax_world import JaxReward
from quietq.paper.agents.method import EnvironmentSpaces
from quietq.paper.agents.training import Training
from quietq.worlds import WalkWorld

PROMISE: dict[str, Any] = {"relation": FIFTY, "budget": BUDGET}
SPACES = EnvironmentSpaces(States((0.0,), (1.0,)), 2, 50)


class Place(gymnasium.Env):
    """Gives what it is told to, from a certain step on."""

    observation_space, action_space = Box(0, 1, (1,), np.float32), Discrete(2)

    def __init__(self, reward: Any = 0.3, observation: Any = (0.5,), start: Any = (0.5,), since: int = 1):
        self.reward, self.observation, self.start, self.since, self.now = reward, observation, start, since, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if self.start is None:
            raise RuntimeError("no display")
        return np.array(self.start, np.float32), {}

    def step(self, action):
        self.now += 1
        strange = self.now >= self.since
        observation = np.array(self.observation if strange else [0.5], np.float32)
        return observation, self.reward if strange else 0.3, False, self.now % 20 == 0, {}


class Raw(VectorEnv):
    """Two copies whose rewards keep their type."""

    num_envs, metadata = 2, {"autoreset_mode": AutoresetMode.NEXT_STEP}
    single_observation_space, single_action_space = Box(0, 1, (1,), np.float32), Discrete(2)
    reward: Any = np.full(2, 0.3, np.float16)

    def reset(self, *, seed=None, options=None):
        return np.full((2, 1), 0.5, np.float32), {}

    def step(self, actions):
        ends = np.zeros(2, bool)
        return np.full((2, 1), 0.5, np.float32), self.reward, ends, ends, {}


def refused(world, words, method=None, error: type[Exception] = InvalidInput, **learn):
    accountant = Accountant(BUDGET)
    agent = Agent(world, method or SPENDERS["output"](), seed=0, account=accountant, **learn.pop("agent", {}))
    with pytest.raises(error, match=words):
        agent.learn(learn.pop("steps", 40), **learn)
    assert accountant.spending.spent_mu == 0


@pytest.mark.parametrize(
    ("world", "words"),
    [
        (lambda: Place(reward=np.float16(0.3)), "float16, whose rounding the noise would not hide"),
        (lambda: Place(reward=jnp.bfloat16(0.3)), "bfloat16, whose rounding"),
        (Raw, "float16, whose rounding"),
        (lambda: SyncVectorEnv([lambda: Place(reward=np.float16(0.3))] * 2), "float16, whose rounding"),
        (lambda: Place(reward=None), "must be one number a step, not NoneType"),
        (lambda: Place(reward=np.array([1.0, 2.0])), r"must be one number a step, not an array of shape \(2,\)"),
        (lambda: Place(reward="0.3"), "must be one number a step, not str"),
        (lambda: Place(start=(np.nan,)), "observations must be finite"),
        (lambda: Place(observation=(np.nan,)), "observations must be finite"),
        (lambda: Place(start=(0.1, 0.2)), r"must have shape \(1,\), as its space says, not \(2,\)"),
        (lambda: Place(observation=(0.1, 0.2)), r"must have shape \(1,\), as its space says, not \(2,\)"),
        (lambda: SyncVectorEnv([Place] * 2, autoreset_mode=AutoresetMode.DISABLED), "must not be DISABLED"),
    ],
)
def test_an_environment_that_cannot_work_costs_nothing(world, words):
    refused(world(), words)


def test_an_environment_that_cannot_be_reset_costs_nothing():
    refused(Place(start=None), "no display", error=RuntimeError)


@pytest.mark.parametrize("reward", [0.3, 1, True, np.float32(0.3), np.float64(0.3), np.int8(1), np.longdouble(0.3)])
def test_types_of_rewards_that_are_exact_enough(reward):
    assert read_rewards(reward, ()) == np.float32(reward)


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf, 1e300, pytest.param(10**400, id="10**400")])
def test_no_value_of_a_reward_ends_a_training(strange):
    accountant = Accountant(BUDGET)
    agent = Agent(Place(reward=strange, since=10), SPENDERS["output"](), seed=0, account=accountant).learn(40)
    assert np.isfinite(agent.q_values([0.5])).all()


def test_rewards_that_are_near_stay_near_whatever_their_size():
    """What is too large for float32 is clipped as what is just not: it does not become 0."""
    for near in (LARGEST, float(np.nextafter(LARGEST, np.inf)), 2 * LARGEST, 1e308, 10**309, np.inf):
        assert read_rewards(near, ()) == np.float32(LARGEST)
    assert read_rewards([np.nan, -np.inf], (2,)).tolist() == [0.0, -LARGEST]


def test_what_comes_up_later_says_that_the_budget_was_spent():
    accountant = Accountant(BUDGET)
    for strange in ({"reward": None}, {"reward": np.float16(0.3)}, {"observation": (np.nan,)}):
        accountant = Accountant(BUDGET)
        with pytest.raises(InvalidInput, match="the budget was spent"):
            Agent(Place(**strange, since=30), SPENDERS["output"](), seed=0, account=accountant).learn(40)
        assert accountant.spending.spent_mu == pytest.approx(BUDGET.mu)


def half(state, _):
    """Computed in half precision."""
    return state[0].astype(jnp.float16)


class HalfWorld(WalkWorld):
    """A preference in half precision."""

    def reward(self, state, xp):
        return super().reward(state, xp).astype(xp.float16)


@pytest.mark.parametrize(
    ("world", "reward"),
    [("walk", JaxReward(half, None, ())), ("walk", lambda states: jnp.bfloat16(states)), (HalfWorld(), None)],
)
def test_compiled_rewards_in_half_precision_are_refused(world, reward):
    refused(world, "not b?float16, whose rounding", agent={"reward": reward})


def test_a_vector_environment_hides_the_types_of_its_copies_and_the_certificate_says_so():
    training = Training(world=SyncVectorEnv([Place] * 2), spaces=SPACES, method=SPENDERS["output"](), seed=0, steps=40)
    assumptions = training.certificate().assumptions
    said = [one.enforced for one in assumptions if "before they were put in one array" in one.text]
    assert said == [False]


def test_a_learner_that_fails_costs_nothing():
    class Bad(NetworkValueNoise):
        def apply(self, network, optimiser, gradient):
            raise RuntimeError("a bad optimiser")

    refused("walk", "a bad optimiser", Bad(**PROMISE, batch=20), RuntimeError)
    refused(Place(), "a bad optimiser", Bad(**PROMISE, batch=20), RuntimeError)


@pytest.mark.slow
def test_double_precision_costs_nothing():
    """In a process of its own: its precision is set for good, and its types are not checked at every call."""
    program = """
from quietq import Accountant, Budget, InvalidInput, SupBall
from quietq.paper import Agent, InputNoise
account = Accountant(Budget(0.9, 1e-4))
agent = Agent("walk", InputNoise(relation=SupBall(0.05), budget=Budget(0.9, 1e-4)), account=account)
try:
    agent.learn(50)
except InvalidInput as error:
    print(account.spending.spent_mu, error)
"""
    done = subprocess.run(
        [sys.executable, "-c", f"import os; os.environ['JAX_ENABLE_X64'] = '1'{program}"],
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("0.0 'input' computes in float32")


def test_numbers_that_float32_cannot_square_are_refused():
    with pytest.raises(InvalidInput, match="clip must be at most 1e"):
        GradientNoise(**PROMISE, clip=1e13)
    many = SupBall(9.9e8, people=10**11)
    with pytest.raises(InvalidInput, match="radius times its number of people must be at most"):
        ValueNoise(relation=many, budget=Budget(0.9, 1e-12)).check(SPACES, 5000)
