"""Every promise, measured: the paper's is broken, ours hold, and the audit would have seen if they did not."""

import pytest

from quietq import Budget
from quietq.audit import audit_reward
from quietq.mechanisms.path import GaussianProcessMechanism
from quietq.paper import InputNoise, Published
from quietq.paper.attacks import View, audit_training
from quietq.worlds import WALK

SURE = 1 - 1e-6
BUDGET = Budget(0.9, 1e-4)


@pytest.mark.slow
def test_the_papers_program_is_told_apart_by_a_few_short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 60 runs that are judged a few are mistaken; with four mistakes the bound would still be above 1.5."""
    monkeypatch.setattr("quietq.paper.attacks.on_trainings.BATCH", 80)  # all of them at once, and none for nothing
    finding = audit_training(Published.code(0.32), WALK, 40, steps=800)
    assert (finding.promise.standing, finding.promise.epsilon, finding.verdict) == ("claimed", 0.9, "refuted")
    assert finding.epsilon_lower > 1.5


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "claimed", "least"), [(0.32, 0.9, 4.0), (0.74, 0.45, 2.5)])
def test_the_papers_program_gives_away_far_more_than_it_claims(sigma: float, claimed: float, least: float) -> None:
    finding = audit_training(Published.code(sigma), WALK, 1000)
    assert (finding.promise.epsilon, finding.verdict) == (claimed, "refuted")
    assert finding.epsilon_lower >= least


def test_a_private_reward_gives_away_no_more_than_certified_and_the_audit_sees_most_of_it() -> None:
    path = GaussianProcessMechanism.for_relation(WALK.relation(50), BUDGET, levels=8).mechanism
    finding = audit_reward(WALK, path, 1000)
    assert finding.verdict == finding.at(SURE).verdict == "consistent"
    assert BUDGET.mu / 2 <= finding.mu_lower <= BUDGET.mu
    assert finding.at(SURE).mu_lower <= BUDGET.mu


@pytest.mark.slow
def test_so_do_noised_rewards() -> None:
    method = InputNoise(relation=WALK.relation(50), budget=BUDGET)
    finding = audit_training(method, WALK, 4000, view=View(queries=7), score="learned")
    assert finding.at(SURE).verdict == "consistent"
    assert finding.mu_lower >= BUDGET.mu / 2
    assert finding.at(SURE).mu_lower <= BUDGET.mu
