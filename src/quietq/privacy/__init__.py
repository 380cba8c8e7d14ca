"""The promise: budgets, neighbouring relations, accounting, certificates and what is possible at all."""

from quietq.privacy.account import (
    Account as Account,
    Accountant as Accountant,
    Cost as Cost,
    Receipt as Receipt,
    Spending as Spending,
)
from quietq.privacy.assumptions import Assumption as Assumption, Code as Code
from quietq.privacy.budget import (
    Budget as Budget,
    delta_from_mu as delta_from_mu,
    epsilon_from_mu as epsilon_from_mu,
    mu_from_budget as mu_from_budget,
    weak_promise as weak_promise,
)
from quietq.privacy.certificate import (
    AnsweredQuery as AnsweredQuery,
    Certificate as Certificate,
    InvalidCertificate as InvalidCertificate,
    Standing as Standing,
)
from quietq.privacy.errors import (
    BudgetExhausted as BudgetExhausted,
    EngineFailed as EngineFailed,
    InvalidInput as InvalidInput,
    MissingExtra as MissingExtra,
    NoRkhsRadius as NoRkhsRadius,
    PrivacyWarning as PrivacyWarning,
    QuietqError as QuietqError,
)
from quietq.privacy.explain import explain as explain, guess as guess
from quietq.privacy.limits import (
    cap_any_dp as cap_any_dp,
    cap_gdp as cap_gdp,
    people_needed as people_needed,
    steps_between as steps_between,
    steps_needed as steps_needed,
)
from quietq.privacy.relations import (
    Arrivals as Arrivals,
    Exponential as Exponential,
    LipschitzBall as LipschitzBall,
    Relation as Relation,
    RkhsBall as RkhsBall,
    SupBall as SupBall,
    Trajectories as Trajectories,
    people as people,
)
from quietq.privacy.transcript import Query as Query, Transcript as Transcript
