"""How far off the rewards and the ends of a private world may be, estimated from noisy answers and public numbers."""

from typing import Any

import numpy as np

from quietq.mechanisms.rounds import Fitted, Rounds
from quietq.released.private_world import WorldErrors

_PLACES = 2**10
"""Public points at which it is asked how much of a direction is a constant."""


def estimate_errors(
    width: float, rewards: Rounds | None, reward: Fitted | None, ends: float | None, starts: float | None
) -> WorldErrors:
    """`width` is that of the range of rewards, `ends` the noise on log-odds, `starts` how clear they were."""
    if rewards is None or reward is None or reward.kept is None:
        return WorldErrors(ends_noise=ends, starts_seen=starts)
    noise = reward.basis.size**0.5 * reward.deviation
    left_out = max(float(rewards.every.variances.sum() - reward.basis.variances.sum()), 0.0)
    after = (float(reward.kept.sum() * reward.deviation**2) + left_out) ** 0.5
    error = max(width * after, rewards.expected_error())
    return WorldErrors(width * noise, _kept(rewards, reward), error, ends, starts)


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
