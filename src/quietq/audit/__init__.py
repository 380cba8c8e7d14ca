"""Lower bounds: what can be told from a release, measured by attack, beside what its certificate promises.

A certificate is an upper bound, and an audit a lower one: it can refute a promise, never prove it. All of it is
simulation, on which no release rests.
"""

from quietq.privacy.errors import MissingExtra

try:
    import equinox as _equinox  # noqa: F401
    import jax as _jax  # noqa: F401
except ImportError as error:
    raise MissingExtra.of("train", "Audits need JAX and Equinox") from error

from quietq.audit.bounds import Errors, epsilon_lower, mu_lower, runs_needed
from quietq.audit.distinguisher import Expected, Scores, Seen, Thresholds, learn
from quietq.audit.draws import audit_draws
from quietq.audit.everything import Entry, entries
from quietq.audit.finding import Attack, Finding, Promise, judge
from quietq.audit.frozen import frozen_sensitivity, sensitivities
from quietq.audit.mechanism import audit_mechanism
from quietq.audit.movement import Movement, Unprotected
from quietq.audit.other_releases import audit_evaluation, audit_observed, audit_weights
from quietq.audit.pairs import MOVES, Pair, neighbours
from quietq.audit.person import PersonAttack, attack_person
from quietq.audit.reconstruct import reconstruct
from quietq.audit.release import audit_reward
from quietq.audit.runs import Privatising, Trainings
from quietq.audit.successive import Steps, released_rounds, rewards_from_successive
from quietq.audit.table import write_movements, write_table
from quietq.audit.training import audit_training
from quietq.audit.views import View

__all__ = [
    "MOVES",
    "Attack",
    "Entry",
    "Errors",
    "Expected",
    "Finding",
    "Movement",
    "Pair",
    "PersonAttack",
    "Privatising",
    "Promise",
    "Scores",
    "Seen",
    "Steps",
    "Thresholds",
    "Trainings",
    "Unprotected",
    "View",
    "attack_person",
    "audit_draws",
    "audit_evaluation",
    "audit_mechanism",
    "audit_observed",
    "audit_reward",
    "audit_training",
    "audit_weights",
    "entries",
    "epsilon_lower",
    "frozen_sensitivity",
    "judge",
    "learn",
    "mu_lower",
    "neighbours",
    "reconstruct",
    "released_rounds",
    "rewards_from_successive",
    "runs_needed",
    "sensitivities",
    "write_movements",
    "write_table",
]
