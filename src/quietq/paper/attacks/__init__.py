"""Attacks on trainings: distinguished from outside, with the noise held fixed, and rewards read off a policy."""

from quietq.privacy.errors import MissingExtra as MissingExtra

try:
    import equinox as _equinox  # noqa: F401
    import jax as _jax  # noqa: F401
except ImportError as error:
    raise MissingExtra.of("paper", "Attacks on trainings need JAX and Equinox") from error

from quietq.paper.attacks.frozen_step import frozen_sensitivity as frozen_sensitivity
from quietq.paper.attacks.on_trainings import (
    Trainings as Trainings,
    View as View,
    audit_training as audit_training,
)
from quietq.paper.attacks.reconstruct import reconstruct as reconstruct
from quietq.paper.attacks.trajectories_attack import audit_evaluation as audit_evaluation
