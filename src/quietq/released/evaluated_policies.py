"""Released values of policies: what `policy_values` makes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float

from quietq.noise import Box
from quietq.privacy import Certificate
from quietq.privacy.norms import AnyNorm, MeanReturns, MeanWithinRightAngles
from quietq.released.publishable import Arrays, Details, Json, Publishable, Stored, require

LONGEST = 200
"""letters of a name"""


class PolicyValue(NamedTuple):
    """A policy's value, and the ends of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False, repr=False)
class EvaluatedPolicies(Publishable):
    """Released values of policies, with intervals that hold all at once. Called, it gives them for any state."""

    kind: ClassVar[str] = "policy-values"
    details: ClassVar = ("names", "confidence", "noise")
    arrays: ClassVar = ("table",)
    names: tuple[str, ...]
    table: Float[np.ndarray, "policies 3"]
    """Each policy's value, and the low and the high end of its interval."""
    confidence: float
    noise: float
    """The standard deviation of the noise in each value."""
    box: Box
    certificate: Certificate  # pyright: ignore[reportIncompatibleVariableOverride]

    @property
    def values(self) -> Mapping[str, PolicyValue]:
        return {name: PolicyValue(*row) for name, row in zip(self.names, self.table.tolist(), strict=True)}

    def __getitem__(self, policy: str) -> PolicyValue:
        return self.values[policy]

    def difference(self, one: str, other: str) -> PolicyValue:
        """How much better one is than the other: where both lie in their intervals, so does this in its own."""
        first, second = self[one], self[other]
        return PolicyValue(first.value - second.value, first.low - second.high, first.high - second.low)

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        unit = self.box.to_unit(states)  # refuses what lies outside
        where = unit.shape if self.box.dimension == 1 else unit.shape[:-1]
        return np.tile(self.table[:, 0], (*where, 1))

    def to_dict(self) -> Json:
        values = {name: one._asdict() for name, one in self.values.items()}
        return {
            "values": values,
            "confidence": self.confidence,
            "noise": self.noise,
            "certificate": self.certificate.to_dict(),
        }

    def to_arrays(self) -> tuple[Details, Arrays]:
        details, arrays = super().to_arrays()
        return details | {"names": list(self.names)}, arrays

    @classmethod
    def from_arrays(cls, stored: Stored) -> "EvaluatedPolicies":
        stored.expect(cls.details, cls.arrays)
        (names, confidence, noise), table = (stored.details[name] for name in cls.details), stored.arrays["table"]
        named = isinstance(names, list) and all(isinstance(one, str) and len(one) <= LONGEST for one in names)
        require(named and 0 < len(names) == len(set(names)), "its policies must have names, each its own")
        require(table.shape == (len(names), 3), "each of its policies must have a value and two ends")
        rises = (table[:, 1] <= table[:, 0]).all() and (table[:, 0] <= table[:, 2]).all()
        require(rises, "its values must lie in their intervals")
        numbers = type(confidence) is type(noise) is float and 0 < confidence < 1 and noise > 0
        require(numbers, "its confidence must lie between 0 and 1, and its noise above 0")
        return cls(tuple(names), table, confidence, noise, stored.box, stored.certificate)

    def check_norms(self, norms: tuple[AnyNorm, ...], certificate: Certificate) -> None:
        *learnt, last = norms
        require(isinstance(last, MeanReturns), "its noise must be that of mean returns")
        require(last == MeanReturns(len(self.names)), "its certificate must be for as many policies")
        means = all(isinstance(one, MeanWithinRightAngles) for one in learnt)
        require(means, "its other noise must be of means")

    def in_words(self) -> list[str]:
        found = [f"{name} {one.value:.4g} (from {one.low:.4g} to {one.high:.4g})" for name, one in self.values.items()]
        together = f"The intervals hold all at once, with confidence {self.confidence:g}."
        return [f"The values are what policies would have been worth: {'; '.join(found)}. {together}"]
