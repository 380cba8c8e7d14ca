"""`quietq train`, `methods` and `worlds`, in this process, so that JAX is loaded once and types are checked."""

import json
import os
import sys

import numpy as np
import pytest
from test_cli import run

pytest.importorskip("jax")

import quietq as qq
from quietq.cli.preparation import prepare
from quietq.cli.settings import fresh
from quietq.learning import METHODS, Agent, checkpoint
from quietq.release import open_release

TINY = "--steps 100 --widths 8 --batch 16 --start 16 --replay 100 --every 25"  # the same shapes are compiled once
PROMISE = "--people 50 --epsilon 0.9 --delta 1e-4"
ROUNDS = "--steps 100 --round-steps 50 --every 25"
FIELDS = {"certificate", "out", "seconds", "not_private"}


def trained(quietq, arguments: str) -> dict:
    code, out, err = quietq(f"train {arguments} --json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_a_private_agent(quietq, tmp_path):
    result = trained(quietq, f"walk --method reward {PROMISE} {TINY} --seeds 3 --seed 1 --out run")
    assert set(result) == FIELDS
    assert result["certificate"]["standing"] == "certified"
    assert result["certificate"]["relation"]["people"] == 50
    assert isinstance(result["seconds"], float)
    assert set(result["not_private"]) == {"score", "return"}
    for values in result["not_private"].values():
        assert len(values) == 3
        assert all(isinstance(value, float) for value in values)
    folder = tmp_path / result["out"]
    assert {path.name for path in folder.iterdir()} == {
        "config.json", "certificate.json", "agent.npz", "agent.qq", "NOT-PRIVATE-scores.json", "PRIVATE-checkpoint.npz",
        "reward.qq", "README.txt",
    }  # fmt: skip
    for path in folder.iterdir():
        assert bool(path.stat().st_mode & 0o077) == ("PRIVATE" not in path.name)
    private = open_release(folder / "reward.qq")
    assert (
        private.certificate.to_dict() == result["certificate"] == json.loads((folder / "certificate.json").read_text())
    )
    agent = Agent.load(folder / "agent.npz")
    assert agent.evaluate().returns == result["not_private"]["return"]
    config = json.loads((folder / "config.json").read_text())
    assert (config["steps"], config["people"], config["options"]["widths"], config["seed"]) == (100, 50, [8], 1)
    note = (folder / "README.txt").read_text()
    assert note.index("may be published") < note.index("agent.npz") < note.index("NOT PRIVATE") < note.index("PRIVATE.")


def test_words_for_people(quietq, tmp_path):
    code, out, err = quietq(f"train walk --method value {PROMISE} {ROUNDS} --log")
    assert (code, err) == (0, "")
    assert "certified to be (0.9, 0.0001)-differentially private" in out
    assert "May be published: runs/walk-value-" in out
    assert "NOT PRIVATE, for you only: score" in out
    (folder,) = (tmp_path / "runs").iterdir()
    rows = (folder / "NOT-PRIVATE-metrics.csv").read_text().splitlines()
    assert rows[0] == "run,episode,return"
    assert len(rows) == 1 + 100 // 50
    assert list((folder / "tensorboard").iterdir())


def test_what_is_not_certified_is_not_to_be_published(quietq, tmp_path):
    code, out, _ = quietq("train walk --method published --preset text --sigma 0.74 --levels 6 --steps 100 --out run")
    assert code == 0
    assert "Not private, so not to be published: run/agent.npz" in out
    assert "May be published" not in out
    assert "Publish nothing of it" in (tmp_path / "run" / "README.txt").read_text()
    options = json.loads((tmp_path / "run" / "config.json").read_text())["options"]  # those of the preset, and ours
    assert (options["optimiser"], options["explore_first"], options["sigma"], options["levels"]) == ("sgd", 0, 0.74, 6)


def test_without_noise(quietq, tmp_path):
    assert trained(quietq, f"walk --method none {TINY} --out run")["certificate"]["standing"] == "none"
    assert (tmp_path / "run" / "NOT-PRIVATE-metrics.csv").exists()


def test_simulated_rewards(quietq, tmp_path):
    result = trained(quietq, f"walk --method reward {TINY} {PROMISE} --simulate 3 --out run")
    assert result["certificate"]["standing"] == "none"
    assert len(result["not_private"]["score"]) == 3
    agent = Agent.load(tmp_path / "run" / "agent.npz")
    assert len({float(agent.q_values([0.5], member)[0]) for member in range(3)}) == 3
    assert not (tmp_path / "run" / "reward.qq").exists()


def test_simulated_noise_protects_nobody_and_can_be_repeated(quietq):
    command = f"walk --method input --steps 50 {PROMISE} --seeds 2 --simulate 2 --seed 5"
    first, second = (trained(quietq, f"{command} --out {name}") for name in ("one", "two"))
    assert first["certificate"]["standing"] == "none"
    assert len(first["not_private"]["score"]) == 4
    assert first["not_private"] == second["not_private"]


def test_on_a_reward_from_a_file(quietq, tmp_path):
    made = trained(quietq, f"walk --method reward {PROMISE} {TINY} --out made")
    used = trained(quietq, f"walk --method reward --reward made/reward.qq {TINY} --out used")
    assert used["certificate"] == made["certificate"]
    assert not (tmp_path / "used" / "reward.qq").exists()


def test_a_pure_promise(quietq):
    result = trained(quietq, f"walk --method reward --people 50 --epsilon 0.9 --delta 0 {TINY}")
    assert (result["certificate"]["delta"], result["certificate"]["mu"]) == (0, None)


def test_a_ball_of_rough_rewards(quietq, tmp_path):
    command = f"walk --method reward --radius 0.01 --epsilon 0.9 --delta 1e-4 --rewards 500 {TINY}"
    result = trained(quietq, f"{command} --out run")
    assert result["certificate"]["relation"]["kind"] == "sup-ball"
    assert (tmp_path / "run" / "reward.qq").exists()
    assert trained(quietq, "--resume --out run")["not_private"] == result["not_private"]  # reads it back


@pytest.mark.parametrize(("world", "delta"), [("navigation", 1e-4), ("recommender", 1e-4), ("recommender", 0.0)])
def test_several_dimensions(tmp_path, world, delta):
    settings = fresh({"world": world, "method": "reward", "people": 500, "epsilon": 0.9, "delta": delta}, {})
    agents = [prepare(settings).agent(tmp_path) for _ in range(2)]  # the second finds the reward of the first
    assert agents[0].certificate.standing == "certified"
    assert agents[0].method.settings() == agents[1].method.settings()


@pytest.mark.parametrize("method", [f"reward {TINY}", f"value {ROUNDS}"])
def test_an_interrupted_training_goes_on(quietq, tmp_path, method, monkeypatch):
    command = f"walk --method {method} {PROMISE} --seed 3"
    write, written = checkpoint.write, []

    def interrupt(*arguments, **named):
        write(*arguments, **named)
        written.append(arguments)
        if len(written) == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write", interrupt)
        code, out, err = quietq(f"train {command} --out run --json")
    assert (code, out) == (130, "")
    assert "to go on: quietq train --resume --out run" in err
    assert (tmp_path / "run" / "PRIVATE-checkpoint.npz").exists()
    assert not (tmp_path / "run" / "agent.npz").exists()
    assert "nothing here may leave yet" in (tmp_path / "run" / "README.txt").read_text()
    code, _, err = quietq(f"train {command} --out run")
    assert code == 2
    assert "holds files already" in err
    code, _, err = quietq("train walk --method reward --steps 300 --resume --out run")
    assert code == 2
    assert "leave it out to resume" in err
    result = trained(quietq, f"{command} --resume --out run")
    assert result["certificate"]["standing"] == "certified"
    assert len(result["not_private"]["score"]) == 1
    again = trained(quietq, "--resume --out run")  # a finished run says the same again
    assert again["not_private"] == result["not_private"]
    assert again["certificate"] == result["certificate"]


def test_out_of_reach_is_told_but_not_refused(quietq):
    code, out, err = quietq("train walk --method input --people 3 --epsilon 0.9 --delta 1e-4 --steps 50 --json")
    assert (code, set(json.loads(out))) == (0, FIELDS)
    assert err.startswith("quietq: warning: no algorithm with this promise can score above 0.67")
    assert "0.9 takes at least 9 people." in err
    code, _, err = quietq("train walk --method input --radius 1 --epsilon 0.9 --delta 1e-4 --steps 50 --json")
    assert code == 0
    assert "a radius of at most 0.0556" in err


WRONG = [
    ("", "needs a world"),
    ("walk", "needs --method"),
    (f"moon --method reward {PROMISE}", "no world called 'moon'"),
    (f"walk --method magic {PROMISE}", "no method called 'magic'"),
    ("walk --method evaluation", "quietq.Evaluation from Python"),
    ("walk --method reward", "needs --people, --epsilon and --delta, or --reward"),
    ("walk --method value --people 50 --epsilon 1", "needs --delta"),
    ("walk --method value --people 50 --epsilon 1 --delta 0", "delta must be above 0"),
    (f"walk --method published {PROMISE}", "follows from --sigma"),
    (f"walk --method none {PROMISE}", "protects nobody: leave out --people, --epsilon and --delta"),
    ("walk --method none --simulate 2", "leave out --simulate"),
    (f"walk --method value {PROMISE} --seeds 2", "seeds must be 1"),
    (f"walk --method value {PROMISE} --radius 1", "give one of them"),
    (f"walk --method value {PROMISE} --noise path", "--noise belongs to methods that learn from a private reward"),
    (f"walk --method value {PROMISE} --learning-rate 1", "it has --knots, --gamma, --spread, --round-steps, --explore"),
    (f"walk --method reward {PROMISE} --learning-rate fast", "--learning-rate must be a number, not 'fast'"),
    (f"walk --method reward {PROMISE} --learning-rate -1", "learning_rate must be above 0"),
    (f"walk --method reward {PROMISE} --widths 8;8", "--widths must be whole numbers with commas"),
    (f"walk --method reward {PROMISE} --loss cubic", "--loss must be one of huber, squared"),
    (f"walk --method reward {PROMISE} --steps 0", "steps must be"),
    (f"walk --method reward {PROMISE} --steps 2.5", "2.5"),
    (f"walk --method reward {PROMISE} --simulate 0", "simulate must be"),
    (f"walk --method reward {PROMISE} --seed -1", "seed must be"),
    (f"walk --method reward {PROMISE} --noise path --pieces 4", "a path has none"),
    (f"walk --method reward {PROMISE} --rewards 5", "belongs to --radius"),
    ("walk --method reward --people 0 --epsilon 1 --delta 1e-4", "people must be"),
    ("walk --method reward --people 50 --epsilon -1 --delta 1e-4", "epsilon must be"),
    ("walk --method reward --reward none.qq", "no file"),
    ("walk --method reward --reward none.qq --people 5", "leave out --people"),
    ("thermostat --method reward --reward walk.qq", "defined on [0, 1]"),
    ("navigation --method reward --people 50 --epsilon 1 --delta 0", "noise for sums of functions is Gaussian"),
    (f"navigation --method reward {PROMISE} --noise k-norm", "one dimension only"),
    (f"recommender --method value {PROMISE}", "give --radius instead"),
    ("navigation --method published", "one coordinate"),
    (f"walk --method gradient {PROMISE} --steps 100", "nothing is learned"),
    (f"walk --method value {PROMISE} --out walk.qq", "is a file"),
    (f"walk --method value {PROMISE} --out {os.curdir}", "holds files already"),
    ("--resume", "needs --out"),
    ("--resume --out nowhere", "no run in 'nowhere'"),
    (f"walk --method reward {PROMISE} --colour red", "--colour"),
]


@pytest.mark.parametrize(("arguments", "words"), WRONG)
def test_wrong_input_is_one_sentence_and_leaves_nothing_behind(quietq, tmp_path, arguments, words, monkeypatch):
    private = qq.privatise(lambda s: 0 * s, qq.Budget(1, 1e-4), relation=qq.people(9, 0, 1, 1), noise="knots", pieces=4)
    qq.publish(private, tmp_path / "walk.qq")
    monkeypatch.setattr("quietq.noise.entropy.SystemEntropy.normals", None)  # nothing may be drawn
    code, out, err = quietq(f"train {arguments}")
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert words in err
    assert [path.name for path in tmp_path.iterdir()] == ["walk.qq"]


def test_help_has_the_sentences_and_defaults_of_the_methods(quietq, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("TERMINAL_WIDTH", "300")
    code, out, _ = quietq("train --help")
    assert code == 0
    assert "How many people stand behind the reward; public." in out
    assert "Share of random actions after the first round. (Default 0.5 in value.)" in out
    assert "--no-bootstrap-truncated" in out
    for kind in METHODS.values():
        for name in qq.learning.options_of(kind):  # type: ignore[attr-defined]
            assert "--" + name.replace("_", "-") in out


def test_options_of_all_kinds_are_read():
    from quietq.cli.hyper import made, read
    from quietq.learning import NoNoise, Published

    texts = {"widths": "8,4", "gamma": "0.5", "clamp": "None", "replay": "9", "loss": "squared", "optimiser": "sgd",
             "bootstrap_truncated": False}  # fmt: skip
    method = made(NoNoise, read(NoNoise, texts))
    assert (method.widths, method.gamma, method.clamp, method.replay) == ((8, 4), 0.5, None, 9)
    assert (method.loss, method.optimiser, method.bootstrap_truncated) == ("squared", "sgd", False)
    assert made(Published, read(Published, {"beta": "2"})) == Published.code(beta=2.0)


def test_methods(quietq):
    code, out, err = quietq("methods --json")
    assert (code, err) == (0, "")
    rows = {row["name"]: row for row in json.loads(out)["methods"]}
    assert {*METHODS, "evaluation"} <= set(rows)
    assert rows["published"]["standing"] == "claimed"
    assert all(set(row) == {"name", "standing", "noise", "summary"} for row in rows.values())
    assert "once, before training" in quietq("methods")[1]


def test_worlds(quietq):
    code, out, err = quietq("worlds --json")
    assert (code, err) == (0, "")
    rows = {row["name"]: row for row in json.loads(out)["worlds"]}
    assert set(rows) == {"walk", "thermostat", "navigation", "recommender"}
    assert (rows["walk"]["gymnasium_id"], rows["navigation"]["dimension"]) == ("quietq/Walk-v0", 2)
    assert "any one of 50 people" in rows["walk"]["relation"]
    assert "any one of 9 people" in quietq("worlds --people 9")[1]


def test_other_commands_do_not_wait_for_jax():
    code = "import sys, quietq.cli; sys.exit('jax' in sys.modules or 'quietq.learning' in sys.modules)"
    import subprocess

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_as_a_user_runs_it(tmp_path):
    done = run(f"train walk --method input {PROMISE} --steps 100 --out {tmp_path / 'run'} --json")
    assert (done.returncode, done.stderr) == (0, "")
    assert set(json.loads(done.stdout)) == FIELDS
    assert np.isfinite(json.loads(done.stdout)["not_private"]["return"]).all()
