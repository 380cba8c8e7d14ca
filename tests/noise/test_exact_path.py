"""A path whose points come one by one, drawn exactly: its rows, its bits and its law."""

import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from laws import TAIL, p_value, sample

from quietq.noise.exact_gaussian import ROOM, Chance, draw_normals
from quietq.noise.exact_path import ExactPath
from quietq.noise.rounding import rounding_step, worst_norm
from quietq.privacy import Exponential

SIGMA, LEVELS = 0.3, 6
STEP, GAP = rounding_step(SIGMA), 2.0**-LEVELS
ORDER = [int(i) for i in np.random.default_rng(1).permutation(2**LEVELS + 1)[:24]]


def seeded(seed: int) -> Chance:
    return Chance(np.random.default_rng(seed).bytes)


def sides(x: float, known: list[float]) -> list[float]:
    near = [max((one for one in known if one < x), default=None), min((one for one in known if one > x), default=None)]
    return [one for one in near if one is not None]


@pytest.mark.parametrize("beta", [1e-30, 1e-3, 4.0, 1e4, 1e80])
def test_rows_make_noise_independent(beta):
    """T K T' is 1, with 120 digits, and never above: neighbours are no farther apart than in the kernel's norm."""
    path, points = ExactPath(Exponential(beta), GAP, SIGMA), [i * GAP for i in ORDER]
    n = len(points)
    with mpmath.workdps(120):
        rows, kernel = mpmath.matrix(n, n), mpmath.matrix(n, n)
        for i, x in enumerate(points):
            near = sides(x, points[:i])
            weights, scale = path.row(x, *near)
            scale = mpmath.mpf(scale.numerator) / scale.denominator
            rows[i, i] = scale
            for one, weight in zip(near, weights, strict=True):
                rows[i, points.index(one)] = -scale * mpmath.mpf(weight.numerator) / weight.denominator
            for j, other in enumerate(points):
                kernel[i, j] = mpmath.exp(-mpmath.mpf(beta) * abs(mpmath.mpf(x) - mpmath.mpf(other)))
        off = rows * kernel * rows.T - mpmath.eye(n)
        assert mpmath.norm(off, 2) < mpmath.mpf(10) ** -24
        assert all(off[i, i] < mpmath.mpf(10) ** -30 for i in range(n))
        largest = mpmath.sqrt(sum(rows[i, i] ** 2 for i in range(n)))
        assert largest <= worst_norm(Exponential(beta), LEVELS) * (1 + 1e-9)


@pytest.mark.parametrize("size", [1.0, 1e16])
def test_every_value_is_what_many_digits_make_of_the_same_bits(monkeypatch, size):
    path, normals = ExactPath(Exponential(4.0), GAP, SIGMA, seeded(2)), draw_normals(64, seeded(2))
    values = dict(zip(ORDER, (size * np.random.default_rng(3).standard_normal(len(ORDER))).tolist(), strict=True))
    own, released, drawn = {}, {}, []
    genuine = path._round
    monkeypatch.setattr(path, "_round", lambda value: drawn.append(genuine(value)) or drawn[-1])
    with mpmath.workdps(100):
        for turn, i in enumerate(ORDER):
            near = [int(one / GAP) for one in sides(i * GAP, [j * GAP for j in own])]
            gaps = [mpmath.mpf(4) * abs(i - j) / 2**LEVELS for j in near]
            if len(gaps) == 2:
                weights = [mpmath.sinh(gap) / mpmath.sinh(sum(gaps)) for gap in reversed(gaps)]
                variance = 2 * mpmath.sinh(gaps[0]) * mpmath.sinh(gaps[1]) / mpmath.sinh(sum(gaps))
            else:
                weights = [mpmath.exp(-gap) for gap in gaps]
                variance = 1 - sum(weight**2 for weight in weights)
            part = values[i] - sum(weight * own[j] for weight, j in zip(weights, near, strict=True))
            low, high = normals.between(turn, 4)
            z = (mpmath.mpf(low.numerator) / low.denominator + mpmath.mpf(high.numerator) / high.denominator) / 2
            white = mpmath.nint((part / mpmath.sqrt(variance) + mpmath.mpf(SIGMA * ROOM) * z) / STEP)
            mean = sum(weight * released[j] for weight, j in zip(weights, near, strict=True))
            own[i] = mpmath.mpf(values[i])
            expected = (mean / STEP + white * mpmath.sqrt(variance)) * STEP
            released[i] = path.add(i * GAP, values[i])
            assert drawn[-1] == white
            assert abs(released[i] - expected) <= STEP * (0.5 + 1e-3) + size * 1e-14
            assert released[i] == path.nearest(i * GAP) == path.nearest(i * GAP + 0.99 * GAP * (i == max(ORDER)))


def test_only_what_was_drawn_is_shown():
    """Two functions that are the same but for where they end up in steps of noise give the same numbers."""
    first, second = (ExactPath(Exponential(4.0), GAP, SIGMA, seeded(4)) for _ in range(2))
    tiny = math.ulp(0.0)
    assert [first.add(i * GAP, 0.25) for i in ORDER] == [second.add(i * GAP, 0.25 + tiny) for i in ORDER]
    assert "0.25" not in repr(first)
    with pytest.raises(TypeError, match="is not copied or pickled"):
        pickle.dumps(first)


def test_points_that_come_in_any_order_have_the_law():
    points, kernel = np.array([0.0, 0.1, 0.125, 0.5, 0.9]), Exponential(4.0)

    def make(seed):
        path = ExactPath(kernel, 2.0**-10, 1.0, seeded(seed))
        return lambda x: np.array([path.add(float(one), 0.0) for one in np.atleast_1d(x)]).reshape(np.shape(x))

    assert p_value(kernel, points, sample(make, points, 150)) > TAIL


def test_the_first_point_is_one_normal():
    path, normals = ExactPath(Exponential(4.0), GAP, SIGMA, seeded(5)), draw_normals(64, seeded(5))
    low, high = normals.between(0, 4)
    scale = Fraction(1) - Fraction(1, 10**25)
    ends = {
        round(float(math.floor((scale * Fraction(0.7) + Fraction(SIGMA * ROOM) * z) / Fraction(STEP) + Fraction(1, 2))))
        for z in (low, high)
    }
    assert {path.add(0.5, 0.7)} == {end * STEP for end in ends}
