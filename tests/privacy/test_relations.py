"""Relations and their radii."""

import math

import numpy as np
import pytest

from quietq import (
    Accountant,
    Budget,
    Exponential,
    GaussianProcessMechanism,
    InvalidInput,
    LipschitzBall,
    NoRkhsRadius,
    RkhsBall,
    SupBall,
    people as people_relation,
)
from quietq.paper import BandLimited
from quietq.privacy import Cost
from quietq.privacy.relations import Trajectories
from reproduction.hilbert import norm_of, piecewise_linear


def test_people_give_the_ball_of_the_theory():
    ball = people_relation(50, low=0, high=0.5, slope=1)
    assert (ball.radius, ball.lipschitz, ball.people) == (0.01, 0.04, 50)
    assert ball.best_beta() == 4
    assert ball.rkhs_radius(Exponential(4)) == pytest.approx(0.01 * math.sqrt(5))


@pytest.mark.parametrize("beta_factor", [0.25, 0.5, 0.9, 1.1, 2, 4])
def test_best_beta_is_best(beta_factor):
    ball = LipschitzBall(radius=0.3, lipschitz=1.7)
    best = ball.rkhs_radius(Exponential(ball.best_beta()))
    assert best == pytest.approx(math.sqrt(0.3**2 + 0.3 * 1.7))
    assert ball.rkhs_radius(Exponential(ball.best_beta() * beta_factor)) > best


def test_a_zigzag_attains_the_radius():
    ball, kernel = LipschitzBall(radius=0.3, lipschitz=600.0), Exponential(2000.0)
    turns = 1000
    zigzag = piecewise_linear(np.linspace(0, 1, turns + 1), 0.3 * (-1.0) ** np.arange(turns + 1))
    assert norm_of(kernel, zigzag) <= ball.rkhs_radius(kernel)
    # |f| is not at its bound between the turns, which costs two thirds of the (beta/2) int f^2 term
    expected = math.sqrt(0.3**2 + 0.3**2 * 2000 / 6 + 600**2 / 4000)
    assert norm_of(kernel, zigzag) == pytest.approx(expected, rel=1e-6)


def test_square_wave_limit_attains_the_radius():
    """Flat at the bound, with rare steep turns: every term of the bound is reached in the limit."""
    kernel, lipschitz = Exponential(1.0), 1e-3
    ball = LipschitzBall(radius=1.0, lipschitz=lipschitz)
    nearly_flat = piecewise_linear([0, 1], [1.0, 1.0 - lipschitz])
    assert norm_of(kernel, nearly_flat) == pytest.approx(ball.rkhs_radius(kernel), rel=1e-3)


def test_actions_add_their_squares():
    one, three = LipschitzBall(0.1, 0.2), LipschitzBall(0.1, 0.2, actions=3)
    assert three.rkhs_radius(Exponential(2)) == pytest.approx(math.sqrt(3) * one.rkhs_radius(Exponential(2)))


def test_actions_of_an_rkhs_ball_add_their_squares():
    kernel = Exponential(2.0)
    ball = RkhsBall(0.3, kernel, people=20, actions=4)
    assert ball.rkhs_radius(kernel) == pytest.approx(0.6)
    assert ball.to_dict()["actions"] == 4
    with pytest.raises(InvalidInput, match="actions must be"):
        RkhsBall(1.0, kernel.norm, actions=0)


def test_those_that_have_no_radius_say_why():
    with pytest.raises(NoRkhsRadius, match="arbitrarily rough"):
        SupBall(1.0).rkhs_radius(Exponential(1))
    with pytest.raises(NoRkhsRadius, match="arbitrarily rough"):
        SupBall(1.0).best_beta()
    with pytest.raises(NoRkhsRadius, match="one dimension"):
        LipschitzBall(1.0, 1.0).rkhs_radius(Exponential((1.0, 1.0)))
    assert LipschitzBall(1.0, 1.0).rkhs_radius(Exponential((1.0,))) == LipschitzBall(1.0, 1.0).rkhs_radius(
        Exponential(1.0)
    )
    with pytest.raises(NoRkhsRadius, match="not bounded in the norm of the band-limited kernel"):
        LipschitzBall(1.0, 1.0).rkhs_radius(BandLimited(3.0))
    with pytest.raises(NoRkhsRadius, match="same kernel"):
        RkhsBall(1.0, Exponential(1.0).norm).rkhs_radius(Exponential(2.0))
    with pytest.raises(NoRkhsRadius, match="no beta left"):
        RkhsBall(1.0, Exponential(1.0).norm).best_beta()


def test_additive_radius():
    kernel = Exponential((4.0, 2.0), summed=True)
    balls = [LipschitzBall(0.01, 0.04), LipschitzBall(0.02, 0.04)]
    expected = math.hypot(
        *(ball.rkhs_radius(Exponential(beta)) for ball, beta in zip(balls, kernel.betas, strict=True))
    )
    assert kernel.radius_of(balls) == pytest.approx(expected)
    with pytest.raises(InvalidInput, match="One ball per coordinate"):
        kernel.radius_of(balls[:1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0, "low": 0, "high": 1, "slope": 1}, "people must be"),
        ({"n": 5, "low": 1, "high": 1, "slope": 1}, "high must be above low"),
        ({"n": 5, "low": 0, "high": 1, "slope": 0}, "slope must be above 0"),
        ({"n": 5, "low": 0, "high": math.inf, "slope": 1}, "high must be a finite"),
    ],
)
def test_wrong_declarations_are_refused(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        people_relation(**arguments)


def test_trajectories_have_no_radius_and_say_what_works():
    relation = Trajectories(count=20, largest_reward=1, horizon=9)
    assert (relation.people, relation.largest_reward) == (20, 1.0)
    with pytest.raises(NoRkhsRadius, match="no function"):
        relation.rkhs_radius(Exponential(1.0))
    with pytest.raises(NoRkhsRadius, match="no function"):
        relation.best_beta()
    with pytest.raises(NoRkhsRadius, match="no function"):
        GaussianProcessMechanism.for_relation(relation, Budget(1.0, 1e-6))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 0, "largest_reward": 1.0}, "count must be"),
        ({"count": 5, "largest_reward": 0.0}, "largest_reward must be above 0"),
        ({"count": 5, "largest_reward": 1.0, "horizon": 0}, "horizon must be"),
    ],
)
def test_wrong_trajectories_are_refused(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        Trajectories(**arguments)


def test_an_accountant_tells_trajectories_from_rewards():
    accountant = Accountant(Budget(1.0, 1e-6), relation=Trajectories(20, 1.0))
    accountant.charge(Cost.gaussian(0.01), Trajectories(20, 2.0))  # of which any one is any one
    with pytest.raises(InvalidInput, match="would mean nothing"):
        accountant.charge(Cost.gaussian(0.01), people_relation(20, 0, 1, 1))
