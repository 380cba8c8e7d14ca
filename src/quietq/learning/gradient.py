"""`gradient`: noise on clipped gradients, after Abadi et al. (2016), for a relation in which every reward may differ.

Theorem. In round j, given what was released before, each transition's gradient is a function of its reward alone, with
slope |grad Q(s, a)| at most (Huber's derivative changes by no more than its argument), and clipping to length C is a
projection. So the mean gradient of neighbours differs by at most S_j = (1/B) sum_t min(2C, radius |grad Q(s_t, a_t)|),
which is public; N(0, (S_j/mu_j)^2 I) on it is mu_j-GDP, and N rounds with mu_j = mu/sqrt(N) compose to mu
(docs/theory.md, section 4). There is no amplification by subsampling: replayed rewards pay again every time.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax_privacy import clipped_grad
from jaxtyping import Array, Float, PRNGKeyArray

from quietq.learning import replay as memory
from quietq.learning.deep_q import DeepQ, DeepQState, chosen, when
from quietq.learning.method import Noise, Spaces, Transition
from quietq.learning.networks import Kind, Network
from quietq.learning.options import option
from quietq.learning.promise import Promising
from quietq.learning.protect import protect
from quietq.noise.entropy import Entropy
from quietq.privacy.certificate import Assumption, Certificate
from quietq.privacy.checks import positive
from quietq.privacy.errors import InvalidInput


class GradientNoiseDraw(NamedTuple):
    """One normal a round and parameter, the deviation for a sensitivity of 1, and the most that one reward differs."""

    normals: Float[np.ndarray, "rounds parameters"]
    scale: Float[np.ndarray, ""]
    radius: Float[np.ndarray, ""]


@dataclass(frozen=True, kw_only=True)
class GradientNoise(DeepQ, Promising):
    """Deep Q-learning whose gradients are clipped one by one and noised together."""

    name: ClassVar[str] = "gradient"
    network: Kind = option("splines", "Value network: mlp, or linear weights on splines, fourier or random features.")
    features: int = option(7, "Knots or frequencies a coordinate, or random units, of a linear network.")
    gamma: float = option(0.5, "Discount of the future.")
    optimiser: Any = option("sgd", "An optimiser of Optax by name (or, from Python, any Optax optimiser).")
    learning_rate: float = option(1.0, "Step size, for an optimiser given by name.")
    clip: float = option(1.0, "Length that each transition's gradient is clipped to.")
    batch: int = option(1000, "Transitions a gradient step.")
    start: int = option(1000, "Transitions to be seen before the first gradient step.")
    train_every: int = option(100, "Steps of the environment between gradient steps; each is a release.")
    explore_last: float = option(1.0, "Share of random actions in the long run.")

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("clip", self.clip)

    def rounds(self, steps: int) -> int:
        """How many gradient steps so many steps of the environment make."""
        first = -(-max(self.start, self.train_every) // self.train_every)
        return max(steps // self.train_every - first + 1, 0)

    def check(self, spaces: Spaces, steps: int) -> None:
        """There must be something to learn."""
        super().check(spaces, steps)
        if self.rounds(steps) == 0:
            raise InvalidInput(f"steps must be more than {max(self.start, self.train_every)}, or nothing is learned.")

    def draw(self, spaces: Spaces, steps: int, entropy: Entropy) -> GradientNoiseDraw:
        """The normals of all rounds."""
        _, budget = self.promised()
        shapes = jax.eval_shape(lambda key: eqx.filter(self.make_network(spaces, key), eqx.is_array), jax.random.key(0))
        parameters = sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(shapes))
        rounds = self.rounds(steps)
        return GradientNoiseDraw(
            entropy.normals((rounds, parameters)).astype(np.float32),
            np.asarray(np.sqrt(rounds) / budget.mu, np.float32),
            np.asarray(self.radius, np.float32),
        )

    def update(self, state: DeepQState, seen: Transition, step: Array, key: PRNGKeyArray, noise: Noise) -> DeepQState:
        """Stores what was seen, and takes a noised gradient step when it is time."""
        copies = seen.action.shape[0]
        buffer = memory.store(state.replay, seen, step, self.bootstrap_truncated)
        first = -(-max(self.start, self.train_every) // self.train_every)
        turn = (step + 1) // self.train_every - first

        def learn(network: Network, optimiser: Any) -> tuple[Network, Any]:
            batch = memory.sample(buffer, self.batch, step, copies, key)
            gradient = self._noised(network, self.goals(state.target, batch), batch, noise, turn)
            return self.apply(network, optimiser, gradient)

        due = (step + 1) % self.train_every == 0
        ready = due & (turn >= 0) & (turn < noise.normals.shape[0])  # without normals of its own, no round
        network, optimiser = when(ready, learn, state.network, state.optimiser)
        copied = (step + 1) % self.target_every == 0
        target = jax.tree.map(lambda new, old: jnp.where(copied, new, old), network, state.target)
        return DeepQState(network, target, optimiser, buffer)

    def _noised(
        self, network: Network, goals: Float[Array, " batch"], batch: Transition, noise: GradientNoiseDraw, turn: Array
    ) -> Any:
        """The mean of clipped gradients, with noise by their public sensitivity."""

        def value(network: Network, state: Array, action: Array) -> Array:
            return chosen(network(state)[None], action[None])[0]

        def loss(network: Network, goal: Array, state: Array, action: Array) -> Array:
            return self.losses(value(network, state, action)[None] - goal[None])[0]

        clipped = clipped_grad(loss, l2_clip_norm=self.clip, normalize_by=self.batch, batch_argnums=(1, 2, 3),
                               keep_batch_dim=False)(network, goals, batch.state, batch.action)  # fmt: skip
        slopes = jax.vmap(eqx.filter_grad(value), in_axes=(None, 0, 0))(network, batch.state, batch.action)
        lengths = jnp.sqrt(sum((leaf.reshape(self.batch, -1) ** 2).sum(axis=1) for leaf in jax.tree.leaves(slopes)))
        sensitivity = jnp.minimum(2 * self.clip, noise.radius * lengths).mean()
        flat, build = ravel_pytree(eqx.filter(clipped, eqx.is_array))
        return build(protect(flat, noise.normals[turn], noise.scale * sensitivity))

    def certificate(self, spaces: Spaces, steps: int) -> Certificate:
        """Certified, for all gradient steps together."""
        return self.state_promise(
            spaces,
            self.rounds(steps),
            "each gradient step's own sensitivity, the mean over its batch of min(2 clip, radius |grad Q|)",
            Assumption(f"Each transition's gradient was clipped to length {self.clip:g}.", True),
            Assumption("Networks, targets and actions come from noised parameters only.", True),
        )
