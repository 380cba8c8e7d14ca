"""`gradient`: noise on gradients, after Abadi et al. (2016), for a relation in which every reward may differ.

Theorem. In round j, given what was released before, each transition's gradient is a number times the public
direction grad Q_t. The number is the temporal difference, or Huber's derivative of it, which changes by no more than
the reward, and it is clipped so that the gradient's length is C at most. So neighbours' mean gradients differ by
(1/B) sum_t c_t grad Q_t with |c_t| <= b_t = min(radius, 2C/|grad Q_t|), and entry by entry by no more than with
|grad Q_t|: by at most S_j = |(1/B) sum_t b_t |grad Q_t||, which is public. N(0, (S_j/mu_j)^2 I) on the mean is
mu_j-GDP, and N rounds with mu_j = mu/sqrt(N) compose to mu. Replayed rewards pay again every time, without
amplification by subsampling (docs/theory.md#gradient).

`GradientPerturbation` is what figure 2 runs, in the authors' learner: a sampling share q of 1, because every reward may
change; noise sigma C on the mean of a batch's clipped gradients; U updates, as many as the authors' program makes.
Neighbours' clipped gradients both have a length of at most C and may point in opposite directions; with all rewards
replaced, the mean of a batch moves by up to 2C, so that U updates are 2 sqrt(U)/sigma-GDP. Abadi et al. count C,
because there a person is added or removed; for rewards that are *replaced* a factor 2 is missing. Huber's loss does not
make up for it: its derivative moves by no more than the reward, so a gradient by at most min(2C, |grad Q|), which would
be C if |grad Q| were at most C; but the derivative by the output's bias alone is 1 = C, and nothing bounds the others.
2C is attained where |grad Q| >= 2C, by temporal differences of plus and minus a half in a batch of equal transitions.
"""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax_privacy import clipped_grad
from jaxtyping import Array, Float, PRNGKeyArray

from quietq.noise.entropy import Entropy
from quietq.paper.agents import replay as memory
from quietq.paper.agents.deep_q import DeepQ, DeepQState, chosen, optimiser_option
from quietq.paper.agents.hyper_parameters import option, share
from quietq.paper.agents.in_loop_method import ROUNDS, InLoopMethod, NoiseDraw, PrivateStep, hide_replay
from quietq.paper.agents.method import EnvironmentSpaces, Moment, Noise, Transition
from quietq.paper.agents.networks import Network, NetworkName
from quietq.paper.agents.protect import protect, total
from quietq.paper.algorithm import Baseline, simulated
from quietq.privacy import Assumption, Code, InvalidInput
from quietq.privacy.checks import count, positive
from quietq.privacy.norms import UNIT_ROUNDING, AnyNorm, RewardGradients

STEEPEST = 1e15  # gradients of this length and more are too large for float32 to bound
MOST_CLIP = 1e9
"""A squared length overflows beyond 1.8e19, and the gradient then counts as 0: it moves by the clip at the most. For a
gradient of that length rounding alone is allowed 8 * 2^-24 * 1.8e19 = 8.8e12, which is far more than this."""


@dataclass(frozen=True, kw_only=True)
class NoisyDescent(DeepQ, InLoopMethod):
    """Deep Q-learning whose gradients are noised round by round, each by its own public sensitivity."""

    optimiser: str = optimiser_option("sgd")
    learning_rate: float = option(1.0, "Step size.", positive)
    explore_last: float = option(1.0, "Share of random actions in the long run.", share)

    def noise_shape(self, spaces: EnvironmentSpaces, steps: int) -> tuple[int, ...]:
        return (self.rounds(steps), self.parameters(spaces))

    def sensitivity(self, spaces: EnvironmentSpaces, steps: int) -> float:
        return np.sqrt(self.rounds(steps))

    def norm(self, spaces: EnvironmentSpaces, steps: int, noise: NoiseDraw) -> AnyNorm:
        """Each gradient step's own sensitivity, as it is computed for rewards that differ by the radius handed on."""
        return RewardGradients(self.rounds(steps), float(noise.radius))

    def slopes(self, network: Network, batch: Transition) -> Network:
        """The gradient of each transition's value by all parameters, one row per transition in each leaf."""
        return jax.vmap(eqx.filter_grad(taken_value), in_axes=(None, 0, 0))(network, batch.state, batch.action)


@dataclass(frozen=True, kw_only=True)
class GradientNoise(NoisyDescent):
    """DP-SGD: deep Q-learning whose gradients are clipped one by one and noised together."""

    name: ClassVar[str] = "gradient"
    network: NetworkName = field(default="mlp", init=False)
    features: int = field(default=2, init=False)
    widths: tuple[int, ...] = option((16,), "Hidden layers of the network.")
    optimiser: str = optimiser_option("adam")
    learning_rate: float = option(0.02, "Step size.", positive)
    gamma: float = option(0.8, "Discount of the future.", share)
    clip: float = option(1.0, "Length that each transition's gradient is clipped to.", positive)
    batch: int = option(500, "Transitions a gradient step.", count)
    start: int = option(500, "Transitions before the first gradient step.", count)
    train_every: int = option(25, "Steps of the environment between gradient steps, each of them a release.", count)
    target_every: int = option(
        1, "Steps between copies of the network to the target network; 1 does without one.", count
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.clip > MOST_CLIP:
            raise InvalidInput(f"clip must be at most {MOST_CLIP:g}, not {self.clip!r}: scale the rewards.")

    def rounds(self, steps: int) -> int:
        return max((steps - self.first_step) // self.train_every + 1, 0)

    def update(self, state: DeepQState, seen: Transition, now: Moment) -> DeepQState:
        """Gradients of replayed transitions, clipped one by one and noised together."""
        steps, noise = now.step + 1, now.noise
        buffer = memory.store(state.replay, seen, now.step, self.bootstrap_truncated)
        turn = steps // self.train_every - self.first_step // self.train_every

        def gradient(network: Network) -> Network:
            batch = noise.clip(memory.sample(buffer, self.batch, seen.action.shape[0], now))
            return self.noised(network, state.target, batch, noise, turn)

        due = steps % self.train_every == 0
        ready = due & (turn >= 0) & (turn < noise.normals.shape[0])  # without normals of its own, no round
        return self.descend(state, buffer, gradient, ready, steps % self.target_every == 0)

    def noised(self, network: Network, target: Network, batch: Transition, noise: NoiseDraw, turn: Array) -> Network:
        goals = self.goals(target, batch)
        following = jnp.abs(jax.vmap(target)(batch.next_state)).max(axis=1)

        def loss(network: Network, goal: Array, state: Array, action: Array) -> Array:
            return self.losses(taken_value(network, state, action)[None] - goal[None])[0]

        together = max(n for n in range(1, math.isqrt(self.batch) + 1) if self.batch % n == 0)
        clipped = clipped_grad(
            loss,
            l2_clip_norm=self.clip,
            normalize_by=self.batch,
            batch_argnums=(1, 2, 3),
            keep_batch_dim=False,
            microbatch_size=together,
            nan_safe=False,
        )(network, goals, batch.state, batch.action)
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
        return Code.GRADIENTS_CLIPPED(self.clip), Code.FROM_NOISED()

    def private_step(self, spaces: EnvironmentSpaces, batch: Transition, key: PRNGKeyArray) -> PrivateStep:
        """Around rewards that are no surprise: from there, clipping cuts off the least of what rewards move."""
        number = len(batch.action)
        method = replace(self, batch=number, start=1, train_every=1, replay=ROUNDS * number)
        network = method.init(spaces, key).network

        def one_round(seen: Transition, noise: Noise) -> Network:
            return method.noised(network, network, seen, noise, jnp.array(1))

        centre = chosen(jax.vmap(network)(batch.state), batch.action) - method.goals(network, batch)
        return PrivateStep(method, ROUNDS, ROUNDS, one_round, hide_replay, centre=centre)


def taken_value(network: Network, state: Array, action: Array) -> Array:
    return chosen(network(state)[None], action[None])[0]


@dataclass(frozen=True, kw_only=True)
class GradientPerturbation(Baseline):
    """Every transition's gradient is clipped, and their mean is noised.

    >>> one = GradientPerturbation.of(0.9, 1e-4)
    >>> one.updates(5000), round(one.sigma(5000)), round(one.worth(5000), 2)
    (4873, 333, 1.39)
    """

    name: ClassVar[str] = "gradient perturbation"
    clip: float = option(1.0, "C: the length that each transition's gradient is clipped to.")

    def updates(self, steps: int) -> int:
        """U: one at every step, as the authors have it, from the first full batch on."""
        return steps - self.start + 1

    def sigma(self, steps: int) -> float:
        """Returns sigma by Abadi et al.'s theorem 1 with a sampling share of 1: our reading."""
        # The paper sets the constant of Abadi et al.'s theorem 1 to sqrt(2).
        return math.sqrt(2) * math.sqrt(self.updates(steps) * math.log(1 / self.delta)) / self.epsilon

    def mu(self, steps: int) -> float:
        return 2 * math.sqrt(self.updates(steps)) / self.sigma(steps)

    def draw(self, spaces: EnvironmentSpaces, steps: int, entropy: Entropy) -> Noise:
        return simulated(entropy, (self.updates(steps), self.parameters(spaces)), self.sigma(steps) * self.clip)

    def update(self, state: DeepQState, seen: Transition, now: Moment) -> DeepQState:
        (normals, scale), copies = now.noise, seen.action.shape[0]
        buffer = memory.store(state.replay, seen, now.step, self.bootstrap_truncated)
        turn = now.step + 1 - self.start

        def gradient(network: Network) -> Network:
            batch = memory.sample(buffer, self.batch, copies, now)
            mean = self.clipped(network, self.goals(state.target, batch), batch)
            flat, build = ravel_pytree(eqx.filter(mean, eqx.is_array))
            return build(protect(flat, normals[turn], scale))

        ready = (turn >= 0) & (turn < normals.shape[0])
        return self.descend(state, buffer, gradient, ready, (now.step + 1) % self.target_every == 0)

    def clipped(self, network: Network, goals: Float[Array, " batch"], batch: Transition) -> Network:
        """The mean of the transitions' gradients, each clipped to length C."""

        def loss(network: Network, goal: Array, state: Array, action: Array) -> Array:
            return self.losses(chosen(network(state)[None], action[None]) - goal[None])[0]

        each = jax.vmap(eqx.filter_grad(loss), in_axes=(None, 0, 0, 0))(network, goals, batch.state, batch.action)
        squares = [(leaf.reshape(len(goals), -1) ** 2).sum(axis=1) for leaf in jax.tree.leaves(each)]
        lengths = jnp.sqrt(sum(squares[1:], squares[0]))
        share = jnp.minimum(1.0, self.clip / jnp.maximum(lengths, 1e-12)) / len(goals)
        return jax.tree.map(lambda leaf: jnp.tensordot(share, leaf, 1), each)
