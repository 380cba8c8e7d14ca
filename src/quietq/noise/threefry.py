"""Random bits that a key and a counter determine: one definition for NumPy and for JAX.

Threefry-2x64 with 20 rounds (Salmon et al., SC 2011): a keyed bijection of 128-bit counters under a 128-bit key, a
relative of the Threefish cipher. Its authors make no cryptographic claim for it, so no certified
release rests on it: tables are drawn from the operating system instead.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

_ROTATIONS = (16, 42, 12, 31, 16, 32, 24, 21)
_PARITY = np.uint64(0x1BD11BDAA9FC1A22)

Pair = tuple[Any, Any]


def threefry(key: Pair, counter: Pair, settle: Callable[[Pair], Pair] = lambda pair: pair) -> Pair:
    """128 random bits for each 128-bit counter, as two uint64 arrays.

    `settle` is applied after every round: JAX passes an optimisation barrier, because XLA would otherwise recompute
    each round for each of its two uses, 2^20 times in all.
    """
    schedule = (key[0], key[1], key[0] ^ key[1] ^ _PARITY)
    x, y = counter[0] + schedule[0], counter[1] + schedule[1]
    for i in range(20):
        turn = _ROTATIONS[i % 8]
        x = x + y
        y = ((y << np.uint64(turn)) | (y >> np.uint64(64 - turn))) ^ x
        if i % 4 == 3:
            injection = i // 4 + 1
            x = x + schedule[injection % 3]
            y = y + (schedule[(injection + 1) % 3] + np.uint64(injection))
        x, y = settle((x, y))
    return x, y
