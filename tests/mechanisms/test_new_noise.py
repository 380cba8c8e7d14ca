"""Noise of a new kind is a file (`laplace_knots.py`) and an entry of a table; nothing else knows of it."""

import asyncio
import subprocess
import sys
from pathlib import Path

import httpx
import numpy as np
import pytest
from laplace_knots import LaplaceKnots
from scipy.stats import kstest

from quietq import Budget, InvalidInput, Ratings, load, people, privatise, publish
from quietq.audit import audit_reward, frozen_release
from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms.candidates import MECHANISMS, choose
from quietq.worlds import WALK

BALL, PURE = people(50, 0, 0.5, 1), Budget(0.9, 0)


@pytest.fixture(autouse=True)
def the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MECHANISMS, "laplace", LaplaceKnots)


def private(noise: str = "laplace", **options):
    return privatise(lambda s: 0.5 - np.abs(s - 0.5), PURE, relation=BALL, noise=noise, pieces=4, **options)


def test_it_is_listed_and_compared():
    with pytest.raises(InvalidInput, match="'laplace'"):
        private("rhubarb")
    assert "laplace with 8 pieces" in " ".join(choose("auto", OwnFunction(None, BALL, slope=1.0), PURE).remarks)


def test_it_is_released(tmp_path: Path) -> None:
    import polars as pl

    rows = pl.DataFrame({"person": range(50), "state": [0.5] * 50, "rating": [0.5] * 50})
    ratings = Ratings.read(rows, box=(0, 1), low=0, high=0.5, slope=1, people=50)
    certificate = privatise(ratings, PURE, noise="laplace").certificate
    assert (certificate.standing, certificate.method, certificate.delta) == ("certified", "reward/laplace", 0.0)
    assert "increments between knots" in str(certificate)


def test_its_noise_has_its_law() -> None:
    """Increments of what is released are those of the reward and Laplace numbers of size slope/rate."""
    law = choose("laplace", OwnFunction(None, BALL), PURE, pieces=4).law  # type: ignore[attr-defined]
    increments = np.diff(0.5 - np.abs(np.linspace(0, 1, 5) - 0.5))
    for draws in ([private(simulate=seed) for seed in range(400)], [private() for _ in range(60)]):
        noise = (np.diff([one.values for one in draws], axis=1) - increments) * law.rate / law.ball.lipschitz
        assert kstest(noise.ravel(), "laplace").pvalue > 1e-6


def test_it_is_published_loaded_verified_and_served(tmp_path: Path, quietq) -> None:
    from quietq.publishing.server.application import create_app
    from quietq.publishing.server.catalogue import open_catalogue, read_served

    released, file = private(), tmp_path / "reward.qq"
    publish(released, file)
    again = load(file)
    np.testing.assert_array_equal(again([0.1, 0.5]), released([0.1, 0.5]))
    assert again.certificate == released.certificate
    assert quietq(f"verify {file}")[0] == 0
    catalogue = open_catalogue([read_served(file)])
    transport = httpx.ASGITransport(create_app(catalogue))

    async def answer() -> httpx.Response:
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get(f"/v1/releases/{next(iter(catalogue))}/values", params={"state": 0.5})

    assert asyncio.run(answer()).json()["values"] == [[float(released(0.5))]]


def test_it_is_audited() -> None:
    move = frozen_release(choose("laplace", OwnFunction(None, BALL), PURE, pieces=4))
    assert 0.99 < move.share <= 1
    finding = audit_reward(WALK, choose("laplace", OwnFunction(None, BALL, box=WALK.box), PURE, pieces=4), runs=400)
    assert finding.verdict == "consistent"


def test_a_file_with_it_is_read_where_its_module_is_not(tmp_path: Path) -> None:
    """A certificate states its noise in a norm that is known everywhere, and a file names no module."""
    publish(private(), tmp_path / "reward.qq")
    code = "import sys\nfrom quietq import load\nprint(load(sys.argv[1]).certificate.method)"
    arguments = [sys.executable, "-c", code, str(tmp_path / "reward.qq")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert done.stdout == "reward/laplace\n"
