"""The frozen-noise check of methods that noise as they go: nobody moves a private step farther than its noise covers.

A certificate says that neighbours are at most so far apart before noise. With the noise held fixed, that can be looked
at: the method's own code runs again and again on rewards that an adversary chooses within the relation. What it moves
the farthest is a lower bound of the sensitivity; the noise that goes on it says which one was stated. A movement above
that refutes the certificate, whatever the theory says; one close to it says that no noise is wasted.

How far rewards move a step is looked at in one round, from public beginnings, with normals that are all 1: whatever a
method does to them on the way shows as a change of the noise's size. Through all rounds of a short training, nothing
but the noise may stand between rewards and what is released, and no normal may be used twice: there they are tags that
are all different. The step is the method's own (`Method.private_step`), looked at through `watched`.
"""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from quietq.audit.finding import Movement, Unprotected
from quietq.paper.agents import EnvironmentSpaces, InLoopMethod, Transition
from quietq.paper.agents.in_loop_method import NoiseDraw, UnitNoise
from quietq.paper.agents.method import Moment
from quietq.paper.agents.protect import Protected, watched
from quietq.paper.agents.trainer import spaces_of
from quietq.privacy import InvalidInput
from quietq.worlds import World

_WIDEST = 8.0
_TAGS = 2**18
_NEAR = 1e-5  # far above rounding, far below what is between two tags
Rewards = Float[Array, " rewards"]
Look = Callable[[Rewards], tuple[Float[Array, " numbers"], Float[Array, ""]]]
"""A function from rewards to what would be noised, in units in which the noise is alike, and the noise's scale."""


def frozen_sensitivity(
    method: InLoopMethod,
    spaces: EnvironmentSpaces | World,
    *,
    rewards: int = 24,
    same: bool = False,
    name: str | None = None,
    climb: bool = True,
    seed: int = 0,
) -> Movement:
    """Searches for the rewards that move a method's private step farthest, beside what its noise covers.

    Raises Unprotected if rewards reach what is released by another way than through the noise, or if a normal is used
    twice.

    Args:
        method: Any method that noises as it goes, or a copy of one that may be broken.
        spaces: A world, or what is public about an environment.
        rewards: The number of rewards in a round.
        same: Whether all are observed in one state under one action.
        name: The name of the movement.
        climb: Whether there is a gradient search, without which it compiles in half the time.
        seed: Makes the search repeatable.

    >>> from quietq import Budget, SupBall
    >>> from quietq.paper import InputNoise
    >>> from quietq.worlds import WALK
    >>> move = frozen_sensitivity(InputNoise(relation=SupBall(0.1), budget=Budget(0.9, 1e-4)), WALK, rewards=9)
    >>> round(move.stated, 3), round(move.found, 3)  # 0.1 times the root of 9
    (0.3, 0.3)

    """
    try:
        step = FrozenStep(method, spaces, rewards=rewards, same=same, name=name, seed=seed)
        best = Search(step.name, step.look, step.centre, step.radius, climb, seed).run()
        move = Movement(step.name, stated=best.scale * step.hidden, found=best.found, by=best.by)
        if not move.exceeds:
            step.check_ways(seed)
    except jax.errors.UnexpectedTracerError as error:
        raise InvalidInput(
            f"{name or method.name} cannot be looked into: it noises inside compiled code of its own (jit, scan or "
            "cond). Give the audit a private step that is not compiled yet."
        ) from error
    return move


class Tags(UnitNoise):
    """Normals that are all different, exact in float32, and wide: no mean, sum or cut-off of them is one of them."""

    def __init__(self) -> None:
        self._left = (np.random.default_rng(0).permutation(_TAGS) + 0.5) * (2 * _WIDEST / _TAGS) - _WIDEST
        self.drawn = np.zeros(0)

    def normals(self, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        number = math.prod(shape)
        if number > len(self._left):
            raise InvalidInput(f"At most {_TAGS} normals can be distinguished: audit a smaller network.")
        out, self._left = np.split(self._left, [number])
        self.drawn = np.append(self.drawn, out)
        return out.reshape(shape)


class FrozenStep:
    """The private step of a method (or of a copy that may be broken) as a function of the rewards that take part."""

    def __init__(
        self,
        method: InLoopMethod,
        spaces: EnvironmentSpaces | World,
        *,
        rewards: int = 24,
        same: bool = False,
        name: str | None = None,
        seed: int = 0,
    ) -> None:
        spaces = spaces_of(spaces) if isinstance(spaces, World) else spaces
        key, tags = jax.random.key(seed), Tags()
        self._batch = _transitions(spaces, rewards, same, seed)
        self._step = step = method.private_step(spaces, self._batch, key)
        self._start = step.method.init(spaces, key, rewards)
        self.name, self.radius = name or method.name, method.radius
        self.hidden = step.method.mu / math.sqrt(step.rounds)  # by one round, for noise of size 1
        self.centre = np.broadcast_to(np.asarray(step.centre, np.float64), rewards)
        self.ones, self.tagged = (  # what the method draws where all normals are 1, and where all are different
            jax.tree.map(jnp.asarray, step.method.draw(spaces, step.steps, entropy)) for entropy in (UnitNoise(), tags)
        )
        self._tags, self._told = np.sort(tags.drawn), []
        self._update, self._finish = map(self._without, (step.method.update, step.method.finish))

    def look(self, rewards: Rewards) -> tuple[Float[Array, " numbers"], Float[Array, ""]]:
        with watched() as calls:
            self._step.one_round(self._batch._replace(reward=rewards), self.ones)
        if len(calls) != 1:
            raise Unprotected(f"A private step noises once, but this one did so {len(calls)} times.")
        value, normals, scale = calls[0]
        return jnp.ravel(value / normals), jnp.asarray(scale)

    def check_ways(self, seed: int = 0) -> None:
        """Raises Unprotected if rewards reach what is released round the noise, or if a normal was used twice.

        All rounds are run with zeros in place of what they noise. What they let out must then be the same, bit for bit,
        whatever the rewards, and so must the normals that they used: of each that was drawn, a fixed part, once.
        """
        number, rng = len(self.centre), np.random.default_rng(seed)
        spread, signs = rng.normal(size=number), rng.choice([-1.0, 1.0], number)
        public, normals = self._emptied(self.centre, self.tagged)
        near = self.centre + self.radius * rng.uniform(-1, 1, number)
        others = [near, 1e-3 * spread, spread, 1e3 * spread, 1e30 * signs]
        for rewards in [*others, *(np.full(number, reward) for reward in (0.0, 1.0, -1.0, np.inf, np.nan))]:
            other_public, other_normals = self._emptied(rewards, self.tagged)
            if _bits(other_public) != _bits(public):
                raise Unprotected(f"Rewards reach what {self.name} releases without going through its noise.")
            if sorted(_bits(other_normals)) != sorted(_bits(normals)):
                raise Unprotected(f"Which normals {self.name} uses depends on rewards.")
        if len(normals) != self._step.rounds:
            raise Unprotected(f"{self.name} has {self._step.rounds} rounds, but noised {len(normals)} times.")
        self._check_used_once(normals)

    def _check_used_once(self, used: list[np.ndarray]) -> None:
        """Against what all normals would be if every one that was drawn were 1."""
        sizes = self._emptied(self.centre, self.ones)[1]
        with np.errstate(all="ignore"):
            found = np.concatenate(
                [(tag / size.astype(np.float64)).ravel() for tag, size in zip(used, sizes, strict=True)]
            )
        places = np.searchsorted(self._tags, found - _NEAR)
        near = np.abs(np.append(self._tags, np.inf)[places] - found) <= _NEAR
        if not near.all():  # False for NaN
            raise Unprotected(f"What {self.name} uses for noise is not the independent normals that were drawn.")
        if len(np.unique(places)) < len(places):
            raise Unprotected(f"{self.name} uses a normal twice: two of its noises are the same.")

    def _emptied(self, rewards: np.ndarray, noise: NoiseDraw) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Returns what all rounds release, on the way and at the end, and the normals in them, in no order."""
        self._told.clear()
        state, public = self._start, []
        seen = self._batch._replace(reward=jnp.asarray(rewards, jnp.float32))
        for number in range(self._step.calls):
            state = self._update(state, seen, Moment(jnp.array(number), jax.random.key(0), noise))
            public.append(self._step.public(state))
        public.append(self._finish(state, noise))
        jax.effects_barrier()
        return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(public, eqx.is_array))], list(self._told)

    def _without(self, function: Callable[..., PyTree]) -> Callable[..., PyTree]:
        """Compiled, with zeros in place of what it noises; the normals are given as it runs."""

        def tell(call: Protected) -> Array:
            jax.debug.callback(lambda normals: self._told.append(np.array(normals)), call.normals)
            return jnp.zeros_like(call.value)

        def emptied(*arguments: PyTree) -> PyTree:
            with watched(instead=tell):
                return function(*arguments)

        return eqx.filter_jit(emptied)


def _transitions(spaces: EnvironmentSpaces, number: int, same: bool, seed: int) -> Transition:
    rng, box = np.random.default_rng(seed), spaces.box
    states = rng.uniform(box.low, box.high, (2, number, box.dimension))
    actions = rng.integers(0, spaces.actions, number).astype(np.int32)
    if same:
        states[0], actions[:] = states[0, 0], 0
    before, after = jnp.asarray(states, jnp.float32)
    nothing = jnp.zeros(number, bool)
    return Transition(before, jnp.asarray(actions), jnp.zeros(number), after, nothing, nothing)


def _bits(arrays: list[np.ndarray]) -> list[bytes]:
    return [each.tobytes() for each in arrays]


class Search:
    """The adversary's search: rewards that move a private step the farthest, each by no more than the radius.

    Neighbours lie on both sides of a centre, at plus and minus half the move. The squared distance of what they give is
    close to a convex function of the direction, which is largest at a corner of the cube: so the gradient search goes
    to the corner that the gradient points to, again and again, from many beginnings at once, and the greedy one turns
    the one sign that helps most. Random signs and random points of the cube, around random centres, are there for steps
    that are not as one thinks. All look at as many directions at once as there are rewards.

    The best of them is told by `found`, how far apart neighbours are, the noise's `scale`, the `direction`, which is
    each reward's move in radii, and `by`, how it was found.
    """

    def __init__(
        self, name: str, look: Look, centre: np.ndarray, radius: float, climb: bool = True, seed: int = 0
    ) -> None:
        self._name, self._centre, self._radius, self._number = name, centre, radius, len(centre)
        self._climbs, self._rng = 12 if climb else 0, np.random.default_rng(seed)
        self.found, self.scale, self.by = 0.0, float("nan"), "nothing"
        self.direction = np.zeros(self._number)

        def squared(direction: Rewards, centre: Rewards) -> tuple[Float[Array, ""], Float[Array, " two"]]:
            half = radius / 2 * direction
            both, scales = jax.vmap(look)(jnp.stack([centre + half, centre - half]))
            return ((both[0] - both[1]) ** 2).sum(), scales

        def without(direction: Rewards, centre: Rewards) -> Any:
            return squared(direction, centre), jnp.zeros_like(direction)

        self._look = jax.jit(jax.vmap(jax.value_and_grad(squared, has_aux=True) if climb else without))

    def run(self) -> "Search":
        shape = (self._number, self._number)
        signs = self._rng.choice([-1.0, 1.0], shape)
        self._try(np.ones(shape), "all alike")
        self._try(signs, "random signs")
        self._try(self._rng.uniform(-1, 1, shape), "random")
        self._try(signs, "random signs", self._rng.uniform(-self._radius, self._radius, shape))
        signs[0] = 1.0
        for _ in range(self._climbs):
            _, slopes = self._try(signs, "gradient")
            corners = np.where(slopes == 0, signs, np.sign(slopes))
            if (corners == signs).all():
                break
            signs = corners
        self._greedy()
        return self

    def _greedy(self) -> None:
        turns = 1 - 2 * np.eye(self._number)
        direction = np.where(self.direction < 0, -1.0, 1.0)
        farthest = self.found**2
        for _ in range(2 * self._number):
            squares, _ = self._try(direction * turns, "greedy")
            if squares.max() <= farthest:
                break
            direction, farthest = (direction * turns)[squares.argmax()], squares.max()

    def _try(
        self, directions: np.ndarray, by: str, around: np.ndarray | float = 0.0
    ) -> tuple[Float[np.ndarray, " tries"], Float[np.ndarray, "tries rewards"]]:
        centres = np.broadcast_to(self._centre + around, directions.shape)
        (squares, scales), slopes = self._look(jnp.asarray(directions, jnp.float32), jnp.asarray(centres, jnp.float32))
        found, scales = np.sqrt(np.asarray(squares, np.float64)), np.asarray(scales)
        if not (np.isfinite(found).all() and np.isfinite(scales).all() and (scales > 0).all()):
            raise Unprotected(f"The noise of {self._name} has no size that one could audit.")
        if np.ptp(scales) > 1e-6 * scales.max():
            raise Unprotected(f"The noise's scale of {self._name} depends on rewards, so it is not public.")
        # What is the same but for rounding is the simpler search's, which came first.
        if found.max() > self.found * (1 + 1e-6) or self.by == "nothing":
            best = int(found.argmax())
            self.found, self.scale, self.by = float(found[best]), float(scales.min()), by
            self.direction = directions[best].copy()
        return np.asarray(squares, np.float64), np.asarray(slopes, np.float64)
