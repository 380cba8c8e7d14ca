"""A reward whose level is not known says so where episodes can end early: once, with what to do about it."""

import warnings

import gymnasium
import pytest
from gymnasium.vector import SyncVectorEnv

from quietq import Budget, PrivateReward, people, privatise
from quietq.mechanisms.candidates import UNEVEN

WORDS = r"Episodes can end early here.*release it with privatise\(..., level=True\)"


def private(**options):
    relation = people(50, low=0, high=1, slope=1)
    return privatise(lambda s: s, Budget(1, 1e-5), relation=relation, domain=(-4.8, 4.8), **options)


def push(env, steps: int = 40) -> None:
    """To one side, until the pole falls."""
    env.reset(seed=0)
    for _ in range(steps):
        if any(env.step(1)[2:4]):
            env.reset()


def push_both(env) -> None:
    for _ in range(40):
        env.step([1, 1])


reward = private(noise="path")


@pytest.mark.parametrize("noise", ["path", "k-norm", "knots"])
def test_an_early_end_is_warned_of_once(noise):
    released = private(noise=noise)
    assert any("can end early" in remark for remark in released.certificate.remarks)
    assert "can end early" in str(released.certificate)
    env = PrivateReward(gymnasium.make("CartPole-v1"), released, state=0)
    with pytest.warns(UserWarning, match=WORDS) as caught:
        push(env)
    assert len(caught) == 1
    several = PrivateReward(SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 2), released, state=0)
    several.reset(seed=0)
    with pytest.warns(UserWarning, match=WORDS) as caught:
        push_both(several)
    assert len(caught) == 1


@pytest.mark.filterwarnings("error")
def test_nothing_is_said_where_the_level_is_known_or_does_not_matter():
    levelled = private(level=True)
    assert UNEVEN not in levelled.certificate.remarks
    push(PrivateReward(gymnasium.make("CartPole-v1"), levelled, state=0))
    push(PrivateReward(gymnasium.make("CartPole-v1", max_episode_steps=5), reward, state=0))  # cut off before it falls
    with warnings.catch_warnings(record=True) as caught:
        push(
            PrivateReward(
                gymnasium.make("quietq.worlds:quietq/Walk-v0"), private(noise="path", level=False), outside="clip"
            ),
            60,
        )
    assert caught == []
