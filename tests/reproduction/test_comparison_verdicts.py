"""Ratings that are needed for a score: where curves cross, and verdicts that follow from it."""

import math

import numpy as np
import pytest

pytest.importorskip("jax")

from comparison_tables import table

from reproduction.comparison import COMPARISON
from reproduction.comparison.needed import Crossing, Curve, crossing


def curve(people, scores, name="input"):
    return Curve("walk", name, None, np.array(people, float), np.array(scores, float))


def test_a_crossing_is_interpolated_on_the_logarithmic_axis():
    found = crossing(curve([10, 1000], [[0.8, 0.8], [1.0, 1.0]]))
    assert found.people == pytest.approx(100)  # half of the way, in logarithms
    assert (found.below, found.above) == (10, 1000)
    assert found.low == pytest.approx(100)  # no spread between draws, so no interval either
    assert found.high == pytest.approx(100)


def test_a_curve_that_falls_again_crosses_for_good_later():
    found = crossing(curve([1, 10, 100, 1000], [[0.5], [0.95], [0.7], [1.0]]))
    assert (found.below, found.above) == (100, 1000)


def test_a_curve_may_reach_the_target_never_or_always():
    assert crossing(curve([1, 10], [[0.5], [0.6]])) == (math.inf, 10, None, math.inf, math.inf)
    always = crossing(curve([5, 10], [[0.95], [0.97]]))
    assert (always.people, always.below, always.above) == (5.0, None, 5)


def test_an_interval_is_wider_where_draws_differ_more():
    rng = np.random.default_rng(0)
    means = np.array([[0.7], [0.85], [0.95]])
    little, much = (crossing(curve([10, 30, 100], means + size * rng.normal(size=(1, 20)))) for size in (0.01, 0.05))
    assert little.high / little.low < much.high / much.low


def test_verdicts_follow_the_rows():
    slow, quick = {10: [0.5] * 5, 100: [0.8] * 5, 1000: [1.0] * 5}, {10: [0.8] * 5, 100: [1.0] * 5, 1000: [1.0] * 5}

    def verdicts(**by_method):
        return [claim.verdict for claim in COMPARISON.claims({"comparison_scores": table(**by_method)})]

    both, neither = {"value": quick, "value-network": quick}, {"value": slow, "value-network": slow}
    assert verdicts(input=slow, output=quick, **both) == ["holds", "in part"]  # the same is not fewer
    assert verdicts(input=quick, output=slow, **neither) == ["fails", "in part"]
    apart = {"value": quick, "value-network": slow}
    middle = {10: [0.7] * 5, 100: [0.9] * 5, 1000: [1.0] * 5}
    assert verdicts(input=middle, output=middle, **apart) == ["in part", "in part"]  # it depends on the repair
    assert verdicts(input=slow, output=slow, value=quick) == ["in part", "in part"]  # one repair was not run
    claims = COMPARISON.claims({"comparison_scores": table(input=slow, output=slow, value=quick)})
    assert all("`value-network` was not run" in claim.measured for claim in claims)


def test_intervals_that_overlap_tell_nothing():
    less, more = Crossing(30.0, 20, 40, 25.0, 35.0), Crossing(60.0, 50, 70, 50.0, 70.0)
    wide = Crossing(36.0, 20, 70, 25.0, 51.0)
    assert more.needs_more_than(less) == "holds"
    assert less.needs_more_than(more) == "fails"
    assert less.needs_more_than(wide) == wide.needs_more_than(less) == wide.needs_more_than(more) == "in part"


def test_the_smallest_number_tried_is_only_a_bound():
    assert str(crossing(curve([5, 10], [[0.95], [0.97]]))) == "at most 5 people"
    assert str(crossing(curve([5, 10], [[0.5], [0.6]]))) == "more than 10 people"
