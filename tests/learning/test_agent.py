"""The agent: its verbs, its promise, its files, and that nothing is drawn or paid twice."""

import json
import os
import stat

import gymnasium
import jax
import numpy as np
import optax
import pytest

from quietq import Accountant, Budget, BudgetExhausted, InvalidInput, SupBall, people, privatise
from quietq.learning import (
    Agent,
    GradientNoise,
    InputNoise,
    NoNoise,
    NotTrained,
    OutputNoise,
    Published,
    RewardNoise,
    ValueNoise,
)
from quietq.learning import checkpoint as checkpoints
from quietq.learning import training as trainings
from quietq.worlds import ThermostatWorld, walk_reward

BUDGET = Budget(epsilon=0.9, delta=1e-4)
FIFTY = people(50, low=0, high=0.5, slope=1)
POINTS = np.linspace(0, 1, 9)[:, None]
SMALL = {"widths": (8,), "start": 32, "batch": 16}
SPENDERS = {
    "value": lambda: ValueNoise(relation=FIFTY, budget=BUDGET, round_steps=50),
    "input": lambda: InputNoise(relation=FIFTY, budget=BUDGET),
    "output": lambda: OutputNoise(relation=FIFTY, budget=BUDGET),
    "gradient": lambda: GradientNoise(relation=FIFTY, budget=BUDGET, start=50, batch=32, train_every=50),
}
MOSTLY_SLOW = [name if name == "value" else pytest.param(name, marks=pytest.mark.slow) for name in SPENDERS]


class Stopped(Exception):
    pass


def private(seed=None):
    return privatise(walk_reward, BUDGET, relation=FIFTY, simulate=seed)


def answers(agent):
    return np.stack([agent.q_values(POINTS, i) for i in range(agent.members)])


@pytest.mark.slow
def test_the_design_page_example():
    agent = Agent("quietq/Walk-v0", method=RewardNoise(private(), **SMALL))
    assert agent.learn(300, seeds=3) is agent
    assert agent.members == 3
    action, state = agent.predict([0.5])
    assert action in (0, 1)
    assert state is None
    assert agent.predict(POINTS)[0].shape == (9,)
    assert agent.q_values([0.5]).shape == (2,)
    np.testing.assert_allclose(agent.q_values(POINTS), answers(agent).mean(axis=0), rtol=1e-6)
    assert agent.certificate.standing == "certified"
    assert agent.certificate.epsilon == 0.9
    assert agent.not_private == {}  # its learning curve is of the private reward


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(lambda: NoNoise(**SMALL), marks=pytest.mark.slow, id="none"),
        pytest.param(lambda: RewardNoise(private(3), **SMALL), id="reward"),
    ],
)
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(kind):
    method = kind()
    first, again, other = (answers(Agent("walk", method, seed=seed).learn(300, seeds=2)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.isclose(first, other).any()
    assert not np.isclose(first[0], first[1]).any()


@pytest.mark.parametrize("name", SPENDERS)
def test_noise_that_protects_is_new_each_time_whatever_the_seed(name):
    first, second = (Agent("walk", SPENDERS[name](), seed=1).learn(200) for _ in range(2))
    assert not np.array_equal(answers(first), answers(second))
    assert first.certificate.standing == "certified"
    assert first.certificate == second.certificate
    assert len(first.not_private["episode_returns"][0]) == 4


@pytest.mark.parametrize("name", MOSTLY_SLOW)
def test_simulated_noise_is_repeatable_and_promises_nothing(name):
    first, second = (Agent("walk", SPENDERS[name](), seed=1).learn(200, simulate=2, seeds=2) for _ in range(2))
    np.testing.assert_array_equal(answers(first), answers(second))
    assert first.members == 4
    assert first.certificate.standing == "none"
    assert first.certificate.reproducible
    with pytest.raises(InvalidInput, match="name the member"):
        first.q_values(POINTS)


@pytest.mark.parametrize("name", SPENDERS)
def test_a_second_training_would_be_a_second_release(name):
    agent = Agent("walk", SPENDERS[name](), ledger=(ledger := Accountant(BUDGET)))
    with pytest.raises(InvalidInput, match="seeds must be 1"):
        agent.learn(200, seeds=2)
    assert ledger.spent_mu == 0
    agent.learn(200)
    assert ledger.spent_mu == pytest.approx(BUDGET.mu)
    with pytest.raises(BudgetExhausted):
        agent.learn(200)
    with pytest.raises(BudgetExhausted):
        Agent("walk", SPENDERS[name](), ledger=ledger).learn(200)


def interrupted(agent, directory, at, **learn):
    def stop(event):
        if event.step == at:
            raise Stopped

    with pytest.raises(Stopped):
        agent.learn(400, directory=directory, every=100, callback=stop, **learn)


@pytest.mark.parametrize(
    ("method", "learn"),
    [
        pytest.param(lambda: NoNoise(**SMALL), {"seeds": 2}, marks=pytest.mark.slow),
        (SPENDERS["value"], {"simulate": 2}),
        pytest.param(SPENDERS["gradient"], {"simulate": 2}, marks=pytest.mark.slow),
        pytest.param(lambda: Published.code(0.4, levels=6), {"simulate": 2}, marks=pytest.mark.slow),
    ],
)
def test_a_resumed_training_ends_as_if_it_had_not_been_interrupted(tmp_path, method, learn):
    interrupted(Agent("walk", method(), seed=4), tmp_path, 200, **learn)
    resumed = Agent("walk", method(), seed=4).learn(400, directory=tmp_path, every=100, resume=True, **learn)
    whole = Agent("walk", method(), seed=4).learn(400, every=100, **learn)
    np.testing.assert_array_equal(answers(resumed), answers(whole))
    assert resumed.not_private == whole.not_private
    assert resumed.steps == whole.steps == 400


def test_resuming_draws_no_noise_and_pays_nothing(tmp_path, monkeypatch):
    ledger = Accountant(BUDGET)
    interrupted(Agent("walk", SPENDERS["value"](), seed=4, ledger=ledger), tmp_path, 200)
    assert ledger.spent_mu == pytest.approx(BUDGET.mu)

    class NoEntropy:
        def __init__(self):
            raise AssertionError("noise was drawn a second time")

    monkeypatch.setattr(trainings, "SystemEntropy", NoEntropy)
    twice = [
        Agent("walk", SPENDERS["value"](), seed=4, ledger=ledger).learn(400, directory=tmp_path, every=100, resume=True)
        for _ in range(2)
    ]
    np.testing.assert_array_equal(answers(twice[0]), answers(twice[1]))
    assert ledger.spent_mu == pytest.approx(BUDGET.mu)
    assert twice[0].certificate.standing == "certified"


def test_a_checkpoint_is_marked_private_and_belongs_to_its_training(tmp_path):
    interrupted(Agent("walk", SPENDERS["value"](), seed=4), tmp_path, 100, simulate=1)
    file = tmp_path / checkpoints.NAME
    assert "PRIVATE" in file.name
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    again = {"directory": tmp_path, "every": 100, "simulate": 1}
    with pytest.raises(InvalidInput, match="holds a checkpoint already"):
        Agent("walk", SPENDERS["value"](), seed=4).learn(400, **again)
    for other in (
        Agent("walk", SPENDERS["value"](), seed=5),
        Agent("walk", ValueNoise(relation=FIFTY, budget=Budget(0.8, 1e-4), round_steps=50), seed=4),
        Agent("walk", SPENDERS["value"](), seed=4, reward=lambda states: states),
        Agent("walk", SPENDERS["input"](), seed=4),
    ):
        with pytest.raises(InvalidInput, match="of another training"):
            other.learn(400, resume=True, **again)
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(InvalidInput, match="damaged"):
        Agent("walk", SPENDERS["value"](), seed=4).learn(400, resume=True, **again)
    with pytest.raises(InvalidInput, match="no checkpoint"):
        Agent("walk", NoNoise()).learn(200, directory=tmp_path / "elsewhere", resume=True)


def test_callbacks_see_what_was_released_and_can_stop():
    seen = []

    def watch(event):
        seen.append((event.step, None if event.values is None else event.values(POINTS)))
        return event.step == 200

    agent = Agent("walk", SPENDERS["value"](), seed=1).learn(400, every=100, callback=watch)
    assert [step for step, _ in seen] == [100, 200]
    assert agent.steps == 200
    np.testing.assert_allclose(seen[-1][1], answers(agent), atol=1e-6)  # the round was over: nothing more is released
    hidden = []
    Agent("walk", SPENDERS["output"]()).learn(200, every=100, callback=lambda event: hidden.append(event.values))
    assert hidden == [None, None]  # before its end it has released nothing


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


def test_progress_from_inside_the_program_and_a_log(tmp_path, capsys):
    steps = []
    from quietq.learning import trainer

    trainer.LISTENERS.append(steps.append)
    try:
        Agent("walk", NoNoise(**SMALL)).learn(300, progress="compiled", log=tmp_path)
    finally:
        trainer.LISTENERS.pop()
    assert sorted(steps)[:3] == [0, 3, 6]
    assert "Training" in capsys.readouterr().err
    assert any(file.name.startswith("events") for file in tmp_path.iterdir())


@pytest.mark.parametrize(
    "network", ["splines", *(pytest.param(name, marks=pytest.mark.slow) for name in ("fourier", "random"))]
)
def test_any_network(network):
    agent = Agent(ThermostatWorld(), NoNoise(network=network, features=5, **SMALL)).learn(200)
    assert np.isfinite(agent.q_values([[20.0], [25.0]])).all()


@pytest.mark.slow
def test_any_world():
    agent = Agent("navigation", ValueNoise(relation=SupBall(0.01), budget=BUDGET, knots=4)).learn(200)
    assert agent.q_values([[0.5, 0.5]]).shape == (1, 4)
    assert len(agent.evaluate(episodes=20).returns) == 1


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (lambda: Agent("walk", NoNoise()).learn(100), "steps must be at least 128, the start of learning"),
        (lambda: Agent("walk", RewardNoise(private(1))).learn(100), "or nothing is learned"),
        (lambda: Agent("moon", NoNoise()), "the known ones are walk"),
        (lambda: Agent("walk", NoNoise()).learn(0), "steps must be"),
        (lambda: Agent("walk", NoNoise(gamma=1.5)), "gamma must lie between 0 and 1, not 1.5"),
        (lambda: Agent("walk", NoNoise(optimiser="adamm")), "optimiser must be one of Optax's"),
        (lambda: Agent("walk", ValueNoise()).learn(100), "needs a relation and a budget"),
        (
            lambda: Agent("walk", ValueNoise(relation=FIFTY, budget=Budget(1.0, 0.0))).learn(100),
            "delta must be above 0",
        ),
        (lambda: Agent("walk", RewardNoise()).learn(200), "needs a private reward"),
        (lambda: Agent("thermostat", RewardNoise(private(1))).learn(100), "states lie in"),
        (lambda: Agent("walk", RewardNoise([private(), private()])).learn(100), "only simulated ones"),
        (lambda: Agent("walk", RewardNoise(private(1))).learn(100, simulate=2), "give 'reward' simulated rewards"),
        (lambda: Agent("navigation", Published.code()).learn(100), "one coordinate"),
        (lambda: Agent(gymnasium.make("quietq/Walk-v0"), NoNoise()).learn(200, directory="x"), "cannot be saved"),
    ],
)
def test_wrong_input_is_told_in_a_sentence(attempt, words):
    with pytest.raises(InvalidInput, match=words):
        attempt()


def test_an_untrained_agent_says_so():
    with pytest.raises(NotTrained, match="call learn first"):
        Agent("walk", NoNoise()).predict([0.5])
