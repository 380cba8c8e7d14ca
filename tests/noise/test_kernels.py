"""Kernels: reproducing property, norms, expansions, refusals."""

import functools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from quietq import InvalidInput, RkhsBall
from quietq.paper import BandLimited, FeatureKernel
from quietq.paper.sampler import between, beyond
from quietq.privacy import Exponential
from reproduction.hilbert import Differentiable, inner, norm_of, piecewise_linear, section

SMOOTH = Differentiable(lambda x: np.sin(3 * x) + x**2, lambda x: 3 * np.cos(3 * x) + 2 * x)
TENT = piecewise_linear([0, 0.3, 1], [1, 2, -1])


@pytest.mark.parametrize("beta", [1e-3, 0.1, 1.0, 10.0, 300.0, 1.6e4])
@pytest.mark.parametrize("f", [SMOOTH, TENT], ids=["smooth", "tent"])
@pytest.mark.parametrize("y", [0.0, 1e-9, 0.3, 0.5, 0.999, 1.0])
def test_exponential_kernel_reproduces(beta, f, y):
    kernel = Exponential(beta)
    assert inner(kernel, f, section(kernel, y)) == pytest.approx(float(f.value(np.array(y))), abs=1e-12)


@pytest.mark.parametrize("beta", [1e-3, 1.0, 10.0, 1e3])
def test_the_inner_product_of_sections_is_the_kernel(beta):
    kernel = Exponential(beta)
    points = np.array([0.0, 0.2, 0.21, 0.9])
    gram = [[inner(kernel, section(kernel, x), section(kernel, y)) for y in points] for x in points]
    np.testing.assert_allclose(gram, kernel.covariance(points, points), atol=1e-12)


def test_norm_on_points_is_the_dense_one_and_rises_to_the_full_one():
    kernel = Exponential(3.0)
    previous = 0.0
    for n in (2, 5, 17, 65, 1025):
        points = np.linspace(0, 1, n)
        values = np.asarray(SMOOTH.value(points))
        fast = kernel.norm_on(points, values)
        dense = math.sqrt(values @ np.linalg.solve(kernel.covariance(points, points), values))
        assert fast == pytest.approx(dense, rel=1e-8)
        assert previous < fast < norm_of(kernel, SMOOTH)
        previous = fast
    assert previous == pytest.approx(norm_of(kernel, SMOOTH), rel=1e-4)


@given(
    st.lists(st.floats(-1, 1), min_size=2, max_size=12),
    st.floats(0.05, 50),
    st.floats(0.1, 2),
    st.floats(0.1, 30),
)
def test_no_function_of_the_ball_exceeds_its_radius(shape, beta, radius, lipschitz):
    knots = np.linspace(0, 1, len(shape))
    values = radius * np.array(shape)
    steepest = np.abs(np.diff(values) / np.diff(knots)).max()
    values *= min(1, lipschitz / max(steepest, 1e-12))
    kernel = Exponential(beta)
    assert norm_of(kernel, piecewise_linear(knots, values)) <= kernel.norm.of_lipschitz(radius, lipschitz) * (1 + 1e-12)


def test_product_and_additive_norms_by_their_parts():
    parts, f = (Exponential(2.0), Exponential(5.0)), (SMOOTH, TENT)
    norms = [norm_of(part, one) for part, one in zip(parts, f, strict=True)]
    assert norm_of(Exponential((2.0, 5.0)), f) == pytest.approx(math.prod(norms))
    assert norm_of(Exponential((2.0, 5.0), summed=True), f) == pytest.approx(math.hypot(*norms))


def test_product_refuses_a_fourth_dimension():
    with pytest.raises(InvalidInput, match=r"give summed=True beyond that"):
        Exponential((1.0,) * 4)


@pytest.mark.parametrize("half_width", [0.1, 1.0, 20.0, 100.0])
def test_band_limited_expansion_is_the_sinc_kernel(half_width):
    x = np.linspace(0, 1, 41)
    sinc = np.sinc(2 * half_width * np.subtract.outer(x, x))
    for tolerance in (1e-12, 1e-20):
        kernel = BandLimited(half_width, tolerance)
        np.testing.assert_allclose(kernel.covariance(x, x), sinc, atol=max(tolerance, 1e-13) * 1.01)
        if kernel.rank > 1 and tolerance == 1e-12:  # one term fewer would not do
            fewer = kernel.features(x)[:, :-1]
            assert np.abs(fewer @ fewer.T - sinc).max() > tolerance


def test_band_limited_terms_at_half_width_20():
    """About pi W = 63 terms matter. 84 (n = 0 to 83) leave 8e-13 of the variance out, 83 leave 4e-12."""
    assert BandLimited(20.0, 1e-12).rank == 84
    assert BandLimited(20.0, 5e-12).rank == 83


def test_band_limited_projection_shrinks_differences_and_keeps_functions():
    kernel = BandLimited(5.0)
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 301)
    for _ in range(20):
        weights = rng.standard_normal(kernel.rank)
        projected = kernel.project(kernel.features(kernel.sample_points) @ weights)
        assert np.linalg.norm(projected) <= np.linalg.norm(weights) * kernel.stretch
        np.testing.assert_allclose(kernel.features(x) @ projected, kernel.features(x) @ weights, atol=1e-3)
    assert 1 <= kernel.stretch < 1.001


def test_band_limited_projection_of_what_is_beyond_the_terms():
    """The aliasing term of `stretch` is real: it bounds the worst direction among terms that were left out."""
    kernel = BandLimited(3.0, tolerance=1e-6)
    full = BandLimited(3.0, tolerance=1e-25)
    operator = np.stack([kernel.project(column) for column in full.features(kernel.sample_points).T], axis=1)
    assert np.linalg.norm(operator, 2) <= kernel.stretch


@pytest.mark.parametrize("tolerance", [1e-200, 1.0, 2.0, 0.0])
def test_band_limited_tolerances_that_cannot_be_met(tolerance):
    with pytest.raises(InvalidInput, match="tolerance"):
        BandLimited(20.0, tolerance)


def test_a_band_too_wide_for_a_machine_is_refused():
    with pytest.raises(InvalidInput, match="half_width must be at most 1000"):
        BandLimited(1e9)


def test_parts_that_are_none():
    with pytest.raises(InvalidInput, match="number of betas must be a whole number of at least 1, not 0"):
        Exponential(())


@pytest.mark.parametrize(
    ("phi", "message"),
    [
        (lambda x: np.ones((len(x), 3)), r"phi must return shape \(points, 2\)"),
        (lambda x: x, r"phi must return shape \(points, 2\)"),
        (lambda x: np.ones((2, len(x))), r"phi must return shape \(points, 2\)"),
        (lambda x: np.ones((len(x), 2), complex), "phi's values must be real numbers"),
        (lambda x: {}["secret"], "^phi failed with KeyError on an array of points in "),
    ],
)
def test_features_check_their_shapes_and_fail_without_a_quotation(phi, message):
    kernel = FeatureKernel(phi, rank=2)
    with pytest.raises(InvalidInput, match=message) as caught:
        kernel.covariance(np.zeros(4), np.zeros(4))
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("beta", [0.0, -1.0, math.inf, math.nan])
def test_impossible_betas(beta):
    with pytest.raises(InvalidInput, match="beta"):
        Exponential(beta)


@pytest.mark.parametrize("beta", [1e-9, 1e-3, 1.0, 1e3, 1.6e4, 1e9])
@pytest.mark.parametrize(("left", "right"), [(0.5, 0.5), (1e-15, 0.3), (1e-300, 1e-300), (0.2, 1e-12)])
def test_bridge_keeps_its_digits(beta, left, right):
    import mpmath

    with mpmath.workdps(80):
        a, b = mpmath.mpf(beta) * mpmath.mpf(left), mpmath.mpf(beta) * mpmath.mpf(right)
        whole = mpmath.sinh(a + b)
        weights = (float(mpmath.sinh(b) / whole), float(mpmath.sinh(a) / whole))
        variance = float(1 - (mpmath.sinh(b) * mpmath.exp(-a) + mpmath.sinh(a) * mpmath.exp(-b)) / whole)
    found = between(beta, left, right)
    assert found[:2] == pytest.approx(weights, rel=1e-12, abs=1e-300)
    assert found[2] == pytest.approx(variance, rel=1e-12, abs=1e-300)


def test_beyond_all_known_points():
    assert beyond(2.0, 0.5) == pytest.approx((math.exp(-1), 1 - math.exp(-2)))


def test_a_feature_map_is_shown_by_its_name_only():
    """The repr of a bound method shows the object, which may hold anything."""

    class Table:
        def __repr__(self):
            return "secret 42"

        def look(self, x):
            return x[:, None]

        __call__ = look

    for phi, name in ((Table().look, "look"), (Table(), "Table"), (functools.partial(Table().look), "partial")):
        kernel = FeatureKernel(phi, rank=1)
        for shown in (repr(kernel), str(kernel.norm.to_dict()), repr(RkhsBall(1.0, kernel.norm))):
            assert "secret" not in shown
        assert name in repr(kernel)
        assert repr(kernel).endswith("rank=1, dimension=1)")


def test_a_band_limited_kernel_states_its_tolerance():
    assert BandLimited(20.0, 1e-12).norm.to_dict() == {
        "kind": "band-limited",
        "half_width": 20.0,
        "tolerance": 1e-12,
        "rank": 84,
    }


def test_what_is_drawn_follows_from_what_is_stated():
    """A kernel's record has no room for other tables than those of its betas, which certificates state."""
    assert not hasattr(Exponential(4.0), "__dict__")
    with pytest.raises((AttributeError, TypeError)):
        object.__setattr__(Exponential(4.0), "tables", ((1e-6,),))
