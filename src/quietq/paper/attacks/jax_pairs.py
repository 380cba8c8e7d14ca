"""A pair of neighbouring rewards for compiled code."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from quietq.audit.neighbours import Pair
from quietq.paper.agents.jax_rewards import JaxReward


class PairReward(JaxReward):
    """r or r' for compiled code; which of them is a leaf, so that one program runs both."""

    side: Array  # 0 for r, 1 for r'
    pair: Pair = eqx.field(static=True)
    by_action: bool = eqx.field(static=True)

    def __init__(self, pair: Pair, side: Any) -> None:
        self.side, self.pair, self.by_action = jnp.asarray(side, jnp.float32), pair, False

    def at(self, state: Array) -> Array:
        return self.pair.world.reward(state, jnp) + self.side * self.pair.moved(state, jnp)
