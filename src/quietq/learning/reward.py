"""`reward`: the reward is made private once, as a function; training on it is post-processing.

Theorem. Whatever is computed from a released function without another look at the private data is covered by the
function's certificate: there is no number of steps, batch size, learning rate, discount or network in the bound, and
trainings may be repeated and the best of them kept, by what they achieve on the *private* reward (docs/theory.md,
section 4).

Where episodes can end early, a constant added to the reward changes what is best: K-norm noise releases the reward up
to a constant, and is then to be used with care.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from quietq.learning.deep_q import DeepQ
from quietq.learning.method import Spaces
from quietq.noise.private_function import PrivateFunction
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput
from quietq.rewards.model import FittedReward

PrivateSource = PrivateFunction | FittedReward


@dataclass(frozen=True, kw_only=True)
class RewardNoise(DeepQ):
    """Deep Q-learning on a private reward.

    `private` is what `privatise` returned, a fitted reward model, or several simulated draws of one setting.
    """

    name: ClassVar[str] = "reward"
    uses_true_reward: ClassVar[bool] = False
    private: PrivateSource | Sequence[PrivateSource] | None = field(default=None, kw_only=False)

    @property
    def rewards(self) -> tuple[PrivateSource, ...]:
        """The private reward, or the simulated ones."""
        if isinstance(self.private, PrivateFunction | FittedReward):
            return (self.private,)
        given = self.private if isinstance(self.private, Sequence) else ()
        if not given or not all(isinstance(one, PrivateFunction | FittedReward) for one in given):
            raise InvalidInput(
                "reward needs a private reward: what privatise returns, or quietq.load reads from a file."
            )
        return tuple(given)

    def core(self) -> "RewardNoise":
        """Without the reward: one program serves all of them."""
        return replace(self, private=None)

    def check(self, spaces: Spaces, steps: int) -> None:
        """The reward must be defined wherever states can be."""
        for private in self.rewards:
            if private.box.low != spaces.box.low or private.box.high != spaces.box.high:
                raise InvalidInput(f"The private reward is defined on {private.box}, but states lie in {spaces.box}.")
        if len(self.rewards) > 1 and any(_certificate(one).standing != "none" for one in self.rewards):
            raise InvalidInput(
                "Several private rewards are several releases; only simulated ones are trained on together."
            )

    def certificate(self, spaces: Spaces, steps: int) -> Certificate:
        """The reward's own certificate: it covers the agent as it is."""
        return _certificate(self.rewards[0])

    def settings(self) -> dict[str, object]:
        """The hyper-parameters, and which reward: by a hash of its values, which are public."""
        digest = hashlib.sha256()
        for private in self.rewards:
            digest.update(np.ascontiguousarray(private(private.box.from_unit(_points(private)))).tobytes())
        return super().settings() | {"private": digest.hexdigest()}


def _points(private: PrivateSource) -> np.ndarray:
    """Some points of the unit box, enough to tell two releases apart."""
    dimension = private.box.dimension
    points = np.random.default_rng(0).random((257, dimension))
    return points[:, 0] if dimension == 1 else points


def _certificate(private: PrivateSource) -> Certificate:
    if private.certificate is None:
        raise InvalidInput("This fitted reward has no certificate: fit it to released rewards that have one.")
    return private.certificate
