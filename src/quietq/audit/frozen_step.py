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
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from quietq.audit.finding import Movement, Unprotected
from quietq.learning.in_loop_method import InLoopMethod, PrivateStep, UnitNoise
from quietq.learning.method import Moment, Spaces, Transition
from quietq.learning.protect import Protected, watched
from quietq.learning.trainer import spaces_of
from quietq.privacy.errors import InvalidInput
from quietq.worlds.world import World

_WIDEST = 8.0
_TAGS = 2**18
_CLIMBS = 12
_NEAR = 1e-5  # far above rounding, far below what is between two tags


def frozen_sensitivity(
    method: InLoopMethod, spaces: Spaces | World, *, rewards: int = 24, same: bool = False, name: str | None = None,
    climb: bool = True, seed: int = 0,
) -> Movement:  # fmt: skip
    """How far an adversary moves a method's private step, beside what its noise is enough for.

    `spaces` are a world, or what is public about an environment. `method` may be any method that noises as it goes, or
    a copy of one that may be broken. So many `rewards` take part in a round; with `same`, all are seen in one state
    under one action. Without `climb` there is no gradient search, which compiles in half the time. Raises Unprotected
    if rewards reach what is released by another way than through the noise, or if a normal is used twice.

    >>> from quietq import Budget, InputNoise, SupBall
    >>> from quietq.worlds import WALK
    >>> move = frozen_sensitivity(InputNoise(relation=SupBall(0.1), budget=Budget(0.9, 1e-4)), WALK, rewards=9)
    >>> round(move.stated, 3), round(move.found, 3)  # 0.1 times the root of 9
    (0.3, 0.3)
    """
    try:
        step = freeze(method, spaces, rewards=rewards, same=same, name=name, seed=seed)
        best = Search(step, climb, seed).run()
        move = Movement(step.name, stated=best.scale * step.mu, found=best.found, by=best.by)
        if not move.exceeds:
            check_ways(step, seed)
    except jax.errors.UnexpectedTracerError as error:
        raise InvalidInput(
            f"{name or method.name} cannot be looked into: it noises inside compiled code of its own (jit, scan or "
            "cond). Give the audit a private step that is not compiled yet."
        ) from error
    return move


class Emptied(NamedTuple):
    """What all rounds of a training gave, when there were zeros in place of everything that was noised."""

    public: list[np.ndarray]  # whatever it let out on the way and at the end
    normals: list[np.ndarray]  # the normals of each call of `protect`, in no order


@dataclass(frozen=True)
class FrozenStep:
    """A private step as a pure function of rewards, and what one of its rounds promises."""

    name: str
    look: Callable[[Float[Array, " rewards"]], tuple[Float[Array, " numbers"], Float[Array, ""]]]
    """From rewards to what would be noised, in units in which the noise is alike everywhere, and the noise's scale."""
    emptied: Callable[[Float[np.ndarray, " rewards"], Any], Emptied]
    """From rewards, and what the method drew, to all rounds without what goes through the noise."""
    ones: Any  # what the method draws where all normals are 1
    tagged: Any  # what it draws where all normals are different
    tags: Float[np.ndarray, " drawn"]  # those normals
    rounds: int  # how often a training noises
    centre: Float[np.ndarray, " rewards"]  # rewards around which to search
    radius: float  # the most that each reward may move
    mu: float  # what one round promises


class Tags(UnitNoise):
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


def freeze(
    method: InLoopMethod, spaces: Spaces | World, *, rewards: int = 24, same: bool = False, name: str | None = None,
    seed: int = 0,
) -> FrozenStep:  # fmt: skip
    """The private step of a method (or of a copy that may be broken) in which so many rewards take part."""
    spaces = spaces_of(spaces) if isinstance(spaces, World) else spaces
    batch, key, tags = _transitions(spaces, rewards, same, seed), jax.random.key(seed), Tags()
    step = method.private_step(spaces, batch, key)
    ones, tagged = (
        jax.tree.map(jnp.asarray, step.method.draw(spaces, step.steps, entropy)) for entropy in (UnitNoise(), tags)
    )

    def look(rewards: Float[Array, " rewards"]) -> tuple[Float[Array, " numbers"], Float[Array, ""]]:
        with watched() as calls:
            step.one_round(batch._replace(reward=rewards), ones)
        if len(calls) != 1:
            raise Unprotected(f"A private step noises once, but this one did so {len(calls)} times.")
        value, normals, scale = calls[0]
        return jnp.ravel(value / normals), jnp.asarray(scale)

    return FrozenStep(
        name or method.name, look, _emptying(step, batch, step.method.init(spaces, key, rewards)), ones, tagged,
        tags.drawn, step.rounds, np.broadcast_to(np.asarray(step.centre, np.float64), rewards), method.radius,
        step.method.promised()[1].mu / math.sqrt(step.rounds),
    )  # fmt: skip


def _emptying(step: PrivateStep, batch: Transition, start: Any) -> Callable[..., Emptied]:
    """All rounds in the method's own compiled steps: what it noises is told as it runs, and zeros take its place."""
    told: list[np.ndarray] = []

    def tell(call: Protected) -> Array:
        jax.debug.callback(lambda normals: told.append(np.array(normals)), call.normals)
        return jnp.zeros_like(call.value)

    @eqx.filter_jit
    def update(state: Any, rewards: Array, number: Array, noise: Any) -> Any:
        with watched(instead=tell):
            return step.method.update(state, batch._replace(reward=rewards), Moment(number, jax.random.key(0), noise))

    @eqx.filter_jit
    def finish(state: Any, noise: Any) -> Any:
        with watched(instead=tell):
            return step.method.finish(state, noise)

    def emptied(rewards: Float[np.ndarray, " rewards"], noise: Any) -> Emptied:
        told.clear()
        state, public = start, []
        for number in range(step.calls):
            state = update(state, jnp.asarray(rewards, jnp.float32), jnp.array(number), noise)
            public.append(step.public(state))
        public.append(finish(state, noise))
        jax.effects_barrier()
        return Emptied([np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(public, eqx.is_array))], list(told))

    return emptied


def _transitions(spaces: Spaces, number: int, same: bool, seed: int) -> Transition:
    rng, box = np.random.default_rng(seed), spaces.box
    states = rng.uniform(box.low, box.high, (2, number, box.dimension))
    actions = rng.integers(0, spaces.actions, number).astype(np.int32)
    if same:
        states[0], actions[:] = states[0, 0], 0
    before, after = jnp.asarray(states, jnp.float32)
    nothing = jnp.zeros(number, bool)
    return Transition(before, jnp.asarray(actions), jnp.zeros(number), after, nothing, nothing)


def check_ways(step: FrozenStep, seed: int = 0) -> None:
    """Raises Unprotected if rewards reach what is released round the noise, or if a normal was used twice.

    All rounds are run with zeros in place of what they noise. What they let out must then be the same, bit for bit,
    whatever the rewards, and so must the normals that they used: of each that was drawn, a fixed part, once.
    """
    number, rng = len(step.centre), np.random.default_rng(seed)
    spread, signs = rng.normal(size=number), rng.choice([-1.0, 1.0], number)
    first = step.emptied(step.centre, step.tagged)
    others = [step.centre + step.radius * rng.uniform(-1, 1, number), 1e-3 * spread, spread, 1e3 * spread, 1e30 * signs]
    others += [np.full(number, reward) for reward in (0.0, 1.0, -1.0, np.inf, np.nan)]
    for rewards in others:
        other = step.emptied(rewards, step.tagged)
        if _bits(other.public) != _bits(first.public):
            raise Unprotected(f"Rewards reach what {step.name} releases without going through its noise.")
        if sorted(_bits(other.normals)) != sorted(_bits(first.normals)):
            raise Unprotected(f"Which normals {step.name} uses depends on rewards.")
    if len(first.normals) != step.rounds:
        raise Unprotected(f"{step.name} has {step.rounds} rounds, but noised {len(first.normals)} times.")
    _check_used_once(step, first.normals)


def _check_used_once(step: FrozenStep, used: list[np.ndarray]) -> None:
    """Against what all normals would be if every one that was drawn were 1."""
    sizes = np.concatenate([each.ravel() for each in step.emptied(step.centre, step.ones).normals]).astype(np.float64)
    normals = np.concatenate([each.ravel() for each in used])
    tags = np.sort(step.tags)
    with np.errstate(all="ignore"):
        found = normals / sizes
    places = np.searchsorted(tags, found - _NEAR)
    near = np.abs(np.append(tags, np.inf)[places] - found) <= _NEAR
    if not near.all():  # False for NaN
        raise Unprotected(f"What {step.name} uses for noise is not the independent normals that were drawn.")
    if len(np.unique(places)) < len(places):
        raise Unprotected(f"{step.name} uses a normal twice: two of its noises are the same.")


def _bits(arrays: list[np.ndarray]) -> list[bytes]:
    return [each.tobytes() for each in arrays]


class Farthest(NamedTuple):
    """The best that was found: how far apart neighbours are, the noise's scale, each reward's move in radii, how."""

    found: float
    scale: float
    direction: Float[np.ndarray, " rewards"]
    by: str


class Search:
    """The adversary's search: rewards that move a private step the farthest, each by no more than the radius.

    Neighbours lie on both sides of a centre, at plus and minus half the move. The squared distance of what they give is
    close to a convex function of the direction, which is largest at a corner of the cube: so the gradient search goes
    to the corner that the gradient points to, again and again, from many beginnings at once, and the greedy one turns
    the one sign that helps most. Random signs and random points of the cube, around random centres, are there for steps
    that are not as one thinks. All look at as many directions at once as there are rewards.
    """

    def __init__(self, step: FrozenStep, climb: bool = True, seed: int = 0) -> None:
        self._climbs = _CLIMBS if climb else 0
        self._rng, self._number, self._step = np.random.default_rng(seed), len(step.centre), step
        self._best = Farthest(0.0, float("nan"), np.zeros(self._number), "nothing")

        def squared(
            direction: Float[Array, " rewards"], centre: Float[Array, " rewards"]
        ) -> tuple[Float[Array, ""], Float[Array, " two"]]:
            half = step.radius / 2 * direction
            both, scales = jax.vmap(step.look)(jnp.stack([centre + half, centre - half]))
            return jnp.sum((both[0] - both[1]) ** 2), scales

        def without(direction: Float[Array, " rewards"], centre: Float[Array, " rewards"]) -> Any:
            return squared(direction, centre), jnp.zeros_like(direction)

        self._look = jax.jit(jax.vmap(jax.value_and_grad(squared, has_aux=True) if climb else without))

    def run(self) -> Farthest:
        shape = (self._number, self._number)
        signs = self._rng.choice([-1.0, 1.0], shape)
        self._try(np.ones(shape), "all alike")
        self._try(signs, "random signs")
        self._try(self._rng.uniform(-1, 1, shape), "random")
        self._try(signs, "random signs", self._rng.uniform(-self._step.radius, self._step.radius, shape))
        signs[0] = 1.0
        for _ in range(self._climbs):
            _, slopes = self._try(signs, "gradient")
            corners = np.where(slopes == 0, signs, np.sign(slopes))
            if (corners == signs).all():
                break
            signs = corners
        self._greedy()
        return self._best

    def _greedy(self) -> None:
        turns = 1 - 2 * np.eye(self._number)
        direction = np.where(self._best.direction < 0, -1.0, 1.0)
        farthest = self._best.found**2
        for _ in range(2 * self._number):
            squares, _ = self._try(direction * turns, "greedy")
            if squares.max() <= farthest:
                break
            direction, farthest = (direction * turns)[squares.argmax()], squares.max()

    def _try(
        self, directions: np.ndarray, by: str, around: np.ndarray | float = 0.0
    ) -> tuple[Float[np.ndarray, " tries"], Float[np.ndarray, "tries rewards"]]:
        centres = np.broadcast_to(self._step.centre + around, directions.shape)
        (squares, scales), slopes = self._look(jnp.asarray(directions, jnp.float32), jnp.asarray(centres, jnp.float32))
        found, scales = np.sqrt(np.asarray(squares, np.float64)), np.asarray(scales)
        if not (np.isfinite(found).all() and np.isfinite(scales).all() and (scales > 0).all()):
            raise Unprotected(f"The noise of {self._step.name} has no size that one could audit.")
        if np.ptp(scales) > 1e-6 * scales.max():
            raise Unprotected(f"The noise's scale of {self._step.name} depends on rewards, so it is not public.")
        # What is the same but for rounding is the simpler search's, which came first.
        if found.max() > self._best.found * (1 + 1e-6) or self._best.by == "nothing":
            best = int(found.argmax())
            self._best = Farthest(float(found[best]), float(scales.min()), directions[best].copy(), by)
        return np.asarray(squares, np.float64), np.asarray(slopes, np.float64)
