"""Lower bounds: what can be learned from a release, measured by attack, beside what its certificate promises.

A certificate is an upper bound, and an audit a lower one: it can refute a promise, never prove it. All of it is
simulation, on which no release rests.
"""

from quietq.audit.bandits import Visit as Visit, audit_bandit as audit_bandit, frozen_bandit as frozen_bandit
from quietq.audit.bounds import (
    Errors as Errors,
    epsilon_lower as epsilon_lower,
    mu_lower as mu_lower,
)
from quietq.audit.distinguisher import (
    Expected as Expected,
    Seen as Seen,
    Thresholds as Thresholds,
    learn as learn,
)
from quietq.audit.draws import (
    BestTest as BestTest,
    audit_draws as audit_draws,
    audit_mechanism as audit_mechanism,
    audit_reward as audit_reward,
)
from quietq.audit.everything import (
    PlannedAudit as PlannedAudit,
    all_but_two as all_but_two,
    plan_releases as plan_releases,
)
from quietq.audit.finding import (
    Attack as Attack,
    Finding as Finding,
    Movement as Movement,
    Promise as Promise,
    Unprotected as Unprotected,
    count_errors as count_errors,
    in_words as in_words,
)
from quietq.audit.frozen_release import frozen_release as frozen_release
from quietq.audit.worst_rows import WorstRows as WorstRows, worst_rows as worst_rows
