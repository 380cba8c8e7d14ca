"""People's feedback in, one bounded and smooth reward, the same reward made private, for any RL library."""

from quietq.rewards.denoise import denoise
from quietq.rewards.model import RewardModel
from quietq.rewards.people import People
from quietq.rewards.private_reward import PrivateReward
from quietq.rewards.privatise import privatise
from quietq.rewards.reader import relabel

__all__ = ["People", "PrivateReward", "RewardModel", "denoise", "privatise", "relabel"]
