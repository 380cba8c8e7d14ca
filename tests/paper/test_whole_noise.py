"""Noise of methods that noise as they go: exact, in whole numbers that compiled code adds without rounding."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import chi2

from quietq import Budget, SupBall
from quietq.noise.entropy import SeededEntropy, SystemEntropy
from quietq.noise.exact_gaussian import ROOM
from quietq.paper import InputNoise, OutputNoise, ValueNoise
from quietq.paper.agents.in_loop_method import UnitNoise, UnitSteps
from quietq.paper.agents.protect import LARGEST, SLACK, STEPS, protect, room
from quietq.paper.agents.trainer import spaces_of
from quietq.worlds import WALK

BUDGET, SPACES = Budget(0.9, 1e-4), spaces_of(WALK)
PROMISE = {"relation": SupBall(0.01), "budget": BUDGET}
_protect = jax.jit(protect)


def in_steps(value: float, scale: float) -> tuple[int, np.float32]:
    """How many steps the value is rounded to, in float32, and the step."""
    size = np.float32(scale) * np.float32(SLACK)
    step = size * np.float32(2.0**-STEPS)
    clipped = np.clip(np.float32(value), -np.float32(LARGEST) * size, np.float32(LARGEST) * size)
    return int(np.rint(clipped / step)), step


@settings(max_examples=40)
@given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=4, max_size=4),
    st.integers(-(2**31), 2**31 - 1),
    st.floats(2.0**-40, 2.0**20, width=32),
)
def test_what_comes_out_is_a_function_of_the_whole_sum(values, noise, scale):
    """Other values with as much more noise give the same bits, also where the sum has more than 32 of them."""
    whole = [in_steps(value, scale) for value in values]
    sums = [(noise + whole[0][0] - k + 2**31) % 2**32 - 2**31 for k, _ in whole]
    found = np.asarray(_protect(jnp.asarray(values, jnp.float32), jnp.asarray(sums, jnp.int32), jnp.float32(scale)))
    total = (noise + whole[0][0] + 2**31) % 2**32 - 2**31
    assert found.tolist() == [float(np.float32(total) * whole[0][1])] * 4


def test_rounding_before_the_noise_is_covered():
    """Numbers on either side of a boundary, in all of so many: what that adds is in the noise."""
    numbers, mu, scale = 400, 0.3, 0.25
    size = float(np.float32(scale) * np.float32(SLACK))
    move = mu * scale / math.sqrt(numbers)  # each of them; all together they are worth mu
    pairs = [(in_steps(low, scale)[0], in_steps(low + move, scale)[0]) for low in np.linspace(-1, 1, numbers)]
    farthest = max(other - one for one, other in pairs)
    assert farthest <= move / size * 2**STEPS + 1
    worth = farthest * math.sqrt(numbers) / (2**STEPS * room(numbers, mu))
    assert mu * (1 - 1e-2) < worth <= mu
    assert room(numbers, mu) < 1.0003


@pytest.mark.parametrize("kind", [InputNoise, ValueNoise, OutputNoise])
def test_noise_that_protects_is_whole(kind):
    method, steps = kind(**PROMISE), 2000
    drawn, ones = (method.draw(SPACES, steps, entropy) for entropy in (SystemEntropy(), UnitSteps()))
    assert drawn.normals.dtype == ones.normals.dtype == np.int32
    assert drawn.normals.shape == ones.normals.shape
    deviation = 2.0**STEPS * room(drawn.normals.size, BUDGET.mu) * ROOM
    square = math.fsum((drawn.normals.ravel() / deviation) ** 2)
    assert 1e-9 < chi2.cdf(square, drawn.normals.size) < 1 - 1e-9
    for entropy in (SeededEntropy(0), UnitNoise()):
        simulated = method.draw(SPACES, steps, entropy)
        assert simulated.normals.dtype == np.float32
        assert simulated.scale == drawn.scale


def test_certificates_of_methods_say_that_noise_is_exact():
    certificate = ValueNoise(**PROMISE).certificate(SPACES, 2000)
    assert "assumed to be ideal" not in str(certificate)
    (exact,) = [one for one in certificate.assumptions if "exactly the stated distribution" in one.text]
    assert exact.enforced
    assert any("random bits are fair" in one.text and not one.enforced for one in certificate.assumptions)
