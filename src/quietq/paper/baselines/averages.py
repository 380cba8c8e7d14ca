"""Mean rewards and moves by knot, and the values that follow: what `input`, `value` and `output` learn with.

A state counts for the knots around it by its hat functions, which are non-negative and 1 in sum. So the mean reward of
an action at a knot is an average of observed rewards, and so is where the action leads: a Markov decision process on
the knots, whose best values a fixed-point iteration finds (Gordon's averagers, 1995). It contracts in the largest
entry, whatever the data.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from quietq.paper.agents.hyper_parameters import option, positive_or_none, share
from quietq.paper.agents.method import EnvironmentSpaces, Method, Moment, State, Transition
from quietq.paper.agents.networks import LinearQ, check_knots
from quietq.paper.agents.protect import total
from quietq.privacy.checks import count

MOST_GAMMA = 0.999


class Averages(NamedTuple):
    weight: Float[Array, "actions knots"]
    squares: Float[Array, "actions knots"]  # of the weights, which say how much was seen
    rewards: Float[Array, "actions knots"]
    moves: Float[Array, "actions knots knots"]  # weighted hat functions of the states that followed; none after an end
    lost: tuple[Array, Array, Array, Array]
    """What rounding has added to each of them (Kahan's compensation): so errors do not grow with the steps."""

    @property
    def seen(self) -> Bool[Array, "actions knots"]:
        """Where enough was seen to divide by; what was seen of the other knots does not count."""
        # A knot whose weights come to less, of all that was seen, counts as not seen.
        return self.weight > 1e-3

    def means(self) -> Float[Array, "actions knots"]:
        """Mean rewards; 0 where too little was seen."""
        return jnp.where(self.seen, self.rewards / jnp.where(self.seen, self.weight, 1.0), 0.0)


class AveragingState(NamedTuple):
    sums: Averages
    network: LinearQ


@dataclass(frozen=True, kw_only=True)
class Averaging(Method):
    """Learning by averages. Unless a method does otherwise, actions are random, to see all states."""

    knots: int = option(7, "Knots a coordinate, at which mean rewards and values are kept.", partial(count, least=2))
    gamma: float = option(0.9, "Discount of the future.", partial(share, most=MOST_GAMMA))
    spread: float | None = option(
        0.05,
        "Deviation of mean rewards that is taken for granted, to weigh them against their noise.",
        positive_or_none,
    )

    def check(self, spaces: EnvironmentSpaces, steps: int) -> None:
        super().check(spaces, steps)
        check_knots("knots", self.knots, spaces.box.dimension, "use the method 'reward' with network='mlp'")

    def number_of_knots(self, spaces: EnvironmentSpaces) -> int:
        return self.knots**spaces.box.dimension

    def nothing_seen(self, spaces: EnvironmentSpaces) -> Averages:
        shape = (spaces.actions, self.number_of_knots(spaces))
        zero = jnp.zeros(shape)
        moves = jnp.zeros((*shape, shape[1]))
        return Averages(zero, zero, zero, moves, (zero, zero, zero, moves))

    def network(self, spaces: EnvironmentSpaces, values: Float[Array, "actions knots"]) -> LinearQ:
        return LinearQ(values, spaces.box, self.knots)

    def init(self, spaces: EnvironmentSpaces, key: PRNGKeyArray, copies: int = 1) -> State:
        sums = self.nothing_seen(spaces)
        return AveragingState(sums, self.network(spaces, jnp.zeros_like(sums.weight)))

    def act(self, state: State, observation: Float[Array, "copies d"], now: Moment) -> Int[Array, " copies"]:
        return jax.random.randint(now.key, (observation.shape[0],), 0, state.network.weights.shape[0])


def add(sums: Averages, seen: Transition, network: LinearQ) -> Averages:
    hats = jax.vmap(network.features_of)
    here, there = hats(seen.state), hats(seen.next_state) * ~seen.terminated[:, None]
    taken = jax.nn.one_hot(seen.action, sums.weight.shape[0])
    parts = (
        # Rewards are private, and divided by weights: their errors must not grow with the number of copies.
        total(taken[:, :, None] * here[:, None, :]),
        jnp.einsum("ca,ck->ak", taken, here**2),
        total(taken[:, :, None] * (here * seen.reward[:, None])[:, None, :]),
        jnp.einsum("ca,ck,cl->akl", taken, here, there),
    )
    before = (sums.weight, sums.squares, sums.rewards, sums.moves)
    weight, squares, rewards, moves = (_plus(*each) for each in zip(before, parts, sums.lost, strict=True))
    return Averages(weight[0], squares[0], rewards[0], moves[0], lost=(weight[1], squares[1], rewards[1], moves[1]))


def _plus(total: Array, part: Array, lost: Array) -> tuple[Array, Array]:
    """Kahan's sum; the barriers keep the compiler from seeing that nothing would be lost in exact arithmetic."""
    part = part - lost
    new = lax.optimization_barrier(total + part)
    return new, lax.optimization_barrier(new - total) - part


def best_values(means: Float[Array, "actions knots"], sums: Averages, gamma: float) -> Float[Array, "actions knots"]:
    """The values of the best policy for mean rewards at knots, to about 1e-5 of themselves."""
    # Never more than 1 in sum, so that the iteration contracts in float32 too.
    whole = jnp.maximum(sums.weight, sums.moves.sum(axis=2))
    moves = jnp.where(sums.seen[:, :, None], sums.moves / jnp.where(sums.seen, whole, 1.0)[:, :, None], 0.0)
    rounds = 1 if gamma == 0 else math.ceil(math.log(1e-5) / math.log(gamma))
    return lax.fori_loop(0, rounds, lambda _, q: means + gamma * moves @ q.max(axis=0), means)


def weighed(
    means: Float[Array, "actions knots"],
    noise: Float[Array, "actions knots"],
    weight: Float[Array, "actions knots"],
    spread: float | None,
) -> Float[Array, "actions knots"]:
    """Noised means drawn to their common mean, the more the larger their noise is against `spread`."""
    if spread is None:
        return means
    trust = jnp.where(weight > 0, spread**2 / (spread**2 + noise**2), 0.0)
    middle = (trust * means).sum() / jnp.maximum(trust.sum(), 1e-6)
    return middle + trust * (means - middle)
