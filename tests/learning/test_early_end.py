"""A checkpoint that was copied, and one copy ended early: no noise is used for two purposes."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from agent_cases import BUDGET, IN_PIECES, POINTS, SPENDERS

from quietq import Accountant, InvalidInput
from quietq.learning import Agent


def interrupted(method, folder) -> None:
    def stop(event):
        if event.step == 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Agent("walk", method, seed=1).learn(**IN_PIECES, directory=folder, callback=stop)
    shutil.copytree(folder, folder.with_name("copy"))


def test_what_is_ended_early_releases_nothing_new(tmp_path):
    method = SPENDERS["value"]()
    interrupted(method, tmp_path / "run")
    seen = {}

    def watch(event):
        seen[event.step] = event.values(POINTS)[0]

    Agent("walk", method, seed=1).learn(**IN_PIECES, directory=tmp_path / "run", resume=True, callback=watch)
    early = Agent("walk", method, seed=1).learn(
        **IN_PIECES, directory=tmp_path / "copy", resume=True, callback=lambda event: event.step == 150
    )
    assert early.steps == 150  # in the middle of a round
    np.testing.assert_allclose(early.q_values(POINTS), seen[100], atol=1e-6)  # the last whole one, which both have
    again = Agent("walk", method, seed=1).learn(**IN_PIECES, directory=tmp_path / "copy", resume=True)
    np.testing.assert_array_equal(again.q_values(POINTS), early.q_values(POINTS))


def test_what_releases_at_its_end_only_is_not_ended_early(tmp_path):
    method = SPENDERS["output"]()
    interrupted(method, tmp_path / "run")
    agent = Agent("walk", method, seed=1)
    with pytest.raises(InvalidInput, match="releases at its end only"):
        agent.learn(**IN_PIECES, directory=tmp_path / "copy", resume=True, callback=lambda event: True)
    whole = [
        Agent("walk", method, seed=1).learn(**IN_PIECES, directory=tmp_path / name, resume=True).q_values(POINTS)
        for name in ("run", "copy")
    ]
    np.testing.assert_array_equal(whole[0], whole[1])  # the same release twice


def test_a_training_that_was_never_booked_is_not_gone_on_with_as_if_it_were(tmp_path):
    method = replace(SPENDERS["output"](), law="gaussian")  # as it is for an account
    interrupted(method, tmp_path / "run")
    accountant = Accountant(BUDGET)
    with pytest.raises(InvalidInput, match="begun without an account"):
        Agent("walk", method, seed=1, account=accountant).learn(**IN_PIECES, directory=tmp_path / "run", resume=True)
    assert accountant.spent_mu == 0
