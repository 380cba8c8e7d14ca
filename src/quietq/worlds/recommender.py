"""A recommender: items in three dimensions, four genres to lean to, and people who leave at some point."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from quietq.noise.box import Box
from quietq.noise.kernels import FeatureKernel
from quietq.privacy.checks import count, not_negative, positive, probability, real, shown
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import RkhsBall
from quietq.worlds.world import Array, World

DIMENSION = 3


def _genres() -> np.ndarray:
    """The corners of a regular simplex on the unit sphere: four directions, each as unlike all others as can be."""
    d = DIMENSION
    corners = math.sqrt(1 + 1 / d) * np.eye(d) - (math.sqrt(d + 1) + 1) / d**1.5
    return np.concatenate([np.full((1, d), 1 / math.sqrt(d)), corners])


GENRES = _genres()
GENRES.flags.writeable = False


def item(points: Array) -> Array:
    """The features: the item itself, from unit coordinates. Public, and the same in NumPy and in JAX."""
    return 2 * points - 1


@dataclass(frozen=True)
class RecommenderWorld(World):
    """The state is the item shown last, x in the unit ball of R^3; an action leans the next one towards a genre.

    Each person's reward is w . x with |w| <= 1. Together they are `strength` times the direction of `taste`: with
    many people who agree, strength is near 1; with a strength near 0 there is no consensus, and nothing to learn.
    The default taste lies between three genres, so that no one genre serves it. People leave for good, whatever they
    are shown, with the chance `leave` after each item: that terminates the episode. Because nothing that is done
    changes how long they stay, a constant added to the reward does not change which policy is best.
    """

    name: ClassVar[str] = "recommender"
    box: ClassVar[Box] = Box((-1.0,) * DIMENSION, (1.0,) * DIMENSION)
    """From the first step on, items lie within the unit ball of it."""
    actions: ClassVar[int] = 4
    action_names: ClassVar[tuple[str, ...]] = tuple(f"towards genre {number}" for number in range(4))
    draws: ClassVar[int] = DIMENSION + 1

    taste: tuple[float, ...] = tuple(float(x) for x in GENRES[0] + GENRES[1] + 0.6 * GENRES[3])
    """The direction of the mean of people's weights; its length does not matter."""
    strength: float = 0.3
    """The length of that mean, at most 1."""
    pace: float = 0.4
    """How far towards the genre the next item lies."""
    noise: float = 0.15
    """And up to so far off in each coordinate, uniformly."""
    leave: float = 1 / 64
    steps: int = 50

    def __post_init__(self) -> None:
        fits = isinstance(self.taste, tuple) and len(self.taste) == DIMENSION
        if not fits or not any(real("Each of taste", x) for x in self.taste):
            raise InvalidInput(f"taste must be {DIMENSION} numbers that are not all 0, not {shown(self.taste)}.")
        if not_negative("strength", self.strength) > 1:
            raise InvalidInput(
                f"strength must be at most 1, because each person's weights have a length of at most 1, "
                f"not {self.strength!r}."
            )
        positive("pace", self.pace)
        not_negative("noise", self.noise)
        probability("leave", self.leave)
        count("steps", self.steps)

    @property
    def weights(self) -> Float[np.ndarray, "3"]:
        return self.strength * np.array(self.taste) / math.hypot(*self.taste)

    def start(self, draws: Array, xp: Any) -> Array:
        return (2 * draws[..., :DIMENSION] - 1) / math.sqrt(DIMENSION)

    def move(self, state: Array, action: Array, draws: Array, xp: Any) -> tuple[Array, Array]:
        """A step towards the genre, put back on the ball where it left; and who leaves."""
        lean = xp.asarray(GENRES, dtype=state.dtype)[xp.asarray(action)]
        moved = state + self.pace * lean + self.noise * (2 * draws[..., :DIMENSION] - 1)
        length = xp.sqrt((moved * moved).sum(axis=-1, keepdims=True))
        moved = xp.clip(moved / xp.maximum(length, 1.0), -1.0, 1.0)
        return moved, draws[..., DIMENSION] < self.leave

    def reward(self, state: Array, xp: Any) -> Array:
        return (state * xp.asarray(self.weights, dtype=state.dtype)).sum(axis=-1)

    def relation(self, people: int) -> RkhsBall:
        return RkhsBall.of_people(people, FeatureKernel(item, rank=DIMENSION, dimension=DIMENSION), norm=1.0)

    def mean_reward(self) -> Float[np.ndarray, "3"]:
        return self.weights
