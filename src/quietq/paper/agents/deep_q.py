"""Deep Q-learning: `none`, on the true reward, which protects nobody; other methods with networks are built on it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from quietq.paper.agents import replay as memory
from quietq.paper.agents.hyper_parameters import option, positive_or_none, share
from quietq.paper.agents.method import EnvironmentSpaces, Method, Moment, Noise, Transition
from quietq.paper.agents.networks import Network, NetworkName, make_network
from quietq.privacy import Certificate, InvalidInput
from quietq.privacy.checks import count, one_of, positive

Loss = Literal["huber", "squared"]


def _rmsprop_pytorch(learning_rate: float) -> optax.GradientTransformation:
    """RMSprop with PyTorch's defaults: decay 0.99, and 1e-8 added to the root, not under it."""
    return optax.rmsprop(learning_rate, decay=0.99, eps=1e-8, eps_in_sqrt=False)


OPTIMISERS: dict[str, Callable[[float], optax.GradientTransformation]] = {
    "adam": optax.adam,
    "adamw": optax.adamw,
    "rmsprop": optax.rmsprop,
    "rmsprop-pytorch": _rmsprop_pytorch,
    "sgd": optax.sgd,
}


def optimiser_option(default: str) -> Any:
    return option(default, f"One of Optax's: {', '.join(OPTIMISERS)}.", partial(one_of, known=tuple(OPTIMISERS)))


class DeepQState(NamedTuple):
    network: Network
    target: Network
    optimiser: PyTree
    replay: Float[Array, "capacity width"]


@dataclass(frozen=True, kw_only=True)
class DeepQ(Method):
    """Deep Q-learning: its hyper-parameters, and the steps that methods built on it put together otherwise."""

    network: NetworkName = option("mlp", "Value network: mlp, or linear weights on splines.")
    widths: tuple[int, ...] = option((32, 32), "Hidden layers of an mlp.")
    features: int = option(17, "Knots a coordinate of splines.", count)
    gamma: float = option(0.95, "Discount of the future.", share)
    optimiser: str = optimiser_option("adam")
    learning_rate: float = option(1e-3, "Step size.", positive)
    loss: Loss = option("huber", "Loss of the temporal difference: huber or squared.")
    clamp: float | None = option(None, "Clamp each entry of the gradient to plus and minus this.", positive_or_none)
    replay: int = option(10_000, "Transitions that are kept to learn from.", count)
    batch: int = option(128, "Transitions a gradient step.", count)
    start: int = option(128, "Transitions before the first gradient step.", count)
    train_every: int = option(1, "Steps of the environment between gradient steps.", count)
    target_every: int = option(
        100, "Steps between copies of the network to the target network; 1 does without one.", count
    )
    explore_first: float = option(1.0, "Share of random actions at the beginning.", share)
    explore_last: float = option(0.05, "Share of random actions in the long run.", share)
    explore_decay: float = option(500.0, "Steps in which the first share falls to the last by a factor e.", positive)
    bootstrap_truncated: bool = option(True, "Bootstrap where an episode was truncated by its length.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.loss not in ("huber", "squared"):
            raise InvalidInput(f"loss must be 'huber' or 'squared', not {self.loss!r}.")
        object.__setattr__(self, "widths", tuple(count("widths", width) for width in self.widths))

    @property
    def first_step(self) -> int:
        """The number of steps before the first gradient step."""
        return -(-self.start // self.train_every) * self.train_every

    def check(self, spaces: EnvironmentSpaces, steps: int) -> None:
        super().check(spaces, steps)
        if steps < self.first_step:
            raise InvalidInput(
                f"steps must be at least {self.first_step}, the start of learning, or nothing is learned, not {steps}: "
                "train longer, or set start lower."
            )

    def transformation(self) -> optax.GradientTransformation:
        chosen = OPTIMISERS[self.optimiser](self.learning_rate)
        return chosen if self.clamp is None else optax.chain(optax.clip(self.clamp), chosen)

    def make_network(self, spaces: EnvironmentSpaces, key: PRNGKeyArray) -> Network:
        return make_network(self.network, spaces.box, spaces.actions, self.widths, self.features, key)

    def parameters(self, spaces: EnvironmentSpaces) -> int:
        shapes = jax.eval_shape(lambda key: eqx.filter(self.make_network(spaces, key), eqx.is_array), jax.random.key(0))
        return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes))

    def init(self, spaces: EnvironmentSpaces, key: PRNGKeyArray, copies: int = 1) -> DeepQState:
        network = self.make_network(spaces, key)
        buffer = memory.empty(self.replay, spaces.box.dimension, copies)
        return DeepQState(network, network, self.transformation().init(eqx.filter(network, eqx.is_array)), buffer)

    def act(self, state: DeepQState, observation: Float[Array, "copies d"], now: Moment) -> Int[Array, " copies"]:
        return self.explore(jax.vmap(state.network)(observation), now)

    def explore(self, values: Float[Array, "copies actions"], now: Moment) -> Int[Array, " copies"]:
        """Epsilon-greedy, with a share of random actions that falls exponentially."""
        copies, actions = values.shape
        share = self.explore_last + (self.explore_first - self.explore_last) * jnp.exp(-now.step / self.explore_decay)
        uniform = jax.random.uniform(now.key, (2, copies))
        anything = jnp.minimum((uniform[1] * actions).astype(jnp.int32), actions - 1)
        return jnp.where(uniform[0] < share, anything, jnp.argmax(values, axis=1).astype(jnp.int32))

    def update(self, state: DeepQState, seen: Transition, now: Moment) -> DeepQState:
        copies, steps = seen.action.shape[0], now.step + 1
        buffer = memory.store(state.replay, seen, now.step, self.bootstrap_truncated)

        def gradient(network: Network) -> Network:
            batch = memory.sample(buffer, self.batch, copies, now)
            return eqx.filter_grad(self.batch_loss)(network, self.goals(state.target, batch), batch)

        ready = (steps * copies >= self.start) & (steps % self.train_every == 0)
        return self.descend(state, buffer, gradient, ready, steps % self.target_every == 0)

    def descend(
        self, state: DeepQState, buffer: Array, gradient: Callable[[Network], Network], ready: Array, copied: Array
    ) -> DeepQState:
        """Returns the state with this buffer, after an optimiser's step if `ready`, its target copied if `copied`."""

        def learn(network: Network, optimiser: PyTree) -> tuple[Network, PyTree]:
            return self.apply(network, optimiser, gradient(network))

        network, optimiser = when(ready, learn, state.network, state.optimiser)
        target = jax.tree.map(lambda new, old: jnp.where(copied, new, old), network, state.target)
        return state._replace(network=network, target=target, optimiser=optimiser, replay=buffer)

    def goals(self, target: Network, batch: Transition) -> Float[Array, " batch"]:
        """Rewards plus the discounted best value that follows; no gradient goes through them."""
        following = jnp.where(batch.terminated, 0.0, jax.vmap(target)(batch.next_state).max(axis=1))
        return lax.stop_gradient(batch.reward + self.gamma * following)

    def batch_loss(self, network: Network, goals: Float[Array, " batch"], batch: Transition) -> Float[Array, ""]:
        return self.losses(chosen(jax.vmap(network)(batch.state), batch.action) - goals).mean()

    def losses(self, difference: Float[Array, " batch"]) -> Float[Array, " batch"]:
        return optax.losses.huber_loss(difference) if self.loss == "huber" else difference**2 / 2

    def apply(self, network: Network, optimiser: PyTree, gradient: Network) -> tuple[Network, PyTree]:
        weights: PyTree = eqx.filter(network, eqx.is_array)
        slopes: PyTree = gradient
        updates, optimiser = self.transformation().update(slopes, optimiser, weights)
        return eqx.apply_updates(network, updates), optimiser

    def finish(self, state: DeepQState, noise: Noise) -> Network:
        return state.network

    current = finish


@dataclass(frozen=True, kw_only=True)
class NoNoise(DeepQ):
    """The non-private twin of the other methods: on the true reward, without noise."""

    name: ClassVar[str] = "none"

    def certificate(self, spaces: EnvironmentSpaces, steps: int) -> Certificate:
        remark = "Trained on the true reward without any noise."
        return Certificate(method=self.name, standing="none", remarks=(remark,))


def chosen(values: Float[Array, "batch actions"], action: Int[Array, " batch"]) -> Float[Array, " batch"]:
    """The value of the action that was taken; a sum over actions, because gathers are slow to differentiate."""
    return jnp.where(jnp.arange(values.shape[1]) == action[:, None], values, 0.0).sum(axis=1)


def when(
    ready: Array, learn: Callable[[PyTree, PyTree], tuple[PyTree, PyTree]], network: PyTree, optimiser: PyTree
) -> tuple[PyTree, PyTree]:
    """Returns what `learn` makes of network (or networks) and optimiser, when it is time; else as they are."""
    arrays, static = eqx.partition(network, eqx.is_array)

    def yes(operands: tuple[PyTree, PyTree]) -> tuple[PyTree, PyTree]:
        network, optimiser = learn(eqx.combine(operands[0], static), operands[1])
        return eqx.filter(network, eqx.is_array), optimiser

    arrays, optimiser = lax.cond(ready, yes, lambda operands: operands, (arrays, optimiser))
    return eqx.combine(arrays, static), optimiser
