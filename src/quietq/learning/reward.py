"""`reward`: the reward is made private once, as a function; training on it is post-processing.

Theorem. Whatever is computed from a released function without another look at the private data is covered by the
function's certificate: there is no number of steps, batch size, learning rate, discount or network in the bound, and
trainings may be repeated and the best of them kept, by what they achieve on the *private* reward (docs/theory.md,
section 4).

Where episodes can end early, a constant added to the reward changes what is best: K-norm noise releases the reward up
to a constant, and is then to be used with care.
"""

from dataclasses import dataclass
from typing import ClassVar

from quietq.learning.deep_q import DeepQ
from quietq.learning.reward_learner import RewardLearner


@dataclass(frozen=True, kw_only=True)
class RewardNoise(RewardLearner, DeepQ):
    """Deep Q-learning on a private reward.

    `private` is what `privatise` returned, a fitted reward model, or several simulated draws of one setting.
    """

    name: ClassVar[str] = "reward"
