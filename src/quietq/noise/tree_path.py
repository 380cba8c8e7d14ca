"""A path that is nowhere stored: every value is computed anew from a key, the same for every replica in any order.

The dyadic construction writes the path at a grid point as a sum over the grid point's ancestors,

    g(x) = sum_node w_node(x) Z_node,    levels + 2 nodes in one dimension, (levels + 2)^d for the product kernel,

where Z_node is a standard normal that a counter-based generator, Threefry, makes from the key and the node's position.
Its authors make no cryptographic claim for it, so no certified release rests on it: tables are drawn from the operating
system instead.
"""

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float, UInt64

from quietq.noise.box import Domain, box_for
from quietq.noise.entropy import derive_key, normal_from_bits, threefry
from quietq.noise.kernels.exponential import Exponential, Product, beyond, midpoint
from quietq.privacy.checks import count, instance, positive
from quietq.privacy.errors import InvalidInput, MissingExtra
from quietq.privacy.words import plural

_CHUNK = 2**16  # normals at a time, to stay in cache


class TreePath:
    """One path of an Exponential or Product kernel, a pure function of its key; a query snaps to the dyadic grid.

    The key is a secret: whoever has it can subtract the noise. One key, one path, one release. Without a key a fresh
    one is drawn from the operating system and never shown.

    >>> path = TreePath(Exponential(beta=4.0), key=bytes(range(16)))
    >>> bool(path(0.3) == TreePath(Exponential(beta=4.0), key=bytes(range(16)))([0.1, 0.3])[1])
    True
    """

    def __init__(
        self,
        kernel: Exponential | Product,
        levels: int = 30,
        sigma: float = 1.0,
        domain: Domain | None = None,
        key: bytes | None = None,
        stream: str = "",
    ) -> None:
        instance("kernel", kernel, Exponential | Product, "Exponential or Product")
        most = 52 if kernel.dimension == 1 else 31
        levels = count("levels", levels)
        if levels > most:
            raise InvalidInput(
                f"levels must be at most {most} in {plural(kernel.dimension, 'dimension')}, not {levels}."
            )
        self.kernel, self.levels = kernel, levels
        self.sigma, self.box = positive("sigma", sigma), box_for(kernel.dimension, domain)
        self.reproducible = key is not None
        self._key = derive_key(key, stream)

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        index = self.index(states)
        shape = index.shape if self.kernel.dimension == 1 else index.shape[:-1]
        rows = index.reshape(-1, self.kernel.dimension)
        step = max(_CHUNK // (self.levels + 2) ** self.kernel.dimension, 1)
        parts = [self._values(rows[i : i + step]) for i in range(0, len(rows), step)]
        return (self.sigma * np.concatenate([np.empty(0), *parts])).reshape(shape)

    def index(self, states: object) -> UInt64[np.ndarray, "..."]:
        """The nearest grid points, counted from 0 to 2^levels."""
        return np.asarray(np.rint(self.box.to_unit(states) * 2.0**self.levels), dtype=np.uint64)

    def compiled(self) -> Callable[[object], Float[np.ndarray, "..."]]:
        """The same path compiled by JAX (extra `train`), for the exponential kernel: for many queries at once."""
        if not isinstance(self.kernel, Exponential):
            raise InvalidInput("Only the one-dimensional path has a compiled form.")
        try:
            from quietq.noise.tree_jax import evaluate
        except ImportError as error:
            raise MissingExtra.of("train", "The compiled path needs JAX") from error
        beta, key, levels = self.kernel.beta, self._key, self.levels
        return lambda states: np.asarray(self.sigma * evaluate(key, self.index(states), beta, levels))

    def _values(self, index: np.ndarray) -> np.ndarray:
        axes = self.kernel.parts if isinstance(self.kernel, Product) else (self.kernel,)
        count_nodes = self.levels + 2
        weight = np.ones((len(index), 1))
        counters = [np.zeros((len(index), 1), np.uint64), np.zeros((len(index), 1), np.uint64)]
        for axis, part in enumerate(axes):
            nodes, weights = expansion(index[:, axis], part.beta, self.levels)
            word, shift = divmod(axis, 2)
            weight = (weight[:, :, None] * weights[:, None, :]).reshape(len(index), -1)
            counters = [np.repeat(counter, count_nodes, axis=1) for counter in counters]
            counters[word] = counters[word] | np.tile(nodes << np.uint64(32 * shift), count_nodes**axis)
        bits, _ = threefry(self._key, (counters[0], counters[1]))
        return np.sum(weight * normal_from_bits(bits), axis=1)

    def __reduce__(self) -> str:
        raise TypeError("A TreePath holds a secret key and is not copied or pickled; build it anew from the key.")

    def __repr__(self) -> str:
        return f"TreePath({self.kernel}, levels={self.levels}, sigma={self.sigma:g}, domain={self.box}, key=hidden)"


def expansion(
    index: np.ndarray, beta: float, levels: int
) -> tuple[UInt64[np.ndarray, "queries nodes"], Float[np.ndarray, "queries nodes"]]:
    """The ancestors of grid points, as grid indices, and the weights of their normals.

    Walks from the leaf up: `left` and `right` are the weights of the ends of the interval that the point lies in.
    """
    levels = count("levels", levels)
    size = np.uint64(2**levels)
    inside = np.minimum(index, size - np.uint64(1))
    left = np.where(index == size, 0.0, 1.0)
    right = 1.0 - left
    nodes = np.empty((len(index), levels + 2), np.uint64)
    weights = np.empty((len(index), levels + 2))
    for level in reversed(range(levels)):
        weight, deviation = midpoint(beta, level)
        half = np.uint64(2 ** (levels - level - 1))
        upper = (inside & half) != 0
        middle = np.where(upper, left, right)
        left = np.where(upper, 0.0, left) + weight * middle
        right = np.where(upper, right, 0.0) + weight * middle
        nodes[:, level + 2] = (inside & ~(np.uint64(2) * half - np.uint64(1))) + half
        weights[:, level + 2] = deviation * middle
    carried, variance = beyond(beta, 1.0)
    nodes[:, 0], nodes[:, 1] = 0, size
    weights[:, 0], weights[:, 1] = left + carried * right, math.sqrt(variance) * right
    return nodes, weights
