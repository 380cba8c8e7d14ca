"""`input`: independent noise on every observed reward, after Venkitasubramaniam (2013).

Theorem. n observed rewards of neighbours, at states that depend on the reward through released values only, differ by
at most radius sqrt(n) in the Euclidean norm; so N(0, (radius sqrt(n)/mu)^2) on each, once, is mu-GDP, adaptively too.
All that follows sees noised rewards only and is post-processing (docs/theory.md#input).

`InputPerturbation` is the same idea as figure 2 runs it, in the authors' learner: T observed rewards, each moved by at
most 1 and noised once, are sqrt(T)/sigma-GDP. The formula for sigma is conservative.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from quietq.noise.entropy import Entropy
from quietq.paper.agents.deep_q import DeepQState
from quietq.paper.agents.in_loop_method import ROUNDS, InLoopMethod, NoiseDraw, PrivateStep
from quietq.paper.agents.method import EnvironmentSpaces, Moment, Noise, Transition
from quietq.paper.agents.networks import LinearQ
from quietq.paper.agents.protect import protect
from quietq.paper.algorithm import Baseline, simulated
from quietq.paper.baselines.averages import Averaging, AveragingState, add, best_values, weighed
from quietq.privacy import Assumption, Code
from quietq.privacy.norms import AnyNorm, ObservedRewards


@dataclass(frozen=True, kw_only=True)
class InputNoise(Averaging, InLoopMethod):
    """Every reward is noised once, when it is seen; values are learned from averages of the noised ones."""

    name: ClassVar[str] = "input"

    def operations(self, spaces: EnvironmentSpaces) -> int:
        return 4

    def noise_shape(self, spaces: EnvironmentSpaces, steps: int) -> tuple[int, ...]:
        return (steps,)

    def rounds(self, steps: int) -> int:
        return steps

    def norm(self, spaces: EnvironmentSpaces, steps: int, noise: NoiseDraw) -> AnyNorm:
        return ObservedRewards(steps, self.operations(spaces))

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
        return (Code.REWARDS_NOISED_ONCE(steps),)

    def private_step(self, spaces: EnvironmentSpaces, batch: Transition, key: PRNGKeyArray) -> PrivateStep:
        """Each reward is a round of its own; those of one call of `update` are looked at together."""
        state = self.init(spaces, key, len(batch.action))

        def one_round(seen: Transition, noise: Noise) -> AveragingState:
            return self.update(state, seen, Moment(jnp.array(0), key, noise))

        return PrivateStep(self, ROUNDS * len(batch.action), ROUNDS, one_round, lambda state: state)


@dataclass(frozen=True, kw_only=True)
class InputPerturbation(Baseline):
    """Every observed reward gets noise once, before it is stored.

    >>> one = InputPerturbation.of(0.9, 1e-4)
    >>> round(one.sigma(5000), 1), round(one.worth(5000), 3)
    (1029.8, 0.181)
    """

    name: ClassVar[str] = "input perturbation"

    def sigma(self, steps: int) -> float:
        """Returns sigma by the composition that the paper quotes (proof of Theorem 5), for sensitivity 1."""
        logs = math.log(1.25 / self.delta) * math.log(math.e + self.epsilon / self.delta)
        return math.sqrt(2 * steps * logs) / self.epsilon

    def mu(self, steps: int) -> float:
        return math.sqrt(steps) / self.sigma(steps)

    def draw(self, spaces: EnvironmentSpaces, steps: int, entropy: Entropy) -> Noise:
        return simulated(entropy, (steps,), self.sigma(steps))

    def update(self, state: DeepQState, seen: Transition, now: Moment) -> DeepQState:
        (normals, scale), copies = now.noise, seen.reward.shape[0]
        index = now.step * copies + jnp.arange(copies)
        noised = protect(seen.reward, normals[index], scale)
        return super().update(state, seen._replace(reward=noised), now)
