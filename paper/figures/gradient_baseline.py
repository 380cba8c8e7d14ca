"""Noise on gradients, the second of the paper's baselines (Abadi et al. 2016), by our reading of its appendix.

The appendix takes sigma from Theorem 1 of Abadi et al. with c2 = sqrt 2, and says no more. Ours: a sampling share q of
1, because every reward may change; noise sigma C on the mean of a batch's clipped gradients; U updates, as many as the
authors' program makes.

Neighbours' clipped gradients both have a length of at most C and may point in opposite directions; with all rewards
replaced, the mean of a batch moves by up to 2C. With noise sigma C on the mean, U updates are 2 sqrt(U)/sigma-GDP.
Abadi et al. count C, because there a person is added or removed; for rewards that are *replaced* a factor 2 is missing.
Huber's loss does not make up for it: its derivative moves by no more than the reward, so a gradient by at most
min(2C, |grad Q|), which would be C if |grad Q| were at most C; but the derivative by the output's bias alone is 1 = C,
and nothing bounds the others. 2C is attained where |grad Q| >= 2C, by temporal differences of plus and minus a half in
a batch of equal transitions.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from paper.figures.baselines import Baseline, BaselineDraw, drawn
from quietq.learning import replay as memory
from quietq.learning.deep_q import DeepQState, chosen, when
from quietq.learning.method import Noise, Spaces, Transition
from quietq.learning.networks import Network
from quietq.learning.options import option
from quietq.learning.protect import protect
from quietq.noise.entropy import Entropy
from quietq.privacy.checks import positive
from quietq.privacy.errors import InvalidInput

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

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("clip", self.clip)

    def updates(self, steps: int) -> int:
        """U: one at every step, from the first full batch on."""
        return steps - self.start + 1

    def sigma(self, steps: int) -> float:
        """By Abadi et al.'s theorem 1 with a sampling share of 1: our reading."""
        return C2 * math.sqrt(self.updates(steps) * math.log(1 / self.delta)) / self.epsilon

    def mu(self, steps: int) -> float:
        """2 sqrt(U)/sigma, because a mean of replaced gradients moves by up to 2C."""
        return 2 * math.sqrt(self.updates(steps)) / self.sigma(steps)

    def check(self, spaces: Spaces, steps: int) -> None:
        """An update at every step is what the noise is counted for."""
        super().check(spaces, steps)
        if self.train_every != 1:
            raise InvalidInput(f"train_every must be 1, as the authors have it, not {self.train_every!r}.")

    def draw(self, spaces: Spaces, steps: int, entropy: Entropy) -> BaselineDraw:
        """A normal for each update and parameter."""
        return drawn(entropy, (self.updates(steps), self.parameters(spaces)), self.sigma(steps) * self.clip)

    def update(self, state: DeepQState, seen: Transition, step: Array, key: PRNGKeyArray, noise: Noise) -> DeepQState:
        """Stores what was seen, and takes a noised gradient step."""
        copies = seen.action.shape[0]
        buffer = memory.store(state.replay, seen, step, self.bootstrap_truncated)
        turn = step + 1 - self.start

        def learn(network: Network, optimiser: Any) -> tuple[Network, Any]:
            batch = memory.sample(buffer, self.batch, step, copies, key)
            mean = self.clipped(network, self.goals(state.target, batch), batch)
            flat, build = ravel_pytree(eqx.filter(mean, eqx.is_array))
            return self.apply(network, optimiser, build(protect(flat, noise.normals[turn], noise.scale)))

        ready = (turn >= 0) & (turn < noise.normals.shape[0])
        network, optimiser = when(ready, learn, state.network, state.optimiser)
        copied = (step + 1) % self.target_every == 0
        target = jax.tree.map(lambda new, old: jnp.where(copied, new, old), network, state.target)
        return DeepQState(network, target, optimiser, buffer)

    def clipped(self, network: Network, goals: Float[Array, " batch"], batch: Transition) -> Any:
        """The mean of the transitions' gradients, each clipped to length C."""

        def loss(network: Network, goal: Array, state: Array, action: Array) -> Array:
            return self.losses(chosen(network(state)[None], action[None]) - goal[None])[0]

        each = jax.vmap(eqx.filter_grad(loss), in_axes=(None, 0, 0, 0))(network, goals, batch.state, batch.action)
        squares = [(leaf.reshape(len(goals), -1) ** 2).sum(axis=1) for leaf in jax.tree.leaves(each)]
        lengths = jnp.sqrt(sum(squares[1:], squares[0]))
        share = jnp.minimum(1.0, self.clip / jnp.maximum(lengths, 1e-12)) / len(goals)
        return jax.tree.map(lambda leaf: jnp.tensordot(share, leaf, 1), each)
