"""`gradient`: noise on gradients, after Abadi et al. (2016), for a relation in which every reward may differ.

Theorem, linear values and squared loss. The gradient of a mean over transitions is (1/B) sum_t (Q_t - gamma Q'_t)
phi_t, which is public given what was released, minus (1/B) sum_t r_t phi_t. So only the latter is noised, once for each
transition, in coordinates in which the features of the round are white: x_t = L^-1 phi_t with L L' = sum_t phi_t phi_t'
(and a ridge). Neighbours' sums of r_t x_t differ by at most radius sqrt(B lambda), lambda the largest eigenvalue of
sum_t x_t x_t', which is about 1 and bounded by the numbers that are used; that is S_j, and N(0, (S_j/mu_j)^2 I) on it
is mu_j-GDP. N rounds with mu_j = mu/sqrt(N) compose to mu. Every gradient step, of which there may be any number, uses
the mean of all rounds so far, in the old coordinates: post-processing.

Theorem, any other. In round j, given what was released before, each transition's gradient is a number times the public
direction grad Q_t. The number is the temporal difference, or Huber's derivative of it, which changes by no more than
the reward, and it is clipped so that the gradient's length is C at most. So neighbours' mean gradients differ by
(1/B) sum_t c_t grad Q_t with |c_t| <= b_t = min(radius, 2C/|grad Q_t|), and entry by entry by no more than with
|grad Q_t|: by at most S_j = |(1/B) sum_t b_t |grad Q_t||, which is public. The same noise, and the same composition;
but replayed rewards pay again every time, without amplification by subsampling (docs/theory.md, section 4).

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
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jax_privacy import clipped_grad
from jaxtyping import Array, Float, PRNGKeyArray

from quietq.noise.entropy import Entropy
from quietq.paper.agents import replay as memory
from quietq.paper.agents.deep_q import DeepQ, DeepQState, Loss, chosen, when
from quietq.paper.agents.hyper_parameters import option, share
from quietq.paper.agents.in_loop_method import ROUNDS, InLoopMethod, NoiseDraw, PrivateStep, hide_replay
from quietq.paper.agents.method import EnvironmentSpaces, Moment, Noise, Transition
from quietq.paper.agents.networks import Network, NetworkName
from quietq.paper.agents.protect import protect, total
from quietq.paper.baselines.figure2_learner import Baseline, BaselineDraw, simulated
from quietq.privacy import Assumption, InvalidInput
from quietq.privacy.checks import count, positive
from quietq.privacy.norms import UNIT_ROUNDING

STEEPEST = 1e15  # gradients of this length and more are too large for float32 to bound
MOST_CLIP = 1e9
"""A squared length overflows beyond 1.8e19, and the gradient then counts as 0: it moves by the clip at the most. For a
gradient of that length rounding alone is allowed 8 * 2^-24 * 1.8e19 = 8.8e12, which is far more than this."""
RIDGE = 0.01
"""Of the features' mean square, so that those which a round has not seen can be whitened too."""
SMALLEST_WHITE = 1e-9
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

    def noise_shape(self, spaces: EnvironmentSpaces, steps: int) -> tuple[int, ...]:
        return (self.rounds(steps), self.parameters(spaces))

    def sensitivity(self, spaces: EnvironmentSpaces, steps: int) -> float:
        return np.sqrt(self.rounds(steps))

    def norm(self, spaces: EnvironmentSpaces, steps: int, noise: NoiseDraw) -> dict[str, object]:
        """Each gradient step's own sensitivity, as it is computed for rewards that differ by the radius handed on."""
        return {"kind": self.norm_kind, "rounds": self.rounds(steps), "radius": float(noise.radius)}

    def slopes(self, network: Network, batch: Transition) -> Network:
        """The gradient of each transition's value by all parameters, one row per transition in each leaf."""
        return jax.vmap(eqx.filter_grad(taken_value), in_axes=(None, 0, 0))(network, batch.state, batch.action)


@dataclass(frozen=True, kw_only=True)
class GradientNoise(NoisyDescent):
    """Q-learning by gradients that are noised: of linear values their reward part, once, else clipped one by one."""

    name: ClassVar[str] = "gradient"
    norm_kind: ClassVar[str] = "clipped-gradients"
    features: int = option(6, "Knots or frequencies a coordinate, or random units, of a linear network.", count)
    gamma: float = option(0.9, "Discount of the future.", share)
    loss: Loss = option("squared", "Loss of the temporal difference: huber or squared.")
    clip: float = option(
        1.0, "Length that each transition's gradient is clipped to, unless values are linear and the loss squared.",
        positive,
    )  # fmt: skip
    batch: int = option(2000, "Transitions a gradient step; all that are kept where it costs nothing.", count)
    start: int = option(1000, "Transitions to be seen before the first gradient step.", count)
    train_every: int = option(100, "Steps of the environment between releases, each followed by gradient steps.", count)
    repeats: int = option(
        5, "Gradient steps after each release, where they cost nothing: for linear values and squared loss.", count
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.clip > MOST_CLIP:
            raise InvalidInput(f"clip must be at most {MOST_CLIP:g}, not {self.clip!r}: scale the rewards.")

    @property
    def reuses(self) -> bool:
        """Whether rewards are noised once, in sums that all gradient steps use again."""
        return self.network != "mlp" and self.loss == "squared"

    def rounds(self, steps: int) -> int:
        if self.reuses:
            return steps // self.train_every
        return max((steps - self.first_step) // self.train_every + 1, 0)

    def init(self, spaces: EnvironmentSpaces, key: PRNGKeyArray, copies: int = 1) -> DeepQState:
        state = super().init(spaces, key, copies)
        if not self.reuses:
            return state
        room = memory.empty(max(self.replay, self.train_every * copies), spaces.box.dimension, copies)
        return state._replace(replay=room, released=jnp.zeros(self.parameters(spaces)))

    def update(self, state: DeepQState, seen: Transition, now: Moment) -> DeepQState:
        return self.release_and_learn(state, seen, now) if self.reuses else self.learn(state, seen, now)

    def release_and_learn(self, state: DeepQState, seen: Transition, now: Moment) -> DeepQState:
        """Each round's transitions are noised together, once; then as many gradient steps as one likes."""
        steps, copies, noise = now.step + 1, seen.action.shape[0], now.noise
        buffer = memory.store(state.replay, seen, now.step, self.bootstrap_truncated)
        turn = steps // self.train_every - 1
        due = (steps % self.train_every == 0) & (turn < noise.normals.shape[0])  # without normals of its own, no round

        def release(released: Array) -> Array:
            fresh = jnp.arange(self.train_every * copies) + (steps - self.train_every) * copies
            batch = noise.clip(memory.rows(buffer, fresh % buffer.shape[0]))
            return released + self.noised_rewards(state.network, batch, noise, turn)

        released = lax.cond(due, release, lambda released: released, state.released)

        def descend(network: Any, optimiser: Any) -> tuple[Any, Any]:
            kept, rows = memory.rows(buffer, jnp.arange(buffer.shape[0])), jnp.arange(buffer.shape[0])
            stored = (rows < steps * copies) / jnp.minimum(steps * copies, len(rows))
            taken = jax.nn.one_hot(kept.action, len(network.weights)) * stored[:, None]
            here, there = (jax.vmap(network.features_of)(states) for states in (kept.state, kept.next_state))
            rewards = (released / (turn + 1)).reshape(network.weights.shape)

            def step(_: Array, learned: tuple[Any, Any]) -> tuple[Any, Any]:
                """Over all that is kept: a sample would not have the mean features of the noised rewards."""
                weights = learned[0].weights
                following = jnp.where(kept.terminated, 0.0, (there @ weights.T).max(axis=1))
                surprise = here @ weights.T - self.gamma * following[:, None]
                gradient = (taken * surprise).T @ here - rewards
                return self.apply(*learned, replace(learned[0], weights=gradient))

            return lax.fori_loop(0, self.repeats, step, (network, optimiser))

        network, optimiser = when(due & (steps >= self.first_step), descend, state.network, state.optimiser)
        return DeepQState(network, network, optimiser, buffer, released)

    def noised_rewards(
        self, network: Network, batch: Transition, noise: NoiseDraw, turn: Array
    ) -> Float[Array, " parameters"]:
        """The mean of each transition's reward times its features, with noise that is shaped like these."""
        features = self.flat_slopes(network, batch)
        gram = features.T @ features
        ridge = RIDGE * jnp.trace(gram) / len(gram) + jnp.finfo(jnp.float32).tiny
        root = cholesky(gram + ridge * jnp.eye(len(gram)))
        white = whiten(root, features)
        # Whatever became of it in float32, `white` is what rewards are multiplied with, and it is public.
        moves = noise.radius * jnp.sqrt(len(white) * largest_eigenvalue(white))
        # Each entry is a sum (2 roundings) of products (1), divided (1), with rewards of size `largest` at the most;
        # twice that is allowed for, for each of two neighbours.
        rounding = 16 * UNIT_ROUNDING * noise.largest * jnp.linalg.norm(total(jnp.abs(white)))
        scale = noise.scale * (moves + rounding) / len(white)
        return root @ protect(total(batch.reward[:, None] * white) / len(white), noise.normals[turn], scale)

    def flat_slopes(self, network: Network, batch: Transition) -> Float[Array, "batch parameters"]:
        return jax.vmap(lambda one: ravel_pytree(eqx.filter(one, eqx.is_array))[0])(self.slopes(network, batch))

    def learn(self, state: DeepQState, seen: Transition, now: Moment) -> DeepQState:
        """Gradients of replayed transitions, clipped one by one and noised together."""
        steps, noise = now.step + 1, now.noise
        buffer = memory.store(state.replay, seen, now.step, self.bootstrap_truncated)
        turn = steps // self.train_every - self.first_step // self.train_every

        def gradient(network: Network) -> Any:
            batch = noise.clip(memory.sample(buffer, self.batch, seen.action.shape[0], now))
            return self.noised(network, state.target, batch, noise, turn)

        due = steps % self.train_every == 0
        ready = due & (turn >= 0) & (turn < noise.normals.shape[0])  # without normals of its own, no round
        return self.descend(state, buffer, gradient, ready, steps % self.target_every == 0)

    def noised(self, network: Network, target: Network, batch: Transition, noise: NoiseDraw, turn: Array) -> Any:
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
        if self.reuses:
            once = "Each reward entered one noised sum, once, and all gradient steps looked at these sums only."
            return (Assumption(once, True), FROM_NOISED)
        return (Assumption(f"Each transition's gradient was clipped to length {self.clip:g}.", True), FROM_NOISED)

    def private_step(self, spaces: EnvironmentSpaces, batch: Transition, key: PRNGKeyArray) -> PrivateStep:
        """Around rewards that are no surprise: from there, clipping cuts off the least of what rewards move."""
        number = len(batch.action)
        method = replace(self, batch=number, start=1, train_every=1, replay=ROUNDS * number)
        network = method.init(spaces, key).network

        def one_sum(seen: Transition, noise: Noise) -> Any:
            return method.noised_rewards(network, seen, noise, jnp.array(1))

        if self.reuses:
            return PrivateStep(method, ROUNDS, ROUNDS, one_sum, hide_replay)

        def one_round(seen: Transition, noise: Noise) -> Any:
            return method.noised(network, network, seen, noise, jnp.array(1))

        centre = chosen(jax.vmap(network)(batch.state), batch.action) - method.goals(network, batch)
        return PrivateStep(method, ROUNDS, ROUNDS, one_round, hide_replay, centre=centre)


def cholesky(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Its lower root, by columns. LAPACK called by many runs at once within a loop has been seen to wait forever."""
    rows = jnp.arange(len(matrix))

    def column(j: Array, root: Array) -> Array:
        rest = matrix[:, j] - root @ root[j]
        return root.at[:, j].set(jnp.where(rows >= j, rest / jnp.sqrt(rest[j]), 0.0))

    return lax.fori_loop(0, len(matrix), column, jnp.zeros_like(matrix))


def whiten(root: Float[Array, "n n"], rows: Float[Array, "rows n"]) -> Float[Array, "rows n"]:
    """Each row times the inverse of the root, by forward substitution."""

    def column(j: Array, white: Array) -> Array:
        return white.at[:, j].set((rows[:, j] - white @ root[j]) / root[j, j])

    return lax.fori_loop(0, rows.shape[1], column, jnp.zeros_like(rows))


def largest_eigenvalue(white: Float[Array, "rows columns"]) -> Float[Array, ""]:
    """A bound from above on that of white' white: its largest row in sum, or its Frobenius norm, rounding included.

    >>> float(largest_eigenvalue(jnp.eye(4)).round(3))
    1.0
    """
    rows, columns = white.shape
    gram, lengths = jnp.abs(white.T @ white), jnp.sqrt(total(white**2))
    # A product of n terms errs by n 2^-24 of the two lengths, whatever the order; twice that is allowed for.
    gram = gram + 2 * rows * UNIT_ROUNDING * lengths[:, None] * lengths
    slack = 1 + 4 * UNIT_ROUNDING * columns**2
    found = slack * jnp.minimum(gram.sum(axis=1).max(), jnp.sqrt((gram**2).sum()))
    # Fourth powers of smaller numbers vanish in float32, and no bound is left: then nothing is released (see protect).
    return jnp.where(jnp.abs(white).max() < SMALLEST_WHITE, jnp.nan, found)


def taken_value(network: Network, state: Array, action: Array) -> Array:
    return chosen(network(state)[None], action[None])[0]


C2 = math.sqrt(2)
"""The constant of Abadi et al.'s theorem 1, as the paper sets it."""


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
        """By Abadi et al.'s theorem 1 with a sampling share of 1: our reading."""
        return C2 * math.sqrt(self.updates(steps) * math.log(1 / self.delta)) / self.epsilon

    def mu(self, steps: int) -> float:
        return 2 * math.sqrt(self.updates(steps)) / self.sigma(steps)

    def draw(self, spaces: EnvironmentSpaces, steps: int, entropy: Entropy) -> BaselineDraw:
        return simulated(entropy, (self.updates(steps), self.parameters(spaces)), self.sigma(steps) * self.clip)

    def update(self, state: DeepQState, seen: Transition, now: Moment) -> DeepQState:
        copies, noise = seen.action.shape[0], now.noise
        buffer = memory.store(state.replay, seen, now.step, self.bootstrap_truncated)
        turn = now.step + 1 - self.start

        def gradient(network: Network) -> Any:
            batch = memory.sample(buffer, self.batch, copies, now)
            mean = self.clipped(network, self.goals(state.target, batch), batch)
            flat, build = ravel_pytree(eqx.filter(mean, eqx.is_array))
            return build(protect(flat, noise.normals[turn], noise.scale))

        ready = (turn >= 0) & (turn < noise.normals.shape[0])
        return self.descend(state, buffer, gradient, ready, (now.step + 1) % self.target_every == 0)

    def clipped(self, network: Network, goals: Float[Array, " batch"], batch: Transition) -> Any:
        """The mean of the transitions' gradients, each clipped to length C."""

        def loss(network: Network, goal: Array, state: Array, action: Array) -> Array:
            return self.losses(chosen(network(state)[None], action[None]) - goal[None])[0]

        each = jax.vmap(eqx.filter_grad(loss), in_axes=(None, 0, 0, 0))(network, goals, batch.state, batch.action)
        squares = [(leaf.reshape(len(goals), -1) ** 2).sum(axis=1) for leaf in jax.tree.leaves(each)]
        lengths = jnp.sqrt(sum(squares[1:], squares[0]))
        share = jnp.minimum(1.0, self.clip / jnp.maximum(lengths, 1e-12)) / len(goals)
        return jax.tree.map(lambda leaf: jnp.tensordot(share, leaf, 1), each)
