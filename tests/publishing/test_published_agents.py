"""Agents leave as what was released of them, answer without JAX as they did with it, and take nothing else along."""

import dataclasses
import json
import os
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from releases import arrays_of, header_of, record_of

import quietq as qq
from quietq import paper
from quietq.noise import SeededEntropy
from quietq.paper.agents import Agent
from quietq.paper.agents.method import EnvironmentSpaces
from quietq.paper.baselines.value_network import NetworkValueNoise
from quietq.privacy import Code
from quietq.publishing import publish
from quietq.released import open_release
from quietq.released.private_network import HowTrained, PrivateNetwork
from quietq.released.release_file import write_release
from quietq.worlds import walk_reward

RELATION, BUDGET = qq.people(50, low=0, high=0.5, slope=1), qq.Budget(0.9, 1e-4)
FIELDS = {"format", "version", "privacy", "box", "labels", "details", "certificate"}


@pytest.fixture(scope="module")
def private():
    return qq.privatise(walk_reward, BUDGET, relation=RELATION)


@pytest.fixture(scope="module")
def trained(private):
    return Agent("walk", paper.RewardNoise(private, widths=(8,)), seed=987654321).learn(1234, seeds=2)


def as_if_trained(world: str, method, runs: int) -> Agent:
    """An agent with random numbers for what it learned: how it came by them does not matter here."""
    agent = Agent(world, method, seed=1)
    init = jax.vmap(lambda key: method.finish(method.init(agent.spaces, key), None))
    released = init(jax.random.split(jax.random.key(0), runs))
    rng = np.random.default_rng(0)
    agent._released = jax.tree.map(lambda leaf: leaf + rng.normal(size=leaf.shape).astype(np.float32), released)
    agent._seeds = runs
    return agent


@pytest.mark.parametrize(
    ("method", "network"),
    [
        *(("reward", network) for network in ("mlp", "splines")),
        ("actor-critic", "mlp"),
        pytest.param("actor-critic", "splines", marks=pytest.mark.slow),
    ],
)
def test_answers_as_it_did(tmp_path, private, method, network):
    kind = {"reward": paper.RewardNoise, "actor-critic": paper.ActorCritic}[method]
    agent = as_if_trained("walk", kind(private, network=network, features=6, widths=(8, 5)), runs=3)
    publish(agent, tmp_path / "agent.qq")
    release = open_release(tmp_path / "agent.qq")
    x = np.random.default_rng(0).random((300, 1))
    values = agent.q_values(x)
    assert release.what == "agent"
    assert release.certificate == agent.certificate
    assert np.abs(release.values(x) - values).max() < 1e-5 * (1 + np.abs(values).max())
    clear = np.abs(np.diff(values, axis=1))[:, 0] > 1e-4
    assert clear.sum() > 200
    assert (release.policy(x) == agent.predict(x)[0])[clear].all()
    assert release.function.predict(x)[0].shape == (300,)  # type: ignore[union-attr]
    assert release.function.q_values([0.3]).shape == (2,)  # type: ignore[union-attr]


@pytest.mark.parametrize("network", ["splines", pytest.param("mlp", marks=pytest.mark.slow)])
def test_answers_as_it_did_in_the_plane(tmp_path, network):
    agent = as_if_trained("navigation", paper.NoNoise(network=network, features=4, widths=(6,)), runs=1)
    publish(agent, tmp_path / "agent.qq", not_private=True)
    release = open_release(tmp_path / "agent.qq")
    x = agent.spaces.box.from_unit(np.random.default_rng(0).random((300, 2)))
    values = agent.q_values(x)
    assert release.function.outputs == agent.spaces.actions
    assert np.abs(release.values(x) - values).max() < 1e-5 * (1 + np.abs(values).max())


def test_takes_nothing_else_along(tmp_path, trained):
    agent = trained
    publish(agent, tmp_path / "agent.qq")
    header, data = header_of(tmp_path / "agent.qq")
    texts = header.pop("__metadata__")
    record = json.loads(texts["quietq"])
    assert set(record) == FIELDS
    details = record["details"]
    training = details.pop("training")
    assert details == {"kind": "network", "form": "mlp", "size": 0, "output": "values", "draws": 1}
    assert training == {"world": "walk", "episode": 50, "steps": None, "settings": agent.method.settings()}
    public = texts["quietq"].replace(training["settings"]["private"], "")  # a hash of what was released
    assert "987654321" not in public
    assert "1234" not in public
    leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(agent.released)]
    assert len(data) == sum(leaf.nbytes for leaf in leaves)  # the released numbers, and no other
    assert sorted(array.tobytes() for array in arrays_of(tmp_path / "agent.qq").values()) == sorted(
        leaf.tobytes() for leaf in leaves
    )


def test_the_same_release_has_the_same_file_whatever_else_is_known(tmp_path, trained, monkeypatch):
    """Training statistics and the seed leave no trace."""
    first = publish(trained, tmp_path / "first.qq")
    monkeypatch.setattr(trained, "not_private", {"episode_returns": [[0.5]]})
    monkeypatch.setattr(trained, "seed", 7)
    monkeypatch.setattr(trained, "steps", 9)
    assert publish(trained, tmp_path / "second.qq") == first


@pytest.fixture(scope="module")
def claimed():
    """As it is before its first step: what is looked at is the sum of network and noise, not what was learned."""
    method = paper.Published.code()
    agent = Agent("walk", method, seed=1)
    noise = jax.tree.map(jnp.asarray, method.draw(agent.spaces, 300, SeededEntropy(0)))
    released = method.finish(method.init(agent.spaces, jax.random.key(0)), noise)
    agent._released = jax.tree.map(lambda leaf: leaf[None], released)
    agent._certificate = method.certificate(agent.spaces, 300)
    return agent


@pytest.fixture(scope="module")
def unnoised():
    return as_if_trained("walk", paper.NoNoise(widths=(8,)), runs=3)


def test_what_is_claimed_simulated_or_nothing_is_refused_or_marked(tmp_path, claimed, unnoised):
    simulated = qq.privatise(walk_reward, BUDGET, relation=RELATION, simulate=1)
    for agent in (
        claimed,
        unnoised,
        as_if_trained("walk", paper.RewardNoise(simulated, widths=(8,)), runs=1),
    ):
        with pytest.raises(qq.InvalidInput, match="Only a certified release can be published"):
            publish(agent, tmp_path / "agent.qq")
        assert not os.listdir(tmp_path)
        publish(agent, tmp_path / "agent.qq", not_private=True)
        release = open_release(tmp_path / "agent.qq")
        assert release.privacy == "NOT PRIVATE"
        assert repr(release.function).startswith("NOT PRIVATE")
        assert record_of(tmp_path / "agent.qq")["privacy"] == "NOT PRIVATE"
        os.remove(tmp_path / "agent.qq")


def test_the_papers_network_and_noise_leave_as_their_sum_only(tmp_path, claimed):
    publish(claimed, tmp_path / "agent.qq", not_private=True)
    arrays = arrays_of(tmp_path / "agent.qq")
    assert set(arrays) == {"weights.0"}
    (table,) = arrays["weights.0"]
    for leaf in jax.tree.leaves(claimed.released):
        assert np.asarray(leaf, np.float64).tobytes() not in table.tobytes()
        assert np.asarray(leaf, np.float64).swapaxes(1, -1).tobytes() not in table.tobytes()
    grid = np.linspace(0, 1, table.shape[1])
    values = claimed.q_values(grid[:, None])
    assert np.abs(table.T - values).max() < 1e-6
    # Between the points of the grid the file has the nearest one's values, in NumPy and in JAX.
    x = np.random.default_rng(0).random(100)
    nearest = values[np.rint(x * (len(grid) - 1)).astype(int)]
    network: Any = qq.load(tmp_path / "agent.qq")
    for loaded in (network.q_values, Agent.load(tmp_path / "agent.qq").q_values):
        assert np.abs(loaded(x[:, None]) - nearest).max() < 1e-6


def test_several_simulated_releases_are_not_one(tmp_path, unnoised, monkeypatch):
    monkeypatch.setattr(unnoised, "_draws", 3)
    monkeypatch.setattr(unnoised, "_seeds", 1)
    with pytest.raises(qq.InvalidInput, match="3 simulated releases"):
        publish(unnoised, tmp_path / "agent.qq", not_private=True)


def test_an_untrained_agent_has_nothing_to_publish(tmp_path, private):
    with pytest.raises(qq.QuietqError, match="not been trained"):
        publish(Agent("walk", paper.RewardNoise(private)), tmp_path / "agent.qq")


def test_loads_and_answers_without_jax(tmp_path, trained):
    agent = trained
    publish(agent, tmp_path / "agent.qq")
    code = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ("jax", "equinox", "optax"):
            raise ImportError(name)

sys.meta_path.insert(0, Absent())
import quietq
agent = quietq.load({str(tmp_path / "agent.qq")!r})
print(repr(float(agent([0.25, 0.5])[1, 0])), agent.predict([0.25])[0])
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    value, action = done.stdout.split()
    assert abs(float(value) - agent.q_values([0.5])[0]) < 1e-5
    assert int(action) in (0, 1)


def test_networks_must_be_what_their_certificate_is_for(tmp_path):
    """Of a method that noises as it goes there is one run, of values at knots, as many as were noised."""
    promise = {"relation": qq.SupBall(0.01), "budget": qq.Budget(0.9, 1e-4)}
    box, rng = qq.Box((0.0,), (1.0,)), np.random.default_rng(0)
    spaces = EnvironmentSpaces(box, 2, 50)

    def network(method, form: Any = "splines", runs=1, knots=7, output: Any = "values", place=box):
        weights = (rng.random((runs, 2, knots)),)
        return PrivateNetwork(form, knots, weights, (), output, place, method.certificate(spaces, 200))

    output, value = paper.OutputNoise(**promise, knots=7), paper.ValueNoise(**promise)
    write_release(network(output), tmp_path / "whole.qq")
    for wrong, words in (
        (network(output, knots=9), "as many as its certificate names"),
        (network(output, runs=3), "more runs than its certificate"),
        (network(value, form="grid"), "releases values at knots"),
        (network(value, output="log-probabilities"), "releases values at knots"),
        (network(value, place=qq.Box((0.0,), (2.0,))), "box"),
    ):
        with pytest.raises(qq.InvalidInput, match=words):
            write_release(wrong, tmp_path / "wrong.qq")


def test_what_a_file_says_of_its_training_turns_no_check_off(tmp_path):
    """Five runs under the certificate of one, called post-processing by a text that nobody vouches for."""
    spaces = EnvironmentSpaces(qq.Box.of((0, 1)), 3, 50)
    certificate = NetworkValueNoise(relation=RELATION, budget=BUDGET).certificate(spaces, 2000)
    box = spaces.box
    weights, biases = (np.ones((5, 4, 1)), np.ones((5, 3, 4))), (np.ones((5, 4)), np.ones((5, 3)))
    training = HowTrained(world="walk", episode=50, steps=None, settings={"method": "reward"})
    forged = PrivateNetwork("mlp", 0, weights, biases, "values", box, certificate, training=training)
    with pytest.raises(qq.InvalidInput, match="more runs than its certificate"):
        write_release(forged, tmp_path / "forged.qq")
    stated = dataclasses.replace(forged, certificate=certificate.with_assumption(Code.COVERED()))
    write_release(stated, tmp_path / "stated.qq")  # where somebody is trusted for it
