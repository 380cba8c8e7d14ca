"""A reward released at a few knots, straight lines between them: K-norm noise (pure) or shaped Gaussian noise.

The theorems are those of `k_norm` and `ellipsoid`: this module looks at the function at the knots, charges, draws once,
rounds, and states the certificate.
"""

import math
import warnings
from typing import Any

import numpy as np

from quietq.noise.allowance import FLOAT64, check_allowance, size_bound
from quietq.noise.box import Box
from quietq.noise.entropy import Entropy, SeededEntropy, SystemEntropy
from quietq.noise.evaluation import values_at
from quietq.noise.private_function import PrivateKnots
from quietq.noise.rounding import (
    check_values,
    exact_rounding,
    largest_value,
    round_release,
    rounding_in_words,
    rounding_step,
)
from quietq.privacy.account import Account
from quietq.privacy.budget import Budget, weak_delta
from quietq.privacy.certificate import CHOSEN, Assumption, Certificate
from quietq.privacy.checks import positive
from quietq.privacy.cost import Cost
from quietq.privacy.errors import InvalidInput, PrivacyWarning
from quietq.privacy.norms import largest_difference
from quietq.privacy.once import accounted
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
    account: Account | None,
    simulate: int | None,
) -> PrivateKnots:
    """The one draw of a vector, and the function through it."""
    if ball.actions != 1:
        raise InvalidInput("Noise on knots is for one reward function; use noise='path' with several actions.")
    if choice.kind != "k-norm" and (sentence := weak_delta(budget.delta, ball.people)):
        warnings.warn(sentence, PrivacyWarning, stacklevel=4)
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
        return PrivateKnots(noise.curve(noise.simulate(values, SeededEntropy(simulate))), box, certificate)
    further = (*noise.rounding(most, error), accounted(account))
    certificate = _certificate(choice, ball, budget, box, noise, assumptions, further)
    receipt = None if account is None else account.charge(noise.cost, ball)
    return PrivateKnots(noise.curve(noise.release(values)), box, certificate).with_receipt(receipt)


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

    def rounding(self, most: float, error: float) -> tuple[Assumption, ...]:
        return exact_rounding(self.scale, most, error)

    def measured(self) -> dict[str, Any]:
        """Density exp(-epsilon |z|) in the body's own gauge."""
        body = self._body.ball
        norm = {"kind": "increments", "pieces": self._body.pieces, "radius": body.radius, "lipschitz": body.lipschitz}
        return {"norm": norm, "sigma": self.scale, "scale": 1 / self._epsilon}

    def looked_at(self, knots: np.ndarray) -> np.ndarray:
        return np.diff(knots)

    @property
    def cost(self) -> Cost:
        return Cost.apart(self._epsilon)

    def release(self, values: np.ndarray) -> np.ndarray:
        return k_norm.release(values, self._body, self._epsilon, rounding_step(self.scale))

    def simulate(self, values: np.ndarray, entropy: SeededEntropy) -> np.ndarray:
        return round_release(values, k_norm.draw(self._body, self._epsilon, entropy)[0], self.scale)

    def curve(self, released: np.ndarray) -> np.ndarray:
        return k_norm.to_curve(released)


class _ShapedNoise:
    """Gaussian, on values at knots."""

    def __init__(self, ball: LipschitzBall, pieces: int, budget: Budget) -> None:
        self._root, self._mu = np.linalg.cholesky(ellipsoid.shape(ball, pieces)) / budget.mu, budget.mu
        self.scale = math.sqrt(float(np.sum(self._root**2)) / len(self._root))

    def rounding(self, most: float, error: float) -> tuple[Assumption, ...]:
        return (
            Assumption("Noise was drawn in float64 from the operating system's generator.", True),
            Assumption(rounding_in_words(self.scale, most, error), False),
        )

    def measured(self) -> dict[str, Any]:
        """The covariance of what is drawn, as its mean variance and its shape."""
        shape = self._root @ self._root.T / self.scale**2
        return {"norm": {"kind": "knots", "shape": ((shape + shape.T) / 2).tolist()}, "sigma": self.scale}

    def looked_at(self, knots: np.ndarray) -> np.ndarray:
        return knots

    @property
    def cost(self) -> Cost:
        return Cost.gaussian(self._mu)

    def release(self, values: np.ndarray) -> np.ndarray:
        return self._noised(values, SystemEntropy())

    def simulate(self, values: np.ndarray, entropy: SeededEntropy) -> np.ndarray:
        return self._noised(values, entropy)

    def _noised(self, values: np.ndarray, entropy: Entropy) -> np.ndarray:
        return round_release(values, self._root @ entropy.normals((len(self._root),)), self.scale)

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
    noise: "_KNormNoise | _ShapedNoise",
    assumptions: tuple[Assumption, ...],
    further: tuple[Assumption, ...],
) -> Certificate:
    pure, measured = choice.kind == "k-norm", noise.measured()
    what = "increments between" if pure else "values at"
    return Certificate(
        method=f"reward/{choice.kind}",
        standing="certified",
        relation=ball.describe(),
        domain=list(zip(box.low, box.high, strict=True)),
        epsilon=budget.epsilon,
        delta=0.0 if pure else budget.delta,
        mu=None if pure else budget.mu,
        sensitivity=largest_difference(measured["norm"], ball.describe()),
        **measured,
        assumptions=(
            *(assumptions or (Assumption(f"Neighbouring inputs are {ball}.", enforced=False),)),
            CHOSEN,
            Assumption(
                f"Only the {what} {choice.pieces + 1} public knots were looked at, noised once, not kept.", True
            ),
            *further,
        ),
        remarks=(choice.reason,),
    )
