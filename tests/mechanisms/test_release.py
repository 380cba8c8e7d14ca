"""`release`: what it charges, answers and certifies, and what a careless mechanism cannot get past it."""

import math
from functools import cached_property

import numpy as np
import pytest

from quietq import Accountant, Budget, Exponential, InvalidInput, people
from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms.knots import IncrementNoise, to_curve
from quietq.mechanisms.release import Mechanism, Query, release, simulate
from quietq.noise.box import UNIT, grid_points
from quietq.noise.grid_path import GridNoise
from quietq.noise.rounding import values_at
from quietq.privacy import Code
from quietq.privacy.account import Cost
from quietq.privacy.certificate import Certificate
from quietq.released.private_function import PrivateTable

BALL, BUDGET = people(50, 0, 0.5, 1), Budget(0.9, 1e-4)
KERNEL = Exponential(BALL.best_beta())
RADIUS = BALL.rkhs_radius(KERNEL)


class Rounds(Mechanism):
    """Looks at a function several times, each time where the last answers say: here, at what they left over."""

    name = "rounds"

    def __init__(self, rounds: int = 2, *, asks: int | None = None, scale: float = 1.0, claims: float = 1.0) -> None:
        self.relation, self.budget, self.box, self.largest, self.error = BALL, BUDGET, UNIT, 2.0, 1e-14
        self.conditions = (Code.PUBLIC_POINTS(),)
        self.asks = rounds if asks is None else asks
        self.claims, self.sigma = claims, scale * math.sqrt(rounds) * RADIUS * (1 + 1e-6) / BUDGET.mu

    @property
    def cost(self):
        return Cost.gaussian(self.budget.mu)

    def run(self):
        so_far = np.zeros(9)
        for number in range(self.asks):
            law = GridNoise(self.sigma, KERNEL, 3)
            left = yield Query(lambda f, so_far=so_far: self._left(f, so_far), self.claims * RADIUS * (1 + 1e-6), law)
            so_far = so_far + left / (number + 1)
        return so_far

    def _left(self, feedback, so_far):
        # What was answered is the same for neighbours.
        return values_at(feedback.functions()[0], grid_points(UNIT, 3)) - so_far

    def result(self, released, certificate):
        return PrivateTable(released, 3, UNIT, certificate)

    @cached_property
    def expected_error(self):
        return self.sigma


def tent():
    return OwnFunction(lambda s: 0.5 - np.abs(s - 0.5), BALL)


def test_two_rounds_are_one_release():
    account = Accountant(BUDGET)
    private = release(Rounds(2), tent(), account)
    certificate = private.certificate
    assert (certificate.standing, certificate.method) == ("certified", "reward/rounds")
    assert account.spending.spent_mu == pytest.approx(BUDGET.mu)
    assert certificate.mu == pytest.approx(BUDGET.mu)
    assert [query.family for query in certificate.queries] == ["gaussian"] * 2
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert certificate.sigma is None


def test_rounds_average_their_noise():
    """Each has sqrt(2) times the noise of one alone; the second asks for what the first left over."""
    grid = np.linspace(0, 1, 9)
    draws = np.array([simulate(Rounds(2), tent(), seed)(grid) for seed in range(400)])
    errors = draws - (0.5 - np.abs(grid - 0.5))
    assert errors.std() == pytest.approx(Rounds(2).sigma / math.sqrt(2), rel=0.1)
    assert simulate(Rounds(2), tent(), 1).certificate.standing == "none"


def test_a_query_beyond_what_was_charged_is_refused():
    account = Accountant(BUDGET)
    with pytest.raises(InvalidInput, match=r"with the 2 before it that is more than the mu = .* charged"):
        release(Rounds(2, asks=3), tent(), account)
    assert account.spending.spent_mu == pytest.approx(BUDGET.mu)  # two were answered before, so it was paid for


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"scale": 0.7}, "it needs more noise"), ({"claims": 0.99}, r"sensitivity .* is below")],
)
def test_too_little_noise_and_a_wrong_sensitivity_are_refused_before_anything_is_paid(wrong, message):
    account = Accountant(BUDGET)
    with pytest.raises(InvalidInput, match=message):
        release(Rounds(1, **wrong), tent(), account)
    assert account.spending.spent_mu == 0


class InParts(Rounds):
    """Asks the same query again and again, and calls the answers parts of one."""

    def run(self):
        law = GridNoise(self.sigma, KERNEL, 3)
        query = Query(lambda f: self._left(f, np.zeros(9)), RADIUS * (1 + 1e-6), law, in_parts=True)
        total = np.zeros(9)
        for _ in range(50):
            total = total + (yield query)
        return total / 50


def test_a_mechanism_cannot_call_its_answers_parts_of_one():
    account = Accountant(BUDGET)
    for attempt in (lambda: release(InParts(1), tent(), account), lambda: simulate(InParts(1), tent(), 1)):
        with pytest.raises(InvalidInput, match="makes whole queries"):
            attempt()
    assert account.spending.spent_mu == 0


class PureTwice(Rounds):
    """Two looks with pure noise, half of epsilon each."""

    def __init__(self, rate: float = 0.45) -> None:
        super().__init__()
        self.law = IncrementNoise(rate, people(50, 0, 0.5, 1.01), 4)

    @property
    def cost(self):
        return Cost.apart(0.9)

    def run(self):
        first = yield Query(self._increments, 1.0, self.law)
        second = yield Query(self._increments, 1.0, self.law)
        return to_curve((first + second) / 2)[[0, 0, 1, 1, 2, 2, 3, 3, 4]]

    def _increments(self, feedback):
        return np.diff(values_at(feedback.functions()[0], grid_points(UNIT, 2)))


def test_pure_queries_add_up():
    certificate = release(PureTwice(), tent()).certificate
    assert (certificate.epsilon, certificate.delta, certificate.mu) == (0.9, 0.0, None)
    assert [query.family for query in certificate.queries] == ["pure"] * 2
    with pytest.raises(InvalidInput, match="with the 1 before it"):
        release(PureTwice(0.5), tent())


class OtherNoise(IncrementNoise):
    """The same noise, of which a certificate says something else: one more line."""

    def assumptions(self, largest, error):
        return (Code.WHOLE_NOISE(),)


class PureBoth(PureTwice):
    """Two looks, of which the second has noise of another kind."""

    def run(self):
        first = yield Query(self._increments, 1.0, self.law)
        yield Query(self._increments, 1.0, OtherNoise(self.law.rate, self.law.ball, self.law.pieces))
        return to_curve(first)[[0, 0, 1, 1, 2, 2, 3, 3, 4]]


def test_certificates_speak_of_every_kind_of_noise():
    both, twice = (release(mechanism, tent()).certificate.assumptions for mechanism in (PureBoth(), PureTwice()))
    for code in (Code.EXACT_NOISE, Code.WHOLE_NOISE, Code.FAIR):
        assert sum(one.code is code for one in both) == 1
    assert sum(one.code is Code.EXACT_NOISE for one in twice) == 1


def test_distances_are_those_of_the_laws():
    """By hand: dense covariances for Gaussian noise, the definition of the gauge for pure noise."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=9)
    dense = math.sqrt(values @ np.linalg.solve(KERNEL.covariance(np.linspace(0, 1, 9), np.linspace(0, 1, 9)), values))
    law = GridNoise(0.3, KERNEL, 3)
    assert law.distance(values) == pytest.approx(dense)
    assert law.cost(0.6).mu == pytest.approx(2.0)
    assert law.log_density(values) == pytest.approx(-((dense / 0.3) ** 2) / 2)
    increments = rng.normal(size=4)
    path = np.append(0.0, np.cumsum(increments))
    gauge = max(np.abs(increments).max() * 4 / BALL.lipschitz, (path.max() - path.min()) / (2 * BALL.radius))
    pure = IncrementNoise(2.0, BALL, 4)
    assert pure.distance(increments) == pytest.approx(gauge)
    assert pure.log_density(increments) == pytest.approx(-2 * gauge)
    assert pure.cost(0.5).epsilon == pytest.approx(1.0)
