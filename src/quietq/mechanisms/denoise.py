"""A private reward with less noise: the posterior of a smooth prior, given the released table. Post-processing only."""

import numpy as np

from quietq.mechanisms.model import FittedReward, RewardModel
from quietq.mechanisms.private_function import PrivateTable
from quietq.noise.box import box_for
from quietq.noise.grid_path import grid_points
from quietq.noise.kernels import Exponential
from quietq.noise.kernels.exponential import whiten
from quietq.privacy import Certificate, InvalidInput

_CHUNK = 2**16


def denoise(private: PrivateTable, model: RewardModel, kernel: Exponential | None = None) -> FittedReward:
    """The posterior mean of a private reward whose noise is a path of the exponential kernel; keeps its certificate.

    An option, not a default: it helps rewards with a single peak and may hurt others, which the prior flattens.
    `kernel` is the noise's; without it, it is taken from the certificate, where that states it. A wrong one costs
    accuracy, never privacy. Costs O(grid).

    >>> from quietq import Budget, GaussianProcessMechanism, people
    >>> mechanism = GaussianProcessMechanism.for_relation(people(20, low=0, high=0.5, slope=1), Budget(0.9, 1e-4))
    >>> private = mechanism.apply(lambda s: 0.5 - abs(s - 0.5))
    >>> smooth = denoise(private, RewardModel(low=0, high=0.5))
    >>> smooth([0.1, 0.5]).shape, smooth.certificate == private.certificate
    ((2,), True)
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
    for start in range(0, len(points), _CHUNK):
        # A Markov path: each chunk after the first needs one point before it, which itself counts no more.
        first = max(start - 1, 0)
        part = slice(first, start + _CHUNK)
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
