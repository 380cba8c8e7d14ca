"""`value`: noise on the reward part of the value function, carried by the state: the paper's Algorithm 1 repaired.

Theorem. In round j, given public states, the reward part of the update is v = sum_t r_t phi(s_t, a_t), here divided by
the public sum of weights at each knot. Over all |dr_t| <= radius it moves by at most radius sqrt(D) in the Euclidean
norm, D the number of knots and actions that were seen (each entry is an average); N(0, (S_j/mu_j)^2) on each entry is
mu_j-GDP, and N rounds with mu_j = mu/sqrt(N) compose to mu. Policy, moves and values come from what is public or
released (docs/theory.md#value). No amplification by subsampling: every reward may differ.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from quietq.paper.agents.hyper_parameters import option, share
from quietq.paper.agents.in_loop_method import ROUNDS, InLoopMethod, NoiseDraw, PrivateStep, update_and_finish
from quietq.paper.agents.method import EnvironmentSpaces, Moment, Noise, Transition
from quietq.paper.agents.networks import LinearQ
from quietq.paper.agents.protect import protect
from quietq.paper.baselines.averages import Averages, Averaging, add, best_values, weighed
from quietq.privacy import Assumption, Code
from quietq.privacy.checks import count
from quietq.privacy.norms import AnyNorm, ObservedRewards


class ValueState(NamedTuple):
    """What this round has seen, private; and what all rounds together released."""

    unreleased: Averages
    public: Averages  # weights and moves are public as such, rewards were noised
    variance: Float[Array, "actions knots"]  # of the noise in the released rewards
    network: LinearQ  # the values that followed from the last release; they act
    round: Int[Array, ""]


@dataclass(frozen=True, kw_only=True)
class ValueNoise(Averaging, InLoopMethod):
    """Round by round, mean rewards by knot are noised and released, and the values that follow act in the next."""

    name: ClassVar[str] = "value"
    round_steps: int = option(2500, "Steps of a round; each ends with a release of its own, under one budget.", count)
    explore: float = option(0.5, "Share of random actions after the first round.", share)

    def rounds(self, steps: int) -> int:
        """Returns how many releases `steps` make; the last round may be a short one."""
        return -(-steps // self.round_steps)

    def operations(self, spaces: EnvironmentSpaces) -> int:
        return 8

    def noise_shape(self, spaces: EnvironmentSpaces, steps: int) -> tuple[int, ...]:
        return (self.rounds(steps), spaces.actions, self.number_of_knots(spaces))

    def norm(self, spaces: EnvironmentSpaces, steps: int, noise: NoiseDraw) -> AnyNorm:
        return ObservedRewards(self.rounds(steps), self.operations(spaces))

    def init(self, spaces: EnvironmentSpaces, key: PRNGKeyArray, copies: int = 1) -> ValueState:
        nothing = self.nothing_seen(spaces)
        zero = jnp.zeros_like(nothing.weight)
        return ValueState(nothing, nothing, zero, self.network(spaces, zero), jnp.zeros((), jnp.int32))

    def act(self, state: ValueState, observation: Float[Array, "copies d"], now: Moment) -> Int[Array, " copies"]:
        key_share, key_action = jax.random.split(now.key)
        share = jnp.where(now.step < self.round_steps, 1.0, self.explore)
        anything = super().act(state, observation, now._replace(key=key_action))
        best = jnp.argmax(jax.vmap(state.network)(observation), axis=1)
        return jnp.where(jax.random.uniform(key_share, best.shape) < share, anything, best)

    def update(self, state: ValueState, seen: Transition, now: Moment) -> ValueState:
        noise = now.noise
        state = state._replace(unreleased=add(state.unreleased, noise.clip(seen), state.network))
        ends = ((now.step + 1) % self.round_steps == 0) & (state.round < noise.normals.shape[0])
        arrays, build = jax.tree.flatten(state)
        released = lax.cond(ends, lambda x: jax.tree.leaves(self._release(build.unflatten(x), noise)), list, arrays)
        return build.unflatten(released)

    def finish(self, state: ValueState, noise: Noise) -> LinearQ:
        short = state.unreleased.seen.any() & (state.round < noise.normals.shape[0])
        last = self._release(state, noise)
        return jax.tree.map(lambda new, old: jnp.where(short, new, old), last.network, state.network)

    def current(self, state: ValueState, noise: Noise) -> LinearQ:
        return state.network

    def _release(self, state: ValueState, noise: NoiseDraw) -> ValueState:
        mine, before, seen = state.unreleased, state.public, state.unreleased.seen
        scale = noise.scale * jnp.sqrt(seen.sum())  # one round moves this many means
        means = protect(mine.means(), noise.normals[state.round], scale)
        weight = jnp.where(seen, mine.weight, 0.0)
        public = Averages(
            before.weight + weight,
            before.squares + mine.squares,
            before.rewards + means * weight,
            before.moves + mine.moves,
            before.lost,
        )
        variance = state.variance + (scale * weight) ** 2
        present = jnp.maximum(public.weight, 1e-6)
        means = weighed(public.rewards / present, jnp.sqrt(variance) / present, public.weight, self.spread)
        network = replace(state.network, weights=best_values(means, public, self.gamma))
        return ValueState(jax.tree.map(jnp.zeros_like, mine), public, variance, network, state.round + 1)

    def conditions(self, steps: int) -> tuple[Assumption, ...]:
        return (Code.FROM_NOISED(),)

    def private_step(self, spaces: EnvironmentSpaces, batch: Transition, key: PRNGKeyArray) -> PrivateStep:
        """The first of a round's two steps ends none; the last round is ended by the training."""
        method, steps = replace(self, round_steps=2), 2 * ROUNDS - 1
        one_round = update_and_finish(method, method.init(spaces, key, len(batch.action)))
        return PrivateStep(method, steps, steps, one_round, lambda state: state._replace(unreleased=None))
