"""Lower bounds: what can be told from a release, measured by attack, beside what its certificate promises.

A certificate is an upper bound, and an audit a lower one: it can refute a promise, never prove it. All of it is
simulation, on which no release rests.
"""

from quietq.privacy.errors import MissingExtra as MissingExtra

try:
    import equinox as _equinox  # noqa: F401
    import jax as _jax  # noqa: F401
except ImportError as error:
    raise MissingExtra.of("train", "Audits need JAX and Equinox") from error

from quietq.audit.bandits import Visit as Visit, audit_bandit as audit_bandit, frozen_bandit as frozen_bandit
from quietq.audit.bounds import (
    Errors as Errors,
    epsilon_lower as epsilon_lower,
    mu_lower as mu_lower,
    runs_needed as runs_needed,
)
from quietq.audit.distinguisher import (
    Expected as Expected,
    Scores as Scores,
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
from quietq.audit.evaluation import audit_evaluation as audit_evaluation
from quietq.audit.finding import (
    Attack as Attack,
    Finding as Finding,
    Movement as Movement,
    Promise as Promise,
    Unprotected as Unprotected,
    count_errors as count_errors,
    in_words as in_words,
    write_movements as write_movements,
    write_table as write_table,
)
from quietq.audit.frozen_release import frozen_people as frozen_people, frozen_release as frozen_release
from quietq.audit.frozen_step import frozen_sensitivity as frozen_sensitivity
from quietq.audit.made_up import made_up as made_up
from quietq.audit.pairs import MOVES as MOVES, Pair as Pair, neighbours as neighbours
from quietq.audit.person import PersonAttack as PersonAttack, attack_person as attack_person
from quietq.audit.plan import (
    PlannedAudit as PlannedAudit,
    plan_audit as plan_audit,
    plan_everything as plan_everything,
    sensitivities as sensitivities,
)
from quietq.audit.reconstruct import reconstruct as reconstruct
from quietq.audit.runs import Privatising as Privatising, Trainings as Trainings, View as View
from quietq.audit.training import audit_training as audit_training
from quietq.audit.worst_rows import WorstRows as WorstRows, worst_rows as worst_rows
