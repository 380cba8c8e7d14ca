"""The wrapper in the hands of real libraries."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics
from gymnasium.wrappers.vector import RecordEpisodeStatistics as RecordVector

import quietq.worlds
from quietq.mechanisms import GaussianProcessMechanism
from quietq.privacy import Budget, InvalidInput, people
from quietq.worlds import PrivateReward

MECHANISM = GaussianProcessMechanism.for_relation(people(50, 0, 0.5, 1), Budget(0.9, 1e-4), levels=10)
PRIVATE = MECHANISM.simulate(lambda s: 0.5 - abs(s - 0.5), seed=1)


def raw() -> gymnasium.Env:
    assert quietq.worlds
    return gymnasium.make("quietq.worlds:quietq/Walk-v0")


def make() -> gymnasium.Env:
    return PrivateReward(raw(), PRIVATE)


def at(states: Any) -> np.ndarray:
    return PRIVATE(np.asarray(states, dtype=np.float64)[..., 0])


def test_stable_baselines3_learns_from_private_rewards_only() -> None:
    sb3 = pytest.importorskip("stable_baselines3")
    import torch

    torch.set_num_threads(1)
    from stable_baselines3.common.env_util import make_vec_env

    dqn = sb3.DQN("MlpPolicy", make_vec_env(make, n_envs=4, seed=0), learning_starts=50, seed=0, device="cpu")
    dqn.learn(208)
    buffer: Any = dqn.replay_buffer
    stored = buffer.rewards[: buffer.pos]
    assert stored.shape == (52, 4)
    assert np.array_equal(stored, at(buffer.next_observations[: buffer.pos]).astype(np.float32))
    returns = [episode["r"] for episode in dqn.ep_info_buffer or ()]
    assert returns == pytest.approx(stored[:50].sum(axis=0), abs=1e-4)

    ppo = sb3.PPO("MlpPolicy", make_vec_env(make, n_envs=4, seed=0), n_steps=64, n_epochs=2, seed=0, device="cpu")
    ppo.learn(256)
    returns = [episode["r"] for episode in ppo.ep_info_buffer or ()]
    assert len(returns) == 4
    low, high = (50 * end(PRIVATE(np.linspace(0, 1, 1025))) for end in (np.min, np.max))
    assert low <= min(returns) <= max(returns) <= high


def test_a_monitor_underneath_is_refused() -> None:
    make_vec_env = pytest.importorskip("stable_baselines3.common.env_util").make_vec_env

    with pytest.raises(InvalidInput, match=r"Monitor lies underneath PrivateReward.*put it on top"):
        make_vec_env(raw, n_envs=1, wrapper_class=PrivateReward, wrapper_kwargs={"private": PRIVATE})  # pyright: ignore
    with pytest.raises(InvalidInput, match="wrap each environment before it becomes part of a VecEnv"):
        PrivateReward(make_vec_env(raw, n_envs=1), PRIVATE)  # pyright: ignore[reportCallIssue, reportArgumentType]


def test_cleanrl_style_thunks() -> None:
    def thunk() -> gymnasium.Env:
        return RecordEpisodeStatistics(make())

    envs = SyncVectorEnv([thunk] * 3)
    envs.reset(seed=0)
    total, truncated, info = np.zeros(3), np.zeros(3), {}
    for _ in range(50):
        observations, rewards, _, truncated, info = envs.step(envs.action_space.sample())
        assert np.array_equal(rewards, at(observations))
        total += rewards
    assert truncated.all()
    assert info["episode"]["r"] == pytest.approx(total)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_recording_on_top_of_a_private_vector_environment(mode: AutoresetMode) -> None:
    envs = RecordVector(PrivateReward(SyncVectorEnv([raw] * 3, autoreset_mode=mode), PRIVATE))
    envs.reset(seed=0)
    total, truncated, info = np.zeros(3), np.zeros(3), {}
    for _ in range(50):
        observations, rewards, _, truncated, info = envs.step(envs.action_space.sample())
        last = np.stack(info["final_obs"]) if "final_obs" in info else observations
        assert np.array_equal(rewards, at(last))
        total += rewards
    assert truncated.all()
    assert ("final_obs" in info) == (mode is AutoresetMode.SAME_STEP)
    assert info["episode"]["r"] == pytest.approx(total)


WORKERS = """
import cloudpickle
import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from gymnasium.wrappers import RecordEpisodeStatistics
from stable_baselines3.common.vec_env import SubprocVecEnv

import quietq.worlds
from quietq import Budget, GaussianProcessMechanism, InvalidInput, people
from quietq.worlds.private_reward import PrivateReward

mechanism = GaussianProcessMechanism.for_relation(people(50, 0, 0.5, 1), Budget(0.9, 1e-4), levels=10)
private = mechanism.apply(lambda s: 0.5 - abs(s - 0.5))

def raw():
    import quietq.worlds
    return gymnasium.make("quietq.worlds:quietq/Walk-v0")

def make():
    return PrivateReward(raw(), private, state=lambda batch: batch[:, 0])

def at(states):
    return private(np.asarray(states, dtype=np.float64)[..., 0])

if __name__ == "__main__":
    copied = cloudpickle.loads(cloudpickle.dumps(make()))
    copied.reset()
    state, reward, *_ = copied.step(1)
    assert reward == at(state)
    workers = SubprocVecEnv([make, make], start_method="fork")
    workers.reset()
    for _ in range(60):
        states, rewards, dones, infos = workers.step(np.array([0, 1]))
        last = [i["terminal_observation"] if d else s for s, d, i in zip(states, dones, infos)]
        assert np.array_equal(rewards, at(last).astype(np.float32))
    workers.close()
    for mode in AutoresetMode:
        for env in (
            PrivateReward(AsyncVectorEnv([raw, raw], autoreset_mode=mode), private),
            AsyncVectorEnv([make, make], autoreset_mode=mode),
        ):
            env.reset(seed=0)
            for step in range(50 if mode is AutoresetMode.DISABLED else 110):
                states, rewards, _, _, info = env.step(np.array([0, 1]))
                if mode is AutoresetMode.NEXT_STEP and step % 51 == 50:
                    assert (rewards == 0).all()
                else:
                    assert np.array_equal(rewards, at(np.stack(info.get("final_obs", states))))
            env.close()
    below = AsyncVectorEnv([lambda: RecordEpisodeStatistics(raw())])
    try:
        PrivateReward(below, private)
    except InvalidInput as error:
        print(error)
    below.close()
"""


@pytest.mark.slow
def test_worker_processes(tmp_path: Path) -> None:
    # In a process of its own, because cloudpickle cannot take apart what the tests' type checker has wrapped.
    script = tmp_path / "workers.py"
    script.write_text(WORKERS)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "RecordEpisodeStatistics lies underneath PrivateReward" in done.stdout


@pytest.mark.filterwarnings("ignore::UserWarning:minari", "ignore:Implicitly cleaning up:ResourceWarning")
def test_minari_data_is_relabelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    import minari

    collector = minari.DataCollector(raw(), data_format="arrow")
    with pytest.raises(InvalidInput, match="DataCollector lies underneath"):
        PrivateReward(collector, PRIVATE)
    for seed in range(3):
        collector.reset(seed=seed)
        truncated = False
        while not truncated:
            _, _, _, truncated, _ = collector.step(collector.action_space.sample())
    data = collector.create_dataset("quietq/walk/random-v0", algorithm_name="random", author="nobody")
    collector._tmp_dir.cleanup()  # its own close leaves the finaliser, which warns
    episodes = list(data.iterate_episodes())
    assert len(episodes) == 3
    for episode in episodes:
        states = episode.observations
        rewards = PRIVATE(states[1:, 0])
        assert np.array_equal(rewards, at(states[1:]))
        assert rewards.shape == episode.rewards.shape
        assert not np.isin(rewards, episode.rewards).any()
        assert not np.shares_memory(rewards, episode.rewards)


@pytest.mark.slow
def test_a_stock_dqn_learns_the_walk_from_two_hundred_people():
    """5,000 steps on the private reward of 200 people at epsilon = 0.9: a return of at least 20 (the best is 20.7)."""
    import polars
    import stable_baselines3 as sb3

    from quietq.feedback import Ratings
    from quietq.mechanisms import privatise
    from quietq.worlds import policy_return, walk_reward

    states = np.linspace(0, 1, 9)
    ratings = polars.DataFrame(
        {
            "person": np.repeat(np.arange(200), 9),
            "state": np.tile(states, 200),
            "rating": np.tile(walk_reward(states), 200),
        }
    )
    group = Ratings.read(ratings, box=(0, 1), low=0, high=0.5, slope=1, people=200)
    private = privatise(group, Budget(0.9, 1e-4), simulate=0)
    model = sb3.DQN("MlpPolicy", PrivateReward(raw(), private), seed=0, device="cpu")
    model.learn(5_000)

    def policy(s: np.ndarray) -> np.ndarray:
        return model.predict(np.asarray(s, np.float32).reshape(-1, 1), deterministic=True)[0]

    assert policy_return(policy) >= 20
