"""The extensions: what they measure is right."""

import json
import math
import pickle
from functools import partial

import numpy as np
import pytest

import quietq as qq
from quietq.privacy.relations import Exponential
from reproduction.engine import carry_out
from reproduction.experiment import tables_of
from reproduction.extensions import EXTENSIONS, kernels, learners, rows as row, worlds
from reproduction.extensions.learners import CHANGE, policy_step
from reproduction.extensions.statements import growth
from reproduction.hilbert import norm_of, piecewise_linear
from reproduction.results import Cache


@pytest.mark.parametrize("quick", [True, False])
def test_tasks_can_be_sent_and_kept(quick):
    tasks = EXTENSIONS.tasks(quick)
    assert len(set(tasks)) == len(tasks)
    for task in tasks:
        assert pickle.loads(pickle.dumps(task)) == task
        assert json.loads(json.dumps(task.describe()))
        assert task.table == "extensions"
        assert task.title.startswith("extensions: ")


def test_a_policy_has_the_promise_of_its_source_and_raw_rewards_are_refused():
    rows = learners.measure_promises(100)
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
    assert row.values(learners.measure_raw_advantages(), row.ACTOR_CRITIC, None, CHANGE)[0] > 0.1


def test_what_is_not_refused_is_said_to_be_so():
    accepted = row.refusal("any", "any", lambda: None)
    assert (accepted["value"], accepted["sentence"]) == (0.0, None)
    with pytest.raises(ZeroDivisionError):  # a defect is no refusal
        row.refusal("any", "any", lambda: 1 / 0)


def test_replayed_rewards_pay_again():
    often, rarely = (learners.measure_gradient(50, 0, every) for every in (25, 100))
    once = learners.measure_gradient(50, 0, 1_000, batch=1_000, new_only=True)
    for rows in (often, rarely, once):
        rounds, noise = (
            row.values(rows, row.REPLAY, None, quantity) for quantity in ("gradient steps", "noise multiplier")
        )
        assert noise[0] == pytest.approx(math.sqrt(rounds[0]) / qq.Budget(0.9, 1e-4).mu, rel=1e-6)
    uses = [row.values(rows, row.REPLAY, None, "uses of a reward")[0] for rows in (once, rarely, often)]
    assert uses == [1.0, 46 * 500 / 5_000, 181 * 500 / 5_000]


def test_the_published_program_looks_at_rewards_more_often_than_is_counted():
    found = {one["quantity"]: one["value"] for one in learners.measure_published()}
    assert found["rounds counted by the theorem"] == 78
    assert found["gradient steps"] == 4_873
    assert found["uses of a reward"] == pytest.approx(4_873 * 128 / 5_000)
    composed = qq.Budget(found["epsilon if all were counted"], 1e-4).mu
    assert composed == pytest.approx(qq.Budget(0.9, 1e-4).mu * math.sqrt(4_873 / 78), rel=1e-6)


def test_an_interval_is_a_matter_of_scale():
    rows = worlds.measure_scaled(-3.0, 7.0, 100, 2)
    sigmas, norms = (row.values(rows, row.INTERVAL, None, q) for q in ("sigma", "norm of the reward"))
    assert sigmas[0] == sigmas[1]
    assert norms == pytest.approx([row.mean(rows, row.INTERVAL, "[0, 1]", "norm by the kernel's own formula")] * 2)
    assert row.values(rows, row.INTERVAL, None, "largest difference of the releases")[0] < 1e-5 * sigmas[0]
    scores = [row.values(rows, row.INTERVAL, place, "score") for place in ("[0, 1]", "[-3, 7]")]
    assert scores[0] == pytest.approx(scores[1], abs=1e-3)


def test_tasks_give_the_same_rows_every_time():
    for measure in (
        partial(worlds.measure_plans, (100,), 1),
        partial(kernels.measure_random_features, 20, 64),
        partial(kernels.measure_covariance, 20),
    ):
        assert measure() == measure()


def test_norms_on_grids_are_the_kernels():
    axis = np.arange(9) / 8
    values = np.random.default_rng(0).normal(size=(9, 9))
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    dense = Exponential((kernels.BETA, kernels.BETA)).norm_on(points, values.ravel())
    assert kernels.norm_on_grid(kernels.BETA, axis, values) == pytest.approx(dense, rel=1e-9)


def test_a_relu_unit_has_no_norm_in_the_product_kernel():
    rows = kernels.measure_membership((3, 8, 9, 10))
    assert growth(rows, "product kernel, smooth peak") == pytest.approx(1, abs=1e-3)
    assert 1.3 < growth(rows, "product kernel, ReLU unit") < math.sqrt(2) + 1e-6  # squares grow with the cells
    smooth = row.values(rows, row.DIMENSIONS, "product kernel, smooth peak", "norm on a grid")[-1]
    tent = piecewise_linear([0.0, 0.5, 1.0], [0.0, 1.0, 0.0])
    assert smooth == pytest.approx(0.5 * norm_of(Exponential((kernels.BETA,) * 2), [tent, tent]), rel=1e-3)
    assert growth(rows, "product kernel, tanh unit") == pytest.approx(1, abs=1e-3)
    assert "not bounded in the norm of the product kernel" in row.sentences(rows, row.DIMENSIONS)[-1]


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_the_radius_for_mixed_derivatives_is_approached_and_never_exceeded(dimension):
    ball = qq.people(100, low=0.0, high=0.5, slope=1.0)
    pieces = 64  # a wave of value 1 and slope 4 in most places: flat tops would do worse
    x = np.linspace(0, 1, pieces * 64 + 1)
    wave = np.interp(x, [0, 1], [1, 1]) - np.minimum(4 * np.minimum(x % (1 / pieces), 1 / pieces - x % (1 / pieces)), 2)
    norm = ball.radius * norm_of(Exponential((kernels.BETA,) * dimension), [piecewise_linear(x, wave)] * dimension)
    radius = kernels.mixed_radius(100, dimension)
    assert 0.95 * radius < norm <= radius


def test_wrong_covariances_are_seen():
    kernel = Exponential((4.0, 2.0))
    points = np.random.default_rng(1).random((5, 2))
    expected = kernel.covariance(points, points)
    drawn = np.random.default_rng(2).multivariate_normal(np.zeros(5), expected, size=4_000)
    right, wrong = (
        row.mean(kernels.errors("any", "any", each, expected), "any", "any", "the same in standard errors")
        for each in (drawn, 1.2 * drawn)
    )
    assert right < 6 < wrong


def test_random_frequencies_leave_directions_without_noise():
    rows = kernels.measure_random_features(50, 256)
    found = {str(one["quantity"]): float(one["value"] or 0) for one in rows}
    assert found["noise left in the quietest direction"] == 0
    assert found["directions without noise"] >= 257 - 100
    assert found["largest error of the kernel"] < 1  # and yet the kernel looks alike


@pytest.mark.parametrize("half_width", [2.0, 5.0])
def test_the_reward_without_high_frequencies_keeps_to_what_is_declared(half_width):
    rows = kernels.measure_terms(half_width, 500)
    norm = row.values(rows, row.BAND_LIMITED, None, "norm of the reward without high frequencies")[0]
    assert 0.9 * kernels.norm_bound(half_width) < norm <= kernels.norm_bound(half_width)
    assert row.values(rows, row.BAND_LIMITED, None, "error of the terms")[0] < 1e-9
    assert row.values(rows, row.BAND_LIMITED, None, "the same in standard errors")[0] < 6


def test_queries_are_timed_for_every_kernel():
    for kernel in ("exponential", "product", "band-limited"):
        rows = kernels.measure_queries(kernel, (200, 400))
        assert [one["at"] for one in rows if one["quantity"] == "seconds"] == [200.0, 400.0]
        assert all(math.isfinite(float(one["value"] or 0)) for one in rows)


def test_a_kernel_without_structure_is_timed_too():
    rows = kernels.measure_queries(None, (50, 100))
    assert [one["at"] for one in rows if one["quantity"] == "seconds"] == [50.0, 100.0]
    assert {one["setting"] for one in rows} == {kernels.UNSTRUCTURED}


def test_a_broken_line_has_no_norm_in_the_band_limited_kernel():
    rows = kernels.measure_broken_line()
    line, section = (row.values(rows, row.BAND_LIMITED, None, one) for one in (kernels.LINE, kernels.SECTION))
    assert line[-1] > 100 * line[0]
    assert max(section) <= 1 + 1e-6  # on any points at most that of the function itself


@pytest.mark.slow
def test_a_glance_has_a_row_of_every_extension():
    rows = tables_of(carry_out(EXTENSIONS.tasks(True), Cache(None)))["extensions"]
    names = (row.ACTOR_CRITIC, row.REPLAY, row.EXPLORATION, row.INTERVAL, row.DIMENSIONS, row.BAND_LIMITED, row.QUERIES)
    assert {one["extension"] for one in rows} == set(names)
    for name in names[:-1]:
        assert row.values(rows, name, None, "score")
    assert len(EXTENSIONS.claims({"extensions": rows})) == 8
