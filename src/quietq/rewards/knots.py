"""A reward released at a few knots, straight lines between them: K-norm noise (pure) or shaped Gaussian noise.

The theorems are those of `k_norm` and `ellipsoid`: this module looks at the function at the knots, charges, draws once,
rounds, and states the certificate.
"""

import math
import warnings

import numpy as np

from quietq.noise.allowance import FLOAT64, check_allowance, size_bound
from quietq.noise.box import Box
from quietq.noise.entropy import Entropy, SeededEntropy, SystemEntropy
from quietq.noise.evaluation import values_at
from quietq.noise.private_function import PrivateKnots
from quietq.noise.rounding import check_values, largest_value, round_release, rounding_in_words
from quietq.privacy.accountant import Accountant
from quietq.privacy.budget import Budget, weak_delta
from quietq.privacy.certificate import Assumption, Certificate
from quietq.privacy.checks import positive
from quietq.privacy.errors import InvalidInput, PrivacyWarning
from quietq.privacy.relations import LipschitzBall
from quietq.rewards import ellipsoid, k_norm
from quietq.rewards.choice import Choice

SLACK = 1 + 1e-6
"""Each person's function is computed in floating point: this much more noise covers it many times over.

People are summed in whole numbers, and what rounds after that is in the allowance for rounding."""


def release_on_knots(
    f: object,
    largest: float | None,
    accuracy: float | None,
    choice: Choice,
    ball: LipschitzBall,
    budget: Budget,
    box: Box,
    assumptions: tuple[Assumption, ...],
    ledger: Accountant | None,
    simulate: int | None,
) -> PrivateKnots:
    """The one draw of a vector, and the function through it."""
    if ball.actions != 1:
        raise InvalidInput("Noise on knots is for one reward function; use noise='path' with several actions.")
    if choice.kind != "k-norm" and (sentence := weak_delta(budget.delta, ball.people)):
        warnings.warn(sentence, PrivacyWarning, stacklevel=3)
    error = _error(largest, accuracy, ball)
    # Nothing is amplified: both neighbours' values at knots err by no more than that. An increment errs twice as much,
    # and once more by its own rounding.
    check_allowance(5 * error * choice.pieces, ball.lipschitz, error)
    check_allowance(2 * error, ball.radius, error)
    wider = LipschitzBall(ball.radius * SLACK + 2 * error, ball.lipschitz * SLACK + 5 * error * choice.pieces)
    kind = _KNormNoise if choice.kind == "k-norm" else _ShapedNoise
    noise = kind(wider, choice.pieces, budget)
    check_range(largest, noise.scale)
    most = min(largest_value(noise.scale), math.inf if accuracy is not None else error / FLOAT64)
    knots = _at_knots(f, box, choice.pieces, exact=accuracy is None)
    check_values(knots, most)
    values = noise.looked_at(knots)
    if simulate is not None:
        certificate = Certificate(
            method=f"reward/{choice.kind}",
            standing="none",
            reproducible=True,
            sigma=noise.scale,
            remarks=(f"Simulates {budget}; drawn from a seed, so it protects nobody.",),
        )
        entropy: Entropy = SeededEntropy(simulate)
    else:
        rounding = rounding_in_words(noise.scale, most, error)
        certificate = _certificate(choice, ball, budget, box, noise.scale, assumptions, rounding)
        entropy = SystemEntropy()
        if ledger is not None:
            noise.charge(ledger, ball)
    return PrivateKnots(noise.curve(round_release(values, noise.draw(entropy), noise.scale)), box, certificate)


def check_range(largest: float | None, sigma: float) -> None:
    """Refuses a *declared* range that is too large for the noise, so that no refusal has to look at the values."""
    if largest is not None and largest > largest_value(sigma):
        raise InvalidInput(
            f"low and high (or norm) must stay within {largest_value(sigma):g} of 0 for noise of sigma {sigma:g}, or "
            "rounding could not hide the values: subtract the middle of the range from the ratings."
        )


class _KNormNoise:
    """On increments between knots; the constant is dropped."""

    def __init__(self, ball: LipschitzBall, pieces: int, budget: Budget) -> None:
        self._body, self._epsilon = k_norm.IncrementBody(ball, pieces), budget.epsilon
        self.scale = k_norm.typical_noise(self._body, budget.epsilon)

    def looked_at(self, knots: np.ndarray) -> np.ndarray:
        return np.diff(knots)

    def charge(self, ledger: Accountant, ball: LipschitzBall) -> None:
        ledger.charge_apart(self._epsilon, relation=ball)

    def draw(self, entropy: Entropy) -> np.ndarray:
        return k_norm.draw(self._body, self._epsilon, entropy)[0]

    def curve(self, released: np.ndarray) -> np.ndarray:
        return k_norm.to_curve(released)


class _ShapedNoise:
    """Gaussian, on values at knots."""

    def __init__(self, ball: LipschitzBall, pieces: int, budget: Budget) -> None:
        shape = ellipsoid.shape(ball, pieces)
        self._root, self._mu = np.linalg.cholesky(shape), budget.mu
        self.scale = math.sqrt(float(np.trace(shape)) / len(shape)) / budget.mu

    def looked_at(self, knots: np.ndarray) -> np.ndarray:
        return knots

    def charge(self, ledger: Accountant, ball: LipschitzBall) -> None:
        ledger.charge(self._mu, relation=ball)

    def draw(self, entropy: Entropy) -> np.ndarray:
        return self._root @ entropy.normals((len(self._root),)) / self._mu

    def curve(self, released: np.ndarray) -> np.ndarray:
        return released


def _error(largest: float | None, accuracy: float | None, ball: LipschitzBall) -> float:
    """How far off values are at the most."""
    if accuracy is not None:
        return positive("accuracy", accuracy)
    return FLOAT64 * (size_bound(ball.radius, ball.people) if largest is None else largest)


def _at_knots(f: object, box: Box, pieces: int, exact: bool) -> np.ndarray:
    states = box.from_unit(np.linspace(0, 1, pieces + 1))
    values = values_at(f, states, exact)
    if values.shape != states.shape:
        raise InvalidInput(f"The function must return one value for each of {len(states)} states at once.")
    return values


def _certificate(
    choice: Choice,
    ball: LipschitzBall,
    budget: Budget,
    box: Box,
    scale: float,
    assumptions: tuple[Assumption, ...],
    rounding: str,
) -> Certificate:
    pure = choice.kind == "k-norm"
    what = "increments between" if pure else "values at"
    return Certificate(
        method=f"reward/{choice.kind}",
        standing="certified",
        relation=ball.describe(),
        domain=list(zip(box.low, box.high, strict=True)),
        epsilon=budget.epsilon,
        delta=0.0 if pure else budget.delta,
        mu=None if pure else budget.mu,
        sigma=scale,
        sensitivity=None if pure else scale * budget.mu,
        assumptions=(
            *(assumptions or (Assumption(f"Neighbouring inputs are {ball}.", enforced=False),)),
            Assumption("Box, bounds, number of people and budget were chosen without the private data.", False),
            Assumption(
                f"Only the {what} {choice.pieces + 1} public knots were looked at, noised once, not kept.", True
            ),
            Assumption("Noise was drawn in float64 from the operating system's generator.", True),
            Assumption(rounding, False),
        ),
        remarks=(choice.reason,),
    )
