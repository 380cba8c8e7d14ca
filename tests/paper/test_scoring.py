"""How well agents do, by their own rewards or by another, in worlds, environments and vector environments."""

import time
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from quietq import InvalidInput
from quietq.paper.agents import Agent, NoNoise
from quietq.worlds import ThermostatWorld

SMALL = NoNoise(widths=(4,), start=8, batch=4)


class Clock(gymnasium.Env):
    """Counts 1, 2, ... up to its length, whatever one does; the reward is 1 a step."""

    observation_space, action_space = Box(0.0, 100.0, (1,), np.float32), Discrete(2)

    def __init__(self, length: int | None = 4, reward: float = 1.0) -> None:
        self.length, self.reward, self.t = length, reward, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return np.array([min(self.t, 100)], np.float32), self.reward, self.t == self.length, False, {}


def states(seen: Any) -> Any:
    return seen


@pytest.fixture(scope="module")
def single() -> Agent:
    return Agent(Clock(), SMALL, seed=0).learn(20, seeds=2)


@pytest.fixture
def elsewhere(single: Agent, tmp_path: Any) -> Any:
    """The same agent in another environment: nothing is trained again."""
    single.save(tmp_path / "agent.qq")
    return lambda env: Agent.load(tmp_path / "agent.qq", world=env)


def test_the_environment_s_own_reward_or_another(single: Agent) -> None:
    assert single.evaluate(episodes=3) == ([4.0, 4.0], None)
    assert single.evaluate(states, episodes=3) == ([10.0, 10.0], None)  # 1 + 2 + 3 + 4
    assert single.evaluate(reward=lambda seen: 0 * seen + 0.5, episodes=1).returns == [2.0, 2.0]
    assert single.evaluate().returns == [4.0, 4.0]


def test_the_reward_that_an_agent_was_made_with_counts_in_environments_as_in_worlds() -> None:
    agent = Agent(Clock(), SMALL, seed=0, reward=states).learn(20)
    assert agent.evaluate(episodes=2).returns == [10.0]


def test_another_reward_and_another_seed_in_a_world() -> None:
    agent = Agent(ThermostatWorld(), SMALL, seed=0).learn(40)
    once, twice = agent.evaluate(states, episodes=50), agent.evaluate(lambda seen: 2 * seen, episodes=50)
    assert once.returns[0] * 2 == pytest.approx(twice.returns[0])
    assert once.scores is twice.scores is None  # the best under another reward is not known
    assert agent.evaluate(states, seed=1, episodes=50) == agent.evaluate(states, seed=1, episodes=50)
    assert agent.evaluate(states, seed=1, episodes=50) != agent.evaluate(states, seed=2, episodes=50)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_vector_environments_play_their_share_of_episodes(mode: AutoresetMode, elsewhere: Any) -> None:
    env = SyncVectorEnv([lambda: Clock(2), lambda: Clock(8, 10.0)], autoreset_mode=mode)
    agent = elsewhere(env)
    assert agent.evaluate(episodes=6).returns == [(2.0 + 80.0) / 2] * 2  # the short ones are not preferred
    assert agent.evaluate(states, episodes=6).returns == [(3.0 + 36.0) / 2] * 2
    assert agent.evaluate(episodes=1).returns == [2.0] * 2


@pytest.mark.slow
def test_a_default_takes_seconds_and_prints_nothing(single: Agent, elsewhere: Any, capsys: Any) -> None:
    agent = elsewhere(Clock(100))
    agent.evaluate(episodes=1)  # compiles
    began = time.monotonic()
    assert agent.evaluate().returns == [100.0] * 2
    assert time.monotonic() - began < 60
    single.evaluate()
    assert capsys.readouterr() == ("", "")


def test_what_cannot_be_evaluated_is_refused_with_advice_that_works(
    single: Agent, elsewhere: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("quietq.paper.agents.agent.LONGEST", 1000)
    endless = elsewhere(Clock(None))
    with pytest.raises(InvalidInput, match=r"not over after 1,000 steps: give the agent's environment an end"):
        endless.evaluate()
    assert elsewhere(TimeLimit(Clock(None), 500)).evaluate(episodes=1).returns == [500.0] * 2
    with pytest.raises(InvalidInput, match="reward must be a function of many states at once, or None"):
        single.evaluate(3.0)
    with pytest.raises(InvalidInput, match="one finite number for each"):
        single.evaluate(lambda seen: 1.0)
    with pytest.raises(InvalidInput, match="episodes must be"):
        single.evaluate(episodes=0)
