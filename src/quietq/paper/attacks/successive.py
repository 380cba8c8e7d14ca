"""Two successive releases that share their noise give the rewards away, exactly: the paper's Algorithm 1 with J = 1.

Theorem. In a table, one round of the listing with step size alpha takes the released V = Q + g (g the round's noise) to

    V'(s, a) = V(s, a) + g'(s, a) - g(s, a) + (alpha/B) sum_t [r_t + gamma max_b V(s_t', b) - V(s, a)],

summed over the round's steps with (s_t, a_t) = (s, a). Noise enters the temporal differences only as a part of what is
released. So when the next round keeps it, g' = g, all is public but the r_t: they solve linear equations, whatever
sigma is. The recursion is then Q-learning of V itself, hence V -> Q*: the noise is forgotten, it does not even cost
anything. Noise redrawn, g' - g stands in these equations times B/alpha.

The attack (`rewards_from_successive`) takes nothing but what is public. `released_rounds` makes its input with the
real learner and trainer, in double precision, for linear hats whose knots are the only states a world has.

See docs/theory.md#shared-noise.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from quietq.noise import SeededEntropy
from quietq.paper import Published
from quietq.paper.agents import replay as memory, trainer
from quietq.paper.agents.jax_world import JaxReward
from quietq.paper.agents.method import Noise
from quietq.paper.agents.networks import in_unit_box
from quietq.paper.algorithm import ACTING
from quietq.privacy import InvalidInput
from quietq.privacy.checks import count, numbers, positive, probability
from quietq.worlds import World

Round = tuple[Float[np.ndarray, "knots actions"], "SuccessiveSteps"]
"""What the algorithm has published after a round, and the public steps that the round learned from."""
_RANK = 1e-9  # directions that are weaker than this, relative to the strongest, are taken for unseen


class SuccessiveSteps(NamedTuple):
    """The public part of a round: no rewards."""

    state: Int[np.ndarray, " batch"]  # numbers of knots, as are the next states
    action: Int[np.ndarray, " batch"]
    next_state: Int[np.ndarray, " batch"]
    terminated: Bool[np.ndarray, " batch"]


def rewards_from_successive(
    before: object, after: object, steps: SuccessiveSteps, learning_rate: float, gamma: float
) -> Float[np.ndarray, " knots"]:
    """The rewards that lie between two releases, by least squares, of the states that steps led to.

    They are NaN where the round's steps do not determine them.
    """
    first, second = numbers("before", before), numbers("after", after)
    if first.ndim != 2 or first.shape != second.shape:
        raise InvalidInput(f"before and after must be tables of one shape, not {first.shape} and {second.shape}.")
    rate, gamma, batch = positive("learning_rate", learning_rate), probability("gamma", gamma), len(steps.state)
    knots, actions = first.shape
    pair = steps.state * actions + steps.action
    following = np.where(steps.terminated, 0.0, first.max(axis=1)[steps.next_state])
    known = np.bincount(pair, gamma * following - first[steps.state, steps.action], knots * actions)
    sums = (second - first).ravel() * (batch / rate) - known  # of the rewards at each state and action
    counts = np.zeros((knots * actions, knots))
    np.add.at(counts, (pair, steps.next_state), 1.0)
    left, size, right = np.linalg.svd(counts, full_matrices=False)
    seen = size > _RANK * size.max(initial=0.0)
    reward = right[seen].T @ ((left[:, seen].T @ sums) / size[seen])
    return np.where((right[seen] ** 2).sum(axis=0) > 1 - _RANK, reward, np.nan)


def released_rounds(method: Published, world: World, reward: JaxReward, rounds: int, seed: int = 0) -> list[Round]:
    """One run of the text's algorithm, round by round: after each, values plus the round's own noise at all knots.

    `reward` is a JAX reward of the world. The learner computes in double precision, from rewards in single precision.
    """
    if method.preset != "text" or method.network != "splines":
        raise InvalidInput("method must be Published.text(network='splines', ...), whose weights are a table.")
    length = count("rounds", rounds) * method.batch
    with jax.enable_x64(True):
        noise = method.draw(trainer.spaces_of(world), length, SeededEntropy(count("seed", seed, 0)))
        runs = trainer.Runs(
            jax.random.split(jax.random.key(seed), 1),
            jax.tree.map(lambda leaf: leaf[None], reward),
            jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], noise),
        )
        core = method.core()
        carry, released = trainer.begin(core, world, runs), []
        for i in range(rounds):
            carry, _ = trainer.advance(core, world, runs, carry, i * method.batch, method.batch)
            released.append(_round(method, carry, noise, i))
    return released


def _round(method: Published, carry: trainer.Carry, noise: Noise, number: int) -> Round:
    paths, by_step = noise
    learner = jax.tree.map(lambda leaf: leaf[0], carry.learner.learner)
    box, knots = learner.network.box, learner.network.weights.shape[1]
    cells = np.rint(np.linspace(0, 1, knots) * 2**method.levels).astype(int)
    path = paths[cells, by_step[number * method.batch], ACTING]
    seen = memory.rows(learner.replay, jnp.arange(method.batch))
    before, after = (
        np.asarray(jax.vmap(partial(in_unit_box, box))(states))[:, 0] * (knots - 1)
        for states in (seen.state, seen.next_state)
    )
    if not all((places == np.rint(places)).all() for places in (before, after)):
        raise InvalidInput(f"world must have states on the {knots} knots only.")
    steps = SuccessiveSteps(before.astype(int), np.asarray(seen.action), after.astype(int), np.asarray(seen.terminated))
    return np.asarray(learner.network.weights).T + path, steps
