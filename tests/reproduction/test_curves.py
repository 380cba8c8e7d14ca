"""How learning curves are measured, what is clear about them, and the rule from numbers to verdicts."""

import math

import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_ind

pytest.importorskip("jax")

from paper_tables import curve

from reproduction.experiment import where
from reproduction.figures.curves import (
    MARGIN,
    Measure,
    clear_verdict,
    gain,
    late,
    mean_of,
    measure,
    references,
    returns_of,
    samples_to,
    scores_of,
)


def test_curves_are_measured_as_they_are_said_to_be() -> None:
    rows = curve(0.2, 0.8, {"sigma": 0.0})
    assert returns_of(rows).shape == (4, 20)
    assert where(rows, seed=2, episode=20)[0]["samples"] == 1000
    scores = scores_of(rows)
    assert scores.mean(axis=0)[[0, -1]] == pytest.approx([0.2, 0.8])
    line = np.linspace(0.2, 0.8, 20)
    assert late(rows).mean == pytest.approx(line[-4:].mean())
    assert late(rows).error == pytest.approx(0.01 * np.arange(4).std(ddof=1) / 2)
    assert gain(rows).mean == pytest.approx(line[-4:].mean() - line[:4].mean())
    assert gain(rows).error == pytest.approx(0, abs=1e-12)  # seeds differ by a constant


def test_samples_are_counted_until_five_episodes_in_a_row_reach_the_level() -> None:
    worst, best, _ = references()
    rows = curve(0.0, 1.0, {})
    line = worst + (best - worst) * np.linspace(0, 1, 20)
    level_ = line[7:12].mean() - 1e-9
    assert samples_to(rows, level_) == 12 * 50
    assert samples_to(rows, best) == math.inf


def test_clearly_is_by_t_and_knows_how_many_seeds_there_are() -> None:
    for values in (np.array([0.1, 0.4, 0.3]), np.array([0.1, 0.4, 0.3, 0.2, 0.5, 0.2, 0.3, 0.1, 0.4, 0.2])):
        expected = ttest_1samp(values, 0.0).confidence_interval(0.95)
        found = measure(values)
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
        other = np.array([0.9, 0.1, 0.5, 0.8])
        welch = ttest_ind(values, other, equal_var=False).confidence_interval(0.95)
        difference = found.minus(measure(other))
        assert (difference.low, difference.high) == pytest.approx((welch.low, welch.high))
    assert Measure(1.0, 0.4, freedom=9.0).above(Measure(0.0))  # 2.5 errors: enough with ten seeds, not with three
    assert not Measure(1.0, 0.4, freedom=2.0).above(Measure(0.0))
    assert not Measure(0.0).above(Measure(0.0))
    assert not measure(np.array([1.0])).above(Measure(0.0))  # one seed says nothing


def test_a_mean_over_settings_has_the_errors_and_the_seeds_of_all() -> None:
    one = mean_of([Measure(1.0, 0.3, 3.0), Measure(2.0, 0.3, 3.0)])
    assert (one.mean, one.error, one.freedom) == pytest.approx((1.5, 0.3 / math.sqrt(2), 6.0))


def test_similar_is_within_the_margin_and_not_what_cannot_be_told_apart() -> None:
    assert Measure(0.05, 0.01, 9.0).similar()
    assert not Measure(0.05, 0.01, 9.0).different()
    unclear = Measure(0.0, 0.2, 9.0)
    assert not unclear.similar()
    assert not unclear.different()
    for sign in (-1, 1):
        assert Measure(sign * (MARGIN + 0.1), 0.01, 9.0).different()
        assert not Measure(sign * (MARGIN + 0.1), 0.01, 9.0).similar()


def test_a_verdict_needs_something_clear() -> None:
    assert clear_verdict([True, True], [False, False]) == "holds"
    assert clear_verdict([False, False], [True, False]) == "fails"
    for agree, contrary in (([True, False], [False, True]), ([True, False], [False, False]), ([False], [False])):
        assert clear_verdict(agree, contrary) == "in part"
    assert clear_verdict([], []) == "in part"
