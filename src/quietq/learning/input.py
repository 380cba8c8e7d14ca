"""`input`: independent noise on every observed reward, after Venkitasubramaniam (2013).

Theorem. n observed rewards of neighbours, at states that depend on the reward through released values only, differ by
at most radius sqrt(n) in the Euclidean norm; so N(0, (radius sqrt(n)/mu)^2) on each, once, is mu-GDP, adaptively too.
All that follows sees noised rewards only and is post-processing (docs/theory.md, section 4).
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from quietq.learning.averages import Averaging, AveragingState, add, best_values, weighed
from quietq.learning.in_loop_method import Draw, InLoopMethod
from quietq.learning.method import Noise, Spaces, Transition
from quietq.learning.networks import LinearQ
from quietq.learning.private_step import ROUNDS, PrivateStep
from quietq.learning.protect import protect
from quietq.privacy.certificate import Assumption


@dataclass(frozen=True, kw_only=True)
class InputNoise(Averaging, InLoopMethod):
    """Every reward is noised once, when it is seen; values are learned from averages of the noised ones."""

    name: ClassVar[str] = "input"

    def operations(self, spaces: Spaces) -> int:
        """Clipping, noise and rounding of each reward."""
        return 4

    def noise_shape(self, spaces: Spaces, steps: int) -> tuple[int, ...]:
        return (steps,)

    def sensitivity(self, spaces: Spaces, steps: int) -> float:
        return self.allowance(spaces) * self.radius * np.sqrt(steps)

    def norm(self, spaces: Spaces, steps: int, noise: Draw) -> dict[str, object]:
        return {"kind": "rewards", "count": steps, "operations": self.operations(spaces)}

    def update(
        self, state: AveragingState, seen: Transition, step: Array, key: PRNGKeyArray, noise: Noise
    ) -> AveragingState:
        copies = seen.reward.shape[0]
        index = step * copies + jnp.arange(copies)
        rewards = jnp.clip(seen.reward, -noise.largest, noise.largest)
        noised = protect(rewards, noise.normals[index], noise.scale)
        paid = index < noise.normals.shape[0]  # a reward without a normal of its own counts for no action
        noised = seen._replace(reward=jnp.where(paid, noised, 0.0), action=jnp.where(paid, seen.action, -1))
        return state._replace(sums=add(state.sums, noised, state.network))

    def finish(self, state: AveragingState, noise: Noise) -> LinearQ:
        """Values that follow from the averages of noised rewards."""
        sums, present = state.sums, jnp.maximum(state.sums.weight, 1e-6)
        deviation = noise.scale * jnp.sqrt(sums.squares) / present
        means = weighed(sums.rewards / present, deviation, sums.weight, self.spread)
        return replace(state.network, weights=best_values(means, sums, self.gamma))

    def current(self, state: AveragingState, noise: Noise) -> LinearQ:
        """As at the end: noised rewards may be looked at as often as one likes."""
        return self.finish(state, noise)

    def conditions(self, steps: int) -> tuple[Assumption, ...]:
        return (
            Assumption(f"At most {steps} rewards were seen, each noised once, before anything looked at it.", True),
        )

    def private_step(self, spaces: Spaces, batch: Transition, key: PRNGKeyArray) -> PrivateStep:
        """Each reward is a round of its own; those of one call of `update` are looked at together."""
        state = self.init(spaces, key, len(batch.action))

        def one_round(seen: Transition, noise: Noise) -> AveragingState:
            return self.update(state, seen, jnp.array(0), key, noise)

        return PrivateStep(self, ROUNDS * len(batch.action), ROUNDS, one_round, lambda state: state)
