"""The acts of releasing: what people gave goes in, something private comes out, once."""

from quietq.mechanisms.evaluate_policies import choose_policy as choose_policy, evaluate_policies as evaluate_policies
from quietq.mechanisms.evaluation import Evaluation as Evaluation
from quietq.mechanisms.gaussian_process import GaussianProcessMechanism as GaussianProcessMechanism
from quietq.mechanisms.model import RewardModel as RewardModel, denoise as denoise
from quietq.mechanisms.plan import Expected as Expected, Plan as Plan, expected as expected, plan as plan
from quietq.mechanisms.private_function import (
    PrivateFunction as PrivateFunction,
    PrivateKnots as PrivateKnots,
    PrivateSum as PrivateSum,
    PrivateTable as PrivateTable,
    PrivateWeights as PrivateWeights,
)
from quietq.mechanisms.private_world import PrivateWorld as PrivateWorld
from quietq.mechanisms.privatise import privatise as privatise
from quietq.mechanisms.world_model import WorldModel as WorldModel
