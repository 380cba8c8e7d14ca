"""What a method is: hyper-parameters, pure functions to learn with, and a promise.

The functions (`init`, `act`, `update`, `finish`, `values`) are pure and know nothing of budgets. The compiled trainer
and the Gymnasium loop call the same ones. Noise enters as an array that was drawn outside compiled code (`draw`); many
draws for one setting are simulation.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from quietq.noise import Box, Entropy
from quietq.paper.agents.hyper_parameters import check_options, options_of
from quietq.paper.agents.networks import Network, from_private
from quietq.privacy import Certificate, InvalidInput
from quietq.released.private_network import Output, PrivateNetwork
from quietq.worlds.world import flat

State = PyTree  # of a learner
Noise = PyTree  # of NumPy arrays, or None
Released = PyTree  # of arrays


@dataclass(frozen=True)
class EnvironmentSpaces:
    """What is public about a world: where states lie, how many actions there are, how long an episode is at most."""

    box: Box
    actions: int
    steps: int


def some_states(box: Box) -> Float[np.ndarray, "states d"]:
    """Public states all over the box, always the same: enough to distinguish two rewards."""
    points = np.random.default_rng(0).random((257, box.dimension))
    return np.asarray(box.from_unit(flat(points))).reshape(points.shape)


class Moment(NamedTuple):
    """A step of a run: its number, from 0, its own randomness, and the noise of the whole run."""

    step: Array
    key: PRNGKeyArray
    noise: Noise


class Transition(NamedTuple):
    """One step of each of `copies` environments."""

    state: Float[Array, "copies d"]
    action: Int[Array, " copies"]
    reward: Float[Array, " copies"]
    next_state: Float[Array, "copies d"]
    terminated: Bool[Array, " copies"]
    truncated: Bool[Array, " copies"]


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A frozen dataclass of hyper-parameters, with the pure functions that learn with them."""

    name: ClassVar[str]
    spends: ClassVar[bool] = False  # whether it noises as it goes, so that every run is a release of its own
    uses_true_reward: ClassVar[bool] = True
    """Whether training uses the true reward; if not, even its learning curve is covered."""
    output: ClassVar[Output] = "values"  # what its released networks give for each action

    def __post_init__(self) -> None:
        check_options(self)

    @abstractmethod
    def init(self, spaces: EnvironmentSpaces, key: PRNGKeyArray, copies: int = 1) -> State:
        """Returns the learner before its first step."""

    @abstractmethod
    def act(self, state: State, observation: Float[Array, "copies d"], now: Moment) -> Int[Array, " copies"]:
        """Returns what to do at these observations, while learning."""

    @abstractmethod
    def update(self, state: State, seen: Transition, now: Moment) -> State:
        """Returns the learner after what it has seen."""

    @abstractmethod
    def finish(self, state: State, noise: Noise) -> Released:
        """Returns what is released at the end, a pytree of arrays, and all that `values` uses."""

    def current(self, state: State, noise: Noise) -> Released:
        """Returns what was released so far in training, without using noise up; None if nothing was."""
        return None

    def values(self, released: Released, observation: Float[Array, " d"]) -> Float[Array, " actions"]:
        """Returns the released values of the actions at one observation."""
        return released(observation)

    def to_private(self, released: Released, spaces: EnvironmentSpaces, certificate: Certificate) -> PrivateNetwork:
        """Returns what all runs released, as it can be published: networks, by default."""
        if not isinstance(released, Network):
            raise InvalidInput(f"What {self.name!r} releases cannot be published: {type(released).__name__}.")
        return released.to_private(self.output, spaces.box, certificate)

    def from_private(self, private: PrivateNetwork, spaces: EnvironmentSpaces) -> Released:
        """The way back, from a network of this method's output."""
        return from_private(private)

    @abstractmethod
    def certificate(self, spaces: EnvironmentSpaces, steps: int) -> Certificate:
        """Returns what is promised for a run of `steps` with noise from the operating system."""

    def check(self, spaces: EnvironmentSpaces, steps: int) -> None:  # noqa: B027 (most methods have nothing to refuse)
        """Refuses what cannot work, before anything is drawn or spent."""

    def draw(self, spaces: EnvironmentSpaces, steps: int, entropy: Entropy) -> Noise:
        """Returns all noise of one run; by default there is none."""
        return None

    def core(self) -> "Method":
        """Returns the method without budgets and data: what the compiled program depends on."""
        return self

    def settings(self) -> dict[str, object]:
        """Returns the hyper-parameters in JSON, for the run's record."""
        return {"method": self.name} | {name: _plain(getattr(self, name)) for name in options_of(type(self))}


@partial(jax.jit, static_argnums=0)
def values_of_runs(
    method: Method, released: Released, points: Float[Array, "points d"]
) -> Float[Array, "runs points actions"]:
    """Returns what all runs released, at many observations."""
    return jax.vmap(jax.vmap(method.values, in_axes=(None, 0)), in_axes=(0, None))(released, points)


def _plain(value: object) -> object:
    """A hyper-parameter in JSON."""
    if type(value) is tuple:
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
