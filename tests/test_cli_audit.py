"""`quietq audit` and `quietq paper audit`, in this process, so that JAX is loaded once and types are checked."""

import json

import pytest

pytest.importorskip("jax")

from quietq import Budget, audit as room
from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms import moments, rounds
from quietq.mechanisms.candidates import choose
from quietq.paper.attacks.attack_plan import plan_trainings
from quietq.worlds import WALK

SMALL = "--steps 130 --set widths=4 --set batch=16 --runs 40"
"""The network has barely begun to learn: what is shown here is the command, not the audit."""


def found(quietq, arguments: str, command: str = "audit") -> dict:
    code, out, err = quietq(f"{command} {arguments} --json")
    assert (code, err) == (0, "")
    return json.loads(out)


@pytest.mark.slow
def test_the_papers_program(quietq):
    result = found(quietq, f"published --set preset=code --set sigma=0.32 {SMALL}", "paper audit")
    assert (result["standing"], result["epsilon"]) == ("claimed", 0.9)
    assert (result["delta"], result["confidence"], result["runs"], result["judged"]) == (1e-4, 0.95, 40, 30)
    assert result["verdict"] == ("refuted" if result["epsilon_lower"] > 0.9 else "consistent")
    again = found(quietq, f"published --set preset=code --set sigma=0.32 {SMALL}", "paper audit")
    assert result == again


def test_a_private_reward(quietq):
    result = found(quietq, "reward --people 50 --epsilon 0.9 --delta 1e-4 --runs 100")
    assert (result["epsilon"], result["verdict"], result["runs"]) == (0.9, "consistent", 100)
    assert 0 <= result["mu_lower"] < result["mu"]
    pure = found(quietq, "reward --noise k-norm --pieces 4 --runs 40")
    assert (pure["delta"], pure["mu"]) == (0, None)
    assert pure["move"].startswith("worst (")


@pytest.mark.parametrize(
    ("arguments", "method"),
    [
        pytest.param("paper audit reward --radius 0.01 --runs 40", "reward/observed", marks=pytest.mark.slow),
        ("audit reward --world navigation --people 100 --runs 40", "reward/path"),
        ("paper audit evaluation --people 12 --runs 40", "evaluation"),
        ("paper audit input --steps 50 --runs 40 --view policy", "input"),
    ],
)
def test_other_kinds(quietq, arguments: str, method: str):
    result = found(quietq, arguments, "")
    assert (result["method"], result["verdict"]) == (method, "consistent")


@pytest.mark.slow
def test_a_model_of_everybodys_rows(quietq, monkeypatch):
    monkeypatch.setattr(rounds, "SETTINGS", rounds.RoundSettings(rounds=1))
    arguments = "--people 10 --runs 40 --tries 4"
    result = found(quietq, f"ratings {arguments}")
    assert (result["method"], result["verdict"]) == ("reward/rounds", "consistent")
    moved = result["sensitivity"]
    assert not moved["exceeds"]
    assert len(moved["queries"]) == 3
    assert 0.9 < moved["share"] <= 1
    code, out, _ = quietq(f"audit comparisons {arguments}")
    assert code == 0
    assert "Never exceeded. With the noise held fixed, the worst rows of one person moved the farthest query" in out
    assert "of the promised mu" in out


@pytest.mark.slow
def test_a_world_of_everybodys_sessions(quietq, monkeypatch):
    monkeypatch.setattr(rounds, "SETTINGS", rounds.RoundSettings(rounds=1))
    monkeypatch.setattr(moments, "SETTINGS", moments.MomentSettings(rounds=1, first_rounds=1, rate_rounds=1))
    result = found(quietq, "sessions --people 10 --runs 40 --tries 4 --view file")
    assert (result["method"], result["world"], result["verdict"]) == ("world/moments", "sessions", "consistent")
    assert (result["view"], result["score"]) == ("the published file", "learned")
    assert not result["sensitivity"]["exceeds"]
    assert 0.9 < result["sensitivity"]["share"] <= 1


def test_in_words(quietq):
    code, out, _ = quietq("audit reward --runs 40")
    assert code == 0
    assert "reward/path is certified for epsilon 0.9" in out
    assert "the best test's bound lies about 0.55 below the true mu" in out
    path = choose("path", OwnFunction(None, WALK.relation(50), box=WALK.box), Budget(50.0, 1e-4))
    finding = room.audit_reward(WALK, path, 60, confidence=0.99)
    broken = room.Finding(finding.attack, room.Promise("claimed", 0.1, 1e-4), 60, finding.by_epsilon, finding.by_mu)
    assert room.in_words(broken).startswith(
        "REFUTED. reward/path claims epsilon 0.1 at delta 0.0001; measured: epsilon at"
    )


def test_all_of_them_in_tables(quietq, tmp_path, monkeypatch):
    names = ["reward, path", "reward, knots"]
    cheap = [one._replace(check=None) for one in room.plan_releases(40, Budget(0.9, 1e-4), 50) if one.title in names]
    move = room.Movement("value", stated=1.0, found=0.9, by="greedy")
    checked = room.PlannedAudit("value", check=lambda: move)
    monkeypatch.setattr(room, "plan_releases", lambda *_: iter([*cheap, checked]))
    result = found(quietq, "all --runs 40 --out here")
    assert [one["name"] for one in result["findings"]] == names
    assert result["findings"][0]["confidence"] == 0.975  # so that both hold together
    assert result["sensitivity"] == [move.to_dict()]
    (written,) = (tmp_path / "here").iterdir()
    assert result == {**result, **json.loads(written.read_text()), "file": "here/audit.json"}
    code, out, _ = quietq("audit all --runs 40 --out here")
    assert code == 0
    assert "none of them moved farther than stated" in out


def test_every_audit_of_the_table_has_a_name_of_its_own():
    every = [*room.plan_releases(100, Budget(0.9, 1e-4), 50), *plan_trainings(100, Budget(0.9, 1e-4), 50)]
    titles = [planned.title for planned in every]
    assert len(set(titles)) == len(titles) >= 15


@pytest.mark.slow
def test_the_whole_table_runs(quietq):
    released, trained = (found(quietq, "all --runs 40 --out here", command) for command in ("audit", "paper audit"))
    findings = released["findings"] + trained["findings"]
    assert {one["name"] for one in findings if one["verdict"] == "refuted"} == {
        "published, sigma 0.32", "published, sigma 0.74",
    }  # fmt: skip
    assert not any(move["exceeds"] for move in released["sensitivity"] + trained["sensitivity"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("nothing", "No such command 'nothing'"),
        ("nobody", "METHOD must be one of all, published, reward, "),
        ("none", "METHOD must be one of all, published, reward, "),
        ("reward --world nowhere", "There is no world called 'nowhere'"),
        ("value --view reward", "--view reward is for methods that learn from a private reward"),
        ("value --noise path", "An audit of 'value' has no --noise: leave it out."),
        ("value --set sigma=1", "A hyper-parameter must be one of knots, gamma,"),
        ("value --out here", "An audit of 'value' has no --out: leave it out."),
        ("value --confidence 1", "confidence must be above 0.5 and below 1"),
        ("value --runs 3", "runs must be a whole number of at least 40"),
        ("value --epsilon -1", "epsilon must be above 0"),
        ("value --delta 0", "delta must be above 0"),
        ("value --move up", "move must be one of shift, zigzag"),
        ("value --queries 0", "No such option: --queries"),
        ("reward --set gamma=0.5", "add --view final"),
        ("reward --steps 50", "add --view final"),
        ("reward --move shift", "add --view final"),
        ("reward --radius 0.01 --noise path", "--noise makes no difference"),
        ("published --set sigma=0", "this certificate promises nothing"),
        ("value --world navigation --move zigzag", "is for worlds of one coordinate"),
        ("all --confidence 2", "confidence must be above 0.5 and below 1"),
        ("all --gamma 0.5", "No such option: --gamma"),
        ("paper-all --set gamma=0.5", "An audit of 'all' has no --set: leave it out."),
        ("all --runs 3", "runs must be a whole number of at least 40"),
        ("value --confidence 0.9999999999999999", "confidence must be above 0.5 and below 1"),
        ("value --seed -1", "seed must be a whole number of at least 0, not -1"),
        ("value --steps 0", "steps must be a whole number of at least 1"),
        ("reward --view final --steps -1", "steps must be a whole number of at least 1"),
        ("value --view every --steps 5", "moments must be at most the number of steps"),
        ("value --runs 1000001", "runs must be at most 1000000"),
        ("value --people 5 --radius 0.1", "--people or --radius, not both"),
        ("evaluation --move shift", "An audit of 'evaluation' has no --move: leave it out."),
        ("ratings --people 2", "people must be a whole number of at least 3"),
        ("ratings --dimension 1", "dimension must be a whole number of at least 2"),
        ("ratings --tries 1", "tries must be a whole number of at least 4"),
        ("comparisons --noise path", "noise must be 'auto' or one of 'rounds'"),
        ("published --people 3", "An audit of 'published' has no --people: leave it out."),
        ("published --world navigation", "published adds noise along one coordinate"),
    ],
)
def test_wrong_input_is_one_sentence(quietq, arguments: str, sentence: str):
    of_releases = arguments.split()[0] in ("nothing", "all", "ratings", "comparisons")
    code, out, err = quietq(f"{'audit' if of_releases else 'paper audit'} {arguments.removeprefix('paper-')}")
    assert (code, out) == (2, "")
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
