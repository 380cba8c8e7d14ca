"""Paths of kernels of finite rank."""

import numpy as np
from jaxtyping import Float

from quietq.noise.box import Domain, box_for
from quietq.noise.entropy import Entropy, SystemEntropy
from quietq.paper.kernels import FiniteRank, weighted_features
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
