"""Agents: one compiled trainer, and the Gymnasium loop; what learns in them is a `Method`.

`Agent(world, method).learn(steps)` trains; a `Method` says how, and what is promised.
"""

from quietq.privacy.errors import MissingExtra as MissingExtra

try:
    import equinox as _equinox  # noqa: F401
    import jax as _jax  # noqa: F401
    import optax as _optax  # noqa: F401
except ImportError as error:
    raise MissingExtra.of("paper", "Training needs JAX, Equinox and Optax") from error

from quietq.paper.agents.actor_critic import ActorCritic as ActorCritic
from quietq.paper.agents.agent import Agent as Agent, NotPrivate as NotPrivate
from quietq.paper.agents.deep_q import DeepQ as DeepQ, NoNoise as NoNoise
from quietq.paper.agents.hyper_parameters import option as option, options_of as options_of
from quietq.paper.agents.in_loop_method import InLoopMethod as InLoopMethod
from quietq.paper.agents.method import (
    EnvironmentSpaces as EnvironmentSpaces,
    Method as Method,
    Transition as Transition,
)
from quietq.paper.agents.places import bound_observations as bound_observations, find_place as find_place
from quietq.paper.agents.reward_learner import RewardLearner as RewardLearner, RewardNoise as RewardNoise
