"""quietq: learn what to do from a reward that belongs to people, and publish it without giving any of them away.

>>> import quietq as qq
>>> relation = qq.people(50, low=0, high=0.5, slope=1)
>>> mechanism = qq.GaussianProcessMechanism.for_relation(relation, qq.Budget(epsilon=0.9, delta=1e-4))
>>> round(mechanism.sigma, 4)
0.0782
"""

import importlib
from typing import TYPE_CHECKING

from quietq.registry import register_when_imported
from quietq.version import __version__ as __version__

if TYPE_CHECKING:
    from quietq.feedback import Comparisons as Comparisons, Ratings as Ratings, Sessions as Sessions
    from quietq.learning import (
        ActorCritic as ActorCritic,
        Agent as Agent,
        GradientNoise as GradientNoise,
        InputNoise as InputNoise,
        NetworkValueNoise as NetworkValueNoise,
        NoNoise as NoNoise,
        OutputNoise as OutputNoise,
        Published as Published,
        RewardNoise as RewardNoise,
        ValueNoise as ValueNoise,
    )
    from quietq.ledger import Ledger as Ledger
    from quietq.mechanisms import (
        Evaluation as Evaluation,
        GaussianProcessMechanism as GaussianProcessMechanism,
        PrivateFunction as PrivateFunction,
        PrivateWorld as PrivateWorld,
        RewardModel as RewardModel,
        WorldModel as WorldModel,
        choose_policy as choose_policy,
        evaluate_policies as evaluate_policies,
        plan as plan,
        privatise as privatise,
    )
    from quietq.noise import (
        Additive as Additive,
        BandLimited as BandLimited,
        Box as Box,
        Columns as Columns,
        Exponential as Exponential,
        FeatureKernel as FeatureKernel,
        Fourier as Fourier,
        GridPath as GridPath,
        Product as Product,
        Radial as Radial,
        SortedPath as SortedPath,
        Splines as Splines,
        TreePath as TreePath,
    )
    from quietq.privacy import (
        Accountant as Accountant,
        Assumption as Assumption,
        Budget as Budget,
        BudgetExhausted as BudgetExhausted,
        Certificate as Certificate,
        Cost as Cost,
        EngineFailed as EngineFailed,
        InvalidInput as InvalidInput,
        LipschitzBall as LipschitzBall,
        MissingExtra as MissingExtra,
        NoRkhsRadius as NoRkhsRadius,
        PrivacyWarning as PrivacyWarning,
        PublishedTheorem as PublishedTheorem,
        QuietqError as QuietqError,
        RkhsBall as RkhsBall,
        SupBall as SupBall,
        Trajectories as Trajectories,
        people as people,
    )
    from quietq.publishing import InvalidRelease as InvalidRelease, load as load, publish as publish
    from quietq.worlds import (
        PrivateReward as PrivateReward,
        check_plan as check_plan,
        plan_linear as plan_linear,
        relabel as relabel,
    )

# What each room offers at the top. Rooms are imported when they are first used, so that `import quietq` is quick.
_ROOMS = {
    "feedback": "Comparisons Ratings Sessions",
    "learning": (
        "ActorCritic Agent GradientNoise InputNoise NetworkValueNoise NoNoise OutputNoise Published "
        "RewardNoise ValueNoise"
    ),
    "ledger": "Ledger",
    "mechanisms": (
        "Evaluation GaussianProcessMechanism PrivateFunction PrivateWorld RewardModel WorldModel choose_policy "
        "evaluate_policies plan privatise"
    ),
    "noise": (
        "Additive BandLimited Box Columns Exponential FeatureKernel Fourier GridPath Product Radial SortedPath "
        "Splines TreePath"
    ),
    "privacy": (
        "Accountant Assumption Budget BudgetExhausted Certificate Cost EngineFailed InvalidInput LipschitzBall "
        "MissingExtra NoRkhsRadius PrivacyWarning PublishedTheorem QuietqError RkhsBall SupBall Trajectories people"
    ),
    "publishing": "InvalidRelease load publish",
    "worlds": "PrivateReward check_plan plan_linear relabel",
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
