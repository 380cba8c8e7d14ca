"""A quick plan in a private world: the best linear policy that the cross-entropy method finds.

It costs nothing but time, and answers whether a world is any good before anybody trains a network in it.
"""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from quietq.feedback.spaces import Spaces
from quietq.mechanisms.private_world import PrivateWorld
from quietq.privacy.checks import count
from quietq.worlds.private_world import ENSEMBLE, Simulator

FARTHEST = 10.0
"""Deviations: states farther out count as that far."""
_KEPT = 8
"""One in so many candidates is kept."""
_MEMORY, _LEAST = 0.2, 0.02
"""Of the last centre, and the least deviation of candidates."""
_LAST = 5
"""Iterations whose centres and best few are compared once more, on fresh episodes."""


@dataclass(frozen=True, eq=False)
class LinearPolicy:
    """Actions by linear functions of the state: the best of a list, or a number held to its range each."""

    spaces: Spaces
    weights: Float[np.ndarray, "*copies inputs outputs"]
    """Of a constant, and of each coordinate in deviations from where states lie."""
    middle: Float[np.ndarray, " states"]
    deviation: Float[np.ndarray, " states"]
    made_in: PrivateWorld | None = field(default=None, repr=False)
    """The world that it was planned in, whose promise it has; None for one that was made by hand."""

    @property
    def parameters(self) -> int:
        return self.weights.shape[-1] * self.weights.shape[-2]

    def acts(self, states: Float[np.ndarray, "*copies states"]) -> np.ndarray:
        """Actions as a Simulator takes them, for states of the unit box."""
        seen = np.clip((states - self.middle) / self.deviation, -FARTHEST, FARTHEST)
        inputs = np.concatenate([np.ones((*seen.shape[:-1], 1)), seen], axis=-1)
        scores = (inputs[..., None, :] @ self.weights)[..., 0, :]
        if self.spaces.actions is None:
            return np.clip((scores + 1) / 2, 0.0, 1.0)
        others = scores[..., : self.spaces.actions - 1]  # none, if there is one action only
        return np.concatenate([np.zeros_like(scores[..., :1]), others], axis=-1).argmax(axis=-1)

    def __call__(self, states: Float[np.ndarray, "*copies states"]) -> np.ndarray:
        """Actions in their own units, for states in theirs."""
        box, acting = self.spaces.box, self.spaces.action_box
        actions = self.acts(np.clip((np.asarray(states) - box.low) / np.array(box.width), 0.0, 1.0))
        return actions if acting is None else np.array(acting.low) + actions * np.array(acting.width)


def policy_shape(spaces: Spaces) -> tuple[int, int]:
    """Of the weights of one policy."""
    return 1 + spaces.states, spaces.numbers if spaces.actions is None else max(spaces.actions - 1, 1)


def play(
    simulator: Simulator, policy: LinearPolicy, first: np.ndarray, steps: int, rng: np.random.Generator,
    weights: np.ndarray | None = None, alike: int = 1,
) -> Float[np.ndarray, " copies"]:  # fmt: skip
    """The return of each copy, in expectation over ends; `alike` copies in a row meet with the same chance."""
    states, alive, returns = first, np.ones(len(first)), np.zeros(len(first))
    least = min(simulator.world.spaces.low, 0.0)
    for left in range(steps - 1, -1, -1):
        draws = np.repeat(rng.random((len(first) // alike, simulator.draws)), alike, axis=0)
        found = simulator.step(states, policy.acts(states), draws, weights=weights)
        returns += alive * (found.rewards + np.where(found.halted, (1 - found.ends) * least * left, 0.0))
        alive, states = alive * (1 - found.ends) * ~found.halted, found.states
        if alive.max() < 1e-3:
            break
    return returns


def plan_linear(
    world: PrivateWorld, *, steps: int = 300, iterations: int = 15, candidates: int = 100, episodes: int = ENSEMBLE,
    ensemble: bool = True, seed: int = 0, **options: object,
) -> LinearPolicy:  # fmt: skip
    """The best linear policy found, for episodes of so many steps, each in a world that is plausible.

    Without `ensemble` all are in the released world itself.
    """
    simulator, rng = Simulator(world, **options), np.random.default_rng(count("seed", seed, 0))  # type: ignore[arg-type]
    spaces = world.spaces
    middle, deviation = world.typical()
    shape = policy_shape(spaces)
    centre, spread = np.zeros(shape), np.full(shape, 2.0)

    def best_first(tried: np.ndarray, episodes: int) -> np.ndarray:
        policy, alike = LinearPolicy(spaces, np.tile(tried, (episodes, 1, 1)), middle, deviation), len(tried)
        first = np.repeat(simulator.start(rng.random((episodes, simulator.draws))), alike, axis=0)
        weights = np.repeat(world.plausible(episodes, rng), alike, axis=0) if ensemble else None
        returns = play(simulator, policy, first, steps, rng, weights, alike)
        return tried[np.argsort(-returns.reshape(episodes, alike).mean(axis=0), kind="stable")]

    last = []
    for left in range(iterations - 1, -1, -1):
        best = best_first(centre + spread * rng.standard_normal((candidates, *shape)), episodes)[: candidates // _KEPT]
        centre, spread = _MEMORY * centre + (1 - _MEMORY) * best.mean(axis=0), best.std(axis=0) + _LEAST
        if left < _LAST:
            last += [centre, *best[:3]]
    return LinearPolicy(spaces, best_first(np.array(last), episodes * _LAST)[0], middle, deviation, world)
