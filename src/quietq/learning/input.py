"""`input`: independent noise on every observed reward, after Venkitasubramaniam (2013).

Theorem. n observed rewards of neighbours, at states that depend on the reward through released values only, differ by
at most radius sqrt(n) in the Euclidean norm; so N(0, (radius sqrt(n)/mu)^2) on each, once, is mu-GDP, adaptively too.
All that follows sees noised rewards only and is post-processing (docs/theory.md, section 4).
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from quietq.learning.averages import Averages, Averaging, add, at_random, best_values, weighed
from quietq.learning.method import Noise, Spaces, Transition
from quietq.learning.networks import LinearQ
from quietq.learning.private_step import ROUNDS, PrivateStep
from quietq.learning.promise import Draw, Promising
from quietq.learning.protect import protect
from quietq.noise.entropy import Entropy
from quietq.privacy.certificate import Assumption, Certificate


class InputState(NamedTuple):
    """Sums of noised rewards, and a network to fill in."""

    sums: Averages
    network: LinearQ


@dataclass(frozen=True, kw_only=True)
class InputNoise(Averaging, Promising):
    """Every reward is noised once, when it is seen; values are learned from averages of the noised ones."""

    name: ClassVar[str] = "input"

    def operations(self, spaces: Spaces) -> int:
        """Clipping, noise and rounding of each reward."""
        return 4

    def draw(self, spaces: Spaces, steps: int, entropy: Entropy) -> Draw:
        """One normal for each reward that will be seen."""
        _, budget = self.promised()
        scale = self.allowance(spaces) * self.radius * np.sqrt(steps) / budget.mu
        return self.drawn(entropy.normals((steps,)), scale)

    def norm(self, spaces: Spaces, steps: int, noise: Draw) -> dict[str, object]:
        """All observed rewards together."""
        return {"kind": "rewards", "count": steps, "operations": self.operations(spaces)}

    def init(self, spaces: Spaces, key: PRNGKeyArray, copies: int = 1) -> InputState:
        """Nothing seen."""
        sums = self.nothing_seen(spaces)
        return InputState(sums, self.network(spaces, jnp.zeros_like(sums.weight)))

    def act(
        self, state: InputState, observation: Float[Array, "copies d"], step: Array, key: PRNGKeyArray, noise: Noise
    ) -> Int[Array, " copies"]:
        """At random, to see all states."""
        return at_random(observation, state.sums.weight.shape[0], key)

    def update(self, state: InputState, seen: Transition, step: Array, key: PRNGKeyArray, noise: Noise) -> InputState:
        """Noises the reward, and adds it to the sums."""
        copies = seen.reward.shape[0]
        index = step * copies + jnp.arange(copies)
        rewards = jnp.clip(seen.reward, -noise.largest, noise.largest)
        noised = protect(rewards, noise.normals[index], noise.scale)
        paid = index < noise.normals.shape[0]  # a reward without a normal of its own counts for no action
        noised = seen._replace(reward=jnp.where(paid, noised, 0.0), action=jnp.where(paid, seen.action, -1))
        return state._replace(sums=add(state.sums, noised, state.network))

    def finish(self, state: InputState, noise: Noise) -> LinearQ:
        """Values that follow from the averages of noised rewards."""
        sums, present = state.sums, jnp.maximum(state.sums.weight, 1e-6)
        deviation = noise.scale * jnp.sqrt(sums.squares) / present
        means = weighed(sums.rewards / present, deviation, sums.weight, self.spread)
        return LinearQ(best_values(means, sums, self.gamma), state.network.scaled, state.network.features)

    def current(self, state: InputState, noise: Noise) -> LinearQ:
        """As at the end: noised rewards may be looked at as often as one likes."""
        return self.finish(state, noise)

    def certificate(self, spaces: Spaces, steps: int) -> Certificate:
        """Certified: one round a reward."""
        return self.state_promise(
            spaces,
            steps,
            Assumption(f"At most {steps} rewards were seen, each noised once, before anything looked at it.", True),
        )

    def private_step(self, spaces: Spaces, batch: Transition, key: PRNGKeyArray) -> PrivateStep:
        """Each reward is a round of its own; those of one call of `update` are looked at together."""
        state = self.init(spaces, key, len(batch.action))

        def one_round(seen: Transition, noise: Noise) -> InputState:
            return self.update(state, seen, jnp.array(0), key, noise)

        return PrivateStep(self, ROUNDS * len(batch.action), ROUNDS, one_round, lambda state: state)
