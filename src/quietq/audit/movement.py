"""What an adversary could move, beside what the noise was made for."""

from dataclasses import dataclass

from quietq.privacy.errors import QuietqError

TOLERANCE = 1e-5
"""Movements are computed in float32 where the method computes in it: this part of them may be rounding."""


class Unprotected(QuietqError):
    """There is no noise of the kind that was promised between the reward and what is released."""


@dataclass(frozen=True)
class Movement:
    """The farthest that neighbours were found apart before noise, and how far apart the noise takes them to be.

    >>> move = Movement("value", stated=0.4, found=0.39, by="greedy")
    >>> move.share, move.exceeds
    (0.975, False)
    """

    name: str
    """What was audited."""
    stated: float
    """The sensitivity that the noise in it is enough for, by the noise itself and the budget."""
    found: float
    """The largest movement that the search found, in the same norm: the sensitivity is at least this."""
    by: str
    """Which search found it."""
    norm: str = "Euclidean"
    """What both are measured in."""

    @property
    def share(self) -> float:
        """What part of the stated sensitivity was found: above 1, the promise is broken; far below, noise is wasted."""
        return self.found / self.stated

    @property
    def exceeds(self) -> bool:
        """Whether neighbours are farther apart than the noise is made for, by more than rounding."""
        return not self.found <= self.stated * (1 + TOLERANCE)  # True for NaN

    def to_dict(self) -> dict[str, object]:
        names = ("name", "norm", "stated", "found", "share", "by", "exceeds")
        return {name: getattr(self, name) for name in names}
