"""The paper's sampler: a sorted list of what was asked before, O(log n) a query (its proposition 2, repaired)."""

import math
from typing import Any

import numpy as np
from jaxtyping import Float
from sortedcontainers import SortedDict

from quietq.noise.box import UNIT, Box, Domain
from quietq.noise.bridge import between, beyond
from quietq.noise.entropy import Entropy, SystemEntropy
from quietq.noise.kernels import Exponential
from quietq.privacy.checks import positive


class SortedPath:
    """One path of the exponential kernel at full floating-point resolution; it grows with use.

    >>> path = SortedPath(Exponential(beta=1.0))
    >>> bool(path(0.3) == path(0.3))
    True
    """

    def __init__(
        self, kernel: Exponential, sigma: float = 1.0, domain: Domain = UNIT, entropy: Entropy | None = None
    ) -> None:
        self.kernel = kernel
        self.sigma = positive("sigma", sigma)
        self.box = Box.of(domain)
        self._entropy = SystemEntropy() if entropy is None else entropy
        self._known: Any = SortedDict()  # state -> value; the package has no types

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        """The path's values; the same state gives the same value for ever."""
        x = self.box.to_unit(states)
        normals = self._entropy.normals((x.size,))
        values = [self._value(point, z) for point, z in zip(x.ravel().tolist(), normals.tolist(), strict=True)]
        return np.array([self.sigma * value for value in values]).reshape(x.shape)

    def __len__(self) -> int:
        return len(self._known)

    def _value(self, x: float, normal: float) -> float:
        known = self._known
        if x in known:
            return known[x]
        at = known.bisect_left(x)
        beta = self.kernel.beta
        if not known:
            mean, variance = 0.0, 1.0
        elif 0 < at < len(known):
            (left, g_left), (right, g_right) = known.peekitem(at - 1), known.peekitem(at)
            w_left, w_right, variance = between(beta, x - left, right - x)
            mean = w_left * g_left + w_right * g_right
        else:
            nearest, g = known.peekitem(at - 1 if at else 0)
            weight, variance = beyond(beta, abs(x - nearest))
            mean = weight * g
        known[x] = mean + math.sqrt(variance) * normal
        return known[x]

    def __repr__(self) -> str:
        return f"SortedPath({self.kernel}, sigma={self.sigma:g}, domain={self.box}, points={len(self)})"
