"""The gradient of a small network, person by person: what it is, its clipping, what one person can do to a mean."""

import pickle

import jax
import jax.numpy as jnp
import jax_privacy
import numpy as np
import pytest
from one_person import ADVERSARIES, with_one

from quietq.feedback.loss import Chosen, Loss, Squared
from quietq.feedback.network_gradient import BLOCK, NetworkGradient, layers, number_of_weights
from quietq.feedback.row_statistics import TOLD
from quietq.feedback.statistic import Vector
from quietq.mechanisms.mechanism import mean_of_people

# Gradients

LOSSES = {
    "ratings": Squared(3, (0.0, 5.0)),
    "per action": Squared(2, (0.0, 1.0), actions=3),
    "choices": Chosen(2, 3),
    "segments": Chosen(2, 2, length=4),
}


def random_rows(loss: Loss, people: int, rows: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Everybody's rows: uniform states, and answers at random."""
    rng = np.random.default_rng(0)
    if isinstance(loss, Chosen):
        each = rows * (loss.length or 1)
        names = [f"option{j}_{i}" for j in range(loss.options) for i in range(loss.dimension)]
        columns: dict[str, np.ndarray] = {name: rng.random(people * each) for name in names}
        columns["segment"] = np.repeat(np.arange(people * rows), loss.length or 1)
        columns["choice"] = np.repeat(rng.integers(0, loss.options, people * rows), loss.length or 1)
        return each * np.arange(people), columns
    assert isinstance(loss, Squared)
    columns = {f"x{i}": rng.random(people * rows) for i in range(loss.dimension)}
    columns["rating"] = rng.uniform(*loss.range, people * rows)
    columns["action"] = rng.integers(0, loss.actions, people * rows)
    return rows * np.arange(people), columns


def example(loss: Loss):
    """Three people with different numbers of rows; one option was not offered to somebody."""
    starts, columns = random_rows(loss, 6, 3)
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
    starts, columns = random_rows(loss, 8, BLOCK + 3)
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
    starts, columns = random_rows(loss, 40, 9)
    starts = starts[[0, 1, 2, 3, 20, 21, 35]]  # people with few rows and with many
    of, ends = statistic(loss), np.append(starts[1:], len(columns["action" if "action" in columns else "choice"]))
    together = of.of_people(starts, columns)
    for i, (begin, end) in enumerate(zip(starts, ends, strict=True)):
        alone = of.of_people(np.array([0]), {name: column[begin:end] for name, column in columns.items()})
        assert (alone[0] == together[i]).all()


# One person's rows, replaced by whatever an adversary likes


RATED = Squared(2, (0.0, 1.0))
SMALL = 0.1 * np.random.default_rng(1).normal(size=number_of_weights((2, 5, 1)))  # values lie within the range
OF_RATINGS = NetworkGradient(RATED, (2, 5, 1), SMALL, 0.1)
MOST = mean_of_people(OF_RATINGS, 50, 1.0).sensitivity


def moved(statistic: NetworkGradient, rows: list[tuple[float, float, float]]) -> float:
    """How far the mean of fifty people moves if one of them says something else, in units of what is stated."""
    one, other = (with_one(each).mean(statistic) for each in ([(1.0, 1.0, 0.0)], rows))
    return float(np.linalg.norm(one - other)) / MOST


@pytest.mark.parametrize("rows", ADVERSARIES.values(), ids=ADVERSARIES)
def test_one_person_moves_no_mean_gradient_farther_than_stated(rows):
    assert moved(OF_RATINGS, rows) <= 1


def test_opposite_answers_come_close_to_what_is_stated():
    assert moved(OF_RATINGS, [(1.0, 1.0, 1.0)]) > 0.9


class Summed(NetworkGradient):
    """Broken: rows are added up, so that whoever gives many counts often."""

    def of_people(self, starts, columns):
        return super().of_people(starts, columns) * np.diff(starts, append=len(columns["rating"]))[:, None]


def test_a_sum_of_gradients_is_held_to_the_bound(monkeypatch):
    broken = Summed(OF_RATINGS.loss, OF_RATINGS.widths, OF_RATINGS.weights, OF_RATINGS.clip)
    assert moved(broken, ADVERSARIES["many"]) <= 1
    monkeypatch.setattr(Vector, "_hold", lambda self, vectors, people: vectors)  # and without: it is seen
    assert moved(broken, ADVERSARIES["many"]) > 1


def test_statistics_of_networks_travel():
    of = statistic(LOSSES["ratings"])
    starts, columns = example(of.loss)
    there = pickle.loads(pickle.dumps(of))
    assert np.array_equal(there.of_people(starts, columns), of.of_people(starts, columns))
