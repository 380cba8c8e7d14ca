"""A smooth reward from noised ones: Bayesian regression with a noise variance that is known, because it is public.

Theorem (post-processing). Whatever is computed from the output of a differentially private mechanism, without another
look at the private data, is differentially private with the same parameters. Everything here takes released numbers,
their public noise and public hyper-parameters, so a fitted model is covered by whatever covers the numbers it was
fitted to: by that and no more. Rewards that were not noised before they came here are not made private here.

The model: r is piecewise linear between equally spaced knots (a sum of hat functions), and the knots' values are a
Gaussian process a priori, with the middle of the reward's public range as mean.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int

from quietq.mechanisms.private_function import PrivateTable
from quietq.mechanisms.publishable import IN_TRAINING, Publishable, check_outputs, require
from quietq.noise.box import Box, Domain, box_for
from quietq.noise.grid_path import grid_points
from quietq.noise.kernels import Exponential
from quietq.noise.kernels.exponential import whiten
from quietq.privacy import Certificate, InvalidInput
from quietq.privacy.checks import Checked, count, numbers, optional, positive, real

Smoothness = Literal["squared-exponential", "matern"]
_LENGTHS = {"squared-exponential": 0.2, "matern": 0.3}  # robust in the experiments of docs/theory.md
_AT_ONCE = 2**16  # grid points
_LEAST_NOISE = 1e-8  # below, the posterior drowns in rounding
_SIZE = optional(positive)
_OBSERVED = "rewards"  # the norm of rewards that were noised one by one


@dataclass(frozen=True, eq=False, repr=False)
class FittedReward(Publishable):
    """The posterior: call it with states for its mean; `std` says how sure it is."""

    kind: ClassVar[str] = "fitted"
    arrays: ClassVar = ("mean", "covariance")
    box: Box
    mean: Float[np.ndarray, "knots *outputs"]
    """Posterior mean of the knots' values."""
    covariance: Float[np.ndarray, "knots knots"]
    """Posterior covariance of the knots' values, the same for each output."""
    certificate: Certificate | None = None
    """What covers the numbers that the model was fitted to, if they came with a certificate."""

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        left, share = _place(self.box, len(self.mean), states)
        share = share.reshape(share.shape + (1,) * (self.mean.ndim - 1))
        return np.asarray((1 - share) * self.mean[left] + share * self.mean[left + 1])

    def std(self, states: object) -> Float[np.ndarray, "..."]:
        """Posterior standard deviation of the reward, if it is as the prior says."""
        left, share = _place(self.box, len(self.mean), states)
        c, right = self.covariance, left + 1
        variance = (1 - share) ** 2 * c[left, left] + share**2 * c[right, right]
        return np.asarray(np.sqrt(np.maximum(variance + 2 * share * (1 - share) * c[left, right], 0.0)))

    @staticmethod
    def check(mean: np.ndarray, covariance: np.ndarray, box: Box) -> None:
        require(box.dimension == 1 and len(mean) > 1, "a fitted reward has one coordinate and two knots or more")
        check_outputs(mean, [len(mean)])
        require(covariance.shape == (len(mean), len(mean)), "mean and covariance must have the same knots")

    def check_norm(self, norm: dict[str, Any], certificate: Certificate) -> None:
        fits = norm["kind"] not in IN_TRAINING or norm["kind"] == _OBSERVED
        require(fits, "it must be fitted to rewards, and its certificate is for something else")
        self.require_outputs(certificate)


@dataclass(frozen=True)
class RewardModel(Checked):
    """A prior over rewards in one dimension; all of it public, and chosen without the private data.

    >>> model = RewardModel(low=0.0, high=0.5)
    >>> fitted = model.fit(states=[0.2, 0.8], rewards=[0.3, 0.1], noise=0.01)
    >>> fitted([0.2, 0.8]).round(2), bool(fitted.std(0.5) > fitted.std(0.2))
    (array([0.3, 0.1]), True)
    """

    fields: ClassVar = {"low": real, "high": real, "hats": partial(count, least=2), "length": _SIZE, "deviation": _SIZE}
    low: float
    high: float
    """The reward's range. Its middle is the prior mean; it does not clip."""
    domain: Domain = (0.0, 1.0)
    hats: int = 13
    """Number of knots; 9 to 17 do."""
    smoothness: Smoothness = "squared-exponential"
    length: float | None = None
    """Length scale, as a part of the box's width; by default 0.2 (squared-exponential) or 0.3 (Matern-3/2)."""
    deviation: float | None = None
    """Prior standard deviation; by default half the range's width."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.high <= self.low:
            raise InvalidInput(f"high must be above low, but high is {self.high!r} and low is {self.low!r}.")
        if self.smoothness not in _LENGTHS:
            raise InvalidInput(f"smoothness must be one of {tuple(_LENGTHS)}, not {self.smoothness!r}.")
        box_for(1, self.domain)

    @property
    def box(self) -> Box:
        return box_for(1, self.domain)

    def prior_covariance(self) -> Float[np.ndarray, "knots knots"]:
        length = _LENGTHS[self.smoothness] if self.length is None else self.length
        deviation = (self.high - self.low) / 2 if self.deviation is None else self.deviation
        knots = np.linspace(0, 1, self.hats)
        far = np.abs(np.subtract.outer(knots, knots)) / length
        if self.smoothness == "matern":
            far = math.sqrt(3) * far
            return deviation**2 * (1 + far) * np.exp(-far)
        return deviation**2 * np.exp(-(far**2) / 2)

    def fit(self, states: object, rewards: object, noise: object, weights: object = 1.0) -> FittedReward:
        """The posterior given rewards that carry independent noise of known standard deviation `noise`.

        `noise` and `weights` are one number or one a sample; a sample of weight 2 counts as two of the same value. The
        states must be public: given, or chosen by what was already released.
        """
        left, share = _place(self.box, self.hats, states)
        y = _numbers("rewards", rewards)
        if left.ndim != 1 or y.shape != left.shape:
            raise InvalidInput(f"states and rewards must be equally many, not of shapes {left.shape} and {y.shape}.")
        deviations = _per_sample("noise", noise, y.shape)
        self.check_noise(float(deviations.min(initial=math.inf)))
        precision = _per_sample("weights", weights, y.shape) / deviations**2
        residual = precision * (y - (self.low + self.high) / 2)
        sums = _add(left, residual * (1 - share), self.hats) + _add(left + 1, residual * share, self.hats)
        diagonal = _add(left, precision * (1 - share) ** 2, self.hats) + _add(left + 1, precision * share**2, self.hats)
        beside = _add(left, precision * share * (1 - share), self.hats)[:-1]
        return self.posterior(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1), sums)

    def check_noise(self, least: float) -> None:
        if least < _LEAST_NOISE * (self.high - self.low):
            raise InvalidInput(f"noise must be at least {_LEAST_NOISE:g} of the reward's range.")

    def posterior(
        self, information: np.ndarray, sums: np.ndarray, certificate: Certificate | None = None
    ) -> FittedReward:
        """Of the knots' values, given H'S^-1 H and H'S^-1 (y - mean) for hats H and noise covariance S.

        With the prior covariance as R R', the posterior's is R (I + R'AR)^-1 R': the prior is never inverted, because
        a smooth one is nearly singular.
        """
        scales, directions = np.linalg.eigh(self.prior_covariance())
        root = directions * np.sqrt(np.maximum(scales, 0.0))
        inner = np.eye(self.hats) + root.T @ information @ root
        covariance = root @ np.linalg.solve(inner, root.T)
        mean = (self.low + self.high) / 2 + root @ np.linalg.solve(inner, root.T @ sums)
        return FittedReward(self.box, mean, (covariance + covariance.T) / 2, certificate)


def denoise(private: PrivateTable, model: RewardModel, kernel: Exponential | None = None) -> FittedReward:
    """The posterior mean of a private reward whose noise is a path of the exponential kernel; keeps its certificate.

    An option, not a default: it helps rewards with a single peak and may hurt others, which the prior flattens.
    `kernel` is the noise's; without it, it is taken from the certificate, where that states it. A wrong one costs
    accuracy, never privacy. Costs O(grid).
    """
    if not isinstance(private, PrivateTable):
        raise InvalidInput(f"Only a table, as noise 'path' makes it, can be denoised, not {type(private).__name__}.")
    if private.box != model.box:
        raise InvalidInput(f"The private reward is on {private.box}, but the model's domain is {model.box}.")
    sigma = private.certificate.sigma
    if sigma is None:
        raise InvalidInput("The certificate does not state sigma, so the noise is not known and cannot be reduced.")
    beta = (_noise_kernel(private.certificate) if kernel is None else kernel).beta
    points = grid_points(box_for(1, None), private.levels)
    outputs = private.values.shape[1:]
    centred = (private.values - (model.low + model.high) / 2).reshape(len(points), -1).T / sigma
    information, sums = np.zeros((model.hats, model.hats)), np.zeros((model.hats, len(centred)))
    knots = np.linspace(0, 1, model.hats)
    for start in range(0, len(points), _AT_ONCE):
        # A Markov path: each chunk after the first needs one point before it, which itself counts no more.
        first = max(start - 1, 0)
        part = slice(first, start + _AT_ONCE)
        hats = np.stack([np.interp(points[part], knots, row) for row in np.eye(model.hats)])
        h, y = (whiten(beta, points[part], rows)[:, start - first :] for rows in (hats / sigma, centred[:, part]))
        information += h @ h.T
        sums += h @ y.T
    return model.posterior(information, sums.reshape(model.hats, *outputs), private.certificate)


def _noise_kernel(certificate: Certificate) -> Exponential:
    """The kernel of the noise, where the certificate states it: a simulation's does not."""
    match certificate.norm:
        case {"kind": "exponential", "beta": float(beta)}:
            return Exponential(beta)
    raise InvalidInput("The certificate does not tell the noise's kernel: give it as `kernel`.")


def _place(box: Box, knots: int, states: object) -> tuple[Int[np.ndarray, "..."], Float[np.ndarray, "..."]]:
    """The knot to the left of each state, and how far the state lies between it and the next, in [0, 1]."""
    position = box.to_unit(states) * (knots - 1)
    left = np.asarray(np.minimum(position, knots - 2).astype(np.int64))
    return left, np.asarray(position - left)


def _add(index: np.ndarray, values: np.ndarray, knots: int) -> Float[np.ndarray, "knots"]:
    return np.bincount(index, weights=values, minlength=knots).astype(np.float64)


def _numbers(name: str, values: object) -> Float[np.ndarray, "..."]:
    array = numbers(name, values)
    if not np.isfinite(array).all():
        raise InvalidInput(f"{name} must be finite numbers.")
    return array


def _per_sample(name: str, values: object, shape: tuple[int, ...]) -> Float[np.ndarray, "samples"]:
    array = _numbers(name, values)
    if array.shape not in ((), shape):
        raise InvalidInput(f"{name} must be one number or one a sample, not of shape {array.shape}.")
    if (array <= 0).any():
        raise InvalidInput(f"{name} must be above 0.")
    return np.broadcast_to(array, shape)
