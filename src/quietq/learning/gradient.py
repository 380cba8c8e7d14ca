"""`gradient`: noise on clipped gradients, after Abadi et al. (2016), for a relation in which every reward may differ.

Theorem. In round j, given what was released before, each transition's gradient is a number times the public direction
grad Q_t. The number is the temporal difference, or Huber's derivative of it, which changes by no more than the reward,
and it is clipped so that the gradient's length is C at most. So neighbours' mean gradients differ by (1/B) sum_t c_t
grad Q_t with |c_t| <= b_t = min(radius, 2C/|grad Q_t|), and entry by entry by no more than with |grad Q_t|: by at
most S_j = |(1/B) sum_t b_t |grad Q_t||, which is public. N(0, (S_j/mu_j)^2 I) on it is mu_j-GDP, and N rounds with
mu_j = mu/sqrt(N) compose to mu (docs/theory.md, section 4). There is no amplification by subsampling: replayed rewards
pay again every time.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax_privacy import clipped_grad
from jaxtyping import Array, PRNGKeyArray

from quietq.learning import replay as memory
from quietq.learning.deep_q import DeepQ, DeepQState, Loss, chosen
from quietq.learning.in_loop_method import ROUNDS, Draw, InLoopMethod, PrivateStep, hide_replay
from quietq.learning.method import Moment, Noise, Spaces, Transition
from quietq.learning.networks import Network, NetworkName
from quietq.learning.options import option, share
from quietq.learning.protect import protect, total
from quietq.privacy import Assumption, InvalidInput
from quietq.privacy.checks import count, positive
from quietq.privacy.norms import UNIT_ROUNDING

STEEPEST = 1e15  # gradients of this length and more are too large for float32 to bound
MOST_CLIP = 1e9
"""A squared length overflows beyond 1.8e19, and the gradient then counts as 0: it moves by the clip at the most. For a
gradient of that length rounding alone is allowed 8 * 2^-24 * 1.8e19 = 8.8e12, which is far more than this."""
FROM_NOISED = Assumption("Networks, targets and actions come from noised parameters only.", True)


@dataclass(frozen=True, kw_only=True)
class NoisyDescent(DeepQ, InLoopMethod):
    """Deep Q-learning whose gradients are noised round by round, each by its own public sensitivity."""

    norm_kind: ClassVar[str]
    network: NetworkName = option(
        "splines", "Value network: mlp, or linear weights on splines, fourier or random features."
    )
    optimiser: Any = option("sgd", "An optimiser of Optax by name (or, from Python, any Optax optimiser).")
    learning_rate: float = option(1.0, "Step size, for an optimiser given by name.", positive)
    explore_last: float = option(1.0, "Share of random actions in the long run.", share)

    def noise_shape(self, spaces: Spaces, steps: int) -> tuple[int, ...]:
        return (self.rounds(steps), self.parameters(spaces))

    def sensitivity(self, spaces: Spaces, steps: int) -> float:
        return np.sqrt(self.rounds(steps))

    def norm(self, spaces: Spaces, steps: int, noise: Draw) -> dict[str, object]:
        """Each gradient step's own sensitivity, as it is computed for rewards that differ by the radius handed on."""
        return {"kind": self.norm_kind, "rounds": self.rounds(steps), "radius": float(noise.radius)}

    def slopes(self, network: Network, batch: Transition) -> Network:
        """The gradient of each transition's value by all parameters, one row per transition in each leaf."""
        return jax.vmap(eqx.filter_grad(taken_value), in_axes=(None, 0, 0))(network, batch.state, batch.action)


@dataclass(frozen=True, kw_only=True)
class GradientNoise(NoisyDescent):
    """Deep Q-learning whose gradients are clipped one by one and noised together."""

    name: ClassVar[str] = "gradient"
    norm_kind: ClassVar[str] = "clipped-gradients"
    features: int = option(6, "Knots or frequencies a coordinate, or random units, of a linear network.", count)
    gamma: float = option(0.9, "Discount of the future.", share)
    loss: Loss = option("squared", "Loss of the temporal difference: huber or squared.")
    clip: float = option(1.0, "Length that each transition's gradient is clipped to.", positive)
    batch: int = option(2000, "Transitions a gradient step.", count)
    start: int = option(1000, "Transitions to be seen before the first gradient step.", count)
    train_every: int = option(100, "Steps of the environment between gradient steps; each is a release.", count)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.clip > MOST_CLIP:
            raise InvalidInput(f"clip must be at most {MOST_CLIP:g}, not {self.clip!r}: scale the rewards.")

    def rounds(self, steps: int) -> int:
        return max((steps - self.first_step) // self.train_every + 1, 0)

    def update(self, state: DeepQState, seen: Transition, now: Moment) -> DeepQState:
        steps, noise = now.step + 1, now.noise
        buffer = memory.store(state.replay, seen, now.step, self.bootstrap_truncated)
        turn = steps // self.train_every - self.first_step // self.train_every

        def gradient(network: Network) -> Any:
            batch = noise.clip(memory.sample(buffer, self.batch, seen.action.shape[0], now))
            return self.noised(network, state.target, batch, noise, turn)

        due = steps % self.train_every == 0
        ready = due & (turn >= 0) & (turn < noise.normals.shape[0])  # without normals of its own, no round
        return self.descend(state, buffer, gradient, ready, steps % self.target_every == 0)

    def noised(self, network: Network, target: Network, batch: Transition, noise: Draw, turn: Array) -> Any:
        goals = self.goals(target, batch)
        following = jnp.abs(jax.vmap(target)(batch.next_state)).max(axis=1)

        def loss(network: Network, goal: Array, state: Array, action: Array) -> Array:
            return self.losses(taken_value(network, state, action)[None] - goal[None])[0]

        together = max(n for n in range(1, math.isqrt(self.batch) + 1) if self.batch % n == 0)
        clipped = clipped_grad(
            loss, l2_clip_norm=self.clip, normalize_by=self.batch, batch_argnums=(1, 2, 3), keep_batch_dim=False,
            microbatch_size=together, nan_safe=False,
        )(network, goals, batch.state, batch.action)  # fmt: skip
        slopes = self.slopes(network, batch)
        leaves = [jnp.abs(leaf.reshape(self.batch, -1)) for leaf in jax.tree.leaves(slopes)]
        lengths = jnp.sqrt(sum((leaf**2).sum(axis=1) for leaf in leaves))
        # What rounding can add: to each temporal difference, and to the sum, which is one of sums of `together` terms.
        sizes = jnp.abs(jax.vmap(taken_value, in_axes=(None, 0, 0))(network, batch.state, batch.action)) + following
        moves = noise.radius + 8 * UNIT_ROUNDING * (noise.largest + sizes)
        bounds = jnp.minimum(moves, 2 * self.clip / jnp.maximum(lengths, 1e-12))
        rounding = 2 * UNIT_ROUNDING * (together + self.batch // together + 8) * self.clip
        squares = sum(((total(bounds[:, None] * leaf) / self.batch) ** 2).sum() for leaf in leaves)
        # Lengths, of gradients and of this, are roots of sums over all parameters.
        slack = 1 + 4 * UNIT_ROUNDING * sum(leaf.shape[1] for leaf in leaves)
        # Slopes are public. Where they are too large to compute with, the scale is no number: nothing is released.
        sensitivity = jnp.where((lengths < STEEPEST).all(), slack * (jnp.sqrt(squares) + rounding), jnp.nan)
        flat, build = ravel_pytree(eqx.filter(clipped, eqx.is_array))
        return build(protect(flat, noise.normals[turn], noise.scale * sensitivity))

    def conditions(self, steps: int) -> tuple[Assumption, ...]:
        return (Assumption(f"Each transition's gradient was clipped to length {self.clip:g}.", True), FROM_NOISED)

    def private_step(self, spaces: Spaces, batch: Transition, key: PRNGKeyArray) -> PrivateStep:
        """Around rewards that are no surprise: from there, clipping cuts off the least of what rewards move."""
        number = len(batch.action)
        method = replace(self, batch=number, start=1, train_every=1, replay=ROUNDS * number)
        network = method.init(spaces, key).network

        def one_round(seen: Transition, noise: Noise) -> Any:
            return method.noised(network, network, seen, noise, jnp.array(1))

        centre = chosen(jax.vmap(network)(batch.state), batch.action) - method.goals(network, batch)
        return PrivateStep(method, ROUNDS, ROUNDS, one_round, hide_replay, centre=centre)


def taken_value(network: Network, state: Array, action: Array) -> Array:
    return chosen(network(state)[None], action[None])[0]
