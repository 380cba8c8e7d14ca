"""A sorted map that finds the neighbours of a new point in O(log n), for paths that are asked point by point."""

from array import array
from bisect import bisect_left
from dataclasses import dataclass, field

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
