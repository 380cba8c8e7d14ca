"""Parts of a budget with a delta, where noise is added as it goes: bandits, and methods that train."""

import pytest

pytest.importorskip("jax")

from quietq import Budget, InvalidInput, SupBall, load
from quietq.online import Elimination, LocalUCB, TreeUCB
from quietq.paper import Agent, OutputNoise, ValueNoise
from quietq.paper.agents.trainer import spaces_of
from quietq.publishing import publish
from quietq.worlds import WALK

WHOLE = Budget(1, 1e-5)
HALF, _ = WHOLE.split(0.5, 0.5)
ONLY = "good for Gaussian noise only"


@pytest.mark.parametrize("policy", [TreeUCB, LocalUCB])
def test_policies_with_pure_noise_refuse_a_part(policy):
    with pytest.raises(InvalidInput, match=f"{ONLY}.*noise of {policy.__name__} has no mu"):
        policy(3, HALF, arrivals=10_000)


def test_policies_with_gaussian_noise_take_it():
    assert Elimination(3, HALF, arrivals=10_000).certificate.mu == pytest.approx(HALF.mu)


@pytest.mark.parametrize("method", [OutputNoise, ValueNoise])
def test_methods_that_train_take_a_part(method):
    part = method(budget=HALF, relation=SupBall(0.01, people=50))
    part.check(spaces_of(WALK), 1000)
    assert part.certificate(spaces_of(WALK), 1000).mu == pytest.approx(HALF.mu)


def test_an_agent_of_a_part_is_loaded_again(tmp_path):
    agent = Agent("walk", OutputNoise(relation=SupBall(0.01, people=1000), budget=HALF)).learn(200)
    publish(agent, tmp_path / "agent.qq")
    agent.save(tmp_path / "agent.npz")
    for again in (load(tmp_path / "agent.qq").certificate, Agent.load(tmp_path / "agent.npz").certificate):
        assert again is not None
        assert again.mu == pytest.approx(HALF.mu)
