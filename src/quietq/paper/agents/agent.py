"""The agent: one method in one world, with Stable-Baselines3's verbs.

What it gives away by `predict`, `q_values` and `save` comes from what was released, and is covered by its certificate.
What looks at the true reward is under `not_private` and in `evaluate`: for the operator only.
"""

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import equinox as eqx
import gymnasium
import jax
import numpy as np
from gymnasium.vector import VectorEnv
from jaxtyping import Array, Float, Int

from quietq.paper.agents import gymnasium_loop as loop, saved, scoring, trainer
from quietq.paper.agents.environments import spaces_of_env
from quietq.paper.agents.method import Method, values_of_runs
from quietq.paper.agents.reward_learner import ReleasedValues
from quietq.paper.agents.training import Training, programs_in_memory
from quietq.paper.agents.training_events import Event, episode_returns
from quietq.privacy import Account, BudgetExhausted, Certificate, InvalidInput, QuietqError
from quietq.privacy.account import Receipted
from quietq.privacy.checks import count, instance
from quietq.released.private_network import PrivateNetwork, observed
from quietq.released.release_file import open_release, write_release
from quietq.worlds import World, find_place

Place = str | World | gymnasium.Env | VectorEnv


class NotTrained(QuietqError):
    """The agent has nothing to answer with yet."""


class Agent(Receipted):
    """An agent that learns with a method in a world.

    `world` is one of quietq's (by its name, its Gymnasium id or itself: compiled), or any Gymnasium environment or
    vector environment with a bounded Box of observations and Discrete actions. `reward` replaces the world's own.
    `seed` makes training repeatable; noise that protects comes from the operating system whatever the seed. `account`
    is charged before noise is drawn.

    >>> from quietq.paper.agents import NoNoise
    >>> agent = Agent("walk", NoNoise(widths=(8,)), seed=1).learn(200, seeds=2)
    >>> agent.q_values([[0.1], [0.9]]).shape, agent.certificate.standing
    ((2, 2), 'none')
    """

    def __init__(
        self, world: Place, method: Method, *, seed: int | None = None, reward: object = None,
        account: Account | None = None,
    ) -> None:  # fmt: skip
        instance("method", method, Method, "one of quietq's methods, e.g. NoNoise()")
        instance("account", account, Account | None, "an Accountant or a source's account in a Ledger")
        self.world = _find(world)
        self.method = method
        self.spaces = trainer.spaces_of(self.world) if isinstance(self.world, World) else spaces_of_env(self.world)
        self.seed = int.from_bytes(os.urandom(4)) if seed is None else count("seed", seed, 0)
        self._reward, self._account = reward, account
        self._spent, self._training = False, threading.Lock()
        self._released: Any = None
        self._draws = self._seeds = 1
        self.steps = self._promised = 0  # taken, and those that the certificate is for
        self._certificate: Certificate | None = None
        self._loaded_from: Mapping[str, Any] | None = None
        self.not_private: dict[str, Any] = {}
        """What training saw of the true reward: episode returns, one list a run. For the operator only."""

    def learn(
        self,
        steps: int,
        *,
        seeds: int = 1,
        simulate: int | None = None,
        every: int | None = None,
        progress: bool | str = False,
        callback: Callable[[Event], bool | None] | None = None,
        log: str | os.PathLike[str] | None = None,
    ) -> "Agent":
        """Trains from the beginning, for so many steps of the world.

        `seeds` trainings run side by side; a method that noises as it goes has one, because each would be a release.
        `simulate` is a number of noise draws, for experiments: seeded, they protect nobody. `callback` is called
        `every` so many steps with what has been released, and ends the training by returning True. `log` is a folder
        for TensorBoard. `progress` shows a bar; "compiled" is told from inside the compiled program, step by step.
        """
        if not self._training.acquire(blocking=False):
            raise InvalidInput("This agent is being trained already: wait for it, or make another one.")
        try:
            if self._spent:
                raise BudgetExhausted("This agent's budget is spent: train another agent, under another budget.")
            self._carry_out(
                Training(
                    world=self.world, spaces=self.spaces, method=self.method, reward=self._reward, seed=self.seed,
                    account=self._account, steps=steps, seeds=seeds, simulate=simulate, every=every,
                    progress=progress, callback=callback, log=log,
                )
            )  # fmt: skip
            return self
        finally:
            self._training.release()

    def _carry_out(self, training: Training) -> None:
        run = trainer.run if isinstance(self.world, World) else loop.run
        try:
            result = run(training)
        finally:  # what was drawn stays drawn, whatever happened then
            self._spent |= training.charged and training.releases
        self._loaded_from = None
        self._released, self._certificate, self.steps = result.released, training.certificate(), result.steps
        self.with_receipt(training.receipt)
        self._draws, self._seeds, self._promised = training.draws, training.seeds, training.steps
        returns = {"episode_returns": episode_returns(result.seen)}
        self.not_private = returns if self.method.uses_true_reward else {}

    @property
    def certificate(self) -> Certificate:
        """What is promised of everything that this agent answers."""
        if self._certificate is None:
            return self.method.certificate(self.spaces, 1) if not self.method.spends else self._missing()
        return self._certificate

    @property
    def released(self) -> Any:
        """What was released: a pytree of arrays with a leading axis, one entry per run."""
        return self._missing() if self._released is None else self._released

    @property
    def spent(self) -> bool:
        """Whether noise that protects was drawn, and its budget with it, even if nothing was released then."""
        return self._spent

    @property
    def draws(self) -> int:
        return self._draws

    @property
    def members(self) -> int:
        return self._draws * self._seeds

    def q_values(self, observation: object, member: int | None = None) -> Float[np.ndarray, "... actions"]:
        """The released values of all actions at one or many observations, shape (d,) or (points, d).

        Several seeds are averaged; `member` picks one run. Simulated draws are different releases: pick one.
        """
        points = observed(observation, self.spaces.box)
        if member is None and self._draws > 1:
            raise InvalidInput(f"These are {self._draws} simulated releases: name the member, 0 to {self.members - 1}.")
        chosen = slice(None) if member is None else slice(self._member(member), member + 1)
        released = jax.tree.map(lambda leaf: leaf[chosen], self.released)
        asked = np.atleast_2d(points).astype(np.float32)
        values = np.asarray(values_of_runs(self.method.core(), released, asked)).mean(axis=0)
        return values if points.ndim == 2 else values[0]

    def predict(
        self, observation: object, state: None = None, episode_start: None = None, deterministic: bool = True,
        member: int | None = None,
    ) -> tuple[Int[np.ndarray, "..."], None]:  # fmt: skip
        """The best action by the released values, and None for the state: as Stable-Baselines3 has it."""
        return np.asarray(self.q_values(observation, member).argmax(axis=-1)), None

    def evaluate(
        self, reward: object = None, *, episodes: int | None = None, seed: int = 0, progress: bool | None = None
    ) -> scoring.NotPrivate:
        """How well the released policies do under the *true* reward. NOT private: for the operator only.

        `reward`, a function of many states at once, replaces the reward that the agent was made with, or else the
        world's own. By default there are 2000 `episodes` in quietq's worlds, and 20 in environments, which are played
        one step after the other; the walk is solved exactly. `progress` shows a bar; None does on a terminal only.
        """
        true = self._reward if reward is None else reward
        with programs_in_memory():  # the reward may be a function that compiles something
            return scoring.evaluate(self.world, true, self.q_values, self.members, episodes, seed, progress)

    def released_values(self, member: int = 0) -> ReleasedValues:
        """The values of one run, for methods that learn from what was released: the certificate is this agent's."""
        one = jax.tree.map(lambda leaf: leaf[self._member(member)], self.released)
        return ReleasedValues._as_released(_Answers(self.method.core(), one), self.spaces.box, self.certificate)

    def as_function(self) -> PrivateNetwork:
        """What of it may leave: released values, and public settings. Seeds, returns and steps taken stay behind."""
        network = self.method.to_private(self.released, self.spaces, self.certificate)
        training = self._loaded_from or {
            "world": self.world.name if isinstance(self.world, World) else None,
            "episode": self.spaces.steps,
            "steps": self._promised if self.method.spends else None,
            "settings": self.method.settings(),
        }
        return replace(network, draws=self._draws, training=training)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes what was released, the certificate and the settings, and nothing else, as `quietq.publish` does.

        What is not certified protects nobody, and the file says NOT PRIVATE.
        """
        write_release(self.as_function(), path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], world: Place | None = None) -> "Agent":
        """Reads an agent that was saved or published: it answers, and can be evaluated.

        `world` is needed if it was an environment that is not known by name.
        """
        network = open_release(path).function
        if not isinstance(network, PrivateNetwork) or network.training is None:
            raise InvalidInput(f"{str(path)!r} is a release, but not of an agent that was saved.")
        saved.check_form(network.training["settings"], network)
        method = saved.method_from(network.training["settings"])
        if network.output != method.output:
            raise InvalidInput(f"The file's network gives {network.output}, which {method.name!r} does not release.")
        place = saved.find_name(network.training["world"]) if world is None else world
        agent = cls(place, method, seed=0)
        if agent.spaces.box != network.box or agent.spaces.actions != network.actions:
            raise InvalidInput(
                "The world has other observations or actions than the one that the agent was trained in."
            )
        saved.check_promise(method, network)
        agent._released, agent._certificate = method.from_private(network, agent.spaces), network.certificate
        agent._draws, agent._seeds = network.draws, network.runs // network.draws
        agent._loaded_from, agent._spent = network.training, method.spends
        return agent

    def __repr__(self) -> str:
        trained = "not trained" if self._released is None else f"{self.members} run(s), {self.certificate.standing}"
        return f"Agent({_name(self.world)}, {self.method.name}, {trained})"

    def _member(self, member: int) -> int:
        if not 0 <= count("member", member, 0) < self.members:
            raise InvalidInput(f"member must lie between 0 and {self.members - 1}, not {member!r}.")
        return member

    def _missing(self) -> Any:
        raise NotTrained("This agent has not been trained: call learn first.")


class _Answers(eqx.Module):
    """What one run released, at many states."""

    method: Method = eqx.field(static=True)
    released: Any

    def __call__(self, states: Float[Array, "points d"]) -> Float[Array, "points actions"]:
        return jax.vmap(self.method.values, in_axes=(None, 0))(self.released, states)


def _find(world: Place) -> World | gymnasium.Env | VectorEnv:
    if isinstance(world, str):
        return find_place(world)
    instance("world", world, World | gymnasium.Env | VectorEnv, "a world's name, a World or a Gymnasium environment")
    return world


def _name(world: World | gymnasium.Env | VectorEnv) -> str:
    return world.name if isinstance(world, World) else str(world.spec.id if world.spec else world)
