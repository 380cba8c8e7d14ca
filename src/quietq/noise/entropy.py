"""Where random numbers come from: the operating system, or a seed, for simulation only.

Noise that protects is exact (`noise.exact_gaussian`, `noise.exact`); methods that noise as they go take it in whole
numbers. Normals in float64 are for what is not certified.
"""

import math
import os
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from quietq.noise.exact_gaussian import add_exactly, as_they_are
from quietq.privacy.checks import count


@runtime_checkable
class Entropy(Protocol):
    """A source of independent standard normals."""

    @property
    def reproducible(self) -> bool:
        """Whether somebody could draw the same numbers again; then they protect nothing."""
        ...

    def normals(self, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]: ...

    def uniforms(self, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]: ...


class SystemEntropy:
    """Random numbers from the operating system; every call is fresh."""

    reproducible = False

    def whole_normals(self, shape: tuple[int, ...], deviation: float) -> Int[np.ndarray, "..."]:
        """Exact noise: of its law in real numbers, rounded to whole numbers and not before."""
        return add_exactly(as_they_are(np.zeros(shape), 1.0), deviation, 1.0).astype(np.int64)

    def normals(self, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        """Draws in float64, by NumPy's generator with a fresh seed from the operating system."""
        return np.random.Generator(np.random.Philox(int.from_bytes(os.urandom(16)))).standard_normal(shape)

    def uniforms(self, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        words = np.frombuffer(os.urandom(8 * math.prod(shape)), dtype=np.uint64)
        return (((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52).reshape(shape)


class SeededEntropy:
    """Normals that a seed determines: for simulation and tests, never for a release."""

    reproducible = True

    def __init__(self, seed: int) -> None:
        self.restart(seed)

    def restart(self, seed: int) -> None:
        """Begins the stream of another seed."""
        self._generator = np.random.Generator(np.random.Philox(count("seed", seed, least=0, most=None)))

    def normals(self, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        return self._generator.standard_normal(shape)

    def uniforms(self, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        return 1 - self._generator.random(shape) * (1 - 2.0**-53)
