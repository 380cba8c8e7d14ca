"""quietq: learn what to do from a reward that belongs to people, and publish it without giving any of them away.

>>> import quietq as qq
>>> relation = qq.people(50, low=0, high=0.5, slope=1)
>>> mechanism = qq.GaussianProcessMechanism.for_relation(relation, qq.Budget(epsilon=0.9, delta=1e-4))
>>> round(mechanism.sigma, 4)
0.0782
"""

import importlib
from typing import TYPE_CHECKING

from quietq.version import __version__ as __version__

if TYPE_CHECKING:
    from quietq.feedback import Comparisons as Comparisons, Ratings as Ratings, Sessions as Sessions
    from quietq.ledger import Ledger as Ledger
    from quietq.mechanisms import (
        GaussianProcessMechanism as GaussianProcessMechanism,
        clone as clone,
        evaluate_policies as evaluate_policies,
        plan as plan,
        privatise as privatise,
    )
    from quietq.noise import (
        Box as Box,
        Columns as Columns,
        Fourier as Fourier,
    )
    from quietq.privacy import (
        Accountant as Accountant,
        Assumption as Assumption,
        Budget as Budget,
        BudgetExhausted as BudgetExhausted,
        Certificate as Certificate,
        Code as Code,
        Cost as Cost,
        EngineFailed as EngineFailed,
        Exponential as Exponential,
        InvalidInput as InvalidInput,
        LipschitzBall as LipschitzBall,
        MissingExtra as MissingExtra,
        NoRkhsRadius as NoRkhsRadius,
        PrivacyWarning as PrivacyWarning,
        QuietqError as QuietqError,
        RkhsBall as RkhsBall,
        SupBall as SupBall,
        Trajectories as Trajectories,
        explain as explain,
        people as people,
    )
    from quietq.publishing import check as check, publish as publish, to_minari as to_minari
    from quietq.released import (
        InvalidRelease as InvalidRelease,
        PrivateFunction as PrivateFunction,
        PrivateWorld as PrivateWorld,
        WorldModel as WorldModel,
        load as load,
    )
    from quietq.worlds import (
        PrivateReward as PrivateReward,
        plan_linear as plan_linear,
        rehearse as rehearse,
    )

# What each room offers at the top. Rooms are imported when they are first used, so that `import quietq` is quick.
_ROOMS = {
    "feedback": "Comparisons Ratings Sessions",
    "ledger": "Ledger",
    "mechanisms": "GaussianProcessMechanism clone evaluate_policies plan privatise",
    "noise": "Box Columns Fourier",
    "privacy": (
        "Accountant Assumption Budget BudgetExhausted Certificate Code Cost EngineFailed Exponential InvalidInput "
        "LipschitzBall MissingExtra NoRkhsRadius PrivacyWarning QuietqError RkhsBall SupBall Trajectories explain "
        "people"
    ),
    "publishing": "check publish to_minari",
    "released": "InvalidRelease PrivateFunction PrivateWorld WorldModel load",
    "worlds": "PrivateReward plan_linear rehearse",
}
_WHERE = {name: f"quietq.{room}" for room, names in _ROOMS.items() for name in names.split()}

__all__ = sorted([*_WHERE, "__version__"])  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'quietq' has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(_WHERE[name]), name)
    return found


def __dir__() -> list[str]:
    return __all__
