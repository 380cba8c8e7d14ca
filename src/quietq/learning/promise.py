"""What methods that noise as they go have in common: a relation, a budget, and the certificate of many rounds."""

import math
import warnings
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float

from quietq.learning.method import Method, Spaces
from quietq.learning.sums import UNIT_ROUNDING
from quietq.noise.kernels import Additive, Exponential
from quietq.privacy.budget import Budget, weak_delta
from quietq.privacy.certificate import Assumption, Certificate
from quietq.privacy.checks import instance
from quietq.privacy.errors import InvalidInput, PrivacyWarning
from quietq.privacy.relations import LipschitzBall, Relation, RkhsBall, SupBall

_FEWEST = 1024
_LEAST = 1e-9


class Draw(NamedTuple):
    """The normals of a run in float32, their scale by sensitivity and budget, and what rewards are clipped to."""

    normals: Float[np.ndarray, "..."]
    scale: Float[np.ndarray, ""]
    largest: Float[np.ndarray, ""]


@dataclass(frozen=True, kw_only=True)
class Promising(Method):
    """A method with a promise of its own; every training is one release."""

    spends: ClassVar[bool] = True
    relation: Relation | None = None
    budget: Budget | None = None

    @property
    def radius(self) -> float:
        """The most that one observed reward can differ between neighbours."""
        return sup_radius(self.promised()[0])

    @property
    def largest(self) -> float:
        """Rewards are clipped to plus and minus this, a public number far above them if they lie near 0.

        A projection, so no two neighbours get farther apart; and it bounds what rounding can do.
        """
        relation, _ = self.promised()
        return 2 * self.radius * max(relation.people or 0, _FEWEST)

    def allowance(self, operations: int) -> float:
        """How much larger the noise must be, so that rounding errors of so many operations in a row are covered too.

        Each changes a number of size `largest` by at most 2^-24 of it, and differently for two neighbours. A sum by
        `total` counts for two, however many terms it has.
        """
        return 1 + 2 * operations * UNIT_ROUNDING * self.largest / self.radius

    def drawn(self, normals: Float[np.ndarray, "..."], scale: float) -> Draw:
        """Float64 normals and their scale, as compiled code takes them."""
        return Draw(*(np.asarray(each, np.float32) for each in (normals, scale, self.largest)))

    def promised(self) -> tuple[Relation, Budget]:
        """The relation and the budget, if both were given."""
        if self.relation is None or self.budget is None:
            raise InvalidInput(f"{self.name} needs a relation and a budget: what must stay hidden, and how well?")
        return self.relation, self.budget

    def core(self) -> "Promising":
        """Without relation and budget: noise comes in ready, so one program serves all of them."""
        return replace(self, relation=None, budget=None)

    def check(self, spaces: Spaces, steps: int) -> None:
        """Refuses a promise that cannot be kept, and warns of one that is weak."""
        relation, budget = self.promised()
        instance("relation", relation, SupBall | LipschitzBall | RkhsBall, "a SupBall, LipschitzBall or RkhsBall")
        instance("budget", budget, Budget, "a Budget(epsilon, delta)")
        if budget.is_pure:
            raise InvalidInput(f"{self.name} adds Gaussian noise, so delta must be above 0; see 'reward' with k-norm.")
        if not _LEAST <= sup_radius(relation) <= 1 / _LEAST:
            raise InvalidInput(
                f"The relation's radius must lie between {_LEAST:g} and {1 / _LEAST:g}: scale the rewards."
            )
        if sentence := weak_delta(budget.delta, relation.people):
            warnings.warn(sentence, PrivacyWarning, stacklevel=2)

    def state_promise(
        self, spaces: Spaces, rounds: int, sensitivity: str, *assumptions: Assumption, remarks: tuple[str, ...] = ()
    ) -> Certificate:
        """The certificate of `rounds` rounds, each with noise of sqrt(rounds)/mu times its own public sensitivity.

        In units of the rounds' own sensitivities, they differ by at most sqrt(rounds) together, and the noise of each
        has deviation sqrt(rounds)/mu.
        """
        relation, budget = self.promised()
        return Certificate(
            method=self.name,
            standing="certified",
            relation=relation.describe(),
            domain=list(zip(spaces.box.low, spaces.box.high, strict=True)),
            epsilon=budget.epsilon,
            delta=budget.delta,
            mu=budget.mu,
            sensitivity=math.sqrt(rounds),
            sigma=math.sqrt(rounds) / budget.mu,
            assumptions=(
                Assumption(f"Neighbouring inputs are {relation}.", False),
                Assumption("Box, bounds, number of people, budget and hyper-parameters were chosen without the private "
                           "data.", False),
                Assumption("The world's states and ends depend on the reward through the agent's actions only.", False),
                *assumptions,
                Assumption(f"Rewards were clipped to {self.largest:g} in size, and the noise covers rounding errors of "
                           "float32.", True),
                Assumption("Noise was drawn in float64 from the operating system's generator, outside compiled code, "
                           "and each number was used once.", True),
                Assumption("Values were clipped and rounded to a public grid, noise/128 or coarser; beyond that, "
                           "floating-point noise is taken for ideal Gaussian noise.", False),
            ),
            remarks=(
                f"Sigma and sensitivity are in units of {sensitivity}, of {rounds} round(s) together.",
                "Scores, returns and learning curves look at the true reward and are not covered.",
                *remarks,
            ),
        )  # fmt: skip


def sup_radius(relation: Relation) -> float:
    """The most that neighbours differ by at any one state.

    >>> sup_radius(SupBall(0.01))
    0.01
    """
    if isinstance(relation, SupBall | LipschitzBall):
        return relation.radius
    if isinstance(relation, RkhsBall) and isinstance(relation.kernel, Exponential):
        return relation.radius  # |f(x)| <= |f| sqrt(K(x, x))
    if isinstance(relation, RkhsBall) and isinstance(relation.kernel, Additive):
        return relation.radius * math.sqrt(relation.kernel.dimension)
    raise InvalidInput(
        "This method needs to know how much one reward can change: state a SupBall (for features of length at most c, "
        "its radius is c times that of the weights), or use 'reward'."
    )
