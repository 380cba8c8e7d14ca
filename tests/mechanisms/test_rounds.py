"""A reward in several dimensions from ratings: what it promises, what it finds, and what can be done with it."""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
from one_person import ADVERSARIES, replay, with_one

from quietq import Accountant, Budget, BudgetExhausted, InvalidInput, Ratings, load, privatise, publish
from quietq.feedback.row_statistics import ClippedGradient
from quietq.mechanisms import rounds
from quietq.mechanisms.candidates import MECHANISMS
from quietq.mechanisms.release import mean_of_people, release
from quietq.mechanisms.rounds import SETTINGS, Rounds
from quietq.noise.laws import Gaussian
from quietq.paper.agents.jax_world import as_jax
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import EngineFailed
from quietq.privacy.explain import MODELS_OF_ROWS
from quietq.privacy.relations import OnePerson, people
from quietq.released.private_model import PrivateModel

BUDGET = Budget(1.0, 1e-5)
PEOPLE, ROWS = 1000, 20
STATES = np.random.default_rng(9).random((1000, 2))


def two_peaks(states: np.ndarray) -> np.ndarray:
    return np.maximum(*(np.exp(-((states - at) ** 2).sum(axis=-1) / 0.16) for at in (0.25, 0.75)))


def read(reward=two_peaks, people=PEOPLE, power=1.0, **options) -> Ratings:
    """Everybody rates twenty states, a little different from everybody else."""
    rng = np.random.default_rng(3)
    states = rng.random((people * ROWS, 2)) ** power
    taste = np.repeat(0.1 * rng.normal(size=(people, 2)), ROWS, axis=0)
    ratings = np.clip(reward(states - taste) + 0.1 * rng.normal(size=len(states)), 0, 1)
    person = np.repeat(np.arange(people), ROWS)
    rows = pl.DataFrame({"person": person, "a": states[:, 0], "b": states[:, 1], "rating": ratings})
    return Ratings.read(
        rows, box=[(0, 1), (0, 1)], low=0, high=1, people=people, state=["a", "b"], **options
    )  # fmt: skip


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return read()


@pytest.fixture(scope="module")
def private(ratings) -> PrivateModel:
    return privatise(ratings, BUDGET, account=Accountant(Budget(5.0, 1e-5)))


def correlation(private, reward=two_peaks) -> float:
    return float(np.corrcoef(private(STATES), reward(STATES))[0, 1])


def test_two_peaks_are_two(private):
    assert isinstance(private, PrivateModel)
    assert correlation(private) > 0.97


def test_states_that_are_not_uniform_are_stretched():
    private = privatise(read(power=2.0), BUDGET, simulate=1)
    assert correlation(private) > 0.93
    assert private.knots[:, SETTINGS.bins // 4] == pytest.approx(
        0.5, abs=0.05
    )  # half of all squares lie below a quarter


def test_the_certificate(private):
    certificate = private.certificate
    assert (certificate.standing, certificate.method, certificate.epsilon) == ("certified", "reward/rounds", 1.0)
    assert certificate.mu == pytest.approx(BUDGET.mu)
    assert certificate.relation == OnePerson(PEOPLE)
    assert len(certificate.queries) == SETTINGS.rounds + 2
    assert Certificate.from_json(certificate.to_json()) == certificate


def test_an_account_is_charged_once_for_all_rounds():
    account = Accountant(BUDGET)
    privatise(read(people=30), BUDGET, account=account)
    assert account.spending.spent_mu == pytest.approx(BUDGET.mu)
    with pytest.raises(BudgetExhausted):
        privatise(read(people=30), BUDGET, account=account)


class Failing:
    """People's rows on machines that fail after so many answers."""

    def __init__(self, rows, answers):
        self.rows, self.answers = rows, answers

    def total(self, statistic):
        if self.answers == 0:
            raise EngineFailed("A machine is gone.")
        self.answers -= 1
        return self.rows.total(statistic)


@pytest.mark.parametrize(("answers", "spent"), [(0, "nothing was spent"), (2, "what was charged stays charged")])
def test_machines_that_fail_say_what_was_spent(answers, spent):
    account, people = Accountant(BUDGET), read(people=30)
    failing = replace(people, rows=Failing(people.rows, answers))
    with pytest.raises(EngineFailed, match=f"^A machine is gone; .*{spent}") as caught:
        privatise(failing, BUDGET, account=account)
    assert caught.value.__context__ is None
    assert account.spending.spent_mu == pytest.approx(BUDGET.mu if answers else 0.0)


def test_it_can_leave_and_come_back(private, tmp_path):
    publish(private, tmp_path / "reward.qq")
    again = load(tmp_path / "reward.qq")
    assert np.array_equal(again(STATES), private(STATES))
    assert again.certificate == private.certificate


def test_compiled_code_reads_the_same(private):
    compiled = as_jax(private)
    found = [float(compiled(None, None, jnp.asarray(state, jnp.float32))) for state in STATES[:20]]
    assert found == pytest.approx(private(STATES[:20]), abs=1e-4)


def test_values_keep_the_range(private):
    values = private(np.stack(np.meshgrid(*[np.linspace(0, 1, 101)] * 2), axis=-1))
    assert values.shape == (101, 101)
    assert values.min() >= 0
    assert values.max() <= 1


def test_pure_budgets_are_refused(ratings):
    with pytest.raises(InvalidInput, match="delta must be above 0"):
        privatise(ratings, Budget(1.0, 0.0), simulate=0)


def smooth(states: np.ndarray) -> np.ndarray:
    return 0.5 + 0.4 * np.sin(2 * states[:, 0] + 3 * states[:, 1])


def test_what_a_certificate_says_of_error_and_queries():
    """One number of noise there is not; how far off values are is told in units of the reward, and about right."""
    rows = pl.DataFrame({"person": np.arange(500), "a": 0.5, "b": 0.5, "rating": 3.0})
    scaled = Ratings.read(rows, box=[(0, 1), (0, 1)], low=1, high=5, people=1000, state=["a", "b"])
    private = privatise(read(smooth), BUDGET, simulate=5)
    certificate, other = private.certificate, privatise(scaled, BUDGET).certificate
    assert certificate.sigma is other.sigma is None
    assert other.expected_error == pytest.approx(4 * certificate.expected_error)
    assert np.std(private(STATES) - smooth(STATES)) == pytest.approx(certificate.expected_error, rel=0.6)
    assert len(other.queries) == 26
    assert "Each query is a mean of one clipped vector per person" in str(other)
    assert "in units of each query's own noise" in str(other)


@pytest.mark.parametrize("epsilon", [1.0, 100.0])
@pytest.mark.parametrize("dimension", [2, 4])
def test_values_are_off_by_what_is_stated_where_states_lie(dimension, epsilon):
    """With much noise and with next to none, for a reward with one hill, people whose coordinates go together."""
    rng, several = np.random.default_rng(dimension), 100

    def states(number: int) -> np.ndarray:
        apart = rng.normal(size=(number, dimension))
        return np.clip(0.5 + 0.15 * (0.8 * apart + 0.6 * apart[:, :1]), 0, 1)

    def hill(where: np.ndarray) -> np.ndarray:
        return np.exp(-((where - 0.4) ** 2).sum(axis=1) / (0.045 * dimension))

    names, offs, certificate = [f"x{i}" for i in range(dimension)], [], None
    own, anywhere = states(2_000), rng.random((2_000, dimension))
    for seed in range(3):
        where = states(10 * several)
        rated = np.clip(hill(where) + 0.1 * rng.normal(size=len(where)), 0, 1)
        rows = pl.DataFrame({"person": np.repeat(np.arange(several), 10), "rating": rated}).hstack(
            pl.DataFrame(where, schema=names)
        )
        given = Ratings.read(rows, state=names, box=[(0, 1)] * dimension, low=0, high=1, people=several)
        private: Any = privatise(given, Budget(epsilon, 1e-5), simulate=seed)
        offs.append([np.var(private(at) - hill(at)) for at in (own, anywhere)])
        certificate = private.certificate
    stated: Any = certificate and certificate.expected_error
    there, over_the_box = np.sqrt(np.mean(offs, axis=0))
    assert stated / 2 < there < 2 * stated
    assert over_the_box > 1.4 * there
    assert f"The expected error of the values is about {stated:.3g} where people's states lie, " in str(certificate)


def test_what_the_error_leaves_out_is_said(ratings):
    """Of every model of rows; noise on a function is alike in all of the box."""
    rows = [name for name, entry in MECHANISMS.items() if entry.is_for(ratings)]
    assert set(rows) <= set(MODELS_OF_ROWS)
    assert "or that the features cannot represent" in str(privatise(ratings, BUDGET, simulate=0).certificate)
    path = privatise(lambda s: s, BUDGET, relation=people(50, 0, 1, 1), simulate=0)
    assert "root mean square over the box" in str(path.certificate)


def plan(people: int) -> Rounds:
    asked = read(people=20)
    return Rounds(replace(asked, people=people), BUDGET)


def test_more_people_get_more_features_and_less_error():
    few, many = plan(100), plan(10_000)
    assert few.basis.size < many.basis.size
    assert few.expected_error > 2 * many.expected_error


# One person's rows, replaced by whatever an adversary likes


@pytest.mark.parametrize("rows", ADVERSARIES.values(), ids=ADVERSARIES)
def test_one_person_moves_no_query_farther_than_stated(rows):
    mechanism = plan(50)
    moved = replay(mechanism, with_one([(1.0, 1.0, 0.0)]), with_one(rows))
    assert len(moved) == mechanism.rounds + 2
    assert max(moved) <= 1


def test_no_noise_is_wasted():
    """Two people who want the opposite of each other come close to what is stated."""
    moved = replay(plan(50), with_one([(1.0, 1.0, 0.0)]), with_one([(1.0, 1.0, 1.0)]))
    assert max(moved[2:]) > 0.9
    here = with_one([(1.0, 1.0, 0.0)])
    assert replay(plan(50), here, with_one([(0.0, 0.0, 0.0)]))[0] > 0.9  # where states lie, coordinate by coordinate
    assert replay(plan(50), here, with_one([(1.0, 0.0, 0.0)]))[1] > 0.9  # and together


class Summed(ClippedGradient):
    """Broken: rows are added up, and clipped row by row, so that whoever gives many counts often."""

    def of_people(self, starts, columns):
        return super().of_people(starts, columns) * np.diff(starts, append=len(columns["rating"]))[:, None]


def test_a_statistic_that_forgets_its_bound_is_held_to_it(monkeypatch):
    monkeypatch.setattr(rounds, "ClippedGradient", Summed)
    assert max(replay(plan(50), with_one([(1.0, 1.0, 0.0)]), with_one(ADVERSARIES["many"]))) <= 1


@pytest.mark.parametrize("share", [0.9, 0.999])
def test_a_copy_with_less_noise_is_refused(monkeypatch, share):
    def cheaper(*look):
        query = mean_of_people(*look)
        return query._replace(law=Gaussian(share * query.law.sigma, query.law.norm))

    monkeypatch.setattr(rounds, "mean_of_people", cheaper)
    with pytest.raises(InvalidInput, match="more noise, or fewer queries"):
        release(plan(30), read(people=30), Accountant(BUDGET))
