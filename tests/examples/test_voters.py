"""The voters' example runs, releases what is certified, and loses little."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from quietq.feedback.voters import POSITIONS, ratings
from quietq.publishing import open_release

for package in ("statsmodels", "polars", "matplotlib", "gymnasium"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed", allow_module_level=True)

SCRIPT = Path(__file__).parents[2] / "examples" / "voters.py"


@pytest.fixture(scope="module")
def voters():
    spec = importlib.util.spec_from_file_location("voters", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["voters"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["voters"]


def test_mean_reward_is_the_respondents(voters):
    rows, people = ratings(), voters.voters()
    assert people.not_private["people_present"] == 944
    assert people.not_private["used_rows"] == rows.height == 944 * 7
    assert people.not_private["clipped_ratings"] == 0
    means = rows.group_by("state").mean().sort("state")["rating"].to_numpy()
    assert np.allclose(people.functions()[0](POSITIONS), means, atol=1e-5)


def test_little_is_lost_and_less_with_more_budget(voters):
    outcomes, spent = voters.compare(voters.voters(), draws=20)
    means = [outcome.simulated.mean() for outcome in outcomes.values()]
    assert means == sorted(means, reverse=True)
    assert outcomes[1.0].simulated.max() < 0.01  # seeded, so always the same
    assert all(0 <= outcome.lost <= 1 for outcome in outcomes.values())
    assert max(outcomes) < spent < sum(outcomes)


@pytest.mark.slow
def test_the_command(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", SCRIPT, "--out", tmp_path / "out"], capture_output=True, text=True, check=True
    )
    assert "NOT PRIVATE, for the operator" in done.stdout
    assert done.stderr == ""
    names = {f"voters_{epsilon}.{suffix}" for epsilon in ("0.1", "0.5", "1") for suffix in ("qq", "png")}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names | {"not_private_comparison.png"}
    for epsilon in ("0.1", "0.5", "1"):
        certificate = open_release(tmp_path / "out" / f"voters_{epsilon}.qq").certificate
        assert (certificate.standing, certificate.epsilon) == ("certified", float(epsilon))
        assert certificate.relation is not None
        assert certificate.relation["people"] == 944
