"""quietq: learn what to do from a reward that belongs to people, and publish it without giving any of them away.

>>> import quietq as qq
>>> relation = qq.people(50, low=0, high=0.5, slope=1)
>>> mechanism = qq.GaussianProcessMechanism.for_relation(relation, qq.Budget(epsilon=0.9, delta=1e-4))
>>> round(mechanism.sigma, 4)
0.0782
"""

from quietq.noise import (
    Additive,
    BandLimited,
    Box,
    Exponential,
    Features,
    GaussianProcessMechanism,
    GridPath,
    PrivateFunction,
    Product,
    SortedPath,
    TreePath,
)
from quietq.privacy import (
    Accountant,
    Assumption,
    Budget,
    BudgetExhausted,
    Certificate,
    InvalidInput,
    LipschitzBall,
    MissingExtra,
    NoRkhsRadius,
    PrivacyWarning,
    PublishedTheorem,
    QuietqError,
    RkhsBall,
    SupBall,
    people,
)
from quietq.version import __version__

__all__ = [
    "Accountant",
    "Additive",
    "Assumption",
    "BandLimited",
    "Box",
    "Budget",
    "BudgetExhausted",
    "Certificate",
    "Exponential",
    "Features",
    "GaussianProcessMechanism",
    "GridPath",
    "InvalidInput",
    "LipschitzBall",
    "MissingExtra",
    "NoRkhsRadius",
    "PrivacyWarning",
    "PrivateFunction",
    "Product",
    "PublishedTheorem",
    "QuietqError",
    "RkhsBall",
    "SortedPath",
    "SupBall",
    "TreePath",
    "__version__",
    "people",
]
