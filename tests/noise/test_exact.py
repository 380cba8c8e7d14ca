"""Exact noise: real numbers enclosed, every output reachable, the law that was promised, delta = 0."""

import math
import os
import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import beta, gamma, kstest

from quietq.mechanisms.knots import IncrementNoise
from quietq.noise.entropy import SeededEntropy, SystemEntropy
from quietq.noise.exact import Enclosure, LazyUniform, Undecided, decide
from quietq.noise.laws import BallNoise
from quietq.noise.rounding import rounding_step
from quietq.privacy.norms import Answers
from quietq.privacy.relations import LipschitzBall

STEP = 2.0**-20
PLACES = 8192


def seeded_bits(seed):
    generator = np.random.default_rng(seed)
    return lambda n: int.from_bytes(generator.bytes(-(-n // 8)), "little") >> (-n % 8)


def scripted_bits(*numbers):
    """Bits of these numbers between 0 and 1, asked for in turn: as long as none is rejected, each is one uniform."""
    with mpmath.workprec(PLACES + 64):
        places = [int(mpmath.floor(mpmath.ldexp(number, PLACES))) for number in numbers]
    used, turn = [0] * len(numbers), 0

    def bits(n):
        nonlocal turn
        at, turn = turn % len(numbers), turn + 1
        used[at] += n
        assert used[at] <= PLACES
        return (places[at] >> (PLACES - used[at])) & ((1 << n) - 1)

    return bits


def test_one_number_reaches_beyond_what_52_bits_can(monkeypatch):
    """Uniforms of 52 bits end at 36.7 times the scale: what lies beyond is possible for a neighbour, not for oneself.

    That difference is a delta of 1e-10 or more, where the certificate says 0.
    """
    left = 40  # bytes of zeros, as the operating system may well give them, if only once in a long while

    def zeros_first(n, genuine=os.urandom):
        nonlocal left
        zeros, left = min(n, left), max(left - n, 0)
        return bytes(zeros) + genuine(n - zeros)

    scale = 0.02
    monkeypatch.setattr(os, "urandom", zeros_first)
    monkeypatch.setattr(random, "_urandom", zeros_first)
    released = BallNoise(1 / scale, 1, Answers()).add(np.array([0.25]), SystemEntropy())
    assert abs(float(released[0]) - 0.25) / scale > 45


@pytest.mark.parametrize("cells", [0, 3, 10**6, 40 * 2**20, 900 * 2**20])
@pytest.mark.parametrize("sign", [1, -1])
def test_every_boundary_between_outputs_lies_where_it_should(cells, sign):
    """Uniforms 2^-900 on either side of where the rounding changes give the two outputs, also in the far tail."""
    with mpmath.workprec(PLACES + 64):
        boundary = mpmath.exp(-(mpmath.mpf(cells) + 0.5) * STEP)  # of a length of cells + 1/2 steps
        below, above = (boundary * (1 + side * mpmath.mpf(2) ** -900) for side in (-1, 1))
    across = mpmath.mpf(0.5 + 0.25 * sign)  # a point of the disc on the axis: the direction is its sign
    found = [
        BallNoise(1.0, 1, Answers()).round_exactly(np.zeros(1), STEP, scripted_bits(u, across, mpmath.mpf("0.25")))[0]
        for u in (below, above)
    ]
    assert found == [sign * (cells + 1) * STEP, sign * cells * STEP]


@pytest.mark.parametrize("numbers", [1, 2, 5])
def test_weights_agree_with_many_digits(numbers):
    values = np.linspace(-0.7, 123.4, numbers)
    for seed in range(10):
        asked: list[int] = []
        source = seeded_bits(seed)
        found = BallNoise(0.7, numbers, Answers()).round_exactly(
            values, STEP, lambda n, source=source, asked=asked: asked.append(source(n)) or asked[-1]
        )
        with mpmath.workdps(60):
            uniforms = [(mpmath.mpf(bits) + 0.5) / 2**128 for bits in asked]
            length = -mpmath.fsum(map(mpmath.log, uniforms[:numbers])) / mpmath.mpf(0.7)
            pairs = [
                (2 * a - 1, 2 * b - 1) for a, b in zip(uniforms[numbers::2], uniforms[numbers + 1 :: 2], strict=True)
            ]
            inside = [(a, b, a * a + b * b) for a, b in pairs if a * a + b * b < 1]
            normals = [x * mpmath.sqrt(-2 * mpmath.log(s) / s) for a, b, s in inside for x in (a, b)][:numbers]
            norm = mpmath.sqrt(mpmath.fsum(x * x for x in normals))
            ideal = [mpmath.mpf(float(v)) + length * x / norm for v, x in zip(values, normals, strict=True)]
            assert found.tolist() == [float(mpmath.nint(x / STEP) * STEP) for x in ideal]


def test_increments_agree_with_many_digits():
    law = IncrementNoise(0.9, LipschitzBall(0.5, 2.0), 4)
    values = np.array([0.1, -0.2, 0.3, 17.0])
    for seed in range(10):
        asked: list[int] = []
        source = seeded_bits(seed)
        found = law.round_exactly(
            values, STEP, lambda n, source=source, asked=asked: asked.append(source(n)) or asked[-1]
        )
        words = np.frombuffer(asked[5].to_bytes(8 * 4 * 512, "little"), dtype="<u8").reshape(-1, 4)
        with mpmath.workdps(60):
            length = -mpmath.fsum(mpmath.log((mpmath.mpf(bits) + 0.5) / 2**128) for bits in asked[:5]) / mpmath.mpf(0.9)
            point: list = []
            for row in words.tolist():
                point = [mpmath.mpf(law.half) * (2 * (mpmath.mpf(word) + 0.5) / 2**64 - 1) for word in row]
                sums = [mpmath.mpf(0), *np.cumsum(point)]
                if max(sums) - min(sums) <= 2 * law.ball.radius:
                    break
            ideal = [mpmath.mpf(float(v)) + length * x for v, x in zip(values, point, strict=True)]
            assert found.tolist() == [float(mpmath.nint(x / STEP) * STEP) for x in ideal]


@pytest.mark.parametrize("numbers", [1, 3])
def test_exact_weights_have_the_law(numbers):
    source = seeded_bits(7)
    noise = np.array(
        [BallNoise(0.25, numbers, Answers()).round_exactly(np.zeros(numbers), 2.0**-30, source) for _ in range(500)]
    )
    lengths = np.linalg.norm(noise, axis=1)
    assert kstest(lengths / 4, gamma(numbers).cdf).pvalue > 1e-6
    if numbers > 1:
        assert kstest((noise[:, 0] / lengths) ** 2, beta(0.5, (numbers - 1) / 2).cdf).pvalue > 1e-6
    assert abs((noise[:, 0] > 0).mean() - 0.5) < 5.5 * 0.5 / math.sqrt(500)


def test_exact_increments_have_the_law():
    law, source = IncrementNoise(0.9, LipschitzBall(0.5, 2.0), 4), seeded_bits(8)
    noise = np.array([law.round_exactly(np.zeros(4), 2.0**-30, source) for _ in range(500)])
    length = np.array([law.distance(z) for z in noise])
    assert kstest(length * 0.9, gamma(4).cdf).pvalue > 1e-6
    simulated = law.draws(SeededEntropy(9), 20_000)
    for one, other in zip(noise.T, simulated.T, strict=True):
        assert kstest(one, other).pvalue > 1e-6


def test_a_point_on_the_edge_is_decided_in_whole_numbers():
    """64 bits leave open whether this point is in the body; the next ones decide, either way."""
    law = IncrementNoise(1.0, LipschitzBall(0.5, 2.0), 2)  # both increments at most 1, and their sum
    for more, inside in ((0, True), (2**64 - 1, False)):
        point = [LazyUniform(lambda n, more=more: more, 64, word) for word in (3 * 2**62, 3 * 2**62 - 1)]
        assert law._holds(point) is inside
    exact = Fraction(2 * law.ball.radius) / Fraction(law.half)
    assert exact == 1


@given(st.floats(1e-30, 1e30), st.floats(1e-30, 1e30))
def test_enclosures_hold_the_real_result(x, y):
    a, b = Enclosure.exactly(x), Enclosure.exactly(-y)
    with mpmath.workdps(80):
        exact = mpmath.mpf(x), -mpmath.mpf(y)
        for found, real in (
            (a + b, exact[0] + exact[1]),
            (a * b, exact[0] * exact[1]),
            (b / a, exact[1] / exact[0]),
            (a.sqrt(), mpmath.sqrt(exact[0])),
            (a.log(), mpmath.log(exact[0])),
            (-a, -exact[0]),
        ):
            assert mpmath.mpf(str(found.low)) <= real <= mpmath.mpf(str(found.high))
            assert (
                float(found.high - found.low) <= 1e-27 * max(abs(float(found.high)), 1e-27) or found.low == found.high
            )


def explains(released, secret, scale):
    """Which of these could be the secret + scale times Laplace noise of 52 bits: Mironov's (2012) attack."""
    z = (released - secret) / scale
    place = np.rint(np.exp(-np.abs(z)) * 2.0**52 - 0.5)
    tried = [secret - np.sign(z) * scale * np.log((place + off + 0.5) * 2.0**-52) for off in range(-24, 25)]
    return np.logical_or.reduce([one == released for one in tried])


def share_guessed(release, scale, draws):
    """How often 0 and 1 are told apart: by which of them could have led to the number, or else by a guess of 0."""
    right = []
    for secret in (0.0, 1.0):
        released = release(np.full(draws, secret))
        one, other = explains(released, 0.0, scale), explains(released, 1.0, scale)
        right.append(np.where(one == other, secret == 0.0, one == (secret == 0.0)))
    return float(np.mean(right))


@pytest.mark.parametrize(
    ("law", "draws"),
    [
        (BallNoise(0.01, 1, Answers()), 120),
        pytest.param(BallNoise(0.01, 1, Answers()), 2000, marks=pytest.mark.slow),
        pytest.param(IncrementNoise(0.01, LipschitzBall(0.5, 1.0), 1), 2000, marks=pytest.mark.slow),
    ],
)
def test_low_order_bits_of_pure_noise_tell_nothing(law, draws):
    """They give naive Laplace noise away, though it is a hundred times larger than what it hides."""
    scale, entropy, source = 100.0, SeededEntropy(10), seeded_bits(11)

    def naive(values):
        uniforms = (np.floor(entropy.uniforms(values.shape) * 2**52) + 0.5) * 2.0**-52
        signs = np.where(entropy.uniforms(values.shape) < 0.5, -1.0, 1.0)
        return values - signs * scale * np.log(uniforms)

    def exact(values):
        step = rounding_step(scale)
        return np.array([law.round_exactly(one, step, source)[0] for one in values[:, None]])

    assert share_guessed(naive, scale, draws) > 0.7
    assert abs(share_guessed(exact, scale, draws) - 0.5) < 5.5 * 0.5 / math.sqrt(2 * draws)


def test_what_is_open_is_asked_for_more_bits():
    uniform = LazyUniform(lambda n: 0)
    assert uniform.bits == 128
    with pytest.raises(Undecided):
        uniform.enclosure().log()

    def enough():
        if uniform.bits < 500:
            raise Undecided
        return True

    assert decide(enough, [uniform])
    assert uniform.bits == 512
