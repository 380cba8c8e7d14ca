"""The extensions: what they measure is right."""

import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

import quietq as qq
from paper import Shelf, carry_out, tables_of
from paper.extensions import Extensions, band_limited, product, row
from paper.extensions.interval import Scaled, Thermostat
from paper.extensions.kernel_verdicts import growth
from paper.extensions.learners import private_rewards, updates
from paper.extensions.queries import UNSTRUCTURED, PointByPoint, Queries
from paper.extensions.random_features import RandomFourier
from paper.extensions.released import CHANGE, Promises, RawAdvantages, policy_step
from paper.extensions.replaying import PayingAgain, PublishedReplay
from quietq.noise.kernels import Product, piecewise_linear


@pytest.mark.parametrize("quick", [True, False])
def test_tasks_can_be_sent_and_kept(quick):
    tasks = Extensions().tasks(quick)
    assert len(set(tasks)) == len(tasks)
    for task in tasks:
        assert pickle.loads(pickle.dumps(task)) == task
        assert json.loads(json.dumps(task.describe()))
        assert task.table == "extensions"
        assert task.title.startswith("extensions: ")


def test_a_policy_has_the_promise_of_its_source_and_raw_rewards_are_refused():
    rows = Promises(100).rows()
    for source in ("private reward", "values released by input"):
        promises = [
            row.mean(rows, row.ACTOR_CRITIC, source, f"epsilon of the {whose}") for whose in ("source", "policy")
        ]
        assert promises == [0.9, 0.9]
    raw, unnoised = row.sentences(rows, row.ACTOR_CRITIC)
    assert "needs a private reward" in raw
    assert "standing is 'none'" in unnoised


def test_raw_rewards_move_the_policy_as_the_discussion_says():
    """Three steps of it by hand: hats at 0, 1/7, ..., actions 0, 1, 0, and advantages that add up from the end."""
    step = policy_step(np.array([0.0, 1 / 7, 2 / 7, 0.9]), np.array([1.0, 2.0, 4.0]), decay=0.5)
    wanted = np.zeros((2, 8))
    wanted[:, :3] = np.outer([0.5, -0.5], [1 + 0.5 * 4, -4, 4]) / 3
    np.testing.assert_allclose(step, wanted, atol=1e-12)
    assert row.values(RawAdvantages().rows(), row.ACTOR_CRITIC, None, CHANGE)[0] > 0.1


def test_what_is_not_refused_is_said_to_be_so():
    accepted = row.refusal("any", "any", lambda: None)
    assert (accepted["value"], accepted["sentence"]) == (0.0, None)
    with pytest.raises(ZeroDivisionError):  # a defect is no refusal
        row.refusal("any", "any", lambda: 1 / 0)


def test_learners_are_counted_as_they_step():
    private = private_rewards(100, 1)
    assert updates(qq.RewardNoise(private), 5_000) == 5_000 - 128 + 1
    assert updates(qq.RewardNoise(private, train_every=128), 5_000) == 5_000 // 128
    assert updates(qq.ActorCritic(private), 5_000) == 10 * 10


def test_replayed_rewards_pay_again():
    often, rarely = (PayingAgain(50, 0, every).rows() for every in (25, 100))
    once = PayingAgain(50, 0, 1_000, batch=1_000, new_only=True).rows()
    for rows in (often, rarely, once):
        rounds, noise = (
            row.values(rows, row.REPLAY, None, quantity) for quantity in ("gradient steps", "noise multiplier")
        )
        assert noise[0] == pytest.approx(math.sqrt(rounds[0]) / qq.Budget(0.9, 1e-4).mu, rel=1e-9)
    assert [one["value"] for one in once if one["quantity"] == "uses of a reward"] == [1.0]


def test_the_published_program_looks_at_rewards_more_often_than_is_counted():
    found = {str(one["quantity"]): float(one["value"] or 0) for one in PublishedReplay().rows()}
    assert found["rounds counted by the theorem"] == 78
    assert found["gradient steps"] == 4_873
    assert found["uses of a reward"] == pytest.approx(4_873 * 128 / 5_000)
    composed = qq.Budget(found["epsilon if all were counted"], 1e-4).mu
    assert composed == pytest.approx(qq.Budget(0.9, 1e-4).mu * math.sqrt(4_873 / 78), rel=1e-6)


def test_an_interval_is_a_matter_of_scale():
    rows = Scaled(-3.0, 7.0, 100, 2).rows()
    sigmas, norms = (row.values(rows, row.INTERVAL, None, q) for q in ("sigma", "norm of the reward"))
    assert sigmas[0] == sigmas[1]
    assert norms == pytest.approx([row.mean(rows, row.INTERVAL, "[0, 1]", "norm by the kernel's own formula")] * 2)
    assert row.values(rows, row.INTERVAL, None, "largest difference of the releases")[0] < 1e-5 * sigmas[0]
    scores = [row.values(rows, row.INTERVAL, place, "score") for place in ("[0, 1]", "[-3, 7]")]
    assert scores[0] == pytest.approx(scores[1], abs=1e-3)


def test_tasks_give_the_same_rows_every_time():
    for task in (Thermostat(100, 1), RandomFourier(20, 64), product.Covariance(20)):
        assert task.rows() == replace(task).rows()


def test_norms_on_grids_are_the_kernels():
    axis = np.arange(9) / 8
    values = np.random.default_rng(0).normal(size=(9, 9))
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    dense = Product((product.BETA, product.BETA)).norm_on(points, values.ravel())
    assert product.norm_on_grid(product.BETA, axis, values) == pytest.approx(dense, rel=1e-9)


def test_a_relu_unit_has_no_norm_in_the_product_kernel():
    rows = product.Membership((3, 8, 9, 10)).rows()
    assert growth(rows, "product kernel, smooth peak") == pytest.approx(1, abs=1e-3)
    assert 1.3 < growth(rows, "product kernel, ReLU unit") < math.sqrt(2) + 1e-6  # squares grow with the cells
    smooth = row.values(rows, row.DIMENSIONS, "product kernel, smooth peak", "norm on a grid")[-1]
    tent = piecewise_linear([0.0, 0.5, 1.0], [0.0, 1.0, 0.0])
    assert smooth == pytest.approx(0.5 * Product((product.BETA,) * 2).norm([tent, tent]), rel=1e-3)
    assert growth(rows, "product kernel, tanh unit") == pytest.approx(1, abs=1e-3)
    assert "not bounded in the norm of the product kernel" in row.sentences(rows, row.DIMENSIONS)[-1]


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_the_radius_for_mixed_derivatives_is_approached_and_never_exceeded(dimension):
    ball = qq.people(100, low=0.0, high=0.5, slope=1.0)
    pieces = 64  # a wave of value 1 and slope 4 in most places: flat tops would do worse
    x = np.linspace(0, 1, pieces * 64 + 1)
    wave = np.interp(x, [0, 1], [1, 1]) - np.minimum(4 * np.minimum(x % (1 / pieces), 1 / pieces - x % (1 / pieces)), 2)
    norm = ball.radius * Product((product.BETA,) * dimension).norm([piecewise_linear(x, wave)] * dimension)
    radius = product.mixed_radius(100, dimension)
    assert 0.95 * radius < norm <= radius


def test_wrong_covariances_are_seen():
    kernel = Product((4.0, 2.0))
    points = np.random.default_rng(1).random((5, 2))
    expected = kernel.covariance(points, points)
    drawn = np.random.default_rng(2).multivariate_normal(np.zeros(5), expected, size=4_000)
    right, wrong = (
        row.mean(product.errors("any", "any", each, expected), "any", "any", "the same in standard errors")
        for each in (drawn, 1.2 * drawn)
    )
    assert right < 6 < wrong


def test_random_frequencies_leave_directions_without_noise():
    rows = RandomFourier(50, 256).rows()
    found = {str(one["quantity"]): float(one["value"] or 0) for one in rows}
    assert found["noise left in the quietest direction"] == 0
    assert found["directions without noise"] >= 257 - 100
    assert found["largest error of the kernel"] < 1  # and yet the kernel looks alike


@pytest.mark.parametrize("half_width", [2.0, 5.0])
def test_the_reward_without_high_frequencies_keeps_to_what_is_declared(half_width):
    rows = band_limited.Terms(half_width, 500).rows()
    norm = row.values(rows, row.BAND_LIMITED, None, "norm of the reward without high frequencies")[0]
    assert 0.9 * band_limited.norm_bound(half_width) < norm <= band_limited.norm_bound(half_width)
    assert row.values(rows, row.BAND_LIMITED, None, "error of the terms")[0] < 1e-9
    assert row.values(rows, row.BAND_LIMITED, None, "the same in standard errors")[0] < 6


def test_queries_are_timed_for_every_kernel():
    for kernel in ("exponential", "additive", "product", "features", "band-limited"):
        rows = Queries(kernel, (200, 400)).rows()
        assert [one["at"] for one in rows if one["quantity"] == "seconds"] == [200.0, 400.0]
        assert all(math.isfinite(float(one["value"] or 0)) for one in rows)


def test_a_kernel_without_structure_is_timed_too():
    rows = PointByPoint((50, 100)).rows()
    assert [one["at"] for one in rows if one["quantity"] == "seconds"] == [50.0, 100.0]
    assert {one["setting"] for one in rows} == {UNSTRUCTURED}


def test_a_broken_line_has_no_norm_in_the_band_limited_kernel():
    rows = band_limited.BrokenLine().rows()
    line, section = (row.values(rows, row.BAND_LIMITED, None, one) for one in (band_limited.LINE, band_limited.SECTION))
    assert line[-1] > 100 * line[0]
    assert max(section) <= 1 + 1e-6  # on any points at most that of the function itself


@pytest.mark.slow
def test_a_glance_has_a_row_of_every_extension():
    rows = tables_of(carry_out(Extensions().tasks(quick=True), Shelf(None)))["extensions"]
    names = (row.ACTOR_CRITIC, row.REPLAY, row.EXPLORATION, row.INTERVAL, row.DIMENSIONS, row.BAND_LIMITED, row.QUERIES)
    assert {one["extension"] for one in rows} == set(names)
    for name in names[:-1]:
        assert row.values(rows, name, None, "score")
    assert len(Extensions().claims({"extensions": rows})) == 8
