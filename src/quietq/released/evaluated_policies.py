"""Released values of policies: what `policy_values` makes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float
from msgspec import Meta

from quietq.noise import Box
from quietq.privacy import Certificate, Code
from quietq.privacy.checks import Positive
from quietq.privacy.norms import AnyNorm, MeanOfPeople
from quietq.released.publishable import Json, Publishable, require

LONGEST = 200
"""letters of a name"""


class PolicyValue(NamedTuple):
    """A policy's value, and the ends of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False, repr=False)
class EvaluatedPolicies(Publishable, tag="policy-values"):
    """Released values of policies, with intervals that hold all at once. Called, it gives them for any state."""

    arrays: ClassVar = ("table",)
    names: Annotated[tuple[Annotated[str, Meta(max_length=LONGEST)], ...], Meta(min_length=1)]
    table: Float[np.ndarray, "policies 3"]
    """Each policy's value, and the low and the high end of its interval."""
    confidence: Annotated[float, Meta(gt=0, lt=1)]
    noise: Positive
    """The standard deviation of the noise in each value."""
    box: Box
    certificate: Certificate  # pyright: ignore[reportIncompatibleVariableOverride]

    @property
    def values(self) -> Mapping[str, PolicyValue]:
        return {name: PolicyValue(*row) for name, row in zip(self.names, self.table.tolist(), strict=True)}

    def __getitem__(self, policy: str) -> PolicyValue:
        return self.values[policy]

    def difference(self, one: str, other: str) -> PolicyValue:
        """Returns how much better one is than the other: where both lie in their intervals, so does this in its own."""
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

    def check(self) -> None:
        printable = all(name.isprintable() for name in self.names)
        require(printable and len(self.names) == len(set(self.names)), "its policies must have names, each its own")
        require(self.table.shape == (len(self.names), 3), "each of its policies must have a value and two ends")
        value, low, high = self.table.T
        require((low <= value).all() and (value <= high).all(), "its values must lie in their intervals")

    def check_labels(self) -> None:
        """Actions are those that policies choose among, and are not counted anywhere else."""
        require(len(self.labels.states) in (0, self.box.dimension), "it must have a name for each coordinate, or none")

    def check_norms(self, norms: tuple[AnyNorm, ...], certificate: Certificate) -> None:
        *learnt, last = norms
        require(last == MeanOfPeople(2 * math.sqrt(len(self.names))), "its certificate must be for as many policies")
        require(
            all(one == MeanOfPeople(math.sqrt(2)) for one in learnt), "its other noise must be of shares of actions"
        )
        ranges = [one.values for one in certificate.assumptions if one.code is Code.RETURNS_CLIPPED]
        require(len(ranges) == 1, "its certificate must state the range that returns were clipped to")
        low, high = (float(end) for end in ranges[0])
        inside = (self.table >= low).all() and (self.table <= high).all()
        require(inside, "its values must lie in the range that returns were clipped to")
        noise = certificate.queries[-1].size * (high - low) / 2
        require(math.isclose(self.noise, noise, rel_tol=1e-9), "its noise must be what its certificate says")

    def in_words(self) -> list[str]:
        found = [f"{name} {one.value:.4g} (from {one.low:.4g} to {one.high:.4g})" for name, one in self.values.items()]
        together = f"The intervals hold all at once, with confidence {self.confidence:g}."
        worth = f"The values are what policies would have been worth: {'; '.join(found)}. {together}"
        return [worth, *super().in_words()]
