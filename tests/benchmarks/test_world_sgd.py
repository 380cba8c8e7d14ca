import numpy as np
import pytest

pytest.importorskip("jax")
dp_sgd = pytest.importorskip("benchmarks.dp_sgd")
sgd = pytest.importorskip("benchmarks.world_sgd")

from benchmarks.planners import plan  # noqa: E402
from benchmarks.systems import REPORTED  # noqa: E402
from quietq import Budget  # noqa: E402

pytestmark = pytest.mark.slow  # jax-privacy takes long to load


def test_noise_is_for_one_person_replaced_in_every_step():
    """n steps of a Gaussian with sensitivity two lengths compose to mu = 2 sqrt(n)/noise."""
    assert 2 * 100**0.5 / dp_sgd.noise_multiplier(1.0, 100, Budget.from_mu(0.25, 1e-5)) == pytest.approx(0.25)


def test_another_person_moves_shares_between_rungs_by_no_more_than_is_noised(monkeypatch):
    """Values of two people with nothing in common, in each of three columns."""
    there = np.ones((10, 4))
    one, other = np.full((10, 4, 3), 0.9), np.full((10, 4, 3), 0.9)
    other[3] = 1e-6
    seen = []

    class Watched:
        def standard_normal(self, shape):
            return np.zeros(shape)

    monkeypatch.setattr(sgd.np, "cumsum", lambda share, axis: seen.append(share) or np.add.accumulate(share, axis))
    for values in (one, other):
        sgd.sizes(values, there, 1.0, Watched())
    assert np.linalg.norm(seen[0] - seen[1]) <= (2 * 3) ** 0.5 / 10 + 1e-12


def test_sizes_are_about_the_deviation():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((2000, 8, 2)) * [0.1, 0.01]
    found = sgd.sizes(values, np.ones((2000, 8)), 1.0, rng)
    assert (found > [0.05, 0.005]).all()
    assert (found < [0.2, 0.02]).all()


def test_without_noise_a_network_is_good_enough_to_balance():
    system = REPORTED["CartPole-v1"]
    network = sgd.train(system.sessions(500, 0), 0, Budget.from_mu(1e3, 1e-5))
    assert system.value(plan(network, system, 0), 0, 20) > 375
