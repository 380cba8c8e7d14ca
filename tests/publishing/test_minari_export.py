"""Rollouts of a private world as a Minari data set, read by Minari itself and by d3rlpy."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from releases import make

import quietq as qq
from quietq.privacy import Certificate
from quietq.publishing.minari_export import CERTIFICATE, POLICY_CERTIFICATE, to_minari
from quietq.released.private_network import PrivatePolicy
from quietq.released.private_world import PrivateWorld
from quietq.worlds.planning import linear_policy, policy_shape

minari = pytest.importorskip("minari")
D3RLPY = os.environ.get("QUIETQ_D3RLPY_PYTHON")
"""The Python of an environment that has d3rlpy, which pins an older Gymnasium than the tests'."""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PrivateWorld:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    found = make("world")
    assert isinstance(found, PrivateWorld)
    return found


def go(states: np.ndarray) -> np.ndarray:
    return (states[:, 0] > 0).astype(int)


class Coin:
    """A policy that predicts as Stable-Baselines3's do."""

    def predict(self, observation: np.ndarray, *, deterministic: bool) -> tuple[np.ndarray, None]:
        return np.array(int(not deterministic)), None


pytestmark = pytest.mark.filterwarnings("ignore:.*first states.*:UserWarning")


def test_minari_reads_the_episodes_and_the_certificate(world: PrivateWorld) -> None:
    to_minari(world, go, "quietq/test-v0", episodes=4, steps=7, seed=3)
    data = minari.load_dataset("quietq/test-v0")
    assert (data.total_episodes, data.total_steps) == (4, sum(len(one.rewards) for one in data.iterate_episodes()))
    for episode in data.iterate_episodes():
        length = len(episode.rewards)
        assert 1 <= length <= 7
        assert np.asarray(episode.observations).shape == (length + 1, 2)
        assert np.array_equal(episode.actions, go(np.asarray(episode.observations)[:-1]))
        assert bool(episode.terminations[-1]) != bool(episode.truncations[-1])
        assert not np.any(episode.terminations[:-1])
    told = data.storage.metadata
    with_certificate = Certificate.from_json(told[CERTIFICATE])
    assert with_certificate == world.certificate
    assert with_certificate.standing == "certified"
    assert json.loads(told["state_names"]) == ["x", "y"]
    assert POLICY_CERTIFICATE not in told


def test_they_are_those_of_the_worlds_own_environment(world: PrivateWorld) -> None:
    data = to_minari(world, go, "quietq/again-v0", episodes=2, steps=5, seed=8, ensemble=1)
    env = world.env(steps=5, ensemble=1, seed=8)
    for number, episode in enumerate(data.iterate_episodes()):
        state, _ = env.reset(seed=8 + number)
        for step, reward in enumerate(episode.rewards):
            assert np.array_equal(state, np.asarray(episode.observations)[step])
            state, found, *_ = env.step(int(episode.actions[step]))
            assert found == reward


def test_policies_of_every_kind(world: PrivateWorld) -> None:
    plan = linear_policy(world, np.zeros(policy_shape(world.spaces)))
    for number, (policy, action) in enumerate([(plan, 0), (Coin(), 0)]):
        data = to_minari(world, policy, f"quietq/kind{number}-v0", episodes=1, steps=3)
        assert set(next(data.iterate_episodes()).actions.tolist()) == {action}
    drawn = to_minari(world, Coin(), "quietq/drawn-v0", episodes=1, steps=3, deterministic=False)
    assert set(next(drawn.iterate_episodes()).actions.tolist()) == {1}


def test_a_policy_with_a_certificate_takes_it_along(world: PrivateWorld) -> None:
    made: Any = make("choosing policy")  # of three actions, of which two are left
    weights, biases = (made.weights[0], made.weights[1][:2]), (made.biases[0], made.biases[1][:2])
    policy = PrivatePolicy(made.activation, made.output, weights, biases, world.box, made.certificate)
    data = to_minari(world, policy, "quietq/both-v0", episodes=1, steps=2)
    assert Certificate.from_json(data.storage.metadata[POLICY_CERTIFICATE]) == policy.certificate


def test_what_is_not_private_is_refused_unless_it_is_marked(world: PrivateWorld) -> None:
    simulated = make("world", simulate=0)
    assert isinstance(simulated, PrivateWorld)
    with pytest.raises(qq.InvalidInput, match="Only a certified release can be published"):
        to_minari(simulated, go, "quietq/not-v0", episodes=1)
    data = to_minari(simulated, go, "quietq/not-v0", episodes=1, steps=2, not_private=True)
    assert Certificate.from_json(data.storage.metadata[CERTIFICATE]).standing == "none"


READS = """
import sys
import numpy as np, d3rlpy, minari
own = minari.load_dataset(sys.argv[1])
data, env = d3rlpy.datasets.get_minari(sys.argv[1])
print("found", len(data.episodes), sum(len(one.rewards) for one in data.episodes), own.total_steps, env.action_space.n)
mine = list(own.iterate_episodes())
joined = {name: np.concatenate([getattr(one, name) for one in mine]) for name in ("actions", "rewards")}
data = d3rlpy.dataset.MDPDataset(
    observations=np.concatenate([one.observations[:-1] for one in mine]), **joined,
    terminals=np.concatenate([one.terminations for one in mine]),
    timeouts=np.concatenate([one.truncations for one in mine]), action_space=d3rlpy.ActionSpace.DISCRETE,
)
same = [np.array_equal(a.observations, b.observations[:-1]) for a, b in zip(data.episodes, mine, strict=True)]
print("aligned", all(same))
learner = d3rlpy.algos.DiscreteBCConfig(batch_size=8).create(device="cpu")
quiet = {"show_progress": False, "logger_adapter": d3rlpy.logging.NoopAdapterFactory()}
learner.fit(data, n_steps=5, n_steps_per_epoch=5, **quiet)
print("learned", learner.predict(np.asarray(next(own.iterate_episodes()).observations)).shape[0] > 0)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    D3RLPY is None, reason="QUIETQ_D3RLPY_PYTHON names no Python that has d3rlpy (it pins gymnasium 1.0)"
)
def test_d3rlpy_reads_and_trains_on_it(world: PrivateWorld, tmp_path: Path) -> None:
    """With its own reader, `get_minari`, which wants an environment of Gymnasium to evaluate in.

    That of d3rlpy 2.8.1 keeps each episode's final observation among the others, so that observations of later episodes
    are shifted: it counts episodes and steps rightly, and what is trained on is joined here without them.
    """
    to_minari(world, go, "quietq/offline-v0", episodes=6, steps=5, minari={"env": "CartPole-v1"})
    done = subprocess.run(
        [str(D3RLPY), "-c", READS, "quietq/offline-v0"], env={**os.environ, "PYTHONPATH": ""}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    told = dict(
        line.split(" ", 1) for line in done.stdout.splitlines() if line.startswith(("found", "aligned", "learned"))
    )
    episodes, steps, written, _ = map(int, told["found"].split())
    assert (episodes, steps) == (6, written)
    assert told["aligned"] == "True"
    assert told["learned"] == "True"
