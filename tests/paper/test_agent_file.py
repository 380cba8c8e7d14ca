"""An agent on disk: it answers the same, and whatever is not one is refused in a sentence."""

import json
import re

import gymnasium
import jax
import numpy as np
import pytest
from agent_cases import SMALL, SPENDERS, STEPS, answers, private

from quietq import Budget, InvalidInput, SupBall, load, publish
from quietq.paper import OutputNoise, Published
from quietq.paper.agents import ActorCritic, Agent, NoNoise, RewardNoise
from quietq.privacy import Code
from quietq.released.release_file import pack, unpack

SETTINGS = ("details", "training", "settings")


@pytest.mark.parametrize(
    "name", ["reward", *SPENDERS, *(pytest.param(name, marks=pytest.mark.slow) for name in ("none",))]
)
def test_a_saved_agent_answers_the_same(tmp_path, name):
    method = {
        "none": lambda: NoNoise(**SMALL),
        "reward": lambda: RewardNoise(private(), **SMALL),
    } | SPENDERS
    agent = Agent("walk", method[name](), seed=1).learn(STEPS)
    agent.save(tmp_path / "agent.qq")
    loaded = Agent.load(tmp_path / "agent.qq")
    np.testing.assert_array_equal(answers(agent), answers(loaded))
    assert loaded.certificate == agent.certificate
    assert loaded.evaluate().scores == agent.evaluate().scores
    assert sum(array.size for array in parts_of(tmp_path / "agent.qq")[1].values()) < 3000  # no buffer, no noise
    loaded.save(tmp_path / "again.qq")
    assert (tmp_path / "again.qq").read_bytes() == (tmp_path / "agent.qq").read_bytes()
    if agent.certificate.standing == "certified":
        publish(agent, tmp_path / "published.qq")
        assert (tmp_path / "published.qq").read_bytes() == (tmp_path / "agent.qq").read_bytes()


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """The record and the arrays of an agent's file that is as good as any, and was not trained."""
    return parts_of(untrained(NoNoise(widths=(8,)), tmp_path_factory.mktemp("agent")))


def untrained(method, folder, seeds: int = 1, draws: int = 1):
    agent = Agent("walk", method, seed=1)
    released = method.finish(method.init(agent.spaces, jax.random.key(0)), None)
    agent._released = jax.tree.map(lambda leaf: np.stack([leaf] * seeds * draws), released)
    agent._certificate, agent._seeds, agent._draws = method.certificate(agent.spaces, 200), seeds, draws
    agent.save(folder / "agent.qq")
    return folder / "agent.qq"


def parts_of(path):
    unpacked = unpack(path.read_bytes())
    return unpacked.record, unpacked.arrays


def load_with(folder, parts, place, changes, runs: int = 1):
    """An agent's file with some of its record changed and its hash made to fit, read."""
    record = json.loads(json.dumps(parts[0]))
    where = record
    for name in place:
        where = where[name]
    where.update(changes)
    arrays = {name: np.repeat(array, runs, 0) for name, array in parts[1].items()}
    (folder / "forged.qq").write_bytes(pack(json.dumps(record), arrays))
    return Agent.load(folder / "forged.qq")


@pytest.mark.parametrize(
    ("place", "name", "value", "words"),
    [
        (("details",), "draws", -1, "draws must be a whole number of at least 1"),
        (("details",), "draws", 2, "its draws must"),
        (("details",), "output", "log-probabilities", "gives log-probabilities, which 'none' does not release"),
        (("details",), "training", [], "training: Expected `object | null`, got `array`"),
        (("details", "training"), "world", "antigravity:Fly-v0", "world that is not one of quietq's"),
        (("details", "training"), "world", "navigation", "other observations or actions"),
        (("details", "training"), "world", 3, "world: Expected `str | null`, got `int`"),
        (("details", "training"), "world", None, "give it as `world`"),
        (("details", "training"), "episode", "x", "episode: Expected `int`, got `str`"),
        (("details", "training"), "settings", "x", "settings: Expected `object`, got `str`"),
        (("details", "training"), "seed", 1, "unknown field `seed`"),
        (SETTINGS, "method", ["none"] * 1000, "There is no method called"),
        (SETTINGS, "method", "evaluation", "There is no method called"),
        (SETTINGS, "widths", [0], "widths"),
        (SETTINGS, "widths", {"a": 1}, "is not that of its network"),
    ],
)
def test_a_hostile_record_is_refused_in_a_sentence(tmp_path, parts, place, name, value, words):
    with pytest.raises(InvalidInput, match=re.escape(words)) as refused:
        load_with(tmp_path, parts, place, {name: value})
    assert len(str(refused.value)) < 250


def test_what_is_no_agent_is_refused(tmp_path, parts):
    assert load_with(tmp_path, parts, (), {}).members == 1
    with pytest.raises(InvalidInput, match="There is no file"):
        Agent.load(tmp_path / "nothing.qq")
    (tmp_path / "nonsense.qq").write_bytes(b"nonsense")
    with pytest.raises(InvalidInput, match=r"nonsense.qq' is not a release"):
        Agent.load(tmp_path / "nonsense.qq")
    publish(private(), tmp_path / "reward.qq")
    with pytest.raises(InvalidInput, match="not of an agent that was saved"):
        Agent.load(tmp_path / "reward.qq")


def test_an_actor_critic_comes_back_as_one(tmp_path):
    path = untrained(ActorCritic(private(), widths=(8,)), tmp_path, seeds=2)
    loaded = Agent.load(path)
    assert (loaded.method.name, loaded.members, loaded.draws) == ("actor-critic", 2, 1)
    np.testing.assert_allclose(np.exp(loaded.q_values([[0.3]], 1)).sum(), 1, rtol=1e-6)


def test_simulated_draws_are_kept_apart_and_marked(tmp_path):
    """For the operator: what `publish` refuses, `save` writes, and no file of it says anything but NOT PRIVATE."""
    path = untrained(RewardNoise([private(1), private(2)], **SMALL), tmp_path, seeds=3, draws=2)
    assert parts_of(path)[0]["privacy"] == "NOT PRIVATE"
    loaded = Agent.load(path)
    assert (loaded.draws, loaded.members) == (2, 6)
    with pytest.raises(InvalidInput, match="name the member"):
        loaded.q_values([[0.5]])
    with pytest.raises(InvalidInput, match="2 simulated releases"):
        publish(loaded, tmp_path / "out.qq", not_private=True)
    with pytest.raises(InvalidInput, match="2 simulated releases"):
        load(path)(0.5)


def test_the_papers_agent_comes_back_on_its_grid(tmp_path):
    agent = Agent("walk", Published.code(0.4, levels=6), seed=1).learn(STEPS)
    agent.save(tmp_path / "agent.qq")
    loaded = Agent.load(tmp_path / "agent.qq")
    np.testing.assert_allclose(answers(loaded), answers(agent), atol=1e-6)  # at points of the grid
    with pytest.raises(InvalidInput, match="do not fit its settings"):
        load_with(tmp_path, parts_of(tmp_path / "agent.qq"), SETTINGS, {"levels": 7})


@pytest.fixture(scope="module")
def certified(tmp_path_factory):
    path = tmp_path_factory.mktemp("certified") / "agent.qq"
    Agent("walk", SPENDERS["input"](), seed=0).learn(200).save(path)
    return parts_of(path)


def answered(norm):
    """What a certificate says of one query in another norm, with noise that is enough for it."""
    query = {"norm": norm, "family": "gaussian", "sensitivity": 0.01, "size": 0.1}
    return {"budget": {"epsilon": 0.3, "delta": 1e-4}, "queries": [query]}


@pytest.mark.parametrize(
    ("place", "changes", "runs", "words"),
    [
        (("certificate",), {"domain": [[-5.0, 5.0]]}, 1, "box"),
        (("certificate",), {"domain": [[0.0, 1.0], [0.0, 1.0]]}, 1, "box"),
        (("certificate",), {"domain": None}, 1, "must name its box"),
        ((), {}, 5, "more runs than its certificate"),
        (("details",), {"draws": 3}, 3, "more runs than its certificate"),
        (("details", "training"), {"steps": 10**6}, 1, "not the one that its method gives"),
        (("details", "training"), {"steps": -5}, 1, "steps must be a whole number of at least 1, not -5"),
        (("details", "training"), {"steps": 10**12}, 1, "steps must be at most 100000000"),
        (("details", "training"), {"steps": None}, 1, "steps must be a whole number"),
        (SETTINGS, {"method": "value", "round_steps": 1}, 1, "does not belong to 'value'"),
        (SETTINGS, {"method": "none"}, 1, "name what 'none' does not have"),
        (("certificate",), {"method": "value-network"}, 1, "is not measured in"),
        (("certificate",), answered({"kind": "values", "count": 1, "discount": 0.0, "operations": 0}), 1,
         "is not measured in"),
        (("certificate",), answered({"kind": "rewards", "count": 1, "operations": 0}), 1,
         "says otherwise than its assumption 'rewards-noised-once'"),
        ((), {"extra": 1}, 1, "unknown field `extra`"),
    ],
)  # fmt: skip
def test_parts_that_contradict_each_other_are_refused(tmp_path, certified, place, changes, runs, words):
    with pytest.raises(InvalidInput, match=re.escape(words)):
        load_with(tmp_path, certified, place, changes, runs)


def test_noise_beyond_all_measure_is_not_drawn(tmp_path, certified):
    record = json.loads(json.dumps(certified[0]))
    record["certificate"]["method"] = "value"
    record["details"]["training"] |= {"steps": 10**8, "settings": {"method": "value", "round_steps": 1}}
    with pytest.raises(InvalidInput, match="more noise than a training can hold"):
        load_with(tmp_path, (record, certified[1]), (), {})


def test_certified_agents_come_back(tmp_path, certified):
    """Copies may go a few steps farther than was promised for."""
    assert load_with(tmp_path, certified, (), {}).certificate.standing == "certified"
    walks = gymnasium.make_vec("quietq.worlds:quietq/Walk-v0", 3)
    agent = Agent(walks, SPENDERS["input"](), seed=0).learn(100)
    agent.save(tmp_path / "copies.qq")
    place = gymnasium.make("quietq.worlds:quietq/Walk-v0")
    assert Agent.load(tmp_path / "copies.qq", world=place).certificate == agent.certificate
    assert agent.steps == 102


def test_what_learned_from_released_values_is_covered_as_they_are(tmp_path):
    """A policy trained on another agent's values has that agent's certificate, and any network and number of runs.

    Its file cannot show what it was trained on, so the certificate in it says that somebody is trusted for that.
    """
    method = OutputNoise(relation=SupBall(0.01), budget=Budget(0.9, 1e-4))
    source = Agent("walk", method, seed=0).learn(100)
    path = untrained(ActorCritic(source.released_values(), widths=(8,)), tmp_path, seeds=2)
    stated = source.certificate.with_assumption(Code.COVERED())
    assert Agent.load(path).certificate == stated
    assert Agent.load(path).released_values(1).certificate == stated
