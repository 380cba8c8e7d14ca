"""`output`: learn without noise from random actions, noise the value function once, at the end.

Theorem. Actions do not depend on the reward, so states are public. Values at knots are the fixed point of averages of
r + gamma max Q, which moves by at most radius + gamma |dQ| in the largest entry: neighbours' values differ by at most
radius/(1 - gamma) at each of D knots and actions, and by sqrt(D) times that in the norm of the hat functions' own
kernel, phi(x) . phi(y). Noise of that kernel, N(0, (Delta/mu)^2) a knot, is mu-GDP for the whole function
(docs/theory.md, section 4). A bound of the largest value alone would not do in a kernel of rougher functions: networks
are refused, for nothing bounds their norm.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from quietq.learning.averages import Averages, Averaging, add, at_random, best_values
from quietq.learning.method import Noise, Spaces, Transition
from quietq.learning.networks import LinearQ
from quietq.learning.options import option
from quietq.learning.private_step import PrivateStep, update_and_finish
from quietq.learning.promise import Draw, Promising
from quietq.learning.protect import protect
from quietq.noise.entropy import Entropy
from quietq.privacy.certificate import Assumption, Certificate

SLACK = 1.001
"""The fixed point is iterated until less than this part is missing."""


class OutputState(NamedTuple):
    """Sums of true rewards: private."""

    sums: Averages
    network: LinearQ


@dataclass(frozen=True, kw_only=True)
class OutputNoise(Averaging, Promising):
    """Noise on the solved values, once."""

    name: ClassVar[str] = "output"
    knots: int = option(5, "Knots a coordinate, at which values are kept and noised.")
    gamma: float = option(0.1, "Discount of the future; the noise grows as 1/(1 - gamma).")
    spread: float | None = field(default=None, init=False)

    def operations(self, spaces: Spaces) -> int:
        """Values are as much larger than rewards."""
        return math.ceil((8 + 2 * self.number_of_knots(spaces)) / (1 - self.gamma))

    def draw(self, spaces: Spaces, steps: int, entropy: Entropy) -> Draw:
        """One normal for each value."""
        _, budget = self.promised()
        shape = (spaces.actions, self.number_of_knots(spaces))
        sensitivity = self.radius * math.sqrt(shape[0] * shape[1]) / (1 - self.gamma)
        scale = SLACK * self.allowance(spaces) * sensitivity / budget.mu
        return self.drawn(entropy.normals(shape), scale)

    def norm(self, spaces: Spaces, steps: int, noise: Draw) -> dict[str, object]:
        """All values together."""
        number = spaces.actions * self.number_of_knots(spaces)
        gamma = float(self.gamma)
        return {"kind": "values", "count": number, "discount": gamma, "operations": self.operations(spaces)}

    def init(self, spaces: Spaces, key: PRNGKeyArray, copies: int = 1) -> OutputState:
        """Nothing seen."""
        sums = self.nothing_seen(spaces)
        return OutputState(sums, self.network(spaces, jnp.zeros_like(sums.weight)))

    def act(
        self, state: OutputState, observation: Float[Array, "copies d"], step: Array, key: PRNGKeyArray, noise: Noise
    ) -> Int[Array, " copies"]:
        """At random, so that states stay public."""
        return at_random(observation, state.sums.weight.shape[0], key)

    def update(self, state: OutputState, seen: Transition, step: Array, key: PRNGKeyArray, noise: Noise) -> OutputState:
        """Adds what was seen to the sums."""
        seen = seen._replace(reward=jnp.clip(seen.reward, -noise.largest, noise.largest))
        return state._replace(sums=add(state.sums, seen, state.network))

    def finish(self, state: OutputState, noise: Noise) -> LinearQ:
        """The solved values, with noise."""
        sums = state.sums
        solved = best_values(sums.means(), sums, self.gamma)
        noised = protect(solved, noise.normals, noise.scale)
        return LinearQ(noised, state.network.scaled, state.network.features)

    def certificate(self, spaces: Spaces, steps: int) -> Certificate:
        """Certified: one release."""
        return self.state_promise(
            spaces,
            steps,
            Assumption("Actions were uniformly random, so that the states seen do not depend on the reward.", True),
            Assumption("Values are a fixed point of averages, which contracts by gamma.", True),
        )

    def private_step(self, spaces: Spaces, batch: Transition, key: PRNGKeyArray) -> PrivateStep:
        number = len(batch.action)
        one_round = update_and_finish(self, self.init(spaces, key, number))
        return PrivateStep(self, number, 1, one_round, lambda state: state.network, rounds=1)
