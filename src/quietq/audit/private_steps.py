"""Each certified method's private step, as a function of rewards: what would be noised, and by how much.

Networks, states and actions are public, hence fixed here, and so is the noise. The step is the method's own code,
looked at through `watched`; a broken copy of a method goes the same way, by the class that it was made from. For its
size, normals are all 1, so that whatever a method does to them on the way shows as a change of the noise's size. For
who uses them, they are tags that are all different, through all rounds of a training.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from quietq.audit.movement import Unprotected
from quietq.learning.deep_q import chosen
from quietq.learning.gradient import GradientNoise
from quietq.learning.in_loop_method import InLoopMethod
from quietq.learning.input import InputNoise
from quietq.learning.method import Spaces, Transition
from quietq.learning.output import OutputNoise
from quietq.learning.protect import Protected, watched
from quietq.learning.value import ValueNoise
from quietq.learning.value_network import NetworkValueNoise
from quietq.privacy.errors import InvalidInput

ROUNDS = 3
"""Rounds that a run of the step's method has, where it has rounds: their number is part of what is audited."""
_WIDEST = 8.0
_TAGS = 2**18


class Emptied(NamedTuple):
    """What all rounds of a training gave, when there were zeros in place of everything that was noised."""

    public: list[np.ndarray]
    """Whatever it let out on the way and at the end."""
    normals: list[np.ndarray]
    """The normals of each call of `protect`, in no order."""


@dataclass(frozen=True)
class PrivateStep:
    """A pure function of rewards, and what one of its rounds promises."""

    name: str
    look: Callable[[Float[Array, " rewards"]], tuple[Float[Array, " numbers"], Float[Array, ""]]]
    """From rewards to what would be noised, in units in which the noise is alike everywhere, and the noise's scale."""
    emptied: Callable[[Float[np.ndarray, " rewards"], Any], Emptied]
    """From rewards, and what the method drew, to all rounds without what goes through the noise."""
    ones: Any
    """What the method draws where all normals are 1."""
    tagged: Any
    """What it draws where all normals are different."""
    tags: Float[np.ndarray, " drawn"]
    """Those normals."""
    rounds: int
    """How often a training noises."""
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


class _Tags(_Ones):
    """Normals that are all different, exact in float32, and wide: no mean, sum or cut-off of them is one of them."""

    def __init__(self) -> None:
        self._left = (np.random.default_rng(0).permutation(_TAGS) + 0.5) * (2 * _WIDEST / _TAGS) - _WIDEST
        self.drawn = np.zeros(0)

    def normals(self, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        number = math.prod(shape)
        if number > len(self._left):
            raise InvalidInput(f"At most {_TAGS} normals can be told apart: audit a smaller network.")
        out, self._left = np.split(self._left, [number])
        self.drawn = np.append(self.drawn, out)
        return out.reshape(shape)


def private_step(
    method: InLoopMethod,
    spaces: Spaces,
    *,
    rewards: int = 24,
    same: bool = False,
    name: str | None = None,
    seed: int = 0,
) -> PrivateStep:
    """The private step of a method (or of a copy that may be broken) in which so many rewards take part.

    Rounds are as long as that, whatever the method says; with `same`, all are seen in one state under one action.
    """
    for kind, make in _STEPS.items():
        if isinstance(method, kind):
            batch, key = _transitions(spaces, rewards, same, seed), jax.random.key(seed)
            made: _Made = make(method, spaces, batch, key)
            tags = _Tags()
            ones, tagged = (
                jax.tree.map(jnp.asarray, made.method.draw(spaces, made.steps, entropy)) for entropy in (_Ones(), tags)
            )
            mu = made.method.promised()[1].mu
            return PrivateStep(
                name=name or method.name,
                look=_looking(made.run, batch, ones),
                emptied=_emptying(made, batch, made.method.init(spaces, key, rewards)),
                ones=ones,
                tagged=tagged,
                tags=tags.drawn,
                rounds=made.rounds,
                centre=made.centre,
                radius=method.radius,
                mu=mu / math.sqrt(made.rounds),
            )
    raise InvalidInput(f"There is no private step to audit in {type(method).__name__}.")


def _looking(run: Callable[[Transition, Any], Any], batch: Transition, noise: Any) -> Any:
    def look(rewards: Float[Array, " rewards"]) -> tuple[Float[Array, " numbers"], Float[Array, ""]]:
        with watched() as calls:
            run(batch._replace(reward=rewards), noise)
        if len(calls) != 1:
            raise Unprotected(f"A private step noises once, but this one did so {len(calls)} times.")
        value, normals, scale = calls[0]
        return jnp.ravel(value / normals), jnp.asarray(scale)

    return look


def _emptying(made: "_Made", batch: Transition, state: Any) -> Any:
    """All rounds in the method's own compiled steps: what it noises is told as it runs, and zeros take its place."""
    told: list[np.ndarray] = []

    def tell(call: Protected) -> Array:
        jax.debug.callback(lambda normals: told.append(np.array(normals)), call.normals)
        return jnp.zeros_like(call.value)

    @eqx.filter_jit
    def update(state: Any, rewards: Array, step: Array, noise: Any) -> Any:
        with watched(instead=tell):
            return made.method.update(state, batch._replace(reward=rewards), step, jax.random.key(0), noise)

    @eqx.filter_jit
    def finish(state: Any, noise: Any) -> Any:
        with watched(instead=tell):
            return made.method.finish(state, noise)

    def emptied(rewards: Float[np.ndarray, " rewards"], noise: Any) -> Emptied:
        told.clear()
        now, public = state, []
        for step in range(made.calls):
            now = update(now, jnp.asarray(rewards, jnp.float32), jnp.array(step), noise)
            public.append(made.public(now))
        public.append(finish(now, noise))
        jax.effects_barrier()
        return Emptied([np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(public, eqx.is_array))], list(told))

    return emptied


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


class _Made(NamedTuple):
    """What is particular to a method."""

    method: Any
    """As it is audited."""
    steps: int
    rounds: int
    """How many rounds share the budget."""
    calls: int
    """Of `update`, before `finish`, in all rounds."""
    run: Callable[[Transition, Any], Any]
    """The private step of one round."""
    public: Callable[[Any], Any]
    """What may be seen of a state."""
    centre: Float[np.ndarray, " rewards"]
    """Rewards around which to search."""


def _value(method: ValueNoise, spaces: Spaces, batch: Transition, key: Array) -> _Made:
    method = replace(method, round_steps=2)  # so that the first step, all copies at once, ends none
    number, steps = len(batch.action), 2 * ROUNDS - 1  # and so that the end of training ends the last
    state = method.init(spaces, key, number)

    def run(seen: Transition, noise: Any) -> Any:
        return method.finish(_unwatched(method.update, state, seen, noise), noise)

    return _Made(method, steps, ROUNDS, steps, run, lambda now: now._replace(unreleased=None), np.zeros(number))


def _network(method: NetworkValueNoise, spaces: Spaces, batch: Transition, key: Array) -> _Made:
    number = len(batch.action)
    method = replace(method, batch=number)
    network = method.init(spaces, key, number).network

    def run(seen: Transition, noise: Any) -> Any:
        return method.noised(network, network, seen, jnp.array(1), noise)

    return _Made(method, ROUNDS * number, ROUNDS, ROUNDS, run, _but_for_replay, np.zeros(number))


def _gradient(method: GradientNoise, spaces: Spaces, batch: Transition, key: Array) -> _Made:
    number = len(batch.action)
    method = replace(method, batch=number, start=1, train_every=1, replay=ROUNDS * number)
    network = method.init(spaces, key).network

    def run(seen: Transition, noise: Any) -> Any:
        return method.noised(network, network, seen, noise, jnp.array(1))

    # Where nothing is a surprise: from there, clipping cuts off the least of what rewards move.
    expected = chosen(jax.vmap(network)(batch.state), batch.action) - method.goals(network, batch)
    return _Made(method, ROUNDS, ROUNDS, ROUNDS, run, _but_for_replay, np.asarray(expected, np.float64))


def _input(method: InputNoise, spaces: Spaces, batch: Transition, key: Array) -> _Made:
    number = len(batch.action)
    state = method.init(spaces, key, number)

    def run(seen: Transition, noise: Any) -> Any:
        return method.update(state, seen, jnp.array(0), key, noise)

    # Each reward is a round of its own, and so many of them are one vector.
    return _Made(method, ROUNDS * number, ROUNDS, ROUNDS, run, lambda now: now, np.zeros(number))


def _output(method: OutputNoise, spaces: Spaces, batch: Transition, key: Array) -> _Made:
    number = len(batch.action)
    state = method.init(spaces, key, number)

    def run(seen: Transition, noise: Any) -> Any:
        return method.finish(_unwatched(method.update, state, seen, noise), noise)

    return _Made(method, number, 1, 1, run, lambda now: now.network, np.zeros(number))


def _but_for_replay(state: Any) -> Any:
    return state._replace(replay=None)


def _unwatched(update: Callable[..., Any], state: Any, seen: Transition, noise: Any) -> Any:
    """A first step that releases nothing; what its branches not taken would noise is not looked at."""
    with watched():
        return update(state, seen, jnp.array(0), jax.random.key(0), noise)


_STEPS: dict[type[InLoopMethod], Callable[..., _Made]] = {
    ValueNoise: _value,
    NetworkValueNoise: _network,
    GradientNoise: _gradient,
    InputNoise: _input,
    OutputNoise: _output,
}
