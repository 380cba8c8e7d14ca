"""How far off the rewards and the ends of a private world may be, as far as released and public numbers tell.

Noise is not all of it: where noise is large, fits are shrunk towards a constant, and terms that would not be worth
their noise are left out. All numbers here are post-processing of noisy answers, or public, so they may leave.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from quietq.mechanisms.rounds import Fitted, Rounds
from quietq.privacy.checks import not_negative

_PLACES = 2**10
"""Public points at which it is asked how much of a direction is a constant."""

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
    """What rewards must be expected to be off by in all, noise, shrinkage and terms left out, if they are as smooth as
    the fit takes them to be: root mean square over states, in their own units. An estimate, and no bound."""
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

    @classmethod
    def of(
        cls, width: float, rewards: Rounds | None, reward: Fitted | None, ends: float | None, starts: float | None
    ) -> "WorldErrors":
        """`width` is that of the range of rewards, `ends` the noise on log-odds, `starts` how clear they were."""
        if rewards is None or reward is None or reward.kept is None:
            return cls(ends_noise=ends, starts_seen=starts)
        noise = reward.basis.size**0.5 * reward.deviation
        left_out = max(float(rewards.every.variances.sum() - reward.basis.variances.sum()), 0.0)
        after = (float(reward.kept.sum() * reward.deviation**2) + left_out) ** 0.5
        error = max(width * after, rewards.expected_error())
        return cls(width * noise, _kept(rewards, reward), error, ends, starts)

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
                f"Rewards, from {low:g} to {high:g}: expect them to be off by about {self.reward_error:.2g} in all, "
                f"which is an estimate and no bound. Noise alone moved them by about {self.reward_noise:.2g}, and "
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


def _kept(rewards: Rounds, reward: Fitted) -> float:
    """Of the variance from state to state and action to action that was expected, what the fit still shows."""
    own, every = reward.basis, rewards.every
    rng = np.random.default_rng(0)
    points = rng.random((_PLACES, rewards.box.dimension))
    action = rng.integers(0, every.actions, _PLACES) if every.actions > 1 else None

    def moves(basis: Any) -> np.ndarray:
        return basis.variances * basis.directions(points, action).var(axis=0)

    whole = max(float(moves(every).sum()), float(moves(own).sum()))
    return min(1.0, float((reward.kept * moves(own)).sum()) / whole) if whole > 0 else 1.0
