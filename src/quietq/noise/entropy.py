"""Where random numbers come from: the operating system, or a seed, for simulation only.

Noise that protects is exact (`noise.exact_sum`, `noise.exact`); methods that noise as they go take it in whole numbers.
Normals in float64 are for what is not certified: 64 bits of the kernel's cryptographic generator each, by inverting the
normal distribution. The sign has a bit of its own and the tail probability 52 bits; one draw in 4096, beyond 3.67
sigma, gets 64 bits more. So values reach 12.5 sigma on either side.
"""

import hashlib
import math
import os
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtri

from quietq.noise.exact import whole_in_cube
from quietq.noise.exact_sum import add_exactly
from quietq.noise.whitening import as_they_are
from quietq.privacy.checks import count
from quietq.privacy.errors import InvalidInput

KEY_BYTES = 16
_CHUNK = 2**15  # stays in cache between the passes
_FAR = np.uint64(2**52)  # below, the tail probability is less than 2^-13
_ROTATIONS = (16, 42, 12, 31, 16, 32, 24, 21)
_PARITY = np.uint64(0x1BD11BDAA9FC1A22)

Pair = tuple[Any, Any]


@runtime_checkable
class Entropy(Protocol):
    """A source of independent standard normals."""

    @property
    def reproducible(self) -> bool:
        """Whether somebody could draw the same numbers again; then they protect nothing."""
        ...

    def normals(self, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]: ...

    def uniforms(self, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]: ...


@runtime_checkable
class ExactEntropy(Protocol):
    """A source of noise that is exact: of its law in real numbers, rounded to whole numbers and not before."""

    def whole_normals(self, shape: tuple[int, ...], deviation: float) -> Int[np.ndarray, "..."]: ...

    def whole_cube(self, shape: tuple[int, ...], scale: float) -> Int[np.ndarray, "..."]:
        """Of density exp(-max|z|/scale), all numbers together."""
        ...


class SystemEntropy:
    """Normals from the operating system's cryptographic generator; every call is fresh."""

    reproducible = False

    def whole_normals(self, shape: tuple[int, ...], deviation: float) -> Int[np.ndarray, "..."]:
        return add_exactly(as_they_are(np.zeros(shape), 1.0), deviation, 1.0).astype(np.int64)

    def whole_cube(self, shape: tuple[int, ...], scale: float) -> Int[np.ndarray, "..."]:
        return whole_in_cube(math.prod(shape), scale).reshape(shape)

    def normals(self, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        size = math.prod(shape)
        out = np.empty(size)
        for start in range(0, size, _CHUNK):
            part = out[start : start + _CHUNK]
            bits = _words(part.size)
            part[:] = normal_from_bits(bits)
            far = bits < _FAR
            if n := np.count_nonzero(far):
                part[far] = normal_from_bits(bits[far], _words(int(n)))
        return out.reshape(shape)

    def uniforms(self, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        return (((_words(math.prod(shape)) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52).reshape(shape)


class SeededEntropy:
    """Normals that a seed determines: for simulation and tests, never for a release."""

    reproducible = True

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Generator(np.random.Philox(count("seed", seed, least=0, most=None)))

    def normals(self, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        return self._generator.standard_normal(shape)

    def uniforms(self, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        return 1 - self._generator.random(shape) * (1 - 2.0**-53)


def _words(n: int) -> np.ndarray:
    return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)


def normal_from_bits(bits: Any, more: np.ndarray | None = None, inverse: Callable[..., Any] = ndtri) -> Any:
    """One standard normal from each uint64: the lowest bit is the sign, the highest 52 the tail probability.

    `more` holds the next 64 bits of the tail probability; without them it is taken in the middle of where they lead.
    `inverse` is that of the normal distribution, by SciPy or by JAX.
    """
    rest = 0.5 if more is None else (more.astype(np.float64) + 0.5) * 2.0**-64
    tail = ((bits >> np.uint64(12)).astype(np.float64) + rest) * 2.0**-53
    return (1.0 - 2.0 * (bits & np.uint64(1)).astype(np.float64)) * inverse(tail)


def derive_key(key: bytes | None, stream: str) -> tuple[np.uint64, np.uint64]:
    """128 bits for one path from a secret key (or from the operating system), a different path for every `stream`."""
    if key is None:
        key = os.urandom(2 * KEY_BYTES)
    if not isinstance(key, bytes) or len(key) < KEY_BYTES:
        raise InvalidInput(f"key must be bytes, at least {KEY_BYTES} of them, from a cryptographic source.")
    if len(key) > 64:
        raise InvalidInput(f"key must be at most 64 bytes, not {len(key)}.")
    digest = hashlib.blake2b(stream.encode(), key=key, digest_size=KEY_BYTES, person=b"quietq-path").digest()
    low, high = np.frombuffer(digest, dtype="<u8")
    return np.uint64(low), np.uint64(high)


def threefry(key: Pair, counter: Pair, settle: Callable[[Pair], Pair] = lambda pair: pair) -> Pair:
    """128 random bits for each 128-bit counter, as two uint64 arrays, in NumPy and in JAX.

    Threefry-2x64 with 20 rounds (Salmon et al., SC 2011): a keyed bijection of 128-bit counters under a 128-bit key.
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
