"""Numbers + exact normals, rounded: bit for bit what fractions make of them, and nothing to see in low-order bits."""

import math
from fractions import Fraction
from functools import reduce

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import ndtr, ndtri
from scipy.stats import chi2

from quietq import Budget, GaussianProcessMechanism, people, privatise
from quietq.mechanisms.knots import KnotNoise
from quietq.noise import Box
from quietq.noise.entropy import SystemEntropy
from quietq.noise.exact_gaussian import ROOM, Chance, add_exactly, draw_normals, inverse
from quietq.noise.grid_path import GridNoise, step_of, stretch
from quietq.noise.laws import Gaussian
from quietq.noise.rounding import rounding_step
from quietq.privacy import Exponential
from quietq.privacy.errors import InvalidInput
from quietq.privacy.norms import Answers

ROOT = np.linalg.cholesky(0.3 + 0.7 * np.eye(5)) * [1.0, 0.5, 2.0, 1.0, 3.0]
ROOT /= math.sqrt(np.sum(ROOT**2) / 5)  # of a mean variance of 1, as shapes of noise on knots are
KERNEL, OTHER = Exponential(4.0), Exponential(300.0)


def seeded(seed: int, kind: type = np.uint64) -> Chance:
    return Chance(np.random.default_rng(seed).bytes, kind)


def along(beta: float, levels: int) -> np.ndarray:
    """The matrix of one axis, of fractions."""
    step, n = step_of(beta, levels), 2**levels + 1
    matrix = np.full((n, n), Fraction(0))
    matrix[0, 0] = Fraction(1)
    for i in range(1, n):
        matrix[i, i] = Fraction(step.scale)
        matrix[i, i - 1] = -Fraction(step.scale) * (Fraction(step.near) - Fraction(step.change))
    return matrix


def apart(*matrices: np.ndarray) -> np.ndarray:
    whole = np.full((sum(map(len, matrices)),) * 2, Fraction(0))
    at = 0
    for matrix in matrices:
        whole[at : at + len(matrix), at : at + len(matrix)] = matrix
        at += len(matrix)
    return whole


TWICE = np.array([[Fraction(1), Fraction(0)], [Fraction(0), Fraction(1)]])
CASES = {
    "independent": (Gaussian(0.3, Answers()), (7,), apart(*[np.array([[Fraction(1)]])] * 7)),
    "path": (GridNoise(0.3, KERNEL, 3), (9,), along(4.0, 3)),
    "far apart": (GridNoise(0.3, OTHER, 3), (9,), along(300.0, 3)),
    "outputs": (GridNoise(0.3, KERNEL, 2), (5, 2), np.kron(along(4.0, 2), TWICE)),
    "product": (GridNoise(0.3, Exponential((4.0, 300.0)), 2), (5, 5), np.kron(along(4.0, 2), along(300.0, 2))),
    "sum": (GridNoise(0.3, Exponential((4.0, 300.0), summed=True), 2), (2, 5), apart(along(4.0, 2), along(300.0, 2))),
    "knots": (KnotNoise(0.3, ROOT), (5,), np.vectorize(Fraction, otypes=[object])(inverse(ROOT))),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", [np.uint8, np.uint64])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e7, 1e16])
def test_sums_are_what_fractions_make_of_the_same_bits(case, kind, size):
    """With 8 bits of each normal every rounding is open at first; values of 1e16 sigma are beyond float64."""
    (shape, where, matrix), sigma = CASES[case], 0.3
    step = rounding_step(sigma)
    numbers = size * np.random.default_rng(5).standard_normal(where)
    found = add_exactly(shape.whiten(numbers, step), sigma, step, seeded(6, kind))
    normals = draw_normals(numbers.size, seeded(6, kind))
    sums = matrix @ np.array([Fraction(number) for number in numbers.ravel().tolist()])
    for i, (number, total) in enumerate(zip(found.ravel().tolist(), sums, strict=True)):
        low, high = normals.between(i, 16)
        ends = {math.floor((total + Fraction(sigma * ROOM) * z) / Fraction(step) + Fraction(1, 2)) for z in (low, high)}
        assert [number] == [float(end) * step for end in ends]


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=12)
@given(seed=st.integers(0, 10**6), size=st.integers(-1070, 900), step=st.integers(-900, 900))
def test_whitened_numbers_are_as_close_as_they_say(case, seed, size, step):
    shape, where, matrix = CASES[case]
    numbers = np.ldexp(np.random.default_rng(seed).standard_normal(where), size)
    with np.errstate(over="ignore", invalid="ignore"):
        found = shape.whiten(numbers, 2.0**step)
    sums = matrix @ np.array([Fraction(number) for number in numbers.ravel().tolist()]) / Fraction(2) ** step
    for i, exact in enumerate(sums):
        about, error = found.about.ravel()[i], found.errors.ravel()[i]
        assert not math.isfinite(about + error) or abs(Fraction(about) - exact) <= Fraction(error)
        assert found.exactly(i) == exact


@pytest.mark.parametrize("beta", [1e-6, 4.0, 7.9, 8.1, 1e3])
def test_rounded_constants_lengthen_nothing(beta):
    """The longest that T makes of numbers of norm 1, with 60 digits, is 1 but for the last place of float64."""
    levels = 3
    step, n = step_of(beta, levels), 2**levels + 1
    with mpmath.workdps(60):
        covariance = mpmath.matrix(n, n)
        for i in range(n):
            for j in range(n):
                covariance[i, j] = mpmath.exp(-mpmath.mpf(beta) * abs(i - j) / 2**levels)
        exact = along(beta, levels)
        rows = mpmath.matrix([[mpmath.mpf(x.numerator) / x.denominator for x in row] for row in exact.tolist()])
        product = rows * mpmath.cholesky(covariance)
        longest = mpmath.sqrt(max(mpmath.eigsy(product * product.T, eigvals_only=True)))
        assert 1 - 1e-14 < longest <= stretch(step, beta, levels) < 1 + 1e-14


@settings(max_examples=40)
@given(beta=st.floats(1e-100, 1e100), levels=st.integers(1, 16))
def test_every_beta_keeps_its_logarithm(beta, levels):
    assert stretch(step_of(beta, levels), beta, levels) < 1 + 1e-14


def test_what_cannot_be_drawn_exactly_is_refused_beforehand():
    with pytest.raises(InvalidInput, match="too small"):
        step_of(5e-324, 4)
    with pytest.raises(InvalidInput, match="too narrow"):
        KnotNoise(1.0, np.array([[1.0, 0.0], [1.0, 1e-9]]) @ np.array([[1.0, 0.0], [1.0, 1e-9]]))


def test_grids_that_states_blur_are_refused():
    """Beside 1e6 the last place of a state is 1e-10: twice that is a part of 2e-6 of the width of 2^20 cells."""
    Box((1e6,), (1e6 + 100,)).check_levels(16)
    with pytest.raises(InvalidInput, match="levels 20 is too fine for domain"):
        GaussianProcessMechanism(KERNEL, 1.0, Budget(1, 1e-5), domain=(1e6, 1e6 + 100), levels=20)


def explains(released: np.ndarray, secret: float, sigma: float) -> np.ndarray:
    """Which of these could be the secret + sigma times a normal by inversion of 52 bits: Mironov's (2012) attack."""
    z = (released - secret) / sigma
    place = np.rint(ndtr(-np.abs(z)) * 2.0**53 - 0.5)
    tried = [secret + np.sign(z) * sigma * -ndtri((place + off + 0.5) * 2.0**-53) for off in range(-24, 25)]
    return reduce(np.logical_or, [one == released for one in tried])


def share_guessed(release, sigma: float) -> float:
    """How often 0 and 1 are told apart: by which of them could have led to the number, or else by which is nearer 0."""
    right = []
    for secret in (0.0, 1.0):
        released = release(np.full(2000, secret))
        one, other = explains(released, 0.0, sigma), explains(released, 1.0, sigma)
        right.append(np.where(one == other, secret == 0.0, one == (secret == 0.0)))
    return float(np.mean(right))


def test_low_order_bits_tell_nothing():
    """They give naive noise away, though it is a hundred times larger than what it hides."""
    sigma, generator = 100.0, np.random.default_rng(7)

    def naive(values: np.ndarray) -> np.ndarray:
        signs, tails = generator.integers(0, 2, values.size), generator.integers(0, 2**52, values.size)
        return values + sigma * np.where(signs, 1, -1) * ndtri((tails + 0.5) * 2.0**-53)

    law = Gaussian(sigma, Answers())
    assert share_guessed(naive, sigma) > 0.75
    assert abs(share_guessed(lambda values: law.add(values, SystemEntropy()), sigma) - 0.5) < 5.5 * 0.5 / math.sqrt(
        4000
    )


@pytest.mark.parametrize("case", CASES)
def test_real_releases_have_the_law(case):
    """The squared distance of so many draws, in the norm that the noise hides."""
    (law, where, matrix), draws = CASES[case], 20
    noise = [law.add(np.zeros(where), SystemEntropy()) for _ in range(draws)]
    squares = math.fsum((law.distance(one) / law.sigma) ** 2 for one in noise)
    assert 1e-9 < chi2.cdf(squares, draws * len(matrix)) < 1 - 1e-9
    np.testing.assert_array_equal(np.mod(noise, rounding_step(law.sigma)), 0)


@pytest.mark.parametrize(("noise", "pieces"), [("path", None), ("knots", 2)])
def test_certificates_say_that_noise_is_exact(noise, pieces):
    ball = people(50, low=0, high=0.5, slope=1)
    private = privatise(lambda s: 0.5 - abs(s - 0.5), Budget(0.9, 1e-4), relation=ball, noise=noise, pieces=pieces)
    (exact,) = [one for one in private.certificate.assumptions if "exactly the stated distribution" in one.text]
    assert exact.enforced
    assert "assumed to be ideal" not in str(private.certificate)
