"""Noise added inside a compiled loop: the normals come from outside, the scale is public.

Floating-point noise leaks through low-order bits, so noise that protects is added in whole numbers. Theorem. Let the
value be clipped to 4096 times the noise's size (a projection, so no two neighbours get farther apart) and then rounded
to whole multiples k of a step, the public size times 2^-18; let n be a normal of deviation 2^18 `room`, in real
numbers, rounded. Then k + n is round(k + 2^18 room z), because k is whole: exact Gaussian noise on k, and all that
follows is post-processing. Rounding moves neighbours' k apart by at most a step each, which `room` covers. Integers of
32 bits add exactly, and where they overflow the result is the remainder of k + n, a function of it.

Simulated noise, in float32, is added as it is, and the sum is rounded to between 1/64 and 1/128 of its size.

Sums of private numbers (`total`) err by no more than the noise covers, however many terms they have.

Nobody looks on, unless within `watched`: the audit measures there what was about to be noised, against its noise.

Proof: docs/theory.md#whole-numbers.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

SLACK = 1 + 1e-5
"""Sensitivities are summed in float32: this much more noise covers their rounding errors many times over."""
LARGEST = 2.0**12
STEPS = 18
"""The size of the noise is 2^18 steps: values of 4096 times that are whole numbers of 31 bits."""
SMALLEST = 1e-20  # scales from here to its inverse are used


class Protected(NamedTuple):
    """One call of `protect`, as it was made: while compiled code is traced, these are tracers of that trace."""

    value: Float[Array, "..."]  # THE SECRET, before noise
    normals: Float[Array, "..."] | Int[Array, "..."]
    scale: Float[Array | np.ndarray, ""] | float


# A context variable: a thread that was started by `threading` is not looked at, but what copies its context (as tasks
# and `asyncio.to_thread` do) is.
_watcher: ContextVar[Callable[[Protected], Array] | None] = ContextVar("watcher", default=None)


@contextmanager
def watched(instead: Callable[[Protected], Array] | None = None) -> Iterator[list[Protected]]:
    """Every call of `protect` in here is noted in the list that this gives; what it returns is as ever.

    For the audit's grey box, which compares how far rewards move a value with the noise that goes on it, without having
    to replace any code of what it audits. A program that was compiled before calls nothing, so nothing is noted. With
    `instead`, what it makes of the call is noised in place of the value; a program compiled in here keeps to that.

    >>> with watched() as calls:
    ...     _ = protect(jnp.zeros(2), jnp.ones(2), 0.5)
    >>> [call.scale for call in calls]
    [0.5]
    >>> with watched(instead=lambda call: 0 * call.value):
    ...     print(protect(jnp.full(2, 7.0), jnp.ones(2), 0.5))
    [0.5 0.5]
    """
    calls: list[Protected] = []

    def note(call: Protected) -> Array:
        calls.append(call)
        return call.value if instead is None else instead(call)

    token = _watcher.set(note)
    try:
        yield calls
    finally:
        _watcher.reset(token)


def protect(
    value: Float[Array, "*shape"],
    normals: Float[Array, "*shape"] | Int[Array, "*shape"],
    scale: Float[Array | np.ndarray, ""] | float,
) -> Float[Array, "*shape"]:
    """value + scale * normals, clipped and rounded; whole normals are in steps of 2^-18.

    It fails closed: where the scale is no ordinary number (0, not finite, or out of float32's easy range) the result is
    0, and a value that is not finite counts as 0.
    """
    if (watcher := _watcher.get()) is not None:
        value = watcher(Protected(value, normals, scale))
    scale = jnp.asarray(scale, jnp.float32) * SLACK
    usable = (scale >= SMALLEST) & (scale <= 1 / SMALLEST)  # False for NaN
    safe = jnp.where(usable, scale, 1.0)
    value = jnp.where(jnp.isfinite(value), value, 0.0)
    value = jnp.clip(value, -LARGEST * safe, LARGEST * safe)
    if jnp.issubdtype(normals.dtype, jnp.integer):
        step = safe * 2.0**-STEPS  # a power of two: exact
        return jnp.where(usable, (jnp.round(value / step).astype(jnp.int32) + normals).astype(jnp.float32) * step, 0.0)
    # Six bits finer than the noise.
    step = jnp.ldexp(jnp.float32(1), jnp.frexp(safe)[1] - 1 - 6)  # exp2 is not exact, even for whole numbers
    return jnp.where(usable, jnp.round((value + safe * normals) / step) * step, 0.0)


def room(numbers: int, mu: float) -> float:
    """Returns how much larger noise of this number of values must be, because what it is added to was rounded before.

    Theorem. A round of D numbers whose noise has size s, with rewards worth mu_j of it, is worth
    (mu_j + 2^-18 sqrt(D))/room after rounding: both neighbours' numbers move by half a step, 2^-18 s, at the most. All
    rounds together are worth the root of the sum of squares, at most (mu + 2^-18 sqrt(numbers))/room (Minkowski).
    """
    return 1 + SLACK * math.sqrt(numbers) * 2.0**-STEPS / mu


def total(terms: Float[Array, "terms *shape"]) -> Float[Array, "*shape"]:
    """The sum along the first axis, whose error in float32 does not grow with the number of terms.

    Theorem. Terms are added in pairs, then the pairs, and so on; what each addition loses is found exactly (Knuth's
    TwoSum) and added in the same way. Of n terms, additions lose at most log2(n) u of the sum of their sizes, u =
    2^-24, and the sum of what was lost errs by 2 log2(n) u of that; so the result errs by u of itself and 2 (log2(n)
    u)^2 of the sum of sizes: for up to 2^24 terms by less than 2 u of the sum of sizes. A plain sum, whose order no
    compiler promises, may err by n u of it.

    >>> float(total(jnp.full(2**14, 0.1))) == float(jnp.float32(0.1)) * 2**14
    True
    """
    lost = jnp.zeros_like(terms)
    while len(terms) > 1:
        if len(terms) % 2:
            terms, lost = (jnp.concatenate([each, jnp.zeros_like(each[:1])]) for each in (terms, lost))
        half = len(terms) // 2
        left, right = terms[:half], terms[half:]
        # The barriers keep the compiler from seeing that nothing would be lost in exact arithmetic.
        terms = lax.optimization_barrier(left + right)
        added = lax.optimization_barrier(terms - left)
        kept = lax.optimization_barrier(terms - added)
        lost = lost[:half] + lost[half:] + (left - kept) + (right - added)
    return terms[0] + lost[0]
