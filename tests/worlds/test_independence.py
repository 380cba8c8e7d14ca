"""An environment that shows its own reward cannot be found out: every certificate names what is trusted of it."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from quietq import Accountant, Budget, GaussianProcessMechanism, LipschitzBall, SupBall, people
from quietq.privacy.assumptions import Code
from quietq.worlds import PrivateReward

BUDGET = Budget(0.9, 1e-4)
PRIVATE = GaussianProcessMechanism.for_relation(people(50, 0, 0.5, 1), BUDGET).apply(lambda s: 0.5 - abs(s - 0.5))


class Open(gymnasium.Env):
    """Walks about in [0, 1] under a reward of somebody's."""

    observation_space, action_space = Box(0.0, 1.0, (1,), np.float32), Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.at = self.np_random.random()
        return np.array([self.at], np.float32), {}

    def step(self, action: Any) -> Any:
        self.at = float(np.clip(self.at + (2 * action - 1) * self.np_random.random() / 4, 0, 1))
        return np.array([self.at], np.float32), 0.5 - abs(self.at - 0.5), False, False, {}


@pytest.mark.parametrize(
    "wrap",
    [
        lambda: PrivateReward(Open(), PRIVATE),
        lambda: PrivateReward(TimeLimit(Open(), 5), PRIVATE, on="state"),
        lambda: PrivateReward(SyncVectorEnv([Open, Open]), PRIVATE),
        lambda: PrivateReward(gymnasium.make("quietq.worlds:quietq/Walk-v0"), PRIVATE),
        lambda: PrivateReward.of(Open(), LipschitzBall(0.01, 0.04), BUDGET),
        lambda: PrivateReward.of(Open(), SupBall(0.01), BUDGET, rewards=9),
    ],
)
def test_that_an_environment_hides_its_reward_is_trusted(wrap: Any) -> None:
    assert wrap().certificate.assumptions.count(Code.INDEPENDENT()) == 1
    assert not Code.INDEPENDENT.enforced


def test_a_wrapped_reward_s_certificate_is_otherwise_its_own() -> None:
    assert PRIVATE.certificate.assumptions == PrivateReward(Open(), PRIVATE).certificate.assumptions[:-1]


def test_accounts_are_named_by_an_environment_s_own_reward() -> None:
    make = lambda **more: PrivateReward.of(Open(), SupBall(0.01), BUDGET, rewards=9, **more)  # noqa: E731
    assert make().certificate.assumptions[-1].text == "No account was given: other releases of the same data add up."
    env = make(account=Accountant(BUDGET))
    assert env.certificate.assumptions[-1] == Code.NOT_CHARGED_YET()
    env.reset(seed=0)
    env.step(env.action_space.sample())
    last = env.certificate.assumptions[-1]
    assert (last.text, last.enforced) == ("The release was charged to an Accountant in memory before the draw.", True)
