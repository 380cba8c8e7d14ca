"""The paper's sampler: a sorted list of what was asked before, O(log n) a query (its Proposition 9, repaired)."""

import math
import os
import threading
from array import array
from bisect import bisect_left
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from quietq.noise.box import Domain, box_for
from quietq.noise.entropy import Entropy, SystemEntropy
from quietq.noise.kernels.exponential import Exponential, between, beyond
from quietq.privacy.checks import instance, positive, same_process

_FULL = 1024

Known = tuple[float, float]
"""A point and its value."""


@dataclass
class SortedPoints:
    """A sorted map from numbers to numbers, in buckets, that can say between which two a new one falls."""

    _keys: list[array] = field(default_factory=lambda: [array("d")])
    _values: list[array] = field(default_factory=lambda: [array("d")])
    _last: list[float] = field(default_factory=lambda: [float("-inf")])  # the largest key of each bucket

    def find(self, x: float) -> tuple[tuple[int, int], float | None, Known | None, Known | None]:
        """Where x belongs, its value if it is known, and else its left and right neighbours if there are any."""
        bucket = min(bisect_left(self._last, x), len(self._last) - 1)
        keys, values = self._keys[bucket], self._values[bucket]
        at = bisect_left(keys, x)
        right = (keys[at], values[at]) if at < len(keys) else None
        if right is not None and right[0] == x:
            return (bucket, at), right[1], None, None
        if at:
            return (bucket, at), None, (keys[at - 1], values[at - 1]), right
        left = (self._keys[bucket - 1][-1], self._values[bucket - 1][-1]) if bucket else None
        return (bucket, at), None, left, right

    def insert(self, place: tuple[int, int], x: float, value: float) -> None:
        """Puts a new point at the place that `find` gave for it."""
        bucket, at = place
        keys, values = self._keys[bucket], self._values[bucket]
        keys.insert(at, x)
        values.insert(at, value)
        if len(keys) > _FULL:
            half = _FULL // 2
            self._keys[bucket : bucket + 1] = [keys[:half], keys[half:]]
            self._values[bucket : bucket + 1] = [values[:half], values[half:]]
            self._last.insert(bucket, keys[half - 1])
            bucket += 1
        self._last[bucket] = self._keys[bucket][-1]

    def __len__(self) -> int:
        return sum(len(keys) for keys in self._keys)


class SortedPath:
    """One path of the exponential kernel at full floating-point resolution; it grows with use.

    Threads may share it; a copy or a fork would go on differently and show f with two noises, so there are none.

    >>> path = SortedPath(Exponential(beta=1.0))
    >>> bool(path(0.3) == path(0.3))
    True
    """

    def __init__(
        self, kernel: Exponential, sigma: float = 1.0, domain: Domain | None = None, entropy: Entropy | None = None
    ) -> None:
        instance("kernel", kernel, Exponential, "Exponential")
        self.kernel, self.sigma, self.box = kernel, positive("sigma", sigma), box_for(kernel.dimension, domain)
        self._entropy = SystemEntropy() if entropy is None else entropy
        self._known = SortedPoints()
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
        place, value, left, right = self._known.find(x)
        if value is None:
            mean, variance = self._conditional(x, left, right)
            value = mean + math.sqrt(variance) * normal
            self._known.insert(place, x, value)
        return value

    def _conditional(self, x: float, left: Known | None, right: Known | None) -> tuple[float, float]:
        """Mean and variance at x given everything known: the nearest known points are enough (Markov)."""
        beta = self.kernel.beta
        if left is not None and right is not None:
            w_left, w_right, variance = between(beta, x - left[0], right[0] - x)
            return w_left * left[1] + w_right * right[1], variance
        nearest = right if left is None else left
        if nearest is None:
            return 0.0, 1.0
        weight, variance = beyond(beta, abs(x - nearest[0]))
        return weight * nearest[1], variance

    def __reduce__(self) -> str:
        raise TypeError(
            "A SortedPath is one path that grows with use and is not copied or pickled; ask the object itself."
        )

    def __repr__(self) -> str:
        return f"SortedPath({self.kernel}, sigma={self.sigma:g}, domain={self.box}, points={len(self)})"
