"""Actor-critic: it learns from what was released, and from nothing else."""

import hashlib
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agent_cases import STEPS

from quietq import Budget, Certificate, InvalidInput, SupBall, people, privatise, publish
from quietq.noise.box import Box
from quietq.noise.entropy import SeededEntropy
from quietq.paper import Agent, InputNoise
from quietq.paper.agents import trainer
from quietq.paper.agents.actor_critic import ActorCritic, estimate
from quietq.paper.agents.deep_q import NoNoise
from quietq.paper.agents.hyper_parameters import options_of
from quietq.paper.agents.jax_world import as_jax, stack
from quietq.paper.agents.method import EnvironmentSpaces, Transition
from quietq.paper.agents.networks import LinearQ
from quietq.paper.agents.reward_learner import ReleasedValues, RewardLearner, RewardNoise
from quietq.worlds import score
from quietq.worlds.walk import WalkWorld, walk_reward

WORLD, BUDGET = WalkWorld(), Budget(0.9, 1e-4)
SPACES = trainer.spaces_of(WORLD)
SIMULATED = Certificate(method="value", standing="none", reproducible=True)


def private_reward(count: int = 100, simulate: int | None = None) -> Any:
    return privatise(
        walk_reward, BUDGET, noise="path", relation=people(count, 0, 0.5, 1), domain=(0, 1), simulate=simulate
    )


def train(method: ActorCritic, steps: int) -> tuple[Any, Any]:
    method.check(SPACES, steps)
    sources, core = method.rewards, cast(Any, method.core())
    noise = method.draw(SPACES, steps, SeededEntropy(0))
    assert noise is None
    runs = trainer.Runs(
        jax.random.split(jax.random.key(3), len(sources)), stack([as_jax(one) for one in sources]), noise
    )
    carry, _ = trainer.advance(core, WORLD, runs, trainer.begin(core, WORLD, runs), 0, steps)
    return core, trainer.release(core, runs, carry)


def scores(core: ActorCritic, released: Any) -> np.ndarray:
    points = jnp.linspace(0, 1, 513)[:, None]
    values = jax.vmap(lambda one: jax.vmap(lambda x: core.values(one, x))(points))(released)
    assert np.allclose(np.exp(np.asarray(values)).sum(axis=-1), 1, atol=1e-5)  # log-probabilities
    return np.array([score(np.argmax(one, axis=-1), cells=512) for one in np.asarray(values)])


def released_values(certificate: Certificate, right_until: float = 0.5) -> ReleasedValues:
    knots = np.linspace(0, 1, 9)
    weights = jnp.asarray([knots - right_until, right_until - knots], jnp.float32)
    return ReleasedValues(NoNoise(), LinearQ(weights, SPACES.box, 9), SPACES.box, certificate)


def test_it_learns_the_walk_from_a_private_reward() -> None:
    core, released = train(ActorCritic([private_reward(100, simulate=i) for i in range(2)]), 5000)
    reached = scores(core, released)
    assert reached.mean() >= 0.95
    assert reached.min() >= 0.9


@pytest.mark.slow
def test_it_learns_from_released_values() -> None:
    sources = [released_values(SIMULATED), released_values(SIMULATED, right_until=0.25)]
    method = ActorCritic(sources, network="splines", features=9, learning_rate=0.05, batch=250)
    core, released = train(method, 5000)
    assert method.gamma == core.gamma == 0  # values count the future already
    points = jnp.linspace(0, 1, 101)[:, None]
    choices = np.asarray(jax.vmap(lambda one: jax.vmap(lambda x: core.values(one, x).argmax())(points))(released))
    for source, chosen in zip(sources, choices, strict=True):
        wanted = np.asarray(jax.vmap(source.reward.at)(points))
        clear = np.abs(wanted[:, 1] - wanted[:, 0]) > 0.15
        assert (chosen == wanted.argmax(axis=1))[clear].all()


def test_certificates_are_those_of_the_source() -> None:
    private = private_reward()
    method = ActorCritic(private)
    assert method.certificate(SPACES, 5000) is private.certificate
    assert private.certificate.standing == "certified"
    method.check(SPACES, 5000)
    values = released_values(private.certificate)
    ActorCritic(values).check(SPACES, 5000)
    assert ActorCritic(values).certificate(SPACES, 5000) is private.certificate
    simulated = ActorCritic(private_reward(simulate=0))
    simulated.check(SPACES, 5000)
    assert simulated.certificate(SPACES, 5000).standing == "none"


def test_raw_rewards_are_refused() -> None:
    unnoised = NoNoise().certificate(SPACES, 5000)
    claimed = Certificate(
        method="published",
        standing="claimed",
        relation=SupBall(1.0),
        budget=Budget(0.9, 1e-4),
        remarks=("It does not hold.",),
    )
    for source, words in (
        (None, "what privatise returns"),
        ([], "what privatise returns"),
        (released_values(unnoised), "standing is 'none'"),
        (released_values(claimed), "standing is 'claimed'"),
        ([private_reward(), private_reward()], "several releases"),
    ):
        with pytest.raises(InvalidInput, match=words) as refusal:
            ActorCritic(source).check(SPACES, 5000)
        assert str(refusal.value).count(". ") == 0  # one sentence
    method = ActorCritic()
    object.__setattr__(method, "private", walk_reward)  # the tests' type checker would refuse it earlier
    with pytest.raises(InvalidInput, match="actor-critic needs a private reward: what privatise returns"):
        method.check(SPACES, 5000)
    with pytest.raises(InvalidInput, match="states lie in"):
        ActorCritic(private_reward()).check(EnvironmentSpaces(Box((0.0,), (2.0,)), 2, 50), 5000)
    with pytest.raises(InvalidInput, match="at least one batch"):
        ActorCritic(private_reward()).check(SPACES, 10)


def test_both_methods_on_private_rewards_are_alike() -> None:
    private = private_reward(simulate=0)
    for kind in (RewardNoise, ActorCritic):
        method = kind(private)
        assert method == kind(private=private)
        assert isinstance(method, RewardLearner)
        assert (method.uses_true_reward, method.spends, method.core().private) == (False, False, None)
        assert hash(method.core()) == hash(kind(private_reward(simulate=1)).core())
        settings = method.settings()
        assert settings["method"] == method.name
        assert len(str(settings["private"])) == len(hashlib.sha256().hexdigest())
        assert settings != kind(private_reward(simulate=1)).settings()
        assert all(field.metadata["help"].endswith(".") for field in options_of(kind).values())
    assert ActorCritic(released_values(SIMULATED)).settings()["private"]
    with pytest.raises(InvalidInput, match="reward needs a private reward"):
        RewardNoise(released_values(SIMULATED)).check(SPACES, 5000)  # values are no reward


def test_advantages_are_those_of_the_sum() -> None:
    rng, gamma, trace = np.random.default_rng(0), 0.9, 0.7
    reward, here, there = rng.normal(size=(3, 12, 1)).astype(np.float32)
    terminated, truncated = np.zeros((2, 12, 1), bool)
    terminated[4], truncated[8] = True, True
    there[4] = 100.0  # must not matter
    states, ends = jnp.zeros((12, 1, 1)), map(jnp.asarray, (terminated, truncated))
    seen = Transition(states, jnp.zeros((12, 1), jnp.int32), jnp.asarray(reward), states, *ends)
    found = np.asarray(estimate(seen, jnp.asarray(here), jnp.asarray(there), gamma, trace))[:, 0]
    for first in range(12):
        total = 0.0
        for step in range(first, 12):
            following = 0.0 if terminated[step, 0] else gamma * there[step, 0]
            total += (gamma * trace) ** (step - first) * (reward[step, 0] + following - here[step, 0])
            if terminated[step, 0] or truncated[step, 0]:
                break
        assert found[first] == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize("field", [{"gamma": 1.5}, {"trace": -0.1}, {"epochs": 0}, {"entropy": -1.0}, {"ratio": 0.0}])
def test_settings_are_checked(field: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(field))):
        ActorCritic(**field)


@pytest.mark.slow
def test_values_of_an_agent_or_of_a_file_bring_their_certificate(tmp_path: Path) -> None:
    method = InputNoise(relation=people(50, 0, 0.5, 1), budget=BUDGET)
    agent = Agent(WORLD, method, seed=1).learn(STEPS)
    publish(agent, tmp_path / "agent.qq")
    states = jnp.linspace(0, 1, 7)[:, None]
    for source in (agent, Agent.load(tmp_path / "agent.qq")):
        values = source.released_values()
        assert values.certificate == agent.certificate
        assert np.allclose(jax.vmap(values.reward.at)(states), agent.q_values(states), atol=1e-5)
    policy = Agent(WORLD, ActorCritic(values, network="splines", features=4, batch=50), seed=0).learn(50)
    assert policy.certificate == agent.certificate
