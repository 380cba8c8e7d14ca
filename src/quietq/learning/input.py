"""`input`: independent noise on every observed reward, after Venkitasubramaniam (2013).

Theorem. n observed rewards of neighbours, at states that depend on the reward through released values only, differ by
at most radius sqrt(n) in the Euclidean norm; so N(0, (radius sqrt(n)/mu)^2) on each, once, is mu-GDP, adaptively too.
All that follows sees noised rewards only and is post-processing (docs/theory.md, section 4).
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from quietq.learning.averages import Averaging, AveragingState, add, best_values, weighed
from quietq.learning.in_loop_method import ROUNDS, Draw, InLoopMethod, PrivateStep
from quietq.learning.method import Moment, Noise, Spaces, Transition
from quietq.learning.networks import LinearQ
from quietq.learning.protect import protect
from quietq.privacy import Assumption


@dataclass(frozen=True, kw_only=True)
class InputNoise(Averaging, InLoopMethod):
    """Every reward is noised once, when it is seen; values are learned from averages of the noised ones."""

    name: ClassVar[str] = "input"

    def operations(self, spaces: Spaces) -> int:
        return 4

    def noise_shape(self, spaces: Spaces, steps: int) -> tuple[int, ...]:
        return (steps,)

    def rounds(self, steps: int) -> int:
        return steps

    def norm(self, spaces: Spaces, steps: int, noise: Draw) -> dict[str, object]:
        return {"kind": "rewards", "count": steps, "operations": self.operations(spaces)}

    def update(self, state: AveragingState, seen: Transition, now: Moment) -> AveragingState:
        noise, copies = now.noise, seen.reward.shape[0]
        index = now.step * copies + jnp.arange(copies)
        noised = protect(noise.clip(seen).reward, noise.normals[index], noise.scale)
        paid = index < noise.normals.shape[0]  # a reward without a normal of its own counts for no action
        noised = seen._replace(reward=jnp.where(paid, noised, 0.0), action=jnp.where(paid, seen.action, -1))
        return state._replace(sums=add(state.sums, noised, state.network))

    def finish(self, state: AveragingState, noise: Noise) -> LinearQ:
        sums, present = state.sums, jnp.maximum(state.sums.weight, 1e-6)
        deviation = noise.scale * jnp.sqrt(sums.squares) / present
        means = weighed(sums.rewards / present, deviation, sums.weight, self.spread)
        return replace(state.network, weights=best_values(means, sums, self.gamma))

    current = finish  # noised rewards may be looked at as often as one likes

    def conditions(self, steps: int) -> tuple[Assumption, ...]:
        return (
            Assumption(f"At most {steps} rewards were seen, each noised once, before anything looked at it.", True),
        )

    def private_step(self, spaces: Spaces, batch: Transition, key: PRNGKeyArray) -> PrivateStep:
        """Each reward is a round of its own; those of one call of `update` are looked at together."""
        state = self.init(spaces, key, len(batch.action))

        def one_round(seen: Transition, noise: Noise) -> AveragingState:
            return self.update(state, seen, Moment(jnp.array(0), key, noise))

        return PrivateStep(self, ROUNDS * len(batch.action), ROUNDS, one_round, lambda state: state)
