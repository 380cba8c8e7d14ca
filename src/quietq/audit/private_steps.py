"""Each certified method's private step, as a function of rewards: what would be noised, and by how much.

Networks, states and actions are public, hence fixed here, and so is the noise. The step is the method's own code,
looked at through `watched`; a broken copy of a method goes the same way, by the class that it was made from. Normals
are all 1, so that whatever a method does to them on the way shows as a change of the noise's size.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from quietq.audit.movement import Unprotected
from quietq.learning.deep_q import chosen
from quietq.learning.gradient import GradientNoise
from quietq.learning.input import InputNoise
from quietq.learning.method import Spaces, Transition
from quietq.learning.output import OutputNoise
from quietq.learning.promise import Promising
from quietq.learning.protect import watched
from quietq.learning.value import ValueNoise
from quietq.learning.value_network import NetworkValueNoise
from quietq.privacy.errors import InvalidInput

ROUNDS = 3
"""Rounds that a run of the step's method has, where it has rounds: their number is part of what is audited."""


@dataclass(frozen=True)
class PrivateStep:
    """A pure function of rewards, and what one of its rounds promises."""

    name: str
    look: Callable[[Float[Array, " rewards"]], tuple[Float[Array, " numbers"], Float[Array, ""]]]
    """From rewards to what would be noised, in units in which the noise is alike everywhere, and the noise's scale."""
    released: Callable[[Float[Array, " rewards"]], Float[Array, " numbers"]]
    """From rewards to what the step lets out, with noise; `protect` rounds it, so its derivative must be 0."""
    centre: Float[np.ndarray, " rewards"]
    """Rewards around which the step is most sensitive, as far as is known."""
    radius: float
    """The most that each reward may move."""
    mu: float
    """What one round promises."""


class _Ones:
    """Normals that are all 1: the noise's own size."""

    reproducible = True

    def normals(self, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        return np.ones(shape)

    def uniforms(self, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        raise InvalidInput("Only normal noise can be audited by its private step.")


def private_step(
    method: Promising, spaces: Spaces, *, rewards: int = 24, same: bool = False, name: str | None = None, seed: int = 0
) -> PrivateStep:
    """The private step of a method (or of a copy that may be broken) in which so many rewards take part.

    Rounds are as long as that, whatever the method says; with `same`, all are seen in one state under one action.
    """
    for kind, make in _STEPS.items():
        if isinstance(method, kind):
            batch = _transitions(spaces, rewards, same, seed)
            method, steps, rounds, run, centre = make(method, spaces, batch, jax.random.key(seed))
            noise = jax.tree.map(jnp.asarray, method.draw(spaces, steps, _Ones()))
            mu = method.certificate(spaces, steps).mu
            assert mu is not None
            look, released = _looking(run, batch, noise)
            return PrivateStep(name or method.name, look, released, centre, method.radius, mu / math.sqrt(rounds))
    raise InvalidInput(f"There is no private step to audit in {type(method).__name__}.")


def _looking(run: Callable[[Transition, Any], Any], batch: Transition, noise: Any) -> tuple[Any, Any]:
    def look(rewards: Float[Array, " rewards"]) -> tuple[Float[Array, " numbers"], Float[Array, ""]]:
        with watched() as calls:
            run(batch._replace(reward=rewards), noise)
        if len(calls) != 1:
            raise Unprotected(f"A private step noises once, but this one did so {len(calls)} times.")
        value, normals, scale = calls[0]
        return jnp.ravel(value / normals), jnp.asarray(scale)

    def released(rewards: Float[Array, " rewards"]) -> Float[Array, " numbers"]:
        out = run(batch._replace(reward=rewards), noise)
        return ravel_pytree(eqx.filter(out, eqx.is_inexact_array))[0]

    return look, released


def _transitions(spaces: Spaces, number: int, same: bool, seed: int) -> Transition:
    """Public states and actions, anywhere in the box."""
    rng, box = np.random.default_rng(seed), spaces.box
    states = rng.uniform(box.low, box.high, (2, number, box.dimension))
    actions = rng.integers(0, spaces.actions, number).astype(np.int32)
    if same:
        states[0], actions[:] = states[0, 0], 0
    before, after = jnp.asarray(states, jnp.float32)
    nothing = jnp.zeros(number, bool)
    return Transition(before, jnp.asarray(actions), jnp.zeros(number), after, nothing, nothing)


# Each of these gives the method as it is audited, its steps, how many rounds share the budget, the private step of one
# round, and the rewards around which to search.


def _value(method: ValueNoise, spaces: Spaces, batch: Transition, key: Array) -> tuple[Any, ...]:
    method = replace(method, round_steps=2)  # so that the first step, all copies at once, ends none
    state = method.init(spaces, key, len(batch.action))

    def run(seen: Transition, noise: Any) -> Any:
        return method.finish(_unwatched(method.update, state, seen, noise), noise)

    return method, 2 * ROUNDS, ROUNDS, run, np.zeros(len(batch.action))


def _network(method: NetworkValueNoise, spaces: Spaces, batch: Transition, key: Array) -> tuple[Any, ...]:
    number = len(batch.action)
    method = replace(method, batch=number)
    network = method.init(spaces, key, number).network

    def run(seen: Transition, noise: Any) -> Any:
        return method.noised(network, network, seen, jnp.array(1), noise)

    return method, ROUNDS * number, ROUNDS, run, np.zeros(number)


def _gradient(method: GradientNoise, spaces: Spaces, batch: Transition, key: Array) -> tuple[Any, ...]:
    method = replace(method, batch=len(batch.action), start=1, train_every=1)
    network = method.init(spaces, key).network

    def run(seen: Transition, noise: Any) -> Any:
        return method.noised(network, network, seen, noise, jnp.array(1))

    # Where nothing is a surprise: from there, clipping cuts off the least of what rewards move.
    expected = chosen(jax.vmap(network)(batch.state), batch.action) - method.goals(network, batch)
    return method, ROUNDS, ROUNDS, run, np.asarray(expected, np.float64)


def _input(method: InputNoise, spaces: Spaces, batch: Transition, key: Array) -> tuple[Any, ...]:
    number = len(batch.action)
    state = method.init(spaces, key, number)

    def run(seen: Transition, noise: Any) -> Any:
        return method.update(state, seen, jnp.array(0), key, noise)

    return method, number, 1, run, np.zeros(number)  # each reward is a round of its own, all of them one vector


def _output(method: OutputNoise, spaces: Spaces, batch: Transition, key: Array) -> tuple[Any, ...]:
    state = method.init(spaces, key, len(batch.action))

    def run(seen: Transition, noise: Any) -> Any:
        return method.finish(_unwatched(method.update, state, seen, noise), noise)

    return method, len(batch.action), 1, run, np.zeros(len(batch.action))


def _unwatched(update: Callable[..., Any], state: Any, seen: Transition, noise: Any) -> Any:
    """A first step that releases nothing; what its branches not taken would noise is not looked at."""
    with watched():
        return update(state, seen, jnp.array(0), jax.random.key(0), noise)


_STEPS: dict[type[Promising], Callable[..., tuple[Any, ...]]] = {
    ValueNoise: _value,
    NetworkValueNoise: _network,
    GradientNoise: _gradient,
    InputNoise: _input,
    OutputNoise: _output,
}
