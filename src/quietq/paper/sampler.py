"""The paper's sampler: a sorted list of what was asked before, O(log n) a query (its Proposition 9, repaired)."""

import math
import os
import threading

import numpy as np
from jaxtyping import Float

from quietq.noise.box import Domain, box_for
from quietq.noise.entropy import Entropy, SystemEntropy
from quietq.noise.exact_path import SortedPoints
from quietq.privacy.checks import instance, positive, same_process
from quietq.privacy.relations import Exponential


class SortedPath:
    """One path of the exponential kernel at full floating-point resolution; it grows with use.

    Threads may share it; a copy or a fork would go on differently and show f with two noises, so there are none.

    >>> path = SortedPath(Exponential(1.0))
    >>> bool(path(0.3) == path(0.3))
    True
    """

    def __init__(
        self, kernel: Exponential, sigma: float = 1.0, domain: Domain | None = None, entropy: Entropy | None = None
    ) -> None:
        instance("kernel", kernel, Exponential, "Exponential")
        self.kernel, self.sigma, self.box = kernel, positive("sigma", sigma), box_for(kernel.dimension, domain)
        self._beta = kernel.beta  # of one coordinate alone
        self._entropy = SystemEntropy() if entropy is None else entropy
        self._known: SortedPoints[float] = SortedPoints()
        self._lock = threading.Lock()
        self._process = os.getpid()

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        same_process(self._process, "This SortedPath")
        x = self.box.to_unit(states)
        with self._lock:
            normals = self._entropy.normals((x.size,))
            values = [self._value(point, z) for point, z in zip(x.ravel().tolist(), normals.tolist(), strict=True)]
        return np.array([self.sigma * value for value in values]).reshape(x.shape)

    def __len__(self) -> int:
        return len(self._known)

    def _value(self, x: float, normal: float) -> float:
        value = self._known.get(x)
        # A point that was asked before has its value; a new one is drawn given its neighbours, and remembered.
        if value is None:
            mean, variance = self._conditional(x, self._known.neighbours(x))
            value = mean + math.sqrt(variance) * normal
            self._known.insert(x, value)
        return value

    def _conditional(self, x: float, near: list[tuple[float, float]]) -> tuple[float, float]:
        """Mean and variance at x given everything known: the nearest known points are enough (Markov)."""
        if len(near) == 2:
            (left, of_left), (right, of_right) = near
            w_left, w_right, variance = between(self._beta, x - left, right - x)
            return w_left * of_left + w_right * of_right, variance
        if not near:
            return 0.0, 1.0
        [(point, known)] = near
        weight, variance = beyond(self._beta, abs(x - point))
        return weight * known, variance

    def __reduce__(self) -> str:
        raise TypeError(
            "A SortedPath is one path that grows with use and is not copied or pickled; ask the object itself."
        )

    def __repr__(self) -> str:
        return f"SortedPath({self.kernel}, sigma={self.sigma:g}, domain={self.box}, points={len(self)})"


# The Ornstein-Uhlenbeck process between and beyond known points. The textbook forms with sinh overflow for large beta
# and cancel for close points; these use expm1 throughout, and keep all their digits.


def between(beta: float, gap_left: float, gap_right: float) -> tuple[float, float, float]:
    """Weights of the left and right neighbour's values, and the variance, of a point between them."""
    a, b = beta * gap_left, beta * gap_right
    spread_left, spread_right = -math.expm1(-2 * a), -math.expm1(-2 * b)
    both = spread_left + spread_right - spread_left * spread_right  # 1 - exp(-2(a+b))
    if both == 0:  # three points closer than the smallest number: the same point
        return 0.5, 0.5, 0.0
    weights = math.exp(-a) * spread_right / both, math.exp(-b) * spread_left / both
    return *weights, spread_left * spread_right / both


def beyond(beta: float, gap: float) -> tuple[float, float]:
    """Weight of the nearest known value, and the variance, of a point beyond all known ones."""
    return math.exp(-beta * gap), -math.expm1(-2 * beta * gap)
