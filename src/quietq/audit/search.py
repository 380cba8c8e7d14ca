"""The adversary's search: rewards that move a private step the farthest, each by no more than the radius.

Neighbours lie on both sides of a centre, at plus and minus half the move. The squared distance of what they give is
close to a convex function of the direction, which is largest at a corner of the cube: so the gradient search goes to
the corner that the gradient points to, again and again, from many beginnings at once, and the greedy one turns the one
sign that helps most. Random signs and random points of the cube, around random centres, are there for steps that are
not as one thinks.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from quietq.audit.movement import Unprotected
from quietq.audit.private_steps import PrivateStep

_CLIMBS = 12
_NEAR = 1e-5  # far above rounding, far below what is between two tags


class Farthest(NamedTuple):
    """The best that was found."""

    found: float
    """How far neighbours are apart."""
    scale: float
    """The noise's scale, the same for all rewards."""
    direction: Float[np.ndarray, " rewards"]
    """Each reward's move, in units of the radius."""
    by: str
    """Which search found it."""


def farthest(step: PrivateStep, *, climb: bool = True, seed: int = 0) -> Farthest:
    """The farthest movement of a private step that any of the searches finds.

    Without `climb` there is no gradient search, and nothing to differentiate: that compiles in half the time.
    """
    return _Search(step, climb, seed).run()


def check_ways(step: PrivateStep, seed: int = 0) -> None:
    """Raises Unprotected if rewards reach what is released round the noise, or if a normal was used twice.

    All rounds are run with zeros in place of what they noise. What they let out must then be the same, bit for bit,
    whatever the rewards, and so must the normals that they used: of each that was drawn, a fixed part, once.
    """
    number, rng = len(step.centre), np.random.default_rng(seed)
    spread, signs = rng.normal(size=number), rng.choice([-1.0, 1.0], number)
    first = step.emptied(step.centre, step.tagged)
    others = [step.centre + step.radius * rng.uniform(-1, 1, number), 1e-3 * spread, spread, 1e3 * spread, 1e30 * signs]
    others += [np.zeros(number), np.ones(number), -np.ones(number), np.full(number, np.inf), np.full(number, np.nan)]
    for rewards in others:
        other = step.emptied(rewards, step.tagged)
        if _bits(other.public) != _bits(first.public):
            raise Unprotected(f"Rewards reach what {step.name} releases without going through its noise.")
        if sorted(_bits(other.normals)) != sorted(_bits(first.normals)):
            raise Unprotected(f"Which normals {step.name} uses depends on rewards.")
    if len(first.normals) != step.rounds:
        raise Unprotected(f"{step.name} has {step.rounds} rounds, but noised {len(first.normals)} times.")
    _check_used_once(step, first.normals)


def _check_used_once(step: PrivateStep, used: list[np.ndarray]) -> None:
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


class _Search:
    """What has been found so far. All searches look at as many directions at once as there are rewards."""

    def __init__(self, step: PrivateStep, climb: bool, seed: int) -> None:
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
        """All searches, one after the other."""
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
