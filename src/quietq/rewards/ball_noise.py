"""K-norm noise on the weights of features: pure epsilon-DP, delta = 0, and less noise than Gaussian in few dimensions.

Theorem (Hardt & Talwar 2010, for the Euclidean ball). If neighbours' weights differ by at most Delta in the Euclidean
norm, then w + z with density proportional to exp(-epsilon |z|/Delta) is epsilon-DP, by the triangle inequality. z is a
uniform direction times a Gamma(d, Delta/epsilon) length, of root mean square Delta sqrt(d (d + 1))/epsilon, where
Gaussian noise has Delta sqrt(d)/mu: less while d + 1 < (epsilon/mu)^2.
"""

import math

import numpy as np
from jaxtyping import Float

from quietq.noise.allowance import FLOAT64, check_allowance, size_bound, worst_norm
from quietq.noise.box import Box
from quietq.noise.entropy import Entropy, SeededEntropy, SystemEntropy
from quietq.noise.evaluation import in_weights
from quietq.noise.kernels import FiniteRank
from quietq.noise.private_function import PrivateWeights
from quietq.noise.rounding import check_values, largest_value, round_release, rounding_in_words
from quietq.privacy.accountant import Accountant
from quietq.privacy.budget import Budget
from quietq.privacy.certificate import Assumption, Certificate
from quietq.privacy.checks import positive
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import RkhsBall

SLACK = 1 + 1e-6
"""As in `knots`: covers the rounding errors of each person's weights."""


def draw(numbers: int, radius: float, epsilon: float, entropy: Entropy, draws: int = 1) -> Float[np.ndarray, "draws d"]:
    """Independent noise vectors of so many numbers.

    >>> draw(4, radius=0.02, epsilon=1.0, entropy=SeededEntropy(0)).shape
    (1, 4)
    """
    direction = entropy.normals((draws, numbers))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    lengths = -np.log(entropy.uniforms((draws, numbers))).sum(axis=1, keepdims=True)
    return lengths * radius / epsilon * direction


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
    ledger: Accountant | None,
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
    if simulate is None:
        rounding = rounding_in_words(scale, most, error)
        certificate = _certificate(ball, budget, box, scale, values.size, assumptions, rounding)
        entropy = SystemEntropy()
        if ledger is not None:
            ledger.charge_apart(budget.epsilon, relation=ball)
    else:
        remark = f"Simulates {budget}; drawn from a seed, so it protects nobody."
        certificate = Certificate(
            method="reward/k-norm", standing="none", reproducible=True, sigma=scale, remarks=(remark,)
        )
        entropy = SeededEntropy(simulate)
    noise = draw(values.size, radius, budget.epsilon, entropy)[0].reshape(values.shape)
    return PrivateWeights(round_release(values, noise, scale), kernel, box, certificate)


def _certificate(
    ball: RkhsBall,
    budget: Budget,
    box: Box,
    scale: float,
    numbers: int,
    assumptions: tuple[Assumption, ...],
    rounding: str,
) -> Certificate:
    return Certificate(
        method="reward/k-norm",
        standing="certified",
        relation=ball.describe(),
        domain=list(zip(box.low, box.high, strict=True)),
        epsilon=budget.epsilon,
        delta=0.0,
        sigma=scale,
        assumptions=(
            *(assumptions or (Assumption(f"Neighbouring inputs are {ball}.", enforced=False),)),
            Assumption("Box, bounds, number of people and budget were chosen without the private data.", False),
            Assumption(f"The {numbers} weights were noised once, together, and not kept.", True),
            Assumption("Noise was drawn in float64 from the operating system's generator.", True),
            Assumption(rounding, False),
        ),
        remarks=("Noise of uniform direction and Gamma length, in all weights together: pure, without a delta.",),
    )
