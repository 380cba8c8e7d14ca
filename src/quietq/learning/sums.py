"""Sums in float32 whose errors do not grow with the number of terms, so that any number of copies may run at once.

Theorem. Terms are added in pairs, then the pairs, and so on; what each addition loses is found exactly (Knuth's TwoSum)
and added in the same way. Of n terms, additions lose at most log2(n) u of the sum of their sizes, u = 2^-24, and the
sum of what was lost errs by 2 log2(n) u of that; so the result errs by u of itself and 2 (log2(n) u)^2 of the sum of
sizes: for up to 2^24 terms by less than 2 u of the sum of sizes. A plain sum, whose order no compiler promises, may err
by n u of it.
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float


def total(terms: Float[Array, "terms *shape"]) -> Float[Array, "*shape"]:
    """The sum along the first axis.

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
