"""What a certificate must know of the methods that noise as they train: their standing, norms and kinds of release.

The methods themselves are in `quietq.paper`. A certificate is read also where that room's JAX is not installed, so
what it is held against is here.
"""

from dataclasses import dataclass
from typing import Literal

from quietq.privacy.kernel_norms import Norm
from quietq.privacy.norms import (
    ClippedGradients,
    KnotValues,
    MeanRewards,
    ObservedRewards,
    RewardGradients,
    SmoothBound,
)


@dataclass(frozen=True)
class TrainedMethod:
    """What holds for every release of a method."""

    standing: Literal["none", "claimed", "certified"]
    norm: type[Norm] | None = None
    """The norm that its noise is measured in, if every run is a release of its own."""
    releases: Literal["network", "knots", "noised knots"] = "network"
    """What its agents are made of: any network, or values at knots, which may be the very numbers that were noised."""


TRAINED_METHODS = {
    "none": TrainedMethod("none"),
    "published": TrainedMethod("claimed"),
    "reward": TrainedMethod("certified"),
    "actor-critic": TrainedMethod("certified"),
    "value": TrainedMethod("certified", MeanRewards, "knots"),
    "value-network": TrainedMethod("certified", RewardGradients),
    "gradient": TrainedMethod("certified", ClippedGradients),
    "input": TrainedMethod("certified", ObservedRewards, "knots"),
    "output": TrainedMethod("certified", KnotValues, "noised knots"),
    "evaluation": TrainedMethod("certified", SmoothBound),
}
