"""People's feedback in, one bounded and smooth reward, the same reward made private, for any RL library."""

from quietq.rewards.people import People
from quietq.rewards.privatise import privatise

__all__ = ["People", "privatise"]
