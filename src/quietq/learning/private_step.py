"""What a method that noises as it goes shows to an audit: one of its rounds, as a function of the rewards in it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from quietq.learning.method import Transition
from quietq.learning.protect import watched

ROUNDS = 3
"""Rounds of an audited training, where the method has rounds: their number is part of what is audited."""


class PrivateStep(NamedTuple):
    """Networks, states and actions are public, hence fixed; rewards and noise come in."""

    method: Any
    """As it is audited: each round sees the whole batch."""
    steps: int
    """Of a training with all rounds."""
    calls: int
    """Of `update` in it, all copies at once, before `finish`."""
    one_round: Callable[[Transition, Any], Any]
    """From the batch and the noise, through `protect` once. It must not be compiled yet."""
    public: Callable[[Any], Any]
    """What may be seen of a state."""
    rounds: int = ROUNDS
    """How many of them share the budget."""
    centre: Float[Array, " rewards"] | float = 0.0
    """Rewards around which the step is most sensitive."""


def update_and_finish(method: Any, state: Any) -> Callable[[Transition, Any], Any]:
    """A round that ends with the training. What untaken branches of `update` would noise is not looked at."""

    def one_round(seen: Transition, noise: Any) -> Any:
        with watched():
            after = method.update(state, seen, jnp.array(0), jax.random.key(0), noise)
        return method.finish(after, noise)

    return one_round


def hide_replay(state: Any) -> Any:
    return state._replace(replay=None)
