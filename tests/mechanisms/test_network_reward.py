"""A reward as a small network: its gradients, what it promises, what it finds, and what can be done with it."""

import pickle
from dataclasses import replace

import dp_accounting
import jax
import jax.numpy as jnp
import jax_privacy
import numpy as np
import polars as pl
import pytest
from dp_accounting.pld import PLDAccountant
from one_person import ADVERSARIES, replay, with_one

from quietq import Accountant, Budget, Columns, Comparisons, InvalidInput, Ratings, load, privatise, publish
from quietq.feedback.loss import Chosen, Loss, Squared
from quietq.feedback.network_gradient import BLOCK, NetworkGradient, layers, number_of_weights
from quietq.feedback.row_statistics import TOLD
from quietq.feedback.statistic import Vector
from quietq.mechanisms import network
from quietq.mechanisms.mechanism import Task
from quietq.mechanisms.network import Network
from quietq.mechanisms.network_reward import NetworkReward
from quietq.mechanisms.privatise import choose
from quietq.mechanisms.publishable import InvalidRelease, Stored
from quietq.noise.box import Box
from quietq.privacy.certificate import Certificate
from quietq.privacy.norms import largest_difference
from quietq.privacy.relations import OnePerson
from quietq.worlds.jax_rewards import as_jax

BUDGET = Budget(1.0, 1e-5)
STATES = np.random.default_rng(9).random((500, 2))


def step(states: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-10 * (states.sum(axis=-1) - 1)))


def read(people: int = 30, **options) -> Ratings:
    rng = np.random.default_rng(3)
    states = rng.random((people * 10, 2))
    ratings = np.clip(step(states) + 0.1 * rng.normal(size=len(states)), 0, 1)
    rows = {"person": np.repeat(np.arange(people), 10), "a": states[:, 0], "b": states[:, 1], "rating": ratings}
    return Ratings.read(
        pl.DataFrame(rows), box=[(0, 1), (0, 1)], low=0, high=1, people=people, state=["a", "b"], **options
    )  # fmt: skip


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(network, "TIMES", 6)
    monkeypatch.setattr(network, "LESSONS", 20)


# Gradients

LOSSES = {
    "ratings": Squared(3, (0.0, 5.0)),
    "per action": Squared(2, (0.0, 1.0), actions=3),
    "choices": Chosen(2, 3),
    "segments": Chosen(2, 2, length=4),
}


def example(loss: Loss):
    """Three people with different numbers of rows; one option was not offered to somebody."""
    starts, columns = loss.example(np.random.default_rng(0), 6, 3)
    if isinstance(loss, Chosen):
        columns["option1_0"][0] = np.nan
        columns["choice"][0] = 0
    return starts[[0, 1, 3]], columns


def statistic(loss: Loss, clip: float = 1.0) -> NetworkGradient:
    widths = (loss.points(example(loss)[1])[0].shape[1], 5, 4, loss.actions)
    return NetworkGradient(loss, widths, np.random.default_rng(1).normal(size=number_of_weights(widths)), clip)


def value(weights, widths, points, action, xp=np):
    hidden, matrices = 2 * xp.where(xp.isnan(points), 0.5, points) - 1, layers(weights, widths)
    for i, matrix in enumerate(matrices):
        hidden = hidden @ matrix[:-1] + matrix[-1]
        hidden = xp.tanh(hidden) if i < len(matrices) - 1 else hidden
    return xp.take_along_axis(hidden, action[:, None], axis=1)[:, 0]


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_gradients_are_slopes_times_derivatives(loss):
    """Of each row's value, by finite differences."""
    starts, columns = example(loss)
    of, points = statistic(loss), loss.points(columns)
    action = columns["action"] if loss.actions > 1 else np.zeros(len(points[0]), int)
    slopes = loss.slopes(starts, columns, [value(of.weights, of.widths, one, action) for one in points])
    steps, found = 1e-5 * np.eye(len(of.weights)), 0
    for one, slope in zip(points, slopes, strict=True):
        up, down = ([value(of.weights + sign * step, of.widths, one, action) for step in steps] for sign in (1, -1))
        found = found + np.subtract(up, down).T / 2e-5 * slope[:, None]
    assert of.gradients(starts, columns) == pytest.approx(np.add.reduceat(found, starts), abs=1e-8)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_slopes_are_those_that_linear_models_have(loss):
    """A linear model's gradient, which is found in another way."""
    starts, columns = example(loss)
    rng = np.random.default_rng(2)
    matrix, weights = rng.normal(size=(4, loss.points(columns)[0].shape[1])), rng.normal(size=4)

    def features(points, action=None):
        found = np.cos(np.nan_to_num(points, nan=0.5) @ matrix.T)
        return found if action is None else found * (1 + action)[:, None]

    acted = [columns["action"]] if loss.actions > 1 else []
    designs = [features(one, *acted) for one in loss.points(columns)]
    slopes = loss.slopes(starts, columns, [design @ weights for design in designs])
    found = np.add.reduceat(sum(d * s[:, None] for d, s in zip(designs, slopes, strict=True)), starts, axis=0)
    assert found == pytest.approx(loss.gradients(starts, columns, features, weights), abs=1e-12)


def test_slopes_of_ratings_are_derivatives_of_squares():
    loss = LOSSES["ratings"]
    starts, columns = example(loss)
    values = np.random.default_rng(4).normal(size=len(columns["rating"]))

    def mean_loss(values):
        squares = (values - (columns["rating"] / 5 - 0.5)) ** 2 / 2
        return np.add.reduceat(squares, starts) / np.diff(starts, append=len(squares))

    slopes = loss.slopes(starts, columns, [values])[0]
    moved = [
        (mean_loss(values + 1e-6 * one) - mean_loss(values - 1e-6 * one)).sum() / 2e-6 for one in np.eye(len(values))
    ]
    assert slopes == pytest.approx(np.array(moved), abs=1e-8)


def test_clipping_is_that_of_jax_privacy():
    """One person at a time as an example of theirs: the clipped gradients' mean is the same."""
    loss = LOSSES["ratings"]
    starts, columns = loss.example(np.random.default_rng(0), 8, BLOCK + 3)
    of = statistic(loss, clip=0.2)
    points = np.stack(np.split(loss.points(columns)[0], starts[1:]))
    rated = np.stack(np.split(columns["rating"] / 5 - 0.5, starts[1:]))

    def mean_loss(weights, x, y):
        return jnp.mean((value(weights, of.widths, x, jnp.zeros(len(x), int), jnp) - y) ** 2) / 2

    with jax.enable_x64(True):
        clipped = jax.jit(
            jax_privacy.clipped_grad(
                mean_loss, batch_argnums=(1, 2), l2_clip_norm=of.clip, normalize_by=8.0, keep_batch_dim=False
            )
        )
        theirs = np.asarray(clipped(jnp.asarray(of.weights), points, rated))
    vectors = of.of_people(starts, columns)
    assert (vectors[:, -1] < TOLD / 2).any()  # somebody was clipped
    assert of.clip * vectors.mean(axis=0)[:-1] == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_company_changes_no_bit_of_a_network(loss):
    starts, columns = loss.example(np.random.default_rng(0), 40, 9)
    starts = starts[[0, 1, 2, 3, 20, 21, 35]]  # people with few rows and with many
    of, ends = statistic(loss), np.append(starts[1:], len(columns["action" if "action" in columns else "choice"]))
    together = of.of_people(starts, columns)
    for i, (begin, end) in enumerate(zip(starts, ends, strict=True)):
        alone = of.of_people(np.array([0]), {name: column[begin:end] for name, column in columns.items()})
        assert (alone[0] == together[i]).all()


# One person's rows, replaced by whatever an adversary likes


def planned() -> Network:
    people = with_one([])
    return Network(Task(OnePerson(50), BUDGET, people.box, loss=people.loss))


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("rows", ADVERSARIES.values(), ids=ADVERSARIES)
def test_one_person_moves_no_query_of_a_network_farther_than_stated(rows):
    moved = replay(planned(), with_one([(1.0, 1.0, 0.0)]), with_one(rows))
    assert len(moved) > 6
    assert max(moved) <= 1


@pytest.mark.usefixtures("short")
def test_a_network_wastes_no_noise():
    assert max(replay(planned(), with_one([(1.0, 1.0, 0.0)]), with_one([(1.0, 1.0, 1.0)]))[-6:]) > 0.9


class Summed(NetworkGradient):
    """Broken: rows are added up, so that whoever gives many counts often."""

    def of_people(self, starts, columns):
        return super().of_people(starts, columns) * np.diff(starts, append=len(columns["rating"]))[:, None]


@pytest.mark.usefixtures("short")
def test_a_sum_of_gradients_is_held_to_the_bound(monkeypatch):
    monkeypatch.setattr(network, "NetworkGradient", Summed)
    assert max(replay(planned(), with_one([(1.0, 1.0, 0.0)]), with_one(ADVERSARIES["many"]))) <= 1
    monkeypatch.setattr(Vector, "_hold", lambda self, vectors, people: vectors)  # and without: the replay sees it
    assert max(replay(planned(), with_one([(1.0, 1.0, 0.0)]), with_one(ADVERSARIES["many"]))) > 1


# What is released


def test_a_step_is_found(monkeypatch):
    """Few people and a large budget."""
    monkeypatch.setattr(network, "LESSONS", 200)
    found = privatise(read(300), Budget(30.0, 1e-5), noise="network", simulate=0)
    assert isinstance(found, NetworkReward)
    assert np.corrcoef(found(STATES), step(STATES))[0, 1] > 0.97
    assert found(STATES).min() >= 0
    assert found(STATES).max() <= 1


@pytest.mark.usefixtures("short")
def test_the_certificate_of_a_network_adds_up_as_dp_accounting_says():
    account = Accountant(BUDGET)
    certificate = privatise(read(), BUDGET, noise="network", account=account).certificate
    assert (certificate.standing, certificate.method) == ("certified", "reward/network")
    assert account.spent_mu == pytest.approx(BUDGET.mu)
    each = [largest_difference(one["norm"], certificate.relation) / one["size"] for one in certificate.norm["of"]]
    assert len(each) > 6
    theirs = PLDAccountant(value_discretization_interval=1e-3)
    theirs.compose(dp_accounting.ComposedDpEvent([dp_accounting.GaussianDpEvent(1 / mu) for mu in each]))
    assert theirs.get_epsilon(BUDGET.delta) == pytest.approx(BUDGET.epsilon, rel=5e-3)


@pytest.mark.usefixtures("short")
def test_a_network_can_leave_and_come_back_and_be_compiled(tmp_path):
    private = privatise(read(), BUDGET, noise="network", account=Accountant(BUDGET))
    publish(private, tmp_path / "reward.qq")
    again = load(tmp_path / "reward.qq")
    assert np.array_equal(again(STATES), private(STATES))
    assert again.certificate == private.certificate
    compiled = as_jax(again)
    found = [float(compiled(None, None, jnp.asarray(state, jnp.float32))) for state in STATES[:10]]
    assert found == pytest.approx(private(STATES[:10]), abs=1e-4)


@pytest.mark.parametrize(
    ("details", "change"),
    [
        ({"widths": [2, 32, 2]}, None),
        ({"widths": [3, 32, 1]}, None),
        ({"widths": [2, 10**9, 1]}, None),
        ({"widths": [2, 1]}, None),
        ({"widths": "232"}, None),
        ({"low": 1.0, "high": 0.0}, None),
        ({"low": None}, None),
        ({}, 1e31),
    ],
)
def test_numbers_that_are_no_network_are_refused(details, change):
    widths, box = (2, 32, 1), Box.of([(0.0, 1.0), (0.0, 1.0)])
    certificate = Certificate(method="reward/network", standing="none", sigma=1.0)
    sound = NetworkReward(widths, np.ones(number_of_weights(widths)), 0.0, 1.0, box, certificate)
    stored, arrays = sound.to_arrays()
    again = NetworkReward.from_arrays(Stored(stored, arrays, box, certificate))
    assert np.array_equal(again(STATES), sound(STATES))
    if change is not None:
        arrays = {"weights": arrays["weights"] + change}
    with pytest.raises(InvalidRelease):
        NetworkReward.from_arrays(Stored(stored | details, arrays, box, certificate))


@pytest.mark.usefixtures("short")
def test_choices_make_a_network_in_log_odds():
    rng = np.random.default_rng(0)
    columns = {name: rng.random(200) for name in ("a", "b", "c", "d")}
    left, right = (step(np.stack([columns[x], columns[y]], axis=-1)) for x, y in (("a", "b"), ("c", "d")))
    chosen = np.where(left > right, "left", "right")
    rows = pl.DataFrame({"person": np.repeat(np.arange(20), 10), **columns, "choice": chosen})
    choices = Comparisons.read(
        rows, left=["a", "b"], right=["c", "d"], choice="choice", box=[(0, 1), (0, 1)], people=20
    )  # fmt: skip
    found = privatise(choices, Budget(30.0, 1e-5), noise="network", simulate=0)
    assert found.low is None
    assert found(STATES).shape == (500,)


def test_a_network_is_not_made_of_features():
    with pytest.raises(InvalidInput, match="leave features out"):
        privatise(read(features=Columns()), BUDGET, noise="network", simulate=0)


@pytest.mark.usefixtures("short")
def test_a_network_has_a_value_per_action_where_ratings_do():
    """One dimension, two actions: what one is good for, the other is bad for."""
    rng = np.random.default_rng(0)
    state, move = rng.random(3000), rng.integers(0, 2, 3000)
    names = np.array(["stay", "go"])[move]
    rows = {"person": np.repeat(np.arange(300), 10), "state": state, "move": names}
    rows["rating"] = np.where(move == 1, state, 1 - state)
    ratings = Ratings.read(
        pl.DataFrame(rows), box=(0, 1), low=0, high=1, people=300, action="move", actions=["stay", "go"]
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network, "LESSONS", 200)
        found = privatise(ratings, Budget(30.0, 1e-5), noise="network", simulate=0)
    values = found([0.1, 0.9])
    assert values.shape == (2, 2)
    assert values[0, 0] > values[0, 1] + 0.3
    assert values[1, 1] > values[1, 0] + 0.3
    compiled = as_jax(found)
    assert float(compiled(jnp.array([0.9]), 1, None)) == pytest.approx(values[1, 1], abs=1e-4)


def test_auto_never_takes_a_network():
    asked = read()
    assert choose("auto", replace(Task.of(asked, BUDGET), relation=OnePerson(10**6))).name == "rounds"


def test_statistics_of_networks_travel():
    of = statistic(LOSSES["ratings"])
    starts, columns = example(of.loss)
    there = pickle.loads(pickle.dumps(of))
    assert np.array_equal(there.of_people(starts, columns), of.of_people(starts, columns))


@pytest.mark.parametrize("budget", [Budget(1e-3, 1e-2), Budget(1e-9, 1e-4)])
def test_a_part_of_a_budget_that_is_nearly_all_delta(budget):
    """Half of mu is no budget of its own then: it is within delta for epsilon 0."""
    rows = Ratings.read(
        pl.DataFrame({"person": [0, 1], "x": 0.5, "y": 0.5, "rating": 1.0}), state=["x", "y"], box=[(0, 1)] * 2, low=0,
        high=1, people=10_000_000,
    )  # fmt: skip
    mechanism = choose("network", Task.of(rows, budget))
    assert mechanism.first.mu == pytest.approx(budget.mu / 2)  # type: ignore[attr-defined]
