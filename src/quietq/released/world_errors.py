"""How far off the rewards and the ends of a private world may be, as far as released and public numbers tell.

Noise is not all of it: where noise is large, fits are shrunk towards a constant, and terms that would not be worth
their noise are left out. All numbers here are post-processing of noisy answers, or public, so they may leave.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from quietq.privacy.checks import not_negative

_CLEAR = 3.0
"""Deviations; noise alone exceeds them once in some hundred draws."""
STARTS_UNSEEN = (
    "First states may be noise alone, not people's: so little was seen of where episodes begin. Check the episode and "
    "the step of the sessions, or declare what is known: qq.WorldModel(start=...)."
)


@dataclass(frozen=True)
class WorldErrors:
    """Of what was learned; None for what is known, or not there."""

    reward_noise: float | None = None
    """How far noise alone may have moved rewards: root mean square over states, in their own units."""
    reward_kept: float | None = None
    """Which part of the differences between states and actions shrinkage leaves, by the fit's own account: less than 1
    means that released rewards are flatter than people's. Clipping, and rounds that end early, may take more."""
    reward_error: float | None = None
    """What rewards must be expected to be off by in all, noise, chance, shrinkage and terms left out, if they are as
    smooth as the fit takes them to be: root mean square where people's states lie, in their own units. An estimate, and
    no bound."""
    ends_noise: float | None = None
    """How far noise alone may have moved the log-odds of an end: root mean square over states."""
    starts_seen: float | None = None
    """By how many deviations what was seen of first states exceeds what noise alone shows: below 3, no first state of
    anybody may have been seen."""

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if value is not None:
                not_negative(one.name, value)

    @property
    def starts_unseen(self) -> bool:
        """Whether first states may be noise alone."""
        return self.starts_seen is not None and self.starts_seen < _CLEAR

    def to_dict(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def in_words(self, low: float, high: float) -> list[str]:
        """For whoever has to decide whether to train in the world; nothing of what is known."""
        lines = []
        if self.reward_error is not None:
            lines.append(
                f"Rewards, from {low:g} to {high:g}: expect them to be off by about {self.reward_error:.2g} in all "
                "where people's states lie, which is an estimate and no bound; elsewhere by more. "
                f"Noise alone moved them by about {self.reward_noise:.2g}, and "
                f"shrinkage left about {self.reward_kept:.2g} of the differences between states and actions. If there "
                "is a public formula, declare it: qq.WorldModel(reward=...)."
            )
        if self.ends_noise is not None:
            lines.append(
                f"Episodes end by a chance that was learned: noise alone moved its log-odds by about "
                f"{self.ends_noise:.2g}, which is a factor of {np.exp(min(self.ends_noise, 50.0)):.2g} where ends are "
                "rare. If there is a public rule, declare it: qq.WorldModel(end=...)."
            )
        if self.starts_unseen:
            lines.append(STARTS_UNSEEN)
        return lines
