"""The promise: budgets, neighbouring relations, accounting, certificates and what is possible at all."""

from quietq.privacy.account import Account, Accountant, Receipt
from quietq.privacy.budget import Budget, weak_delta
from quietq.privacy.certificate import Assumption, Certificate, InvalidCertificate, Standing
from quietq.privacy.comparison import Comparison, compare
from quietq.privacy.cost import Cost, Spending
from quietq.privacy.errors import (
    BudgetExhausted,
    InvalidInput,
    MissingExtra,
    NoRkhsRadius,
    PrivacyWarning,
    QuietqError,
)
from quietq.privacy.gaussian import delta_from_mu, epsilon_from_mu, mu_from_budget
from quietq.privacy.limits import cap_any_dp, cap_gdp, people_needed, steps_between, steps_needed
from quietq.privacy.published import PublishedCheck, PublishedTheorem
from quietq.privacy.relations import LipschitzBall, Relation, RkhsBall, SupBall, Trajectories, people

__all__ = [
    "Account",
    "Accountant",
    "Assumption",
    "Budget",
    "BudgetExhausted",
    "Certificate",
    "Comparison",
    "Cost",
    "InvalidCertificate",
    "InvalidInput",
    "LipschitzBall",
    "MissingExtra",
    "NoRkhsRadius",
    "PrivacyWarning",
    "PublishedCheck",
    "PublishedTheorem",
    "QuietqError",
    "Receipt",
    "Relation",
    "RkhsBall",
    "Spending",
    "Standing",
    "SupBall",
    "Trajectories",
    "cap_any_dp",
    "cap_gdp",
    "compare",
    "delta_from_mu",
    "epsilon_from_mu",
    "mu_from_budget",
    "people",
    "people_needed",
    "steps_between",
    "steps_needed",
    "weak_delta",
]
