"""Linear bandits with context (Shariff & Sheffet 2018): LinUCB on noisy running sums of zz', z = [x; y].

Theorem. The running sums of xx' and xy are those of `running_sums`, and all that decides is computed from them and
from the context of whoever is there. So what all others are shown is mu-GDP in one person's contexts and answers: joint
differential privacy. With the widths of `lin_ucb`, regret is of order d sqrt(T) + d^(3/4) sqrt(T)/sqrt(mu), up to
logarithms (`docs/theory.md`, section 14).
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from quietq.learning.bandits.lin_ucb import LinUCB, numbers_of
from quietq.learning.bandits.private_policy import PrivatePolicy
from quietq.learning.bandits.running_sums import PARTS, Factors, RunningSum, Sums, Tree
from quietq.mechanisms.mechanism import SLACK
from quietq.noise.feature_maps import FeatureMap, is_data
from quietq.privacy import Assumption, Budget, BudgetExhausted, InvalidInput, norms

LENGTH = math.sqrt(1.25)
"""Of z = [x; y], with |x| <= 1 and |y| <= 1/2."""
_SHORTENED = Assumption("Rows of features were shortened to a length of 1.", enforced=True)
_OWN_FEATURES = Assumption(
    "The map of features is not one of quietq's: it never fails, keeps nothing and is the same whatever the data is.",
    enforced=False,
)


def _not_pure(name: str, value: Budget) -> Budget:
    if value.is_pure:
        raise InvalidInput("A linear policy adds Gaussian noise, so the budget's delta must be above 0.")
    return value


@dataclass(eq=False)
class Linear(LinUCB, PrivatePolicy):
    """Running sums by a matrix factorisation.

    >>> from quietq import Budget
    >>> policy = Linear(2, Budget(1.0, 1e-5), dimension=3, arrivals=1000)
    >>> context = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    >>> policy.learn(context, policy.choose(context), 1.0)
    >>> policy.certificate.norm["kind"]
    'encoded-moments'
    """

    fields: ClassVar = {**PrivatePolicy.fields, **LinUCB.fields, "budget": _not_pure}
    name: ClassVar[str] = "linear-factors"
    bounded: ClassVar[bool] = True
    contexts: ClassVar[bool] = True
    remarks: ClassVar[tuple[str, ...]] = (
        "Joint differential privacy: what a person is shown follows from their own context, and what all others are "
        "shown, together, does not give that person away.",
    )
    way: ClassVar[type[RunningSum]] = Factors

    @cached_property
    def _sums(self) -> RunningSum:
        return self.way(self.arrivals or 2, numbers_of(self.dimension), LENGTH)

    @property
    def norm(self) -> dict[str, Any]:
        return self._sums.norm

    @cached_property
    def sensitivity(self) -> float:
        """By the theorem, with what floating point adds to it."""
        largest = norms.largest_difference(self.norm, self.relation.describe())
        return largest * SLACK + self.visits * self._sums.rounding

    @property
    def _wrong(self) -> float:
        return 1 / self._sums.arrivals

    @property
    def _error(self) -> float:
        return 1 / PARTS + self._sums.rounding

    def _conditions(self) -> tuple[Assumption, ...]:
        known = self.features is None or (isinstance(self.features, FeatureMap) and is_data(self.features))
        return _SHORTENED, *(() if known else (_OWN_FEATURES,)), *super()._conditions()

    def expected_error(self) -> float:
        """How far off noise alone puts the value of a row, once all arrivals were learned from: its deviation.

        That is if rows look in all directions alike. `weights` is the largest value that there can be: where this is
        not far below it, hardly anything can be learned.

        >>> from quietq import Budget
        >>> policies = [Linear(2, Budget(1.0, 1e-6), dimension=5, arrivals=n, simulate=0) for n in (2000, 200_000)]
        >>> [round(policy.expected_error(), 4) for policy in policies]
        [0.0462, 0.0007]
        """
        arrivals = self._sums.arrivals
        return self.law.sigma * math.sqrt(self._sums.variance(arrivals) / 2) * self.dimension / arrivals

    def _cautions(self) -> list[Warning]:
        error = self.expected_error()
        if error <= self.weights / 2:
            return super()._cautions()
        caution = UserWarning(
            f"Hardly anything can be learned from {self.arrivals} arrivals: noise alone will put values off by "
            f"{error:.2g}, and the largest that there can be is {self.weights:g}. More arrivals, fewer features or "
            "a larger budget would help."
        )
        return [*super()._cautions(), caution]

    def _admit(self, people: list[Any]) -> list[bool]:
        if self.state.steps + len(people) > self._sums.arrivals:
            raise BudgetExhausted(
                f"Of {self.arrivals} arrivals that were declared {self.state.steps} were learned from, and there is no "
                f"room for {len(people)} more."
            )
        return super()._admit(people)

    def _start(self) -> Sums:
        return self._sums.start()

    def _add(self, vector: Float[np.ndarray, " numbers"]) -> None:
        self._sums.add(self.state, vector, self._noised)

    def _total(self) -> tuple[Float[np.ndarray, " numbers"], float]:
        return self._sums.total(self.state), self.law.sigma * math.sqrt(self._sums.spread(self.state))

    def _forget(self) -> None:
        self.state = self._sums.forget(self.state)


@dataclass(eq=False)
class LinearTree(Linear):
    """Running sums by a binary tree."""

    name: ClassVar[str] = "linear-tree"
    way: ClassVar[type[RunningSum]] = Tree
