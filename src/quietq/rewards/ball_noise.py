"""K-norm noise on the weights of features: pure epsilon-DP, delta = 0, and less noise than Gaussian in few dimensions.

Theorem (Hardt & Talwar 2010, for the Euclidean ball). If neighbours' weights differ by at most Delta in the Euclidean
norm, then w + z with density proportional to exp(-epsilon |z|/Delta) is epsilon-DP, by the triangle inequality. z is a
uniform direction times a Gamma(d, Delta/epsilon) length, of root mean square Delta sqrt(d (d + 1))/epsilon, where
Gaussian noise has Delta sqrt(d)/mu: less while d + 1 < (epsilon/mu)^2. A release is drawn in real numbers and rounded
once (`noise.exact`), so that delta is 0 and not almost 0.
"""

import math
import secrets

import numpy as np
from jaxtyping import Float

from quietq.noise.allowance import FLOAT64, check_allowance, size_bound, worst_norm
from quietq.noise.box import Box
from quietq.noise.entropy import Entropy, SeededEntropy
from quietq.noise.evaluation import in_weights
from quietq.noise.exact import Enclosure, LazyUniform, RandomBits, decide, exponentials, round_exactly, total
from quietq.noise.kernels import FiniteRank
from quietq.noise.private_function import PrivateWeights
from quietq.noise.rounding import check_values, exact_rounding, largest_value, round_release, rounding_step
from quietq.privacy.account import Account
from quietq.privacy.budget import Budget
from quietq.privacy.certificate import CHOSEN, Assumption, Certificate
from quietq.privacy.checks import positive
from quietq.privacy.cost import Cost
from quietq.privacy.errors import InvalidInput
from quietq.privacy.once import accounted
from quietq.privacy.relations import RkhsBall

SLACK = 1 + 1e-6
"""As in `knots`: covers the rounding errors of each person's weights."""


def draw(numbers: int, radius: float, epsilon: float, entropy: Entropy, draws: int = 1) -> Float[np.ndarray, "draws d"]:
    """Independent noise vectors of so many numbers in floating point: for simulation. `release` draws what protects.

    >>> draw(4, radius=0.02, epsilon=1.0, entropy=SeededEntropy(0)).shape
    (1, 4)
    """
    direction = entropy.normals((draws, numbers))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    lengths = -np.log(entropy.uniforms((draws, numbers))).sum(axis=1, keepdims=True)
    return lengths * radius / epsilon * direction


def release(
    values: Float[np.ndarray, "..."],
    radius: float,
    epsilon: float,
    step: float,
    random_bits: RandomBits = secrets.randbits,
) -> Float[np.ndarray, "..."]:
    """Numbers with exact noise of this law, rounded to multiples of the step.

    Directions come from pairs of normals by the polar method (Marsaglia & Bray 1964), all in real numbers.
    """
    lengths = [LazyUniform(random_bits) for _ in range(values.size)]
    discs = [_in_disc(random_bits) for _ in range(-(-values.size // 2))]
    scale = Enclosure.exactly(radius) / Enclosure.exactly(epsilon)

    def noise() -> list[Enclosure]:
        normals = [normal for disc in discs for normal in _normals(*disc)][: values.size]
        length = exponentials(lengths) * scale / total(normal * normal for normal in normals).sqrt()
        return [length * normal for normal in normals]

    return round_exactly(values, noise, [*lengths, *(uniform for disc in discs for uniform in disc)], step)


def _in_disc(random_bits: RandomBits) -> tuple[LazyUniform, LazyUniform]:
    """A uniform point of the unit disc, by where it lies in the square around it."""
    while True:
        pair = LazyUniform(random_bits), LazyUniform(random_bits)
        if decide(lambda pair=pair: _squared(*map(_signed, pair)).is_below(1), pair):
            return pair


def _normals(first: LazyUniform, second: LazyUniform) -> list[Enclosure]:
    """Two independent standard normals from a uniform point of the disc."""
    x, y = _signed(first), _signed(second)
    squared = _squared(x, y)
    factor = (Enclosure.exactly(2) * -squared.log() / squared).sqrt()
    return [x * factor, y * factor]


def _signed(uniform: LazyUniform) -> Enclosure:
    return Enclosure.exactly(2) * uniform.enclosure() + Enclosure.exactly(-1)


def _squared(x: Enclosure, y: Enclosure) -> Enclosure:
    return x * x + y * y


def typical_noise(numbers: int, radius: float, epsilon: float) -> float:
    """The standard deviation of one number's noise."""
    return radius * math.sqrt(numbers + 1) / epsilon


def is_better(kernel: FiniteRank, budget: Budget, actions: int = 1) -> bool:
    """Whether this noise is smaller than Gaussian noise of the same budget: a public rule."""
    return budget.is_pure or kernel.rank * actions + 1 < (budget.epsilon / budget.mu) ** 2


def release_weights(
    weights: object,
    accuracy: float | None,
    kernel: FiniteRank,
    ball: RkhsBall,
    budget: Budget,
    box: Box,
    assumptions: tuple[Assumption, ...],
    account: Account | None,
    simulate: int | None,
) -> PrivateWeights:
    """The one draw of all weights."""
    radius = ball.rkhs_radius(kernel) * SLACK
    most = largest_value(typical_noise(kernel.rank * ball.actions, radius, budget.epsilon))
    if accuracy is None:
        most = min(most, size_bound(radius, ball.people))
    error = FLOAT64 * most if accuracy is None else positive("accuracy", accuracy)
    allowance = 2 * error * worst_norm(kernel, 0, ball.actions)  # of weights: nothing is amplified
    check_allowance(allowance, radius, error)
    radius += allowance
    scale = typical_noise(kernel.rank * ball.actions, radius, budget.epsilon)
    values = in_weights(weights, kernel, box, exact=accuracy is None)
    if values.size != kernel.rank * ball.actions:
        raise InvalidInput(f"There must be {ball.actions} row(s) of weights, as the relation says, not {values.shape}.")
    check_values(values, most)
    if simulate is not None:
        remark = f"Simulates {budget}; drawn from a seed, so it protects nobody."
        certificate = Certificate(
            method="reward/k-norm", standing="none", reproducible=True, sigma=scale, remarks=(remark,)
        )
        noise = draw(values.size, radius, budget.epsilon, SeededEntropy(simulate))[0].reshape(values.shape)
        return PrivateWeights(round_release(values, noise, scale), kernel, box, certificate)
    further = (*exact_rounding(scale, most, error), accounted(account))
    certificate = _certificate(ball, kernel, radius, budget, box, values.size, assumptions, further)
    receipt = None if account is None else account.charge(Cost.apart(budget.epsilon), ball)
    released = release(values, radius, budget.epsilon, rounding_step(scale))
    return PrivateWeights(released, kernel, box, certificate).with_receipt(receipt)


def _certificate(
    ball: RkhsBall,
    kernel: FiniteRank,
    radius: float,
    budget: Budget,
    box: Box,
    numbers: int,
    assumptions: tuple[Assumption, ...],
    further: tuple[Assumption, ...],
) -> Certificate:
    """For noise of density exp(-epsilon |z|/radius), which `release` draws."""
    sigma = typical_noise(numbers, radius, budget.epsilon)
    return Certificate(
        method="reward/k-norm",
        standing="certified",
        relation=ball.describe(),
        domain=list(zip(box.low, box.high, strict=True)),
        epsilon=budget.epsilon,
        delta=0.0,
        sigma=sigma,
        scale=radius / budget.epsilon,
        sensitivity=ball.rkhs_radius(kernel),
        norm=kernel.describe(),
        assumptions=(
            *(assumptions or (Assumption(f"Neighbouring inputs are {ball}.", enforced=False),)),
            CHOSEN,
            Assumption(f"The {numbers} weights were noised once, together, and not kept.", True),
            *further,
        ),
        remarks=("Noise of uniform direction and Gamma length, in all weights together: pure, without a delta.",),
    )
