"""`output`: learn without noise from random actions, noise the value function once, at the end.

Theorem. Actions do not depend on the reward, so states are public. Values at knots are the fixed point of averages of
r + gamma max Q, which moves by at most radius + gamma |dQ| in the largest entry: neighbours' values differ by at most
Delta = radius/(1 - gamma) at each of D knots and actions. In the norm of the hat functions' own kernel, phi(x).phi(y),
they differ by at most sqrt(D) Delta; noise of that kernel, N(0, D (Delta/mu)^2) a knot, is mu-GDP, as noise of the
whole function (docs/theory.md#output). A bound of the largest value alone would not do in a kernel of rougher
functions: networks are refused, for nothing bounds their norm.
"""

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

from jaxtyping import PRNGKeyArray

from quietq.paper.agents.hyper_parameters import option, share
from quietq.paper.agents.in_loop_method import InLoopMethod, NoiseDraw, PrivateStep, update_and_finish
from quietq.paper.agents.method import EnvironmentSpaces, Moment, Noise, Transition
from quietq.paper.agents.networks import LinearQ
from quietq.paper.agents.protect import protect
from quietq.paper.baselines.averages import MOST_GAMMA, Averaging, AveragingState, add, best_values
from quietq.privacy import Assumption, Code
from quietq.privacy.checks import count
from quietq.privacy.norms import AnyNorm, KnotValues

SLACK = 1.001  # the fixed point is iterated until less than this part is missing


@dataclass(frozen=True, kw_only=True)
class OutputNoise(Averaging, InLoopMethod):
    """Values are solved without noise from random actions, and noised once, at the end."""

    name: ClassVar[str] = "output"
    knots: int = option(5, "Knots a coordinate, at which values are kept and noised.", partial(count, least=2))
    gamma: float = option(
        0.1, "Discount of the future; the noise grows as 1/(1 - gamma).", partial(share, most=MOST_GAMMA)
    )
    spread: float | None = field(default=None, init=False)

    def operations(self, spaces: EnvironmentSpaces) -> int:
        """Values are as much larger than rewards."""
        return math.ceil((8 + 2 * self.number_of_knots(spaces)) / (1 - self.gamma))

    def noise_shape(self, spaces: EnvironmentSpaces, steps: int) -> tuple[int, ...]:
        return (spaces.actions, self.number_of_knots(spaces))

    def sensitivity(self, spaces: EnvironmentSpaces, steps: int) -> float:
        together = math.sqrt(math.prod(self.noise_shape(spaces, steps)))
        return SLACK * self.allowance(spaces) * self.radius * together / (1 - self.gamma)

    def norm(self, spaces: EnvironmentSpaces, steps: int, noise: NoiseDraw) -> AnyNorm:
        number = math.prod(self.noise_shape(spaces, steps))
        return KnotValues(number, float(self.gamma), self.operations(spaces))

    def update(self, state: AveragingState, seen: Transition, now: Moment) -> AveragingState:
        """Adds true rewards to the sums, which are private therefore."""
        return state._replace(sums=add(state.sums, now.noise.clip(seen), state.network))

    def finish(self, state: AveragingState, noise: Noise) -> LinearQ:
        solved = best_values(state.sums.means(), state.sums, self.gamma)
        return replace(state.network, weights=protect(solved, noise.normals, noise.scale))

    def conditions(self, steps: int) -> tuple[Assumption, ...]:
        return (
            Code.RANDOM_ACTIONS(),
            Code.FIXED_POINT(),
        )

    def private_step(self, spaces: EnvironmentSpaces, batch: Transition, key: PRNGKeyArray) -> PrivateStep:
        number = len(batch.action)
        one_round = update_and_finish(self, self.init(spaces, key, number))
        return PrivateStep(self, number, 1, one_round, lambda state: state.network, rounds=1)
