"""`quietq paper reconstruct`, in this process, so that JAX is loaded once and types are checked.

Its agents are as they are before the first step of training: what is attacked here is the file, and compiling takes
longer than attacking. Trained ones are in audit/test_reconstruction.py.
"""

import json

import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp

import quietq as qq
from quietq.noise.entropy import SeededEntropy
from quietq.paper import Published
from quietq.paper.agents import ActorCritic, Agent, Method, NoNoise
from quietq.worlds import walk_reward

FIFTY, BUDGET = qq.people(50, low=0, high=0.5, slope=1), qq.Budget(0.9, 1e-4)
FIELDS = {"release", "world", "standing", "points", "draws", "attacks", "caveat", "not_private"}
CAVEAT = "holds only if the release was made from that reward"


def result(quietq, arguments: str) -> dict:
    code, out, err = quietq(f"paper reconstruct {arguments} --json")
    assert (code, err) == (0, "")
    return json.loads(out)


def saved(name: str, world: str, method: Method, draws: int = 1) -> None:
    """The file of an agent that has not learnt anything yet."""
    agent = Agent(world, method, seed=1)
    runs = []
    for i in range(draws):
        noise = jax.tree.map(jnp.asarray, method.draw(agent.spaces, 100, SeededEntropy(i)))
        runs.append(method.finish(method.init(agent.spaces, jax.random.key(i)), noise))
    agent._released = jax.tree.map(lambda *leaves: jnp.stack(leaves), *runs)
    agent._certificate, agent.steps, agent._draws = method.certificate(agent.spaces, 100), 100, draws
    agent.save(name)


def test_an_agent_by_its_file_or_its_folder(quietq, tmp_path):
    (tmp_path / "run").mkdir()
    saved("run/agent.qq", "walk", NoNoise(widths=(8,)))
    found = result(quietq, "run --points 17")
    assert found == result(quietq, "run/agent.qq --points 17 --world walk")
    assert set(found) == FIELDS
    assert (found["release"], found["world"], found["standing"]) == ("agent (none)", "walk", "none")
    assert (found["points"], found["draws"]) == (17, 1)
    assert [attack["name"] for attack in found["attacks"]] == ["bellman", "inverse-rl", "apprenticeship"]
    assert [attack["blind_to"] for attack in found["attacks"]] == [[], ["scale", "shift"], ["scale", "shift"]]
    for attack in found["attacks"]:  # whatever looks at the truth is under not_private
        assert set(attack) == {"name", "blind_to", "not_private"}
        assert set(attack["not_private"]) == {"correlation", "rmse", "relative_error"}
    assert set(found["not_private"]) == {"constant_rmse"}
    code, out, _ = quietq("paper reconstruct run --points 17")
    assert code == 0
    assert "NOT PRIVATE" in out
    assert "standing: none" in out
    assert "the walk's own reward" in out
    assert CAVEAT in out
    assert CAVEAT in found["caveat"]


def test_simulated_draws_are_attacked_one_by_one_and_with_their_noise(quietq):
    saved("agent.qq", "walk", Published.code(0.32, replay=200), draws=3)
    found = result(quietq, "agent.qq --points 17")
    assert (found["release"], found["draws"]) == ("agent (published)", 3)
    for attack in found["attacks"]:
        each = attack["not_private"]["correlations"]
        assert len(set(each)) == 3
        assert attack["not_private"]["correlation"] == pytest.approx(sum(each) / 3)


def test_a_policy_of_probabilities_has_no_bellman_equation(quietq):
    private = qq.privatise(walk_reward, BUDGET, relation=FIFTY, noise="path")
    saved("agent.qq", "walk", ActorCritic(private))
    found = result(quietq, "agent.qq --points 17")
    assert found["standing"] == "certified"
    assert [attack["name"] for attack in found["attacks"]] == ["inverse-rl", "apprenticeship"]


def test_a_private_reward(quietq):
    qq.publish(qq.privatise(walk_reward, BUDGET, relation=FIFTY, noise="path"), "reward.qq")
    found = result(quietq, "reward.qq --world walk")
    assert set(found) == FIELDS
    assert (found["release"], found["standing"]) == ("private reward", "certified")
    (read,) = found["attacks"]
    assert (read["name"], read["blind_to"]) == ("read", [])
    assert set(found["not_private"]) == {"constant_rmse", "planned_score"}
    _, out, _ = quietq("paper reconstruct reward.qq --world walk")
    assert "Planning on it scores" in out
    assert CAVEAT in out


def test_a_private_reward_of_unknown_making_is_compared_with_nothing(quietq):
    qq.publish(qq.privatise(lambda x: 0.5 - walk_reward(x), BUDGET, relation=FIFTY, noise="path"), "other.qq")
    code, out, err = quietq("paper reconstruct other.qq")
    assert (code, out) == (2, "")
    assert "--world must name the world whose own reward this one was made from" in err


def test_wrong_input_is_one_sentence(quietq, tmp_path):
    saved("agent.qq", "walk", NoNoise(widths=(8,)))
    (tmp_path / "empty").mkdir()
    (tmp_path / "other.qq").write_text("not a release")
    for arguments, words in {
        "nothing.qq": "There is no file 'nothing.qq' to attack.",
        "empty": "There is no agent.qq in the folder 'empty' to attack.",
        "other.qq": "not a release",
        "agent.qq --world thermostat": "The agent was trained in the walk, not in the thermostat: leave --world out.",
        "agent.qq --world moon": "There is no world called 'moon'",
        "agent.qq --points 2": "points must be a whole number of at least 5, not 2.",
    }.items():
        code, out, err = quietq(f"paper reconstruct {arguments}")
        assert (code, out) == (2, "")
        assert words in err
        assert err.count("\n") == 1
