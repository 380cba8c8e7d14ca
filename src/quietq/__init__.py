"""quietq: learn what to do from a reward that belongs to people, and publish it without giving any of them away.

>>> import quietq as qq
>>> relation = qq.people(50, low=0, high=0.5, slope=1)
>>> mechanism = qq.GaussianProcessMechanism.for_relation(relation, qq.Budget(epsilon=0.9, delta=1e-4))
>>> round(mechanism.sigma, 4)
0.0782
"""

import importlib
from typing import TYPE_CHECKING

from quietq.registration import register_when_imported
from quietq.version import __version__ as __version__

if TYPE_CHECKING:
    from quietq.learning import ActorCritic as ActorCritic
    from quietq.learning import Agent as Agent
    from quietq.learning import Evaluation as Evaluation
    from quietq.learning import GradientNoise as GradientNoise
    from quietq.learning import InputNoise as InputNoise
    from quietq.learning import NetworkValueNoise as NetworkValueNoise
    from quietq.learning import NoNoise as NoNoise
    from quietq.learning import OutputNoise as OutputNoise
    from quietq.learning import Published as Published
    from quietq.learning import RewardNoise as RewardNoise
    from quietq.learning import ValueNoise as ValueNoise
    from quietq.ledger import Ledger as Ledger
    from quietq.noise import Additive as Additive
    from quietq.noise import BandLimited as BandLimited
    from quietq.noise import Box as Box
    from quietq.noise import Exponential as Exponential
    from quietq.noise import Features as Features
    from quietq.noise import GaussianProcessMechanism as GaussianProcessMechanism
    from quietq.noise import GridPath as GridPath
    from quietq.noise import PrivateFunction as PrivateFunction
    from quietq.noise import Product as Product
    from quietq.noise import SortedPath as SortedPath
    from quietq.noise import TreePath as TreePath
    from quietq.privacy import Accountant as Accountant
    from quietq.privacy import Assumption as Assumption
    from quietq.privacy import Budget as Budget
    from quietq.privacy import BudgetExhausted as BudgetExhausted
    from quietq.privacy import Certificate as Certificate
    from quietq.privacy import Cost as Cost
    from quietq.privacy import InvalidInput as InvalidInput
    from quietq.privacy import LipschitzBall as LipschitzBall
    from quietq.privacy import MissingExtra as MissingExtra
    from quietq.privacy import NoRkhsRadius as NoRkhsRadius
    from quietq.privacy import PrivacyWarning as PrivacyWarning
    from quietq.privacy import PublishedTheorem as PublishedTheorem
    from quietq.privacy import QuietqError as QuietqError
    from quietq.privacy import RkhsBall as RkhsBall
    from quietq.privacy import SupBall as SupBall
    from quietq.privacy import Trajectories as Trajectories
    from quietq.privacy import people as people
    from quietq.release import InvalidRelease as InvalidRelease
    from quietq.release import load as load
    from quietq.release import publish as publish
    from quietq.rewards import People as People
    from quietq.rewards import PrivateReward as PrivateReward
    from quietq.rewards import RewardModel as RewardModel
    from quietq.rewards import privatise as privatise
    from quietq.rewards import relabel as relabel

# What each room offers at the top. Rooms are imported when they are first used, so that `import quietq` is quick.
_ROOMS = {
    "learning": (
        "ActorCritic Agent Evaluation GradientNoise InputNoise NetworkValueNoise NoNoise OutputNoise Published "
        "RewardNoise ValueNoise"
    ),
    "ledger": "Ledger",
    "noise": (
        "Additive BandLimited Box Exponential Features GaussianProcessMechanism GridPath PrivateFunction Product "
        "SortedPath TreePath"
    ),
    "privacy": (
        "Accountant Assumption Budget BudgetExhausted Certificate Cost InvalidInput LipschitzBall MissingExtra "
        "NoRkhsRadius PrivacyWarning PublishedTheorem QuietqError RkhsBall SupBall Trajectories people"
    ),
    "release": "InvalidRelease load publish",
    "rewards": "People PrivateReward RewardModel privatise relabel",
}
_WHERE = {name: f"quietq.{room}" for room, names in _ROOMS.items() for name in names.split()}

__all__ = sorted([*_WHERE, "__version__"])  # pyright: ignore[reportUnsupportedDunderAll]

register_when_imported()


def __getattr__(name: str) -> object:
    if name in _WHERE:
        return getattr(importlib.import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'quietq' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
