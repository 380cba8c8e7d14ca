"""Checkpoints: an agent goes on as if nothing had happened, and nothing is drawn or paid twice."""

import os
import stat

import numpy as np
import pytest
from agent_cases import BUDGET, FIFTY, IN_PIECES, SMALL, SPENDERS, STEPS, answers

from quietq import Accountant, Budget, InvalidInput
from quietq.learning import Agent, NoNoise, Published, ValueNoise, checkpoint as checkpoints, training as trainings


class Stopped(Exception):
    pass


def interrupted(agent, directory, at, **learn):
    def stop(event):
        if event.step == at:
            raise Stopped

    with pytest.raises(Stopped):
        agent.learn(**IN_PIECES, directory=directory, callback=stop, **learn)


@pytest.mark.parametrize(
    ("method", "learn"),
    [
        pytest.param(lambda: NoNoise(**SMALL), {"seeds": 2}, marks=pytest.mark.slow),
        (SPENDERS["value"], {"simulate": 1}),
        pytest.param(SPENDERS["gradient"], {"simulate": 2}, marks=pytest.mark.slow),
        pytest.param(lambda: Published.code(0.4, levels=6), {"simulate": 2}, marks=pytest.mark.slow),
    ],
)
def test_a_resumed_training_ends_as_if_it_had_not_been_interrupted(tmp_path, method, learn):
    interrupted(Agent("walk", method(), seed=4), tmp_path, 100, **learn)
    resumed = Agent("walk", method(), seed=4).learn(**IN_PIECES, directory=tmp_path, resume=True, **learn)
    whole = Agent("walk", method(), seed=4).learn(**IN_PIECES, **learn)
    np.testing.assert_array_equal(answers(resumed), answers(whole))
    assert resumed.not_private == whole.not_private
    assert resumed.steps == whole.steps == STEPS


def test_resuming_draws_no_noise_and_pays_nothing(tmp_path, monkeypatch):
    ledger = Accountant(BUDGET)
    interrupted(Agent("walk", SPENDERS["value"](), seed=4, account=ledger), tmp_path, 100)
    assert ledger.spent_mu == pytest.approx(BUDGET.mu)

    class NoEntropy:
        def __init__(self):
            raise AssertionError("noise was drawn a second time")

    monkeypatch.setattr(trainings, "SystemEntropy", NoEntropy)
    twice = [
        Agent("walk", SPENDERS["value"](), seed=4, account=ledger).learn(**IN_PIECES, directory=tmp_path, resume=True)
        for _ in range(2)
    ]
    np.testing.assert_array_equal(answers(twice[0]), answers(twice[1]))
    assert ledger.spent_mu == pytest.approx(BUDGET.mu)
    assert twice[0].certificate.standing == "certified"
    said = twice[0].certificate.assumptions[-1]
    assert (said.text, said.enforced) == ("The training was resumed, and had been charged to an account before.", False)


def test_a_checkpoint_is_marked_private_and_belongs_to_its_training(tmp_path):
    interrupted(Agent("walk", SPENDERS["value"](), seed=4), tmp_path, 50, simulate=1)
    file = tmp_path / checkpoints.NAME
    assert "PRIVATE" in file.name
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    again = {"directory": tmp_path, "simulate": 1, **IN_PIECES}
    with pytest.raises(InvalidInput, match="holds a checkpoint already"):
        Agent("walk", SPENDERS["value"](), seed=4).learn(**again)
    for other in (
        Agent("walk", SPENDERS["value"](), seed=5),
        Agent("walk", ValueNoise(relation=FIFTY, budget=Budget(0.8, 1e-4), round_steps=100), seed=4),
        Agent("walk", SPENDERS["value"](), seed=4, reward=lambda states: states),
        Agent("walk", SPENDERS["input"](), seed=4),
    ):
        with pytest.raises(InvalidInput, match="of another training"):
            other.learn(resume=True, **again)
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(InvalidInput, match="damaged"):
        Agent("walk", SPENDERS["value"](), seed=4).learn(resume=True, **again)
    with pytest.raises(InvalidInput, match="no checkpoint"):
        Agent("walk", NoNoise()).learn(200, directory=tmp_path / "elsewhere", resume=True)
