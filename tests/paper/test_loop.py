"""The ordinary loop: any Gymnasium environment, single or many at once, with the same methods."""

from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from agent_cases import BUDGET, SMALL
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from quietq import InvalidInput, people, privatise
from quietq.paper import InputNoise, OutputNoise, ValueNoise
from quietq.paper.agents import Agent, NoNoise, RewardNoise
from quietq.paper.agents.gymnasium_loop import loop, spaces_of_env
from quietq.paper.agents.training import Runs
from quietq.worlds import walk_reward


class Counter(gymnasium.Env):
    """Counts to five and terminates; the reward of the n-th step is n. Actions are 3 and 4."""

    def __init__(self, reward: Any = float):
        self.observation_space, self.action_space = Box(0, 10, (1,), np.float32), Discrete(2, start=3)
        self.reward, self.now = reward, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.now = 0
        return np.array([0.0], np.float32), {}

    def step(self, action):
        assert action in (3, 4)
        self.now += 1
        return np.array([self.now], np.float32), self.reward(self.now), self.now == 5, False, {}


def walked(env, steps, method=None):
    return list(loop(method or NoNoise(**SMALL), env, steps, Runs(jax.random.key(0), None, None)))


def test_a_single_environment_is_reset_when_it_is_over():
    seen = walked(Counter(), 12)
    assert [float(rewards[0]) for _, rewards, _ in seen] == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2]
    assert [step for step, (_, _, over) in enumerate(seen, start=1) if over[0]] == [5, 10]


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_copies_are_seen_whole_in_either_mode(mode):
    env = SyncVectorEnv([Counter, Counter], autoreset_mode=mode)
    agent = Agent(env, NoNoise(**SMALL), seed=0).learn(48)
    returns = agent.not_private["episode_returns"]
    assert len(returns) == 2
    assert all(value == 15 for row in returns for value in row)
    assert len(returns[0]) == 4


def test_terminal_states_follow_from_the_state_before_them():
    """What a copy learns from is where the step led, not where the reset did."""
    env = SyncVectorEnv([Counter], autoreset_mode=AutoresetMode.SAME_STEP)
    last = walked(env, 10)[-1][0].replay[:10]
    np.testing.assert_array_equal(np.asarray(last[:, 4]), [1, 2, 3, 4, 5] * 2)  # next states
    np.testing.assert_array_equal(np.asarray(last[:, 3]), [0, 1, 2, 3, 4] * 2)  # states
    np.testing.assert_array_equal(np.asarray(last[:, 2]), [1, 1, 1, 1, 0] * 2)  # to bootstrap from
    waiting = SyncVectorEnv([Counter], autoreset_mode=AutoresetMode.NEXT_STEP)
    last = walked(waiting, 12)[-1][0].replay[:12]
    np.testing.assert_array_equal(np.asarray(last[:, 4]), [1, 2, 3, 4, 5, 5] * 2)


@pytest.mark.slow
def test_methods_learn_in_a_loop_as_well():
    fifty = people(200, low=0, high=0.5, slope=1)
    for method in (
        ValueNoise(relation=fifty, budget=BUDGET, round_steps=500),
        InputNoise(relation=fifty, budget=BUDGET),
        OutputNoise(relation=fifty, budget=BUDGET),
    ):
        agent = Agent(gymnasium.make("quietq.worlds:quietq/Walk-v0"), method, seed=0).learn(2000)
        assert agent.certificate.standing == "certified"
        assert agent.predict([[0.05], [0.95]])[0].tolist() == [1, 0]
    vector = gymnasium.make_vec("quietq.worlds:quietq/Walk-v0", 3)
    agent = Agent(vector, InputNoise(relation=fifty, budget=BUDGET), seed=0).learn(2000)
    assert agent.predict([[0.05], [0.95]])[0].tolist() == [1, 0]


def test_a_private_reward_takes_the_place_of_the_environments():
    private = privatise(walk_reward, BUDGET, relation=people(50, 0, 0.5, 1), simulate=1)
    env = gymnasium.wrappers.TransformReward(gymnasium.make("quietq.worlds:quietq/Walk-v0"), lambda reward: 1e6)
    env.reset(seed=0)
    assert env.step(0)[1] == 1e6
    agent = Agent(env, RewardNoise(private, **SMALL), seed=0)
    agent.learn(60)
    assert np.abs(agent.q_values(np.linspace(0, 1, 5)[:, None])).max() < 100
    assert agent.not_private == {}


def test_what_cannot_work_is_refused():
    with pytest.raises(InvalidInput, match="finite"):
        walked(Counter(reward=lambda _: float("nan")), 3)
    with pytest.raises(InvalidInput, match="Discrete"):
        spaces_of_env(gymnasium.make("Pendulum-v1"))
    with pytest.raises(InvalidInput, match="bounded Box"):
        spaces_of_env(gymnasium.make("CartPole-v1"))
    with pytest.raises(InvalidInput, match="DISABLED"):
        walked(SyncVectorEnv([Counter], autoreset_mode=AutoresetMode.DISABLED), 3)
    private = privatise(walk_reward, BUDGET, relation=people(50, 0, 0.5, 1), simulate=1)
    with pytest.raises(InvalidInput, match="is defined on"):
        Agent(Counter(), RewardNoise(private)).learn(10)
