"""Agents: one compiled trainer, one file a method.

`Agent(world, method).learn(steps)` trains; a `Method` says how, and what is promised.
"""

from quietq.privacy.errors import MissingExtra as MissingExtra

try:
    import equinox as _equinox  # noqa: F401
    import jax as _jax  # noqa: F401
    import optax as _optax  # noqa: F401
except ImportError as error:
    raise MissingExtra.of("train", "Training needs JAX, Equinox and Optax") from error

from quietq.learning.actor_critic import ActorCritic as ActorCritic
from quietq.learning.agent import Agent as Agent, NotTrained as NotTrained
from quietq.learning.deep_q import DeepQ as DeepQ, NoNoise as NoNoise
from quietq.learning.gradient import GradientNoise as GradientNoise
from quietq.learning.in_loop_method import InLoopMethod as InLoopMethod
from quietq.learning.input import InputNoise as InputNoise
from quietq.learning.method import Method as Method, Spaces as Spaces, Transition as Transition
from quietq.learning.options import option as option, options_of as options_of
from quietq.learning.output import OutputNoise as OutputNoise
from quietq.learning.published import Published as Published
from quietq.learning.report import Event as Event
from quietq.learning.reward import RewardLearner as RewardLearner, RewardNoise as RewardNoise
from quietq.learning.scoring import NotPrivate as NotPrivate
from quietq.learning.value import ValueNoise as ValueNoise
from quietq.learning.value_network import NetworkValueNoise as NetworkValueNoise
from quietq.registry import METHODS as _ENTRIES

METHODS: dict[str, type[Method]] = {name: entry.load() for name, entry in _ENTRIES.items() if entry.in_worlds}
"""The methods by name."""
