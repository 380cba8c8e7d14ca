"""Erratum 1: the paper's formulas for inserting a point, as printed (its equation 2), fail the test that ours pass."""

import math

import numpy as np
import pytest
from laws import TAIL, p_value, sample

from quietq.noise import SeededEntropy
from quietq.paper.sampler import SortedPath, between
from quietq.privacy import Exponential

POINTS = np.array([0.0, 0.1, 0.3, 0.35, 0.7, 1.0])


def printed_weights(beta, gap_left, gap_right):
    """Weights of the left and the right neighbour, as printed."""
    whole = math.sinh(beta * (gap_left + gap_right))
    return math.sinh(beta * gap_left) / whole, math.sinh(beta * gap_right) / whole


def printed_variance(beta, gap_left, gap_right):
    """d_at, as printed."""
    whole = math.sinh(beta * (gap_left + gap_right))
    left = math.sinh(beta * gap_left) * math.exp(beta * gap_left)
    right = math.sinh(beta * gap_right) * math.exp(beta * gap_right)
    return 1 - (left + right) / whole


def test_the_printed_variance_is_never_positive():
    rng = np.random.default_rng(0)
    for beta in (1e-3, 0.1, 1.0, 10.0, 100.0):
        for left, right in rng.uniform(0, 0.5, (200, 2)):
            assert printed_variance(beta, left, right) < 1e-12
    assert printed_variance(1.0, 0.5, 0.5) == pytest.approx(-math.tanh(0.5))  # the right size, the wrong sign


def test_the_printed_weights_are_swapped():
    for left, right in ((0.1, 0.4), (0.3, 0.01)):
        ours = between(2.0, left, right)
        assert ours[:2] == pytest.approx(printed_weights(2.0, right, left))


class PrintedPath(SortedPath):
    """The paper's list with its printed weights, and its rule that a missing neighbour is 0 at the end of [0, 1].

    The variance is ours: with the printed one there is nothing to draw from.
    """

    def _conditional(self, x, near):
        at_left, g_left = max((one for one in near if one[0] < x), default=(0.0, 0.0))
        at_right, g_right = min((one for one in near if one[0] > x), default=(1.0, 0.0))
        gap_left, gap_right = x - at_left, at_right - x
        if min(gap_left, gap_right) <= 0:
            return 0.0, 1.0
        w_left, w_right = printed_weights(self.kernel.beta, gap_left, gap_right)
        return w_left * g_left + w_right * g_right, between(self.kernel.beta, gap_left, gap_right)[2]


@pytest.mark.parametrize("beta", [1e-3, 1.0, 10.0])
def test_paths_by_the_printed_rules_have_another_law(beta):
    kernel = Exponential(beta)
    ours = sample(lambda i: SortedPath(kernel, entropy=SeededEntropy(i)), POINTS, 1500)
    printed = sample(lambda i: PrintedPath(kernel, entropy=SeededEntropy(i)), POINTS, 1500)
    assert p_value(kernel, POINTS, ours) > TAIL
    assert p_value(kernel, POINTS, printed) < TAIL


def test_swapped_weights_alone_are_enough_to_fail():
    """Inner points only, ends known: so that nothing but the swap is tested."""

    class Swapped(SortedPath):
        def _conditional(self, x, near):
            if len(near) < 2:
                return super()._conditional(x, near)
            left, right = near
            w_right, w_left, variance = between(self.kernel.beta, x - left[0], right[0] - x)
            return w_left * left[1] + w_right * right[1], variance

    kernel = Exponential(5.0)
    points = np.array([0.0, 0.1, 1.0])
    rows = np.array([Swapped(kernel, entropy=SeededEntropy(i))([0.0, 1.0, 0.1]) for i in range(1500)])[:, [0, 2, 1]]
    assert p_value(kernel, points, rows) < TAIL
