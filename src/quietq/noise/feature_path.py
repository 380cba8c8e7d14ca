"""Paths of kernels of finite rank."""

import numpy as np
from jaxtyping import Float

from quietq.noise.box import Box, Domain, box_for
from quietq.noise.entropy import Entropy, SystemEntropy
from quietq.noise.kernels import FiniteRank
from quietq.privacy.checks import instance, positive


class FeaturePath:
    """One path z . phi(x) of a FeatureKernel or BandLimited kernel: exact, any dimension, no grid."""

    def __init__(
        self,
        kernel: FiniteRank,
        sigma: float = 1.0,
        domain: Domain | None = None,
        entropy: Entropy | None = None,
    ) -> None:
        instance("kernel", kernel, FiniteRank, "FeatureKernel or BandLimited")
        self.kernel, self.sigma, self.box = kernel, positive("sigma", sigma), box_for(kernel.dimension, domain)
        self.weights = self.sigma * (SystemEntropy() if entropy is None else entropy).normals((kernel.rank,))
        self.weights.flags.writeable = False

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        return weighted_features(self.kernel, self.weights, self.box, states)


def weighted_features(kernel: FiniteRank, weights: np.ndarray, box: Box, states: object) -> Float[np.ndarray, "..."]:
    """weights . phi at the states; the weights' further axes are outputs."""
    x = box.to_unit(states)
    shape = x.shape if box.dimension == 1 else x.shape[:-1]
    rows = x.reshape(-1) if box.dimension == 1 else x.reshape(-1, box.dimension)
    return (kernel.features(rows) @ weights).reshape(shape + weights.shape[1:])
