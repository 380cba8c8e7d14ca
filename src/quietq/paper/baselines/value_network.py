"""`value-network`: noise on the reward part of each update, for any network and optimiser: Algorithm 1 repaired.

Theorem. In round j, network, target and features come from released parameters, so only v = (1/B) sum_t r_t grad
Q(s_t, a_t) is private. With G the Gram matrix of these B gradients, neighbours' v differ by at most S_j = radius
min(sqrt(1'|G|1)/B, sqrt(lambda_max(G)/B)), which is public (and exact where G is non-negative). N(0, (S_j/mu_j)^2 I) on
v is mu_j-GDP, and N rounds with mu_j = mu/sqrt(N) compose to mu. The optimiser, the rest of the gradient and the target
network, a snapshot, are post-processing (docs/theory.md#value). Each round has B transitions of its own: replayed
rewards would pay again.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from quietq.paper.agents import replay as memory
from quietq.paper.agents.deep_q import DeepQState, Loss, chosen
from quietq.paper.agents.hyper_parameters import option, share
from quietq.paper.agents.in_loop_method import ROUNDS, NoiseDraw, PrivateStep, hide_replay
from quietq.paper.agents.method import EnvironmentSpaces, Moment, Noise, Transition
from quietq.paper.agents.networks import Network, NetworkName
from quietq.paper.agents.protect import protect, total
from quietq.paper.baselines.abadi import STEEPEST, NoisyDescent
from quietq.privacy import Assumption, Code, InvalidInput
from quietq.privacy.checks import count
from quietq.privacy.norms import UNIT_ROUNDING


@dataclass(frozen=True, kw_only=True)
class NetworkValueNoise(NoisyDescent):
    """Round by round, the reward part of the gradient is noised, and the parameters that follow are the state."""

    name: ClassVar[str] = "value-network"
    network: NetworkName = option("splines", "Value network: mlp, or linear weights on splines.")
    features: int = option(7, "Knots a coordinate of splines.", count)
    gamma: float = option(0.5, "Discount of the future.", share)
    batch: int = option(250, "Transitions a round; each is used in one round only, and each round is a release.", count)
    target_every: int = option(
        1, "Rounds between copies of the network to the target network; 1 does without one.", count
    )
    loss: Loss = field(default="squared", init=False)
    replay: int = field(default=1, init=False)
    start: int = field(default=1, init=False)
    train_every: int = field(default=1, init=False)

    def rounds(self, steps: int) -> int:
        return steps // self.batch

    def check(self, spaces: EnvironmentSpaces, steps: int) -> None:
        super().check(spaces, steps)
        if self.rounds(steps) == 0:
            raise InvalidInput(f"steps must be at least one batch of {self.batch}, not {steps}.")

    def init(self, spaces: EnvironmentSpaces, key: PRNGKeyArray, copies: int = 1) -> DeepQState:
        state = super().init(spaces, key, copies)
        return state._replace(replay=memory.empty(self.batch, spaces.box.dimension, copies))

    def update(self, state: DeepQState, seen: Transition, now: Moment) -> DeepQState:
        steps, noise = now.step + 1, now.noise
        buffer = memory.store(state.replay, seen, now.step, self.bootstrap_truncated)
        calls = buffer.shape[0] // seen.action.shape[0]
        turn = steps // calls - 1

        def gradient(network: Network) -> Network:
            batch = noise.clip(memory.rows(buffer, jnp.arange(buffer.shape[0])))
            return self.noised(network, state.target, batch, turn, noise)

        ready = (steps % calls == 0) & (turn < noise.normals.shape[0])  # without normals of its own, no round
        return self.descend(state, buffer, gradient, ready, ready & ((turn + 1) % self.target_every == 0))

    def noised(self, network: Network, target: Network, batch: Transition, turn: Array, noise: NoiseDraw) -> Network:
        """Returns the gradient of the squared loss, without one through the target; its reward part has noise."""
        _, build = ravel_pytree(eqx.filter(network, eqx.is_array))
        slopes = jax.vmap(lambda one: ravel_pytree(eqx.filter(one, eqx.is_array))[0])(self.slopes(network, batch))
        steep = ~(jnp.abs(slopes) < STEEPEST).all()  # then nothing is released: see protect
        # Each entry is a sum (2 roundings) of products (1), divided (1), with rewards of size `largest` at the most;
        # twice that is allowed for, for each of two neighbours.
        rounding = 16 * UNIT_ROUNDING * noise.largest * jnp.linalg.norm(total(jnp.abs(slopes)) / len(slopes))
        sensitivity = noise.radius * unit_sensitivity(slopes) + rounding
        scale = jnp.where(steep, jnp.nan, noise.scale * sensitivity)
        mean = total(batch.reward[:, None] * slopes) / len(slopes)
        private = protect(mean, noise.normals[turn], scale)
        following = self.goals(target, batch._replace(reward=jnp.zeros_like(batch.reward)))
        values = chosen(jax.vmap(network)(batch.state), batch.action)
        return build((values - following) @ slopes / len(slopes) - private)

    def conditions(self, steps: int) -> tuple[Assumption, ...]:
        return Code.USED_IN_ONE_ROUND(), Code.FROM_NOISED()

    def private_step(self, spaces: EnvironmentSpaces, batch: Transition, key: PRNGKeyArray) -> PrivateStep:
        number = len(batch.action)
        method = replace(self, batch=number)
        network = method.init(spaces, key, number).network

        def one_round(seen: Transition, noise: Noise) -> Network:
            return method.noised(network, network, seen, jnp.array(1), noise)

        return PrivateStep(method, ROUNDS * number, ROUNDS, one_round, hide_replay)


def unit_sensitivity(slopes: Float[Array, "batch parameters"]) -> Float[Array, ""]:
    """The most that the mean of r_t times the t-th row moves, in the Euclidean norm, when each r_t moves by at most 1.

    lambda_max is bounded from above, by the Frobenius norm of a power of the Gram matrix (power iteration would come
    from below): for its m-th power, |G^m|^(1/m) is at most rank^(1/2m) too large.

    >>> float(unit_sensitivity(jnp.eye(4)).round(3))
    0.5
    """
    batch, parameters = slopes.shape
    unit = jnp.abs(slopes).max()
    slopes = slopes / jnp.where(unit > 0, unit, 1.0)  # so that squares neither overflow nor vanish
    gram = slopes @ slopes.T
    # A product of n terms errs by n 2^-24 of their sizes: entries of the Gram matrix by so much of both lengths, and a
    # square of a matrix by so much of its own square in Frobenius' norm, which is at most root n times the product's.
    lengths = jnp.sqrt(total((slopes**2).T))
    entries = total(total(jnp.abs(gram))) + 2 * parameters * UNIT_ROUNDING * total(lengths) ** 2
    largest, power = jnp.ones(()), gram
    for squared in range(4):
        size = jnp.sqrt(total(total(power**2)))
        largest = largest * size ** (1 / 2**squared)
        power = power / jnp.where(size > 0, size, 1.0)
        power = power @ power
    largest = largest + 2 * parameters * UNIT_ROUNDING * total(lengths**2)
    # The first term is for rounding errors of a few operations in single precision.
    slack = 1.0001 + 2 * batch**1.5 * UNIT_ROUNDING
    return slack * unit * jnp.sqrt(jnp.minimum(entries / batch, largest) / batch)
