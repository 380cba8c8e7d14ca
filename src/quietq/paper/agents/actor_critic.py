"""`actor-critic`: a policy improved by advantages, all of which come from released things.

Theorem. With a private reward, advantages are computed from rewards that were released; with released values, from
those values. Policy, critic and advantages are then post-processing, and the source's certificate covers the policy as
it is (docs/theory.md#post-processing). Advantages of raw rewards are not covered by anything: such a source is refused.

The policy is a softmax network. Batches are on-policy; generalised advantage estimation weighs how far ahead the reward
is summed and how far the critic is trusted; the ratio of new to old probabilities is clipped, so that a batch can be
used for some epochs (Schulman et al., 2016 and 2017). Released values already count the future: there the discount is
0, the critic learns the policy's mean of them, and what is left is the released advantage.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from quietq.paper.agents.deep_q import chosen, when
from quietq.paper.agents.hyper_parameters import option, share
from quietq.paper.agents.method import EnvironmentSpaces, Moment, Noise, Transition
from quietq.paper.agents.networks import Network, NetworkName, make_network
from quietq.paper.agents.reward_learner import ReleasedValues, RewardLearner
from quietq.privacy import InvalidInput
from quietq.privacy.checks import count, not_negative, positive
from quietq.released import PrivateFunction
from quietq.released.private_network import Output


class ActorCriticState(NamedTuple):
    networks: tuple[Network, Network]  # log-probabilities of the actions, up to a constant; and the value of a state
    optimiser: PyTree
    seen: Transition  # each with a leading axis, one entry a step of the round


@dataclass(frozen=True, kw_only=True)
class ActorCritic(RewardLearner):
    """Advantage actor-critic on a private reward, or on released values of all actions."""

    name: ClassVar[str] = "actor-critic"
    output: ClassVar[Output] = "log-probabilities"
    sources: ClassVar[tuple[type, ...]] = (PrivateFunction, ReleasedValues)
    network: NetworkName = option("mlp", "Policy and critic: mlp, or linear weights on splines.")
    widths: tuple[int, ...] = option((32, 32), "Hidden layers of an mlp.")
    features: int = option(17, "Knots a coordinate of splines.", count)
    gamma: float = option(0.9, "Discount of the future; released values need none.", share)
    trace: float = option(
        0.9, "How far rewards are summed before the critic is trusted: lambda of the advantages.", share
    )
    learning_rate: float = option(3e-3, "Step size of Adam.", positive)
    batch: int = option(500, "Steps a round; each round uses transitions of its own.", count)
    epochs: int = option(10, "Gradient steps a round.", count)
    ratio: float = option(0.2, "How far a round may change an action's probability, as a part of it.", positive)
    entropy: float = option(0.01, "Weight of the policy's entropy, which keeps it exploring.", not_negative)
    clip: float = option(1.0, "Length that gradients are clipped to.", positive)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "widths", tuple(count("widths", width) for width in self.widths))
        if self.private is not None and isinstance(self.rewards[0], ReleasedValues):
            object.__setattr__(self, "gamma", 0.0)

    def check(self, spaces: EnvironmentSpaces, steps: int) -> None:
        super().check(spaces, steps)
        if steps < self.batch:
            raise InvalidInput(f"steps must be at least one batch of {self.batch}, not {steps}.")

    def init(self, spaces: EnvironmentSpaces, key: PRNGKeyArray, copies: int = 1) -> ActorCriticState:
        keys = jax.random.split(key)
        policy, critic = (
            make_network(self.network, spaces.box, outputs, self.widths, self.features, one)
            for outputs, one in zip((spaces.actions, 1), keys, strict=True)
        )
        steps = -(-self.batch // copies)
        states, one = jnp.zeros((steps, copies, spaces.box.dimension)), jnp.zeros((steps, copies))
        empty = Transition(states, one.astype(jnp.int32), one, states, one.astype(bool), one.astype(bool))
        optimiser = self._transformation().init(eqx.filter((policy, critic), eqx.is_array))
        return ActorCriticState((policy, critic), optimiser, empty)

    def act(self, state: ActorCriticState, observation: Float[Array, "copies d"], now: Moment) -> Int[Array, " copies"]:
        return jax.random.categorical(now.key, jax.vmap(state.networks[0])(observation)).astype(jnp.int32)

    def update(self, state: ActorCriticState, seen: Transition, now: Moment) -> ActorCriticState:
        steps = state.seen.reward.shape[0]
        pairs = zip(state.seen, seen, strict=True)
        kept = Transition(*(lax.dynamic_update_index_in_dim(old, new, now.step % steps, 0) for old, new in pairs))

        def learn(networks: PyTree, optimiser: PyTree) -> tuple[PyTree, PyTree]:
            return self._improve(networks, optimiser, kept)

        return ActorCriticState(*when((now.step + 1) % steps == 0, learn, state.networks, state.optimiser), kept)

    def finish(self, state: ActorCriticState, noise: Noise) -> Network:
        return state.networks[0]

    current = finish

    def values(self, released: Network, observation: Float[Array, " d"]) -> Float[Array, " actions"]:
        """Log-probabilities of the actions: the largest is the policy's choice."""
        return jax.nn.log_softmax(released(observation))

    def _transformation(self) -> optax.GradientTransformation:
        return optax.chain(optax.clip_by_global_norm(self.clip), optax.adam(self.learning_rate))

    def _improve(self, networks: PyTree, optimiser: PyTree, seen: Transition) -> tuple[PyTree, PyTree]:
        policy, critic = networks
        here, there = (_each(critic, states)[..., 0] for states in (seen.state, seen.next_state))
        advantages = estimate(seen, here, there, self.gamma, self.trace)
        goals = here + advantages
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-6)
        before = _taken(policy, seen)

        def loss(networks: tuple[Network, Network]) -> Array:
            ratio = jnp.exp(_taken(networks[0], seen) - before)
            clipped = jnp.clip(ratio, 1 - self.ratio, 1 + self.ratio)
            logarithms = jax.nn.log_softmax(_each(networks[0], seen.state))
            entropy = -(jnp.exp(logarithms) * logarithms).sum(axis=-1).mean()
            missed = (_each(networks[1], seen.state)[..., 0] - goals) ** 2
            gained = jnp.minimum(ratio * advantages, clipped * advantages)
            return missed.mean() / 2 - gained.mean() - self.entropy * entropy

        def epoch(carry: tuple[PyTree, PyTree], _: None) -> tuple[tuple[PyTree, PyTree], None]:
            gradient = eqx.filter_grad(loss)(eqx.combine(carry[0], static))
            updates, optimiser = self._transformation().update(gradient, carry[1])
            return (eqx.apply_updates(carry[0], updates), optimiser), None

        arrays, static = eqx.partition(networks, eqx.is_array)
        arrays, optimiser = lax.scan(epoch, (arrays, optimiser), None, self.epochs)[0]
        return eqx.combine(arrays, static), optimiser


def estimate(
    seen: Transition,
    here: Float[Array, "steps copies"],
    there: Float[Array, "steps copies"],
    gamma: float,
    trace: float,
) -> Float[Array, "steps copies"]:
    """Generalised advantages; an end is worth nothing, a cut is worth what the critic says."""
    surprise = seen.reward + gamma * jnp.where(seen.terminated, 0.0, there) - here
    on = gamma * trace * ~(seen.terminated | seen.truncated)

    def back(later: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        advantage = now[0] + now[1] * later
        return advantage, advantage

    return lax.scan(back, jnp.zeros_like(here[0]), (surprise, on), reverse=True)[1]


def _each(network: Network, states: Float[Array, "steps copies d"]) -> Float[Array, "steps copies outputs"]:
    return jax.vmap(jax.vmap(network))(states)


def _taken(policy: Network, seen: Transition) -> Float[Array, "steps copies"]:
    return jax.vmap(chosen)(jax.nn.log_softmax(_each(policy, seen.state)), seen.action)
