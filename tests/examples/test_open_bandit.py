"""The sample of Open Bandit is what it should be, and can be replayed."""

import pytest

pytest.importorskip("obp")
pytest.importorskip("polars")
from benchmarks.bandit_data import open_bandit, replay
from quietq import Budget
from quietq.learning.bandits import Episodes


def test_a_replay_of_open_bandit() -> None:
    """Plumbing, not evidence: 38 clicks."""
    rows = open_bandit()
    assert (rows.height, int(rows["click"].sum()), rows["item"].n_unique()) == (10_000, 38, 80)
    policy = Episodes(80, Budget(1.0, 0.0), simulate=0)
    matched, clicks = replay(policy, rows)
    assert matched == policy.state.time
    assert 0 <= clicks <= matched < 400
