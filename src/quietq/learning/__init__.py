"""Agents: one compiled trainer, one file a method.

`Agent(world, method).learn(steps)` trains; a `Method` says how, and what is promised.
"""

from quietq.privacy.errors import MissingExtra

try:
    import equinox as _equinox  # noqa: F401
    import jax as _jax  # noqa: F401
    import optax as _optax  # noqa: F401
except ImportError as error:
    raise MissingExtra.of("train", "Training needs JAX, Equinox and Optax") from error

from quietq.learning.actor_critic import ActorCritic
from quietq.learning.agent import Agent, NotTrained
from quietq.learning.deep_q import DeepQ
from quietq.learning.evaluation import Evaluation
from quietq.learning.events import Event
from quietq.learning.gradient import GradientNoise
from quietq.learning.input import InputNoise
from quietq.learning.judge import NotPrivate
from quietq.learning.method import Method, Spaces, Transition
from quietq.learning.none import NoNoise
from quietq.learning.options import option, options_of
from quietq.learning.output import OutputNoise
from quietq.learning.promise import Promising
from quietq.learning.published import Published
from quietq.learning.reward import RewardNoise
from quietq.learning.value import ValueNoise
from quietq.learning.value_network import NetworkValueNoise
from quietq.methods import ENTRIES

METHODS: dict[str, type[Method]] = {entry.name: entry.load() for entry in ENTRIES if entry.in_worlds}
"""The methods by name."""

__all__ = [
    "METHODS",
    "ActorCritic",
    "Agent",
    "DeepQ",
    "Evaluation",
    "Event",
    "GradientNoise",
    "InputNoise",
    "Method",
    "NetworkValueNoise",
    "NoNoise",
    "NotPrivate",
    "NotTrained",
    "OutputNoise",
    "Promising",
    "Published",
    "RewardNoise",
    "Spaces",
    "Transition",
    "ValueNoise",
    "option",
    "options_of",
]
