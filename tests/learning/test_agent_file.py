"""An agent on disk: it answers the same, and whatever is not one is refused in a sentence."""

import json

import gymnasium
import jax
import numpy as np
import optax
import pytest
from agent_cases import SMALL, SPENDERS, answers, private

from quietq import InvalidInput
from quietq.learning import Agent, NoNoise, Published, RewardNoise


@pytest.mark.parametrize(
    "name", ["reward", *SPENDERS, *(pytest.param(name, marks=pytest.mark.slow) for name in ("none", "published"))]
)
def test_a_saved_agent_answers_the_same(tmp_path, name):
    method = {
        "none": lambda: NoNoise(optimiser=optax.adam(1e-3), **SMALL),
        "reward": lambda: RewardNoise(private(), **SMALL),
        "published": lambda: Published.code(0.4, levels=6),
    } | SPENDERS
    agent = Agent("walk", method[name](), seed=1).learn(200)
    agent.save(tmp_path / "agent.npz")
    loaded = Agent.load(tmp_path / "agent.npz")
    np.testing.assert_array_equal(answers(agent), answers(loaded))
    assert loaded.certificate == agent.certificate
    assert loaded.evaluate().scores == agent.evaluate().scores
    with np.load(tmp_path / "agent.npz", allow_pickle=False) as stored:
        record = json.loads(stored["record"].tobytes())
        assert set(record) == {"schema", "world", "spaces", "settings", "trained", "certificate"}
        assert (
            sum(stored[key].size for key in stored.files if key != "record") < 3000
        )  # values only: no buffer, no noise
    loaded.save(tmp_path / "again.npz")
    np.testing.assert_array_equal(answers(Agent.load(tmp_path / "again.npz")), answers(agent))
    with pytest.raises(InvalidInput, match="There is no file"):
        Agent.load(tmp_path / "nothing.npz")
    (tmp_path / "agent.npz").write_bytes(b"nonsense")
    with pytest.raises(InvalidInput, match="not an agent"):
        Agent.load(tmp_path / "agent.npz")


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """The arrays of an agent's file that is as good as any, and was not trained for long."""
    method, path = NoNoise(widths=(8,)), tmp_path_factory.mktemp("agent") / "agent.npz"
    agent = Agent("walk", method, seed=1)
    released = method.finish(method.init(agent.spaces, jax.random.key(0)), None)
    agent._released = jax.tree.map(lambda leaf: leaf[None], released)
    agent._certificate, agent.steps = method.certificate(agent.spaces, 200), 200
    agent.save(path)
    with np.load(path) as stored:
        return dict(stored)


def test_a_file_of_an_agent_is_what_the_hostile_ones_are_made_of(tmp_path, parts):
    np.savez(tmp_path / "agent.npz", **parts)
    assert Agent.load(tmp_path / "agent.npz").members == 1


@pytest.mark.parametrize(
    ("part", "name", "value", "words"),
    [
        ("trained", "steps", -5, "steps must be a whole number of at least 1, not -5"),
        ("trained", "steps", 10**12, "steps must be at most 100000000"),
        ("trained", "steps", float("inf"), "steps must be a whole number"),
        ("trained", "draws", -1, "draws must be"),
        ("trained", "seeds", 10**9, "arrays do not fit"),
        ("settings", "method", ["none"] * 1000, "not an agent that was saved"),
        ("settings", "widths", [0], "widths"),
        ("spaces", "low", 3, "not an agent that was saved"),
        (None, "world", "antigravity:Fly-v0", "world that is not one of quietq's"),
        (None, "trained", [], "not an agent that was saved"),
    ],
)
def test_a_hostile_record_is_refused_in_a_sentence(tmp_path, parts, part, name, value, words):
    record = json.loads(parts["record"].tobytes())
    (record if part is None else record[part])[name] = value
    with pytest.raises(InvalidInput, match=words) as refused:
        load_with(tmp_path, parts, json.dumps(record))
    assert len(str(refused.value)) < 200


def test_noise_beyond_all_measure_is_not_drawn(tmp_path, parts):
    record = json.loads(parts["record"].tobytes())
    record["settings"], record["trained"]["steps"] = SPENDERS["value"]().settings() | {"round_steps": 1}, 10**8
    with pytest.raises(InvalidInput, match="more noise than a training can hold"):
        load_with(tmp_path, parts, json.dumps(record))


def test_nested_lists_and_what_unpacks_to_much_are_refused_at_once(tmp_path, parts):
    with pytest.raises(InvalidInput, match="not an agent that was saved"):
        load_with(tmp_path, parts, "[" * 100_000 + "]" * 100_000)
    np.savez_compressed(tmp_path / "large.npz", **(parts | {"leaf0": np.zeros(10**7, np.float32)}))
    with pytest.raises(InvalidInput, match="would unpack to more than its own size"):
        Agent.load(tmp_path / "large.npz")
    np.save(tmp_path / "array.npy", np.zeros(3))
    with pytest.raises(InvalidInput, match="not an agent that was saved"):
        Agent.load(tmp_path / "array.npy")


def load_with(folder, parts, record):
    """An agent's file with another record, read."""
    np.savez(folder / "agent.npz", **(parts | {"record": np.frombuffer(record.encode(), np.uint8)}))
    return Agent.load(folder / "agent.npz")


@pytest.fixture(scope="module")
def certified(tmp_path_factory):
    """The arrays of a certified agent's file."""
    path = tmp_path_factory.mktemp("certified") / "agent.npz"
    Agent("walk", SPENDERS["input"](), seed=0).learn(200).save(path)
    with np.load(path) as stored:
        return dict(stored)


def repeated(parts, number):
    return {name: array if name == "record" else np.repeat(array, number, 0) for name, array in parts.items()}


@pytest.mark.parametrize(
    ("part", "changes", "runs", "words"),
    [
        ("certificate", {"domain": [[-5.0, 5.0]]}, 1, "another box"),
        ("certificate", {"domain": [[0.0, 1.0], [0.0, 1.0]]}, 1, "another box"),
        ("certificate", {"domain": None}, 1, "another box"),
        ("trained", {"seeds": 5}, 5, "more runs than its certificate"),
        ("trained", {"draws": 3}, 3, "more runs than its certificate"),
        ("trained", {"steps": 10**6}, 1, "at most the 200 that were promised"),
        ("trained", {"steps": 10**6, "promised": 10**6}, 1, "not the one that its method gives"),
        ("certificate", {"norm": {"kind": "mean-rewards", "rounds": 1, "operations": 0}, "sensitivity": 0.01,
                         "sigma": 0.1, "mu": 0.1, "epsilon": 0.3}, 1, "not the one that its method gives"),
        ("certificate", {"norm": {"kind": "rewards", "count": 1, "operations": 0}, "sensitivity": 0.01,
                         "sigma": 0.1, "mu": 0.1, "epsilon": 0.3}, 1, "not the one that its method gives"),
        (None, {"extra": 1}, 1, "fields of an agent, and no others"),
    ],
)  # fmt: skip
def test_parts_that_contradict_each_other_are_refused(tmp_path, certified, part, changes, runs, words):
    record = json.loads(certified["record"].tobytes())
    (record if part is None else record[part]).update(changes)
    with pytest.raises(InvalidInput, match=words):
        load_with(tmp_path, repeated(certified, runs), json.dumps(record))


def test_certified_agents_come_back(tmp_path, certified):
    """One that was ended early is promised what it would have been, and copies may go a few steps farther."""
    assert load_with(tmp_path, certified, certified["record"].tobytes().decode()).steps == 200
    again = {"early": Agent("walk", SPENDERS["input"](), seed=0).learn(200, every=50, callback=lambda event: True)}
    walks = gymnasium.make_vec("quietq/Walk-v0", 3)
    again["copies"] = Agent(walks, SPENDERS["input"](), seed=0).learn(100)
    for name, agent in again.items():
        agent.save(tmp_path / name)
        place = None if name == "early" else gymnasium.make("quietq/Walk-v0")
        assert Agent.load(tmp_path / name, world=place).certificate == agent.certificate
    assert (again["early"].steps, again["copies"].steps) == (50, 102)
