"""The acts of releasing: what people gave goes in, something private comes out, once."""

from quietq.mechanisms.candidates import privatise as privatise
from quietq.mechanisms.clone import clone as clone
from quietq.mechanisms.path import GaussianProcessMechanism as GaussianProcessMechanism
from quietq.mechanisms.plan import (
    ExpectedError as ExpectedError,
    PeopleNeeded as PeopleNeeded,
    expected as expected,
    plan as plan,
)
from quietq.mechanisms.policy_values import evaluate_policies as evaluate_policies
from quietq.mechanisms.reward_check import CheckedReward as CheckedReward
