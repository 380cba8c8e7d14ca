"""Private worlds in the hands of Gymnasium's vector environments and of Stable-Baselines3."""

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box
from linear_people import read, rows_of
from msgspec import structs

import quietq as qq
from quietq.privacy import Code
from quietq.privacy.certificate import certifying
from quietq.released.private_network import PrivatePolicy
from quietq.worlds.private_env import PrivateWorldEnv, WorldCopies

sb3 = pytest.importorskip("stable_baselines3")
import torch  # noqa: E402
from stable_baselines3.common.env_util import make_vec_env  # noqa: E402

from quietq.worlds.world_vec_env import WorldVecEnv  # noqa: E402

torch.set_num_threads(1)
BUDGET = qq.Budget(4.0, 1e-5)


@pytest.fixture(scope="module")
def certificate() -> qq.Certificate:
    return qq.privatise(read(rows_of(30, 3), 30), BUDGET).certificate


@pytest.fixture(scope="module")
def listed(certificate) -> qq.PrivateWorld:
    """By seeded noise, so that it is always the same, with the certificate that a release would have."""
    return replace(qq.privatise(read(rows_of(30, 3), 30), BUDGET, simulate=0), certificate=certificate).issued()


@pytest.fixture(scope="module")
def numbers(certificate) -> qq.PrivateWorld:
    """Actions are numbers, and nothing ends but by time."""
    sessions = read(rows_of(30, 3, numbers=True), 30, numbers=True, end=None)
    return replace(qq.privatise(sessions, BUDGET, simulate=0), certificate=certificate).issued()


@pytest.mark.parametrize("name", ["listed", "numbers"])
@pytest.mark.parametrize("options", [{}, {"ensemble": 3}, {"halt": None, "noise": False}])
def test_a_copy_steps_as_a_single_environment_does(name, options, request):
    world = request.getfixturevalue(name)
    one, copies = PrivateWorldEnv(world, steps=5, **options), WorldCopies(world, 1, steps=5, **options)
    assert isinstance(world.env(copies=3), WorldCopies)
    seen, _ = one.reset(seed=1)
    together, _ = copies.reset(seed=1)
    copies.action_space.seed(2)
    for _ in range(20):
        action = copies.action_space.sample()
        assert together[0] == pytest.approx(seen, abs=1e-6)
        seen, reward, ended, cut, _ = one.step(action[0])
        together, rewards, terminated, truncated, info = copies.step(action)
        assert copies.observation_space.contains(together)
        assert rewards[0] == pytest.approx(reward)
        assert (bool(terminated[0]), bool(truncated[0])) == (ended, cut)
        assert ("final_obs" in info) == (ended or cut)
        if ended or cut:
            assert info["final_obs"][0] == pytest.approx(seen, abs=1e-6)
            seen, _ = one.reset()


@pytest.mark.parametrize("name", ["listed", "numbers"])
def test_copies_of_one_seed_differ(name, request):
    copies = request.getfixturevalue(name).env(copies=40, steps=4, ensemble=2)
    seen, _ = copies.reset(seed=0)
    for _ in range(12):
        assert len(np.unique(seen[:, 1])) > 10
        seen, rewards, terminated, truncated, _ = copies.step(copies.action_space.sample())
        assert rewards.shape == terminated.shape == truncated.shape == (40,)


def test_wrong_actions_and_steps_before_a_reset_are_refused(listed, numbers):
    with pytest.raises(gymnasium.error.ResetNeeded):
        listed.env(copies=2).step(np.zeros(2, int))
    for world, wrong in ((listed, [0, 2]), (listed, [0]), (numbers, [[0.0], [7.0]])):
        copies = world.env(copies=2)
        copies.reset(seed=0)
        with pytest.raises(qq.InvalidInput, match="actions must be in"):
            copies.step(np.array(wrong))
    with pytest.raises(qq.InvalidInput, match="copies"):
        listed.env(copies=0)


def test_stable_baselines_is_told_where_episodes_end(numbers):
    env = WorldVecEnv(numbers, 6, steps=3, halt=None)
    env.seed(5)
    first = env.reset()
    env.seed(5)
    assert np.array_equal(env.reset(), first)
    assert not np.array_equal(env.reset(), first)
    for step in range(1, 7):
        seen, rewards, over, infos = env.step(np.zeros((6, 1), np.float32))
        assert (rewards.dtype, len(infos)) == (np.float32, 6)
        assert over.tolist() == [step % 3 == 0] * 6
        for i in np.flatnonzero(over):
            assert infos[i]["TimeLimit.truncated"]
            assert not np.array_equal(infos[i]["terminal_observation"], np.asarray(seen)[i])
    assert env.get_attr("certificate") == [numbers.certificate] * 6


@pytest.mark.parametrize(
    "name", ["PPO", "SAC", *(pytest.param(name, marks=pytest.mark.slow) for name in ("A2C", "DQN", "TD3", "DDPG"))]
)
def test_a_policy_that_learned_in_a_world_leaves_with_its_certificate(name, listed, numbers, tmp_path):
    world = numbers if name in ("SAC", "TD3", "DDPG") else listed
    env: Any = WorldVecEnv(world, 2, steps=9) if name in ("PPO", "DQN", "SAC") else world.env(steps=9)
    short = {"PPO": {"n_steps": 8, "batch_size": 16}, "A2C": {"n_steps": 8}}.get(name, {"learning_starts": 8})
    model = getattr(sb3, name)("MlpPolicy", env, policy_kwargs={"net_arch": [4]}, seed=0, device="cpu", **short)
    model.learn(16)
    for trained_on in (world, world.env()):
        qq.publish(model, tmp_path / "policy.qq", trained_on=trained_on)
    policy: Any = qq.load(tmp_path / "policy.qq")
    assert isinstance(policy, PrivatePolicy)
    kept = world.certificate
    assert policy.certificate == kept.with_assumption(Code.TRAINED())
    assert "private world" in policy.in_words()[0]
    seen = np.random.default_rng(0).uniform(-2, 2, (50, 2)).astype(np.float32)
    assert np.abs(policy.predict(seen)[0] - model.predict(seen, deterministic=True)[0]).max() < 1e-4


def test_a_policy_that_learned_elsewhere_is_warned_about(listed, tmp_path):
    class Elsewhere(gymnasium.Env):
        observation_space, action_space = Box(-2, 2, (2,)), gymnasium.spaces.Discrete(2)

    with certifying():
        another = structs.replace(listed.certificate, remarks=("Another one.",))
    other = replace(listed, certificate=another).issued()
    for env in (Elsewhere(), other.env(), WorldVecEnv(other, 2)):
        with pytest.warns(qq.PrivacyWarning, match="your word alone"):
            qq.publish(sb3.PPO("MlpPolicy", env, device="cpu"), tmp_path / "policy.qq", trained_on=listed)
    simulated = qq.privatise(read(rows_of(30, 3), 30), BUDGET, simulate=0)
    model = sb3.PPO("MlpPolicy", make_vec_env(simulated.env, 2), device="cpu")
    with pytest.raises(qq.InvalidInput, match="Only a certified release can be published"):
        qq.publish(model, tmp_path / "policy.qq", trained_on=simulated)
