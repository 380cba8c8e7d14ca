"""`quietq publish` and `verify`."""

import json

import numpy as np
import pytest
from keys import make_keys

import quietq as qq
from quietq import paper
from quietq.privacy import people
from quietq.released import open_release
from quietq.released.release_file import pack, unpack
from quietq.released.signature import fingerprint, read_public_key

BUDGET = qq.Budget(0.9, 1e-4)


@pytest.fixture
def reward(tmp_path):
    mechanism = qq.GaussianProcessMechanism.for_relation(people(50, low=0, high=0.5, slope=1), BUDGET, levels=6)
    qq.publish(mechanism.apply(lambda s: 0.5 - abs(s - 0.5)), tmp_path / "reward.qq")
    qq.publish(mechanism.simulate(lambda s: s, seed=1), tmp_path / "simulated.qq", not_private=True)
    return tmp_path / "reward.qq"


def test_verify_tells_what_is_promised(quietq, reward):
    code, out, err = quietq("verify reward.qq")
    assert (code, err) == (0, "")
    assert "Nobody signed this" in out
    assert "- nobody signed this: whoever made the file says all of this" in out.split("is certified to be")[1]
    assert "certified to be (0.9, 0.0001)-differentially private" in out
    code, out, _ = quietq("verify reward.qq --json")
    found = json.loads(out)
    assert (code, found["privacy"], found["signer"], found["what"]) == (0, "certified", None, "function")
    assert found["signed"] == "nobody signed this"
    assert found["certificate"] == qq.load(reward).certificate.to_dict()  # type: ignore[union-attr]


def test_verify_marks_what_is_not_private(quietq, reward):
    code, out, _ = quietq("verify simulated.qq")
    assert code == 0
    assert out.startswith("NOT PRIVATE")
    assert json.loads(quietq("verify simulated.qq --json")[1])["privacy"] == "NOT PRIVATE"


def test_sign_and_verify(quietq, reward, tmp_path):
    _, public = make_keys(tmp_path / "key")
    made = fingerprint(read_public_key(public))
    make_keys(tmp_path / "other")
    code, out, _ = quietq("publish reward.qq --out signed.qq --sign key --json")
    assert code == 0
    assert json.loads(out)["hash"] == json.loads(quietq("verify reward.qq --json")[1])["hash"]
    assert json.loads(quietq("verify signed.qq --json")[1])["signer"] == made
    code, out, _ = quietq("verify signed.qq --key key.pub")
    assert code == 0
    assert f"Signed by the key given, {made}" in out
    for command, words in (
        ("verify signed.qq --key other.pub", "signed by another key"),
        ("verify reward.qq --key key.pub", "nobody signed it"),
        ("verify signed.qq --key nothing.pub", "no key"),
    ):
        code, out, err = quietq(command)
        assert (code, out) == (2, "")
        assert words in err


def test_signing_later_keeps_the_content(quietq, reward, tmp_path):
    make_keys(tmp_path / "key")
    content = unpack(reward.read_bytes())
    reward.write_bytes(pack(json.dumps({**content.record, "version": "9.9"}), content.arrays))  # another version's file
    before = json.loads(quietq("verify reward.qq --json")[1])
    assert before["version"] == "9.9"
    assert quietq("publish reward.qq --out signed.qq --sign key")[0] == 0
    after = json.loads(quietq("verify signed.qq --json")[1])
    assert (after["hash"], after["version"]) == (before["hash"], before["version"])


def test_only_a_release_is_replaced(quietq, reward, tmp_path):
    make_keys(tmp_path / "key")
    (tmp_path / "ratings.csv").write_text("person,state,rating\n")
    quietq("ledger create books.db --source ratings --epsilon 0.9 --delta 1e-4")
    for name in ("ratings.csv", "key", "key.pub", "books.db"):
        before = (tmp_path / name).read_bytes()
        code, out, err = quietq(f"publish reward.qq --out {name} --sign key")
        assert (code, out) == (2, "")
        assert "is there and not a release" in err
        assert (tmp_path / name).read_bytes() == before
    quietq("publish reward.qq --out signed.qq --sign key")
    code, _, err = quietq("publish simulated.qq --out signed.qq --not-private")
    assert code == 0
    assert "signed.qq is replaced" in err


def test_copying_keeps_the_signature(quietq, reward, tmp_path):
    make_keys(tmp_path / "key")
    quietq("publish reward.qq --out signed.qq --sign key")
    quietq("publish signed.qq --out copy.qq")
    assert quietq("verify copy.qq --key key.pub")[0] == 0


def test_a_damaged_file_is_refused(quietq, reward):
    data = bytearray(reward.read_bytes())
    data[-3] ^= 1
    reward.write_bytes(data)
    code, out, err = quietq("verify reward.qq")
    assert (code, out) == (2, "")
    assert err.startswith("quietq: 'reward.qq' is not a release: its content does not have the hash")
    assert quietq("verify nothing.qq")[0] == 2
    assert "is a folder" in quietq("verify .")[2]


def save_untrained(folder) -> None:
    """The folder of an agent that has not learnt anything yet: what leaves of it is what matters here."""
    import jax

    agent = paper.Agent("walk", paper.NoNoise(widths=(8,)), seed=1)
    released = agent.method.finish(agent.method.init(agent.spaces, jax.random.key(0)), None)
    agent._released = jax.tree.map(lambda leaf: leaf[None], released)
    folder.mkdir()
    agent.save(folder / "agent.qq")


def test_publish_an_agent(quietq, tmp_path):
    pytest.importorskip("jax")
    save_untrained(tmp_path / "run")
    assert open_release(tmp_path / "run" / "agent.qq").privacy == "NOT PRIVATE"
    code, out, err = quietq("publish run --out agent.qq")
    assert (code, out) == (2, "")
    assert "--not-private" in err
    assert not (tmp_path / "agent.qq").exists()
    code, out, _ = quietq("publish run --out agent.qq --not-private")
    assert code == 0
    assert "NOT PRIVATE, and says so: agent.qq" in out
    agent = paper.Agent.load(tmp_path / "run" / "agent.qq")
    states = np.linspace(0, 1, 7)
    assert np.allclose(qq.load(tmp_path / "agent.qq")(states), agent.q_values(states[:, None]), atol=1e-5)


def test_publish_refuses_in_a_sentence(quietq, reward):
    for command, words in (
        ("publish nothing --out agent.qq", "There is no agent"),
        ("publish reward.qq --out reward.qq", "--out must not be"),
        ("publish simulated.qq --out again.qq", "Only a certified release"),
        ("publish reward.qq --out nowhere/reward.qq", "folder that exists"),
    ):
        code, out, err = quietq(command)
        assert (code, out) == (2, "")
        assert words in err
