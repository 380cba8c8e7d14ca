"""`quietq paper train` and `methods`, in this process, so that JAX is loaded once and types are checked."""

import contextlib
import inspect
import io
import json
import os
import sys
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from test_cli import run

pytest.importorskip("jax")

import jax

import quietq as qq
from quietq.cli import main
from quietq.cli.checked_training import CheckedTraining
from quietq.paper import Published
from quietq.paper.agents import Agent, NoNoise, trainer
from quietq.paper.agents.hyper_parameters import read_options
from quietq.paper.agents.training import Training
from quietq.paper.method_table import METHOD_TABLE
from quietq.paper.methods import METHODS, build_method
from quietq.released import open_release

TINY = "--steps 100 --set widths=8 --set batch=16 --set start=16 --set replay=100"  # the same shapes are compiled once
THREE = f"{TINY} --seeds 3"
PROMISE = "--people 50 --epsilon 0.9 --delta 1e-4"
ROUNDS = "--steps 100 --set round_steps=50"
FIELDS = {"certificate", "out", "seconds", "not_private"}


def trained(quietq, arguments: str) -> dict:
    code, out, err = quietq(f"paper train {arguments} --json")
    assert (code, err) == (0, "")
    return json.loads(out)


@pytest.fixture(scope="module")
def run_of_reward(tmp_path_factory) -> tuple[Path, dict]:
    """One training that several tests look at: its folder, and what it printed."""
    out, printed = tmp_path_factory.mktemp("shared") / "run", io.StringIO()
    words = f"quietq paper train reward walk {PROMISE} {THREE} --seed 1 --out {out} --json".split()
    quiet = mock.patch.object(sys, "argv", words), mock.patch.object(warnings, "showwarning")
    with quiet[0], quiet[1], contextlib.redirect_stdout(printed), pytest.raises(SystemExit) as done:
        main()
    assert not done.value.code
    return out, json.loads(printed.getvalue())


def test_a_private_agent(run_of_reward):
    folder, result = run_of_reward
    assert set(result) == FIELDS
    assert result["certificate"]["standing"] == "certified"
    assert result["certificate"]["relation"]["people"] == 50
    assert isinstance(result["seconds"], float)
    assert set(result["not_private"]) == {"score", "return"}
    for values in result["not_private"].values():
        assert len(values) == 3
        assert all(isinstance(value, float) for value in values)
    assert result["out"] == str(folder)
    assert {path.name for path in folder.iterdir()} == {"agent.qq", "reward.qq"}  # releases, and nothing else
    private = open_release(folder / "reward.qq")
    assert private.certificate.to_dict() == result["certificate"]
    agent = Agent.load(folder / "agent.qq")
    assert agent.evaluate().returns == result["not_private"]["return"]
    assert agent.method.settings()["widths"] == [8]


def test_words_for_people(quietq, tmp_path):
    code, out, err = quietq(f"paper train value walk {PROMISE} {ROUNDS}")
    assert (code, err) == (0, "")
    assert "certified to be (0.9, 0.0001)-differentially private" in out
    assert "May be published: runs/walk-value-" in out
    assert "NOT PRIVATE, for you only: score" in out
    (folder,) = (tmp_path / "runs").iterdir()
    assert [path.name for path in folder.iterdir()] == ["agent.qq"]


def test_what_is_not_certified_is_not_to_be_published(quietq, tmp_path):
    code, out, _ = quietq(
        "paper train published walk --set preset=text --set sigma=0.74 --set levels=6 --steps 100 --out run"
    )
    assert code == 0
    assert "Not private, so not to be published: run/agent.qq" in out
    assert "May be published" not in out
    options = Agent.load(tmp_path / "run" / "agent.qq").method.settings()  # those of the preset, and ours
    assert (options["optimiser"], options["explore_first"], options["sigma"], options["levels"]) == ("sgd", 0, 0.74, 6)


def test_without_noise(quietq, tmp_path):
    assert trained(quietq, f"none walk {TINY} --out run")["certificate"]["standing"] == "none"
    assert open_release(tmp_path / "run" / "agent.qq").privacy == "NOT PRIVATE"


def test_simulated_rewards(quietq, tmp_path):
    result = trained(quietq, f"reward walk {TINY} {PROMISE} --simulate 3 --out run")
    assert result["certificate"]["standing"] == "none"
    assert len(result["not_private"]["score"]) == 3
    agent = Agent.load(tmp_path / "run" / "agent.qq")
    assert len({float(agent.q_values([0.5], member)[0]) for member in range(3)}) == 3
    assert not (tmp_path / "run" / "reward.qq").exists()


def test_simulated_noise_protects_nobody_and_can_be_repeated(quietq):
    command = f"input walk --steps 50 {PROMISE} --seeds 2 --simulate 2 --seed 5"
    first, second = (trained(quietq, f"{command} --out {name}") for name in ("one", "two"))
    assert first["certificate"]["standing"] == "none"
    assert len(first["not_private"]["score"]) == 4
    assert first["not_private"] == second["not_private"]


def test_on_a_reward_from_a_file(quietq, tmp_path, run_of_reward):
    folder, result = run_of_reward
    used = trained(quietq, f"reward walk --reward {folder / 'reward.qq'} {THREE} --out used")
    assert used["certificate"] == result["certificate"]
    assert not (tmp_path / "used" / "reward.qq").exists()


def test_a_private_reward_is_the_release_that_a_ledger_is_charged_for(quietq, tmp_path):
    pytest.importorskip("sqlalchemy")
    assert quietq("ledger create books.db --source walkers --epsilon 0.9 --delta 1e-4 --apart-epsilon 0.5")[0] == 0
    ledger = qq.Ledger(tmp_path / "books.db")
    code, _, err = quietq(f"paper train reward walk {PROMISE} {THREE} --ledger books.db --out run")
    assert (code, err) == (0, "")
    (charge,) = ledger.balance("walkers").bookings
    assert charge.cost.mu == qq.Budget(0.9, 1e-4).mu
    assert charge.release == open_release(tmp_path / "run" / "reward.qq").hash
    assert charge.reserved.method == "train/reward"
    trained(quietq, f"reward walk --reward run/reward.qq {THREE} --out used")  # draws nothing, pays nothing
    assert len(ledger.balance("walkers").bookings) == 1


def drawn(folder: Path, checked: CheckedTraining) -> qq.Certificate:
    """The certificate of an agent up to its training: its reward is drawn, written, and the same when read back."""
    checked.draw_reward(folder)
    written = CheckedTraining(method="reward", world=checked.world, reward=folder / "reward.qq")
    written.draw_reward(folder)  # was drawn already
    assert written.agent.method.settings() == checked.agent.method.settings()
    assert written.agent.certificate == checked.agent.certificate
    return checked.agent.certificate


def test_a_pure_promise(tmp_path):
    certificate = drawn(tmp_path, CheckedTraining(method="reward", world="walk", people=50, epsilon=0.9, delta=0.0))
    assert (certificate.delta, certificate.mu, certificate.standing) == (0, None, "certified")


def test_a_ball_of_rough_rewards(tmp_path):
    rough = CheckedTraining(method="reward", world="walk", radius=0.01, epsilon=0.9, delta=1e-4, rewards=500)
    certificate = drawn(tmp_path, rough)
    assert isinstance(certificate.relation, qq.SupBall)


def test_several_dimensions(tmp_path):
    plane = CheckedTraining(method="reward", world="navigation", people=500, epsilon=0.9, delta=1e-4)
    assert drawn(tmp_path, plane).standing == "certified"


def interrupt(*_, **__):
    raise KeyboardInterrupt


SPENT, UNSPENT = "the budget was charged already", "nothing was spent"


@pytest.mark.parametrize(
    ("method", "at", "said"),
    [
        (f"value walk {ROUNDS} {PROMISE} --simulate 2", "advance", UNSPENT),
        (f"value walk {ROUNDS} {PROMISE}", "rehearse", UNSPENT),
        (f"none walk {TINY}", "advance", UNSPENT),
        (f"value walk {ROUNDS} {PROMISE}", "advance", SPENT),
        (f"reward walk {THREE} {PROMISE}", "advance", SPENT),
    ],
)
def test_an_interrupted_training_is_lost_and_says_what_was_spent(quietq, tmp_path, method, at, said, monkeypatch):
    monkeypatch.setattr("quietq.privacy.account._spent", {})  # as in a process of its own
    with monkeypatch.context() as patch:
        patch.setattr(trainer, at, interrupt)
        code, out, err = quietq(f"paper train {method} --out run --json")
    assert (code, out) == (130, "")
    assert err.startswith(f"\nquietq: stopped; {said}")
    assert err.count("\n") == 2
    left = [path.name for path in (tmp_path / "run").iterdir()]
    assert left == (["reward.qq"] if method.startswith("reward") else [])
    if method.startswith("reward"):  # which is a release of its own, and costs nothing any more
        used = trained(quietq, f"reward walk {THREE} --reward run/reward.qq --out used")
        assert used["certificate"]["standing"] == "certified"


def test_an_agent_that_is_trained_is_not_lost(quietq, tmp_path, monkeypatch):
    monkeypatch.setattr(Agent, "evaluate", interrupt)
    code, _, err = quietq(f"paper train value walk {ROUNDS} {PROMISE} --out run")
    assert (code, SPENT in err) == (130, True)
    assert Agent.load(tmp_path / "run" / "agent.qq").certificate.standing == "certified"


SLOWER = (pytest.param(name, "--steps 1000", marks=pytest.mark.slow) for name in ("input", "gradient", "value-network"))


@pytest.mark.parametrize(("name", "steps"), [("output", "--steps 200"), ("value", ROUNDS), *SLOWER])
def test_no_file_holds_noise_before_a_training_has_ended(quietq, tmp_path, name, steps, monkeypatch):
    """Whoever copied it could go on with it in another program, and noise that is used twice protects nobody."""
    drawn, files = [], {}
    noise, advance = Training.noise, trainer.advance

    def record(*arguments, **named):
        drawn.append(noise(*arguments, **named))
        return drawn[-1]

    def look(*arguments, **named):
        advance(*arguments, **named)
        files.update({path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()})
        raise KeyboardInterrupt

    monkeypatch.setattr(Training, "noise", record)
    monkeypatch.setattr(trainer, "advance", look)
    code, _, _ = quietq(f"paper train {name} walk {PROMISE} {steps} --out run")
    assert code == 130
    files.update({path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()})
    (one,) = drawn
    normals = [array for leaf in jax.tree.leaves(one) if (array := np.asarray(leaf)).size > 1]
    assert normals
    assert not files


@pytest.mark.parametrize("name", METHODS)
def test_nothing_is_resumed(quietq, tmp_path, name):
    code, _, err = quietq(f"paper train {name} --resume --out run")
    assert (code, "No such option: --resume" in err) == (2, True)
    assert "resume" not in quietq(f"paper train {name} --help")[1]
    assert not {"resume", "directory"} & set(inspect.signature(Agent.learn).parameters)


def test_out_of_reach_is_told_but_not_refused(quietq):
    code, out, err = quietq(f"paper train value walk --people 3 --epsilon 0.9 --delta 1e-4 {ROUNDS} --json")
    assert (code, set(json.loads(out))) == (0, FIELDS)
    assert err.startswith("quietq: warning: no algorithm with this promise can score above 0.67")
    assert "0.9 takes at least 9 people, a radius of at most 0.0556." in err
    rough, smooth = (
        CheckedTraining(method="input", world="walk", radius=radius, epsilon=0.9, delta=1e-4) for radius in (1.0, 0.01)
    )
    assert "a radius of at most 0.0556" in str(rough.warning())
    assert smooth.warning() is None


WRONG = [
    ("reward", "Missing argument 'WORLD': One of walk, thermostat, navigation, or any Gymnasium id."),
    ("walk walk", "METHOD must be one of none, published, reward,"),
    ("evaluation walk", "METHOD must be one of none, published, reward,"),
    (f"reward moon {PROMISE}", "no world called 'moon'"),
    ("reward walk", "needs --people, --epsilon and --delta, or --reward"),
    ("value walk --people 50 --epsilon 1", "needs --delta"),
    ("value walk --people 50 --epsilon 1 --delta 0", "delta must be above 0"),
    ("published walk --people 50", "'published' has no --people: leave it out."),
    ("published walk --ledger books.db", "'published' has no --ledger: leave it out."),
    ("none walk --epsilon 1", "'none' has no --epsilon: leave it out."),
    ("none walk --simulate 2", "'none' has no --simulate: leave it out."),
    (f"value walk {PROMISE} --seeds 2", "seeds must be 1"),
    (f"value walk {PROMISE} --radius 1", "give one of them"),
    (f"value walk {PROMISE} --noise path", "'value' has no --noise: leave it out."),
    (f"value walk {PROMISE} --set learning_rate=1", "hyper-parameter must be one of knots, gamma, "),
    (f"reward walk {PROMISE} --set learning_rate=fast", "learning_rate must be a number, not 'fast'"),
    (f"reward walk {PROMISE} --set batch=2.5", "batch must be a whole number, not '2.5'"),
    (f"reward walk {PROMISE} --set learning-rate=-1", "learning_rate must be above 0"),
    (f"reward walk {PROMISE} --set widths=8;8", "widths must be whole numbers with commas"),
    (f"reward walk {PROMISE} --set loss=cubic", "loss must be one of huber, squared"),
    (f"reward walk {PROMISE} --steps 0", "steps must be"),
    (f"reward walk {PROMISE} --steps 2.5", "2.5"),
    (f"reward walk {PROMISE} --simulate 0", "simulate must be"),
    (f"reward walk {PROMISE} --seed -1", "seed must be"),
    (f"reward walk {PROMISE} --noise path --pieces 4", "a path has none"),
    (f"reward walk {PROMISE} --rewards 5", "belongs to --radius"),
    ("reward walk --people 0 --epsilon 1 --delta 1e-4", "people must be"),
    ("reward walk --people 50 --epsilon -1 --delta 1e-4", "epsilon must be"),
    ("reward walk --reward none.qq", "no file"),
    ("reward walk --reward none.qq --people 5", "leave out --people"),
    ("reward thermostat --reward walk.qq", "defined on [0, 1]"),
    ("reward navigation --people 50 --epsilon 1 --delta 0", "a delta above 0"),
    (f"reward navigation {PROMISE} --noise k-norm", "one dimension only"),
    ("published navigation", "one coordinate"),
    (f"gradient walk {PROMISE} --steps 100", "nothing is learned"),
    (f"value walk {PROMISE} --out walk.qq", "is a file"),
    (f"value walk {PROMISE} --out {os.curdir}", "holds files already"),
    (f"reward walk {PROMISE} --every 25", "No such option: --every"),
    (f"reward walk {PROMISE} --colour red", "--colour"),
    (f"reward walk {PROMISE} --learning-rate 0.1", "No such option: --learning-rate"),
    ("none walk --set bootstrap_truncated=maybe", "bootstrap_truncated must be yes or no, not 'maybe'"),
    ("none walk --set gamma", "--set must be NAME=VALUE"),
    ("none walk --box 0 1", "'walk' has a box of its own"),
    ("none CartPole-v1", "those without bounds are clipped to a public box"),
    ("none CartPole-v1 --box 0 1", "box has 1 pairs"),
    ("none CartPole-v1 --box 0", "--box must be two numbers"),
    ("none CartPole-v1 --box 1 0 --box 1 0 --box 1 0 --box 1 0", "low below high"),
    ("none Blackjack-v1", "must have a bounded Box"),
    ("none MountainCarContinuous-v0", "must have a Discrete action space"),
    (f"value MountainCar-v0 {PROMISE}", "give --radius, not --people"),
    (f"reward MountainCar-v0 {PROMISE}", "needs --reward in 'MountainCar-v0'"),
    ("reward MountainCar-v0 --reward walk.qq", "defined on [0, 1]"),
    ("published MountainCar-v0", "one coordinate"),
]


@pytest.fixture(scope="module")
def walk_file(tmp_path_factory) -> bytes:
    file, relation = tmp_path_factory.mktemp("reward") / "walk.qq", qq.people(9, 0, 1, 1)
    qq.publish(qq.privatise(lambda s: 0 * s, qq.Budget(1, 1e-4), relation=relation, noise="knots", pieces=4), file)
    return file.read_bytes()


@pytest.mark.parametrize(("arguments", "words"), WRONG)
def test_wrong_input_is_one_sentence_and_leaves_nothing_behind(
    quietq, tmp_path, arguments, words, monkeypatch, walk_file
):
    (tmp_path / "walk.qq").write_bytes(walk_file)
    monkeypatch.setattr("quietq.noise.entropy.SystemEntropy.normals", None)  # nothing may be drawn
    code, out, err = quietq(f"paper train {arguments}")
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert words in err
    assert [path.name for path in tmp_path.iterdir()] == ["walk.qq"]


HELD = "--box -2.4 2.4 --box -3 3 --box -0.21 0.21 --box -3 3"


def test_any_environment_of_gymnasium(quietq, tmp_path):
    promise = "--radius 0.01 --epsilon 0.9 --delta 1e-4"
    result = trained(quietq, f"input CartPole-v1 {HELD} {promise} --steps 50 --set knots=2 --out run")
    assert result["certificate"]["standing"] == "certified"
    assert result["certificate"]["domain"] == [[-2.4, 2.4], [-3, 3], [-0.21, 0.21], [-3, 3]]
    assert (result["not_private"]["score"], len(result["not_private"]["return"])) == (None, 1)
    assert open_release(tmp_path / "run" / "agent.qq").privacy == "certified"


@pytest.mark.slow
def test_an_environment_without_noise_and_with_a_private_reward(quietq, tmp_path):
    code, out, err = quietq(f"paper train none MountainCar-v0 {TINY} --seeds 2 --out run")
    assert (code, err) == (0, "")
    assert "NOT PRIVATE, for you only: return -200 (-200 to -200 over 2 runs)" in out
    box = qq.Box((-1.2, -0.07), (0.6, 0.07))
    relation = qq.RkhsBall(0.01, qq.Exponential((1.0, 1.0)).norm)
    private = qq.privatise(lambda s: s[:, 0] * 0, qq.Budget(0.9, 1e-4), relation=relation, domain=box)
    qq.publish(private, tmp_path / "reward.qq")
    command = f"reward MountainCar-v0 --box -1.2 0.6 --box -0.07 0.07 --reward reward.qq {TINY} --out second"
    assert trained(quietq, command)["certificate"]["standing"] == "certified"


def test_hyper_parameters_have_sentences_and_defaults(quietq):
    code, out, err = quietq("paper methods value")
    assert (code, err) == (0, "")
    assert METHOD_TABLE["value"].summary in out
    assert "explore=0.5  <float>\n      Share of random actions after the first round." in out
    assert "learning_rate" not in out
    told = json.loads(quietq("paper methods reward --json")[1])
    assert told["standing"] == "certified"
    (flag,) = (one for one in told["hyper_parameters"] if one["name"] == "bootstrap_truncated")
    assert (flag["kind"], flag["default"]) == ("<yes|no>", "yes")
    assert "It has no hyper-parameters." in quietq("paper methods evaluation")[1]


@pytest.mark.parametrize("method", METHODS)
def test_what_a_method_can_be_set_to_fits_on_a_page(quietq, method):
    code, out, _ = quietq(f"paper methods {method}")
    assert (code, len(out.splitlines()) <= 80) == (0, True)


def test_hyper_parameters_of_all_kinds_are_read():
    texts = {"widths": "8,4", "gamma": "0.5", "clamp": "None", "replay": "9", "loss": "squared", "optimiser": "sgd"}
    method = build_method("none", read_options(NoNoise, {**texts, "bootstrap_truncated": "no"}))
    assert (method.widths, method.gamma, method.clamp, method.replay) == ((8, 4), 0.5, None, 9)
    assert (method.loss, method.optimiser, method.bootstrap_truncated) == ("squared", "sgd", False)
    assert build_method("published", read_options(Published, {"beta": "2"})) == Published.code(beta=2.0)


def test_methods(quietq):
    code, out, err = quietq("paper methods --json")
    assert (code, err) == (0, "")
    rows = {row["name"]: row for row in json.loads(out)["methods"]}
    assert {*METHODS, "evaluation"} <= set(rows)
    assert rows["published"]["standing"] == "claimed"
    assert all(set(row) == {"name", "standing", "noise", "summary", "in_worlds"} for row in rows.values())
    assert "once, before training" in quietq("paper methods")[1]


@pytest.mark.slow
def test_as_a_user_runs_it(tmp_path):
    done = run(f"paper train input walk {PROMISE} --steps 100 --out {tmp_path / 'run'} --json")
    assert (done.returncode, done.stderr) == (0, "")
    assert set(json.loads(done.stdout)) == FIELDS
    assert np.isfinite(json.loads(done.stdout)["not_private"]["return"]).all()
